"""Which datasets something is being received into, asked of the processes: a pool that has
stopped tells nothing of itself."""

from __future__ import annotations

from pathlib import Path

PROC = Path("/proc")


def find_receives(pool: str, proc: Path | None = None) -> list[str]:
    """The datasets of a pool that a ``zfs receive`` works on, in order. Where the pool has stopped, its process waits
    in the kernel and cannot be ended, so it is found until the next start."""
    found = set[str]()
    for path in (proc or PROC).glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().decode("utf-8", "replace").rstrip("\0").split("\0")
        except OSError:  # it has ended meanwhile
            continue
        is_receive = len(words) > 2 and words[0].rsplit("/", 1)[-1] == "zfs" and words[1] in {"receive", "recv"}
        if is_receive and f"{words[-1]}/".startswith(f"{pool}/"):
            found.add(words[-1])
    return sorted(found)
