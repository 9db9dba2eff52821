"""The language of the box: what root's programs say at the console. Larder's pages choose it and write it to a file."""

from __future__ import annotations

import gettext
import os
import re
from collections.abc import Callable
from pathlib import Path

from appliance.system import paths

CATALOGUES = Path(__file__).parents[2] / "web/locale"
CODE = re.compile(rb"[a-z]{2}(-[a-z]{2})?")
LONGEST = 16


def language_file() -> Path:
    return paths.RUN / "inventory" / "language"


def read_language() -> str:
    """The code that the pages wrote; empty where there is none, which is English.

    The folder is not root's own: no link is followed, no pipe waited for, and only what looks like a code counts.
    """
    try:
        handle = os.open(language_file(), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(handle, "rb") as opened:
            found = (opened.read(LONGEST) or b"").strip()
    except OSError:
        return ""
    return found.decode() if CODE.fullmatch(found) else ""


def box_catalogue() -> Callable[[str], str]:
    """What looks a message up in the language of the box; it gives back the message where that has none for it.

    The catalogue is read each time and not kept: it is asked for rarely, by programs that stay in memory.
    """
    code = read_language()
    try:
        with (CATALOGUES / code / "LC_MESSAGES/django.mo").open("rb") as file:
            return gettext.GNUTranslations(file).gettext
    except (OSError, ValueError, UnicodeError):
        return str
