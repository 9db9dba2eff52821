"""Snapshots on real ZFS: taken, held and destroyed on pages and by a schedule, which touches nothing else."""

from __future__ import annotations

import re
from functools import partial

import pytest

from deploy.image.machine import Machine, wait_for
from tests.system.care import press
from tests.system.policy import job_of, known, made, set_policy, there
from tests.system.sharing import key_of
from tests.visitor import Visitor, create_pool, disk_paths


@pytest.fixture(scope="module")
def photos(appliance: Machine, visitor: Visitor) -> str:
    """The address of the snapshots of tank/photos, which has a folder below it."""
    (disk,) = disk_paths(appliance, 1)
    create_pool(appliance, "-o", "ashift=12", "tank", disk)
    appliance.run("zfs", "create", "-p", "tank/photos/old times")
    visitor.wait_until("/folders/", "tank/photos", "tank/photos/old times", timeout=90)
    return f"/snapshots/of/{key_of(appliance, 'tank/photos')}/"


def chosen(page: str, *names: str) -> list[str]:
    """The values of the checkboxes of these snapshots."""
    found = [re.search(rf'value="(\d+)"\s+aria-label="Choose [^"]*@{re.escape(name)}"', page) for name in names]
    assert all(found), page[-3000:]
    return [one[1] for one in found if one]


def test_snapshot_of_tree_is_taken_at_one_moment_with_note(visitor, appliance, photos):
    job_of(visitor, f"{photos}take/", name="before", note="tidy up", below="on")
    assert there(appliance) == ["before"]
    assert there(appliance, "tank/photos/old times") == ["before"]
    listed = appliance.run("zfs", "list", "-H", "-t", "snapshot", "-o", "createtxg", "-r", "tank/photos").split()
    assert len(set(listed)) == 1
    visitor.wait_until(photos, "before", "tidy up")


def test_page_follows_snapshots_taken_and_destroyed_in_shell(visitor, appliance, photos):
    appliance.run("zfs", "snapshot", "tank/photos@by-hand")
    visitor.wait_until(photos, "by-hand", timeout=90)
    appliance.run("zfs", "destroy", "tank/photos@by-hand")
    visitor.wait_until(photos, "before", without=("by-hand",), timeout=90)


def test_destroying_chosen_snapshots_keeps_held_and_cloned_ones(visitor, appliance, photos):
    for name in ("a", "b", "c"):
        appliance.run("zfs", "snapshot", f"tank/photos@{name}")
    appliance.run("zfs", "hold", "backup", "tank/photos@b")
    appliance.run("zfs", "clone", "tank/photos@c", "tank/copy")
    page = visitor.wait_until(photos, " b protected ", " c cloned as tank/copy ", timeout=90)
    review = press(visitor, photos, "/snapshots/destroy/", snapshot=chosen(page.text, "a", "b", "c"))
    assert "tank/photos@b: it is protected" in review.words
    assert "tank/copy is a clone of it" in review.words
    said = visitor.ended(visitor.confirm(review))
    assert said.startswith("Done."), said
    assert there(appliance) == ["before", "b", "c"]
    appliance.run("zfs", "release", "backup", "tank/photos@b")
    appliance.run("zfs", "destroy", "tank/copy")


def test_hold_is_set_with_reason_and_released(visitor, appliance, photos):
    guid = key_of(appliance, "tank/photos@b")
    job_of(visitor, f"{photos}{guid}/hold/", why="for the tax office")
    assert "larder:admin:for the tax office" in appliance.run("zfs", "holds", "-H", "tank/photos@b")
    assert appliance.run("zfs", "destroy", "tank/photos@b", check=False) == ""
    assert "b" in there(appliance)
    visitor.wait_until(f"{photos}{guid}/", "Release", timeout=90)
    job_of(visitor, f"{photos}{guid}/release/")
    assert appliance.run("zfs", "holds", "-H", "tank/photos@b") == ""


def test_bookmark_outlives_snapshot_and_is_destroyed(visitor, appliance, photos):
    appliance.run("zfs", "snapshot", "tank/photos@moment")
    guid = key_of(appliance, "tank/photos@moment")
    job_of(visitor, f"{known(visitor, appliance, 'tank/photos@moment')}bookmark/", name="mark")
    marks = ("zfs", "list", "-H", "-t", "bookmark", "-o", "name,guid", "tank/photos")
    assert appliance.run(*marks).split() == ["tank/photos#mark", guid]
    appliance.run("zfs", "destroy", "tank/photos@moment")
    visitor.wait_until(photos, "Bookmarks", " mark Destroy ", without=(" moment 0 B ",), timeout=90)
    job = visitor.confirm(visitor.get(f"{photos}bookmarks/mark/destroy/"))
    assert visitor.ended(job).startswith("Done.")
    assert appliance.run(*marks) == ""
    visitor.wait_until(photos, without=("Bookmarks",), timeout=90)
    assert visitor.get(f"{photos}bookmarks/mark/destroy/").status == 404


def newer(appliance: Machine, known: set[str]) -> set[str]:
    return set(made(appliance)) - known


def test_schedule_takes_and_expires_own_snapshots_of_tree_only(visitor, appliance, photos):
    assert "No snapshots will be destroyed" in set_policy(visitor, photos)
    wait_for("the first of the policy", lambda: made(appliance), timeout=180)
    wait_for("the one below", lambda: made(appliance, "tank/photos/old times"), timeout=180)
    assert re.fullmatch(r"larder-hourly-\d{4}(\.\d\d){2}-\d\d(\.\d\d){2}", made(appliance)[0])
    # A snapshot with such a name that no schedule took.
    appliance.run("zfs", "snapshot", "tank/photos@larder-hourly-2020.01.01-00.00.00")
    visitor.wait_until(photos, "larder-hourly-2020", timeout=90)
    # With an hour more on the clock the next is due, then a third: two stay, and the stranger.
    first = made(appliance)[0]
    for _ in range(2):
        known = set(made(appliance))
        appliance.run("date", "-s", "+1 hour")
        wait_for("the next of the policy", partial(newer, appliance, known), timeout=240)
    wait_for("the first to go", lambda: first not in there(appliance), timeout=240)
    left = made(appliance)
    assert "larder-hourly-2020.01.01-00.00.00" in left
    assert len(left) == 3, left
    assert {"before", "b", "c"} <= set(there(appliance))


def test_clock_set_back_stops_neither_pages_nor_schedule(visitor, appliance, photos):
    before = made(appliance)
    appliance.run("date", "-s", "-5 hours")
    appliance.run("zfs", "snapshot", "tank/photos@while-behind")
    visitor.wait_until(photos, "while-behind", timeout=120)
    wait_for("another of the policy", partial(newer, appliance, set(before)), timeout=240)
    assert before[-1] in made(appliance)
    assert {"before", "b", "c", "larder-hourly-2020.01.01-00.00.00"} <= set(there(appliance))
