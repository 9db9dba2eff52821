"""Exporting, destroying, checkpoints and upgrades: what is said before, what is done, what is told after."""

from __future__ import annotations

import json
import sys
import types
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from msgspec.structs import replace

from appliance import command, schedule
from appliance.errors import Failed
from appliance.facts.box import Checkpoint, Facts, PoolDetail
from appliance.facts.sharing import Session, Share
from appliance.formatting import size_text
from appliance.operation import Operation, checked_plan
from appliance.pools import discover, features
from appliance.pools.checkpoint import DiscardCheckpoint, RewindCheckpoint, TakeCheckpoint
from appliance.pools.export_destroy import DestroyPool, ExportPool
from appliance.pools.upgrade import UpgradePool
from appliance.shares import approved, connections, smb, teardown
from appliance.shares.owned_file import OwnedFile
from appliance.shares.publish import SERVING
from appliance.system import accounts
from appliance.zfs import libzfs, mount, status
from tests.unit.made import ANNA, RECORDED, box, dataset, recorded, recorded_pool, recorded_text, samba_knows, shared
from tests.unit.pools.import_samples import found
from tests.unit.pools.test_create import Working
from tests.unit.zfs.test_mount import carried

TANK = recorded_pool()
MOMENT = Checkpoint("exists", datetime(2026, 11, 20, 8, 30, tzinfo=UTC), 5 * 2**20)
DETAIL = PoolDetail(TANK.guid, 214, "off", ("draid", "zstd_compress"))
EVERY = (ExportPool, DestroyPool, TakeCheckpoint, DiscardCheckpoint, RewindCheckpoint, UpgradePool)


def of(kind: type[Any], **changes: Any) -> Any:
    return kind(**{"pool": "tank", "guid": TANK.guid, **changes})


def facts(**changes: Any) -> Facts:
    made: dict[str, Any] = {
        "pools": (TANK,),
        "datasets": (dataset("tank"), shared(), dataset("other/photos")),
        "shares": (Share("smb", "photos", "/tank/photos"), Share("smb", "elsewhere", "/other/photos")),
        "details": (DETAIL,),
        "sessions": (Session("anna", "192.168.1.20", "photos"), Session("berta", "192.168.1.21", "elsewhere")),
    }
    return box(**{**made, **changes})


def kept(**changes: Any) -> Facts:
    return facts(pools=(replace(TANK, checkpoint=MOMENT),), **changes)


def reasons(operation: Operation, known: Facts) -> str:
    """The codes of what speaks against it."""
    return " ".join(reason.code for reason in operation.check(known))


def names(operation: Operation, known: Facts) -> list[str]:
    return [step.name for step in checked_plan(operation, known).steps]


@pytest.mark.parametrize("kind", EVERY)
def test_another_pool_of_the_same_name_is_not_the_one_that_was_meant(kind):
    assert "pool-missing" in reasons(of(kind, guid=5), kept())


@pytest.mark.parametrize("kind", EVERY)
def test_a_pool_that_has_stopped_is_left_alone(kind):
    stopped = replace(TANK, state="SUSPENDED", checkpoint=MOMENT)
    assert "pool-stopped" in reasons(of(kind), facts(pools=(stopped,)))


# --- export ---------------------------------------------------------------------------------------------------
def test_exporting_stops_the_shares_first_and_says_who_is_connected():
    plan = checked_plan(of(ExportPool), facts())
    assert [step.name for step in plan.steps] == ["shares", "export"]
    assert plan.details == {"Shares that stop": "photos", "Connected now": "anna from 192.168.1.20 (photos)"}
    assert "close photos" in plan.steps[0].command_text
    assert "elsewhere" not in plan.steps[0].command_text
    assert plan.type_to_confirm == ""


def test_a_pool_without_shares_is_just_exported():
    assert names(of(ExportPool), facts(datasets=(dataset("tank"),), shares=())) == ["export"]


