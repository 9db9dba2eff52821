from __future__ import annotations

import copy
import json
from datetime import UTC, datetime

import pytest

from appliance.alerts import fault, rules
from appliance.errors import Failed
from appliance.facts import vdev_state
from appliance.facts.datasets import Property
from appliance.pools import health, properties
from appliance.zfs import ashift, kstat, status, vdev_tree
from tests.unit.made import recorded, recorded_pool, recorded_text


def test_it_reads_a_recorded_raidz2():
    pool = recorded_pool()
    assert (pool.name, pool.guid, pool.state, pool.errors) == ("tank", 1443772876214735903, "ONLINE", 0)
    (group,) = pool.vdevs
    assert (group.kind, group.parity, group.role, len(group.children)) == ("raidz", 2, "normal", 4)
    assert pool.failures_left == 2
    assert (pool.size, pool.allocated, pool.free) == (7988639170560, 2322432, 7988639170560 - 2322432)


def test_it_reads_every_device_with_its_stable_path():
    paths = [device.path for device in recorded_pool().devices()]
    assert len(paths) == 4
    assert all(path.startswith("/dev/disk/by-id/ata-") and path.endswith("-part1") for path in paths)


def test_it_reads_a_finished_scrub():
    scan = recorded_pool().scan
    assert scan is not None
    assert (scan.kind, scan.state, scan.percent) == ("scrub", "finished", 100)
    assert scan.started == datetime.fromtimestamp(1795215093, UTC)
    assert scan.ended == datetime.fromtimestamp(1795215094, UTC)


def test_it_reads_a_pool_with_a_pulled_disk():
    pool = recorded_pool("zpool-status-pulled-2.3.9.json")
    assert pool.state == "DEGRADED"
    assert [device.state for device in pool.devices()].count("REMOVED") == 1
    assert pool.failures_left == 1
    assert "removed" in pool.status
    assert "zpool replace" in pool.action


def test_recorded_disks_that_were_missing_when_the_pool_was_opened_are_lost():
    pool = recorded_pool("zpool-status-missing-2.3.9.json")
    states = {device.name: device.state for device in pool.devices()}
    assert sorted(states.values()) == ["ONLINE", "ONLINE", "UNAVAIL", "UNAVAIL", "UNAVAIL", "UNAVAIL"]
    assert pool.failures_left == 0
    assert {device.role for device in pool.devices() if device.state in vdev_state.ABSENT} == {
        "normal",
        "spare",
        "cache",
    }


def test_recorded_disk_whose_rebuild_waits_for_another_is_not_whole():
    """Recorded: a second disk of a raidz2 came back while the first was being rebuilt. Both are ONLINE."""
    pool = recorded_pool("zpool-status-resilver-deferred-2.3.9.json")
    (waiting,) = (device for device in pool.devices() if device.deferred)
    assert waiting.path.endswith("WCAZA0000003-part1")
    assert (waiting.state, pool.whole(waiting)) == ("ONLINE", False)


def changed(**values: object) -> dict[str, object]:
    """Derived from the recorded raidz2: other values in the scan."""
    raw = copy.deepcopy(recorded("zpool-status-raidz2-2.3.9.json"))
    raw["pools"]["tank"]["scan_stats"].update(values)
    return raw


@pytest.mark.parametrize(("pause", "state"), [(0, "scanning"), (1795215099, "paused")])
def test_a_scan_under_way_has_no_end_and_never_says_100_percent(pause, state):
    raw = changed(state="SCANNING", scrub_pause=pause, issued=3661824, end_time=1795215094)
    scan = next(status.parse_pools(raw)).scan
    assert scan is not None
    assert (scan.state, scan.ended, scan.percent) == (state, None, 99)


def test_a_scan_with_nothing_to_examine_is_at_the_beginning():
    scan = next(status.parse_pools(changed(state="SCANNING", to_examine=0, issued=0))).scan
    assert scan is not None
    assert scan.percent == 0


def test_a_time_beyond_any_calendar_does_not_hide_the_pool():
    (pool,) = status.parse_pools(changed(end_time=2**63, start_time=2**64 - 1))
    assert pool.name == "tank"
    assert pool.scan is None


