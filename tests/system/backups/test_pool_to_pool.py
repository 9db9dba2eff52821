"""Backups from one pool to another, on real ZFS: what arrives, what is refused, and what an interruption leaves."""

from __future__ import annotations

import re

import pytest

from deploy.image.machine import Machine, wait_for
from tests.system.policy import there
from tests.system.sharing import key_of
from tests.visitor import Visitor, create_pool, disk_paths

FORM = {"every": "daily", "hour": 2, "hourly": 24, "daily": 14, "weekly": 8, "monthly": 12, "days": 2, "below": "on"}
COPY = "safe/backups/photos"
TREE = ("photos", "photos/trip 2019", "photos/secret")
PHRASE = "the phrase of the attic"
OFF = "canmount,mountpoint,readonly,setuid,devices,exec,sharenfs,larder:share,larder:backup"


def make_photos(appliance: Machine, visitor: Visitor, size: int) -> str:
    """A folder with two below it, one of them encrypted, with properties that no copy may take over; and a second pool.
    The key of the folder, once the pages know all three: on a slow computer it is read before the others are made."""
    tank, safe = disk_paths(appliance, 1, 2)
    create_pool(appliance, "-o", "ashift=12", "-m", "/tank", "tank", tank)
    create_pool(appliance, "-o", "ashift=12", "-m", "/safe", "safe", safe)
    appliance.run("zfs", "create", "-o", "sharenfs=on", "-o", 'larder:share={"smb":{"name":"photos"}}', "tank/photos")
    appliance.run("zfs", "create", "-o", "mountpoint=/tank/elsewhere", "tank/photos/trip 2019")
    appliance.shell(
        f"echo '{PHRASE}' | zfs create -o encryption=on -o keyformat=passphrase -o keylocation=prompt "
        "tank/photos/secret"
    )
    appliance.shell(
        f"cd /tank; for d in photos elsewhere photos/secret; do head -c {size} /dev/urandom > $d/one; echo "
        "hello > $d/two;"
        " ln -s one $d/link; setfattr -n user.note -v kept $d/two; chmod 640 $d/two; done; sync"
    )
    visitor.wait_until("/backups/", "tank/photos", "no backup", timeout=90)
    visitor.wait_until("/folders/", *(f"tank/{name}" for name in TREE), timeout=90)
    return key_of(appliance, "tank/photos")


@pytest.fixture(scope="module")
def photos(appliance: Machine, visitor: Visitor) -> str:
    """The key of the folder that is backed up."""
    key = make_photos(appliance, visitor, 3_000_000)
    appliance.run("zfs", "set", 'larder:policy={"frequent":4}', "safe")  # which would snapshot all of the pool
    return key


@pytest.fixture(scope="module")
def task(appliance: Machine, visitor: Visitor, photos: str) -> str:
    """The address of the backup, set up by its form; its first copy has been made."""
    page = visitor.wait_until(f"/backups/of/{photos}/new/", "safe (", timeout=90)
    safe = key_of_pool(appliance, "safe")
    assert f'value="{safe}"' in page.text and "tank (" not in page.words  # not to the pool that it lies in
    review = visitor.post(f"/backups/of/{photos}/new/", pool=safe, name="photos", **FORM)
    assert "Encrypted folders are copied encrypted" in review.words
    assert visitor.ended(visitor.confirm(review)).startswith("Done.")
    page = visitor.wait_until("/backups/", "tank/photos", "safe", "good", timeout=180)
    found = re.search(rf"/backups/of/{photos}/([0-9a-f]{{8}})/", page.text)
    assert found
    return found[0]


def key_of_pool(appliance: Machine, pool: str) -> str:
    return appliance.run("zpool", "get", "-H", "-p", "-o", "value", "guid", pool).strip()


def start_now(visitor: Visitor, task: str, act: str = "run") -> str:
    """The id of a run, or of a comparison, that was asked for while nothing else of the backup runs."""
    visitor.wait_until(task, "Back up now", timeout=180)
    answer = visitor.send(f"{task}{act}/", {"csrfmiddlewaretoken": visitor.get(task).hidden()["csrfmiddlewaretoken"]})
    found = re.search(r"/jobs/([0-9a-f-]{36})/", answer.url)
    assert found, answer.words
    return found[1]


