"""Proof that a copy is good, on real ZFS: a restore as a test, the key of an encrypted copy,
and what is half received."""

from __future__ import annotations

import re

import pytest

from appliance.snapshot_names import grain_of
from deploy.image.machine import Machine, wait_for
from tests.system import moving
from tests.system.backups.test_pool_to_pool import (  # noqa: F401  # fixtures
    COPY,
    PHRASE,
    guids,
    newest,
    photos,
    run_now,
    start_now,
    sums,
    task,
    token,
)
from tests.system.sharing import key_of
from tests.visitor import Visitor


def everything(appliance: Machine) -> list[str]:
    """What there is in both pools, without the snapshots that schedules take and prune meanwhile."""
    said = appliance.run("zfs", "list", "-H", "-o", "name", "-t", "all", "-r", "tank", "safe").splitlines()
    return [name for name in said if not grain_of(name.partition("@")[2])]


def drill(visitor: Visitor, task: str) -> str:  # noqa: F811
    """The id of a test of a restore that was begun."""
    visitor.wait_until(task, "Back up now", timeout=180)
    answer = visitor.get(f"{task}drill/")
    assert "What will happen" in answer.words, answer.words[:1500]
    return visitor.confirm(answer)


def test_restore_is_tested_with_every_file_and_nothing_stays(appliance, visitor, task):  # noqa: F811
    assert run_now(visitor, task)[1].startswith("Done.")
    before = everything(appliance)
    job = drill(visitor, task)
    said = visitor.ended(job)
    assert said.startswith("Done."), said
    words = visitor.get(f"/jobs/{job}/").words
    assert re.search(r"rehearsed \{.*\"parts\":3,.*\"different\":0", words), words
    assert everything(appliance) == before
    page = visitor.wait_until(task, "Restored as a test", "came back in", timeout=90)
    assert "Not compared: tank/photos/secret" in page.words  # its key is not stored


def test_restore_without_room_is_refused_with_both_numbers(appliance, visitor, task):  # noqa: F811
    for pool in ("tank", "safe"):
        free = int(appliance.run("zfs", "get", "-H", "-p", "-o", "value", "available", pool))
        appliance.run(
            "zfs", "create", "-o", "mountpoint=none", "-o", f"refreservation={free - 50_000_000}", f"{pool}/fill"
        )
    try:
        visitor.wait_until("/folders/", "tank/fill", "safe/fill", timeout=90)
        answer = visitor.get(f"{task}drill/")
        assert answer.status == 409
        assert re.search(r"needs about [\d.]+.MB for a while, and tank has [\d.]+.\w+ for it", answer.words), (
            answer.words
        )
    finally:
        for pool in ("tank", "safe"):
            appliance.run("zfs", "destroy", f"{pool}/fill")


def try_key(visitor: Visitor, task: str, phrase: str) -> str:  # noqa: F811
    review = visitor.wait_until(f"{task}key/", "Passphrase", timeout=90)
    return visitor.ended(visitor.confirm(review, secret=phrase))


def test_passphrase_is_tried_on_the_encrypted_copy_and_unlocks_nothing(appliance, visitor, task):  # noqa: F811
    visitor.wait_until(task, "Nobody has tried yet whether the key", "Back up now", timeout=180)
    assert "This key does not open the copy of tank/photos/secret" in try_key(visitor, task, "another phrase")
    assert try_key(visitor, task, PHRASE).startswith("Done.")
    visitor.wait_until(task, "1 of 1 encrypted copy opens.", timeout=90)
    assert appliance.run("zfs", "get", "-H", "-o", "value", "keystatus", f"{COPY}/secret").strip() == "unavailable"
    assert PHRASE not in appliance.shell(
        "journalctl -u 'larder*' --no-pager; cat /var/lib/larder*/jobs/* 2>/dev/null || true"
    )


def test_encrypted_copy_is_compared_with_the_stored_key_and_locked_again(appliance, visitor, task):  # noqa: F811
    at = f"/folders/{key_of(appliance, 'tank/photos/secret')}/key/"
    visitor.wait_until(at, "Lock tank/photos/secret", timeout=90)
    moving.done(visitor, visitor.get(f"{at}keep/"), secret=PHRASE)
    try:
        visitor.wait_until(task, "Compare now", timeout=180)
        job = start_now(visitor, task, "compare")
        assert visitor.ended(job).startswith("Done.")
        words = visitor.get(f"/jobs/{job}/").words
        assert re.search(r'compared \{.*"different":0', words) and "was not compared" not in words, words
        assert appliance.run("zfs", "get", "-H", "-o", "value", "keystatus", f"{COPY}/secret").strip() == "unavailable"
        appliance.put("/tank/photos/secret/one", "another text\n")  # what the copy has is of the run before
        assert visitor.ended(start_now(visitor, task, "compare")).startswith("Done.")
    finally:
        visitor.wait_until(at, "Remove the key from this box", timeout=90)
        moving.done(visitor, visitor.get(f"{at}forget/"))


