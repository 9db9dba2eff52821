"""Restoring deleted files and folders on real ZFS through the pages. Nothing leads out of a snapshot."""

from __future__ import annotations

import re
import urllib.parse

import pytest

from deploy.image.machine import Machine
from tests.system import crash
from tests.system.policy import known
from tests.system.sharing import job_in, key_of
from tests.visitor import Visitor, create_pool, disk_paths

# One line a thing: mode, owner, size, time to the nanosecond, name; then what is attached to files, then their content.
SUMS = (
    "cd '/tank/photos' && find {0} -printf '%m %U:%G %s %T@ %P\\n' | sort && (getfattr -R -h -d -m - {0} "
    "2>/dev/null; find {0} -type f -exec sha256sum {{}} +) | sed 's| *[^ ]*{0}/| |; s|^# file: .*||' | sort"
)
MAKE = """
cd /tank/photos
mkdir -p 'trip/day one'
printf 'old words\\n' > letter.txt
dd if=/dev/urandom of='trip/day one/photo.raw' bs=1M count=3 status=none
printf x > "$(printf 'trip/new\\nline')"
printf x > "$(printf 'trip/bad\\377')"
printf x > "trip/$(printf 'n%.0s' $(seq 255))"
printf x > 'trip/ünï <b>'
python3 -c 'import os; os.setxattr("letter.txt", "user.colour", b"red"); os.setxattr("trip", "user.colour", b"blue")'
chown 1234:4321 'trip/day one/photo.raw'; chmod 640 'trip/day one/photo.raw'; chmod 2770 trip
touch -d '2019-05-06 07:08:09.123456789' letter.txt 'trip/day one/photo.raw' 'trip/day one' trip
ln -s /etc/shadow secret; ln -s /etc ways
"""


@pytest.fixture(scope="module")
def photos(appliance: Machine, visitor: Visitor) -> str:
    """The address of the snapshots of tank/photos, all of whose files are in the snapshot ``then``."""
    (disk,) = disk_paths(appliance, 1)
    create_pool(appliance, "-o", "ashift=12", "-O", "acltype=posix", "-O", "xattr=sa", "tank", disk)
    appliance.run("zfs", "create", "tank/photos")
    appliance.shell(MAKE)
    appliance.run("zfs", "snapshot", "tank/photos@then")
    known(visitor, appliance, "tank/photos@then")
    return f"/snapshots/of/{key_of(appliance, 'tank/photos')}/"


@pytest.fixture(scope="module")
def then(appliance: Machine, photos: str) -> str:
    """The address of the snapshot ``then``."""
    return f"{photos}{key_of(appliance, 'tank/photos@then')}/"


def sums(appliance: Machine, path: str) -> str:
    return str(appliance.shell(SUMS.format(f"'{path}'" if " " in path else path)))


def start_restore(visitor: Visitor, then: str, path: str, place: str) -> str:
    """Restore a file or folder. Returns the job."""
    return job_in(visitor.post(f"{then}restore/?path={urllib.parse.quote(path)}", place=place))


def restore(visitor: Visitor, then: str, path: str, place: str) -> None:
    said = visitor.ended(start_restore(visitor, then, path, place))
    assert said.startswith("Done."), said


def test_names_are_listed_as_text_and_links_are_not_followed(visitor, then):
    page = visitor.get(f"{then}files/?path=trip")
    assert "ünï <b>" in page.words
    assert "&lt;b&gt;" in page.text
    assert "new?line" in page.words
    assert "n" * 255 in page.words
    top = visitor.get(f"{then}files/")
    assert top.words.count("a link, which is not followed") == 2
    for way in ("secret", "ways/passwd", "ways"):
        assert "a link or a" in visitor.get(f"{then}file/?path={way}").words
        assert visitor.get(f"{then}content/?path={way}").status == 409
    for way in ("..", "trip/..%2f..", "%252e%252e/%252e%252e/etc/shadow"):
        assert visitor.get(f"{then}content/?path={way}").status == 404


