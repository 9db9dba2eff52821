"""What the groups of a pool that hold no data of their own are called."""

from __future__ import annotations

from web.translation import lazy_text

ROLE_WORDS = {
    "log": lazy_text("log"),
    "cache": lazy_text("cache"),
    "spare": lazy_text("spare"),
    "special": lazy_text("special"),
    "dedup": lazy_text("dedup"),
}


def role_word(role: str) -> str:
    """What a helper of a pool is called."""
    return ROLE_WORDS.get(role, role)
