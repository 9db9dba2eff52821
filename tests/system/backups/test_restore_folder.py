"""A whole folder comes back out of its copy, on real ZFS: beside the original, to its place, after a kill, and not
at all where it is stopped."""

from __future__ import annotations

import re

import pytest

from deploy.image.machine import Machine, wait_for
from tests.system.backups.test_pool_to_pool import (  # noqa: F401  # fixtures
    COPY,
    PHRASE,
    TREE,
    folders,
    guids,
    newest,
    newest_moment,
    photos,
    run_now,
    task,
)
from tests.system.sharing import key_of
from tests.visitor import Answer, Visitor

LOCAL = {"canmount"}  # what a restored folder has set on itself


def files(appliance: Machine, snapshot: str) -> str:
    """Every file of a snapshot: kind, mode, owner, group, size, time, link, attributes and content."""
    return appliance.shell(
        f"mkdir -p /mnt/look; mount -t zfs -o ro '{snapshot}' /mnt/look; cd /mnt/look;"
        " find . -printf '%y %m %U %G %s %T@ %l %p\\n' | sort; find . -type f -print0 | sort -z | xargs -0 sha256sum;"
        " getfattr -R -d -m - . | sort; cd /; umount /mnt/look"
    )


def review(appliance: Machine, visitor: Visitor, copy: str, **answers: object) -> Answer:
    """The review of restoring the newest moment of a copy."""
    moment = newest_moment(appliance, copy)
    path = f"/backups/copies/{key_of(appliance, copy)}/restore/"
    visitor.wait_until(path, "As it was on", "Into the folder", timeout=90)
    wait_for("the page to know the newest copy", lambda: moment in visitor.get(path).text, timeout=120, every=1)
    answer = visitor.post(path, snapshot=moment, **answers)
    assert answer.status == 200, answer.words[:1500]
    return answer


def tree(appliance: Machine, pool: str = "tank") -> list[str]:
    return appliance.run("zfs", "list", "-H", "-o", "name", "-r", pool).splitlines()


def assert_equal(appliance: Machine, restored: str) -> None:
    """Every folder is there with the files of the copy's newest moment, usable and nothing of a copy about it."""
    for name in TREE:
        there, copy = f"{restored}{name.removeprefix('photos')}", f"{COPY}{name.removeprefix('photos')}"
        assert guids(appliance, there) == guids(appliance, copy)[-1:]
        said = appliance.run("zfs", "get", "-H", "-s", "local,received", "-o", "property", "all", there).split()
        assert set(said) - {"keylocation"} == LOCAL, said
        if "secret" in name and "unavailable" in appliance.run("zfs", "get", "-H", "-o", "value", "keystatus", there):
            appliance.shell(f"echo '{PHRASE}' | zfs load-key '{there}'; zfs mount '{there}'")
            appliance.shell(f"echo '{PHRASE}' | zfs load-key '{copy}' || true")  # an earlier test may have opened it
        assert files(appliance, newest(appliance, there)) == files(appliance, newest(appliance, copy))
        place = appliance.run("zfs", "get", "-H", "-o", "value", "mountpoint", there).strip()
        assert place == f"/{there}"
        assert "hello" in appliance.shell(f"cat '{place}/two'; echo changed > '{place}/written'; cat '{place}/written'")


def test_folder_comes_back_beside_its_original(appliance, visitor, task):  # noqa: F811
    # The encrypted folder's copy is opened by a test, and a copy stays as it is apart from that.
    before, of_tank = [guids(appliance, f"safe/backups/{name}") for name in TREE], tree(appliance)
    answer = review(appliance, visitor, COPY, parent="tank", name="photos-restored")
    assert "tank/photos is still there and stays as it is" in answer.words
    assert "Encrypted folders come back with the key that the original had" in answer.words
    job = visitor.confirm(answer)
    said = visitor.ended(job)
    assert said.startswith("Done."), said
    assert_equal(appliance, "tank/photos-restored")
    assert [guids(appliance, f"safe/backups/{name}") for name in TREE] == before
    assert {name for name in tree(appliance) if name not in of_tank} == {
        name.replace("photos", "tank/photos-restored", 1) for name in TREE
    }
    assert "restored" not in appliance.run("exportfs", "-v")
    key = key_of(appliance, "tank/photos-restored")
    visitor.wait_until(f"/jobs/{job}/", "See the folder", timeout=90)
    assert f"/folders/{key}/" in visitor.get(f"/jobs/{job}/").text


