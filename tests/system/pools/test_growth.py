"""The ways to more room give what their page says, within one per cent of what ZFS says after each was really done."""

from __future__ import annotations

import json
import random
import re
from typing import Any

import pytest
from msgspec.structs import replace

from appliance.facts.box import Pool
from appliance.layout import growth
from appliance.pools.growth import list_ways
from appliance.pools.growth_way import GrowthFacts
from appliance.zfs import status
from appliance.zfs.vdev_tree import partition_bytes
from deploy.image.machine import GIB, MachineError, wait_for
from tests.system import care, shapes
from tests.system.shapes import LONG, by_id, chosen, done, page_of, press
from tests.system.sharing import key_of
from tests.visitor import Answer, blank, create_pool, disk_paths, run_zpool

TB = 10**12
WITHIN, SEED = 0.01, 11
LAYOUTS = {"stripe": 1, "mirror": 2, "raidz1": 3, "raidz2": 4, "raidz3": 5}

# Makes each pool of sparse files in turn, says how ZFS shows it, changes it, and says how much room it has then; one
# command, because each way into the machine is slow. Files of ``larger`` take the places of those that are smaller.
DO_EACH = r"""
import json, os, subprocess, sys, time
folder = "/run/growth"
os.makedirs(folder, exist_ok=True)
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1500m", "tmpfs", folder], check=True)

def zpool(*words):
    done = subprocess.run(["zpool", *words], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"zpool {' '.join(words)}: {done.stderr}")
    return done.stdout

def make(name, size):
    path = f"{folder}/{name}"
    with open(path, "wb") as file:
        file.truncate(size)
    return path

def room(pool="growth"):
    listed = subprocess.run(["zfs", "list", "-Hp", "-o", "used,available", pool], check=True, capture_output=True, text=True).stdout
    return sum(map(int, listed.split()))

def settled(before):
    # ZFS counts new space some seconds after it says that it is done: another number, twice, is the end of it.
    last = -1
    for _again in range(60):
        zpool("sync", "growth")
        now = room()
        if now == last != before:
            return now
        last = now
        time.sleep(2)
    sys.exit("the room of the pool does not change")

found = []
try:
    for case in json.load(sys.stdin):
        ashift = ["-o", f"ashift={case['ashift']}"]
        words, files = [], []
        for number, sizes in enumerate(case["groups"]):
            paths = [make(f"{number}-{at}", size) for at, size in enumerate(sizes)]
            files += zip(paths, sizes)
            words += [*([case["layout"]] if case["layout"] != "stripe" else []), *paths]
        zpool("create", "-f", "-o", "cachefile=none", *ashift, "-O", "mountpoint=none", "growth", *words)
        shown = json.loads(zpool("status", "-j", "--json-int", "growth"))
        before = now = room()
        if case["way"] == "expand":
            for step in range(case["times"]):
                zpool("attach", *ashift, "growth", f"{case['layout']}-0", make(f"more-{step}", case["part"]))
                zpool("wait", "-t", "raidz_expand", "growth")
                now = settled(now)
        elif case["way"] == "group":
            new = [make(f"new-{at}", case["part"]) for at in range(case["width"])]
            zpool("add", "-f", *ashift, "growth", *([case["layout"]] if case["layout"] != "stripe" else []), *new)
        elif case["way"] == "pool":
            new = [make(f"second-{at}", size) for at, size in enumerate(case["parts"])]
            zpool("create", "-f", "-o", "cachefile=none", *ashift, "-O", "mountpoint=none", "second", *([case["layout"]] if case["layout"] != "stripe" else []), *new)
            now = room("second")
            zpool("destroy", "second")
        else:
            for at, (path, size) in enumerate(files):
                if size < case["part"]:
                    zpool("replace", "-w", "growth", path, larger := make(f"larger-{at}", case["part"]))
                    files[at] = (larger, case["part"])
            zpool("online", "-e", "growth", *(path for path, _size in files))
        if case["way"] != "pool" and now == before:
            now = settled(before)
        found.append({"status": shown, "before": before, "after": now})
        zpool("destroy", "growth")
        for name in os.listdir(folder):
            os.unlink(f"{folder}/{name}")
finally:
    for pool in ("second", "growth"):
        subprocess.run(["zpool", "destroy", "-f", pool], stderr=subprocess.DEVNULL)
    subprocess.run(["umount", folder])
print(json.dumps(found))
"""


