"""Pools move between boxes by the pages: exported with their shares stopped, brought in without being trusted."""

from __future__ import annotations

import pytest

from deploy.image.machine import wait_for
from tests.system import moving
from tests.system.crash import no_lock_left, struck, watching
from tests.visitor import create_pool, disk_paths

SMB_PASSWORD = "anna's own words"
CONFIG = "/etc/samba/larder.conf"


@pytest.fixture(scope="module")
def anna(visitor) -> str:
    """An account for shares."""
    token = visitor.get("/users/new/").hidden()
    review = visitor.send("/users/new/", {**token, "name": "anna"})
    said = visitor.ended(visitor.confirm(review, secret=SMB_PASSWORD, again=SMB_PASSWORD))
    assert said.startswith("Done."), said
    return "anna"


def test_export_and_import_under_another_name(visitor, appliance, anna):
    """The whole way: a share with somebody on it, export, another name, nothing shared by itself, read-only at last."""
    first, second = disk_paths(appliance, 1, 2)
    create_pool(appliance, "-o", "ashift=12", "-m", "/tank", "tank", "mirror", first, second)
    appliance.run("zfs", "create", "tank/photos")
    appliance.put("/tank/photos/holiday.txt", "sun\n")
    guid, photos = moving.guid_of(appliance, "tank"), moving.prop(appliance, "guid", "tank/photos")
    page = visitor.wait_until(f"/folders/{photos}/share/", "anna", timeout=60)
    answer = visitor.send(f"/folders/{photos}/share/", {**page.hidden(), "name": "photos", "user-anna": "change"})
    said = visitor.ended(answer.url.rstrip("/").rsplit("/", 1)[-1])
    assert said.startswith("Done."), said

    # Somebody has the share open.
    appliance.put("/root/anna", f"username = anna\npassword = {SMB_PASSWORD}\n", mode="0600")
    appliance.shell("(sleep 600 | smbclient //localhost/photos -A /root/anna) >/dev/null 2>&1 </dev/null &")
    wait_for("anna's session", lambda: "photos" in appliance.run("smbstatus", "--shares"), timeout=60)
    review = moving.end_review(visitor, guid, "export", "Shares that stop photos", "anna from")
    words = moving.done(visitor, review)
    assert "had photos open and was disconnected" in words
    assert moving.pools(appliance) == []
    assert "[photos]" not in appliance.run("cat", CONFIG)

    # In again under another name: its folder follows, its file is there, its share is offered and not on.
    moving.look(visitor, "Import tank")
    assert moving.bring_in(visitor, guid, name="attic").startswith("Done.")
    assert moving.pools(appliance) == ["attic"]
    assert appliance.run("cat", "/attic/photos/holiday.txt") == "sun\n"
    assert appliance.run("zpool", "get", "-H", "-o", "value", "cachefile", "attic").strip() != "none"
    assert appliance.run("zdb", "-C", "-U", "/etc/zfs/zpool.cache", "attic")
    assert "[photos]" not in appliance.run("cat", CONFIG)
    visitor.wait_until(f"/pools/{guid}/", "attic/photos asks to be shared as photos for anna", timeout=60)
    for name in ("setuid", "devices", "sharenfs"):
        assert moving.prop(appliance, name, "attic/photos") == "off"

    # Busy: refused with who holds it; then let go.
    appliance.shell("cd /attic/photos && (sleep 600 >/dev/null 2>&1 </dev/null & echo $! > /run/holder)")
    job = visitor.confirm(moving.end_review(visitor, guid, "export"))
    said = visitor.ended(job)
    assert said.startswith("Failed."), said
    assert "Still using it: sleep" in said
    appliance.shell("kill $(cat /run/holder)")
    moving.done(visitor, moving.end_review(visitor, guid, "export"))

    # Read-only: nothing is written, and it is not imported again at the next start.
    moving.look(visitor, "Import attic")
    assert moving.bring_in(visitor, guid, name="cellar", read_only="on").startswith("Done.")
    assert appliance.run("zpool", "get", "-H", "-o", "value", "readonly", "cellar").strip() == "on"
    assert appliance.run("zpool", "get", "-H", "-o", "value", "cachefile", "cellar").strip() == "none"
    place = moving.prop(appliance, "mountpoint", "cellar/photos")
    assert place.startswith("/cellar/")
    assert appliance.run("cat", f"{place}/holiday.txt") == "sun\n"
    assert "Read-only" in appliance.shell(f"touch {place}/x 2>&1 || true")
    moving.done(visitor, moving.end_review(visitor, guid, "export"))