def run_now(visitor: Visitor, task: str) -> tuple[str, str]:
    """The id of a run that was asked for, and how it ended."""
    job = start_now(visitor, task)
    return job, visitor.ended(job)


def guids(appliance: Machine, dataset: str) -> list[str]:
    said = appliance.run(
        "zfs", "list", "-H", "-p", "-t", "snapshot", "-d", "1", "-o", "guid", "-s", "createtxg", dataset
    )
    return said.split()


def sums(appliance: Machine, snapshot: str) -> str:
    """Every file of a snapshot: kind, mode, owner, size, link, attributes and content."""
    return appliance.shell(
        f"mkdir -p /mnt/look; mount -t zfs -o ro '{snapshot}' /mnt/look; cd /mnt/look;"
        " find . -printf '%y %m %U %s %l %p\\n' | sort; find . -type f -print0 | sort -z | xargs -0 sha256sum;"
        " getfattr -R -d -m user. . | sort; cd /; umount /mnt/look"
    )


def folders(appliance: Machine) -> list[str]:
    return appliance.run("zfs", "list", "-H", "-o", "name", "-r", "safe").splitlines()


def newest(appliance: Machine, dataset: str) -> str:
    return f"{dataset}@{there(appliance, dataset)[-1]}"


def newest_moment(appliance: Machine, copy: str) -> str:
    """What the newest snapshot of a copy is called, wherever in its tree that lies: the moment
    that a restore offers first."""
    said = appliance.run("zfs", "list", "-H", "-r", "-t", "snapshot", "-o", "name", "-s", "creation", copy)
    return said.splitlines()[-1].partition("@")[2]


def test_every_folder_is_copied_with_equal_guids_and_files(appliance, task):
    for name in TREE:
        source, copy = f"tank/{name}", f"safe/backups/{name}"
        assert guids(appliance, source)[-1:] == guids(appliance, copy)[-1:] != []
        if "secret" not in name:
            assert sums(appliance, newest(appliance, source)) == sums(appliance, newest(appliance, copy))


def test_copies_have_nothing_of_the_sources_properties(appliance, task):
    for name in TREE:
        said = appliance.run("zfs", "get", "-H", "-p", "-o", "property,value,source", OFF, f"safe/backups/{name}")
        values = {line.split("\t")[0]: line.split("\t")[1] for line in said.splitlines()}
        assert values == {
            "canmount": "off",
            "mountpoint": "none",
            "readonly": "on",
            "setuid": "off",
            "devices": "off",
            "exec": "off",
            "sharenfs": "off",
            "larder:share": "-",
            "larder:backup": "-",
        }
        assert "received" not in said
    assert "backups" not in appliance.run("zfs", "mount")
    assert "backups" not in appliance.run("exportfs", "-v")


def test_encrypted_folder_is_copied_without_its_key_and_opens_with_it(appliance, task):
    copy = f"{COPY}/secret"
    assert appliance.run("zfs", "get", "-H", "-o", "value", "keystatus", copy).strip() == "unavailable"
    appliance.shell(f"echo '{PHRASE}' | zfs load-key {copy}")
    try:
        assert sums(appliance, newest(appliance, copy)) == sums(appliance, newest(appliance, "tank/photos/secret"))
    finally:
        appliance.run("zfs", "unload-key", copy)


def test_only_what_changed_is_sent_and_the_source_keeps_one_snapshot_and_the_bookmarks(appliance, visitor, task):
    before = guids(appliance, COPY)
    appliance.shell("echo more > /tank/photos/three; sync")
    job, said = run_now(visitor, task)
    assert said.startswith("Done."), said
    assert "-i tank/photos@larder-backup-" in visitor.get(f"/jobs/{job}/").words
    assert guids(appliance, COPY)[-1] not in before
    assert len(there(appliance, "tank/photos")) == 1
    marks = appliance.run("zfs", "list", "-H", "-t", "bookmark", "-d", "1", "-o", "name", "tank/photos").split()
    assert {mark.rpartition("-")[2] for mark in marks} == {*before, guids(appliance, COPY)[-1]}
    assert sums(appliance, newest(appliance, COPY)) == sums(appliance, newest(appliance, "tank/photos"))