def random_cases() -> list[dict[str, Any]]:
    """Pools and a change of each; the same ones every time. Every layout comes up with every way that it can take.
    A new file is as large as the partition of a disk of that size."""
    dice = random.Random(SEED)
    cases: list[dict[str, Any]] = []
    for layout, least in LAYOUTS.items():
        for way in ("expand", "group", "replace") if layout.startswith("raidz") else ("group", "replace"):
            for ashift in (9, 12) if way != "replace" else (12,):
                width = least + (dice.randint(0, 3) if layout.startswith("raidz") else 0)
                count = dice.randint(1, 2) if way == "group" or layout == "mirror" else 1
                groups = [[dice.randint(1 * TB, 6 * TB) for _disk in range(width)] for _group in range(count)]
                size = 12 * TB if way == "replace" else dice.randint(6 * TB, 12 * TB)
                cases.append(
                    {
                        "layout": layout,
                        "ashift": ashift,
                        "groups": groups,
                        "way": way,
                        "size": size,
                        "part": partition_bytes(size),
                        "width": width,
                        "times": dice.randint(1, 2),
                    }
                )
    return cases


def second_pools() -> list[dict[str, Any]]:
    """A pool of each layout, and the disks of a second one: unequal ones that are in the box, or equal ones to be
    bought. Each file of it is as large as the partition of its disk."""
    dice = random.Random(SEED)
    cases: list[dict[str, Any]] = []
    for layout, least in LAYOUTS.items():
        for in_box in (True, False):
            width = least + (dice.randint(0, 2) if layout.startswith("raidz") else 0)
            size = dice.randint(6 * TB, 12 * TB)
            free = [dice.randint(2 * TB, 12 * TB) for _disk in range(width)] if in_box else []
            parts = [partition_bytes(disk) for disk in free or [size] * width]
            groups = [[dice.randint(1 * TB, 6 * TB) for _disk in range(width)]]
            cases.append(
                {
                    "layout": layout,
                    "ashift": 12,
                    "groups": groups,
                    "way": "pool",
                    "size": size,
                    "free": free,
                    "parts": parts,
                }
            )
    return cases


def promised(case: dict[str, Any], pool: Pool, total: int) -> int:
    """The bytes that the page names for the way of the case: those of a second pool alone, else all of the pool."""
    facts = GrowthFacts(pool, used=0, total=total, free=tuple(case.get("free", ())), new_disk=case["size"])
    (way,) = (one for one in list_ways(facts) if one.key == case["way"])
    assert way.is_possible, way.reason
    assert way.total == total + way.gain
    if case["way"] == "pool":
        assert len(way.bought) == (0 if case["free"] else len(case["parts"]))
        return way.gain
    if case["way"] == "expand":
        # The page names one disk at a time; each further one widens the group that the last has left.
        (group,) = growth.read_groups(pool)
        wide = growth.widen_group(group)
        for _step in range(case["times"] - 1):
            before, wide = wide, growth.widen_group(wide)
            total += growth.pool_bytes([wide]) - growth.pool_bytes([before])
    return total + way.gain


def with_ashift(pool: Pool, ashift: int) -> Pool:
    return replace(pool, vdevs=tuple(replace(vdev, ashift=ashift) for vdev in pool.vdevs))


