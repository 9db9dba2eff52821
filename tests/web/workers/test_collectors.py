"""Collectors with the tools' answers made up: one that fails never silences another."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from msgspec.structs import replace

from appliance import agent_client, command
from appliance.disks import inventory as disk_inventory
from appliance.errors import Failed
from appliance.facts.box import Caching, PoolProperties, Use
from appliance.facts.sharing import Account
from appliance.pools import properties
from appliance.shares import publish
from appliance.snapshots import bookmarks
from appliance.system import accounts, paths
from appliance.zfs import kstat, list_snapshots, status
from tests.unit.made import dataset, disk, recorded, recorded_pool
from tests.unit.pools import shapes
from tests.web import rows
from web.disks import ports
from web.disks.models import BayRow, Replacement
from web.inventory import store
from web.inventory.dataset_models import DatasetRow, SnapshotReading
from web.inventory.models import AccountRow, CachingRow, DiskRow, PoolRow, ServiceRow, Source
from workers import collectors

SOURCES = {"pools", "properties", "reports", "datasets", "disks", "services", "shares", "accounts", "addresses"}
IP = json.dumps([{"addr_info": [{"local": "192.168.1.10"}, {"local": "fd00::10"}]}, {}])
SYSTEMD = (
    "Id=smbd.service\nLoadState=loaded\nActiveState=active\nUnitFileState=enabled\n\n"
    "Id=netatalk.service\nLoadState=not-found\nActiveState=inactive\n"
)


@pytest.fixture
def system(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Every tool answers with the recorded box. What is put here under a tool's name is answered instead."""
    answers = {"systemctl": SYSTEMD, "ip": IP}

    def run(argv: list[str], **_more: Any) -> command.Result:
        return command.Result(tuple(argv), 0, answers[argv[0]], "", 0.0)

    monkeypatch.setattr(command, "run", run)
    monkeypatch.setattr(status, "is_module_loaded", lambda: True)
    monkeypatch.setattr(status, "read_pools", lambda: (recorded_pool(),))
    monkeypatch.setattr(
        properties, "read_properties", lambda: (PoolProperties("tank", recorded_pool().guid, {"autotrim": "off"}),)
    )
    monkeypatch.setattr(status, "read_datasets", lambda: tuple(status.parse_datasets(recorded("zfs-list-2.3.9.json"))))
    for listing, name in ((list_snapshots, "list_snapshots"), (bookmarks, "read_bookmarks")):
        monkeypatch.setattr(listing, name, lambda _datasets: iter(()))
    monkeypatch.setattr(disk_inventory, "read_disks", rows.recorded_disks)
    monkeypatch.setattr(accounts, "read_accounts", lambda: (Account("anna", 1001),))
    monkeypatch.setattr(publish, "configured_shares", lambda: ())
    monkeypatch.setattr(collectors, "_stuck", {})
    return answers


def errors() -> dict[str, str]:
    return {source.name: source.error for source in Source.objects.all() if source.error}


def failing(error: Exception) -> Callable[..., Any]:
    def fail(*_args: Any, **_more: Any) -> None:
        raise error

    return fail


def test_everything_is_read_into_rows(system):
    collectors.collect_now()
    counts = [model.objects.count() for model in (PoolRow, DatasetRow, DiskRow, ServiceRow, AccountRow)]
    assert counts == [1, 2, 7, 2, 1]
    assert errors() == {}
    assert set(Source.objects.values_list("name", flat=True)) >= SOURCES


def test_the_new_disk_of_a_replacement_is_noted_as_pools_are_read(system, monkeypatch):
    case = Replacement.objects.create(pool="tank", pool_guid="7", vdev_guid="101", disk="x", guids=["101", "102"])
    monkeypatch.setattr(status, "read_pools", lambda: (shapes.replacing(),))
    collectors.collect_now()
    case.refresh_from_db()
    assert case.new_guid == "105"


