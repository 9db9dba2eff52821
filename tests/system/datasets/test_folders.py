"""A folder from making to destroying, by the pages, on real ZFS."""

from __future__ import annotations

import pytest

from appliance.formatting import size_text
from deploy.image.machine import wait_for
from tests.system import moving
from tests.visitor import create_pool, disk_paths


@pytest.fixture(scope="module")
def tank(visitor, appliance):
    """A pool of one disk."""
    (disk,) = disk_paths(appliance, 1)
    create_pool(appliance, "-o", "ashift=12", "-O", "xattr=sa", "-O", "acltype=posix", "tank", disk)
    visitor.wait_until("/folders/", "tank", timeout=60)
    yield "tank"
    moving.clear(appliance, disk)


def prop(appliance, name: str, dataset: str, column: str = "value") -> str:
    return appliance.run("zfs", "get", "-H", "-p", "-o", column, name, dataset).strip()


def guid(appliance, dataset: str) -> str:
    return prop(appliance, "guid", dataset)


def make(visitor, appliance, name: str, **more: object) -> str:
    """Make a folder below tank by its page; its key."""
    answer = visitor.post(
        "/folders/new/", **{"parent": "tank", "name": name, "preset": "general", "limit": "", "key": "", **more}
    )
    assert "/jobs/" in answer.url, answer.words
    assert "Done" in visitor.ended(answer.url.split("/jobs/")[1].strip("/"))
    key = guid(appliance, f"tank/{name}")
    visitor.wait_until(f"/folders/{key}/", f"tank/{name}", timeout=60)
    return key


def becomes(appliance, dataset: str, name: str, wanted: str, column: str = "value") -> None:
    """A job without a review returns to its page at once: wait for its effect."""
    wait_for(f"{name} of {dataset}", lambda: prop(appliance, name, dataset, column) == wanted, timeout=120)


def test_presets_limits_settings_and_going_back_to_what_is_above(visitor, appliance, tank):
    key = make(visitor, appliance, "films", preset="media", limit="200 MiB")
    assert prop(appliance, "recordsize", "tank/films") == str(2**20)
    assert prop(appliance, "quota", "tank/films") == str(200 * 2**20)
    assert visitor.post(f"/folders/{key}/settings/compression/", value="zstd").status == 200
    becomes(appliance, "tank/films", "compression", "zstd")
    visitor.wait_until(f"/folders/{key}/settings/", "stronger (zstd)", timeout=60)
    page = visitor.get(f"/folders/{key}/settings/")
    assert visitor.send(f"/folders/{key}/settings/compression/inherit/", page.hidden()).status == 200
    becomes(appliance, "tank/films", "compression", "default", "source")


def test_a_persons_limit_holds(visitor, appliance, tank):
    key = make(visitor, appliance, "shared")
    assert visitor.post(f"/folders/{key}/space/", of="user", who="games", size="4 MiB").status == 200
    becomes(appliance, "tank/shared", "userquota@games", str(4 * 2**20))
    appliance.run("chmod", "777", "/tank/shared")
    wrote = "for i in $(seq 60); do head -c 1M /dev/urandom >> /tank/shared/f || exit 0; sync; done; exit 1"
    appliance.run("setpriv", "--reuid=games", "--clear-groups", "sh", "-c", wrote)
    visitor.wait_until(f"/folders/{key}/space/", "games", size_text(4 * 2**20), timeout=90)


def test_a_rename_behind_the_pages_back_is_told_and_nothing_else_is_touched(visitor, appliance, tank):
    key = make(visitor, appliance, "before")
    review = visitor.get(f"/folders/{key}/rename/?answered=1&parent=tank&name=after")
    appliance.run("zfs", "rename", "tank/before", "tank/behind")
    appliance.run("zfs", "create", "tank/before")
    answer = visitor.send("/jobs/confirm/", review.hidden())
    # Rows of before the rename make a job that refuses; where they know already, the page itself says so.
    said = visitor.ended(answer.url.split("/jobs/")[1].strip("/")) if answer.status == 200 else answer.words
    assert "was renamed to tank/behind" in said
    assert "tank/after" not in appliance.run("zfs", "list", "-H", "-o", "name")
    assert {"tank/before", "tank/behind"} <= set(appliance.run("zfs", "list", "-H", "-o", "name").split())


