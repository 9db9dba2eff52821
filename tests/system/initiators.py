"""Computers outside the appliance that use its volumes over iSCSI: libiscsi's tools, through the forwarded port."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from appliance.shares.iscsi.part import PREFIX
from deploy.image.machine import Machine
from tests.system import sharing
from tests.visitor import Answer, Visitor

INITIATOR = "iqn.2007-10.com.github:sahlberg:libiscsi:desk"
TREE = "/sys/kernel/config/target"


def tried(program: str, *words: str, timeout: float = 300) -> tuple[int, str]:
    """What a tool said, and its status."""
    done = subprocess.run([program, *words], capture_output=True, text=True, timeout=timeout)
    return done.returncode, done.stdout + done.stderr


def portal(appliance: Machine) -> str:
    return f"127.0.0.1:{appliance.ports['iscsi']}"


def disk_url(
    appliance: Machine, name: str, *, user: str = "", secret: str = "", back: tuple[str, str] = ("", "")
) -> str:
    """The address of a volume’s disk, as libiscsi takes it.
    Secrets of tests have plain signs alone: none is encoded."""
    who = f"{user}%{secret}@" if user else ""
    mutual = f"?target_user={back[0]}&target_password={back[1]}" if back[0] else ""
    return f"iscsi://{who}{portal(appliance)}/{PREFIX}{name}/0{mutual}"


def listed(appliance: Machine, initiator: str = INITIATOR) -> set[str]:
    """The ends of the names of Larder's targets that a computer finds; none where nothing answers."""
    status, said = tried("iscsi-ls", "-i", initiator, f"iscsi://{portal(appliance)}/")
    words = said.replace(",", " ").split() if status == 0 else []
    return {word.partition(PREFIX)[2] for word in words if PREFIX in word}


def inquiry(url: str, *words: str, initiator: str = INITIATOR) -> tuple[int, str]:
    return tried("iscsi-inq", "-i", initiator, *words, url)


@dataclass(frozen=True)
class Conformance:
    """How many tests of a family of libiscsi's conformance tests ran, which failed, what was said, and by the names of
    those that passed over something what it was: the tool counts them as passed."""

    ran: int
    failed: frozenset[str]
    skipped: dict[str, str]
    said: str


def conformance(url: str, family: str) -> Conformance:
    # Only where it tells everything does it say at which test it is.
    _status, said = tried("iscsi-test-cu", "-v", "-d", "-t", f"SCSI.{family}", url, timeout=1200)
    print(said)
    ran = re.search(r"^\s*tests\s+\d+\s+(\d+)", said, re.MULTILINE)
    failed, skipped = set(), {}
    for name, told in re.findall(
        r"^  Test: (\S+) \.\.\.(.*?)(?=^  Test: |^Run Summary|\Z)", said, re.MULTILINE | re.DOTALL
    ):
        if not re.search(r"(?<!\[)\bpassed$", told, re.MULTILINE):
            failed.add(f"{family}.{name}")
        if reasons := dict.fromkeys(reason.strip() for reason in re.findall(r"\[SKIPPED\](.*)", told)):
            skipped[f"{family}.{name}"] = " ".join(reasons)
    return Conformance(int(ran[1]) if ran else 0, frozenset(failed), skipped, said)


def capacity(url: str) -> str:
    """What the disk says of its size, in bytes and sectors."""
    status, said = tried("iscsi-readcapacity16", url)
    assert status == 0, said
    return said


# Logs in and then only answers what the box asks from time to time, as an idle computer does; without answers LIO ends
# the session after 45 seconds. A line of its input has it say how large the disk is by now. Ends with its input.
IDLE = """
import ctypes, select, sys
from tests.system.iscsi_disk import NORMAL, Disk, library
lib = library()
initiator, target, portal = (word.encode() for word in sys.argv[1:])
session = ctypes.c_void_p(lib.iscsi_create_context(initiator))
lib.iscsi_set_targetname(session, target)
lib.iscsi_set_session_type(session, NORMAL)
lib.iscsi_set_noautoreconnect(session, 1)
if lib.iscsi_full_connect_sync(session, portal, 0):
    sys.exit(lib.iscsi_get_error(session).decode())
print("connected", flush=True)
handle, poll = lib.iscsi_get_fd(session), select.poll()
poll.register(sys.stdin, select.POLLIN | select.POLLHUP)
while True:
    poll.register(handle, lib.iscsi_which_events(session))
    found = dict(poll.poll(1000))
    if sys.stdin.fileno() in found:
        if not sys.stdin.readline():
            break
        print(Disk(session, 4096).capacity(), flush=True)
    if handle in found and lib.iscsi_service(session, found[handle]) < 0:
        sys.exit("disconnected")
"""


@contextmanager
def connected(appliance: Machine, name: str) -> Iterator[subprocess.Popen[bytes]]:
    """A computer that has the disk open, until the block ends."""
    argv = [sys.executable, "-c", IDLE, INITIATOR, f"{PREFIX}{name}", portal(appliance)]
    client = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert client.stdout
        assert client.stdout.readline() == b"connected\n"
        yield client
    finally:
        client.kill()
        client.communicate(timeout=30)


def capacity_seen(client: subprocess.Popen[bytes]) -> int:
    """The bytes of the disk as the computer that has it open sees it now."""
    assert client.stdin
    assert client.stdout
    client.stdin.write(b"capacity\n")
    client.stdin.flush()
    return int(client.stdout.readline())


def left_in_kernel(appliance: Machine) -> list[str]:
    """Larder's targets and disks in the kernel's tree."""
    said = appliance.run("find", f"{TREE}/core", f"{TREE}/iscsi", "-maxdepth", "2", check=False).splitlines()
    return [line for line in said if PREFIX in line or "/larder-" in line]


def left_of(appliance: Machine, name: str, key: str) -> list[str]:
    """What the kernel still has of one volume, and has noted of its reservations."""
    noted = appliance.run("find", "/var/target/pr", "-name", f"aptpl_{int(key):016x}", check=False).splitlines()
    return [line for line in left_in_kernel(appliance) if line.endswith(name) or f"{int(key):016x}" in line] + noted


def make_volume(visitor: Visitor, appliance: Machine, volume: str, size: str = "64M", *words: str) -> str:
    """A volume made by hand; the key of its page, which knows it."""
    appliance.run("zfs", "create", "-s", "-V", size, *words, volume)
    key = sharing.key_of(appliance, volume)
    visitor.wait_until(f"/folders/{key}/", "Disk for another computer", timeout=90)
    return key


def review_share(visitor: Visitor, key: str, **answers: object) -> Answer:
    """The review of a volume that is shared with these answers."""
    path = f"/folders/{key}/iscsi/"
    page = visitor.get(path)
    empty = {"initiators": "", "user": "", "back_user": "", "addresses": "", "block": "512"}
    return visitor.send(path, {**page.hidden(), **empty, **answers})


def share(visitor: Visitor, key: str, secrets: dict[str, str] | None = None, **answers: object) -> str:
    """Share a volume by its page; what the job said at the end."""
    return visitor.ended(visitor.confirm(review_share(visitor, key, **answers), **(secrets or {})))


def stop(visitor: Visitor, key: str) -> str:
    return visitor.ended(visitor.confirm(visitor.get(f"/folders/{key}/iscsi/stop/")))