def test_a_pool_never_scrubbed_has_no_scan():
    raw = copy.deepcopy(recorded("zpool-status-raidz2-2.3.9.json"))
    del raw["pools"]["tank"]["scan_stats"]
    assert next(status.parse_pools(raw)).scan is None


def test_what_is_missing_gets_its_plain_default():
    (pool,) = status.parse_pools({"pools": {"tank": {"name": "tank"}}})
    assert (pool.state, pool.vdevs, pool.guid, pool.failures_left) == ("UNKNOWN", (), 0, 0)


@pytest.mark.parametrize("raw", [{}, {"pools": None}, {"pools": {}}, {"output_version": {}}])
def test_no_pools_is_no_error(raw):
    assert list(status.parse_pools(raw)) == []


def test_recorded_logs_caches_and_spares_have_their_role():
    pool = recorded_pool("zpool-status-full-2.3.9.json")
    assert [(vdev.role, vdev.name.split("-")[0]) for vdev in pool.vdevs] == [
        ("normal", "mirror"),
        ("log", "mirror"),
        ("cache", "ata"),
        ("spare", "ata"),
    ]
    assert [device.role for device in pool.devices()] == ["normal", "normal", "log", "log", "cache", "spare"]
    assert (pool.vdevs[-1].state, pool.failures_left) == ("AVAIL", 1)
    assert [vdev.role for vdev in recorded_pool("zpool-status-log-removed-2.3.9.json").vdevs] == [
        "normal",
        "cache",
        "spare",
    ]


def test_a_recorded_spare_that_stands_in_works_as_data_and_waits_in_name_only():
    pool = recorded_pool("zpool-status-spare-in-use-2.3.9.json")
    standing = pool.vdevs[0].children[1]
    assert (standing.kind, standing.state) == ("spare", "DEGRADED")
    assert [(device.state, device.role) for device in standing.children] == [
        ("OFFLINE", "normal"),
        ("ONLINE", "normal"),
    ]
    waiting = pool.vdevs[-1]
    assert (waiting.role, waiting.state, waiting.guid) == ("spare", "INUSE", standing.children[1].guid)
    assert pool.failures_left == 1
    place = vdev_tree.find_vdev(pool, waiting.guid)
    assert place
    assert (place.role, place.parent) == ("normal", standing)


def test_until_the_recorded_spare_is_filled_one_more_failure_is_too_many():
    pool = recorded_pool("zpool-status-spare-rebuilding-2.3.9.json")
    assert pool.rebuilding
    assert pool.failures_left == 0


def test_a_recorded_group_that_is_being_emptied_says_so_and_leaves_nothing_behind():
    assert [vdev.removing for vdev in recorded_pool("zpool-status-remove-running-2.3.9.json").vdevs] == [False, True]
    done = recorded_pool("zpool-status-remove-done-2.3.9.json")
    assert [vdev.name for vdev in done.vdevs] == ["mirror-0"]
    assert (done.size, done.failures_left) == (503316480, 1)


def test_recorded_damage_is_counted():
    pool = recorded_pool("zpool-status-errlist-2.3.9.json")
    (device,) = pool.devices()
    assert (pool.state, pool.errors, device.checksum_errors) == ("ONLINE", 129, 327)
    assert pool.scan is not None
    assert (pool.scan.errors, pool.scan.repaired) == (133, 48640)


def test_a_recorded_pool_with_a_key_file_says_so():
    (root,) = status.parse_datasets(recorded("zfs-list-key-hex-2.3.9.json"))
    assert (root.name, root.encryption, root.key_format, root.key_status) == (
        "hexed",
        "aes-256-gcm",
        "hex",
        "available",
    )


def test_one_unmirrored_special_device_is_a_pools_weakest_part():
    """Derived from the recorded raidz2: a special device without redundancy."""
    raw = copy.deepcopy(recorded("zpool-status-raidz2-2.3.9.json"))
    raw["pools"]["tank"]["special"] = {"x": {"name": "x", "vdev_type": "disk", "state": "ONLINE", "class": "special"}}
    assert next(status.parse_pools(raw)).failures_left == 0