def test_every_way_gives_what_is_calculated_within_one_per_cent(appliance):
    cases = [*random_cases(), *second_pools()]
    assert {case["layout"] for case in cases} == set(LAYOUTS)
    assert {case["way"] for case in cases} == {"expand", "group", "replace", "pool"}
    appliance.run("systemctl", "stop", "zfs-zed", "larder-worker")
    try:
        given = json.loads(appliance.run("python3", "-c", DO_EACH, given=json.dumps(cases), timeout=3000))
    finally:
        appliance.run("systemctl", "start", "zfs-zed", "larder-worker")
    assert len(given) == len(cases)
    wrong = []
    for case, told in zip(cases, given, strict=True):
        pool = with_ashift(next(status.parse_pools(told["status"])), case["ashift"])
        groups = growth.read_groups(pool)
        now = growth.pool_bytes(groups)
        said = promised(case, pool, told["before"])
        for what, calculated, measured in (("before", now, told["before"]), ("after", said, told["after"])):
            if calculated != pytest.approx(measured, rel=WITHIN):
                wrong.append(f"{case} {what}: calculated {calculated}, given {measured}")
    assert not wrong, "\n".join(wrong)


# --- through the pages, on disks -----------------------------------------------------------------------------------
def room(appliance, pool: str) -> int:
    return sum(int(value) for value in appliance.run("zfs", "list", "-Hp", "-o", "used,available", pool).split())


def gain_of(visitor, path: str, key: str, **query: object) -> int:
    """The exact bytes that the page names for a way."""
    page = visitor.get(f"{path}growth/" + (f"?size={query['size']}" if query else ""))
    found = bytes_at(page, f"gain-{key}")
    assert found is not None, page.words
    return found


def bytes_at(page: Answer, key: str) -> int | None:
    """The exact bytes of a figure of the page; None where it does not have it."""
    found = re.search(rf'id="{key}" title="([0-9,]+) bytes"', page.text)
    return int(found[1].replace(",", "")) if found else None


def available(appliance, pool: str) -> int:
    return int(appliance.run("zfs", "list", "-Hp", "-o", "available", pool))


def wait_for_room(appliance, pool: str, wanted: int) -> None:
    """Within one per cent; ZFS counts new space some seconds after it says that it is done."""
    wait_for(
        f"{wanted} bytes of room in {pool}",
        lambda: room(appliance, pool) == pytest.approx(wanted, rel=WITHIN),
        timeout=120,
    )


def test_the_page_of_a_raidz_says_what_an_expansion_gives(appliance, visitor):
    paths = disk_paths(appliance, 1, 2, 3, 4)
    blank(appliance, *paths)
    create_pool(appliance, "-o", "ashift=12", "tank", "raidz1", *paths[:3])
    appliance.shell("dd if=/dev/urandom of=/tank/photo bs=1M count=96 status=none; zpool sync tank")
    path = page_of(appliance, "tank")
    visitor.wait_until(path, "raidz1 of 3", timeout=LONG)
    before = room(appliance, "tank")
    gain = gain_of(visitor, path, "expand")
    assert gain > before // 4
    address, _question, query = shapes.link(visitor.get(f"{path}growth/"), "add/expand/").partition("?")
    said = shapes.change(visitor, visitor.get(f"{chosen(address, paths[3])}&{query}"))
    assert said.startswith("Done."), said
    appliance.run("zpool", "wait", "-t", "raidz_expand", "tank", timeout=600)
    wait_for_room(appliance, "tank", before + gain)
    # A block of 128 KiB takes 48 sectors on three disks and 44 on four: rewriting gives back a twelfth.
    used = int(appliance.run("zfs", "get", "-Hp", "-o", "value", "used", "tank"))
    given_back = visitor.watch(f"{path}growth/", lambda page: bytes_at(page, "old-blocks"), timeout=LONG)
    assert given_back == pytest.approx(used / 12, rel=0.02)
    appliance.run("zfs", "rewrite", "-r", "/tank", timeout=600)
    appliance.run("zpool", "sync", "tank")
    # What is no file is not rewritten.
    wait_for(
        "a twelfth given back",
        lambda: (
            used - int(appliance.run("zfs", "get", "-Hp", "-o", "value", "used", "tank"))
            == pytest.approx(given_back, rel=0.1)
        ),
        timeout=120,
    )
    appliance.run("zpool", "destroy", "tank")


