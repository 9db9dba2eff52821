"""A restore is tested from another computer over real ssh: every file is compared, what is different is told with its
path, and nothing stays, also after a kill. The other computer is this one by loopback, as in ``test_over_ssh.py``."""

from __future__ import annotations

import re

import pytest

from deploy.image.machine import Machine, wait_for
from tests.system import moving
from tests.system.backups.test_over_ssh import (  # noqa: F401  # fixtures
    COPY,
    answers,
    photos,
    remote,
    start_sshd,
    task,
    there,
)
from tests.system.backups.test_pool_to_pool import PHRASE, run_now
from tests.system.backups.test_proof import drill, everything
from tests.system.sharing import key_of
from tests.visitor import Visitor, disk_paths

LABELS = 4 * 2**20  # bytes at the beginning of a disk of a pool, from which zdb does not count


def result(visitor: Visitor, job: str) -> str:
    """What a test has noted, as the job's page shows it."""
    words = visitor.get(f"/jobs/{job}/").words
    found = re.search(r"rehearsed \{[^}]*\}", words)
    assert found, words
    return found[0]


def test_restore_is_tested_with_every_file_and_nothing_stays(appliance, visitor, task):  # noqa: F811
    before, copies = everything(appliance), there(appliance)
    review = visitor.wait_until(f"{task}drill/", "What will happen", timeout=180)
    assert "fetched from 127.0.0.1" in review.words and "send photos NEWEST large" in review.words
    job = drill(visitor, task)
    said = visitor.ended(job)
    assert said.startswith("Done."), said
    found = result(visitor, job)
    assert '"parts":3,' in found and '"different":0' in found and '"skipped":["tank/photos/secret"]' in found, found
    assert '"files":4,' in found, found  # one and two in both folders that are not encrypted
    assert (everything(appliance), there(appliance)) == (before, copies)
    page = visitor.wait_until(task, "Restored as a test", "came back in", timeout=90)
    assert "· restored as a test" in page.words and "Not compared: tank/photos/secret" in page.words


def test_encrypted_copy_is_opened_with_the_stored_key(appliance, visitor, task):  # noqa: F811
    at = f"/folders/{key_of(appliance, 'tank/photos/secret')}/key/"
    visitor.wait_until(at, "Lock tank/photos/secret", timeout=90)
    moving.done(visitor, visitor.get(f"{at}keep/"), secret=PHRASE)
    before = everything(appliance)
    try:
        visitor.wait_until(f"{task}drill/", "opened with the key that this box stores", timeout=90)
        job = drill(visitor, task)
        assert visitor.ended(job).startswith("Done.")
        found = result(visitor, job)
        assert '"files":6,' in found and '"skipped":[],' in found and '"more_skipped":0,' in found, found
        assert everything(appliance) == before
    finally:
        visitor.wait_until(at, "Remove the key from this box", timeout=90)
        moving.done(visitor, visitor.get(f"{at}forget/"))


def test_computer_that_does_not_answer_ends_it_before_anything_is_made(appliance, visitor, task):  # noqa: F811
    before = everything(appliance)
    appliance.shell("kill $(cat /run/peer.pid)")
    try:
        wait_for("the port to be free", lambda: not answers(appliance), timeout=60)
        said = visitor.ended(drill(visitor, task))
        assert "Nothing answers" in said, said
        assert everything(appliance) == before
    finally:
        appliance.shell("rm -f /run/peer.pid")  # so that nobody else is ended in its place
        start_sshd(appliance, "/root/first_key")


def test_restore_that_is_killed_leaves_nothing_for_long(appliance, visitor, task):  # noqa: F811
    appliance.shell("head -c 150000000 /dev/urandom > /tank/photos/large; sync; zpool sync tank")
    assert run_now(visitor, task)[1].startswith("Done.")
    before = everything(appliance)
    job = drill(visitor, task)
    wait_for("some of it to have arrived", lambda: arrived(appliance) > 5_000_000, timeout=180, every=0.1)
    assert "larder-ssh" in appliance.shell("ps -o user:20= -C ssh")
    appliance.run("systemctl", "kill", "--signal=KILL", "larder-agent", check=False)
    said = visitor.ended(job)
    assert "Done." not in said and "Larder removes it" in said, said
    wait_for("what it left to be removed", lambda: everything(appliance) == before, timeout=180, every=2)
    said = visitor.ended(drill(visitor, task))
    assert said.startswith("Done."), said
    assert everything(appliance) == before


def arrived(appliance: Machine) -> int:
    """Bytes in what a test restores to; 0 while that is not there."""
    said = appliance.run("zfs", "list", "-H", "-p", "-o", "name,used", "-d", "1", "tank")
    found = re.search(r"^tank/drill-\w+\t(\d+)$", said, re.MULTILINE)
    return int(found[1]) if found else 0


@pytest.fixture
def spoilt(appliance: Machine, visitor: Visitor, task: str) -> str:  # noqa: F811
    """A file of the copy with other bytes than its original, which ZFS gives back as if they were right: its blocks
    were written without checksums there (zfsprops(7)), and one of them was overwritten on the disk."""
    appliance.run("zfs", "set", "checksum=off", COPY)
    appliance.shell("head -c 131072 /dev/urandom > /tank/photos/spoilt; sync; zpool sync tank")
    assert run_now(visitor, task)[1].startswith("Done.")
    appliance.run("zpool", "sync", "safe")
    number = appliance.run("stat", "-c", "%i", "/tank/photos/spoilt").strip()  # the same in every copy
    said = appliance.run("zdb", "-dddddd", COPY, number)
    found = re.search(r"^\s*0\s+L0 0:([0-9a-f]+):20000", said, re.MULTILINE)
    assert found, said
    (disk,) = disk_paths(appliance, 2)
    wait_for(
        "the pool to be let go of",
        lambda: "gone" in appliance.shell("zpool export safe && echo gone || true"),
        timeout=60,
    )
    first = (int(found[1], 16) + LABELS) // 4096
    appliance.shell(f"dd if=/dev/urandom of={disk}-part1 bs=4096 seek={first} count=1 conv=notrunc,fsync status=none")
    appliance.run("zpool", "import", "-d", "/dev/disk/by-id", "safe")  # nothing of it is in memory any more
    return "spoilt"


def test_difference_is_told_with_its_path_and_nothing_stays(appliance, visitor, spoilt, task):  # noqa: F811
    visitor.wait_until("/pools/", "safe", timeout=90)
    before = everything(appliance)
    job = drill(visitor, task)
    said = visitor.ended(job)
    assert "Differences between tank/photos and what its copy restores (1)" in said, said
    assert f"{spoilt}: has different contents" in said, said
    assert '"different":1' in result(visitor, job)
    assert everything(appliance) == before
    visitor.wait_until(task, "restores differently", f"{spoilt}: has different contents", timeout=120)
    visitor.wait_until("/alerts/", "The backup of tank/photos does not restore what it should", spoilt, timeout=120)