def test_it_reads_recorded_datasets():
    root, photos = status.parse_datasets(recorded("zfs-list-2.3.9.json"))
    assert (root.name, root.kind, root.mounted, root.mountpoint) == ("tank", "filesystem", True, "/tank")
    assert (root.encryption, root.key_status, root.encryption_root, root.locked) == (
        "aes-256-gcm",
        "available",
        "tank",
        False,
    )
    assert (root.share, root.share_source) == ("", "none")  # it is not set; the recording tells the source of another
    assert (photos.share, photos.share_source, photos.guid) == ('{"smb":true}', "local", 6683942667665662560)
    assert root.used == 1124928
    assert root.available == 3748834235840
    assert photos.pool == "tank"


def test_guids_above_the_largest_signed_number_are_told_apart(commands):
    """``--json-int`` cuts them all at 2^63 - 1, so numbers are asked for as text."""
    commands.answers["zfs"] = json.dumps(recorded("zfs-list-text-2.3.9.json"))
    root, photos = status.read_datasets()
    assert "--json-int" not in commands.ran[0]
    assert (root.guid, photos.guid) == (16732872757114812839, 17276080823079736530)
    assert (root.used, root.created.year, root.mounted) == (736560, 2026, True)


def test_a_creation_beyond_any_calendar_does_not_hide_the_datasets():
    """Derived from the recorded list: a time that no calendar has."""
    raw = recorded("zfs-list-2.3.9.json")
    raw["datasets"]["tank"]["properties"]["creation"]["value"] = 2**63
    assert [found.name for found in status.parse_datasets(raw)] == ["tank", "tank/photos"]


def test_a_locked_dataset_is_seen_as_locked():
    """Derived from the recorded list: the key unloaded."""
    raw = recorded("zfs-list-2.3.9.json")
    raw["datasets"]["tank"]["properties"]["keystatus"]["value"] = "unavailable"
    assert next(status.parse_datasets(raw)).locked


@pytest.mark.parametrize(
    ("mountpoint", "canmount", "can"),
    [
        ("/tank", "on", True),
        ("legacy", "on", False),
        ("none", "on", False),
        ("/tank", "off", False),
        ("/tank", "noauto", False),
    ],
)
def test_it_knows_what_is_meant_to_be_mounted(mountpoint, canmount, can):
    """Derived from the recorded list."""
    raw = recorded("zfs-list-2.3.9.json")
    raw["datasets"]["tank"]["properties"]["mountpoint"]["value"] = mountpoint
    raw["datasets"]["tank"]["properties"]["canmount"]["value"] = canmount
    assert next(status.parse_datasets(raw)).can_mount is can


def test_output_that_is_not_json_is_the_tools_fault_and_said_so(commands):
    commands.answers["zpool"] = "cannot open 'tank': pool I/O is currently suspended"
    with pytest.raises(Failed, match="not JSON"):
        status.read_pools()


@pytest.fixture
def pool_being_rebuilt(commands, monkeypatch, tmp_path):
    """The recorded pool ``full``, which ``zpool status`` calls DEGRADED while it rebuilds, and a
    kernel that has its own word."""
    commands.answers["zpool"] = recorded_text("zpool-status-spare-rebuilding-2.3.9.json")
    monkeypatch.setattr(kstat, "KSTAT", tmp_path)
    monkeypatch.setattr(ashift, "_known", {})
    (tmp_path / "full").mkdir()
    return tmp_path / "full" / "state"


def test_pool_that_stops_during_rebuild_is_stopped_although_zpool_status_calls_it_degraded(
    pool_being_rebuilt, commands
):
    pool_being_rebuilt.write_text("SUSPENDED\n")
    (pool,) = status.read_pools()
    assert (pool.name, pool.rebuilding, pool.state) == ("full", True, "SUSPENDED")
    assert health.of_pool(pool, lambda vdev: vdev.name).headline == "full has stopped."
    faults, complete = rules.find_faults(fault.AlertInput(now=datetime.now(UTC), pools=(pool,)))
    assert complete
    assert "pool.stopped" in {fault.kind for fault in faults}
    assert commands.ran == [list(status.READ_POOLS)]  # nothing that could wait for the pool's disks


