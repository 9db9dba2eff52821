"""What Debian's smb.conf shares without anybody having asked: home directories, printers, their drivers.

Larder switches them off from its own file, where they are as Debian made them. A section that somebody
has changed in smb.conf is wanted, so it stays as it is.
"""

from __future__ import annotations

import configparser
from pathlib import Path

CONFIG = Path("/etc/samba/smb.conf")
SHIPPED = Path("/usr/share/samba/smb.conf")  # from which the package samba-common makes the other
SECTIONS = ("homes", "printers", "print$")


def settings_of(text: str) -> configparser.ConfigParser | None:
    """A text of Samba's form; None where it is none."""
    parser = configparser.ConfigParser(
        interpolation=None, delimiters=("=",), strict=False, default_section="none at all"
    )
    try:
        parser.read_string("\n".join(line.strip() for line in text.splitlines()))
    except configparser.Error:
        return None
    return parser


def unasked_sections() -> tuple[str, ...]:
    """The sections that are in the system's smb.conf exactly as Debian ships them."""
    own, shipped = (settings_of(text_of(path)) for path in (CONFIG, SHIPPED))
    if own is None or shipped is None:
        return ()
    return tuple(
        name
        for name in SECTIONS
        if own.has_section(name) and shipped.has_section(name) and dict(own[name]) == dict(shipped[name])
    )


def text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
