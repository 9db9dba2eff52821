"""A backup that is killed as one of its steps begins, or between two folders, or whose cut-off stream nothing can go on
with: what its copies end with stays known, and the next run sends what is missing, and that once."""

from __future__ import annotations

import re

import pytest

from deploy.image.machine import Machine, wait_for
from tests.system.backups.test_pool_to_pool import (  # noqa: F401  # fixtures
    COPY,
    TREE,
    growing,
    guids,
    newest,
    photos,
    run_now,
    start_now,
    sums,
    task,
    token,
)
from tests.system.crash import no_lock_left, struck, watching
from tests.system.sharing import key_of
from tests.visitor import Visitor

ORDER = sorted(TREE)  # in which a run copies them: photos, photos/secret, photos/trip 2019
PLACES = {"photos": "/tank/photos", "photos/secret": "/tank/photos/secret", "photos/trip 2019": "/tank/elsewhere"}
ALWAYS = "photos/secret"  # an encrypted folder is sent by each run: a new passphrase is nothing that was written


def known(appliance: Machine, dataset: str) -> set[str]:
    """The guids of a folder's bookmarks, which a copy can go on from whatever becomes of the snapshots."""
    return set(appliance.run("zfs", "list", "-H", "-p", "-t", "bookmark", "-d", "1", "-o", "guid", dataset).split())


def output(visitor: Visitor, job: str) -> str:
    return visitor.get(f"/jobs/{job}/").words.partition("Output")[2]


def sent(visitor: Visitor, job: str) -> list[str]:
    """The folders of which a run has sent a stream to its end, in their order."""
    words = output(visitor, job)
    found = {
        match.start(): name
        for name in TREE
        for match in re.finditer(rf"tank/{re.escape(name)}: [\d.,]+.\w+ sent in", words)
    }
    return [name for _at, name in sorted(found.items())]


def assert_complete(appliance: Machine) -> None:
    for name in TREE:
        source, copy = f"tank/{name}", f"safe/backups/{name}"
        assert guids(appliance, copy)[-1] in known(appliance, source)
        if name != ALWAYS:
            assert sums(appliance, newest(appliance, copy)) == sums(appliance, newest(appliance, source))
    rests = appliance.run("zfs", "get", "-H", "-r", "-t", "filesystem", "-o", "value", "receive_resume_token", COPY)
    assert set(rests.split()) == {"-"}


@pytest.mark.parametrize(
    ("entry", "step"),
    [
        ("step begun", "snapshot"),
        ("step begun", "photos"),
        ("step done", "photos"),
        ("step begun", "photos/trip 2019"),
        ("step begun", "check"),
    ],
)
def test_run_that_is_killed_is_completed_by_the_next_which_sends_nothing_twice(appliance, visitor, task, entry, step):  # noqa: F811
    for place in PLACES.values():
        appliance.shell(f"date +%s.%N > '{place}/killed'; sync")
    before = {name: guids(appliance, f"safe/backups/{name}") for name in TREE}
    name = f"copy-{key_of(appliance, f'tank/{step}')}" if step in TREE else step
    with watching(appliance, entry=entry, step=name, victim="agent") as watcher:
        job = start_now(visitor, task)
        struck(watcher)
    said = visitor.ended(job)
    if step != "check":  # the last one may be over before the kill arrives
        assert said.startswith("Interrupted."), said
    no_lock_left(appliance)
    reached = 0 if step == "snapshot" else len(ORDER) if step == "check" else ORDER.index(step) + (entry == "step done")
    arrived = {one for one in TREE if guids(appliance, f"safe/backups/{one}") != before[one]}
    assert arrived == set(ORDER[:reached])
    for one in TREE:
        assert guids(appliance, f"safe/backups/{one}")[-1] in known(appliance, f"tank/{one}")
    again, said = run_now(visitor, task)
    assert said.startswith("Done."), said
    assert sent(visitor, again) == [one for one in ORDER if one not in arrived or one == ALWAYS]
    assert_complete(appliance)


def cut_off(appliance: Machine, visitor: Visitor, task: str) -> str:  # noqa: F811
    """The snapshot of a run that was killed in the middle of its stream, of which the copy keeps what has arrived."""
    assert run_now(visitor, task)[1].startswith("Done.")
    appliance.shell("head -c 250000000 /dev/urandom > /tank/photos/large; sync; zpool sync tank")
    job = start_now(visitor, task)
    wait_for("some of it to have arrived", lambda: growing(appliance), timeout=120, every=0.1)
    appliance.run("systemctl", "kill", "--signal=KILL", "larder-agent", check=False)
    said = visitor.ended(job)
    assert "Done." not in said, said
    wait_for("the rest to be kept", lambda: token(appliance) != "-", timeout=60)
    return newest(appliance, "tank/photos")


@pytest.mark.parametrize("made_again", [False, True], ids=["destroyed", "made again by that name"])
def test_rest_of_a_snapshot_that_is_gone_is_discarded_once_and_the_increment_is_sent(
    appliance,
    visitor,
    task,  # noqa: F811
    made_again,
):
    gone = cut_off(appliance, visitor, task)
    before = guids(appliance, COPY)
    appliance.run("zfs", "destroy", gone)
    if made_again:
        appliance.run("zfs", "snapshot", gone)
    job, said = run_now(visitor, task)
    assert said.startswith("Done."), said
    words = output(visitor, job)
    assert words.count("no longer fits, so it is discarded") == 1, words
    assert not re.search(r"zfs send (-\w )*-t ", words), words
    assert re.search(r"zfs send -L -e -c -i \S+ -- tank/photos@larder-backup-\S+ \| zfs receive", words), words
    assert sent(visitor, job).count("photos") == 1
    assert guids(appliance, COPY)[-1] not in before
    assert_complete(appliance)
    if made_again:
        assert gone.partition("@")[2] in appliance.run(
            "zfs", "list", "-H", "-t", "snapshot", "-o", "name", "tank/photos"
        )
        appliance.run("zfs", "destroy", gone)  # no run has taken it, so none takes it away
    appliance.shell("date > /tank/photos/after; sync")
    job, said = run_now(visitor, task)
    assert said.startswith("Done."), said
    assert "is discarded" not in output(visitor, job)
    assert_complete(appliance)