def test_who_comes_and_goes_meanwhile_makes_no_other_plan_and_another_share_does():
    one, same = checked_plan(of(ExportPool), facts()), checked_plan(of(ExportPool), facts(sessions=()))
    other = checked_plan(
        of(ExportPool), facts(shares=(Share("smb", "photos", "/tank/photos"), Share("smb", "b", "/tank")))
    )
    assert one.digest() == same.digest() != other.digest()


@pytest.fixture
def samba(folders, commands, monkeypatch):
    """Samba's file and the agreements in a folder of this test's own."""
    config = folders / "larder.conf"
    monkeypatch.setitem(SERVING, "smb", replace(smb.SERVING, owned=OwnedFile(config, lambda _path: None)))
    monkeypatch.setattr(approved, "FILE", folders / "agreed")
    monkeypatch.setattr(accounts, "read_accounts", lambda: (ANNA,))
    here = (shared(guid=7), shared("other/films", guid=8))
    monkeypatch.setattr(status, "read_datasets", lambda: here)
    for one in here:
        approved.set_approved(one.guid, share=True)
    commands.answers["systemctl"] = "active\n"

    def on_run(argv: list[str]) -> None:
        text = config.read_text() if config.exists() else ""
        commands.answers["testparm"] = text
        commands.answers["smbclient"] = samba_knows(smb.parse_sections(text), argv)

    commands.on_run = on_run
    teardown.serve_datasets(here, lambda text: pytest.fail(text))
    assert "[photos]" in config.read_text()
    return config


@pytest.mark.parametrize(("forget", "left"), [(True, {8}), (False, {7, 8})])
def test_stopping_takes_only_this_pools_shares_out_and_disconnects(samba, commands, forget, left):
    answer = {
        "sessions": {"1": {"username": "anna", "remote_machine": "mac", "server_id": {"pid": "2003"}}},
        "tcons": {
            "9": {"service": "photos", "server_id": {"pid": "2003"}},
            "10": {"service": "IPC$", "server_id": {"pid": "2003"}},
        },
    }
    commands.answers["smbstatus"] = json.dumps(answer)
    work = Working()
    teardown.stop_pool_step("tank", [Share("smb", "photos", "/tank/photos")], forget=forget).run(work)
    text = samba.read_text()
    assert "[films]" in text
    assert "[photos]" not in text
    assert approved.read_approved() == left
    assert ["smbcontrol", "smbd", "close-share", "photos"] in commands.ran
    assert work.notes == ["anna at mac had photos open and was disconnected"]


def test_a_recorded_samba_without_visitors_has_nobody(commands):
    commands.answers["smbstatus"] = recorded_text("smbstatus-4.22.11.json")
    assert connections.read_sessions() == ()
    assert commands.ran == [["smbstatus", "--json"]]


@pytest.mark.parametrize(
    "answer", ["", "[]", "null", '{"tcons": []}', '{"tcons": {"1": null}}', '{"tcons": {"1": {}}, "sessions": 3}']
)
def test_odd_answers_of_smbstatus_are_nobody(commands, answer):
    commands.answers["smbstatus"] = answer
    assert connections.read_sessions() == ()


def test_a_busy_pool_is_explained_by_who_uses_it(monkeypatch, tmp_path):
    process = tmp_path / "811"
    (process / "fd").mkdir(parents=True)
    (process / "comm").write_text("rsync\n")
    (process / "fd" / "3").symlink_to("/tank/photos/a.jpg")
    (process / "cwd").symlink_to("/root")
    other = tmp_path / "812"
    (other / "fd").mkdir(parents=True)
    (other / "comm").write_text("bash\n")
    (other / "cwd").symlink_to("/tankard")
    (tmp_path / "self").mkdir()
    assert teardown.programs_using(["/tank", "/"], proc=tmp_path) == ["rsync (process 811): /tank/photos/a.jpg"]

    def run(argv: list[str], **_more: Any) -> command.Result:
        raise command.CommandFailed(command.Result(tuple(argv), 1, "", "cannot export 'tank': pool is busy", 0.0))

    monkeypatch.setattr(command, "run", run)
    monkeypatch.setattr(status, "read_datasets", lambda: (dataset("tank"),))
    monkeypatch.setattr(teardown, "programs_using", lambda _folders: ["rsync (process 811): /tank/photos/a.jpg"])
    step = checked_plan(of(ExportPool), facts(datasets=(), shares=())).steps[-1]
    with pytest.raises(Failed, match=r"tank is still in use\. Still using it: rsync \(process 811\)"):
        step.run(Working())


