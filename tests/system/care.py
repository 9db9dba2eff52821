"""Long work in the appliance: hold it still, damage what it reads, and see what Larder kept of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from deploy.image.machine import Machine, wait_for
from tests.system import moving
from tests.visitor import Answer, Visitor

PARAMETERS = "/sys/module/zfs/parameters"
KEPT = """
import json, sqlite3
rows = sqlite3.connect("/var/lib/larder/settings.sqlite3").execute(
    "select kind, outcome, repaired, errors, damaged, started, pool_key from larder_pools_workreport order by written")
print(json.dumps(rows.fetchall()))
"""
CHECKED = """
import sqlite3
rows = sqlite3.connect("/run/larder/inventory/inventory.sqlite3").execute(
    "select checked from inventory_source where name = 'reports'")
print(rows.fetchall())
"""
# Finds where a file's first blocks lie (zdb: "0 L0 0:4c0e000:20000 …", behind 4 MiB of labels) and spoils them.
SPOIL = """
import os, re, subprocess, sys
pool, file, count, *parts = sys.argv[1:]
number = str(os.stat(file).st_ino)
said = subprocess.run(["zdb", "-dddddd", pool + "/", number], capture_output=True, text=True).stdout
found = re.findall(r"^\\s*[0-9a-f]+\\s+L0 0:([0-9a-f]+):[0-9a-f]+", said, re.MULTILINE)[: int(count)]
if not found:
    sys.exit("no blocks found: " + said[-2000:])
for part in parts:
    handle = os.open(part, os.O_WRONLY)
    for offset in found:
        os.pwrite(handle, os.urandom(16384), int(offset, 16) + 4 * 2**20)
    os.fsync(handle)
    os.close(handle)
print(len(found))
"""


def scan_of(appliance: Machine, pool: str) -> dict[str, Any]:
    """``scan_stats`` as ZFS tells it now."""
    said = json.loads(appliance.run("zpool", "status", "-j", "--json-int", pool))
    found: dict[str, Any] = said["pools"][pool].get("scan_stats") or {}
    return found


@contextmanager
def held(appliance: Machine) -> Iterator[None]:
    """Scrubs and resilvers stand still meanwhile (dsl_scan.c, zfs_scan_suspend_progress)."""
    appliance.shell(f"echo 1 > {PARAMETERS}/zfs_scan_suspend_progress")
    try:
        yield
    finally:
        appliance.shell(f"echo 0 > {PARAMETERS}/zfs_scan_suspend_progress", check=False)


def reports(appliance: Machine, pool: str, kind: str) -> list[dict[str, Any]]:
    """What was kept of this pool's ended work of one kind, the oldest first."""
    names = ("kind", "outcome", "repaired", "errors", "damaged", "started", "pool_key")
    rows = [dict(zip(names, row, strict=True)) for row in json.loads(appliance.run("python3", "-c", KEPT))]
    key = moving.guid_of(appliance, pool)  # another pool may have had the same name
    return [row for row in rows if (row["pool_key"], row["kind"]) == (key, kind)]


def reported(
    appliance: Machine, visitor: Visitor, pool: str, kind: str, count: int, *, timeout: float = 120
) -> dict[str, Any]:
    """Wait for that many reports, and see that two more readings add none; the last one."""

    def enough() -> bool:
        visitor.get("/")  # looking has the facts read
        return len(reports(appliance, pool, kind)) >= count

    wait_for(f"{count} reports on the {kind} of {pool}", enough, timeout=timeout, every=1)
    for _ in range(2):
        before = appliance.run("python3", "-c", CHECKED)
        wait_for(
            "another reading",
            lambda before=before: visitor.get("/") and appliance.run("python3", "-c", CHECKED) != before,  # type: ignore[misc]
            timeout=120,
            every=1,
        )
    found = reports(appliance, pool, kind)
    assert len(found) == count, found
    return found[-1]


def spoil(appliance: Machine, pool: str, file: str, *disks: str, count: int = 8) -> None:
    """Overwrite the file's first blocks on these disks."""
    appliance.put("/tmp/spoil.py", SPOIL)
    appliance.run("zpool", "sync", pool)
    appliance.run("python3", "/tmp/spoil.py", pool, file, str(count), *(f"{disk}-part1" for disk in disks))


def press(visitor: Visitor, page: str, address: str, **fields: object) -> Answer:
    """Press a button of a page whose form goes elsewhere."""
    token = visitor.get(page).hidden()["csrfmiddlewaretoken"]
    return visitor.send(address, {"csrfmiddlewaretoken": token, **fields})
