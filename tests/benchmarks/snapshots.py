"""Snapshots on real ZFS: Larder's own calls against the bare library and the command, in one run in the appliance."""

from __future__ import annotations

import json

from deploy.image.machine import Machine

SCRIPT = """
import json, subprocess, time
import libzfs_core as bare
from appliance.zfs import core, snapshots

def run(*argv):
    subprocess.run(argv, check=True, capture_output=True)

def took(act):
    start = time.perf_counter()
    act()
    return time.perf_counter() - start

out = {}
run("truncate", "-s", "2G", "/var/tmp/bench.img")
run("zpool", "create", "-m", "/bench", "bench", "/var/tmp/bench.img")
try:
    names = [f"bench/d{n:03d}" for n in range(200)]
    for name in names:
        bare.lzc_create(name.encode())
    wanted = lambda short: [f"{name}@{short}" for name in names]
    core.snapshot(wanted("warm"), {})
    out["bare snapshot"] = min(took(lambda: bare.lzc_snapshot([n.encode() for n in wanted(f"b{i}")])) for i in range(3))
    out["our snapshot"] = min(took(lambda: core.snapshot_most(wanted(f"o{i}"), {"larder:run": "x"})) for i in range(3))
    for i in range(3):
        core.snapshot(wanted(f"more{i}"), {})
    every = lambda: list(snapshots.read(names))
    out["listed"] = len(every())
    out["full listing"] = min(took(every) for _ in range(3))
    run("zfs", "snapshot", "bench/d007@new")
    out["changed dataset"] = min(took(lambda: list(snapshots.read(["bench/d007"]))) for _ in range(3))
    bare.lzc_create(b"bench/many")

    def fill(prefix):
        found = [f"bench/many@{prefix}{n}" for n in range(2000)]
        for name in found:
            bare.lzc_snapshot([name.encode()])
        return found

    found = fill("c")
    out["each by command"] = took(lambda: [run("zfs", "destroy", name) for name in found[:40]]) / 40 * 2000
    core.destroy_snapshots(found)
    found = fill("b")

    def by_library():
        for start in range(0, 2000, core.BATCH):
            bare.lzc_destroy_snaps([name.encode() for name in found[start : start + core.BATCH]], False)

    out["bare destroy"] = took(by_library)
    found = fill("o")
    out["our destroy"] = took(lambda: core.destroy_snapshots(found))
finally:
    run("zpool", "destroy", "bench")
    run("rm", "/var/tmp/bench.img")
print(json.dumps(out))
"""


def figures(appliance: Machine) -> list[tuple[str, float, float]]:
    """Name, ratio and bound of each promise of the design."""
    said = appliance.run("/opt/larder/venv/bin/python", "-c", SCRIPT, timeout=3000)
    out = json.loads(said.splitlines()[-1])
    return [
        ("200 folders by a policy against bare lzc_snapshot", out["our snapshot"] / out["bare snapshot"], 2),
        (f"refresh after one new snapshot against listing {out['listed']}", out["changed dataset"] / out["full listing"], 0.05),
        ("destroying 2,000 against one command each", out["our destroy"] / out["each by command"], 1 / 20),
        ("destroying 2,000 against bare lzc_destroy_snaps", out["our destroy"] / out["bare destroy"], 1.5),
    ]  # fmt: skip
