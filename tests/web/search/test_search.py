"""The search of the header: it leads to pools, folders, disks, users, shares, pages and acts, at
the same cost for every box."""

from __future__ import annotations

import re

import pytest
from django.urls import NoReverseMatch, reverse

from appliance.facts.copy_mark import CopyMark
from tests.unit.made import dataset
from tests.web import rows
from tests.web.routes import CLOSED, PHOTOS, VOLUME
from tests.web.system.test_queries import queries
from web.search.entries import ACTS, MOST, PAGES, find_entries

HTMX = {"HX-Request": "true"}
# Addresses without arguments that no entry leads to, and why.
NO_ENTRY = {
    "search": "the search itself",
    "make_phrase": "a step of Recovery",
    "confirm_phrase": "a step of Recovery",
    "choose_import_source": "a step of Import files",
    "unlock": "needs the folder in its address: Unlock a folder leads to the list",
    "unlock_all": "a review, and only with a locked folder: Unlock a folder leads to it",
    "download_peer": "a file to download",
}


@pytest.fixture
def box(calm) -> None:
    rows.recorded_box()


def found(text: str) -> list[str]:
    return [entry.words for entry in find_entries(text)]


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("tank", "tank"),
        ("scrub tank", "Scrub tank"),
        ("TANK scrub", "Scrub tank"),
        ("replace a disk", "Replace a disk"),
        ("add a user", "Add a user"),
        ("new user", "Add a user"),
        ("smtp", "Notifications"),
        ("lost file", "Restore files"),
        ("share a folder", "Share a folder"),
        ("guest", "SMB security"),
        ("smb.conf", "Manual changes"),
        ("pair", "Pair with another Larder"),
        ("reboot", "Restart"),
        ("shut down", "Shut down"),
    ],
)
def test_pages_and_acts_are_found_by_their_words(box, text, first):
    assert found(text)[0] == first


def has_arguments(name: str) -> bool:
    try:
        reverse(name)
    except NoReverseMatch:
        return True
    return False


def test_every_page_without_arguments_has_an_entry():
    pages = {route.name for route in CLOSED if "GET" in route.methods and not has_arguments(route.name)}
    listed = {name for _words, name, _icon, _more in (*PAGES, *ACTS)}
    assert sorted(pages - listed) == sorted(NO_ENTRY)
    assert sorted(listed - pages) == []


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("share photos", f"/shares/new/?folder={PHOTOS}"),
        ("snapshots photos", f"/snapshots/of/{PHOTOS}/"),
        ("restore files tank/photos", f"/snapshots/of/{PHOTOS}/restore/"),
        ("photos settings", f"/folders/{PHOTOS}/settings/"),
        ("users photos", f"/folders/{PHOTOS}/access/"),
        ("snapshot photos now", f"/snapshots/of/{PHOTOS}/take/"),
        ("back up photos", f"/backups/of/{PHOTOS}/new/"),
        ("iscsi disk1", f"/folders/{VOLUME}/iscsi/"),
    ],
)
def test_what_can_be_done_with_a_folder_is_found_by_its_name(box, text, url):
    assert url in [entry.url for entry in find_entries(text)]


def test_acts_on_a_folder_come_after_the_folder(box):
    urls = [entry.url for entry in find_entries("photos")]
    assert urls.index(f"/folders/{PHOTOS}/") < urls.index(f"/shares/new/?folder={PHOTOS}")


def test_files_of_a_volume_are_not_offered(box):
    assert not [words for words in found("disk1") if words.startswith(("Restore files", "Access"))]


def test_acts_that_a_copy_refuses_are_not_offered(calm):
    for name, kind in (("tank/backups/photos", "filesystem"), ("tank/backups/disk", "volume")):
        copy = dataset(name, kind=kind, mounted=False, mountpoint="none", copy_of=CopyMark(7, raw=False).text)
        rows.put(datasets=[dataset("tank"), copy])
        urls = [entry.url for entry in find_entries(name)]
        assert f"/snapshots/of/{copy.guid}/" in urls
        assert f"/snapshots/of/{copy.guid}/take/" not in urls
        assert f"/backups/of/{copy.guid}/new/" not in urls
        for refused in (
            f"/shares/new/?folder={copy.guid}",
            f"/folders/{copy.guid}/iscsi/",
            f"/folders/{copy.guid}/access/",
        ):
            assert refused not in urls


def test_sharing_a_folder_that_is_not_mounted_is_not_offered(calm):
    """A copy that was set aside, too: sharing and access are refused for what has no files to reach."""
    aside = {"copy_of": CopyMark(0, raw=False).text, "readonly": True}
    for changes in ({"mountpoint": "none"}, {"key_status": "unavailable", "encryption": "aes-256-gcm"}, aside):
        one = dataset("tank/attic", mounted=False, **changes)
        rows.put(datasets=[dataset("tank"), one])
        urls = [entry.url for entry in find_entries("attic")]
        assert f"/snapshots/of/{one.guid}/" in urls
        assert f"/shares/new/?folder={one.guid}" not in urls
        assert f"/folders/{one.guid}/access/" not in urls


def test_disks_are_found_by_bay_model_and_serial(box):
    for text in ("bay 1", "WD20EARS", "WCAZA0000001"):
        assert any(entry.kind == "disk" for entry in find_entries(text)), text


def test_every_result_leads_to_a_page(box, web):
    for text in ("", "tank", "disk", "a"):
        for entry in find_entries(text):
            assert web.get(entry.url).status_code == 200, entry


def test_results_end_at_twenty_and_cost_the_same_for_many(web, calm):
    costs = []
    for count in (2, 60):
        rows.large_box(count)
        web.get("/search/")
        costs.append(len(queries(web, "/search/?q=a")))
    assert costs[0] == costs[1]
    assert len(find_entries("a")) == MOST


def test_list_for_the_field_is_only_a_list(web, box):
    text = web.get("/search/", {"q": "tank"}, headers=HTMX).content.decode()
    assert "<html" not in text
    assert text.count('role="option"') == len(re.findall(r'id="found-\d+"', text)) > 0
    assert "Nothing found" in web.get("/search/", {"q": "zzz"}, headers=HTMX).content.decode()


def test_page_works_without_script(web, box):
    page = web.get("/")
    assert 'action="/search/"' in page.content.decode()
    assert "Scrub tank" in web.get("/search/", {"q": "scrub"}).content.decode()
    assert "Nothing found" in web.get("/search/", {"q": "zzz"}).content.decode()


@pytest.mark.parametrize("text", ["%", "_", "'", '"', "<script>alert(1)</script>", "x" * 5000, "\0", "ÄÖ", " "])
def test_odd_words_are_no_error_and_stay_text(web, box, text):
    for headers in ({}, HTMX):
        page = web.get("/search/", {"q": text}, headers=headers)
        assert page.status_code == 200
        assert "<script>alert" not in page.content.decode()
