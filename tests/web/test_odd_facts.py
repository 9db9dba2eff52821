"""A row of the inventory that cannot be decoded, as after an update, takes no page down and is named where it is missed."""

from __future__ import annotations

import pytest
from django.apps import apps

from tests.unit.made import disk, recorded_pool
from tests.unit.pools import shapes
from tests.web import rows
from tests.web.pools.test_topology import put, seen
from tests.web.reading import text_of
from tests.web.routes import ROUTES
from web.inventory.box import read_box
from web.inventory.fact_row import Row
from web.inventory.models import BoxRow, CachingRow, DatasetRow, DiskRow, PolicyRow, PoolRow

LISTS = (
    "overview", "search", "pools", "replacements", "import_pools", "disks", "bays", "folders", "volumes", "snapshots",
    "snapshot_policies", "snapshots_space", "snapshot_holds", "restore", "backups", "new_backup", "remotes", "receivers",
    "connected", "edits", "users", "imports", "benchmarks", "alerts", "jobs", "pool", "disk", "folder", "user",
)  # fmt: skip
ALONE = {BoxRow, CachingRow, PolicyRow}  # there is one of each, and it is read again as a whole
# It has what queries look for in the text, and ends too early.
FACTS = (
    '{"kind":"filesystem","kind":"volume","share_source":"local","backup_source":"local","kind":"exported","who":"anna'
)


@pytest.fixture
def odd(calm) -> None:
    """Beside the recorded box, one row that cannot be decoded in every table of facts."""
    rows.recorded_box()
    for model in apps.get_app_config("inventory").get_models():
        if issubclass(model, Row) and model not in ALONE:
            model._default_manager.create(key="odd", name="tank/odd" if model is DatasetRow else "odd", facts=FACTS)
    DatasetRow.objects.filter(key="odd").update(pool="tank")


def test_pages_show_what_can_be_decoded(web, odd):
    web.raise_request_exception = False
    urls = [route.url for route in ROUTES if route.name in LISTS and "GET" in route.methods]
    assert len(urls) >= len(LISTS) - 1
    found = {url: web.get(url, {"q": "odd"}) for url in urls}
    broken = {url: answer.exc_info[1] for url, answer in found.items() if answer.status_code >= 500}
    assert broken == {}


@pytest.mark.parametrize("url", ["/", "/pools/", "/disks/"])
def test_pages_of_the_box_name_the_odd_pool_and_show_the_others(web, calm, url):
    pool = rows.recorded_box()
    PoolRow.objects.create(key="9", name="attic", facts="{}")
    said = text_of(web.get(url))
    assert "attic cannot be shown." in said
    assert pool.name in said
    PoolRow.objects.filter(key="9").delete()
    assert "cannot be shown" not in text_of(web.get(url))


def test_an_odd_disk_gives_no_other_disk_a_wrong_bay_and_its_own_is_not_called_empty(calm):
    put(shapes.raidz2())
    first, *others = [bay.number for bay in read_box().bays]
    DiskRow.objects.filter(key=read_box().bays[0].key).update(facts="{}")
    box = read_box()
    assert box.odd == [disk(1).path.rpartition("/")[2]]
    assert [bay.name for bay in box.bays] == ["?"] * len(others)
    seen(range(2, 7))
    assert [bay.number for bay in read_box().bays] == list(range(1, 6))
    assert read_box().nothing == []
    assert first == 1


def test_of_the_disks_of_an_odd_pool_it_is_not_said_that_they_are_unused(calm):
    rows.recorded_box()
    PoolRow.objects.filter(key=str(recorded_pool().guid)).update(facts="{}")
    words = {bay.word for bay in read_box().bays if bay.pool}
    assert words == {"unknown"}
