"""Hide secrets in text that was written by others: lines of the journal, output of tools, rows of settings.

Larder writes no secret anywhere, but what it shows here was written by every program of the box, also at the bidding of
strangers: a password typed as a name at a login, an address with a token in an error, an argument behind ``sudo``.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import quote

from appliance.system import paths

HIDDEN = "(hidden)"
SHORTEST = 6  # a shorter secret would take half of every line with it
LARGEST_FILE = 4096  # bytes
MOST_FILES = 200  # of a folder
NAMES = (
    r"[\w-]{0,30}(?:password|passphrase|passwd|secret|token|api[_-]?key|credential)s?"
    r"|authorization|cookie|larder-session|larder-csrf"
)
RULES: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----.*?(?:-----END [A-Z ]{0,40}-----|\Z)", re.DOTALL), HIDDEN),
    # What follows the name of the computer in an address: tokens of webhooks stand in the
    # path as often as in the query.
    (
        re.compile(r"\b([a-z][a-z0-9+.-]{1,20}://)(?:[^\s/@]{1,500}@)?([^\s/@?#\"'<>]{1,255})[/?#][^\s\"'<>]+", re.I),
        rf"\1\2/{HIDDEN}",
    ),
    (re.compile(r"\b([a-z][a-z0-9+.-]{1,20}://)[^\s/@]{1,500}@", re.I), rf"\1{HIDDEN}@"),
    (
        re.compile(
            rf"\b({NAMES})([\"']?\s{{0,3}}[:=]\s{{0,3}})(?:(?:bearer|basic|digest)\s+)?(?:\"[^\"]*\"|'[^']*'|[^\s,;]+)",
            re.I,
        ),
        rf"\1\2{HIDDEN}",
    ),
    (re.compile(r"\b(bearer|basic)\s+[\w+/=.~-]{8,}", re.I), rf"\1 {HIDDEN}"),
    # Passwords are typed where a name is asked for, and sshd and login write down the name that they do not know.
    (
        re.compile(
            r"\b((?:invalid|illegal|unknown) user )(?!from\b).{1,200}?(?=\s+(?:from|\d{1,3}\.)|\s+port\b|$)",
            re.I | re.M,
        ),
        rf"\1{HIDDEN}",
    ),
    (re.compile(r"(\bFAILED LOGIN \(\d+\) on '[^']*' (?:from '[^']*' )?FOR )'[^']*'"), rf"\1'{HIDDEN}'"),
    # What sudo was given: the program stays, its arguments go.
    (re.compile(r"(\bCOMMAND=\S+)[ \t]+\S.*"), rf"\1 {HIDDEN}"),
    # A raw key of ZFS in hexadecimal digits.
    (re.compile(r"(?<![0-9a-zA-Z])[0-9a-fA-F]{64}(?![0-9a-zA-Z])"), HIDDEN),
)


class Redactor:
    """Hides known secrets wherever they stand, and what looks like one."""

    def __init__(self, known: Iterable[str] = ()) -> None:
        forms = {form for secret in known for form in written_forms(secret)}
        longest_first = sorted(forms, key=lambda form: (-len(form), form))
        self.known = re.compile("|".join(map(re.escape, longest_first))) if longest_first else None

    def hide(self, text: str) -> str:
        """The text without secrets."""
        if self.known is not None:
            text = self.known.sub(HIDDEN, text)
        for pattern, instead in RULES:
            text = pattern.sub(instead, text)
        return text


def written_forms(secret: str) -> Iterator[str]:
    """How a secret may stand in a text: as it is, each of its lines, and as part of an address."""
    for part in {secret.strip(), *(line.strip() for line in secret.splitlines())}:
        if len(part) >= SHORTEST:
            yield part
            yield quote(part, safe="")


def known_secrets() -> list[str]:
    """The secrets that lie in files of this box, as far as the caller may read them."""
    files = (
        paths.STATE / "secret-key",
        paths.STATE / "mail-password",
        paths.RUN / "setup-code",
        paths.RUN / "inventory" / "setup-code",
        *files_of(paths.SECRETS),
        *files_of(paths.AGENT_STATE / "keys"),
        *(file for file in files_of(paths.SSH) if file.suffix in {".key", ".password"}),
    )
    return [text for file in files if (text := read_secret(file))]


def files_of(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())[:MOST_FILES]
    except OSError:
        return []


def read_secret(file: Path) -> str:
    """A small regular file as text; empty for anything else.
    Its folder may belong to a user who is taken to be hostile."""
    try:
        handle = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            return ""
        return os.read(handle, LARGEST_FILE).decode(errors="replace").strip()
    except OSError:
        return ""
    finally:
        os.close(handle)
