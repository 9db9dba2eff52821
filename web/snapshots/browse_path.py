"""The path of a file in a snapshot, for addresses and for display. Names in it are hostile bytes."""

from __future__ import annotations

from datetime import UTC, datetime
from urllib.parse import unquote

import msgspec
from django.http import Http404, HttpRequest

from appliance import names
from appliance.errors import Refused
from appliance.formatting import printable_text


def readable_text(encoded: str) -> str:
    """A percent-encoded name or path as text, with question marks for what cannot be displayed."""
    return printable_text(unquote(encoded, errors="replace"))


class BrowsePath(msgspec.Struct, frozen=True):
    """A path below a dataset's top folder. ``path`` is percent-encoded, empty for the top folder itself."""

    path: str

    @property
    def name(self) -> str:
        return readable_text(self.path.rpartition("/")[2])

    @property
    def text(self) -> str:
        return readable_text(self.path)

    @property
    def above(self) -> str:
        return self.path.rpartition("/")[0]

    @property
    def folders(self) -> list[tuple[str, str]]:
        """The folders above the last name, each as text and as a path."""
        parts = self.path.split("/")[:-1]
        return [(readable_text(part), "/".join(parts[: at + 1])) for at, part in enumerate(parts)]

    def child_path(self, name: str) -> str:
        return f"{self.path}/{name}" if self.path else name


def path_of(request: HttpRequest) -> BrowsePath:
    """The path in a page's address. Raises Http404 if it is malformed."""
    path = request.GET.get("path", "")
    try:
        names.parse_relative_path(path)
    except (Refused, UnicodeEncodeError) as error:
        raise Http404 from error
    return BrowsePath(path)


def file_time(seconds: float) -> datetime:
    """A file's time; the epoch if it is out of range, since users can set it to anything."""
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError, OSError):
        return datetime.fromtimestamp(0, UTC)