def test_an_export_that_was_cut_off_tells_what_is_so():
    operation = of(ExportPool)
    assert operation.probe("export", box())
    assert not operation.probe("export", facts())
    assert operation.probe("shares", facts(shares=()))
    assert operation.recovery_hint("export", box()) == "tank is exported."
    assert "Its shares are off" in operation.recovery_hint("export", facts(shares=()))


# --- destroy --------------------------------------------------------------------------------------------------
def test_destroying_lists_what_goes_and_wants_the_name_typed():
    plan = checked_plan(of(DestroyPool), facts(datasets=(dataset("tank"), shared(used_by_snapshots=3 * 2**30))))
    assert [loss.what for loss in plan.losses] == ["the folder tank", "the folder tank/photos", "the share photos"]
    assert plan.details["Snapshots"] == f"214, holding {size_text(3 * 2**30)}"
    assert plan.type_to_confirm == "tank"
    assert plan.steps[-1].command_text == "zpool destroy -- tank"
    assert "recovered" in plan.undo


def test_pool_without_snapshots_does_not_warn_of_them():
    without = checked_plan(of(DestroyPool), facts(datasets=(dataset("tank"),), details=(replace(DETAIL, snapshots=0),)))
    assert without.details["Snapshots"] == "none"
    assert not without.warnings
    unknown = checked_plan(of(DestroyPool), facts(datasets=(dataset("tank"),), details=()))
    assert any("snapshots" in str(one) for one in unknown.warnings)


def test_how_many_snapshots_there_are_makes_no_other_plan_and_another_folder_does():
    one = checked_plan(of(DestroyPool), facts())
    same = checked_plan(of(DestroyPool), facts(details=()))
    other = checked_plan(of(DestroyPool), facts(datasets=(dataset("tank"), shared(), dataset("tank/new"))))
    assert one.digest() == same.digest() != other.digest()


def test_a_pool_that_was_imported_read_only_is_not_destroyed():
    """ZFS would only export it, since it writes nothing to its disks (``spa_export_common``)."""
    read_only = facts(details=(replace(DETAIL, read_only=True),))
    assert reasons(of(DestroyPool), read_only) == "pool-imported-read-only"
    assert reasons(of(ExportPool), read_only) == ""


def test_very_many_folders_are_counted_and_not_listed():
    many = tuple(dataset(f"tank/f{number}") for number in range(500))
    plan = checked_plan(of(DestroyPool), facts(datasets=many, shares=()))
    assert len(plan.losses) == 41
    assert plan.losses[-1].what == "460 more folders"


def test_very_many_volumes_are_not_counted_as_folders():
    many = tuple(dataset(f"tank/f{n}", referenced=1, kind="volume" if n % 4 else "filesystem") for n in range(60))
    plan = checked_plan(of(DestroyPool), facts(datasets=many, shares=()))
    assert [(loss.what, loss.size) for loss in plan.losses[40:]] == [("5 more folders", 5), ("15 more volumes", 15)]
    assert (plan.details["Folders"], plan.details["Volumes"]) == ("15", "45")
    assert "Volumes" not in checked_plan(of(DestroyPool), facts()).details


# --- checkpoint -----------------------------------------------------------------------------------------------
def test_the_checkpoint_of_a_pool_is_read_with_its_moment_and_cost():
    raw = recorded("zpool-status-checkpoint-2.3.9.json")
    (pool,) = status.parse_pools(raw)
    assert pool.checkpoint == Checkpoint("exists", datetime.fromtimestamp(1795254488, UTC), 135168)
    for odd in (None, {}, {"state": "NONE"}, {"state": 7}):
        raw["pools"]["full"]["checkpoint_stats"] = odd
        assert next(iter(status.parse_pools(raw))).checkpoint is None