def test_a_hostile_pool_mounts_nothing_where_it_should_not(visitor, appliance):
    (disk,) = disk_paths(appliance, 3)
    moving.clear(appliance, disk)
    create_pool(appliance, "-O", "sharenfs=off", "evil", disk)
    appliance.shell("mkdir -p /srv/outside; ln -s /srv/outside /evil/a")
    appliance.run("zfs", "create", "-o", "canmount=noauto", "-o", "mountpoint=/etc", "evil/etc")
    appliance.run("zfs", "create", "-o", "canmount=noauto", "evil/a")
    appliance.run("zfs", "create", "evil/good")
    for name in ("evil/etc", "evil/a"):
        appliance.run("zfs", "set", "-u", "canmount=on", name)
    appliance.run("zfs", "set", "-u", "sharenfs=rw", "evil")
    appliance.run("zfs", "set", 'larder:share={"smb":{"name":"evil","write":["anna"]}}', "evil/good")
    guid = moving.guid_of(appliance, "evil")
    appliance.run("zpool", "export", "evil")

    def nothing_hurt() -> None:
        assert "root:" in appliance.run("cat", "/etc/passwd")
        assert appliance.run("findmnt", "-n", "-t", "zfs", "/etc", check=False) == ""
        assert appliance.run("findmnt", "-n", "/srv/outside", check=False) == ""
        assert "/evil" not in appliance.run("exportfs", "-s", check=False)
        assert "[evil]" not in appliance.run("cat", CONFIG)

    moving.look(visitor, "Import evil")
    said = moving.bring_in(visitor, guid, name="evil")
    assert said.startswith("Done."), said
    nothing_hurt()
    assert moving.prop(appliance, "mounted", "evil/good") == "yes"
    assert [moving.prop(appliance, "canmount", name) for name in ("evil/etc", "evil/a")] == ["noauto", "noauto"]
    assert moving.prop(appliance, "sharenfs", "evil") == "off"
    # As at the next start of the box.
    appliance.run("zfs", "mount", "-a")
    appliance.run("zfs", "share", "-a")
    nothing_hurt()
    moving.clear(appliance, disk)


def test_a_pool_of_another_host_is_refused_then_forced_with_the_name_typed(visitor, appliance):
    (disk,) = disk_paths(appliance, 4)
    moving.clear(appliance, disk)
    appliance.run("zgenhostid", "-f", "11aa11aa")
    create_pool(appliance, "foreign", disk)
    guid = moving.guid_of(appliance, "foreign")
    appliance.run("zpool", "sync", "foreign")
    # Frozen, its export leaves no mark on the disk: as if its box had died.
    appliance.run("zpool", "freeze", "foreign")
    appliance.run("zpool", "export", "foreign")
    appliance.run("zgenhostid", "-f", "22bb22bb")

    moving.look(visitor, "foreign", "did not export it")
    refused = moving.review_import(visitor, guid, name="foreign")
    assert refused.status == 400
    assert "destroy it beyond repair" in refused.words
    review = moving.review_import(visitor, guid, name="foreign", force="on")
    assert review.status == 200, review.words
    untyped = visitor.send("/jobs/confirm/", review.hidden())
    assert untyped.status == 400
    assert moving.pools(appliance) == []
    assert moving.bring_in(visitor, guid, typed="foreign", name="foreign", force="on").startswith("Done.")
    assert moving.pools(appliance) == ["foreign"]
    moving.clear(appliance, disk)


@pytest.fixture
def disk(appliance) -> str:
    """Bay 5, with a pool ``hurt`` on it that holds one file."""
    (found,) = disk_paths(appliance, 5)
    moving.clear(appliance, found)
    create_pool(appliance, "-o", "ashift=12", "hurt", found)
    appliance.put("/hurt/first.txt", "kept\n")
    return found


def test_a_damaged_pool_is_brought_in_at_the_moment_before(visitor, appliance, disk):
    """Written to until its box died, its newest state is gone: the moment just before it is promised, and kept."""
    # Something is written in each transaction group, so that the last two stand next to each other.
    appliance.shell(
        "(while :; do date > /hurt/later; done) & writer=$!;"
        " for time in 1 2 3 4 5 6; do zpool sync hurt; done; zpool freeze hurt; kill $writer"
    )
    guid = moving.guid_of(appliance, "hurt")
    appliance.run("zpool", "export", "hurt")
    moving.hurt_latest_state(appliance, "hurt", f"{disk}-part1")

    page = moving.look(visitor, "hurt", "damaged", "as it was on")
    assert "last resort" not in page.words
    assert moving.pools(appliance) == [], "the dry run left nothing in use"
    assert moving.review_import(visitor, guid, name="hurt").status == 400
    review = moving.review_import(visitor, guid, name="hurt", rewind="on")
    assert "everything written to the pool after" in review.words
    assert moving.bring_in(visitor, guid, typed="hurt", name="hurt", rewind="on").startswith("Done.")
    assert appliance.run("cat", "/hurt/first.txt") == "kept\n"
    moving.clear(appliance, disk)


