"""A share or export of another NAS, mounted read-only for rsync.

The kernel's clients are used because rsync needs a file system: programs in user space (smbclient, libnfs) have
no way to give it one without FUSE, which would be one more program that parses what the other NAS sends, and
slower on a small processor.

A mount exists only inside the sandbox (``sandbox.py``), which is in the mount namespace of one request. It is
unmounted after each step, and the kernel drops it when the request ends for whatever reason, so nothing has to be
unmounted at the next start. Nothing waits for a NAS that went away: the mounts are soft, and ``watch`` asks the server
every few seconds for its free space.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path

from appliance import command
from appliance.command import Result
from appliance.errors import Failed
from appliance.facts.file_import import FileImport
from appliance.imports.exit_status import PARTLY
from appliance.imports.sources.base import ImportSource, away

FOLDER = "/source"  # in the sandbox: what was mounted
SAFELY = ("ro", "nosuid", "nodev", "noexec")
SECONDS_TO_MOUNT = 90
SECONDS_BETWEEN_ASKING = 15
SECONDS_TO_ANSWER = 20
MOST_SILENCES = 2
# Errors of a connection, not of a file: EHOSTDOWN, ENOTCONN, ETIMEDOUT, ESTALE, EHOSTUNREACH, ECONNRESET, EREMOTEIO.
AWAY = re.compile(r"\((103|104|107|110|111|112|113|116|121)\)\s*$", re.MULTILINE)


class MountedSource(ImportSource):
    is_mounted = True

    def options(self, task: FileImport) -> list[str]:
        return []

    def mount(self, task: FileImport, target: Path) -> None:
        """Mount it. Raises Failed."""
        raise NotImplementedError

    def furnish(self, task: FileImport, place: Path) -> None:
        target = place / FOLDER[1:]
        target.mkdir(mode=0o700)
        self.mount(task, target)

    def watch(self, task: FileImport, place: Path) -> Callable[[], None]:
        silences, asked = 0, time.monotonic()

        def look() -> None:
            nonlocal silences, asked
            if time.monotonic() - asked < SECONDS_BETWEEN_ASKING:
                return
            try:
                argv = ["stat", "--file-system", "--format=%T", "--", str(place / FOLDER[1:])]
                command.run(argv, timeout=SECONDS_TO_ANSWER)
                silences = 0
            except Failed as error:
                silences += 1
                if silences >= MOST_SILENCES:
                    raise away(task) from error
            asked = time.monotonic()

        return look

    def is_lost(self, result: Result) -> bool:
        return super().is_lost(result) or (result.status == PARTLY and AWAY.search(result.stderr) is not None)

    def explain(self, task: FileImport, result: Result) -> Failed | None:
        return away(task) if self.is_lost(result) else None


def run_mount(task: FileImport, argv: list[str]) -> Result:
    """How mounting ended, whatever its status. Raises Failed where the other NAS does not answer in time."""
    try:
        return command.run(argv, timeout=SECONDS_TO_MOUNT, accept=range(256))
    except command.CommandTimedOut as error:
        raise away(task) from error