@pytest.mark.parametrize("kernel_says", ["DEGRADED\n", "TRANSITIONING\n", "", None])
def test_pool_that_the_kernel_does_not_call_stopped_keeps_the_state_of_zpool_status(pool_being_rebuilt, kernel_says):
    if kernel_says is not None:
        pool_being_rebuilt.write_text(kernel_says)
    (pool,) = status.read_pools()
    assert (pool.name, pool.state) == ("full", "DEGRADED")


@pytest.mark.parametrize("said", ["null", "[]", "3", '"nonsense"'])
def test_json_of_another_shape_is_no_box_without_pools(said, commands):
    commands.answers["zpool"] = commands.answers["zfs"] = said
    for read in (status.read_pools, status.read_datasets, properties.read_properties):
        with pytest.raises(Failed, match="not what was asked for"):
            read()


def test_it_asks_zfs_for_every_column_that_it_reads(commands):
    assert status.read_datasets() == ()
    (argv,) = commands.ran
    asked = set(argv[argv.index("-o") + 1].split(","))
    assert {
        "name",
        "guid",
        "creation",
        "mountpoint",
        "keystatus",
        "encryptionroot",
        "canmount",
        "larder:share",
    } <= asked


def test_no_output_is_no_pools(commands):
    assert status.read_pools() == ()


@pytest.mark.parametrize("before", ["LOCAL", "RECEIVED"])
def test_property_that_is_not_set_has_no_source(before):
    """ZFS 2.3.9 tells of an unset property the source of the one before it, as recorded for larder:unlock."""
    raw = recorded("zfs-list-2.3.9.json")
    photos = raw["datasets"]["tank/photos"]["properties"]
    photos["larder:policy"] = {"value": "-", "source": {"type": before, "data": "-"}}
    found = {one.name: one for one in status.parse_datasets(raw)}["tank/photos"]
    assert found.policy_source == "none"
    photos["larder:share"] = {"value": "-", "source": {"type": "INHERITED", "data": "tank"}}
    found = {one.name: one for one in status.parse_datasets(raw)}["tank/photos"]
    assert (found.share_source, found.share_from) == ("none", "")


def test_recorded_listings_hold_sources_of_properties_that_are_not_set():
    """What the rule above is for."""
    films = recorded("zfs-list-properties-2.3.9.json")["datasets"]["datasetsp/films"]["properties"]
    assert films["larder:unlock"] == {"value": "-", "source": {"type": "LOCAL", "data": "-"}}


@pytest.mark.parametrize(
    ("value", "source", "expected"),
    [
        ("on", "LOCAL", True),
        ("on", "INHERITED", True),
        ("off", "DEFAULT", False),
        ("on", "TEMPORARY", False),
        ("off", "TEMPORARY", True),
    ],
)
def test_folder_is_read_only_as_it_is_set_not_as_it_is_mounted_where_larder_looks(value, source, expected):
    raw = {"readonly": {"value": value, "source": {"type": source, "data": "-"}}}
    assert status.parse_dataset("tank", "filesystem", status.ListedProperties(raw), "", {}).readonly is expected


@pytest.mark.parametrize(
    ("above", "shown"),
    [("off", Property("off", "unknown")), ("on", Property("off", "local"))],
)
def test_settings_show_read_only_as_it_is_set_where_all_mounts_are_read_only(above, shown):
    """ZFS tells the worker of its mounts, which are read-only (source TEMPORARY), and not
    where the value comes from."""
    raw = {
        "tank": {"readonly": {"value": above, "source": {"type": "LOCAL", "data": "-"}}},
        "tank/photos": {"readonly": {"value": "on", "source": {"type": "TEMPORARY", "data": "-"}}},
    }
    listing = {"datasets": {name: {"type": "FILESYSTEM", "properties": one} for name, one in raw.items()}}
    found = {one.name: one for one in status.parse_datasets(listing)}["tank/photos"]
    assert found.properties["readonly"] == shown
    assert found.readonly is False
