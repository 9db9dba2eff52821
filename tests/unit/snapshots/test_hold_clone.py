from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from appliance.errors import Failed, Refused, explain_error
from appliance.facts.copy_mark import CopyMark
from appliance.facts.datasets import Property
from appliance.operation import checked_plan
from appliance.shares.settings import setting_of
from appliance.snapshots.hold_clone import CloneSnapshot, HoldSnapshot, ReleaseSnapshot, RenameSnapshot, hold_text
from appliance.zfs import libzfs
from tests.reasons import expect_refusal
from tests.unit.made import dataset
from tests.unit.pools.test_create import Working
from tests.unit.zfs.test_list_snapshots import Many, facts, snap

ONE = snap(1)
THIS: dict[str, Any] = {"snapshot": ONE.name, "guid": ONE.guid}


def test_hold_records_user_and_reason(monkeypatch):
    held = []
    monkeypatch.setattr(libzfs, "hold_snapshot", lambda name, tag: held.append((name, tag)))
    hold = HoldSnapshot(**THIS, who="anna", why="for the tax office: 2026")
    checked_plan(hold, facts(ONE)).steps[0].run(Working())
    assert held == [(ONE.name, "larder:anna:for the tax office: 2026")]
    assert hold_text(held[0][1]) == "for the tax office: 2026 (anna)"
    assert hold_text("zrepl_last") == "zrepl_last (set by another tool)"
    with expect_refusal("hold-without-reason"):
        HoldSnapshot(**THIS, who="anna", why="")
    with expect_refusal("hold-reason-too-long"):
        HoldSnapshot(**THIS, who="anna", why="x" * 195)
    for why in ("a\nb", "x" * 201):
        with pytest.raises(Refused):
            HoldSnapshot(**THIS, who="anna", why=why)


def test_existing_hold_fails_in_plain_words(monkeypatch):
    class HoldExists(Exception):
        name = ONE.name.encode()

    class Library:
        def lzc_hold(self, _holds):
            raise Many([HoldExists()])

    monkeypatch.setattr(libzfs, "load_library", Library)
    with pytest.raises(Failed) as failed:
        libzfs.hold_snapshot(ONE.name, "tag")
    assert "held under this name already" in explain_error(failed.value)


def test_release_names_every_hold_in_log(monkeypatch):
    monkeypatch.setattr(libzfs, "read_holds", lambda _name: {"larder:anna:tax": 1, "zrepl": 2})
    released = []
    monkeypatch.setattr(libzfs, "release_hold", lambda name, tag: released.append(tag))
    work = Working()
    (step,) = checked_plan(ReleaseSnapshot(**THIS), facts(replace(ONE, holds=2))).steps
    assert step.command_text == f"zfs release TAG {ONE.name}, for the tag of each of its holds"
    step.run(work)
    assert released == ["larder:anna:tax", "zrepl"]
    assert work.notes == ["Released: tax (anna)", "Released: zrepl (set by another tool)"]
    with expect_refusal("snapshot-not-held"):
        checked_plan(ReleaseSnapshot(**THIS), facts(ONE))


def test_rename_refuses_another_snapshot_of_same_name():
    with expect_refusal("snapshot-missing"):
        checked_plan(RenameSnapshot(**THIS, to="new"), facts(replace(ONE, guid=7)))


def test_rename_and_clone_refuse_existing_name():
    assert (
        checked_plan(RenameSnapshot(**THIS, to="new"), facts(ONE)).steps[0].command_text
        == "zfs rename -- tank/photos@s1 tank/photos@new"
    )
    with expect_refusal("snapshot-exists"):
        checked_plan(RenameSnapshot(**THIS, to="s2"), facts(ONE, snap(2)))
    clone = CloneSnapshot(**THIS, name="then")
    assert checked_plan(clone, facts(ONE)).steps[0].command_text.endswith("-- tank/photos@s1 tank/then")
    with expect_refusal("dataset-exists"):
        checked_plan(CloneSnapshot(**THIS, name="Photos"), facts(ONE))
    assert clone.probe("clone", replace(facts(), datasets=(dataset("tank/then", origin=ONE.name),)))
    assert not clone.probe("clone", replace(facts(), datasets=(dataset("tank/then"),)))