# Old blocks in snapshots of every kind. Without compression zeros are stored as any other bytes. A deleted file is gone
# some transaction groups later, so each snapshot waits for that.
FILL = r"""
fill() { dd if=/dev/zero of=$1 bs=1M count=$2 status=none; }
gone() { until [ "$(zfs get -Hpo value referenced $1)" -lt $(($2 * 1048576)) ]; do zpool sync tank; done; }
mark() { printf '{"guid":%s,"raw":false}' $1; }

# A volume with all of its space reserved, which its snapshot makes ZFS reserve once more.
zfs create -V 48M tank/disk
until [ -b /dev/zvol/tank/disk ]; do udevadm settle; done
dd if=/dev/zero of=/dev/zvol/tank/disk bs=1M count=32 oflag=direct conv=fsync status=none
zfs snapshot tank/disk@one

# A copy of a folder that is not on this box, with a deleted file in its snapshot.
zfs create -o canmount=off -o mountpoint=none -o larder:copy-of="$(mark 0)" tank/backups
zfs create -o mountpoint=/old -o larder:copy-of="$(mark 77)" tank/backups/old
fill /old/here 24; fill /old/deleted 24
zfs snapshot tank/backups/old@one
rm /old/deleted; gone tank/backups/old 28
zfs unmount tank/backups/old

# Of a file that is in one snapshot alone, of two that several share, and of one that is still there.
zfs create tank/photos
fill /tank/photos/here 8; fill /tank/photos/first 48; fill /tank/photos/second 48
zfs snapshot tank/photos@one
rm /tank/photos/first; gone tank/photos 60
zfs snapshot tank/photos@two
fill /tank/photos/third 32
zfs snapshot tank/photos@three
rm /tank/photos/second; gone tank/photos 44
zfs snapshot tank/photos@four
rm /tank/photos/third; gone tank/photos 12

# A protected snapshot shares a deleted file with the one before it.
zfs create tank/tax
fill /tank/tax/shared 32; fill /tank/tax/alone 24
zfs snapshot tank/tax@before
rm /tank/tax/alone; gone tank/tax 36
zfs snapshot tank/tax@kept
zfs hold safe tank/tax@kept
rm /tank/tax/shared; gone tank/tax 4
zpool sync tank
"""
MIB = 2**20


