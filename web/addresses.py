"""The addresses of pages, each worked out once: a row of a long list has four, and its page
is drawn again and again."""

from __future__ import annotations

from functools import lru_cache

from django.urls import reverse


@lru_cache(maxsize=512, typed=True)  # some pages of the longest lists
def address(name: str, *args: object) -> str:
    """The address of the page with this name. Raises NoReverseMatch where there is none."""
    return reverse(name, args=args)
