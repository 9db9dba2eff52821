"""The guide: short pages, each on one task, with a picture of the page that it is about. Text and pictures alone.

Start at chapters.py. Pictures are taken from recorded boxes by ``python -m tests.dev.guide_pictures``.
"""
