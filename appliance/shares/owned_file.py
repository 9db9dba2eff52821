"""A configuration file that Larder owns completely: rendered from facts, checked, swapped atomically, kept once more.

The first line carries a digest of the rest, so that a hand edit is seen: Larder then refuses to write over it.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import msgspec

from appliance.errors import Reason, Refused
from appliance.system import atomic_file

MARK = "# Written by Larder. Change it in Larder: a change made here is shown there and stops Larder from writing. "


class OwnedFile(msgspec.Struct, frozen=True):
    """``path`` and how to find out that a daemon would take new content (``check`` raises Failed)."""

    path: Path
    check: Callable[[Path], None]
    xml: bool = False  # its first line is a comment of XML

    def first_line(self, body: str) -> str:
        mark = MARK + body_digest(body)
        return f"<!-- {mark.removeprefix('# ')} -->" if self.xml else mark

    @property
    def previous(self) -> Path:
        return self.path.with_name(f".{self.path.name}.previous")

    def drifted(self) -> bool:
        """Whether someone has changed the file by hand since Larder wrote it."""
        try:
            # Byte for byte: a hand edit may be in any encoding and with any line ends.
            text = self.path.read_bytes().decode(errors="replace")
        except FileNotFoundError:
            return False
        first, _, rest = text.partition("\n")
        if MARK.removeprefix("# ") not in first:
            # As installed: one comment and nothing else.
            return any(line.strip() and not line.lstrip().startswith("#") for line in text.splitlines())
        return first != self.first_line(rest)

    def refuse_drift(self) -> None:
        """Raises Refused where the file was changed by hand."""
        if self.drifted():
            raise Refused(
                Reason(
                    "file-changed-by-hand",
                    "{path} was changed by hand, so Larder does not overwrite it. The Manual changes page "
                    "shows the difference and what you can do.",
                    path=self.path,
                )
            )

    def says(self, body: str) -> bool:
        """Whether the file holds this and nothing else."""
        try:
            return (
                self.path.read_text(encoding="utf-8", errors="replace").partition("\n")[2] == body
                and not self.drifted()
            )
        except FileNotFoundError:
            return False

    def fingerprint(self) -> str:
        """What tells this very content from any other, hand edit or not; empty where there is no file."""
        try:
            return content_fingerprint(self.path.read_bytes())
        except FileNotFoundError:
            return ""

    def write(self, body: str, *, over: str = "") -> None:
        """Put new content in place, durably. Raises Refused on drift, Failed where the daemon would not take it.

        ``over``: the fingerprint of the one hand edit that somebody has decided about; any other still stops it.
        """
        if not over or self.fingerprint() != over:
            self.refuse_drift()
        beside = self.path.with_name(f".{self.path.name}.new")
        try:
            with beside.open("w", encoding="utf-8", newline="") as new:
                new.write(f"{self.first_line(body)}\n{body}")
                new.flush()
                os.fsync(new.fileno())
            beside.chmod(0o644)
            self.check(beside)
            if self.path.exists():
                self.previous.unlink(missing_ok=True)
                os.link(self.path, self.previous)
            beside.replace(self.path)
        finally:
            beside.unlink(missing_ok=True)
        atomic_file.sync_folder(self.path.parent)

    def roll_back(self) -> None:
        """Put the previous version back."""
        if self.previous.exists():
            self.previous.replace(self.path)
        else:
            self.path.write_text("")
        atomic_file.sync_folder(self.path.parent)


def content_fingerprint(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def body_digest(body: str) -> str:
    return hashlib.sha256(body.encode()).hexdigest()[:16]
