"""Which datasets the owner of this box has agreed to share: guids in a file of root's.

A dataset carries its share setting with it, also from another box; it is served only when somebody here said so.
"""

from __future__ import annotations

from appliance.system import atomic_file, locks, paths

FILE = paths.AGENT_STATE / "agreed-shares"


def read_approved() -> frozenset[int]:
    """The guids agreed to."""
    try:
        return frozenset(int(line) for line in FILE.read_text().split() if line.isdigit())
    except OSError:
        return frozenset()


def set_approved(guid: int, *, share: bool) -> None:
    """Remember or forget the agreement for one dataset, durably."""
    FILE.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    # Held for a moment only, and nothing else is waited for meanwhile, so whoever holds a pool may take it.
    with locks.hold_locks([str(FILE)]):
        now = read_approved() | {guid} if share else read_approved() - {guid}
        atomic_file.write_atomically(FILE, "".join(f"{known}\n" for known in sorted(now)).encode())
