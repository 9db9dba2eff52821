"""An NFS client with write access creates symbolic links where folders are about to be mounted: root follows none."""

from __future__ import annotations

import pytest

from deploy.image.machine import wait_for
from tests.system import moving, protocols, sharing
from tests.system.datasets.test_folders import guid, prop
from tests.system.persons import make

STATE = "pool"


WORDS = "four words for vault"
PASSWORD = "words of a person"
AS_ANNA = "setpriv --reuid=anna --regid=larder-people --init-groups"


@pytest.fixture(scope="module")
def family(appliance, visitor) -> str:
    """A pool with the exported folder tank/family, mounted by an NFS client in the box itself; the folder's guid."""
    sharing.make_pool(appliance, "tank", "family", "games")
    sharing.make_person(visitor, "anna")
    appliance.shell("zfs create tank/family/inner; echo x > /tank/family/inner/x; zfs snapshot tank/family/inner@s")
    appliance.shell(
        "mkdir -p /outside && stat -c '%a %u %g %n' /etc /outside > /root/before && ls /etc >> /root/before"
    )
    key = protocols.share(appliance, visitor, "tank/family", nfs={"hosts": list(protocols.NETWORKS)})
    appliance.shell("mkdir -p /mnt/nfs && mount -t nfs -o vers=4.2 127.0.0.1:/tank/family /mnt/nfs", timeout=180)
    return key


def mounts(appliance) -> list[str]:
    """What of ZFS is mounted where."""
    lines = appliance.run("cat", "/proc/mounts").splitlines()
    return sorted(" ".join(line.split()[:2]) for line in lines if line.split()[2] == "zfs")


def plant(appliance, name: str, target: str = "/etc") -> None:
    """Create a link as a client; the NFS server refuses writes in its first moments."""
    link = f"{AS_ANNA} ln -sfn {target} /mnt/nfs/{name}"
    wait_for("the link", lambda: appliance.shell(f"{link} && echo made || true").strip() == "made", timeout=240)
    assert appliance.run("readlink", f"/tank/family/{name}").strip() == target


def nothing_happened(appliance, before: list[str]) -> None:
    assert mounts(appliance) == before
    appliance.shell(
        "stat -c '%a %u %g %n' /etc /outside > /root/after && ls /etc >> /root/after && cmp /root/before /root/after"
    )


def said_by(visitor, answer) -> str:
    """What the job of an act says, or the page where it begins none."""
    if "/jobs/" not in answer.url:
        return answer.words
    return visitor.ended(answer.url.split("/jobs/")[1].strip("/"), timeout=300)


def test_create_at_a_planted_link_is_refused(appliance, visitor, family):
    before = mounts(appliance)
    plant(appliance, "made")
    answer = visitor.post("/folders/new/", parent="tank/family", name="made", preset="general", limit="", key="")
    assert "symbolic link" in said_by(visitor, answer)
    nothing_happened(appliance, before)
    assert "tank/family/made" not in appliance.run("zfs", "list", "-H", "-o", "name").split()


def test_move_to_a_planted_link_is_refused_and_the_folder_stays_where_it_was(appliance, visitor, family):
    before = mounts(appliance)
    plant(appliance, "games")
    visitor.wait_until("/folders/", "tank/games", timeout=60)
    review = visitor.get(f"/folders/{guid(appliance, 'tank/games')}/rename/?answered=1&parent=tank/family&name=games")
    assert "symbolic link" in visitor.ended(visitor.confirm(review), timeout=300)
    nothing_happened(appliance, before)
    assert "tank/games /tank/games" in before


def test_clone_to_a_planted_link_is_refused(appliance, visitor, family):
    before = mounts(appliance)
    plant(appliance, "copy")
    at = f"/snapshots/of/{guid(appliance, 'tank/family/inner')}/"
    snapshot = guid(appliance, "tank/family/inner@s")
    visitor.wait_until(at, " s ", timeout=120)
    assert "symbolic link" in said_by(visitor, visitor.post(f"{at}{snapshot}/clone/", name="copy"))
    nothing_happened(appliance, before)


def test_home_at_a_planted_link_is_refused(appliance, visitor, family):
    before = mounts(appliance)
    plant(appliance, "carl")
    with pytest.raises(AssertionError, match="symbolic link"):
        make(visitor, "carl", PASSWORD, home="tank/family")
    nothing_happened(appliance, before)


def test_mount_and_serve_again_at_a_planted_link_are_refused(appliance, visitor, family):
    inner = guid(appliance, "tank/family/inner")
    appliance.shell("zfs unmount tank/family/inner; rmdir /tank/family/inner 2>/dev/null || true")
    before = mounts(appliance)
    plant(appliance, "inner")
    visitor.wait_until(f"/folders/{inner}/", "not mounted", timeout=60)
    job = visitor.confirm(visitor.get(f"/folders/{inner}/do/mount/"))
    assert "symbolic link" in visitor.ended(job, timeout=300)
    assert "symbolic link" in protocols.serve(visitor, inner, "nfs")
    nothing_happened(appliance, before)
    appliance.run("rm", "/tank/family/inner")
    moving.done(visitor, visitor.get(f"/folders/{inner}/do/mount/"))
    assert appliance.run("cat", "/tank/family/inner/x") == "x\n"