def test_it_moves_with_what_is_below_and_its_files(visitor, appliance, tank):
    key = make(visitor, appliance, "here")
    make(visitor, appliance, "there")
    appliance.run("zfs", "create", "tank/here/deep")
    appliance.put("/tank/here/deep/note.txt", "still here\n")
    visitor.wait_until("/folders/", "tank/here/deep", timeout=60)
    moving.done(visitor, visitor.get(f"/folders/{key}/rename/?answered=1&parent=tank/there&name=moved"))
    assert appliance.run("cat", "/tank/there/moved/deep/note.txt") == "still here\n"


def test_unmounting_and_mounting(visitor, appliance, tank):
    key = make(visitor, appliance, "closed")
    moving.done(visitor, visitor.get(f"/folders/{key}/do/unmount/"))
    assert prop(appliance, "mounted", "tank/closed") == "no"
    visitor.wait_until(f"/folders/{key}/", "not mounted", timeout=60)
    moving.done(visitor, visitor.get(f"/folders/{key}/do/mount/"))
    assert prop(appliance, "mounted", "tank/closed") == "yes"


def test_destroying_waits_for_holds_and_clones_and_then_takes_all(visitor, appliance, tank):
    key = make(visitor, appliance, "old")
    appliance.run("zfs", "snapshot", "tank/old@kept")
    appliance.run("zfs", "hold", "keep", "tank/old@kept")
    appliance.run("zfs", "clone", "tank/old@kept", "tank/new")
    visitor.wait_until(f"/folders/{key}/destroy/", "protected from deletion", "tank/new", timeout=90)
    assert visitor.get(f"/folders/{key}/destroy/?review=1").status == 409
    appliance.run("zfs", "release", "keep", "tank/old@kept")
    visitor.wait_until("/folders/", "tank/new", timeout=60)
    clone = guid(appliance, "tank/new")
    moving.done(visitor, visitor.get(f"/folders/{clone}/do/promote/"))
    visitor.wait_until(f"/folders/{key}/destroy/", "Snapshots 0", without=("protected from deletion",), timeout=90)
    moving.done(visitor, visitor.get(f"/folders/{key}/destroy/?review=1"), typed="tank/old")
    left = appliance.run("zfs", "list", "-H", "-o", "name", "-t", "all", "-r", "tank").split()
    assert "tank/old" not in left
    assert "tank/new@kept" in left


def test_a_busy_folder_is_not_destroyed_and_says_by_whom(visitor, appliance, tank):
    key = make(visitor, appliance, "busy")
    appliance.run("systemd-run", "--unit=holder", "--working-directory=/tank/busy", "sleep", "600")
    visitor.wait_until(f"/folders/{key}/destroy/", "This is what would be destroyed", timeout=90)
    job = visitor.confirm(visitor.get(f"/folders/{key}/destroy/?review=1"), typed="tank/busy")
    assert "sleep" in visitor.ended(job)
    appliance.run("systemctl", "stop", "holder")
    assert prop(appliance, "mounted", "tank/busy") == "yes"


def test_a_volume_is_made_and_grows(visitor, appliance, tank):
    answer = visitor.post("/folders/volumes/new/", parent="tank", name="disk1", size="64 MiB", block="16384", thin="on")
    assert "Done" in visitor.ended(answer.url.split("/jobs/")[1].strip("/"))
    key = guid(appliance, "tank/disk1")
    visitor.wait_until("/folders/volumes/", "tank/disk1", timeout=60)
    moving.done(visitor, visitor.post(f"/folders/{key}/grow/", size="96 MiB"))
    size = str(96 * 2**20)
    wait_for(
        "the device to have grown",
        lambda: appliance.run("blockdev", "--getsize64", "/dev/zvol/tank/disk1").strip() == size,
        timeout=60,
    )
