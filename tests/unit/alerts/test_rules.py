from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from appliance.alerts import fault, pool_rules, rules
from appliance.alerts.alert_kind import SEVERITIES
from appliance.alerts.fault import AlertInput, DiskStatus, Fault, Space
from appliance.alerts.kinds import KINDS
from appliance.disks.health import HealthReason, State
from appliance.facts.box import Pool, Scan, Service, Vdev
from appliance.zfs import vdev_tree
from tests.unit.made import recorded_pool

NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)
BAY = "bay 3 (WD20EARS …1234)"


def found(**seen: object) -> dict[str, str]:
    faults, complete = rules.find_faults(AlertInput(now=NOW, **seen))  # type: ignore[arg-type]
    assert complete
    return {fault.kind: fault.summary for fault in faults}


def with_device(state: str, *more: str, **changes: object) -> Pool:
    """The recorded raidz2 with its first disks in these states."""
    pool = recorded_pool()
    group = pool.vdevs[0]
    children = list(group.children)
    for at, one in enumerate((state, *more)):
        children[at] = replace(children[at], state=one, **changes)
    return replace(pool, vdevs=(replace(group, children=tuple(children)), *pool.vdevs[1:]))


def test_a_disk_that_dies_in_its_place_is_one_alert_and_not_three():
    pool = with_device("FAULTED", read_errors=12, write_errors=40)
    silent = DiskStatus("x", BAY, "healthy", pool="tank", silent="It does not answer.", away=True)
    assert set(found(pools=(pool,), disks=(silent,))) == {"pool.degraded"}


def test_errors_that_were_told_before_the_disk_was_given_up_are_not_called_over():
    pool = with_device("FAULTED", read_errors=12)
    told = ("pool.errors", f"{pool.guid}/{pool.vdevs[0].children[0].guid}")
    assert set(found(pools=(pool,), open=frozenset({told}))) == {"pool.degraded", "pool.errors"}


def test_errors_of_a_failing_disk_are_told_with_the_advice_to_replace_it():
    pool = with_device("ONLINE", read_errors=12)
    key = vdev_tree.link_of(pool.vdevs[0].children[0])

    def detail(state: State) -> str:
        seen = AlertInput(now=NOW, pools=(pool,), disks=(DiskStatus(key, BAY, state),))
        return next(fault.detail for fault in pool_rules.device_faults(seen))

    assert detail("healthy") == "Counted: 12 read."
    assert detail("failing") == "Counted: 12 read. By its own figures it is failing: replace it."


def test_a_healthy_box_has_no_faults():
    disk = DiskStatus("x", BAY, "healthy")
    running = Service("smartmontools.service", "active", "enabled")
    assert found(pools=(recorded_pool(),), disks=(disk,), services=(running,), checked=(("pools", NOW, ""),)) == {}


def test_a_failing_disk_is_named_by_bay_model_and_serial_with_what_is_wrong():
    disk = DiskStatus(
        "x", BAY, "failing", (HealthReason("failing", "312 sectors cannot be read.", "pending", 312),), "tank"
    )
    assert found(disks=(disk,)) == {"disk.failing": f"Disk in {BAY} is failing: 312 sectors cannot be read."}


def test_where_a_disk_is_named_the_whole_serial_number_on_its_sticker_is_told_too():
    reason = HealthReason("failing", "312 sectors cannot be read.", "pending", 312)
    for disk in (
        DiskStatus("x", BAY, "failing", (reason,), "tank", serial="WD-WCAZA1234"),
        DiskStatus("x", BAY, "healthy", slow="It takes 26 ms for a request.", serial="WD-WCAZA1234"),
        DiskStatus("x", BAY, "healthy", silent="Device open failed", serial="WD-WCAZA1234"),
    ):
        ((fault,), _complete) = rules.find_faults(AlertInput(now=NOW, disks=(disk,)))
        assert fault.detail.endswith(". Its serial number is WD-WCAZA1234."), fault.detail


def test_a_warm_disk_and_what_it_counts_are_two_faults():
    reasons = (
        HealthReason("watch", "1 sector cannot be read.", "pending", 1),
        HealthReason("watch", "It is 61 °C warm.", "temperature"),
    )
    assert set(found(disks=(DiskStatus("x", BAY, "watch", reasons),))) == {"disk.watch", "disk.warm"}


@pytest.mark.parametrize("state", ["unknown", "asleep", "healthy"])
def test_a_disk_that_tells_nothing_is_no_fault(state):
    assert found(disks=(DiskStatus("x", BAY, state, (HealthReason("unknown", "It does not tell."),)),)) == {}


