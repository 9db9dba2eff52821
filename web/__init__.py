"""The pages: a Django project with a small app for each subject. See README.md beside this file."""

from __future__ import annotations