@pytest.fixture
def half(appliance: Machine, visitor: Visitor, task: str) -> str:  # noqa: F811
    """The copy of the folder, at which an increment of some 20 MB was cut off."""
    assert run_now(visitor, task)[1].startswith("Done.")
    base = newest(appliance, "tank/photos")
    appliance.shell(
        "head -c 40000000 /dev/urandom > /tank/photos/cut; sync; zfs snapshot tank/photos@cut;"
        f" zfs send -L -e -c -i {base} tank/photos@cut | head -c 20000000 | zfs receive -u -s {COPY} || true"
    )
    assert token(appliance) != "-"
    return COPY


def test_what_is_half_received_is_shown_with_its_size_and_discarded_on_request(appliance, visitor, task, half):  # noqa: F811
    page = visitor.wait_until(task, "Half received", half, "since", timeout=120)
    found = re.search(r"safe/backups/photos ([\d.]+).MB since", page.words)
    assert found and 10 <= float(found[1]) <= 25, page.words
    before = guids(appliance, half)
    review = visitor.get(f"{task}discard/{key_of(appliance, half)}/")
    assert "zfs receive -A safe/backups/photos" in review.words
    assert visitor.ended(visitor.confirm(review)).startswith("Done.")
    assert token(appliance) == "-"
    assert guids(appliance, half) == before
    visitor.wait_until(task, "Restored as a test", timeout=60)
    wait_for("the page to know", lambda: "Half received" not in visitor.get(task).words, timeout=120, every=1)
    appliance.run("zfs", "destroy", "tank/photos@cut")
    assert run_now(visitor, task)[1].startswith("Done.")


def test_restore_that_is_killed_leaves_nothing_for_long(appliance, visitor, task):  # noqa: F811
    appliance.shell("head -c 300000000 /dev/urandom > /tank/photos/large; sync; zpool sync tank")
    assert run_now(visitor, task)[1].startswith("Done.")
    before = everything(appliance)
    job = drill(visitor, task)
    found = wait_for(
        "a part to be restored",
        lambda: re.findall(r"tank/drill-\w+/\d+\n", appliance.run("zfs", "list", "-H", "-o", "name", "-r", "tank")),
        timeout=120,
        every=0.1,
    )
    assert found
    appliance.run("systemctl", "kill", "--signal=KILL", "larder-agent", check=False)
    said = visitor.ended(job)
    assert "Done." not in said, said
    assert "Larder removes it" in said
    wait_for("what it left to be removed", lambda: everything(appliance) == before, timeout=180, every=2)
    said = visitor.ended(drill(visitor, task))
    assert said.startswith("Done."), said
    assert everything(appliance) == before


def opens(appliance: Machine, copy: str, phrase: str) -> bool:
    """Whether a passphrase is the one of an encrypted copy; nothing is unlocked."""
    said = appliance.shell(f"if echo '{phrase}' | zfs load-key -n '{copy}'; then echo it opens; fi", check=False)
    return "it opens" in said


def test_copies_open_with_the_new_passphrase_once_they_are_made_again(appliance, visitor, task):  # noqa: F811
    """Also one below, whose original inherits its key.
    Nothing is written meanwhile: the new key alone has to travel."""
    secret, new = "tank/photos/secret", "another phrase for the attic"
    copied = {secret: f"{COPY}/secret", f"{secret}/inner": f"{COPY}/secret/inner"}
    appliance.shell(f"zfs create {secret}/inner; echo dear > /{secret}/inner/letter; sync")
    assert moving.prop(appliance, "encryptionroot", f"{secret}/inner") == secret
    visitor.wait_until("/folders/", f"{secret}/inner", timeout=90)
    assert run_now(visitor, task)[1].startswith("Done.")
    for copy in copied.values():
        assert opens(appliance, copy, PHRASE) and not opens(appliance, copy, new)
    at = f"/folders/{key_of(appliance, secret)}/key/"
    visitor.wait_until(at, f"Lock {secret}", timeout=90)
    moving.done(visitor, visitor.get(f"{at}passphrase/"), secret=new, again=new)
    for copy in copied.values():
        assert opens(appliance, copy, PHRASE) and not opens(appliance, copy, new)
    _job, said = run_now(visitor, task)
    assert said.startswith("Done."), said
    for original, copy in copied.items():
        assert opens(appliance, copy, new) and not opens(appliance, copy, PHRASE)
        appliance.shell(f"echo '{new}' | zfs load-key '{copy}'")
        try:
            assert sums(appliance, newest(appliance, copy)) == sums(appliance, newest(appliance, original))
        finally:
            appliance.run("zfs", "unload-key", copy)
    assert "This key does not open the copy of" in try_key(visitor, task, PHRASE)
    assert try_key(visitor, task, new).startswith("Done.")
