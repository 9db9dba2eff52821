"""NFS with real clients: libnfs from outside, the kernel's own inside over version 3 and 4."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from deploy.image.machine import free_port, wait_for
from tests.system import protocols, sharing
from tests.system.protocols import MIB, NETWORKS

STATE = "pool"


@pytest.fixture(scope="module")
def photos(appliance, visitor) -> str:
    """The folder tank/photos, exported to the emulator's network and to the box itself; its guid."""
    sharing.make_pool(appliance, "tank", "photos", "private", "films")
    sharing.make_person(visitor, "anna")
    return protocols.share(appliance, visitor, "tank/photos", nfs={"hosts": list(NETWORKS)})


def url(appliance, path: str, way: str = "version=4") -> str:
    """libnfs's address of a path, as anna."""
    uid, gid = (appliance.run("id", flag, "anna").strip() for flag in ("-u", "-g"))
    return f"nfs://127.0.0.1{path}?{way}&nfsport={appliance.ports['nfs']}&uid={uid}&gid={gid}"


@pytest.fixture(scope="module")
def version_3(appliance, photos) -> str:
    """The way in over version 3 from outside: mountd's port, which is another at each start, is led through, too."""
    listed = [line.split() for line in appliance.run("rpcinfo", "-p").splitlines()]
    inside = next(line[3] for line in listed if line[:3] == ["100005", "3", "tcp"])
    port = free_port()
    assert not appliance.monitor(f"hostfwd_add tcp:127.0.0.1:{port}-:{inside}").strip()
    return f"version=3&mountport={port}"


def outside(*argv: str, timeout: float = 300) -> subprocess.CompletedProcess[str]:
    return subprocess.run(argv, capture_output=True, text=True, timeout=timeout, check=False)


def test_256_mib_go_there_and_back_from_outside(appliance, version_3, tmp_path: Path):
    """Over version 3: libnfs 4.0 cannot encode a write of version 4 of 4 KiB; of 1 KiB it can."""
    sent, received = tmp_path / "sent", tmp_path / "received"
    sent.write_bytes(protocols.content(256 * MIB))
    there = url(appliance, "/tank/photos/holiday.raw", version_3)
    done = outside("nfs-cp", str(sent), there)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "holiday.raw" in outside("nfs-ls", url(appliance, "/tank/photos", version_3)).stdout
    done = outside("nfs-cp", there, str(received))
    assert done.returncode == 0, done.stdout + done.stderr
    assert protocols.digest(received.read_bytes()) == protocols.digest(sent.read_bytes())
    assert appliance.run("sha256sum", "/tank/photos/holiday.raw", timeout=300).split()[0] == protocols.digest(
        sent.read_bytes()
    )


def test_over_version_4_a_client_outside_reads_and_writes_too(appliance, photos, tmp_path: Path):
    sent, received = tmp_path / "sent", tmp_path / "received"
    sent.write_bytes(protocols.content(500))
    there = url(appliance, "/tank/photos/note.txt")
    # The server lets nobody open a file in its first moments: it waits for clients of before.
    wait_for("the first file", lambda: not outside("nfs-cp", str(sent), there).returncode, timeout=240)
    assert "note.txt" in outside("nfs-ls", url(appliance, "/tank/photos")).stdout
    assert outside("nfs-cp", there, str(received)).returncode == 0
    assert received.read_bytes() == sent.read_bytes()


@pytest.mark.parametrize("version", ["3", "4.2"])
def test_the_kernels_own_client_writes_and_reads(appliance, photos, version):
    as_anna = "setpriv --reuid=anna --regid=larder-people --init-groups"
    appliance.shell(f"mkdir -p /mnt/nfs && mount -t nfs -o vers={version} 127.0.0.1:/tank/photos /mnt/nfs", timeout=180)
    try:
        appliance.shell(
            f"{as_anna} dd if=/dev/urandom of=/mnt/nfs/kernel-{version} bs=1M count=256 conv=fsync", timeout=400
        )
        appliance.shell("umount /mnt/nfs && echo 3 > /proc/sys/vm/drop_caches")
        appliance.shell(f"mount -t nfs -o vers={version} 127.0.0.1:/tank/photos /mnt/nfs", timeout=180)
        read = appliance.shell(f"{as_anna} sha256sum /mnt/nfs/kernel-{version}", timeout=400)
        assert read.split()[0] == appliance.run("sha256sum", f"/tank/photos/kernel-{version}").split()[0]
        assert f"vers={version}" in appliance.shell("grep /mnt/nfs /proc/mounts")
    finally:
        appliance.shell("umount -f /mnt/nfs || true")


@pytest.fixture(scope="module")
def films(appliance, visitor, photos) -> str:
    """The folder tank/films, exported by its form as the form proposes it; its guid."""
    guid = sharing.key_of(appliance, "tank/films")
    page = visitor.wait_until(f"/shares/{guid}/nfs/", "Everybody counts as anna", timeout=120)
    assert re.search(r'value="anna"\s+selected', page.text)
    answers = {"hosts": "\n".join(NETWORKS), "write": "on", "sync": "on", "everybody_as": "anna"}
    answer = visitor.send(f"/shares/{guid}/nfs/", {**page.hidden(), **answers})
    said = visitor.ended(sharing.job_in(answer), timeout=300)
    assert said.startswith("Done."), said
    return guid