def test_stopped_pool_keeps_the_folders_that_zfs_leaves_out_of_its_list(system, monkeypatch, tmp_path):
    """``zfs list`` 2.3.9 exits with 0 and without a word of a suspended pool's datasets (see ``test_pulled.py``)."""
    listed = status.read_datasets()
    usb = [dataset(name, guid=guid) for guid, name in enumerate(("usb", "usb/backups/photos"), 7)]
    monkeypatch.setattr(status, "read_datasets", lambda *_of: (*listed, *usb))
    collectors.collect_now()
    monkeypatch.setattr(status, "read_datasets", lambda *_of: listed)
    monkeypatch.setattr(kstat, "KSTAT", tmp_path)
    (tmp_path / "usb").mkdir()
    (tmp_path / "usb/state").write_text("SUSPENDED\n")
    collectors.collect_now()
    assert set(DatasetRow.objects.filter(pool="usb").values_list("name", flat=True)) == {"usb", "usb/backups/photos"}
    # Nor is ZFS asked for their snapshots, which would fail for all, and those that are known stay.
    asked: list[str] = []
    monkeypatch.setattr(list_snapshots, "list_snapshots", lambda names: asked.extend(names) or iter(()))
    SnapshotReading.objects.update(at=timezone.now() - timedelta(days=1))
    collectors.collect_now()
    assert asked == [one.name for one in listed]
    assert SnapshotReading.objects.filter(dataset__startswith="usb").count() == 2
    (tmp_path / "usb/state").write_text("ONLINE\n")
    collectors.collect_now()
    assert not DatasetRow.objects.filter(pool="usb").exists()


def test_list_that_hangs_in_a_stopped_pool_keeps_no_other_pool_from_being_read(system, monkeypatch, tmp_path):
    """``zfs list`` hangs for ever where its pool stops in the middle of it (2.3.9); the other
    pools are named from then on."""
    listed, asked = status.read_datasets(), []
    monkeypatch.setattr(status, "read_pools", lambda: (recorded_pool(), replace(recorded_pool(), name="usb", guid=7)))

    def hang(*_of):
        raise command.CommandTimedOut(["zfs", "list"], 120, os.getpid())

    monkeypatch.setattr(status, "read_datasets", hang)
    monkeypatch.setattr(kstat, "KSTAT", tmp_path)
    collectors.collect_now()
    assert "datasets" in errors()
    (tmp_path / "usb").mkdir()
    (tmp_path / "usb/state").write_text("SUSPENDED\n")
    monkeypatch.setattr(status, "read_datasets", lambda *of: asked.append(of) or listed)
    collectors.collect_now()
    assert asked == [("tank",)] and "datasets" not in errors()
    (tmp_path / "usb/state").write_text("ONLINE\n")
    collectors.collect_now()  # the first may wait still
    assert asked == [("tank",)] and "datasets" in errors()


def test_reading_the_same_again_moves_no_version(system):
    collectors.collect_now()
    before = dict(Source.objects.values_list("name", "version"))
    collectors.collect_now()
    assert dict(Source.objects.values_list("name", "version")) == before


BREAKABLE = {
    "pools": (status, "read_pools"),
    "datasets": (status, "read_datasets"),
    "disks": (disk_inventory, "read_disks"),
    "accounts": (accounts, "read_accounts"),
    "properties": (properties, "read_properties"),
    "shares": (publish, "configured_shares"),
    "services": (collectors, "read_services"),
}
FAULTS = [Failed("zpool said no"), AttributeError("'list' has no 'get'"), RecursionError()]


@pytest.mark.parametrize("broken", BREAKABLE)
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: type(fault).__name__)
def test_one_broken_source_keeps_what_it_knew_and_silences_no_other(system, monkeypatch, broken, fault):
    collectors.collect_now()
    PoolRow.objects.exclude(key="").update(name="old")
    before: dict[str, Any] = dict(Source.objects.values_list("name", "checked"))
    counts = [model.objects.count() for model in (PoolRow, DatasetRow, DiskRow, AccountRow)]
    monkeypatch.setattr(*BREAKABLE[broken], failing(fault))
    collectors.collect_now()
    assert set(errors()) == {broken}
    now: dict[str, Any] = dict(Source.objects.values_list("name", "checked"))
    assert all(now[name] > before[name] for name in SOURCES - ({"reports"} if broken == "pools" else set()))
    assert [model.objects.count() for model in (PoolRow, DatasetRow, DiskRow, AccountRow)] == counts


