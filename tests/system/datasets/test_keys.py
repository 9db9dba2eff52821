"""Keys on real ZFS: a folder with its own key, locking, changing the key, unlocking at boot with a stored key."""

from __future__ import annotations

from tests.system import moving
from tests.system.datasets.test_folders import guid, prop
from tests.visitor import create_pool, disk_paths

FIRST, SECOND = "four words for vault", "four others for it"


def test_a_folder_with_a_key_of_its_own_through_its_life(visitor, appliance):
    (disk,) = disk_paths(appliance, 1)
    create_pool(appliance, "-o", "ashift=12", "tank", disk)
    visitor.wait_until("/folders/", "tank", timeout=60)
    review = visitor.post("/folders/new/", parent="tank", name="vault", preset="documents", limit="", key="passphrase")
    moving.done(visitor, review, secret=FIRST, again=FIRST)
    appliance.put("/tank/vault/letter.txt", "dear anna\n")
    key = guid(appliance, "tank/vault")
    at = f"/folders/{key}/key/"
    visitor.wait_until(at, "Lock tank/vault", timeout=60)

    moving.done(visitor, visitor.get(f"{at}lock/"))
    assert prop(appliance, "keystatus", "tank/vault") == "unavailable"
    visitor.wait_until("/folders/", "Unlock everything", timeout=60)
    moving.done(visitor, visitor.get("/folders/unlock-all/"), secret=FIRST)
    assert appliance.run("cat", "/tank/vault/letter.txt") == "dear anna\n"

    visitor.wait_until(at, "Lock tank/vault", timeout=60)
    moving.done(visitor, visitor.get(f"{at}passphrase/"), secret=SECOND, again=SECOND)
    wrong = visitor.confirm(visitor.get(f"{at}keep/"), secret=FIRST)
    assert "nothing was kept" in visitor.ended(wrong)
    moving.done(visitor, visitor.get(f"{at}keep/"), secret=SECOND)
    kept = f"/var/lib/larder-agent/keys/{key}"
    assert appliance.run("stat", "-c", "%a %U", kept).split() == ["600", "root"]

    appliance.reboot()
    assert appliance.run("cat", "/tank/vault/letter.txt") == "dear anna\n"
    visitor.sign_in()
    visitor.wait_until(at, "Remove the key from this box", timeout=90)
    moving.done(visitor, visitor.get(f"{at}forget/"))
    appliance.run("test", "!", "-e", kept)
    found = appliance.run(
        "grep", "-rlF", SECOND, "/var/lib/larder", "/var/lib/larder-agent", "/run/larder", check=False
    )
    assert found.strip() == ""
    moving.clear(appliance, disk)
