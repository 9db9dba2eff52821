"""A file system on a volume's disk, made and written by another computer: whole after the box has lost its power.

The other computer's initiator is the one of QEMU (libiscsi); its kernel sees an ordinary disk.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import threading
from pathlib import Path

import pytest

from appliance.shares.iscsi.part import PREFIX
from deploy.image import states
from deploy.image.machine import Machine, wait_for
from tests.system import initiators, sharing
from tests.visitor import Visitor

STATE = "pool"
PLACE = "/mnt/far"
AWAY = "/root/e2fs"
TOOLS = ("mke2fs", "e2fsck")
FILES_SEEN = 25  # before the cut

# Writes one file after the other, and names each with its digest once fsync of it and of its folder has returned.
WRITE = """
import hashlib, os, sys
place = sys.argv[1]
folder = os.open(place, os.O_RDONLY)
number = 0
while True:
    data = os.urandom(16 << 10)
    with open(f"{place}/{number}", "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.fsync(folder)
    print(number, hashlib.sha256(data).hexdigest(), flush=True)
    number += 1
"""


@pytest.fixture(scope="module")
def visitor(appliance):
    sharing.make_pool(appliance, "tank")
    return Visitor.of_new(appliance)


@pytest.fixture(scope="module")
def computer(layer):
    """Another computer. It happens to be a second box, of which only the kernel is used."""
    with states.borrow_machine(f"computer-{os.getpid()}", layer) as found:
        yield found


def bring_tools(computer: Machine) -> None:
    """The tools of this machine that make and check ext4, with the libraries they need: a box has none."""
    found = {path for name in TOOLS if (path := shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin:/sbin"))}
    assert len(found) == len(TOOLS), found
    for line in subprocess.run(["ldd", *found], check=True, capture_output=True, text=True).stdout.splitlines():
        library = re.search(r"=> (/\S+)", line)
        if library and not Path(library[1]).name.startswith(("libc.", "libpthread.")):
            found.add(library[1])
    for path in found:
        computer.put(f"{AWAY}/{Path(path).name}", Path(path).read_bytes(), mode="0755")
    computer.run("sync")  # its power goes, too


def tool(computer: Machine, name: str, *words: str) -> str:
    return computer.run("env", f"LD_LIBRARY_PATH={AWAY}", f"{AWAY}/{name}", *words, timeout=300)


def connect(computer: Machine, appliance: Machine, name: str) -> str:
    """Give the computer a volume's disk; its path there."""
    drive = (
        f"file.driver=iscsi,file.transport=tcp,file.portal={initiators.portal(appliance)},file.target={PREFIX}{name},"
        f"file.lun=0,file.initiator-name={initiators.INITIATOR},format=raw,cache=none,discard=unmap"
    )
    said = computer.monitor(f"drive_add 0 if=none,id=drive-{name},{drive}")
    assert said.strip() == "OK", said
    computer.qmp("device_add", driver="scsi-hd", id=name, drive=f"drive-{name}", serial=name.upper(), bus="vs.0")
    path = f"/dev/disk/by-id/scsi-0QEMU_QEMU_HARDDISK_{name.upper()}"
    wait_for(f"{name} to be there", lambda: computer.shell(f"ls {path} || true").strip() == path, timeout=60)
    return path


def write_until_cut(computer: Machine, cut: Machine) -> dict[str, str]:
    """Have the computer write, cut the power of the box in the middle and then its own.
    By name the digest of every file that was told to be lasting."""
    argv = [*computer.ssh_argv(), shlex.join(["python3", "-c", WRITE, PLACE])]
    writer = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    lasting: dict[str, str] = {}

    def collect() -> None:
        assert writer.stdout
        for line in writer.stdout:
            number, digest = line.split()
            lasting[number] = digest

    reader = threading.Thread(target=collect, daemon=True)
    reader.start()
    try:
        wait_for("files to be written", lambda: len(lasting) >= FILES_SEEN or writer.poll() is not None, timeout=300)
        assert writer.poll() is None, "writing has ended by itself"
        cut.cut_power()
        computer.cut_power()
        reader.join(60)
    finally:
        writer.kill()
        writer.wait()
    return dict(lasting)


def test_file_system_is_made_written_cut_off_and_checked(visitor, appliance, computer):
    key = initiators.make_volume(visitor, appliance, "tank/far", "256M")
    assert initiators.share(visitor, key, name="far").startswith("Done.")
    path = connect(computer, appliance, "far")
    bring_tools(computer)
    tool(computer, "mke2fs", "-q", "-t", "ext4", path)
    computer.run("mkdir", "-p", PLACE)
    computer.run("mount", path, PLACE)
    lasting = write_until_cut(computer, appliance)
    assert len(lasting) >= FILES_SEEN

    appliance.power_on()
    wait_for("the volume to be served again", lambda: "far" in initiators.listed(appliance), timeout=180)
    computer.power_on()
    path = connect(computer, appliance, "far")
    computer.run("mkdir", "-p", PLACE)
    computer.run("mount", path, PLACE)  # goes through the journal first
    found = dict(
        reversed(line.split()) for line in computer.shell(f"cd {PLACE}; sha256sum [0-9]*", timeout=300).splitlines()
    )
    assert {name: found.get(name) for name in lasting} == lasting
    computer.run("umount", PLACE)
    tool(computer, "e2fsck", "-f", "-n", path)  # fails where anything would have to be mended
    assert "errors: No known data errors" in appliance.run("zpool", "status", "tank")
