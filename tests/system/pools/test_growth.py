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
from appliance.layout.growth import DataGroup
from appliance.zfs import status
from deploy.image.machine import GIB, wait_for
from tests.system import shapes
from tests.system.shapes import LONG, by_id, chosen, done, page_of, press
from tests.visitor import blank, create_pool, disk_paths, run_zpool

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

def room():
    listed = subprocess.run(["zfs", "list", "-Hp", "-o", "used,available", "growth"], check=True, capture_output=True, text=True).stdout
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
                zpool("attach", *ashift, "growth", f"{case['layout']}-0", make(f"more-{step}", case["size"]))
                zpool("wait", "-t", "raidz_expand", "growth")
                now = settled(now)
        elif case["way"] == "group":
            new = [make(f"new-{at}", case["size"]) for at in range(case["width"])]
            zpool("add", "-f", *ashift, "growth", *([case["layout"]] if case["layout"] != "stripe" else []), *new)
        else:
            for at, (path, size) in enumerate(files):
                if size < case["size"]:
                    zpool("replace", "-w", "growth", path, larger := make(f"larger-{at}", case["size"]))
                    files[at] = (larger, case["size"])
            zpool("online", "-e", "growth", *(path for path, _size in files))
        if now == before:
            now = settled(before)
        found.append({"status": shown, "before": before, "after": now})
        zpool("destroy", "growth")
        for name in os.listdir(folder):
            os.unlink(f"{folder}/{name}")
finally:
    subprocess.run(["zpool", "destroy", "-f", "growth"], stderr=subprocess.DEVNULL)
    subprocess.run(["umount", folder])
print(json.dumps(found))
"""


def random_cases() -> list[dict[str, Any]]:
    """Pools and a change of each; the same ones every time. Every layout comes up with every way that it can take."""
    dice = random.Random(SEED)
    cases: list[dict[str, Any]] = []
    for layout, least in LAYOUTS.items():
        for way in ("expand", "group", "replace") if layout.startswith("raidz") else ("group", "replace"):
            for ashift in (9, 12) if way != "replace" else (12,):
                width = least + (dice.randint(0, 3) if layout.startswith("raidz") else 0)
                count = dice.randint(1, 2) if way == "group" or layout == "mirror" else 1
                groups = [[dice.randint(1 * TB, 6 * TB) for _disk in range(width)] for _group in range(count)]
                size = 12 * TB if way == "replace" else dice.randint(6 * TB, 12 * TB)
                cases.append({"layout": layout, "ashift": ashift, "groups": groups, "way": way, "size": size, "width": width, "times": dice.randint(1, 2)})  # fmt: skip
    return cases


def changed(case: dict[str, Any], groups: tuple[DataGroup, ...]) -> list[DataGroup]:
    """The groups after the way of the case, as the appliance calculates them. A file has no partition table."""
    if case["way"] == "expand":
        first = groups[0]
        for _step in range(case["times"]):
            first = growth.widen_group(first)
        return [first]
    if case["way"] == "group":
        return [*groups, growth.new_group(case["layout"], [case["size"]] * case["width"], case["ashift"])]
    return [growth.enlarge_group(group, case["size"]) for group in groups]


def with_ashift(pool: Pool, ashift: int) -> Pool:
    return replace(pool, vdevs=tuple(replace(vdev, ashift=ashift) for vdev in pool.vdevs))


def test_every_way_gives_what_is_calculated_within_one_per_cent(appliance):
    cases = random_cases()
    assert {case["layout"] for case in cases} == set(LAYOUTS)
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
        now, then = growth.pool_bytes(groups), growth.pool_bytes(changed(case, groups))
        said = told["before"] + then - now  # as the page adds it to what is there
        for what, calculated, measured in (("before", now, told["before"]), ("after", said, told["after"])):
            if calculated != pytest.approx(measured, rel=WITHIN):
                wrong.append(f"{case} {what}: calculated {calculated}, given {measured}")
    assert not wrong, "\n".join(wrong)


# --- through the pages, on disks -----------------------------------------------------------------------------------
def room(appliance, pool: str) -> int:
    return sum(int(value) for value in appliance.run("zfs", "list", "-Hp", "-o", "used,available", pool).split())


def gain_of(visitor, path: str, key: str, **query: object) -> int:
    """The exact bytes that the page names for a way."""
    address = f"{path}growth/" + (f"?size={query['size']}" if query else "")
    found = re.search(rf'id="gain-{key}" title="([0-9,]+) bytes"', visitor.get(address).text)
    assert found, visitor.get(address).words
    return int(found[1].replace(",", ""))


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
    appliance.run("zfs", "rewrite", "-r", "/tank", timeout=600)
    appliance.run("zpool", "sync", "tank")
    wait_for(
        "a twelfth given back",
        lambda: int(appliance.run("zfs", "get", "-Hp", "-o", "value", "used", "tank")) == pytest.approx(used * 44 / 48, rel=0.02),
        timeout=120,
    )  # fmt: skip
    appliance.run("zpool", "destroy", "tank")


def test_a_plan_is_followed_until_both_disks_of_a_mirror_are_larger(appliance, visitor):
    for name, size in (("least1", 8), ("least2", 8), ("most1", 32), ("most2", 32)):
        appliance.insert(name, size * GIB, serial=f"LARDER-{name.upper()}")
    visitor.wait_until("/disks/", "LARDER-LEAST1", "LARDER-MOST2", timeout=120)
    small1, small2, large1, large2 = (by_id(appliance, f"LARDER-{name}") for name in ("LEAST1", "LEAST2", "MOST1", "MOST2"))  # fmt: skip
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