def test_known_pools_that_could_not_be_read_are_no_fault_once_the_pools_are(system, monkeypatch):
    collectors.collect_now()
    with monkeypatch.context() as patch:
        patch.setattr(status, "read_pools", failing(Failed("zpool said no")))
        patch.setattr(PoolRow, "fact", property(failing(ValueError("odd"))))
        collectors.collect_now()
    assert {"pools", "pools-before"} <= set(errors())
    collectors.collect_now()
    assert errors() == {}


@pytest.mark.parametrize("tool", ["systemctl", "ip"])
@pytest.mark.parametrize("output", ["", "{", "{}", "[]", "[1]", "=\n\n=", "\x00"])
def test_odd_output_of_a_tool_is_no_fault_of_another(system, tool, output):
    system[tool] = output
    collectors.collect_now()
    assert set(errors()) == {"services" if tool == "systemctl" else "addresses"}
    assert PoolRow.objects.count() == 1


def test_an_error_goes_when_the_source_can_be_read_again(system, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(disk_inventory, "read_disks", failing(Failed("lsblk said no")))
        collectors.collect_now()
        assert errors() == {"disks": "lsblk said no"}
    collectors.collect_now()
    assert errors() == {}


def test_a_new_error_moves_the_version_and_the_same_error_does_not(system, monkeypatch):
    monkeypatch.setattr(disk_inventory, "read_disks", failing(Failed("lsblk said no")))
    collectors.collect_now()
    first = Source.objects.get(name="disks").version
    collectors.collect_now()
    assert Source.objects.get(name="disks").version == first == 1


def test_while_pools_cannot_be_read_their_disks_stay_taken(system, monkeypatch):
    collectors.collect_now()
    monkeypatch.setattr(status, "read_pools", failing(Failed("zpool took too long")))
    collectors.collect_now()
    taken = [row.fact for row in DiskRow.objects.all() if row.fact.blocked and row.fact.blocked.kind == "pool"]
    assert len(taken) == 4


def test_a_pool_that_cannot_be_decoded_is_replaced_by_the_next_reading(system):
    collectors.collect_now()
    PoolRow.objects.update(facts="{")
    collectors.collect_now()
    assert errors() == {}
    assert PoolRow.objects.get().fact == recorded_pool()


def test_a_missing_module_is_a_fact_and_the_disks_are_still_read(system, monkeypatch):
    monkeypatch.setattr(status, "is_module_loaded", lambda: False)
    collectors.collect_now()
    assert errors() == {"zfs": collectors.ZFS_MISSING}
    assert (PoolRow.objects.count(), DiskRow.objects.count()) == (0, 7)


def test_a_reading_that_hangs_is_not_started_again_while_it_hangs(system, monkeypatch):
    asked = []

    def hang() -> None:
        asked.append(1)
        raise late

    late = command.CommandTimedOut(["zpool", "status"], 20, os.getpid())
    monkeypatch.setattr(status, "read_pools", hang)
    collectors.collect_now()
    collectors.collect_now()
    assert len(asked) == 1
    assert "still hangs in the system" in errors()["pools"]
    monkeypatch.setattr(collectors, "_stuck", {"pools": 2**22 + 1})  # no process has this number
    collectors.collect_now()
    assert len(asked) == 2


def test_the_addresses_of_the_box_are_written_for_the_check_of_names(system):
    collectors.collect_now()
    file = paths.RUN / "inventory/addresses"
    assert file.read_text() == "192.168.1.10\n[fd00::10]\n"
    written = file.stat().st_ino
    collectors.collect_now()
    assert file.stat().st_ino == written


# --- temperatures ---------------------------------------------------------------------------------------------
@pytest.fixture
def one_disk() -> str:
    rows.put(disks=[disk(1), disk(2, bus="virtio"), disk(3, path="", name="sdx")])
    return disk(1).path


def answer(path: str, found: Any, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    asked: list[dict[str, Any]] = []
    monkeypatch.setattr(
        agent_client, "send_request", lambda request, **_more: asked.append(request) or {"facts": {path: found}}
    )
    return asked


def test_the_agent_is_asked_for_disks_that_can_answer(one_disk, monkeypatch):
    asked = answer(one_disk, recorded("smartctl-qemu-ata-7.4.json"), monkeypatch)
    collectors.collect_temperatures()
    assert asked == [{"verb": "read-smart", "disks": [one_disk]}]
    assert errors() == {}


@pytest.mark.parametrize("odd", ["", "{", "[]", '{"name": 7}'])
def test_a_disk_whose_row_cannot_be_decoded_keeps_no_other_from_being_asked(one_disk, monkeypatch, odd):
    rows.put(disks=[disk(1), disk(4)])
    DiskRow.objects.filter(name=disk(4).name).update(facts=odd)
    asked = answer(one_disk, recorded("smartctl-qemu-ata-7.4.json"), monkeypatch)
    collectors.collect_temperatures()
    assert asked == [{"verb": "read-smart", "disks": [one_disk]}]
    assert DiskRow.objects.get(name=disk(1).name).smart_text


def test_disks_are_not_asked_again_while_they_are_still_being_asked(one_disk, monkeypatch):
    asked: list[dict[str, Any]] = []

    def slow(request: dict[str, Any], **_more: object) -> dict[str, Any]:
        asked.append(request)
        collectors.collect_temperatures()  # the clock's next beat comes before the answer
        return {"facts": {}}

    monkeypatch.setattr(agent_client, "send_request", slow)
    collectors.collect_temperatures()
    assert len(asked) == 1
    collectors.collect_temperatures()
    assert len(asked) == 2


def test_while_a_disk_is_failing_each_asking_moves_the_page_of_its_alert(one_disk, monkeypatch):
    """It says whether the disk has told how it is since it was erased, also where that is the same as before."""
    rows.alert()
    answer(one_disk, recorded("smartctl-qemu-ata-7.4.json"), monkeypatch)
    collectors.collect_temperatures()
    before = Source.objects.get(name="alerts").version
    collectors.collect_temperatures()
    assert Source.objects.get(name="alerts").version > before


def test_a_sleeping_disk_keeps_its_last_temperature(one_disk, monkeypatch):
    answer(one_disk, {"temperature": {"current": 31}}, monkeypatch)
    collectors.collect_temperatures()
    answer(
        one_disk, {"smartctl": {"exit_status": 2, "messages": [{"string": "Device is in STANDBY mode"}]}}, monkeypatch
    )
    collectors.collect_temperatures()
    row = DiskRow.objects.get(name="sda")
    assert (row.temperature, row.asleep) == (31, True)


@pytest.mark.parametrize(
    "found",
    [None, [], "x", {"temperature": None}, {"temperature": {"current": -40}}, {"temperature": {"current": "31"}}],
)
def test_an_odd_answer_is_no_temperature(one_disk, monkeypatch, found):
    answer(one_disk, found, monkeypatch)
    collectors.collect_temperatures()
    assert DiskRow.objects.get(name="sda").temperature is None
    assert errors() == {}


def test_an_answer_about_a_disk_that_was_not_asked_for_is_passed_over(one_disk, monkeypatch):
    answer("/dev/disk/by-id/another", {"temperature": {"current": 31}}, monkeypatch)
    collectors.collect_temperatures()
    assert errors() == {}


def test_an_agent_that_does_not_answer_is_an_error_of_this_source_alone(one_disk, monkeypatch):
    monkeypatch.setattr(agent_client, "send_request", failing(Failed("Larder's agent does not answer")))
    collectors.collect_temperatures()
    assert errors() == {"temperatures": "Larder's agent does not answer"}


def test_a_temperature_stays_when_the_facts_of_the_disk_are_read_again(one_disk, monkeypatch):
    answer(one_disk, {"temperature": {"current": 31}}, monkeypatch)
    collectors.collect_temperatures()
    store.replace(DiskRow, [disk(1, model="ANOTHER")], collectors.disk_key)
    assert DiskRow.objects.get().temperature == 31


# --- what ZFS counts ------------------------------------------------------------------------------------------
def test_what_zfs_counts_becomes_one_row_that_changes_only_with_its_percentages(one_disk, monkeypatch):
    now = Caching(hit_percent=91, sync_percent=None, memory=2**31)
    monkeypatch.setattr(kstat, "read_kstat", lambda: now)
    answer(one_disk, None, monkeypatch)
    collectors.collect_temperatures()
    assert CachingRow.objects.get().fact == now
    version = Source.objects.get(name="caching").version
    collectors.collect_temperatures()
    assert Source.objects.get(name="caching").version == version


def test_counters_that_cannot_be_read_silence_nothing_else(one_disk, monkeypatch):
    monkeypatch.setattr(kstat, "read_kstat", failing(Failed("no counters")))
    answer(one_disk, {"temperature": {"current": 31}}, monkeypatch)
    collectors.collect_temperatures()
    assert DiskRow.objects.get(name="sda").temperature == 31
    assert errors() == {"caching": "no counters"}


# --- bays, and what drives say of themselves --------------------------------------------------------------------
def test_the_ports_of_disks_are_remembered_once_and_those_of_the_system_never(system):
    collectors.collect_now()
    before = list(BayRow.objects.values())
    collectors.collect_now()
    assert list(BayRow.objects.values()) == before
    system_disk = disk(9, slot="p9", uses=(Use("system", "holds the system"),))
    store.replace(DiskRow, [disk(1, slot="p1"), disk(2, slot="p2", bus="usb"), system_disk], collectors.disk_key)
    ports.remember_ports(row.fact for row in DiskRow.objects.all())
    assert [row.port for row in BayRow.objects.all()][len(before) :] == ["p1"]


def test_an_odd_disk_that_could_not_be_read_again_keeps_no_port_of_others_from_being_remembered(system, monkeypatch):
    store.replace(DiskRow, [disk(1, slot="p1"), disk(2, slot="p2")], collectors.disk_key)
    DiskRow.objects.filter(name=disk(1).name).update(facts="{}")
    monkeypatch.setattr(disk_inventory, "read_disks", failing(Failed("lsblk said no")))
    collectors.collect_now()
    assert "bays" not in errors()
    assert "p2" in set(BayRow.objects.values_list("port", flat=True))


def test_what_a_drive_says_of_itself_is_kept_and_stays_while_it_sleeps(one_disk, monkeypatch):
    assert collectors.has_new_disk()
    answer(one_disk, {"smart_status": {"passed": False}}, monkeypatch)
    collectors.collect_temperatures()
    row = DiskRow.objects.get(name="sda")
    assert (row.smart_passed, row.smart_text) == (False, "It reports that it is failing.")
    assert not collectors.has_new_disk()
    asleep = {"smartctl": {"exit_status": 2, "messages": [{"string": "Device is in STANDBY mode"}]}}
    answer(one_disk, asleep, monkeypatch)
    collectors.collect_temperatures()
    row.refresh_from_db()
    assert (row.smart_passed, row.asleep) == (False, True)


def test_pages_ask_less_often_where_a_reading_takes_long(calm):
    now = timezone.now()
    assert store.claim_refresh("looking", not_since=now)
    store.note_duration("looking", 20)
    Source.objects.filter(name="looking").update(requested=now - timedelta(seconds=30))
    assert not store.claim_refresh("looking", not_since=now - timedelta(seconds=3))
    Source.objects.filter(name="looking").update(requested=now - timedelta(seconds=41))
    assert store.claim_refresh("looking", not_since=now - timedelta(seconds=3))