class Library(types.ModuleType):
    """Stands in for libzfs_core."""

    def __init__(self, error: Exception | None = None) -> None:
        super().__init__("libzfs_core")
        self.called: list[tuple[str, bytes]] = []
        self.error = error

    def lzc_pool_checkpoint(self, name: bytes) -> None:
        self.called.append(("take", name))
        if self.error:
            raise self.error

    def lzc_pool_checkpoint_discard(self, name: bytes) -> None:
        self.called.append(("discard", name))


def test_taking_and_discarding_go_through_the_library_in_bytes(monkeypatch):
    library = Library()
    monkeypatch.setitem(sys.modules, "libzfs_core", library)
    checked_plan(of(TakeCheckpoint), facts()).steps[0].run(Working())
    checked_plan(of(DiscardCheckpoint), kept()).steps[0].run(Working())
    assert library.called == [("take", b"tank"), ("discard", b"tank")]


def test_what_the_library_raises_is_a_sentence(monkeypatch):
    error = type("CheckpointExists", (Exception,), {})("Pool already has a checkpoint")
    monkeypatch.setitem(sys.modules, "libzfs_core", Library(error))
    with pytest.raises(Failed, match="The pool has a checkpoint already"):
        libzfs.take_checkpoint("tank")
    monkeypatch.setitem(sys.modules, "libzfs_core", Library(NotImplementedError("lzc_pool_checkpoint")))
    with pytest.raises(Failed, match="has no lzc_pool_checkpoint"):
        libzfs.take_checkpoint("tank")


def test_without_the_library_it_says_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "libzfs_core", None)
    with pytest.raises(Failed, match="python3-pyzfs"):
        libzfs.take_checkpoint("tank")


def test_a_pool_keeps_one_checkpoint():
    assert "checkpoint-exists" in reasons(of(TakeCheckpoint), kept())
    discarding = facts(pools=(replace(TANK, checkpoint=replace(MOMENT, state="discarding")),))
    assert "checkpoint-being-discarded" in reasons(of(TakeCheckpoint), discarding)
    for kind in (DiscardCheckpoint, RewindCheckpoint):
        assert "checkpoint-missing" in reasons(of(kind), facts())
        assert "checkpoint-missing" in reasons(of(kind), discarding)


def test_going_back_stops_the_shares_lets_go_and_brings_in_with_nothing_mounted():
    plan = checked_plan(of(RewindCheckpoint), kept())
    assert [step.name for step in plan.steps] == ["shares", "export", "rewind", "mount", "serve"]
    assert (
        plan.steps[2].command_text
        == f"zpool import --rewind-to-checkpoint -N -o cachefile=none -d /dev/disk/by-id {TANK.guid} tank"
    )
    assert "after 20 November 2026, 08:30" in plan.losses[0].what
    assert plan.type_to_confirm == "tank"


def test_going_back_with_a_folder_that_cannot_be_made_safe_mounts_and_serves_the_others_and_fails(
    commands, monkeypatch
):
    found = (carried("tank"), carried("tank/a", "setuid", setuid="on"), carried("tank/b"))
    mounted: list[str] = []
    served: list[object] = []

    def run(argv: list[str]) -> None:
        if argv[-1] == "tank/a":
            said = "cannot set property for 'tank/a': out of space"
            raise command.CommandFailed(command.Result(tuple(argv), 1, "", said, 0.0))

    commands.on_run = run
    monkeypatch.setattr(mount, "foreign_properties", lambda _pool: found)
    monkeypatch.setattr(mount, "mount_dataset", lambda name, _work, **_more: mounted.append(name))
    monkeypatch.setattr(status, "read_datasets", lambda: ())
    monkeypatch.setattr(teardown, "serve_datasets", lambda found, _note: served.append(found))
    work, steps = Working(), {step.name: step for step in checked_plan(of(RewindCheckpoint), kept()).steps}
    steps["mount"].run(work)
    with pytest.raises(Failed, match=r"Not everything in tank could be made safe.*\(tank/a\): .*out of space"):
        steps["serve"].run(work)
    assert mounted == ["tank", "tank/b"]
    assert served
    assert not any(argv[:2] == ["zpool", "set"] for argv in commands.ran)


