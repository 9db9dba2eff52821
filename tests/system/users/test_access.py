"""Access to folders on real ZFS: what the kernel lets each user do, also while somebody tries to mislead the walk."""

from __future__ import annotations

import re

import pytest

from deploy.image.machine import wait_for
from tests.system.persons import done, make
from tests.visitor import create_pool, disk_paths

PASSWORD = "words of a person"


@pytest.fixture(scope="module")
def folder(appliance, visitor) -> str:
    """A pool with a folder that holds files; anna and ben, and ben in the group family. The address of its page."""
    create_pool(appliance, "tank", "mirror", *disk_paths(appliance, 1, 2))
    appliance.shell(
        "zfs create tank/photos; zfs create tank/photos/own; mkdir -p /tank/photos/2026/may; echo sea > "
        "/tank/photos/2026/may/sea.jpg; "
        "mkdir /outside; echo x > /outside/secret; chmod 700 /outside; ln -s /outside /tank/photos/way-out; "
        "zfs snapshot tank/photos@one"
    )
    make(visitor, "anna", PASSWORD)
    make(visitor, "ben", PASSWORD)
    answer = visitor.post("/groups/new/", name="family", members=["ben"])
    done(visitor, answer.url.split("/jobs/")[1].strip("/"))
    visitor.wait_until("/folders/", "tank/photos")
    guid = appliance.run("zfs", "get", "-H", "-p", "-o", "value", "guid", "tank/photos").strip()
    return f"/folders/{guid}/access/"


def may(appliance, name: str, *argv: str) -> bool:
    """Whether the kernel lets a user run a command, with the groups that the system gives."""
    said = appliance.run(
        "sh",
        "-c",
        'setpriv --reuid="$0" --regid=larder-people --init-groups "$@" >/dev/null 2>&1; echo $?',
        name,
        *argv,
    )
    return said.strip() == "0"


def say(visitor, folder: str, **levels: str) -> str:
    fields = {name.replace("_", "-"): level for name, level in levels.items()}
    return visitor.confirm(visitor.post(folder, **fields))


def test_each_may_do_what_was_said_and_new_files_follow(appliance, visitor, folder):
    done(visitor, say(visitor, folder, everybody="none", person_anna="change", group_family="read"))
    sea = "/tank/photos/2026/may/sea.jpg"
    assert may(appliance, "anna", "touch", sea)
    assert may(appliance, "ben", "cat", sea)
    assert not may(appliance, "ben", "touch", sea)
    assert not may(appliance, "ben", "touch", "/tank/photos/new")
    assert may(appliance, "anna", "mkdir", "/tank/photos/june")
    assert may(appliance, "anna", "touch", "/tank/photos/june/a.jpg")
    assert may(appliance, "ben", "cat", "/tank/photos/june/a.jpg")
    assert not may(appliance, "ben", "touch", "/tank/photos/june/a.jpg")
    visitor.wait_until(folder.replace("access/", ""), "Access to its files", "anna", "read and change")


# Open: not yet seen to pass in an appliance.
def test_a_snapshot_of_before_keeps_the_rights_that_files_had(appliance, visitor, folder):
    sea, before = "2026/may/sea.jpg", appliance.run("getfacl", "--omit-header", "/tank/photos/2026/may/sea.jpg")
    done(visitor, say(visitor, folder, everybody="none", person_anna="change", group_family="change", before="on"))
    names = appliance.run("zfs", "list", "-H", "-t", "snapshot", "-o", "name", "tank/photos").split()
    (name,) = [one.partition("@")[2] for one in names if "@larder-before-" in one]
    assert appliance.run("getfacl", "--omit-header", f"/tank/photos/.zfs/snapshot/{name}/{sea}") == before
    assert may(appliance, "ben", "touch", f"/tank/photos/{sea}")
    done(visitor, say(visitor, folder, everybody="none", person_anna="change", group_family="read"))
    assert not may(appliance, "ben", "touch", f"/tank/photos/{sea}")


def test_links_other_file_systems_and_snapshots_were_left_alone(appliance, folder):
    assert appliance.run("stat", "-c", "%a %U %G", "/outside").split() == ["700", "root", "root"]
    assert "user:" not in appliance.run("getfacl", "--omit-header", "/outside/secret").replace("user::", "")
    assert "user:" not in appliance.run("getfacl", "--omit-header", "/tank/photos/own").replace("user::", "")


