"""Rolling a folder back on real ZFS: the review says what is lost, shares pause, and a checkpoint allows to undo it."""

from __future__ import annotations

import re

import pytest

from deploy.image.machine import Machine
from tests.system import crash, sharing
from tests.system.policy import job_of, known
from tests.visitor import Answer, Visitor

STATE = "share"

ONE = "tank/photos@one"


@pytest.fixture(scope="module")
def photos(appliance: Machine, visitor: Visitor) -> str:
    """The address of the snapshots of tank/photos, which is shared."""
    sharing.make_pool(appliance, "tank", "photos")
    sharing.make_person(visitor, "anna")
    said = sharing.set_share(visitor, appliance, "tank/photos", name="photos", write="anna")
    assert said.startswith("Done."), said
    appliance.shell("echo one > /tank/photos/file && zfs snapshot tank/photos@one")
    return f"/snapshots/of/{sharing.key_of(appliance, 'tank/photos')}/"


def go_on(appliance: Machine, *names: str) -> None:
    """Write to the file and take a snapshot, for each of these names."""
    for name in names:
        appliance.shell(f"echo {name} >> /tank/photos/file && zfs snapshot tank/photos@{name}")
    appliance.shell("echo unsaved >> /tank/photos/file")


def review(visitor: Visitor, appliance: Machine, *, way_back: bool) -> Answer:
    return visitor.get(f"{known(visitor, appliance, ONE)}roll-back/?answered=1{'&way_back=on' if way_back else ''}")


def names(appliance: Machine) -> list[str]:
    said = appliance.run("zfs", "list", "-H", "-t", "snapshot", "-d", "1", "-o", "name", "tank/photos")
    return [line.partition("@")[2] for line in said.splitlines()]


def test_rollback_refuses_while_newer_snapshot_is_held_or_cloned(visitor, appliance, photos):
    go_on(appliance, "two", "three")
    appliance.run("zfs", "hold", "backup", "tank/photos@two")
    appliance.run("zfs", "clone", "tank/photos@three", "tank/copy")
    go_on(appliance, "four")  # unlike a hold or clone, a new snapshot makes the pages read again
    visitor.wait_until(photos, " two protected ", " three cloned as tank/copy ", " four ", timeout=90)
    page = review(visitor, appliance, way_back=False)
    assert "tank/photos@two: it is protected" in page.words
    assert "tank/copy is a clone of it" in page.words
    appliance.run("zfs", "destroy", "tank/copy")
    job_of(visitor, f"{known(visitor, appliance, 'tank/photos@two')}release/")
    visitor.wait_until(photos, " three ", without=("tank/copy",), timeout=90)


def test_rollback_says_what_is_lost_and_keeps_checkpoint_and_share(visitor, appliance, photos):
    appliance.run("zfs", "bookmark", "tank/photos@three", "tank/photos#three")
    asked = visitor.get(f"{known(visitor, appliance, ONE)}roll-back/").words
    assert "changed: file" in asked, asked
    page = review(visitor, appliance, way_back=True)
    assert "everything written to tank/photos after" in page.words
    assert "tank/photos: two, three, four" in page.words
    assert "photos" in page.words
    said = visitor.ended(visitor.confirm(page, typed="tank/photos"))
    assert said.startswith("Done."), said
    assert names(appliance) == ["one"]
    assert appliance.run("cat", "/tank/photos/file") == "one\n"
    assert "#three" not in appliance.run("zfs", "list", "-H", "-t", "bookmark", "-o", "name", "tank/photos")
    assert appliance.run("zpool", "get", "-H", "-o", "value", "checkpoint", "tank").strip() != "-"
    assert "Disk|photos|" in appliance.run("smbclient", "-g", "-N", "-L", "localhost")
    visitor.wait_until(photos, " one ", without=(" three ", " four "), timeout=90)
    # With a checkpoint there cannot be a second one: the review says so.
    go_on(appliance, "five")
    known(visitor, appliance, "tank/photos@five")
    assert "The pool cannot take a checkpoint first" in review(visitor, appliance, way_back=True).words
    appliance.run("zpool", "checkpoint", "-d", "-w", "tank")


@pytest.mark.parametrize("way_back", [False, True])
def test_rollback_can_be_repeated_after_kill(visitor, appliance, photos, way_back):
    go_on(appliance, f"later{way_back}")
    known(visitor, appliance, f"tank/photos@later{way_back}")
    page = review(visitor, appliance, way_back=way_back)
    with crash.watching(appliance, entry="step begun", step="rollback", victim="agent") as watcher:
        job = visitor.confirm(page, typed="tank/photos")
        crash.struck(watcher)
    said = visitor.ended(job)
    assert re.match("Done|Interrupted", said), said
    crash.no_lock_left(appliance)
    appliance.shell("zpool checkpoint -d -w tank 2>/dev/null || true")
    if not said.startswith("Done"):
        again = review(visitor, appliance, way_back=False)
        assert visitor.ended(visitor.confirm(again, typed="tank/photos")).startswith("Done.")
    assert appliance.run("cat", "/tank/photos/file") == "one\n"
    assert "one" in names(appliance)
    # If it was killed while its share was paused, the second rollback serves the share again.
    assert "Disk|photos|" in appliance.run("smbclient", "-g", "-N", "-L", "localhost")


def test_clone_is_promoted_and_bookmark_is_made(visitor, appliance, photos):
    one = known(visitor, appliance, ONE)
    for act, field in (("clone", {"name": "copy"}), ("bookmark", {"name": "mark"})):
        job_of(visitor, f"{one}{act}/", **field)
    assert "tank/photos#mark" in appliance.run("zfs", "list", "-H", "-t", "bookmark", "-o", "name", "tank/photos")
    key = sharing.key_of(appliance, "tank/copy")
    visitor.wait_until(f"/folders/{key}/", "tank/photos@one", timeout=90)
    page = visitor.get(f"/folders/{key}/do/promote/")
    assert visitor.ended(visitor.confirm(page)).startswith("Done.")
    assert appliance.run("zfs", "get", "-H", "-o", "value", "origin", "tank/photos").strip() == "tank/copy@one"


def test_clone_below_shared_folder_is_not_shared(visitor, appliance, photos):
    appliance.shell("zfs create tank/photos/trip && zfs snapshot tank/photos/trip@then")
    job_of(visitor, f"{known(visitor, appliance, 'tank/photos/trip@then')}clone/", name="copy")
    # Folders below are shared when Samba's file is written the next time; the clone is not.
    said = sharing.set_share(visitor, appliance, "tank/photos", name="photos", write="anna", recycle="on")
    assert said.startswith("Done."), said
    config = appliance.run("cat", sharing.CONFIG)
    assert "[photos-trip]" in config
    assert "/tank/photos/copy" not in config
