"""What Larder measures is what the same command gives by hand in the same state."""

from __future__ import annotations

import json
import statistics

import pytest

from tests.system.measuring import complete, nothing_left, review
from tests.visitor import disk_paths

RUNS = 5
MIB = 2**20
AGREES = 0.10
WORDS = ["fio", "--output-format=json", "--name=larder", "--ioengine=psync", "--fallocate=none", "--randrepeat=0", "--refill_buffers", "--group_reporting", "--directory=/byhand", "--filename=data", "--rw=write", f"--bs={128 * 1024}", f"--size={512 * MIB}", "--end_fsync=1"]  # fmt: skip


@pytest.mark.soak
def test_a_figure_agrees_with_the_same_command_run_by_hand(visitor, appliance):
    (disk,) = disk_paths(appliance, 1)
    appliance.slow(1, 400)  # so that the disk decides, and not what else the machine beneath does
    try:
        page = review(visitor, "ashift", [disk], size="512 MiB", repeats=RUNS)
        said = complete(visitor, page, timeout=1800)
        path = said.url.split("?")[0]
        told = json.loads(visitor.get(f"{path}export/json/").text)
        by_larder = told["cases"][0]["median"]
        nothing_left(appliance, disk)
        appliance.run("zpool", "create", "-o", "ashift=12", "-O", "compression=off", "-O", "atime=off", "-O", "primarycache=metadata", "byhand", disk)  # fmt: skip
        rates = []
        for _ in range(RUNS):
            appliance.shell(
                "rm -f /byhand/data; zpool export byhand; udevadm settle; zpool import -d /dev/disk/by-id byhand"
            )
            rates.append(json.loads(appliance.run(*WORDS, timeout=900))["jobs"][0]["write"]["bw_bytes"])
    finally:
        appliance.slow(1, 0)
    appliance.run("zpool", "destroy", "byhand")
    by_hand = statistics.median(rates)
    assert abs(by_larder - by_hand) <= AGREES * by_hand, (by_larder, by_hand, rates)
