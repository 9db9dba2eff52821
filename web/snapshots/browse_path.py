"""The way down to a file in a snapshot, as addresses and people have it. Names in it are bytes, and hostile."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import unquote

from django.http import Http404, HttpRequest

from appliance import names
from appliance.errors import Refused


def readable_text(encoded: str) -> str:
    """A percent-encoded name or way as text: what is no text, or would not be seen, is a question mark."""
    return "".join(one if one.isprintable() else "?" for one in unquote(encoded, errors="replace"))


@dataclass(frozen=True)
class BrowsePath:
    """``path`` is percent-encoded, empty for the top folder."""

    path: str

    @property
    def name(self) -> str:
        return readable_text(self.path.rpartition("/")[2])

    @property
    def words(self) -> str:
        return readable_text(self.path)

    @property
    def above(self) -> str:
        return self.path.rpartition("/")[0]

    @property
    def folders(self) -> list[tuple[str, str]]:
        """The folders on the way, without the last name, each as text and as its own way."""
        parts = self.path.split("/")[:-1]
        return [(readable_text(part), "/".join(parts[: at + 1])) for at, part in enumerate(parts)]

    def to(self, name: str) -> str:
        return f"{self.path}/{name}" if self.path else name


def way_of(request: HttpRequest) -> BrowsePath:
    """The way in an address. Raises Http404 for nonsense."""
    path = request.GET.get("path", "")
    try:
        names.parse_relative_path(path)
    except (Refused, UnicodeEncodeError) as error:
        raise Http404 from error
    return BrowsePath(path)


def file_time(seconds: float) -> datetime:
    """A file's time, which anybody can set to anything."""
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError, OSError):
        return datetime.fromtimestamp(0, UTC)
