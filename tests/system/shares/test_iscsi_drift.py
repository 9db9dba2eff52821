"""iSCSI targets that somebody changed by hand in configfs: told with each difference, left as they are until the person
decides, put back; what is nobody's business of Larder's stays as it is through all of it."""

from __future__ import annotations

import pytest

from appliance.shares.iscsi.divergence import key_of
from appliance.shares.iscsi.part import PREFIX
from deploy.image.machine import wait_for
from tests.system import initiators, sharing
from tests.system.initiators import INITIATOR, TREE, disk_url, inquiry, listed, share, stop
from tests.system.iscsi_disk import opened
from tests.visitor import Visitor

STATE = "pool"
PAGE = "/shares/by-hand/"
SECRET, OTHER_SECRET = "twelve-signs-1", "zq7canaryzq7"
OTHER = "iqn.2007-10.com.github:sahlberg:libiscsi:other"
THEIRS = f"{TREE}/iscsi/iqn.2003-01.org.linux-iscsi.box:theirs"


@pytest.fixture(scope="module")
def visitor(appliance):
    sharing.make_pool(appliance, "tank")
    return Visitor.of_new(appliance)


def group_of(name: str) -> str:
    return f"{TREE}/iscsi/{PREFIX}{name}/tpgt_1"


def set_value(appliance, path: str, value: str) -> None:
    """Write a value of the kernel's by hand; without a newline, which would become a part of a secret."""
    appliance.shell(f"printf '%s' '{value}' > '{path}'")


def remove_disk(appliance, name: str) -> None:
    """Take the volume out of its target by hand."""
    lun = f"{group_of(name)}/lun/lun_0"
    appliance.shell(f"find '{lun}' -maxdepth 1 -type l -name 'larder-*' -exec rm {{}} +; rmdir '{lun}'")


def delete_target(appliance, name: str) -> None:
    """Delete a target for any computer by hand, as targetcli does."""
    group = group_of(name)
    set_value(appliance, f"{group}/enable", "0")
    remove_disk(appliance, name)
    appliance.shell(f"rmdir '{group}'/np/* '{group}' '{TREE}/iscsi/{PREFIX}{name}'")


def write_cache(appliance, volume: str) -> str:
    """Where the volume's device says whether it has a write cache."""
    device = appliance.run("readlink", "-f", f"/dev/zvol/{volume}").strip().rpartition("/")[2]
    return f"/sys/class/block/{device}/queue/write_cache"


def let_go(visitor, key: str) -> None:
    """Wait until the page of a volume knows that nobody is connected any more, which a review holds on to."""
    visitor.wait_until(f"/folders/{key}/", "no computer", timeout=120)


def put_back(visitor, name: str) -> str:
    review = visitor.get(f"{PAGE}target/{key_of(f'{PREFIX}{name}')}/overwrite/")
    return str(visitor.ended(visitor.confirm(review), timeout=240))


def test_changes_of_who_may_connect_are_told_and_put_back(visitor, appliance):
    key = initiators.make_volume(visitor, appliance, "tank/drift")
    secrets = {"secret": SECRET, "again": SECRET}
    said = share(visitor, key, secrets, name="drift", user="desk", initiators=INITIATOR)
    assert said.startswith("Done."), said
    closed, signed = disk_url(appliance, "drift"), disk_url(appliance, "drift", user="desk", secret=SECRET)
    assert "Vendor:" not in inquiry(closed)[1]
    assert "No manual changes" in visitor.get(PAGE).words

    group = group_of("drift")
    set_value(appliance, f"{group}/attrib/authentication", "0")
    appliance.run("mkdir", f"{group}/acls/{OTHER}", f"{group}/np/127.0.0.1:3261")
    assert "Vendor:LARDER" in inquiry(closed)[1], "the change has its effect"
    sentences = (
        "CHAP was switched off: no secret is asked for.",
        f"{OTHER} may connect too.",
        "It can also be reached at 127.0.0.1:3261.",
    )
    visitor.wait_until(PAGE, f"{PREFIX}drift", *sentences, timeout=120)
    visitor.wait_until(f"/folders/{key}/", "Changed by hand.", *sentences, timeout=60)
    visitor.wait_until("/folders/", f"{PREFIX}drift was changed by hand.")
    assert "The target was changed by hand" in visitor.get(f"/folders/{key}/iscsi/why/").words

    # Larder changes nothing of it, whatever is asked of it, and says why. Another volume is shared all the same.
    let_go(visitor, key)
    said = stop(visitor, key)
    assert "was changed by hand" in said, said
    beside = initiators.make_volume(visitor, appliance, "tank/beside")
    assert share(visitor, beside, name="beside").startswith("Done.")
    assert stop(visitor, beside).startswith("Done.")
    assert set(appliance.run("ls", f"{group}/np").split()) == {"127.0.0.1:3261", "[::0]:3260"}
    assert appliance.run("cat", f"{group}/attrib/authentication").strip() == "0"

    said = put_back(visitor, "drift")
    assert said.startswith("Done."), said
    assert appliance.run("ls", f"{group}/acls").split() == [INITIATOR]
    assert appliance.run("ls", f"{group}/np").split() == ["[::0]:3260"]
    assert "Vendor:" not in inquiry(closed)[1]
    assert "Vendor:LARDER" in inquiry(signed)[1]
    visitor.wait_until(PAGE, "No manual changes", timeout=90)

    let_go(visitor, key)
    # What only root can read is found when somebody asks, and is shown nowhere.
    set_value(appliance, f"{group}/acls/{INITIATOR}/auth/password", OTHER_SECRET)
    why = visitor.get(f"/folders/{key}/iscsi/why/")
    assert "The CHAP secret was changed." in why.words
    assert OTHER_SECRET not in why.text
    page = visitor.wait_until(PAGE, "The CHAP secret was changed.", timeout=480)
    assert OTHER_SECRET not in page.text
    assert put_back(visitor, "drift").startswith("Done.")
    assert "Vendor:LARDER" in inquiry(signed)[1]
    let_go(visitor, key)
    assert stop(visitor, key).startswith("Done.")