def test_name_that_exists_is_refused(appliance, visitor, task):  # noqa: F811
    path = f"/backups/copies/{key_of(appliance, COPY)}/restore/"
    answer = visitor.post(path, snapshot=newest_moment(appliance, COPY), parent="tank", name="photos")
    assert answer.status == 400 and "already exists" in answer.words


def test_plain_copy_comes_back_into_an_encrypted_folder(appliance, visitor, task):  # noqa: F811
    appliance.shell(
        f"echo '{PHRASE}' | zfs create -o encryption=on -o keyformat=passphrase -o keylocation=prompt tank/vault"
    )
    visitor.wait_until("/folders/", "tank/vault", timeout=90)
    trip = f"{COPY}/trip 2019"
    answer = review(appliance, visitor, trip, parent="tank/vault", name="trip")
    assert "It is encrypted with the key of tank/vault" in answer.words
    said = visitor.ended(visitor.confirm(answer))
    assert said.startswith("Done."), said
    assert files(appliance, newest(appliance, "tank/vault/trip")) == files(appliance, newest(appliance, trip))
    root = appliance.run("zfs", "get", "-H", "-o", "value", "encryptionroot", "tank/vault/trip").strip()
    assert root == "tank/vault"


@pytest.fixture(scope="module")
def large(appliance: Machine, visitor: Visitor, task: str) -> None:  # noqa: F811
    """The folder has so much in it that a restore takes some seconds."""
    appliance.shell("head -c 400000000 /dev/urandom > /tank/photos/large; sync; zpool sync tank")
    assert run_now(visitor, task)[1].startswith("Done.")


def begin(appliance: Machine, visitor: Visitor, name: str) -> tuple[str, str]:
    """A restore that has begun to receive: its job, and the folder that it receives into."""
    job = visitor.confirm(review(appliance, visitor, COPY, parent="tank", name=name))
    found = wait_for(
        "the folder to receive into", lambda: re.findall(r"tank/restoring-\w+", " ".join(tree(appliance))), every=0.1
    )
    wait_for("some of it to have arrived", lambda: used(appliance, found[0]) > 30_000_000, timeout=60, every=0.1)
    return job, found[0]


def used(appliance: Machine, dataset: str) -> int:
    return int(appliance.run("zfs", "get", "-H", "-p", "-o", "value", "used", dataset))


def test_restore_that_is_stopped_leaves_nothing(appliance, visitor, large):
    before = tree(appliance)
    job, _stage = begin(appliance, visitor, "stopped")
    page = visitor.get(f"/jobs/{job}/")
    visitor.send(f"/jobs/{job}/stop/", {"csrfmiddlewaretoken": page.hidden()["csrfmiddlewaretoken"]})
    said = visitor.ended(job)
    assert "It was asked to stop" in said, said
    assert tree(appliance) == before


def test_restore_that_was_killed_goes_on_where_it_was(appliance, visitor, large):
    job, stage = begin(appliance, visitor, "killed")
    appliance.run("systemctl", "kill", "--signal=KILL", "larder-agent", check=False)
    said = visitor.ended(job)
    assert "Done." not in said, said
    assert stage in said
    assert "tank/killed" not in tree(appliance)
    token = appliance.run("zfs", "get", "-H", "-o", "value", "receive_resume_token", f"{stage}/killed").strip()
    assert token.startswith("1-")
    again = visitor.confirm(visitor.wait_until(f"/jobs/{job}/again/", "What will happen"))
    said = visitor.ended(again)
    assert said.startswith("Done."), said
    assert f"-t {token}" in visitor.get(f"/jobs/{again}/").words
    assert_equal(appliance, "tank/killed")
    assert stage not in tree(appliance)


def test_folder_comes_back_to_its_place_once_that_is_free(appliance, visitor, large):
    appliance.run("zfs", "destroy", "-r", "tank/photos")
    path = f"/backups/copies/{key_of(appliance, COPY)}/restore/"
    page = visitor.wait_until(path, "The original is no longer on this box", timeout=90)
    assert 'value="photos"' in page.text and '<option value="tank" selected>' in page.text
    said = visitor.ended(visitor.confirm(review(appliance, visitor, COPY, parent="tank", name="photos")))
    assert said.startswith("Done."), said
    assert_equal(appliance, "tank/photos")
    # The disks' next start has it in its place as well.
    appliance.run("zpool", "export", "tank")
    appliance.run("zpool", "import", "tank")
    assert "large" in appliance.run("ls", "/tank/photos")
    assert folders(appliance)
