"""Larder's figures agree with the same command run by hand in the same state."""

from __future__ import annotations

import json
import statistics

from deploy.image.machine import wait_for
from tests.system.measuring import complete, nothing_left, review
from tests.visitor import create_pool, disk_paths

RUNS = 5
MIB = 2**20
SIZE = 256
# Operations a second: so few that the disk is the limit, not the processors or other load of the host.
REQUESTS = 40
AGREES = 0.10
WORDS = [
    "fio",
    "--output-format=json",
    "--name=larder",
    "--thread",
    "--ioengine=psync",
    "--fallocate=none",
    "--randrepeat=0",
    "--refill_buffers",
    "--group_reporting",
    "--directory=/byhand",
    "--filename=data",
    "--rw=write",
    f"--bs={128 * 1024}",
    f"--size={SIZE * MIB}",
]
# Writes count once they are on the disks of the pool.
SYNC = "date +%s.%N; zpool sync byhand; date +%s.%N"


def back(appliance) -> bool:
    """Import the pool. Its partition disappears for a moment after the export."""
    appliance.run("udevadm", "settle")
    appliance.run("zpool", "import", "-d", "/dev/disk/by-id", "byhand", check=False)
    return "byhand" in appliance.run("zpool", "list", "-H", "-o", "name")


def test_figure_agrees_with_the_same_command_run_by_hand(visitor, appliance):
    (disk,) = disk_paths(appliance, 1)
    appliance.slow(1, REQUESTS)
    try:
        page = review(visitor, "ashift", [disk], size=f"{SIZE} MiB", repeats=RUNS)
        said = complete(visitor, page, timeout=1800)
        path = said.url.split("?")[0]
        told = json.loads(visitor.get(f"{path}export/json/").text)
        by_larder = told["cases"][0]["median"]
        nothing_left(appliance, disk)
        create_pool(
            appliance,
            "-o",
            "ashift=12",
            "-O",
            "compression=off",
            "-O",
            "atime=off",
            "-O",
            "primarycache=metadata",
            "byhand",
            disk,
        )
        rates = []
        for _ in range(RUNS):
            appliance.run("rm", "-f", "/byhand/data")
            appliance.run("zpool", "export", "byhand")
            wait_for("the pool to be back", lambda: back(appliance), timeout=120)
            wrote = json.loads(appliance.run(*WORDS, timeout=900))["jobs"][0]["write"]
            began, over = map(float, appliance.shell(SYNC, timeout=900).split())
            rates.append(wrote["io_bytes"] / (wrote["runtime"] / 1000 + over - began))
    finally:
        appliance.slow(1, 0)
    appliance.run("zpool", "destroy", "byhand")
    by_hand = statistics.median(rates)
    assert abs(by_larder - by_hand) <= AGREES * by_hand, (by_larder, by_hand, rates)