def hurt_at_rest(appliance, disk: str) -> str:
    """Exported at rest, its newest state was overwritten: the one before it is older than
    plain ``-F`` goes; its guid."""
    appliance.run("zpool", "sync", "hurt")
    for number in range(4):
        appliance.put(f"/hurt/later{number}.txt", "later\n")
        appliance.run("zpool", "sync", "hurt")
    guid = moving.guid_of(appliance, "hurt")
    appliance.run("zpool", "export", "hurt")
    moving.hurt_latest_state(appliance, "hurt", f"{disk}-part1")
    return guid


def test_where_the_moments_before_do_not_help_all_are_searched_read_only_first(visitor, appliance, disk):
    guid = hurt_at_rest(appliance, disk)
    page = moving.look(visitor, "hurt", "damaged", "As a last resort", "at best it can be imported as it was on")
    assert "cannot be used" not in page.words
    assert moving.review_import(visitor, guid, name="hurt", rewind="on").status == 400
    states = appliance.run("zdb", "-lu", f"{disk}-part1")
    assert moving.bring_in(visitor, guid, name="hurt", last_resort="on", read_only="on").startswith("Done.")
    assert appliance.run("cat", f"{moving.prop(appliance, 'mountpoint', 'hurt')}/first.txt") == "kept\n"
    moving.done(visitor, moving.end_review(visitor, guid, "export"))
    assert appliance.run("zdb", "-lu", f"{disk}-part1") == states, "looking read-only has written something"

    moving.look(visitor, "hurt", "damaged", "As a last resort")
    review = moving.review_import(visitor, guid, name="hurt", last_resort="on")
    assert "everything written to the pool after the newest intact state" in review.words
    assert visitor.send("/jobs/confirm/", review.hidden()).status == 400, "the name has to be typed"
    assert moving.bring_in(visitor, guid, typed="hurt", name="hurt", last_resort="on").startswith("Done.")
    assert appliance.run("cat", "/hurt/first.txt") == "kept\n"
    moving.clear(appliance, disk)


def test_a_last_resort_that_a_power_cut_ends_is_told_truly_and_can_be_had_again(visitor, appliance, disk):
    guid = hurt_at_rest(appliance, disk)
    moving.look(visitor, "hurt", "damaged", "As a last resort")
    review = moving.review_import(visitor, guid, name="hurt", last_resort="on")
    with watching(appliance, entry="step begun", step="import", victim="nobody") as watcher:
        job = visitor.confirm(review, typed="hurt")
        struck(watcher)
        appliance.cut_power()
    appliance.power_on()
    visitor.sign_in()
    said = visitor.ended(job, timeout=300)
    assert said.startswith("Interrupted."), said
    no_lock_left(appliance)
    # Nothing of it was kept, so the box does not bring it in by itself; how far the search had come is for ZFS to say.
    assert moving.pools(appliance) == []
    page = moving.look(visitor, "hurt")
    answers = {"last_resort": "on", "typed": "hurt"} if "As a last resort" in page.words else {}
    assert moving.bring_in(visitor, guid, name="hurt", **answers).startswith("Done.")
    assert appliance.run("cat", "/hurt/first.txt") == "kept\n"
    moving.clear(appliance, disk)


def test_half_a_pool_is_listed_and_not_offered(visitor, appliance):
    disks = disk_paths(appliance, 1, 2)
    moving.clear(appliance, *disks)
    create_pool(appliance, "-f", "half", *disks)
    guid = moving.guid_of(appliance, "half")
    appliance.run("zpool", "export", "half")
    appliance.pull(2)
    moving.look(visitor, "half", "cannot be used", "Put in the missing disks")
    assert moving.review_import(visitor, guid, name="half").status == 400
    appliance.put_back(2)
    moving.look(visitor, "Import half", timeout=240)
    assert moving.bring_in(visitor, guid, name="half").startswith("Done.")
    moving.clear(appliance, *disks)


def test_killed_in_the_middle_nothing_is_mounted_and_the_way_on_works(visitor, appliance):
    (disk,) = disk_paths(appliance, 6)
    moving.clear(appliance, disk)
    create_pool(appliance, "-o", "ashift=12", "cut", disk)
    guid = moving.guid_of(appliance, "cut")
    appliance.run("zpool", "export", "cut")
    moving.look(visitor, "Import cut")
    with watching(appliance, entry="step done", step="import", victim="agent") as watcher:
        job = visitor.confirm(moving.review_import(visitor, guid, name="cut"))
        struck(watcher)
    said = visitor.ended(job, timeout=180)
    assert said.startswith("Interrupted."), said
    assert "Export it, then import it again" in said
    assert appliance.run("zpool", "get", "-H", "-o", "value", "cachefile", "cut").strip() == "none"
    no_lock_left(appliance)
    moving.done(visitor, moving.end_review(visitor, guid, "export"))
    moving.look(visitor, "Import cut")
    assert moving.bring_in(visitor, guid, name="cut").startswith("Done.")
    assert moving.prop(appliance, "mounted", "cut") == "yes"
    moving.clear(appliance, disk)
