"""Search by name in real snapshots: odd names, many files, locked and unmounted folders; the file found is restored."""

from __future__ import annotations

import re
import urllib.parse

import pytest

from deploy.image.machine import Machine
from tests.system.policy import known
from tests.system.sharing import job_in, key_of
from tests.visitor import Visitor, create_pool, disk_paths

MAKE = """
cd /tank/photos
mkdir -p 'trip/day one'
printf 'dear anna\\n' > 'trip/day one/Letter to Änna.txt'
printf x > "$(printf 'trip/letter\\nnew line')"
printf x > "$(printf 'trip/letter\\377')"
printf x > 'trip/letter <b>'
ln -s /etc/shadow letter-link; ln -s /etc ways
"""
MAKE_MANY = """
cd /tank/pictures
seq -f 'picture %05g.jpg' 1 20000 | xargs -d '\\n' touch
"""


@pytest.fixture(scope="module")
def photos(appliance: Machine, visitor: Visitor) -> str:
    """The address of the snapshots of tank/photos; what it had is deleted."""
    (disk,) = disk_paths(appliance, 1)
    create_pool(appliance, "-o", "ashift=12", "tank", disk)
    appliance.run("zfs", "create", "tank/photos")
    appliance.shell(MAKE)
    for name in ("first", "same", "third"):
        appliance.run("zfs", "snapshot", f"tank/photos@{name}")
        appliance.run("zpool", "sync", "tank")
    appliance.run("rm", "-r", "/tank/photos/trip")
    appliance.run("zfs", "snapshot", "tank/photos@later")
    known(visitor, appliance, "tank/photos@later")
    return f"/snapshots/of/{key_of(appliance, 'tank/photos')}/"


@pytest.fixture(scope="module")
def pictures(appliance: Machine, visitor: Visitor, photos: str) -> str:
    """The address of the snapshots of a folder with 20,000 files."""
    appliance.run("zfs", "create", "tank/pictures")
    appliance.shell(MAKE_MANY)
    appliance.run("zfs", "snapshot", "tank/pictures@full")
    known(visitor, appliance, "tank/pictures@full")
    return f"/snapshots/of/{key_of(appliance, 'tank/pictures')}/"


def search(visitor: Visitor, photos: str, text: str) -> str:
    """The words of all pieces of a search, as somebody without script follows them."""
    page = visitor.get(f"{photos}restore/?q={urllib.parse.quote(text)}")
    words = page.words
    while more := re.search(r'href="(\?q=[^"]*after=[^"]*)"', page.text):
        page = visitor.get(f"{photos}restore/{more[1].replace('&amp;', '&')}")
        words += page.words
    return words


def test_odd_names_are_found_whatever_their_case(visitor, photos):
    words = search(visitor, photos, "LETTER")
    for name in ("Letter to Änna.txt", "letter?new line", "letter?", "letter <b>"):
        assert name in words, words
    assert "letter-link" not in words
    assert "4 found in 4 snapshots." in words
    assert "änna" not in words
    assert "Letter to Änna.txt" in search(visitor, photos, "änna")


def test_search_leads_to_nothing_outside(visitor, photos):
    assert "0 found in 4 snapshots." in search(visitor, photos, "shadow")


def test_many_results_ask_for_more_of_the_name(visitor, pictures):
    assert "Stopped after 200 results." in search(visitor, pictures, "picture")
    assert "1 found in 1 snapshot." in search(visitor, pictures, "picture 12345")


def test_found_file_is_restored_where_it_was_and_then_beside(appliance, visitor, photos):
    path = "trip/day one/Letter to Änna.txt"
    page = visitor.get(f"{photos}restore/?q=letter%20to")
    found = re.search(r'action="([^"]*/restore/\?path=[^"]*)"', page.text)
    assert found, page.text
    action = found[1].replace("&amp;", "&")
    for _ in range(2):
        assert visitor.ended(job_in(visitor.post(action, place="free"))).startswith("Done.")
    assert appliance.run("cat", f"/tank/photos/{path}") == "dear anna\n"
    names = appliance.run("ls", "/tank/photos/trip/day one").splitlines()
    assert len(names) == 2, names
    assert "(from 20" in min(names, key=lambda name: "(from" not in name)


def test_nothing_is_left_mounted(appliance, visitor, photos):
    search(visitor, photos, "letter")
    assert ".zfs/snapshot" not in appliance.run("cat", "/proc/mounts")


def test_unmounted_folder_can_be_searched_and_says_so(appliance, visitor, photos):
    appliance.run("zfs", "unmount", "tank/photos")
    try:
        visitor.wait_until(f"{photos}restore/", "is not mounted", timeout=120)
        assert "4 found" in search(visitor, photos, "letter") or "found in 4 snapshots" in search(
            visitor, photos, "letter"
        )
    finally:
        appliance.run("zfs", "mount", "tank/photos")
