"""Burn-in of real (virtual) disks of a few hundred MB: clean ones pass, bad ones are refused,
and nothing stops it for good.

A virtual SCSI disk supports no self-tests and tells no counts, so these are of writing and reading back; the last one
is of the self-tests of a virtual ATA disk.
"""

from __future__ import annotations

import html
import re
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager

from appliance.burn_in.regions import split_disk
from deploy.image.machine import MIB, Machine
from tests.system import moving
from tests.system.crash import no_lock_left, struck, watching
from tests.visitor import Answer, Visitor, disk_paths

SIZE = 256 * MIB
TOTAL = len(split_disk(SIZE))
ENDS = ("No fault was found", "Something needs a look", "Do not use this disk", "It has stopped here")


def new_disk(appliance: Machine, visitor: Visitor, name: str, unreadable: int | None = None) -> str:
    """Plug an empty disk in; its key once the pages know it."""
    appliance.insert(name, SIZE, serial=serial(name), unreadable=unreadable)
    return moving.disk_key(visitor, serial(name))


def serial(name: str) -> str:
    return f"{name.upper()}0001"


def review(visitor: Visitor, key: str, how: str = "write") -> Answer:
    return visitor.get(f"/disks/{key}/burn-in/?" + urllib.parse.urlencode({"answered": 1, "how": how, "rate": 0}))


def begin(visitor: Visitor, key: str, how: str = "write") -> str:
    """Confirm the review; the address of the burn-in."""
    page = review(visitor, key, how)
    assert page.status == 200, page.words
    word = re.search(r'class="to-type">([^<]*)<', page.text)
    typed = {"typed": html.unescape(word[1])} if word else {}
    answer = visitor.send(f"/disks/{key}/burn-in/start/", {**page.hidden(), **typed})
    assert re.search(r"/disks/burn-ins/[0-9a-f-]{36}/$", answer.url), answer.words
    return urllib.parse.urlsplit(answer.url).path


def ended(visitor: Visitor, path: str) -> str:
    """What the page says once there is a verdict, or somebody has to do something."""

    def look(page: Answer) -> str:
        return page.words if any(end in page.words for end in ENDS) else ""

    return str(visitor.watch(path, look, timeout=300, every=2))


def act(visitor: Visitor, path: str, what: str) -> None:
    visitor.send(f"{path}act/{what}/", {**visitor.get(path).hidden()})


@contextmanager
def slowed(appliance: Machine, name: str) -> Iterator[None]:
    """While the body runs, the disk moves 4 MiB a second."""
    appliance.monitor(f"block_set_io_throttle drive-{name} {4 * MIB} 0 0 0 0 0")
    try:
        yield
    finally:
        if appliance.running():  # a power cut in the body has taken the disk away
            appliance.monitor(f"block_set_io_throttle drive-{name} 0 0 0 0 0 0")


BEGUN = """
import glob, json, os
for path in sorted(glob.glob("/var/lib/larder-agent/journal/*"), key=os.path.getmtime):
    for line in open(path):
        operation = json.loads(line).get("operation") or {}
        if operation.get("kind") == "burn-in-disk":
            print(operation["disk"], operation.get("first", 0))
            break
"""


def begun_at(appliance: Machine, name: str) -> list[int]:
    """The first region of each job that wrote to a disk, in the order of the agent's journals."""
    lines = appliance.run("python3", "-c", BEGUN).splitlines()
    return [int(line.split()[1]) for line in lines if serial(name) in line]


def is_zero(appliance: Machine, name: str, at: int, length: int) -> bool:
    device = f"/dev/{appliance.device_of(serial(name))}"
    done = appliance.shell(f"cmp -n {length} -i {at}:0 {device} /dev/zero && echo same || true")
    return done.strip().endswith("same")


def test_clean_disk_passes_and_is_empty_for_a_pool_afterwards(visitor, appliance):
    key = new_disk(appliance, visitor, "clean")
    path = begin(visitor, key)
    said = ended(visitor, path)
    assert "No fault was found" in said, said
    assert f"{TOTAL} of {TOTAL}" in said, said
    assert "Speed over the length of the disk" in said
    assert is_zero(appliance, "clean", 0, 16 * MIB)
    assert is_zero(appliance, "clean", SIZE - 16 * MIB, 16 * MIB)
    assert not is_zero(appliance, "clean", 64 * MIB, MIB)
    no_lock_left(appliance)
    by_id = f"/dev/disk/by-id/{key}"
    wizard = visitor.get("/pools/new/?" + urllib.parse.urlencode({"step": "disks", "name": "quick", "disks": by_id}))
    assert re.search(r"Tested \d+ \w+ \d+, clean\.", wizard.words), wizard.words
    assert "Never tested here." in wizard.words
    job = visitor.confirm(visitor.review_pool("quick", [by_id], "stripe-1"))
    assert visitor.ended(job, timeout=300).startswith("Done.")
    assert review(visitor, key).status == 409
    appliance.run("zpool", "destroy", "quick")


def test_disk_that_cannot_be_read_at_a_place_is_refused_with_the_region_named(visitor, appliance):
    at = 100 * 10**6 // 512 * 512
    key = new_disk(appliance, visitor, "bad", unreadable=at)
    said = ended(visitor, begin(visitor, key))
    assert "Do not use this disk" in said, said
    named = re.search(
        r"Region \d+ \((\d+) MB to (\d+) MB\) could not be read back; the first bad place is at byte (\d+)", said
    )
    assert named, said
    assert int(named[1]) <= 100 <= int(named[2])
    assert at - MIB < int(named[3]) <= at
    assert f"{TOTAL} of {TOTAL}" in said  # one bad place does not hide what the rest is like
    wizard = visitor.get("/pools/new/?" + urllib.parse.urlencode({"step": "disks", "name": "fresh"}))
    assert re.search(r"Tested \d+ \w+ \d+, and it failed\.", wizard.words), wizard.words


