"""The files beside Larder's own from which Samba reads options that were tried, or that have helped and are kept."""

from __future__ import annotations

from pathlib import Path

from appliance.system import paths

KEPT = Path("/etc/samba")
NAMES = ("async", "socket")


def kept_file(name: str) -> Path:
    return KEPT / f"larder-{name}.conf"


def tried_file(name: str) -> Path:
    """In memory, so that it goes with a restart."""
    return paths.RUN / f"samba-{name}.conf"


def included_files() -> tuple[Path, ...]:
    """In the order in which Samba reads them: what is tried overrules what is kept. It passes over those that there are not."""
    return (*map(kept_file, NAMES), *map(tried_file, NAMES))
