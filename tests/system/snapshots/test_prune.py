"""Destroying many snapshots at once on real ZFS: held, cloned and missing ones are named, also
after a kill or power cut."""

from __future__ import annotations

import re

import pytest

from appliance.formatting import size_text
from deploy.image.machine import Machine
from tests.system import crash
from tests.system.policy import known
from tests.system.sharing import key_of
from tests.visitor import Answer, Visitor, create_pool, disk_paths

COUNT = 520  # more than two batches of libzfs.BATCH


@pytest.fixture(scope="module")
def many(appliance: Machine, visitor: Visitor) -> str:
    """The key of tank/many."""
    (disk,) = disk_paths(appliance, 1)
    create_pool(appliance, "-o", "ashift=12", "tank", disk)
    appliance.run("zfs", "create", "tank/many")
    key = key_of(appliance, "tank/many")
    visitor.wait_until(f"/folders/{key}/", "tank/many", timeout=60)
    return key


def take(appliance: Machine, prefix: str) -> None:
    code = (
        "import sys, libzfs_core as z; [z.lzc_snapshot([f'tank/many@{sys.argv[1]}{n:04d}'.encode()]) for n in "
        "range(int(sys.argv[2]))]"
    )
    # Each waits for its own transaction group, which is slow under emulation.
    appliance.run("/opt/larder/venv/bin/python", "-c", code, prefix, str(COUNT), timeout=1200)


def left(appliance: Machine) -> list[str]:
    said = appliance.run("zfs", "list", "-H", "-t", "snapshot", "-d", "1", "-o", "name", "tank/many")
    return [line.partition("@")[2] for line in said.splitlines()]


def review(visitor: Visitor, key: str, prefix: str) -> Answer:
    """The review of destroying all snapshots with this prefix, once the pages know all of them."""
    visitor.wait_until(f"/snapshots/of/{key}/?begins={prefix}{COUNT - 1:04d}", f"{prefix}{COUNT - 1:04d}", timeout=120)
    token = visitor.get(f"/snapshots/of/{key}/").hidden()["csrfmiddlewaretoken"]
    return visitor.send("/snapshots/destroy/", {"csrfmiddlewaretoken": token, "of": key, "every": "", "begins": prefix})


def test_destroying_hundreds_names_those_that_stay(visitor, appliance, many):
    take(appliance, "a")
    appliance.run("zfs", "hold", "backup", "tank/many@a0300")
    appliance.run("zfs", "clone", "tank/many@a0400", "tank/copy")
    appliance.run("zfs", "snapshot", "tank/many@other")
    known(visitor, appliance, "tank/many@other")
    page = review(visitor, many, "a")
    assert "It stays: tank/many@a0300: it is protected" in page.words
    assert "It stays: tank/many@a0400: the folder tank/copy is a clone of it" in page.words
    # One is held and one destroyed after the review was shown.
    appliance.run("zfs", "hold", "backup", "tank/many@a0500")
    appliance.run("zfs", "destroy", "tank/many@a0450")
    job = visitor.confirm(page, typed="tank/many")
    said = visitor.ended(job, timeout=300)
    assert said.startswith("Done."), said
    assert sorted(left(appliance)) == ["a0300", "a0400", "a0500", "other"]
    log = visitor.get(f"/jobs/{job}/").words
    for offender in (
        "a0300: it is protected",
        "a0400: the folder tank/copy is a clone of it",
        "a0500: it is protected",
    ):
        assert f"It stays: tank/many@{offender}" in log
    for name in ("a0300", "a0500"):
        appliance.run("zfs", "release", "backup", f"tank/many@{name}")
    appliance.run("zfs", "destroy", "tank/copy")