def test_folder_made_beside_the_links_is_mounted_and_belongs_to_people(appliance, visitor, family):
    answer = visitor.post("/folders/new/", parent="tank/family", name="plain", preset="general", limit="", key="")
    assert said_by(visitor, answer).startswith("Done")
    assert appliance.run("stat", "-c", "%a %G", "/tank/family/plain").split() == ["2770", "larder-people"]
    assert prop(appliance, "canmount", "tank/family/plain") == "on"
    assert "tank/family/plain /tank/family/plain" in mounts(appliance)


def test_unlock_while_its_folder_is_swapped_for_a_link_mounts_nowhere_else(appliance, visitor, family):
    """A loop of a user with write access replaces the folder by a link and back, as fast as it can."""
    review = visitor.post(
        "/folders/new/", parent="tank/family", name="vault", preset="general", limit="", key="passphrase"
    )
    moving.done(visitor, review, secret=WORDS, again=WORDS)
    key = guid(appliance, "tank/family/vault")
    appliance.put("/tank/family/vault/letter.txt", "dear anna\n")
    swap = (
        "import contextlib, itertools, os\n"
        "os.chdir('/tank/family')\n"
        "for turn in itertools.count():\n"
        "    with contextlib.suppress(OSError): os.rmdir('vault')\n"
        "    with contextlib.suppress(OSError): os.symlink('/outside', 'vault')\n"
        "    with contextlib.suppress(OSError): os.unlink('vault')\n"
        "    with contextlib.suppress(OSError): os.mkdir('vault')\n"
        "    if turn % 1000 == 0: open('/tmp/link-swaps', 'w').write(str(turn))\n"
    )
    appliance.put("/tmp/link-swap.py", swap)
    for _turn in range(3):
        visitor.wait_until(f"/folders/{key}/key/", "Lock tank/family/vault", timeout=120)
        moving.done(visitor, visitor.get(f"/folders/{key}/key/lock/"))
        visitor.wait_until("/folders/", "Unlock everything", timeout=120)
        appliance.shell("rm -f /tmp/link-swaps")
        appliance.run(
            "systemd-run",
            "-q",
            "--unit=link-swap",
            "-p",
            "User=anna",
            "-p",
            "Group=larder-people",
            "python3",
            "/tmp/link-swap.py",
        )
        try:
            wait_for("the swapping", lambda: int(appliance.run("cat", "/tmp/link-swaps", check=False) or 0) > 0)
            job = visitor.confirm(visitor.get("/folders/unlock-all/"), secret=WORDS)
            said = visitor.ended(job, timeout=300)
        finally:
            appliance.run("systemctl", "stop", "link-swap.service", check=False)
        at = [line for line in mounts(appliance) if line.startswith("tank/family/vault ")]
        assert at in ([], ["tank/family/vault /tank/family/vault"]), (at, said)
        assert appliance.run("ls", "-A", "/outside").strip() == ""
        if not at:
            assert "was not mounted" in said or "symbolic link" in said, said
            appliance.shell("rm -f /tank/family/vault 2>/dev/null || true")
            visitor.wait_until(f"/folders/{key}/", "not mounted", timeout=120)
            moving.done(visitor, visitor.get(f"/folders/{key}/do/mount/"))
        assert appliance.run("cat", "/tank/family/vault/letter.txt") == "dear anna\n"


def test_start_of_the_box_mounts_nothing_through_a_planted_link(appliance, visitor, family):
    """The link leads to an empty folder, which does not stop ``zfs mount -a``, not even with ``overlay=off``."""
    inner = guid(appliance, "tank/family/inner")
    appliance.shell("umount -f /mnt/nfs 2>/dev/null || true; zfs set overlay=off tank; zfs unmount tank/family/inner")
    appliance.shell("rm -rf /tank/family/inner; ln -s /outside /tank/family/inner; sync")
    appliance.reboot()
    at = mounts(appliance)
    assert "tank/family /tank/family" in at
    assert not any("/outside" in line or line.startswith("tank/family/inner ") for line in at)
    assert prop(appliance, "canmount", "tank/family/inner") == "noauto"
    appliance.run("rm", "/tank/family/inner")
    visitor.sign_in()
    visitor.wait_until(f"/folders/{inner}/", "not mounted", timeout=120)
    moving.done(visitor, visitor.get(f"/folders/{inner}/do/mount/"))
    assert prop(appliance, "canmount", "tank/family/inner") == "on"
