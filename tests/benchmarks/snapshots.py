"""Snapshots on real ZFS: Larder's own code against the bare library and the command, in one run in the appliance."""

from __future__ import annotations

import json
from pathlib import Path

from deploy.image.machine import Machine

SCRIPT = Path(__file__).with_name("snapshots_inside.py")
# They would look at each of the thousands of snapshots that are made and destroyed here.
ELSE_AT_WORK = ("larder-worker.service", "zfs-zed.service")
Figure = tuple[str, float, str, float | None]


def figures(appliance: Machine) -> list[Figure]:
    """Each with its unit, and its bound where one is promised."""
    appliance.run("systemctl", "stop", *ELSE_AT_WORK)
    try:
        said = appliance.run("/opt/larder/venv/bin/python", "-c", SCRIPT.read_text(), timeout=3600)
    finally:
        appliance.run("systemctl", "start", *ELSE_AT_WORK)
    return ratios(json.loads(said.splitlines()[-1]))


def ratios(out: dict[str, float]) -> list[Figure]:
    """What the script measured, as the promises are made."""
    many = f"{out['listed']:,.0f}"
    return [
        ("policies over 200 folders: transactions", out["transactions of a run"], "a pool", 1),
        ("policies over 200 folders against bare lzc_snapshot", out["our run"] / out["bare run"], "times", 2),
        (f"inventory after one new snapshot among {many}: folders read", out["folders read"], "folders", 1),
        (
            f"inventory after one new snapshot against listing {many}",
            out["refresh of one"] / out["listing of all"],
            "times",
            0.05,
        ),
        (
            f"of which listing its folder against listing {many}",
            out["listing of one"] / out["listing of all"],
            "times",
            None,
        ),
        (
            "destroying 2,000 against zfs destroy for each of them",
            out["our destroy"] / out["each by command"],
            "times",
            None,
        ),
        ("destroying 2,000 against bare lzc_destroy_snaps", out["our destroy"] / out["bare destroy"], "times", 1.15),
        (
            "destroying 2,000 against one call of bare lzc_destroy_snaps",
            out["our destroy"] / out["bare destroy at once"],
            "times",
            None,
        ),
        (
            "destroying 2,000, with looking and planning, against zfs destroy for each",
            out["our destroy, looked at before"] / out["each by command"],
            "times",
            None,
        ),
    ]