def test_freed_space_is_exact_for_neighbours(visitor, appliance, many):
    appliance.shell("dd if=/dev/urandom of=/tank/many/big bs=1M count=9 status=none; sync")
    for name in ("n0000", "n0001", "n0002"):
        appliance.run("zfs", "snapshot", f"tank/many@{name}")
    appliance.shell("rm /tank/many/big; sync; zpool sync tank")
    appliance.run("zfs", "snapshot", "tank/many@after")
    known(visitor, appliance, "tank/many@after")

    def reviewed(fields: dict[str, object]) -> Answer:
        token = visitor.get(f"/snapshots/of/{many}/").hidden()["csrfmiddlewaretoken"]
        return visitor.send("/snapshots/destroy/", {"csrfmiddlewaretoken": token, "of": many, **fields})

    # Their unique space is almost nothing: the file is in all three.
    said = appliance.run("zfs", "destroy", "-nvp", "tank/many@n0000%n0002")
    reclaimed = next(line.split()[1] for line in said.splitlines() if line.startswith("reclaim"))
    page = reviewed({"every": "", "begins": "n00"})
    assert f"Space freed {size_text(int(reclaimed))}" in page.words
    assert int(reclaimed) > 9 * 2**20
    # Without the one in the middle only a minimum is known.
    listed = visitor.get(f"/snapshots/of/{many}/?begins=n00").text
    outer = [re.search(rf'value="(\d+)"\s+aria-label="Choose [^"]*@{name}"', listed) for name in ("n0000", "n0002")]
    assert all(outer)
    assert "Space freed at least" in reviewed({"snapshot": [one[1] for one in outer if one]}).words
    assert visitor.ended(visitor.confirm(page)).startswith("Done.")


@pytest.mark.parametrize("victim", ["agent", "worker"])
def test_destroying_again_after_kill_takes_nothing_else(visitor, appliance, many, victim):
    take(appliance, victim)
    before = {name for name in left(appliance) if not name.startswith(victim)}
    page = review(visitor, many, victim)
    with crash.watching(appliance, entry="step begun", step="destroy", victim=victim) as watcher:
        job = visitor.confirm(page, typed="tank/many")
        crash.struck(watcher)
    said = visitor.ended(job, timeout=300)
    assert re.match("Done|Interrupted", said), said
    crash.no_lock_left(appliance)
    if not said.startswith("Done"):
        assert visitor.ended(visitor.confirm(review(visitor, many, victim), typed="tank/many"), timeout=300).startswith(
            "Done."
        )
    assert set(left(appliance)) == before


def test_power_cut_during_destroying_takes_nothing_else(visitor, appliance, many):
    take(appliance, "cut")
    before = {name for name in left(appliance) if not name.startswith("cut")}
    page = review(visitor, many, "cut")
    with crash.watching(appliance, entry="step begun", step="destroy", victim="nobody") as watcher:
        job = visitor.confirm(page, typed="tank/many")
        crash.struck(watcher)
        appliance.cut_power()
    appliance.power_on()
    visitor.sign_in()
    said = visitor.ended(job, timeout=300)
    assert re.match("Done|Interrupted|Failed|Refused", said), said
    assert before <= set(left(appliance))


def test_destroying_works_on_full_pool(visitor, appliance, many):
    # ZFS reserves up to half of so small a pool (spa_slop).
    # The deleted file stays in the snapshot, then the pool fills up.
    appliance.shell(
        "truncate -s 200M /var/tmp/small.img && zpool create -m /small small /var/tmp/small.img && zfs create small/a"
    )
    appliance.shell(
        "dd if=/dev/urandom of=/small/a/big bs=1M count=30 status=none; zfs snapshot small/a@big; rm /small/a/big"
    )
    filled = appliance.shell("dd if=/dev/urandom of=/small/a/rest bs=1M count=500 2>&1 || true")
    assert "No space left" in filled
    appliance.run("zpool", "sync", "small")
    known(visitor, appliance, "small/a@big")
    key = key_of(appliance, "small/a")
    page = visitor.get(f"/snapshots/of/{key}/")
    space = visitor.wait_until(f"/snapshots/of/{key}/space/", "All snapshots", timeout=60).words
    assert re.search(r"All snapshots 1 (3[1-9]|4[0-2])(\.\d)? MB", space), space
    chosen = re.search(r'value="(\d+)"\s+aria-label="Choose [^"]*@big"', page.text)
    assert chosen
    fields = {"csrfmiddlewaretoken": page.hidden()["csrfmiddlewaretoken"], "snapshot": chosen[1]}
    said = visitor.ended(visitor.confirm(visitor.send("/snapshots/destroy/", fields)))
    assert said.startswith("Done."), said
    assert appliance.run("zfs", "list", "-H", "-t", "snapshot", "-o", "name", "-r", "small") == ""
    appliance.run("zpool", "wait", "-t", "free", "small")
    appliance.shell("dd if=/dev/urandom of=/small/a/more bs=1M count=5 status=none")
    appliance.shell("zpool destroy small; rm /var/tmp/small.img")