def test_checkpoint_is_named_by_the_clock_of_the_box(monkeypatch):
    monkeypatch.setattr(schedule, "box_zone", lambda: ZoneInfo("Europe/Amsterdam"))
    assert "after 20 November 2026, 09:30" in checked_plan(of(RewindCheckpoint), kept()).losses[0].what


def test_another_checkpoint_is_another_plan():
    later = replace(MOMENT, taken=datetime(2026, 11, 21, tzinfo=UTC))
    plans = [
        checked_plan(of(kind), facts(pools=(replace(TANK, checkpoint=moment),)))
        for kind in (DiscardCheckpoint, RewindCheckpoint)
        for moment in (MOMENT, later)
    ]
    assert len({plan.digest() for plan in plans}) == 4


def test_interrupted_between_letting_go_and_bringing_in_it_goes_on_from_there(monkeypatch):
    away = box(importable=(found(guid=TANK.guid, name="tank"),))
    assert names(of(RewindCheckpoint), away) == ["rewind", "mount", "serve"]
    # The power may have gone after the rewind: without an entry in the cache it is not imported at the next start.
    assert "only an import shows whether it was put back" in of(RewindCheckpoint).recovery_hint("rewind", away)
    assert "pool-used-elsewhere" in reasons(
        of(RewindCheckpoint), box(importable=(found(guid=TANK.guid, name="tank", other_host=True),))
    )
    monkeypatch.setattr(discover, "discover_pools", lambda _guid: (found(),))
    assert of(RewindCheckpoint).load_extra_facts(box()).importable
    assert of(RewindCheckpoint).load_extra_facts(facts()).importable == ()


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("cannot import 'tank': checkpoint does not exist", "tank has no checkpoint: it was put back already"),
        ("cannot import 'tank': I/O error", "tank could not be put back"),
    ],
)
def test_going_back_again_says_that_it_was_put_back_already(monkeypatch, said, told):
    def run(argv: list[str], **_more: Any) -> command.Result:
        raise command.CommandFailed(command.Result(tuple(argv), 1, "", said, 0.0))

    monkeypatch.setattr(command, "run", run)
    with pytest.raises(Failed) as caught:
        of(RewindCheckpoint).rewind(Working())
    assert caught.value.what == told


def test_after_going_back_folders_are_mounted_where_they_were_and_nowhere_else(commands, mounts, monkeypatch):
    """The remembered moment may be older than Larder's look at what the pool asks for."""
    then = (
        carried("tank"),
        carried("tank/films", mountpoint="/films"),
        carried("tank/x", mountpoint="/etc", sharenfs="on"),
    )
    quiet = ["zfs", "set", "-u", "sharenfs=off", "canmount=noauto", "tank/x"]
    now = (*then[:2], carried("tank/x", mountpoint="/etc", canmount="noauto"))
    monkeypatch.setattr(mount, "foreign_properties", lambda _pool: now if quiet in commands.ran else then)
    known = kept(datasets=(dataset("tank"), dataset("tank/films", mountpoint="/films")))
    step = next(step for step in checked_plan(of(RewindCheckpoint), known).steps if step.name == "mount")
    step.run(Working())
    assert quiet in commands.ran
    assert [argv[-1] for argv in commands.ran if argv[0] == "mount"] == ["tank/films", "tank"]
    assert commands.ran[-1] == ["zpool", "set", "cachefile=/etc/zfs/zpool.cache", "tank"]


