"""Preview a file without trusting it: text as text, a picture by its content instead of its name."""

from __future__ import annotations

from typing import IO

import msgspec

MOST_TEXT = 64 * 1024  # bytes shown
LARGEST_PICTURE = 64 * 1024 * 1024
# First bytes of pictures. SVG is left out because it can contain programs.
BEGINNINGS = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
}


class Preview(msgspec.Struct, frozen=True):
    kind: str  # text, picture, nothing
    text: str = ""
    whole: bool = True


def kind_of(begins: bytes) -> str:
    """The content type of a picture that browsers show; empty if it is none."""
    if begins[:4] == b"RIFF" and begins[8:12] == b"WEBP":
        return "image/webp"
    if begins[4:12] == b"ftypavif":
        return "image/avif"
    return next((kind for begin, kind in BEGINNINGS.items() if begins.startswith(begin)), "")


def picture_of(stream: IO[bytes]) -> str:
    """The content type of a picture, from its first bytes. Raises OSError."""
    begins = stream.read(16)
    stream.seek(0)
    return kind_of(begins)


def preview_of(stream: IO[bytes], size: int) -> Preview:
    """The preview of a file of ``size`` bytes. Raises OSError."""
    begins = stream.read(MOST_TEXT)
    if kind_of(begins):
        return Preview("picture" if size <= LARGEST_PICTURE else "nothing")
    if b"\0" in begins:
        return Preview("nothing")
    whole = len(begins) == size
    text = begins.decode(errors="strict" if whole else "ignore") if is_text(begins, whole=whole) else ""
    return Preview("text", text, whole) if text or not size else Preview("nothing")


def is_text(begins: bytes, *, whole: bool) -> bool:
    try:
        begins.decode()
    except UnicodeDecodeError as error:
        # The cut may be within a multi-byte character.
        return not whole and error.start > len(begins) - 4
    return True