def test_targets_that_were_deleted_emptied_or_made_by_hand_are_all_told(visitor, appliance):
    keys = {name: initiators.make_volume(visitor, appliance, f"tank/{name}") for name in ("gone", "empty")}
    for name, key in keys.items():
        assert share(visitor, key, name=name).startswith("Done.")
    delete_target(appliance, "gone")
    remove_disk(appliance, "empty")
    # One of somebody else's, which is none of Larder's business, one under a name of Larder's, and an odd one.
    appliance.run("mkdir", "-p", f"{THEIRS}/tpgt_1", f"{TREE}/iscsi/{PREFIX}mine", f"{TREE}/iscsi/{PREFIX}an odd one")
    page = visitor.wait_until(
        PAGE,
        "The target was deleted, so no computer can connect.",
        "The volume was removed from it",
        f"{PREFIX}mine",
        "Larder serves no volume under this name.",
        "Larder cannot change a target with such a name.",
        timeout=120,
    )
    assert "theirs" not in page.words
    visitor.wait_until(f"/folders/{keys['gone']}/", "not served", "Changed by hand.", timeout=90)
    assert "gone" not in listed(appliance)

    for name in ("gone", "empty", "mine"):
        said = put_back(visitor, name)
        assert said.startswith("Done."), said
    assert listed(appliance) >= {"gone", "empty"}
    for name in ("gone", "empty"):
        assert "Vendor:LARDER" in inquiry(disk_url(appliance, name))[1]
        let_go(visitor, keys[name])
    assert appliance.run("ls", "-d", THEIRS).strip() == THEIRS
    appliance.run("test", "!", "-e", f"{TREE}/iscsi/{PREFIX}mine")
    appliance.run("rmdir", f"{TREE}/iscsi/{PREFIX}an odd one", f"{THEIRS}/tpgt_1", THEIRS)
    visitor.wait_until(PAGE, "No manual changes", timeout=120)
    for key in keys.values():
        assert stop(visitor, key).startswith("Done.")
    assert initiators.left_in_kernel(appliance) == []


def test_a_disk_that_denies_its_write_cache_is_told_and_put_back(visitor, appliance):
    key = initiators.make_volume(visitor, appliance, "tank/cached")
    assert share(visitor, key, name="cached").startswith("Done.")
    cache = write_cache(appliance, "tank/cached")
    set_value(appliance, cache, "write through")
    with opened(appliance, "cached") as disk:
        assert not disk.has_write_cache(), "a disk says what its device says"
    visitor.wait_until(PAGE, "It no longer reports its write cache.", timeout=120)
    let_go(visitor, key)
    said = put_back(visitor, "cached")
    assert said.startswith("Done."), said
    assert appliance.run("cat", cache).strip() == "write back"
    with opened(appliance, "cached") as disk:
        assert disk.has_write_cache()
    visitor.wait_until(PAGE, "No manual changes", timeout=90)
    let_go(visitor, key)
    assert stop(visitor, key).startswith("Done.")


def test_after_a_restart_a_changed_target_is_served_as_set(visitor, appliance):
    key = initiators.make_volume(visitor, appliance, "tank/again")
    assert share(visitor, key, name="again").startswith("Done.")
    delete_target(appliance, "again")
    visitor.wait_until(PAGE, "The target was deleted", timeout=120)
    appliance.reboot()
    wait_for("the volume to be served", lambda: "again" in listed(appliance), timeout=120)
    visitor.sign_in()
    let_go(visitor, key)  # what is served has been read
    visitor.wait_until(PAGE, "No manual changes", timeout=120)
    assert stop(visitor, key).startswith("Done.")
