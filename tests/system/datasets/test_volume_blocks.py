"""What a volume of each block size takes of a pool, and what small writes into it make the
disks write: as the page says."""

from __future__ import annotations

import json
from typing import Any

import pytest

from appliance.datasets.volumes import BLOCKS, KIB
from appliance.layout.block_sizes import SMALL_WRITE, BlockCost, list_costs
from appliance.zfs import status
from tests.visitor import create_pool, disk_paths

STATE = "new"
MIB = 2**20
SIZE, WRITES, ROUNDS = 128 * MIB, 256, 4
# Used is counted after the volume was filled, with the few hundred KiB that it has of its own. The counters of the
# disks also see labels and space maps, and the pointers are shared by more or fewer writes of a transaction group. What
# is said of small writes was measured on a mirror; on raidz the larger blocks take a little less in proportion.
ROOM_WITHIN, WRITTEN_WITHIN = 0.01, {"mirror": 0.15, "raidz1": 0.3, "raidz2": 0.3}
POOLS = {
    "mirror": (2, BLOCKS),
    "raidz1": (3, (4 * KIB, 8 * KIB, 16 * KIB, 128 * KIB)),
    "raidz2": (5, (4 * KIB, 16 * KIB, 128 * KIB)),
}

# Fills a volume of each block size, then writes 4 KiB at places that are the same for all sizes; one command
# for a pool, because each way into the machine is slow. What reaches the disks is read from their own
# counters, in sectors of 512 bytes.
MEASURE = r"""
import json, mmap, os, random, subprocess, sys, time
case = json.load(sys.stdin)
SLOT, SMALL = 2**17, 4096

def run(*words):
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(words)}: {done.stderr}")
    return done.stdout

def written():
    names = [os.path.basename(os.path.realpath(disk)) for disk in case["disks"]]
    return 512 * sum(int(open(f"/sys/block/{name}/stat").read().split()[6]) for name in names)

def destroy(name):
    for _look in range(100):  # udev looks at a device that was closed after a write
        run("udevadm", "settle")
        if not subprocess.run(["zfs", "destroy", name], stderr=subprocess.DEVNULL).returncode:
            return
        time.sleep(0.2)
    sys.exit(f"{name} stays in use")

def measure(block):
    run("zfs", "create", "-s", "-o", f"volblocksize={block}", "-V", str(case["size"]), "blocks/one")
    run("udevadm", "settle")
    device = os.open("/dev/zvol/blocks/one", os.O_RDWR | os.O_DIRECT)
    try:
        whole, small = mmap.mmap(-1, 2**20), mmap.mmap(-1, SMALL)
        for at in range(0, case["size"], 2**20):
            whole[:] = os.urandom(2**20)
            os.pwrite(device, whole, at)
        os.fsync(device)
        run("zpool", "sync", "blocks")
        used = int(run("zfs", "get", "-Hpo", "value", "used", "blocks/one"))
        dice, before = random.Random(5), written()
        for _round in range(case["rounds"]):
            for slot in dice.sample(range(case["size"] // SLOT), case["writes"]):
                small[:] = os.urandom(SMALL)
                os.pwrite(device, small, slot * SLOT + dice.randrange(SLOT // SMALL) * SMALL)
            os.fsync(device)
            run("zpool", "sync", "blocks")
        reached = written() - before
    finally:
        os.close(device)
    destroy("blocks/one")
    return {"block": block, "used": used, "written": reached}

shown = json.loads(run("zpool", "status", "-j", "--json-int", "blocks"))
print(json.dumps({"status": shown, "found": [measure(block) for block in case["blocks"]]}))
"""


@pytest.fixture(scope="module", params=POOLS)
def measured(request, appliance) -> dict[int, tuple[BlockCost, dict[str, Any]]]:
    """Of each block size what is said, and what was found."""
    width, blocks = POOLS[request.param]
    disks = disk_paths(appliance, *range(1, width + 1))
    case = {"disks": disks, "blocks": blocks, "size": SIZE, "writes": WRITES, "rounds": ROUNDS}
    create_pool(
        appliance,
        "-f",
        "-o",
        "ashift=12",
        "-O",
        "mountpoint=none",
        "-O",
        "compression=lz4",
        "blocks",
        request.param,
        *disks,
    )
    try:
        told = json.loads(appliance.run("python3", "-c", MEASURE, given=json.dumps(case), timeout=1500))
    finally:
        appliance.run("zpool", "destroy", "-f", "blocks")
    (pool,) = status.parse_pools(told["status"])
    costs = {cost.block: cost for cost in list_costs(pool)}
    for found in told["found"]:
        per_write = found["written"] / WRITES / ROUNDS / KIB
        print(
            f"{request.param}: {found['block'] // KIB} KiB: {found['used'] / SIZE:.4f} of room, "
            f"{per_write:.1f} KiB a write"
        )
    return {found["block"]: (costs[found["block"]], found) for found in told["found"]}


def test_volume_takes_the_room_that_the_page_says(measured):
    for block, (cost, found) in measured.items():
        assert found["used"] / SIZE == pytest.approx(cost.terabytes, rel=ROOM_WITHIN), block


def test_small_writes_reach_the_disks_as_often_as_the_page_says(measured, request):
    within = WRITTEN_WITHIN[request.node.callspec.params["measured"]]
    usual = measured[16 * KIB][1]["written"]
    for block, (_cost, found) in measured.items():
        assert found["written"] / usual == pytest.approx(SMALL_WRITE[block], rel=within), block


def test_larger_blocks_write_more_and_smaller_ones_save_little(measured):
    written = [measured[block][1]["written"] for block in BLOCKS if block in measured and block >= 16 * KIB]
    assert written == sorted(written)
    assert measured[4 * KIB][1]["written"] > 0.6 * measured[16 * KIB][1]["written"]