def test_disk_with_a_slow_region_is_refused_with_the_region_named(visitor, appliance):
    key = new_disk(appliance, visitor, "slow")
    with slowed(appliance, "slow"):
        path = begin(visitor, key)
        visitor.wait_until(path, f"Region 6 of {TOTAL}", timeout=300)
        appliance.monitor(f"block_set_io_throttle drive-slow {MIB // 2} 0 0 0 0 0")
        visitor.wait_until(path, f"Region 7 of {TOTAL}", timeout=300)
    said = ended(visitor, path)
    assert "Do not use this disk" in said, said
    assert re.search(r"Region 6 \(\d+ MB to \d+ MB\) is slow", said), said
    assert "could not be" not in said


def test_killed_agent_goes_on_with_the_region_that_was_interrupted(visitor, appliance):
    key = new_disk(appliance, visitor, "killed")
    with watching(appliance, entry="step begun", step="region-3", victim="agent") as watcher:
        path = begin(visitor, key)
        struck(watcher)
    said = ended(visitor, path)
    assert "No fault was found" in said, said
    assert begun_at(appliance, "killed")[:2] == [0, 3]
    no_lock_left(appliance)


def test_killed_worker_goes_on(visitor, appliance):
    key = new_disk(appliance, visitor, "orphan")
    with watching(appliance, entry="step begun", step="region-2", victim="worker") as watcher:
        path = begin(visitor, key)
        struck(watcher)
    assert "No fault was found" in ended(visitor, path)


def test_disk_that_holds_data_is_refused_before_and_in_the_middle(visitor, appliance):
    key = new_disk(appliance, visitor, "full")
    device = f"/dev/{appliance.device_of(serial('full'))}"
    with slowed(appliance, "full"):
        path = begin(visitor, key)
        visitor.wait_until(path, f"Region 2 of {TOTAL}", timeout=300)
        act(visitor, path, "pause")
        visitor.wait_until(path, "paused", "Resume", timeout=120)
    no_lock_left(appliance)
    appliance.shell(f"mkswap {device}; sync")
    mark = appliance.shell(f"sha256sum {device}")
    act(visitor, path, "resume")
    said = ended(visitor, path)
    assert "It has stopped here" in said, said
    assert "swap" in said, said
    assert appliance.shell(f"sha256sum {device}") == mark
    act(visitor, path, "stop")
    visitor.wait_until(path, "It was stopped before the end", timeout=120)
    visitor.wait_until(f"/disks/{key}/", "swap", timeout=120)
    refused = review(visitor, key)
    assert refused.status == 409
    assert "Only an empty disk" in refused.words
    assert appliance.shell(f"sha256sum {device}") == mark


def test_pulled_disk_waits_with_the_reason_and_goes_on_when_it_is_back(visitor, appliance):
    key = new_disk(appliance, visitor, "pulled")
    name = appliance.device_of(serial("pulled"))
    host = appliance.shell(f"basename $(readlink -f /sys/block/{name}/device/../..)").strip()
    with slowed(appliance, "pulled"):
        path = begin(visitor, key)
        visitor.wait_until(path, f"Region 3 of {TOTAL}", timeout=300)
        appliance.shell(f"echo 1 > /sys/block/{name}/device/delete")
    said = ended(visitor, path)
    assert "It has stopped here" in said, said
    assert "no longer" in said, said
    assert f"2 of {TOTAL} regions" in said, said
    assert not appliance.shell("find /dev -xdev -type f -size +1M").strip()  # fio made no file in its place
    appliance.shell(f"echo '- - -' > /sys/class/scsi_host/{host}/scan")
    visitor.wait_until("/disks/", serial("pulled"), timeout=120)
    act(visitor, path, "resume")
    assert "No fault was found" in ended(visitor, path)
    assert begun_at(appliance, "pulled")[:2] == [0, 2]


def test_power_cut_goes_on_when_the_disk_is_there(visitor, appliance):
    key = new_disk(appliance, visitor, "cut")
    with slowed(appliance, "cut"):
        path = begin(visitor, key)
        visitor.wait_until(path, f"Region 3 of {TOTAL}", timeout=300)
        appliance.cut_power()
    appliance.power_on()
    appliance.insert("cut", SIZE, serial=serial("cut"))
    visitor.sign_in()
    visitor.wait_until("/disks/", serial("cut"), timeout=120)
    said = ended(visitor, path)
    if "It has stopped here" in said:  # it was looked for before it was plugged in again
        assert "no longer there" in said, said
        act(visitor, path, "resume")
        said = ended(visitor, path)
    assert "No fault was found" in said, said


def test_self_tests_of_a_disk_are_run_and_told_without_a_write(visitor, appliance):
    (disk,) = disk_paths(appliance, 2)
    before = appliance.shell("cat /sys/block/$(basename $(readlink -f " + disk + "))/stat").split()[6]
    said = ended(visitor, begin(visitor, disk.rsplit("/", 1)[-1], "tests"))
    assert "Do not use this disk" not in said, said
    assert "Short passed" in said, said
    assert "Long passed" in said, said
    assert "It was not written to" in said or "Something needs a look" in said
    assert appliance.shell("cat /sys/block/$(basename $(readlink -f " + disk + "))/stat").split()[6] == before
