"""A row of the inventory that cannot be decoded, as after an update, takes no page down and is
named where it is missed."""

from __future__ import annotations

from typing import Any

import pytest
from django.apps import apps
from django.db import connections
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from appliance.datasets.destroy import DestroyDataset
from appliance.datasets.user_quotas import SetUserQuota
from appliance.disks.selftest import StartSelfTest
from appliance.errors import Refused
from appliance.facts.box import Facts
from appliance.operation import Operation, Plan, checked_plan
from appliance.pools.scrub import StartScrub
from tests.unit.made import disk, recorded_pool
from tests.unit.pools import shapes
from tests.web import rows
from tests.web.pools.test_topology import put, seen
from tests.web.reading import text_of
from tests.web.routes import ROUTES, TANK, VAULT
from web.backups import status
from web.inventory import store
from web.inventory.box import read_box
from web.inventory.dataset_models import DatasetRow
from web.inventory.fact_row import Row, strict_about
from web.inventory.models import BoxRow, CachingRow, DiskRow, PolicyRow, PoolRow, ServiceRow
from web.pools import growth
from web.snapshots.cleanup import read_cleanup

LISTS = (
    "overview",
    "search",
    "pools",
    "replacements",
    "import_pools",
    "disks",
    "bays",
    "folders",
    "volumes",
    "snapshots",
    "snapshot_policies",
    "snapshots_space",
    "snapshot_holds",
    "restore",
    "backups",
    "new_backup",
    "remotes",
    "receivers",
    "connected",
    "edits",
    "users",
    "imports",
    "benchmarks",
    "alerts",
    "jobs",
    "pool",
    "disk",
    "folder",
    "user",
)
ALONE = {BoxRow, CachingRow, PolicyRow}  # there is one of each, and it is read again as a whole
# It has what queries look for in the text, and ends too early.
FACTS = (
    '{"kind":"filesystem","kind":"volume","share_source":"local","backup_source":"local","kind":"exported","who":"anna'
)
FACT_TABLES = [model for model in apps.get_app_config("inventory").get_models() if issubclass(model, Row)]

READ = [route.url for route in ROUTES if "GET" in route.methods and route.name != "account_logout"]
# They are about whatever is in tank, or what may be in any folder, and one there is odd.
NEEDING_ALL = {
    route.url
    for route in ROUTES
    if route.name in {"remove_group", "remove_user"}
    or route.url in {f"/folders/{VAULT}/key/lock/", f"/pools/{TANK}/end/export/"}
}
REFUSED = b'data-code="row-odd"'


@pytest.fixture
def odd(calm) -> None:
    """Beside the recorded box, one row that cannot be decoded in every table of facts."""
    rows.recorded_box()
    for model in FACT_TABLES:
        if model not in ALONE:
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


def get_pages(web, urls) -> dict[str, Any]:
    """The answers; a page that fails is an answer too."""
    web.raise_request_exception = False
    return {url: web.get(url) for url in urls}


def broken(found: dict[str, Any]) -> dict[str, BaseException]:
    return {url: answer.exc_info[1] for url, answer in found.items() if answer.status_code >= 500 and answer.exc_info}


def test_no_page_fails_for_an_odd_row_of_something_else(web, odd):
    found = get_pages(web, READ)
    assert broken(found) == {}
    assert {url for url, answer in found.items() if REFUSED in answer.content} == NEEDING_ALL


_queries: dict[str, str] = {}


@pytest.fixture
def queries(web, calm) -> dict[str, str]:
    """What each page asks of the sound inventory: one that never reads a table cannot fail for it.
    Asked once for all tests."""
    rows.recorded_box()
    for url in READ if not _queries else ():
        with CaptureQueriesContext(connections["inventory"]) as captured:
            web.get(url)
        _queries[url] = "\n".join(query["sql"] for query in captured)
    return _queries


