"""What is read of a pool only when somebody thinks of ending or upgrading it: snapshots, features, compatibility."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from appliance import command
from appliance.facts.box import Pool, PoolDetail
from appliance.zfs import json_output

FEATURE_SETS = (Path("/etc/zfs/compatibility.d"), Path("/usr/share/zfs/compatibility.d"))
LARGEST_SET = 16 * 1024  # zpool-features(7)


def feature_set(name: str, folders: Iterable[Path] = FEATURE_SETS) -> frozenset[str] | None:
    """The features that a compatibility file names; None where there is no such file.
    Only plain file names are looked up."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name):
        return None
    for folder in folders:
        try:
            with (folder / name).open("rb") as file:
                text = file.read(LARGEST_SET).decode(errors="replace")
        except OSError:
            continue
        return frozenset(
            word for line in text.splitlines() for word in re.split(r"[\s,]+", line.partition("#")[0]) if word
        )
    return None


def features_to_enable(
    compatibility: str, features: Iterable[str], folders: Iterable[Path] = FEATURE_SETS
) -> tuple[str, ...]:
    """Of these features, those that ``zpool upgrade`` would switch on under a compatibility setting."""
    found = sorted(features)
    if compatibility in {"off", "", "-"}:
        return tuple(found)
    if compatibility == "legacy":
        return ()
    sets = [feature_set(name, folders) for name in compatibility.split(",")]
    return tuple(one for one in found if all(known is not None and one in known for known in sets))


def detail_from(guid: int, listing: object, snapshots: int) -> PoolDetail:
    """From the ``pools.NAME.properties`` of ``zpool get -j all``."""
    properties = listing if isinstance(listing, dict) else {}
    values = {str(key): str((raw or {}).get("value", "")) for key, raw in properties.items() if isinstance(raw, dict)}
    compatibility = values.get("compatibility") or "off"
    off = [key.partition("@")[2] for key, value in values.items() if key.startswith("feature@") and value == "disabled"]
    return PoolDetail(
        guid,
        snapshots,
        compatibility,
        features_to_enable(compatibility, off),
        read_only=values.get("readonly") == "on",
    )


def read_pool_detail(pool: Pool) -> PoolDetail:
    """The details of one pool, now. Raises Failed."""
    properties = json_output.read_json(["zpool", "get", "-j", "all", pool.name], timeout=60)
    own = ((properties.get("pools") or {}).get(pool.name) or {}).get("properties")
    names = command.run(["zfs", "list", "-H", "-o", "name", "-t", "snapshot", "-r", pool.name], timeout=300).stdout
    return detail_from(pool.guid, own, len(names.splitlines()))