def test_clone_below_shared_folder_is_not_shared():
    clone = CloneSnapshot(**THIS, name="then")
    plan = checked_plan(clone, facts(ONE))
    assert "larder:share" not in plan.steps[0].command_text
    assert plan.summary.endswith("It is not shared.")
    found = facts(ONE)
    shared = replace(
        found,
        datasets=tuple(
            replace(one, share='{"nfs":{"hosts":["*"]}}') if one.name == "tank" else one for one in found.datasets
        ),
    )
    plan = checked_plan(clone, shared)
    assert plan.steps[0].command_text == "zfs clone -o canmount=noauto -o 'larder:share={}' -- tank/photos@s1 tank/then"
    assert "It is not shared, although the folder above it is." in plan.summary
    made = dataset("tank/then", share="{}", share_source="local")
    asked = setting_of(made)
    assert asked is not None
    assert not asked.anything


@pytest.mark.parametrize("guid", [7, 0], ids=["continued", "set aside"])
def test_clone_of_a_copy_is_refused_and_leads_to_restoring_it(guid):
    """Below the copies nothing is mounted, so the folder could not be reached."""
    copy = snap(1, "tank/backups/photos")
    home = dataset("tank/backups", mountpoint="none", mounted=False, copy_of=CopyMark(0, raw=False).text)
    there = dataset("tank/backups/photos", mountpoint="none", mounted=False, copy_of=CopyMark(guid, raw=False).text)
    found = replace(facts(copy), datasets=(dataset("tank"), home, there))
    with expect_refusal("clone-of-copy"):
        checked_plan(CloneSnapshot(snapshot=copy.name, guid=copy.guid, name="then"), found)


def test_clone_of_a_volume_is_not_called_a_folder():
    disk = snap(1, "tank/disk")
    volume = dataset("tank/disk", kind="volume", mounted=False, mountpoint="")
    clone = CloneSnapshot(snapshot=disk.name, guid=disk.guid, name="then")
    plan = checked_plan(clone, replace(facts(disk), datasets=(dataset("tank"), volume)))
    assert "folder" not in f"{clone.title} {plan.summary} {plan.undo}"


@pytest.mark.parametrize(
    ("changes", "quiet"),
    [
        ({}, False),
        ({"properties": {"volmode": Property("default", "default")}}, False),
        ({"properties": {"volmode": Property("dev", "local")}}, True),
        ({"properties": {"volmode": Property("dev", "inherited", "tank")}}, True),
        ({"share": '{"iscsi":{"name":"vm"}}', "share_source": "local"}, True),
    ],
)
def test_clone_of_a_volume_of_another_computer_is_not_read_either(changes, quiet):
    """What a guest wrote is not looked at for partitions here; sharing over iSCSI leaves volmode=dev on the volume."""
    disk = snap(1, "tank/disk")
    volume = dataset("tank/disk", kind="volume", mounted=False, mountpoint="", **changes)
    clone = CloneSnapshot(snapshot=disk.name, guid=disk.guid, name="then")
    plan = checked_plan(clone, replace(facts(disk), datasets=(dataset("tank"), volume)))
    words = plan.steps[0].command_text.split()
    assert ("volmode=dev" in words) is quiet
    assert ("zfs inherit volmode tank/then" in str(plan.warnings)) is quiet


def test_clone_of_a_folder_gets_no_mode_of_a_volume():
    folder = dataset("tank/photos", properties={"volmode": Property("dev", "local")})
    found = replace(facts(ONE), datasets=(dataset("tank"), folder))
    assert "volmode" not in checked_plan(CloneSnapshot(**THIS, name="then"), found).steps[0].command_text
