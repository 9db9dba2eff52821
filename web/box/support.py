"""The support bundle while it is made and looked at: one at a time, in the memory of this process alone.

A thread beside the pages has the agent make it, for that may take minutes. The agent hands over an open file without a
name (memfd_create(2)): it is gone when it is closed here, when half an hour has passed, and when this process ends.
"""

from __future__ import annotations

import io
import os
import threading
import time
import uuid
from collections.abc import Callable
from typing import Any

import msgspec
from django.utils.translation import gettext

from appliance.errors import LarderError, explain_error
from appliance.support.sections import OWN, SECTIONS
from web import agent

SECONDS_KEPT = 1800.0
SECONDS_OF_SILENCE = 240.0
LARGEST = 64 * 2**20  # bytes of a bundle; the agent's own bounds are far below
MOST_SHOWN = 400_000  # bytes of a file that the page shows
HOLDS = {**{one.name: one.holds for one in SECTIONS}, **OWN}  # what each file holds, by its name


class File(msgspec.Struct, frozen=True):
    name: str
    holds: str
    size: int


class Bundle(msgspec.Struct):
    """One bundle. ``at`` of ``of`` files are begun; ``problem`` says why there is none;
    ``handle`` is set once it is there."""

    masked: tuple[str, ...]
    key: str = msgspec.field(default_factory=lambda: uuid.uuid4().hex)
    begun: float = msgspec.field(default_factory=time.monotonic)
    now: str = ""
    at: int = 0
    of: int = 1
    problem: str = ""
    handle: int = -1
    size: int = 0
    files: tuple[File, ...] = ()

    @property
    def is_made(self) -> bool:
        return self.handle >= 0

    @property
    def is_running(self) -> bool:
        return not self.is_made and not self.problem

    @property
    def percent(self) -> int:
        return min(99, self.at * 100 // max(self.of, 1))

    def note(self, told: dict[str, Any]) -> None:
        """How far the agent is."""
        self.now, self.at, self.of = str(told.get("file", ""))[:60], int(told.get("at", 0)), int(told.get("of", 1))

    def close(self) -> None:
        handle, self.handle = self.handle, -1
        if handle >= 0:
            os.close(handle)


class BundleReader(io.RawIOBase):
    """Reads a descriptor from a place of its own, so that several pages can read one file at a time."""

    def __init__(self, handle: int) -> None:
        self.handle, self.place = os.dup(handle), 0
        self.size = os.fstat(self.handle).st_size

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self.place = max(0, offset + {os.SEEK_SET: 0, os.SEEK_CUR: self.place, os.SEEK_END: self.size}[whence])
        return self.place

    def readinto(self, buffer: Any) -> int:
        data = os.pread(self.handle, len(buffer), self.place)
        buffer[: len(data)] = data
        self.place += len(data)
        return len(data)

    def close(self) -> None:
        if not self.closed:
            os.close(self.handle)
        super().close()


class Shelf:
    """The one bundle that there is, if there is one."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.bundle: Bundle | None = None

    def current(self) -> Bundle | None:
        with self.lock:
            if self.bundle and not self.bundle.is_running and time.monotonic() - self.bundle.begun > SECONDS_KEPT:
                self.drop()
            return self.bundle

    def drop(self) -> None:
        """Forget the bundle; the lock is held."""
        if self.bundle:
            self.bundle.close()
        self.bundle = None

    def discard(self) -> None:
        with self.lock:
            self.drop()

    def make(self, request: dict[str, Any], start: Callable[[Callable[[], None]], None]) -> Bundle:
        """Begin a bundle, unless one is being made; the one before it is forgotten."""
        with self.lock:
            if self.bundle and self.bundle.is_running:
                return self.bundle
            self.drop()
            bundle = self.bundle = Bundle(tuple(request["masked"]))
        start(lambda: self.fill(bundle, request))
        return bundle

    def fill(self, bundle: Bundle, request: dict[str, Any]) -> None:
        """Have the agent make it. What was discarded meanwhile is closed."""
        try:
            facts, handle = agent.make_file(request, silence=SECONDS_OF_SILENCE, report=bundle.note)
            files = tuple(
                File(str(name), HOLDS.get(name, str(holds)), int(size)) for name, holds, size in facts["files"]
            )
        except LarderError as error:
            bundle.problem = explain_error(error)
            return
        except Exception as error:
            bundle.problem = gettext("Larder's agent answered something that is no bundle ({name}).").format(
                name=type(error).__name__
            )
            return
        with self.lock:
            if self.bundle is not bundle or os.fstat(handle).st_size > LARGEST:
                os.close(handle)
                bundle.problem = gettext("It was discarded.")
                return
            bundle.size, bundle.files, bundle.handle = os.fstat(handle).st_size, files, handle
        timer = threading.Timer(SECONDS_KEPT, self.current)
        timer.daemon = True
        timer.start()

    def open(self, key: str) -> BundleReader | None:
        """The zip of that bundle, to be closed by the caller; None where it is not there any more."""
        with self.lock:
            if self.bundle is None or self.bundle.key != key or not self.bundle.is_made:
                return None
            return BundleReader(self.bundle.handle)

    def text_of(self, key: str, name: str) -> tuple[str, bool] | None:
        """The text of a file in it and whether that is all; None where there is none."""
        import zipfile  # a quarter of a megabyte that few need

        reader = self.open(key)
        if reader is None:
            return None
        try:
            with reader, zipfile.ZipFile(reader) as archive, archive.open(name) as file:
                data = file.read(MOST_SHOWN + 1)
        except (KeyError, zipfile.BadZipFile, OSError):
            return None
        return data[:MOST_SHOWN].decode(errors="replace"), len(data) <= MOST_SHOWN


def start_thread(work: Callable[[], None]) -> None:
    threading.Thread(target=work, name="support-bundle", daemon=True).start()


SHELF = Shelf()