@pytest.mark.parametrize(
    ("pool", "kind"),
    [
        (with_device("FAULTED"), "pool.degraded"),
        (with_device("REMOVED", "UNAVAIL"), "pool.no-redundancy"),
        (replace(with_device("REMOVED", "REMOVED", "REMOVED"), state="SUSPENDED"), "pool.stopped"),
        (with_device("OFFLINE"), "pool.offline"),
        (with_device("OFFLINE", "OFFLINE"), "pool.offline"),
        (with_device("OFFLINE", "FAULTED"), "pool.no-redundancy"),
        (with_device("ONLINE", slow_ios=5), "pool.stalls"),
        (replace(recorded_pool(), errors=3), "pool.damaged"),
        (with_device("ONLINE", checksum_errors=4), "pool.errors"),
    ],
)
def test_what_a_pool_lacks_is_one_fault_as_grave_as_it_is(pool, kind):
    assert set(found(pools=(pool,))) == {kind}


def test_disks_that_were_missing_when_the_pool_was_opened_are_faults():
    """Recorded: two of four disks of a raidz2, a spare and a cache were not in the box.
    ZFS says CANT_OPEN of them, not UNAVAIL."""
    faults, complete = rules.find_faults(AlertInput(now=NOW, pools=(recorded_pool("zpool-status-missing-2.3.9.json"),)))
    assert complete
    assert sorted(fault.kind for fault in faults) == ["pool.helper", "pool.helper", "pool.no-redundancy"]
    lost = next(fault for fault in faults if fault.kind == "pool.no-redundancy")
    assert lost.mark == 2
    assert lost.detail.count("does not answer") == 2


@pytest.mark.parametrize("state", ["BROKEN_NEWLY", "DEGRADED"])
def test_degraded_pool_is_a_fault_even_if_no_disk_tells_why(state):
    pool = with_device(state)
    assert set(found(pools=(replace(pool, state="DEGRADED"),))) == {"pool.degraded"}


def test_a_spare_that_failed_leaves_the_pool_whole():
    pool = recorded_pool()
    spare = Vdev("x", "disk", 5, "UNAVAIL", role="spare")
    assert found(pools=(replace(pool, vdevs=(*pool.vdevs, spare)),)) == {
        "pool.helper": "tank: the spare disk x does not work."
    }


def test_a_check_that_repaired_something_is_told_for_a_while():
    scan = Scan("scrub", "finished", NOW - timedelta(hours=5), NOW - timedelta(hours=1), 1, 1, 1, 0, repaired=131072)
    assert found(pools=(replace(recorded_pool(), scan=scan),)) == {"pool.repaired": "tank repaired itself."}
    old = replace(scan, ended=NOW - timedelta(days=3))
    assert found(pools=(replace(recorded_pool(), scan=old),)) == {}


@pytest.mark.parametrize(
    ("kind", "errors", "repaired", "told"),
    [
        ("scrub", 0, 0, []),
        ("scrub", 3, 4096, ["scan.errors"]),
        ("resilver", 0, 4096, ["pool.rebuilt"]),
        ("resilver", 0, 0, []),  # a disk that came back at once and had missed nothing
        ("resilver", 1, 4096, ["scan.errors"]),
    ],
)
def test_how_a_check_or_rebuilding_ended_is_told_as_grave_as_it_is(kind, errors, repaired, told):
    scan = Scan(
        kind, "finished", NOW - timedelta(hours=5), NOW - timedelta(hours=1), 1, 1, 1, errors, repaired=repaired
    )
    assert list(found(pools=(replace(recorded_pool(), scan=scan),))) == told


def test_a_check_that_ended_with_errors_is_told_until_another_ends_without():
    scan = Scan("scrub", "finished", NOW - timedelta(days=90), NOW - timedelta(days=90), 1, 1, 1, 3)
    assert set(found(pools=(replace(recorded_pool(), scan=scan),))) == {"scan.errors"}
    assert found(pools=(replace(recorded_pool(), scan=replace(scan, errors=0)),)) == {}


def test_a_disk_that_told_and_does_not_any_more_is_a_fault_of_its_own():
    told = found(disks=(DiskStatus("x", BAY, "healthy", silent="It does not answer."),))
    assert told == {"disk.silent": f"Disk in {BAY} has stopped reporting its health."}


@pytest.mark.parametrize(
    ("version", "faulty"),
    [
        ("2.3.2-2+deb13u1", True),
        ("2.3.9-0+deb13u1", False),
        ("2.2.1", True),
        ("2.2.8", False),
        ("2.4.0-rc1", False),
        ("", False),
        ("x", False),
    ],
)
def test_a_module_that_is_known_to_spoil_files_is_told(version, faulty):
    assert list(found(module=version)) == (["zfs.faulty"] if faulty else [])