def test_run_with_nothing_new_sends_nothing_leaves_nothing_and_counts(appliance, visitor, task):
    plain = [name for name in TREE if "secret" not in name]
    assert run_now(visitor, task)[1].startswith("Done.")
    before = {name: (guids(appliance, f"tank/{name}"), guids(appliance, f"safe/backups/{name}")) for name in plain}
    job, said = run_now(visitor, task)
    assert said.startswith("Done."), said
    words = visitor.get(f"/jobs/{job}/").words
    assert "Nothing new in 2 of 3 folders: their copies are complete." in words
    assert re.findall(r"zfs send (?!-w)\S+ .*?\|", words.partition("Output")[2]) == []
    assert before == {
        name: (guids(appliance, f"tank/{name}"), guids(appliance, f"safe/backups/{name}")) for name in plain
    }
    taken = newest(appliance, f"{COPY}/secret").partition("-backup-")[2]  # an encrypted folder is always sent
    mark = appliance.run("zfs", "get", "-H", "-o", "value,source", "larder:copied", COPY)
    assert f'"run":"{taken}"' in mark and "local" in mark
    appliance.shell("echo late > '/tank/elsewhere/late'")  # and not synced: it may still wait in memory
    job, said = run_now(visitor, task)
    assert "Nothing new in 1 of 3 folders" in visitor.get(f"/jobs/{job}/").words
    trip = "photos/trip 2019"
    assert sums(appliance, newest(appliance, f"tank/{trip}")) == sums(
        appliance, newest(appliance, f"safe/backups/{trip}")
    )


def test_bookmark_alone_is_enough_to_continue(appliance, visitor, task):
    for name in TREE:
        appliance.run("zfs", "destroy", newest(appliance, f"tank/{name}"))
    job, said = run_now(visitor, task)
    assert said.startswith("Done."), said
    assert "-i 'tank/photos/trip 2019#larder-backup-" in visitor.get(f"/jobs/{job}/").words


def test_snapshot_schedule_of_the_pool_takes_none_of_copies(appliance, visitor, task):
    wait_for("a snapshot of the pool itself", lambda: there(appliance, "safe"), timeout=120)
    assert all(name.startswith("larder-backup-") for name in there(appliance, COPY))


def test_copy_in_the_same_pool_is_refused(appliance, visitor, photos):
    answer = visitor.post(f"/backups/of/{photos}/new/", pool=key_of_pool(appliance, "tank"), name="x", **FORM)
    assert answer.status == 400


def test_place_that_is_somebody_elses_is_refused(appliance, visitor, photos):
    appliance.run("zfs", "create", "safe/backups/mine")
    visitor.wait_until("/folders/", "safe/backups/mine", timeout=90)
    answer = visitor.post(f"/backups/of/{photos}/new/", pool=key_of_pool(appliance, "safe"), name="mine", **FORM)
    assert answer.status == 400
    assert "already exists and is not a copy" in answer.words


def test_copy_that_was_written_to_is_left_as_it_is_and_the_others_are_copied(appliance, visitor, task):
    trip = f"{COPY}/trip 2019"
    appliance.shell(
        f"zfs set -u readonly=off canmount=noauto mountpoint=/mnt/copy '{trip}'; zfs mount '{trip}';"
        f" echo mine > /mnt/copy/mine; sync; zfs unmount '{trip}'; zfs set -u readonly=on '{trip}'"
    )
    before, others = guids(appliance, trip), guids(appliance, COPY)
    appliance.shell("echo again > /tank/photos/four; sync")
    _job, said = run_now(visitor, task)
    assert "Files in the copy safe/backups/photos/trip 2019 were changed" in said
    assert guids(appliance, trip) == before
    assert guids(appliance, COPY)[-1] not in others
    visitor.wait_until("/backups/", "last run failed", timeout=60)
    snapshot = f"/snapshots/of/{key_of(appliance, trip)}/{key_of(appliance, newest(appliance, trip))}/"
    visitor.wait_until(snapshot, "Roll back", timeout=90)
    said = visitor.ended(visitor.confirm(visitor.get(f"{snapshot}roll-back/?answered=1"), typed=trip))
    assert said.startswith("Done."), said
    _job, said = run_now(visitor, task)
    assert said.startswith("Done."), said
    # What was set on the copy by hand is off again.
    assert appliance.run("zfs", "get", "-H", "-o", "value", "canmount,readonly,mountpoint", trip).split() == [
        "off",
        "on",
        "none",
    ]