def test_with_the_defaults_an_ordinary_user_outside_reads_and_writes(appliance, visitor, films, tmp_path: Path):
    """As a media player or the first user of a computer does, who has no number of this box."""
    sent = tmp_path / "sent"
    sent.write_bytes(protocols.content(500))
    there = f"nfs://127.0.0.1/tank/films/film.txt?version=4&nfsport={appliance.ports['nfs']}&uid=1000&gid=1000"
    folder = there.replace("/film.txt", "")
    wait_for("the first file", lambda: not outside("nfs-cp", str(sent), there).returncode, timeout=240)
    assert "film.txt" in outside("nfs-ls", folder).stdout
    read = subprocess.run(["nfs-cat", there], capture_output=True, timeout=300, check=True)
    assert read.stdout == sent.read_bytes()
    assert appliance.run("stat", "-c", "%U:%G", "/tank/films/film.txt").strip() == "anna:larder-people"
    visitor.send(f"/shares/{films}/nfs/look/", {**visitor.get(f"/shares/{films}/nfs/why/").hidden(), "person": ""})
    visitor.wait_until(f"/shares/{films}/nfs/why/", "anna can read and change the folder", timeout=120)


def test_why_says_that_an_ordinary_user_cannot_open_a_folder_shared_by_number(appliance, visitor, photos):
    stranger = f"nfs://127.0.0.1/tank/photos?version=4&nfsport={appliance.ports['nfs']}&uid=1000&gid=1000"
    assert outside("nfs-ls", stranger).returncode != 0
    visitor.send(f"/shares/{photos}/nfs/look/", {**visitor.get(f"/shares/{photos}/nfs/why/").hidden(), "person": ""})
    visitor.wait_until(
        f"/shares/{photos}/nfs/why/", "A user with the number 1000 cannot open /tank/photos", timeout=120
    )
    visitor.send(
        f"/shares/{photos}/nfs/look/", {**visitor.get(f"/shares/{photos}/nfs/why/").hidden(), "person": "anna"}
    )
    visitor.wait_until(f"/shares/{photos}/nfs/why/?person=anna", "anna can read and change the folder", timeout=120)


def test_root_of_another_computer_is_nobody_here(appliance, photos):
    appliance.shell("mkdir -p /mnt/nfs && mount -t nfs -o vers=4.2 127.0.0.1:/tank/photos /mnt/nfs", timeout=180)
    try:
        assert appliance.shell("touch /mnt/nfs/as-root 2>/dev/null && echo made || echo refused").strip() == "refused"
    finally:
        appliance.shell("umount -f /mnt/nfs || true")


def test_the_server_itself_lists_what_the_file_says(appliance, photos):
    listed = appliance.run("exportfs", "-s")
    assert all(f"/tank/photos  {network}(" in listed for network in NETWORKS)
    assert "/tank/private" not in listed


def test_a_folder_that_is_not_exported_cannot_be_seen(appliance, photos):
    assert outside("nfs-ls", url(appliance, "/tank/private")).returncode != 0


def test_an_unmounted_folder_does_not_show_the_empty_place_beneath(appliance, photos):
    appliance.run("zfs", "unmount", "tank/photos")
    try:
        shown = appliance.shell(
            "mount -t nfs -o vers=4.2,retry=0 127.0.0.1:/tank/photos /mnt/nfs 2>&1 && echo mounted || echo refused",
            timeout=180,
        )
        assert "refused" in shown, shown
    finally:
        appliance.shell("umount -f /mnt/nfs 2>/dev/null || true")
        appliance.run("zfs", "mount", "tank/photos")


def test_why_finds_a_stopped_server_and_mends_it(appliance, visitor, photos):
    appliance.run("systemctl", "stop", "nfs-server")
    visitor.send(f"/shares/{photos}/nfs/look/", {**visitor.get(f"/shares/{photos}/nfs/why/").hidden(), "person": ""})
    visitor.wait_until(f"/shares/{photos}/nfs/why/", "The NFS server does not run", "Serve it again", timeout=120)
    said = protocols.serve(visitor, photos, "nfs")
    assert said.startswith("Done"), said
    assert "/tank/photos" in appliance.run("exportfs", "-s")
    visitor.send(f"/shares/{photos}/nfs/look/", {**visitor.get(f"/shares/{photos}/nfs/why/").hidden(), "person": ""})
    visitor.wait_until(f"/shares/{photos}/nfs/why/", "The NFS server serves the folder", timeout=120)


def test_why_finds_an_unmounted_folder_and_mends_it(appliance, visitor, photos):
    appliance.run("zfs", "unmount", "tank/photos")
    visitor.wait_until(f"/folders/{photos}/", "not mounted", timeout=120)
    visitor.send(f"/shares/{photos}/nfs/look/", {**visitor.get(f"/shares/{photos}/nfs/why/").hidden(), "person": ""})
    visitor.wait_until(f"/shares/{photos}/nfs/why/", "The folder is not mounted", timeout=120)
    said = protocols.serve(visitor, photos, "nfs")
    assert said.startswith("Done"), said
    assert appliance.run("zfs", "get", "-H", "-o", "value", "mounted", "tank/photos").strip() == "yes"


def test_the_systems_own_exports_are_left_as_they_are(appliance, photos):
    changed = appliance.run("dpkg", "--verify", "nfs-kernel-server", check=False)
    assert not [line for line in changed.splitlines() if "/etc/" in line]
    assert "larder" not in appliance.run("cat", "/etc/exports")