def test_a_pool_that_will_be_nearly_full_in_two_weeks_is_told_before_it_is():
    fast = Space(1, "tank", 70, 100, days=12, days_to_notice=6)
    assert list(found(spaces=(fast,))) == ["pool.filling"]
    assert "80 % full in about 6 days and 90 % in about 12 days" in fast.forecast_text
    slower = replace(fast, days=18)
    assert found(spaces=(slower,)) == {}
    assert list(found(spaces=(slower,), open=frozenset({("pool.filling", "1")}))) == ["pool.filling"]


def test_d32_pool_that_is_nearly_full_and_fills_up_fast_says_each_fact_in_one_alert():
    def details(days: int) -> dict[str, str]:
        space = Space(1, "tank", 82, 100, days=days)
        return {one.kind: one.detail for one in rules.find_faults(AlertInput(now=NOW, spaces=(space,)))[0]}

    fast, slow = details(9), details(300)
    assert "90 % full in about 9 days" in fast["pool.filling"]
    assert "are free" in fast["pool.filling"]
    assert fast["pool.full80"].startswith("There is room left")
    assert "days" not in fast["pool.full80"]
    assert list(slow) == ["pool.full80"]
    assert "are free" in slow["pool.full80"]
    assert "% full in about" in slow["pool.full80"]


@pytest.mark.parametrize(
    ("percent", "kinds"), [(79, []), (80, ["pool.full80"]), (90, ["pool.full90"]), (96, ["pool.full96"])]
)
def test_a_pool_that_fills_up_has_one_fault_at_a_time(percent, kinds):
    assert list(found(spaces=(Space(1, "tank", percent, 100),))) == kinds


def test_a_pool_at_the_edge_does_not_flap():
    known = frozenset({("pool.full90", "1")})
    assert list(found(spaces=(Space(1, "tank", 89, 100),), open=known)) == ["pool.full90"]
    assert list(found(spaces=(Space(1, "tank", 87, 100),), open=known)) == ["pool.full80"]


def test_silence_is_a_fault():
    stopped = (Service("smartmontools.service", "failed", "enabled"), Service("zfs-zed.service", "inactive", "enabled"))
    late = (("temperatures", NOW - timedelta(hours=1), ""), ("pools", NOW, "It hangs."))
    kinds = found(
        services=stopped,
        checked=late,
        unhooked=("ZED",),
        mail_fails="550 no",
        overdue=(Fault("scrub.overdue", "1", "x"),),
        missing=(("1", "tank"),),
    )
    assert set(kinds) == {
        "service.smartd",
        "service.zed",
        "source.stopped",
        "hook.missing",
        "mail.failing",
        "scrub.overdue",
        "pool.missing",
    }


def test_a_box_without_such_a_service_does_not_miss_it():
    assert found(services=(Service("smartmontools.service", "inactive", "", present=False),)) == {}


@pytest.mark.parametrize(("unit", "protocol"), rules.FILE_SERVERS.items())
@pytest.mark.parametrize("state", ["failed", "inactive", ""])
def test_a_file_server_that_does_not_run_is_missed_only_where_something_is_shared_over_it(unit, protocol, state):
    stopped = (Service(unit, state, "enabled"),)
    told = {"service.shares": f"Folders shared over {protocol.upper()} cannot be reached."}
    assert found(services=stopped, shared=frozenset({protocol})) == told
    assert found(services=stopped, shared=frozenset(set(rules.FILE_SERVERS.values()) - {protocol})) == {}
    assert found(services=(Service(unit, state, "", present=False),), shared=frozenset({protocol})) == {}


@pytest.mark.parametrize("state", ["active", "activating", "reloading"])
def test_a_service_that_starts_or_reloads_is_not_missed(state):
    units = [*rules.SERVICES, *rules.FILE_SERVERS]
    every = tuple(Service(unit, state, "enabled") for unit in units)
    assert found(services=every, shared=frozenset({"smb", "nfs", "afp"})) == {}


def test_pages_that_cannot_be_reached_are_told():
    assert list(found(services=(Service("nginx.service", "failed", "enabled"),))) == ["service.pages"]


def test_one_rule_that_breaks_silences_no_other():
    def broken(_seen: AlertInput) -> list[fault.Fault]:
        raise KeyError("x")

    faults, complete = rules.find_faults(AlertInput(now=NOW, unhooked=("smartd",)), [broken, *rules.RULES])
    assert [fault.kind for fault in faults] == ["hook.missing"]
    assert not complete


def test_a_forecast_follows_a_line_and_says_nothing_of_what_does_not_grow():
    days = [(NOW + timedelta(days=day), 500 + 10 * day) for day in range(11)]
    assert fault.days_until(days, 1000, 90) == 30
    assert fault.days_until([(at, 500) for at, _used in days], 1000, 90) is None
    assert fault.days_until(days[:5], 1000, 90) is None


def test_every_kind_says_what_it_means_and_what_to_do():
    for kind in KINDS.values():
        assert kind.severity in SEVERITIES
        assert kind.meaning.endswith(".")
        assert kind.todo