def test_source_that_was_rolled_back_changes_nothing_at_the_copy(appliance, visitor, task):
    appliance.run("zfs", "snapshot", "tank/photos@older")
    appliance.shell("echo newer > /tank/photos/five; sync")
    assert run_now(visitor, task)[1].startswith("Done.")
    appliance.shell(
        "zfs list -H -t bookmark -o name tank/photos | xargs -n1 zfs destroy; zfs rollback -r tank/photos@older"
    )
    before = guids(appliance, COPY)
    _job, said = run_now(visitor, task)
    assert "Nothing was changed. Set the copy aside" in said, said
    assert guids(appliance, COPY) == before
    # Set aside on the backup's page, the next run makes a new copy, and the old one stays.
    page = visitor.wait_until(task, "Start a new copy", timeout=90)
    link = re.search(rf"{task}aside/{key_of(appliance, COPY)}/", page.text)
    assert link
    assert visitor.ended(visitor.confirm(visitor.get(link[0]))).startswith("Done.")
    aside = next(name for name in folders(appliance) if name.startswith(f"{COPY} set aside"))
    visitor.wait_until("/folders/", aside, timeout=90)
    _job, said = run_now(visitor, task)
    assert said.startswith("Done."), said
    assert guids(appliance, aside) == before
    assert sums(appliance, newest(appliance, COPY)) == sums(appliance, newest(appliance, "tank/photos"))


def test_copy_without_room_is_refused_before_anything_is_sent(appliance, visitor, task):
    used = int(appliance.run("zfs", "get", "-H", "-p", "-o", "value", "used", "safe/backups"))
    appliance.run("zfs", "set", f"quota={used + 10_000_000}", "safe/backups")
    appliance.shell("head -c 30000000 /dev/urandom > /tank/photos/many; sync; zpool sync tank")
    before, kept = guids(appliance, COPY), there(appliance, "tank/photos")
    _job, said = run_now(visitor, task)
    assert "tank/photos needs about" in said and "free. Make room there" in said, said
    assert guids(appliance, COPY) == before and token(appliance) == "-"
    assert there(appliance, "tank/photos") == kept
    appliance.run("zfs", "set", "quota=none", "safe/backups")
    assert run_now(visitor, task)[1].startswith("Done.")


def test_run_that_was_killed_goes_on_where_it_was(appliance, visitor, task):
    appliance.shell("head -c 250000000 /dev/urandom > /tank/photos/large; sync; zpool sync tank")
    job = start_now(visitor, task)
    wait_for("the stream to flow", lambda: appliance.run("pgrep", "-x", "zfs", check=False), timeout=60, every=0.2)
    wait_for("some of it to have arrived", lambda: token(appliance) != "-" or growing(appliance), timeout=60, every=0.1)
    appliance.run("systemctl", "kill", "--signal=KILL", "larder-agent", check=False)
    said = visitor.ended(job)
    assert "Done." not in said, said
    _job, said = run_now(visitor, task)
    assert said.startswith("Done."), said
    assert sums(appliance, newest(appliance, COPY)) == sums(appliance, newest(appliance, "tank/photos"))


