"""What the overview tells of this moment: network, disks, temperatures, who is connected,
and how old the copies are."""

from __future__ import annotations

from datetime import timedelta

import pytest
import time_machine
from django.utils import timezone
from msgspec.structs import replace

from appliance.facts.sharing import Share
from appliance.shares.connections import Connection
from tests.unit.made import disk, shared
from tests.web import rows
from tests.web.reading import text_of
from web.backups.models import BackupRecord
from web.inventory import store
from web.inventory.models import BoxRow, ConnectionRow, DiskRow

NOW = timezone.now()
BOX, CLIENTS = ("workers.read_box",), ("workers.read_connections",)


def put_rates(network: dict[str, list[int]], disks: list[int]) -> None:
    store.replace(
        BoxRow,
        [replace(rows.BOX, uptime=90001.0)],
        lambda _info: "box",
        rates=lambda _info: network,
        disk_rates=lambda _info: disks,
    )
    store.checked("box", changed=True)


@pytest.fixture
def served(calm) -> None:
    """A folder is shared, and it is known who is connected."""
    rows.put(pools=[rows.recorded_pool()], datasets=[shared("tank/photos")])
    store.checked("connections", changed=True)


def connect(*names: str) -> None:
    store.replace(
        ConnectionRow, [Connection("smb", str(at), name, "pc") for at, name in enumerate(names)], lambda one: one.key
    )


def test_throughput_of_all_ports_and_disks_is_told(web, calm):
    rows.recorded_box()
    put_rates({"eth0": [2000, 500], "eth1": [1000, 0]}, [4000, 5000])
    text = text_of(web.get("/"))
    assert "3 kB/s in, 500 B/s out" in text
    assert "4 kB/s read, 5 kB/s written" in text


def test_figures_of_a_minute_ago_are_not_of_now(web, calm):
    rows.recorded_box()
    put_rates({"eth0": [2000, 500]}, [4000, 5000])
    with time_machine.travel(timezone.now() + timedelta(minutes=2)):
        now = web.get("/").context["now"]
    assert (now.network, now.disks, now.sensor) == (None, None, None)


def test_warmest_disk_and_sensor_are_told_and_sleeping_disks_are_not_asked(web, calm):
    rows.put(disks=[disk(1), disk(2), disk(3)])
    for at, (row, temperature) in enumerate(zip(DiskRow.objects.order_by("key"), (38, 44, 60), strict=True)):
        row.temperature, row.asleep = temperature, at == 2
        row.save()
    rows.put_box()
    now = web.get("/").context["now"]
    assert (now.warmest, now.sensor.value) == (44, 41)


def test_each_who_is_connected_is_named_once_and_the_rest_counted(web, served):
    connect("anna", "anna", "ben", "cleo", "dora", "eva", "fritz")
    now = web.get("/").context["now"]
    assert (now.people, now.more_people) == (("anna", "ben", "cleo", "dora"), 2)
    assert "anna, ben, cleo, dora and 2 more" in text_of(web.get("/"))


def test_hostile_name_of_a_client_is_text(web, served):
    connect("<b>anna")
    assert "<b>anna" in text_of(web.get("/"))


def test_without_shares_nobody_is_looked_for(web, calm):
    rows.put(pools=[rows.recorded_pool()])
    web.get("/")
    assert BOX in calm
    assert CLIENTS not in calm


def test_open_overview_has_figures_read_every_ten_seconds_and_clients_every_thirty(web, calm):
    rows.put(
        pools=[rows.recorded_pool()], datasets=[shared("tank/photos")], shares=[Share("smb", "photos", "/tank/photos")]
    )
    with time_machine.travel(NOW, tick=False) as clock:
        for _ in range(14):  # as htmx asks, for 39 seconds
            web.get("/", HTTP_HX_REQUEST="true")
            clock.shift(3)
    assert (calm.count(BOX), calm.count(CLIENTS)) == (4, 2)


@pytest.mark.parametrize(
    ("ages", "told"),
    [([], None), ([3, 1, 2], NOW - timedelta(hours=3)), ([3, None], NOW - timedelta(hours=3)), ([None, None], None)],
)
def test_copy_that_counts_is_the_oldest_of_the_newest(web, calm, ages, told):
    rows.recorded_box()
    for at, age in enumerate(ages):
        good = None if age is None else NOW - timedelta(hours=age)
        BackupRecord.objects.create(dataset_key=str(at), task="x", since=NOW, good=good)
    response = web.get("/")
    assert (response.context["now"].backups, response.context["now"].copied) == (len(ages), told)
    missing = {0: "", 1: "1 backup has no copy yet", 2: "2 backups have no copy yet"}[ages.count(None)]
    assert missing in text_of(response)


def test_box_that_tells_nothing_has_a_page(web, calm):
    rows.put(pools=[rows.recorded_pool()])
    rows.put_box(replace(rows.BOX, ports=(), temperatures=()))
    assert "being measured" in text_of(web.get("/"))