def test_cleaning_up_frees_what_its_page_says(appliance, visitor):
    (disk,) = disk_paths(appliance, 1)
    blank(appliance, disk)
    create_pool(appliance, "-o", "ashift=12", "-O", "compression=off", "tank", disk)
    appliance.shell(FILL, timeout=600)
    path = page_of(appliance, "tank")
    folders = {name: key_of(appliance, name) for name in ("tank/photos", "tank/tax", "tank/disk", "tank/backups/old")}

    def held(dataset: str) -> int:
        return int(appliance.run("zfs", "get", "-Hp", "-o", "value", "usedbysnapshots", dataset))

    def known(page: Answer) -> bool:
        return all(f'"{held(name):,} bytes"' in page.text for name in folders if name != "tank/disk")

    visitor.watch("/snapshots/space/", known, timeout=LONG)
    page = visitor.get(f"{path}growth/")
    gain = gain_of(visitor, path, "clean")
    # Photos 128 and tax 24 of its 56; 32 that are reserved for the volume; all 48 of the copy.
    assert gain == pytest.approx((128 + 24 + 32 + 48) * MIB, rel=0.05)
    assert "freed at most" in page.words
    assert "One snapshot is protected or has a clone" in page.words
    assert "reserved for tank/disk only because of" in page.words
    # What each holds alone is much less, and what the folder's snapshots hold together is more than can be freed.
    alone = appliance.run("zfs", "list", "-Hp", "-r", "-t", "snapshot", "-o", "used", "tank").split()
    assert sum(map(int, alone)) < 0.6 * gain
    assert held("tank/tax") > 52 * MIB
    before = available(appliance, "tank")

    assert "Show snapshots by space" in page.words
    assert "Show the copies" in page.words
    for name in ("tank/photos", "tank/tax", "tank/disk"):
        listed = f"/snapshots/of/{folders[name]}/"
        chosen_ones = re.findall(r'name="snapshot" value="(\d+)"', visitor.get(listed).text)
        assert len(chosen_ones) == {"tank/photos": 4, "tank/tax": 2, "tank/disk": 1}[name]
        review = care.press(visitor, listed, "/snapshots/destroy/", snapshot=chosen_ones)
        said = shapes.change(visitor, review)
        assert said.startswith("Done."), said
    copies = visitor.get(shapes.link(page, "/backups/"))
    assert shapes.link(copies, f"/folders/{folders['tank/backups/old']}/")
    destroy = f"/folders/{folders['tank/backups/old']}/destroy/"
    visitor.wait_until(destroy, "Snapshots 1 Space freed", timeout=LONG)
    said = shapes.change(visitor, visitor.get(f"{destroy}?review=1"))
    assert said.startswith("Done."), said

    def is_freed() -> bool:
        """Within one per cent of the figure; ZFS frees in the background."""
        return available(appliance, "tank") - before == pytest.approx(gain, rel=WITHIN)

    try:
        wait_for(f"{gain} bytes more to be available", is_freed, timeout=120)
    except MachineError as error:
        raise AssertionError(f"said {gain}, freed {available(appliance, 'tank') - before}") from error
    wait_for(
        "nothing to be freed any more",
        lambda: appliance.run("zpool", "get", "-Hp", "-o", "value", "freeing", "tank").strip() == "0",
        timeout=120,
    )
    assert is_freed()
    snapshots = appliance.run("zfs", "list", "-H", "-r", "-t", "snapshot", "-o", "name", "tank").split()
    assert snapshots == ["tank/tax@kept"]
    appliance.run("zfs", "release", "safe", "tank/tax@kept")
    appliance.run("zpool", "destroy", "tank")


def test_a_plan_is_followed_until_both_disks_of_a_mirror_are_larger(appliance, visitor):
    for name, size in (("least1", 8), ("least2", 8), ("most1", 32), ("most2", 32)):
        appliance.insert(name, size * GIB, serial=f"LARDER-{name.upper()}")
    visitor.wait_until("/disks/", "LARDER-LEAST1", "LARDER-MOST2", timeout=120)
    small1, small2, large1, large2 = (
        by_id(appliance, f"LARDER-{name}") for name in ("LEAST1", "LEAST2", "MOST1", "MOST2")
    )
    create_pool(appliance, "-o", "ashift=12", "pair", "mirror", small1, small2)
    path = page_of(appliance, "pair")
    visitor.wait_until(path, "mirror of 2", timeout=LONG)
    before = room(appliance, "pair")
    gain = gain_of(visitor, path, "replace", size=32 * GIB)
    page = visitor.get(f"{path}growth/?size={32 * GIB}")
    begun = press(visitor, page, f"{path}growth/plan/", size=32 * GIB)
    assert "0 of 2 disks are replaced" in begun.words
    visitor.wait_until(path, "Next to be replaced by a larger disk", "LARDER-LEAST1", timeout=60)
    run_zpool(appliance, "replace", "-w", "pair", small1, large1)
    visitor.wait_until(path, "1 of 2 disks are replaced", "LARDER-LEAST2", timeout=120)
    run_zpool(appliance, "replace", "-w", "pair", small2, large2)
    visitor.wait_until(f"{path}growth/", "2 of 2 disks are replaced", "Use them whole", timeout=120)
    done(visitor, shapes.link(visitor.get(f"{path}growth/"), "/grow/"))
    wait_for_room(appliance, "pair", before + gain)
    # The worker closes the plan by what it reads, without anybody pressing anything.
    visitor.wait_until(f"{path}growth/", "More room in pair", without=("The plan",), timeout=180)
    visitor.wait_until(path, "pair is healthy", without=("Next to be replaced",), timeout=60)
    appliance.run("zpool", "destroy", "pair")