def test_a_person_who_may_only_read_from_now_on_cannot_take_it_back(appliance, visitor, folder):
    assert appliance.run("stat", "-c", "%U", "/tank/photos/june/a.jpg").strip() == "anna"
    done(visitor, say(visitor, folder, everybody="none", person_anna="read", group_family="change"))
    assert appliance.run("stat", "-c", "%U", "/tank/photos/june/a.jpg").strip() == "root"
    assert not may(appliance, "anna", "chmod", "777", "/tank/photos/june/a.jpg")
    assert may(appliance, "anna", "cat", "/tank/photos/june/a.jpg")
    assert may(appliance, "ben", "touch", "/tank/photos/june/a.jpg")


def test_links_swapped_in_during_the_walk_lead_nowhere(appliance, visitor, folder):
    """A loop in the appliance replaces folders by links to /outside and back as fast as it
    can, while the rules are set."""
    appliance.shell(
        "mkdir -p /outside/d; echo x > /outside/d/x; for n in $(seq 200); do mkdir -p "
        "/tank/photos/race/$n/d; echo x > /tank/photos/race/$n/d/x; done"
    )
    before = appliance.shell("find /outside -exec stat -c '%n %a %u %g' {} + | sort; getfacl -R -p /outside")
    swap = (
        "import os, itertools\n"
        "os.chdir('/tank/photos/race')\n"
        "for turn in itertools.count():\n"
        "    n = str(turn % 200 + 1)\n"
        "    os.rename(n, 'x' + n); os.symlink('/outside', n); os.unlink(n); os.rename('x' + n, n)\n"
        "    if turn % 1000 == 0: open('/tmp/swaps', 'w').write(str(turn))\n"
    )
    appliance.put("/tmp/swap.py", swap)
    appliance.run("systemd-run", "-q", "--unit=people-swap", "python3", "/tmp/swap.py")
    try:
        wait_for("the swapping to begin", lambda: int(appliance.run("cat", "/tmp/swaps", check=False) or 0) > 0)
        for level in ("read", "change", "read"):
            done(visitor, say(visitor, folder, everybody=level))
    finally:
        appliance.run("systemctl", "stop", "people-swap.service", check=False)
    assert appliance.shell("find /outside -exec stat -c '%n %a %u %g' {} + | sort; getfacl -R -p /outside") == before


def test_it_tells_how_far_it_is_and_can_be_stopped(appliance, visitor, folder):
    appliance.shell(
        "mkdir /tank/photos/many; cd /tank/photos/many; for n in $(seq 150); do mkdir $n; (cd $n; seq 200 | "
        "xargs touch); done",
        timeout=600,
    )
    job = say(visitor, folder, everybody="none", person_anna="change")
    wait_for(
        "the job to tell of files",
        lambda: re.search(r"[0-9]+ files and folders", visitor.get_live(f"/jobs/{job}/").words),
        every=0.2,
    )
    token = visitor.get(f"/jobs/{job}/").hidden()["csrfmiddlewaretoken"]
    visitor.send(f"/jobs/{job}/stop/", {"csrfmiddlewaretoken": token})
    assert "It was asked to stop" in visitor.ended(job)
    visitor.wait_until(folder, "Not applied to all files")
    done(visitor, say(visitor, folder, everybody="none", person_anna="change"), timeout=600)
    visitor.wait_until(folder, "Access to the files of", without=("Not applied to all files",))
    assert may(appliance, "anna", "touch", "/tank/photos/many/150/200")


def test_a_folder_whose_place_holds_something_else_is_left_alone(appliance, visitor, folder):
    """Unmounted by hand: the ACLs must not be set on the empty folder of the system disk beneath."""
    review = visitor.post(folder, everybody="change")
    appliance.run("zfs", "unmount", "tank/photos/own")
    appliance.run("zfs", "unmount", "tank/photos")
    before = appliance.run("stat", "-c", "%a %u %g", "/tank/photos")
    try:
        # Which of the two comes first is a race: the page that already knows it says no, or the agent does.
        answer = visitor.send("/jobs/confirm/", review.hidden())
        job = re.search(r"/jobs/([0-9a-f-]{36})/", answer.url)
        said = visitor.ended(job[1]) if job else answer.words
        assert "not mounted" in said, said
        assert not said.startswith("Done."), said
        assert appliance.run("stat", "-c", "%a %u %g", "/tank/photos") == before
    finally:
        appliance.run("zfs", "mount", "-a")
