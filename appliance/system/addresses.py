"""Addresses of computers, as commands take them."""

from __future__ import annotations


def bracketed(host: str) -> str:
    """A host as it stands before ``:``, where an address of IP version 6 needs brackets."""
    return f"[{host}]" if ":" in host else host
