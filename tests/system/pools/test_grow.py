"""More space: a raidz is expanded, a group is added, larger disks are used whole; and parts are taken out again."""

from __future__ import annotations

import re

import pytest

from deploy.image.machine import GIB, wait_for
from tests.system import shapes
from tests.system.shapes import LONG, by_id, chosen, done, guid_of, names, page_of, status
from tests.visitor import blank, create_pool, disk_paths, run_zpool


def available(appliance, pool: str) -> int:
    return sum(int(value) for value in appliance.run("zfs", "list", "-Hp", "-o", "used,available", pool).split())


@pytest.fixture(scope="module")
def tank(appliance, visitor) -> str:
    """A raidz1 of bays 1 to 3 with a file; the address of its page."""
    create_pool(appliance, "-o", "ashift=12", "tank", "raidz1", *disk_paths(appliance, 1, 2, 3))
    appliance.shell(
        "dd if=/dev/urandom of=/tank/photo bs=1M count=64 status=none; sha256sum /tank/photo > /root/sum; "
        "zpool sync tank"
    )
    path = page_of(appliance, "tank")
    visitor.wait_until(path, "raidz1 of 3", timeout=LONG)
    return path


UNITS = {"GB": 10**9, "TB": 10**12}


def test_a_raidz_is_expanded_and_yields_what_was_said(appliance, visitor, tank):
    before = available(appliance, "tank")
    group = guid_of(appliance, "tank", "raidz1-0")
    review = visitor.get(chosen(f"{tank}add/expand/", disk_paths(appliance, 4)[0], vdev=str(group)))
    now, after = (
        float(found[1]) * UNITS[found[2]]
        for found in (
            re.search(rf"{words} about ([0-9.]+) ([GT]B)", review.words)
            for words in ("Space for files now", "Afterwards")
        )
        if found
    )
    assert abs(now - before) < before * 0.02
    said = shapes.change(visitor, review)
    assert said.startswith("Done."), said
    appliance.run("zpool", "wait", "-t", "raidz_expand", "tank", timeout=600)
    # ZFS counts the new space some seconds after it says that it is done.
    wait_for(
        f"about {after:.0f} bytes of space",
        lambda: abs(after - available(appliance, "tank")) < after * 0.02,
        timeout=120,
    )
    appliance.run("sha256sum", "-c", "/root/sum")
    visitor.wait_until(tank, "raidz1 of 4", timeout=120)


def test_a_group_that_protects_less_needs_agreement(appliance, visitor, tank):
    disk = disk_paths(appliance, 5)[0]
    refused = visitor.get(chosen(f"{tank}add/group/", disk, layout="stripe"))
    assert refused.status == 400
    assert "as safe as its weakest group" in refused.words
    done(visitor, chosen(f"{tank}add/group/", disk, layout="stripe", less_protection="on"))
    visitor.wait_until(tank, "tank is healthy", "One failed disk would lose everything", timeout=120)


def test_a_log_and_a_cache_come_and_go(appliance, visitor, tank):
    serials = ("LARDER-LOG-1", "LARDER-LOG-2", "LARDER-CACHE-3")
    for number, serial in enumerate(serials, 1):
        appliance.insert(f"fast{number}", 16 * GIB, serial=serial)
    visitor.wait_until("/disks/", *serials, timeout=120)
    paths = [by_id(appliance, serial) for serial in serials]
    done(visitor, chosen(f"{tank}add/log/", *paths[:2]))
    done(visitor, chosen(f"{tank}add/cache/", paths[2]))
    found = status(appliance, "tank")
    assert [node["name"].split("-")[0] for node in found["logs"].values()] == ["mirror"]
    assert len(found["l2cache"]) == 1
    visitor.wait_until(tank, "log · of 2", "cache · ", timeout=120)
    for node in (*found["logs"].values(), *found["l2cache"].values()):
        done(visitor, f"{tank}vdev/{node['guid']}/remove/")
    left = status(appliance, "tank")
    assert not left.get("logs")
    assert not left.get("l2cache")


def test_no_group_leaves_a_pool_with_a_raidz(appliance, visitor, tank):
    refused = visitor.get(f"{tank}vdev/{guid_of(appliance, 'tank', appliance.disks[4].serial)}/remove/")
    assert refused.status == 409
    assert "has a raidz" in refused.words


def test_a_mirror_is_emptied_and_leaves(appliance, visitor):
    appliance.run("zpool", "destroy", "tank", check=False)
    paths = disk_paths(appliance, 1, 2, 3, 4)
    blank(appliance, *paths)
    create_pool(appliance, "-f", "-o", "ashift=12", "pair", "mirror", *paths[:2], "mirror", *paths[2:])
    appliance.shell(
        "dd if=/dev/urandom of=/pair/photo bs=1M count=64 status=none; sha256sum /pair/photo > /root/sum; "
        "zpool sync pair"
    )
    path = page_of(appliance, "pair")
    visitor.wait_until(path, "2 × mirror of 2", timeout=LONG)
    done(visitor, f"{path}vdev/{guid_of(appliance, 'pair', 'mirror-1')}/remove/")
    appliance.run("zpool", "wait", "-t", "remove", "pair", timeout=300)
    visitor.wait_until(path, "mirror of 2", without=("2 × mirror", "being removed", "indirect"), timeout=120)
    assert appliance.disks[3].serial not in names(appliance, "pair")
    appliance.run("sha256sum", "-c", "/root/sum")


def test_larger_disks_are_used_whole_once_both_are_larger(appliance, visitor):
    for name, size in (("little1", 8), ("little2", 8), ("large1", 64), ("large2", 64)):
        appliance.insert(name, size * GIB, serial=f"LARDER-{name.upper()}")
    visitor.wait_until("/disks/", "LARDER-LITTLE1", "LARDER-LARGE2", timeout=120)
    little1, little2, large1, large2 = (
        by_id(appliance, f"LARDER-{name}") for name in ("LITTLE1", "LITTLE2", "LARGE1", "LARGE2")
    )
    create_pool(appliance, "-o", "ashift=12", "grown", "mirror", little1, little2)
    path = page_of(appliance, "grown")
    run_zpool(appliance, "replace", "-w", "grown", little1, large1)
    visitor.wait_until(path, "grown is healthy", without=("are larger now",), timeout=LONG)
    before = available(appliance, "grown")
    run_zpool(appliance, "replace", "-w", "grown", little2, large2)
    visitor.wait_until(path, "are larger now", timeout=120)
    done(visitor, f"{path}vdev/{guid_of(appliance, 'grown', 'mirror-0')}/grow/")
    assert available(appliance, "grown") > 6 * before
    visitor.wait_until(path, "grown is healthy", without=("are larger now",), timeout=120)
    assert shapes.status(appliance, "grown")["state"] == "ONLINE"