def test_deleted_file_and_folder_are_restored_unchanged(visitor, appliance, then):
    letter, trip = sums(appliance, "letter.txt"), sums(appliance, "trip")
    appliance.shell("cd /tank/photos && rm -r letter.txt trip")
    visitor.wait_until(f"{then}files/", "letter.txt", "deleted since", timeout=30)
    restore(visitor, then, "letter.txt", "back")
    restore(visitor, then, "trip", "back")
    assert sums(appliance, "letter.txt") == letter
    assert sums(appliance, "trip") == trip
    assert "larder-restoring" not in appliance.run("ls", "-a", "/tank/photos")


def test_restore_never_overwrites(visitor, appliance, then):
    appliance.shell("echo new words > /tank/photos/letter.txt")
    restore(visitor, then, "letter.txt", "beside")
    assert appliance.run("cat", "/tank/photos/letter.txt") == "new words\n"
    restore(visitor, then, "letter.txt", "back")
    assert appliance.run("cat", "/tank/photos/letter.txt") == "old words\n"
    assert appliance.shell("cat /tank/photos/letter*replaced*") == "new words\n"
    assert appliance.shell("cat /tank/photos/letter*from*") == "old words\n"


def test_file_has_versions_and_preview(visitor, appliance, photos, then):
    for number in range(20):
        appliance.run("zfs", "snapshot", f"tank/photos@same{number}")
    appliance.shell("echo newest words > /tank/photos/letter.txt")
    appliance.run("zfs", "snapshot", "tank/photos@last")
    known(visitor, appliance, "tank/photos@last")
    page = visitor.get(f"{photos}versions/?path=letter.txt")
    assert page.words.count("Restore") == 3, page.words  # before, restored, newest
    assert "also what is in the folder now" in page.words
    assert "old words" in visitor.get(f"{then}file/?path=letter.txt").words
    answer = visitor.get(f"{then}content/?path=letter.txt")
    assert (answer.text, answer.headers["Content-Security-Policy"]) == ("old words\n", "default-src 'none'; sandbox")
    page = visitor.get(f"{then}difference/?until={key_of(appliance, 'tank/photos@last')}")
    assert "letter.txt" in page.words


def test_folder_of_50000_files_is_paged(visitor, appliance, photos):
    appliance.shell("mkdir /tank/photos/many && cd /tank/photos/many && seq -w 50000 | xargs touch")
    appliance.run("zfs", "snapshot", "tank/photos@many")
    address = f"{known(visitor, appliance, 'tank/photos@many')}files/"
    page = visitor.get(f"{address}?path=many")
    assert "50000 names in this folder" in page.words
    assert "00200" in page.words
    assert "00201" not in page.words
    next_page = re.search(r'href="(\?path=many&amp;after=[^"]+)"', page.text)
    assert next_page
    assert "00201" in visitor.get(address + next_page[1].replace("&amp;", "&")).words


def test_browsing_leaves_no_mount_and_blocks_no_snapshot(visitor, appliance, photos, then):
    visitor.get(f"{then}files/")
    visitor.get(f"{photos}versions/?path=letter.txt")
    assert "@" not in appliance.shell("grep ' zfs ' /proc/mounts || true")
    appliance.run("zfs", "destroy", "tank/photos@same3")


def test_restore_again_after_agent_was_killed_loses_nothing(visitor, appliance, then):
    appliance.shell("cd /tank/photos && rm -r trip && echo mine > trip")
    with crash.watching(appliance, entry="step begun", step="restore", victim="agent") as watcher:
        job = start_restore(visitor, then, "trip", "back")
        crash.struck(watcher)
    # Wait for its end, because the same request during the job would be the same job.
    said = visitor.ended(job)
    assert re.match("Done|Interrupted", said), said
    crash.no_lock_left(appliance)
    assert "mine" in appliance.shell("cat /tank/photos/trip* 2>/dev/null || true")
    if not said.startswith("Done"):
        restore(visitor, then, "trip", "back")
    assert appliance.run("ls", "/tank/photos/trip/day one").strip() == "photo.raw"
    assert "mine" in appliance.shell("cat /tank/photos/trip*replaced*")
    assert "larder-restoring" not in appliance.run("ls", "-a", "/tank/photos")
