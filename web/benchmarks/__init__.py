"""Benchmarks: asking a question, following it, its results."""

from __future__ import annotations