def test_copy_that_meets_a_quota_on_the_way_keeps_what_arrived_and_goes_on_once_there_is_room(appliance, visitor, task):
    appliance.shell("head -c 250000000 /dev/urandom > /tank/photos/quota; sync; zpool sync tank")
    job = start_now(visitor, task)
    wait_for("some of it to have arrived", lambda: growing(appliance), timeout=60, every=0.1)
    relay = appliance.shell("ps -o ppid= -p $(pgrep -f '^zfs receive')").strip()
    appliance.run("kill", "-STOP", relay)  # ZFS refuses a quota below what is used when it is set
    try:
        appliance.run("zpool", "sync", "safe")
        used = int(appliance.run("zfs", "get", "-H", "-p", "-o", "value", "used", "safe/backups"))
        appliance.run("zfs", "set", f"quota={used + 40_000_000}", "safe/backups")
    finally:
        appliance.run("kill", "-CONT", relay)
    try:
        said = visitor.ended(job)
        assert "quota" in said, said
        assert token(appliance).startswith("1-")
        # A run that cannot fit is refused before it sends a byte.
        assert "free. Make room there" in run_now(visitor, task)[1]
    finally:
        appliance.run("zfs", "set", "quota=none", "safe/backups")
    job, said = run_now(visitor, task)
    assert said.startswith("Done."), said
    assert re.search(r"zfs send -t 1-[0-9a-f-]+", visitor.get(f"/jobs/{job}/").words)
    assert sums(appliance, newest(appliance, COPY)) == sums(appliance, newest(appliance, "tank/photos"))


def token(appliance: Machine) -> str:
    return appliance.run("zfs", "get", "-H", "-o", "value", "receive_resume_token", COPY).strip()


def growing(appliance: Machine) -> bool:
    """Whether what is being received takes space: ZFS counts it among the folders below."""
    return int(appliance.run("zfs", "get", "-H", "-p", "-o", "value", "usedbychildren", COPY)) > 30_000_000


def test_file_comes_back_out_of_the_copy_into_the_original_folder(appliance, visitor, task):
    assert run_now(visitor, task)[1].startswith("Done.")
    wanted = appliance.shell("cd /tank/photos; sha256sum one; stat -c '%a %U %Y' one")
    appliance.run("rm", "/tank/photos/one")
    key, guid = key_of(appliance, COPY), guids(appliance, COPY)[-1]
    path = f"/snapshots/of/{key}/{guid}/restore/?path=one"
    page = visitor.wait_until(path, "goes into the original folder, tank/photos", timeout=90)
    answer = visitor.send(path, {"csrfmiddlewaretoken": page.hidden()["csrfmiddlewaretoken"], "place": "free"})
    found = re.search(r"/jobs/([0-9a-f-]{36})/", answer.url)
    assert found, answer.words
    assert visitor.ended(found[1]).startswith("Done.")
    assert appliance.shell("cd /tank/photos; sha256sum one; stat -c '%a %U %Y' one") == wanted


def test_copy_is_compared_with_its_originals_whatever_its_snapshots_are_called(appliance, visitor, task):
    assert run_now(visitor, task)[1].startswith("Done.")
    said = compare_now(visitor, task)
    assert said.startswith("Done."), said
    visitor.wait_until(task, "Compared", "100 % of the data", "Not compared: tank/photos/secret", timeout=90)
    appliance.run("zfs", "rename", newest(appliance, COPY), f"{COPY}@kept")
    assert compare_now(visitor, task).startswith("Done.")
    appliance.shell("date > /tank/photos/compared")  # without anything new the run would leave the folder out
    assert run_now(visitor, task)[1].startswith("Done.")
    appliance.run("zfs", "destroy", newest(appliance, COPY))
    assert compare_now(visitor, task).startswith("Done.")  # of the folder that can be compared
    visitor.wait_until(task, "Not compared: tank/photos,", timeout=90)
    appliance.run(
        "zfs", "rollback", newest(appliance, COPY)
    )  # the files in the copy are newer than what it has a snapshot of
    assert run_now(visitor, task)[1].startswith("Done.")  # from the bookmark of the copy before


def compare_now(visitor: Visitor, task: str) -> str:
    return visitor.ended(start_now(visitor, task, "compare"))
