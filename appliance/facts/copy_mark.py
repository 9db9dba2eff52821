"""The mark ``larder:copy-of`` of a copy that a backup made: of which dataset it is, and how its streams are sent."""

from __future__ import annotations

import msgspec


class CopyMark(msgspec.Struct, frozen=True):
    """``guid``: of the original, 0 for the folder that copies lie in. ``raw``: sent encrypted as it is.
    Neither changes."""

    guid: int
    raw: bool

    @property
    def text(self) -> str:
        return msgspec.json.encode(self).decode()


def parse_copy_mark(text: str) -> CopyMark | None:
    """What the property says; None where it says nothing that Larder could have written."""
    try:
        return msgspec.json.decode(text, type=CopyMark) if text else None
    except (msgspec.MsgspecError, RecursionError):
        return None


def is_continued(text: str) -> bool:
    """Whether a dataset with this mark is a copy that a run may go on with: not one that was set aside."""
    mark = parse_copy_mark(text)
    return mark is not None and mark.guid != 0