@pytest.mark.parametrize("model", FACT_TABLES, ids=lambda model: model.__name__)
def test_no_page_fails_where_all_rows_of_a_table_are_odd(web, queries, model):
    readers = [url for url, asked in queries.items() if f'"{model._meta.db_table}"' in asked]
    assert bool(readers) == (model is not ServiceRow)  # alerts alone read that one
    model._default_manager.update(facts=FACTS)
    assert broken(get_pages(web, readers)) == {}


def review(operation: Operation) -> Plan:
    return checked_plan(operation, store.facts_for(operation))


def test_what_is_planned_for_a_sound_thing_does_not_depend_on_odd_rows(odd):
    operation = StartScrub.of(recorded_pool())
    assert review(operation).steps


@pytest.mark.parametrize("model", [PoolRow, DatasetRow])
def test_nothing_is_planned_for_what_cannot_be_decoded(calm, model):
    rows.recorded_box()
    photos = DatasetRow.objects.get(name="tank/photos").fact
    model._default_manager.filter(name__in=("tank", "tank/photos")).update(facts=FACTS)
    with pytest.raises(Refused) as refused:
        review(SetUserQuota(dataset="tank/photos", guid=photos.guid, of="user", who="anna", size=2**30))
    assert [reason.code for reason in refused.value.reasons] == ["row-odd"]
    assert "tank" in str(refused.value)


def test_nothing_is_planned_for_an_odd_disk(calm):
    put(shapes.raidz2())
    path = disk(6).path
    assert facts_for_disk(path)
    DiskRow.objects.filter(key=path.rpartition("/")[2]).update(facts=FACTS)
    with pytest.raises(Refused, match=path.rpartition("/")[2]):
        facts_for_disk(path)


def facts_for_disk(path: str) -> Facts:
    return store.facts_for(StartSelfTest(disk=path, test="short"))


def test_nothing_that_holds_an_odd_folder_is_destroyed(calm):
    rows.recorded_box()
    photos = DatasetRow.objects.get(name="tank/photos").fact
    DatasetRow.objects.create(key="9", name="tank/photos/odd", pool="tank", facts=FACTS)
    operation = DestroyDataset(dataset="tank/photos", guid=photos.guid)
    with pytest.raises(Refused, match="tank/photos/odd"):
        store.facts_for(operation)
    DatasetRow.objects.filter(key="9").update(name="tank/odd")
    assert store.facts_for(operation).dataset("tank/photos")


def test_a_page_of_something_odd_says_so_in_a_sentence(web, calm):
    rows.recorded_box()
    row = DatasetRow.objects.get(name="tank/photos")
    DatasetRow.objects.filter(pk=row.pk).update(facts=FACTS)
    answer = web.get(f"/folders/{row.key}/settings/")
    assert answer.status_code == 409
    assert "What Larder stored of tank/photos cannot be read." in text_of(answer)


def test_a_restore_is_not_planned_without_an_odd_folder_below_its_copy(calm):
    rows.recorded_box()
    DatasetRow.objects.create(key="9", name="tank/photos/odd", pool="tank", facts=FACTS)
    assert status.read_facts(strict_about("tank/other")).dataset("tank/photos")
    with pytest.raises(Refused, match="tank/photos/odd"):
        status.read_facts(strict_about("tank/photos"))


def test_growth_calls_no_copy_an_orphan_while_a_folder_is_odd(calm, monkeypatch):
    rows.recorded_box()
    monkeypatch.setattr(growth, "read_orphans", lambda _facts: [DatasetRow.objects.get(name="tank/photos").fact])
    given: list[object] = []
    monkeypatch.setattr(growth, "read_cleanup", lambda _own, copies: given.append(copies) or read_cleanup(_own, copies))
    box = read_box()
    growth.build_page(box.cards[0], box, timezone.now())
    DatasetRow.objects.create(key="9", name="tank/odd", pool="tank", facts=FACTS)
    growth.build_page(box.cards[0], box, timezone.now())
    assert given == [["tank/photos"], []]