def test_going_back_with_a_folder_that_cannot_be_mounted_serves_the_others_and_names_it_last(commands, monkeypatch):
    def mount_dataset(name: str, _work: Any, **_more: Any) -> None:
        if name == "tank":
            raise Failed("mount ended with status 32", "can't read superblock on tank")
        commands.run(["mount", name])

    monkeypatch.setattr(mount, "foreign_properties", lambda _pool: (carried("tank"), carried("tank/photos")))
    monkeypatch.setattr(mount, "mount_dataset", mount_dataset)
    monkeypatch.setattr(status, "read_datasets", lambda: ())
    monkeypatch.setattr(teardown, "serve_datasets", lambda _datasets, note: note("served"))
    work = Working()
    for step in checked_plan(of(RewindCheckpoint), kept()).steps:
        if step.name in {"mount", "serve"}:
            step.run(work)
    assert ["mount", "tank/photos"] in commands.ran
    assert ["zpool", "set", "cachefile=/etc/zfs/zpool.cache", "tank"] in commands.ran
    assert work.notes[-2:] == ["served", "Left unmounted: tank. The reasons are above."]


# --- upgrade --------------------------------------------------------------------------------------------------
def test_an_upgrade_names_the_features_and_wants_the_name_typed():
    plan = checked_plan(of(UpgradePool), facts())
    assert plan.details == {"New features": "draid, zstd_compress"}
    assert plan.type_to_confirm == "tank"
    assert "cannot be undone" in plan.warnings[0]
    assert plan.steps[0].command_text == "zpool upgrade tank"


def test_other_features_are_another_plan():
    other = facts(details=(replace(DETAIL, features_off=("draid",)),))
    assert checked_plan(of(UpgradePool), facts()).digest() != checked_plan(of(UpgradePool), other).digest()


def test_a_pool_that_has_all_it_may_have_is_not_upgraded():
    assert "pool-has-all-features" in reasons(of(UpgradePool), facts(details=(replace(DETAIL, features_off=()),)))
    kept_to = replace(DETAIL, features_off=(), compatibility="openzfs-2.1-linux")
    assert "pool-stays-readable" in reasons(of(UpgradePool), facts(details=(kept_to,)))
    assert "pool-features-not-read" in reasons(of(UpgradePool), facts(details=()))


def test_the_details_of_a_pool_are_read_from_its_properties(commands):
    """Recorded of a pool that has all features. Derived: one of them off, and something that is no property."""
    full, listing = recorded_pool("zpool-status-full-2.3.9.json"), recorded("zpool-get-all-2.3.9.json")
    commands.answers["zpool"] = json.dumps(listing)
    commands.answers["zfs"] = "full@a\nfull@b\n"
    assert features.read_pool_detail(full) == PoolDetail(full.guid, 2, "off", ())
    own = listing["pools"]["full"]["properties"]
    own["feature@draid"]["value"] = "disabled"
    own["odd"] = None
    own["readonly"]["value"] = "on"
    commands.answers["zpool"] = json.dumps(listing)
    assert features.read_pool_detail(full) == PoolDetail(full.guid, 2, "off", ("draid",), read_only=True)
    commands.answers["zpool"] = "{}"
    assert features.read_pool_detail(full).features_off == ()


def test_a_compatibility_setting_limits_what_an_upgrade_switches_on(tmp_path):
    set_of_21 = (RECORDED / "compatibility-openzfs-2.1-linux").read_text()
    (tmp_path / "openzfs-2.1-linux").write_text(set_of_21)
    (tmp_path / "few").write_text("# few\ndraid, edonr # and no more\n")
    known = ["draid", "edonr", "raidz_expansion"]
    assert features.features_to_enable("off", known, [tmp_path]) == ("draid", "edonr", "raidz_expansion")
    assert features.features_to_enable("legacy", known, [tmp_path]) == ()
    assert features.features_to_enable("openzfs-2.1-linux", known, [tmp_path]) == ("draid", "edonr")
    assert features.features_to_enable("openzfs-2.1-linux,few", ["draid", "livelist"], [tmp_path]) == ("draid",)
    assert features.features_to_enable("../../etc/passwd", known, [tmp_path]) == ()
    assert features.features_to_enable("/etc/passwd", known, [Path("/")]) == ()
