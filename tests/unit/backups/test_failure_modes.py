"""Ways in which replication has lost data elsewhere, each kept out by a rule: keys, decrypting,
holds, flags, disks in turn."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import appliance.backups
from appliance import command
from appliance.backups import copies, match, transfer
from appliance.backups.copy_dataset import DatasetCopy, keep_flags, let_go
from appliance.backups.match import Copy, Decision, Point, decide
from appliance.backups.staging import Restored
from appliance.backups.tasks import BackupTask, encode_tasks
from appliance.backups.transfer import FEATURES, run_transfer, send_flags
from appliance.datasets.encryption.keys import ChangeKey
from appliance.errors import Failed, Reason, Refused
from appliance.facts.box import Facts, Pool
from appliance.facts.copy_mark import CopyMark
from appliance.facts.datasets import Dataset, Property
from appliance.facts.kept_copies import Keep
from appliance.operation import checked_plan
from appliance.pools.vdevs.clear_errors import ClearErrors
from appliance.schedule import box_zone
from appliance.snapshots.take import TakeSnapshot
from appliance.zfs import kernel_module, libzfs, list_snapshots
from tests.reasons import expect_refusal
from tests.unit.backups.test_copy_dataset import KEY, OTHER, SOURCE, Source, mark, snapshot, source  # noqa: F401
from tests.unit.made import box, dataset
from tests.unit.pools.test_create import Working

TARGET = "safe/backups/photos"
ENABLED = dict.fromkeys(FEATURES, "active")
SAFE = Pool("safe", 1, "ONLINE")
TASK = BackupTask(key=KEY, pool=1, path="backups/photos")


# --- raw over non-raw -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("there", "sent"), [("111", True), ("222", False), ("", True)])
def test_encrypted_copy_with_another_set_of_keys_is_refused_before_anything_is_sent(monkeypatch, there, sent):
    """Equal guids, and another ``ivsetguid``: somebody has sent the snapshot in between to the copy decrypted."""
    one = DatasetCopy(dataset(SOURCE, guid=5, encryption="aes-256-gcm"), TARGET, "larder-backup-2", ("-w",), TASK)
    sets = {f"{SOURCE}@larder-backup-1": "111", f"{TARGET}@larder-backup-1": there}
    copy = Copy(TARGET, exists=True, mark=CopyMark(5, raw=True), guids=(1,))
    streams: list[Decision] = []
    monkeypatch.setattr(copies, "read_copy", lambda _name: replace(copy, guids=(1, 2)) if streams else copy)
    monkeypatch.setattr(
        copies, "read_points", lambda _name: [Point(f"{SOURCE}@larder-backup-{at}", at) for at in (1, 2)]
    )
    monkeypatch.setattr(copies, "read_values", lambda name, _keys: {"ivsetguid": sets[name]} if sets.get(name) else {})
    monkeypatch.setattr(copies, "settle", lambda *_given: None)
    monkeypatch.setattr(
        list_snapshots, "list_snapshots", lambda _names: [replace(snapshot(1), name=f"{TARGET}@larder-backup-1")]
    )
    monkeypatch.setattr(transfer, "run_stream", lambda _work, _one, decision: streams.append(decision) or 10)
    if sent:
        assert run_transfer(Working(), one, 2) == 10
    else:
        with expect_refusal("backup-keys-differ"):
            run_transfer(Working(), one, 2)
    assert bool(streams) is sent


# --- sending an encrypted dataset decrypted ---------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("version", "good"),
    [("2.3.9-0+deb13u1", True), ("2.3.3-1", True), ("2.3.2-1", False), ("2.1.11-1", False), ("", False)],
)
def test_plain_copy_in_an_encrypted_pool_is_sent_only_by_a_version_that_does_it_well(monkeypatch, version, good):
    one = Restored(
        dataset(TARGET, guid=55, encryption="aes-256-gcm"), "tank/photos", "x", ("-L", "-c"), "tank/photos", 9
    )
    monkeypatch.setattr(kernel_module, "read_version", lambda: version)
    copy = Copy("tank/photos", exists=True, mark=CopyMark(55, raw=False), guids=(9,))
    monkeypatch.setattr(copies, "read_copy", lambda _name: copy)
    monkeypatch.setattr(copies, "read_points", lambda _name: [])
    monkeypatch.setattr(copies, "settle", lambda *_given: None)
    if good:
        assert run_transfer(Working(), one, 9) == 0
    else:
        with expect_refusal("send-decrypted-unsafe"):
            run_transfer(Working(), one, 9)


def test_raw_streams_and_plain_folders_ask_for_no_version(monkeypatch):
    monkeypatch.setattr(kernel_module, "read_version", lambda: "2.1.11-1")
    for encryption, flags in (("aes-256-gcm", ("-w",)), ("off", ())):
        transfer.check_decrypting(DatasetCopy(dataset(SOURCE, encryption=encryption), TARGET, "x", flags, TASK))


# --- tokens as an attack ----------------------------------------------------------------------------------------------
def test_token_of_an_encrypted_folder_is_only_ever_sent_encrypted():
    """A token that was made up would otherwise have ZFS send it decrypted (openzfs/zfs#14153)."""
    one = DatasetCopy(dataset(SOURCE, encryption="aes-256-gcm"), TARGET, "x", ("-w",), TASK)
    assert one.sender(Decision("resume", token="1-a")) == ["zfs", "send", "-w", "-t", "1-a"]
    assert one.sender(Decision("resume", token="1-a"), "-n", "-P") == ["zfs", "send", "-n", "-P", "-w", "-t", "1-a"]


# --- encryption roots -------------------------------------------------------------------------------------------------
def copied(name: str, mark: CopyMark, **more: Any) -> Dataset:
    """A copy whose key is loaded, as after somebody looked into it."""
    return dataset(name, copy_of=mark.text, encryption="aes-256-gcm", encryption_root=name, **more)


def test_key_of_a_copy_is_never_changed():
    """Its next stream brings the original's key back for a part of it, and the rest then opens with neither."""
    copy = copied(TARGET, CopyMark(5, raw=True))
    with expect_refusal("key-of-copy"):
        checked_plan(ChangeKey(dataset=TARGET, guid=copy.guid, to="passphrase"), box(datasets=(copy,)))
    aside = copied("safe/backups/photos set aside", CopyMark(0, raw=True))
    assert checked_plan(ChangeKey(dataset=aside.name, guid=aside.guid, to="passphrase"), box(datasets=(aside,))).steps


@pytest.mark.parametrize("backed_up", [True, False])
def test_new_key_of_an_original_says_that_its_copies_open_with_the_old_one_until_they_are_made_again(backed_up):
    top = dataset("tank/photos", backup=encode_tasks((TASK,)) if backed_up else "", backup_source="local")
    one = dataset("tank/photos/secret", encryption="aes-256-gcm", encryption_root="tank/photos/secret")
    plan = checked_plan(ChangeKey(dataset=one.name, guid=one.guid, to="passphrase"), box(datasets=(top, one)))
    assert any("old key" in text and "next backup" in text for text in plan.warnings) is backed_up


# --- snapshots of copies ----------------------------------------------------------------------------------------------
def test_snapshot_of_a_copy_is_refused_because_no_run_could_continue_after_it():
    copy = dataset(TARGET, copy_of=CopyMark(5, raw=False).text)
    with expect_refusal("snapshot-of-copy"):
        checked_plan(TakeSnapshot(dataset=TARGET, name="mine"), box(pools=(SAFE,), datasets=(copy,)))


def test_snapshot_of_everything_in_a_pool_leaves_the_copies_in_it_out_and_says_so():
    home = dataset("safe/backups", copy_of=CopyMark(0, raw=False).text)
    copy = dataset(TARGET, copy_of=CopyMark(5, raw=False).text)
    below = dataset(f"{TARGET}/trip", copy_of=CopyMark(6, raw=False).text)
    facts = box(pools=(SAFE,), datasets=(dataset("safe"), home, copy, below, dataset("safe/films")))
    plan = checked_plan(TakeSnapshot(dataset="safe", name="mine", below=True), facts)
    assert plan.steps[0].affects == ("safe@mine", "safe/backups@mine", "safe/films@mine")
    assert any("2 copies" in text for text in plan.warnings)


# --- holds that pin space ---------------------------------------------------------------------------------------------
def test_no_backup_takes_a_hold_that_a_crash_could_leave():
    """Bookmarks keep the moment to continue from, so that nothing has to be held; that none is left on real ZFS is
    looked at after each interruption of a random history."""
    for path in sorted(Path(appliance.backups.__file__).parent.rglob("*.py")):
        text = path.read_text()
        for word in ('"hold"', "HoldSnapshot", "hold_snapshots", "lzc_hold"):
            assert word not in text, path


# --- flags of streams -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("state", ["disabled", "missing"])
@pytest.mark.parametrize("lacking", FEATURES)
def test_pool_that_lacks_one_feature_gets_plain_streams(lacking, state):
    features = {name: value for name, value in ENABLED.items() if name != lacking or state == "disabled"}
    if state == "disabled":
        features[lacking] = "disabled"
    for into_encrypted in (False, True):
        assert send_flags(features, raw=False, into_encrypted=into_encrypted) == ()
    assert send_flags(features, raw=True, into_encrypted=False) == ("-w",)


@pytest.mark.parametrize("state", ["enabled", "active"])
def test_pool_with_all_features_gets_blocks_as_they_are(state):
    features = dict.fromkeys(FEATURES, state)
    assert send_flags(features, raw=False, into_encrypted=False) == ("-L", "-e", "-c")
    assert send_flags(features, raw=False, into_encrypted=True) == ("-L", "-c")


@pytest.mark.parametrize(
    ("noted", "flags"), [({"larder:sent": "plain"}, ()), ({"larder:sent": "large"}, ("-L", "-c")), ({}, ("-L", "-c"))]
)
def test_copy_that_began_with_plain_streams_keeps_them_after_its_pool_was_upgraded(monkeypatch, noted, flags):
    monkeypatch.setattr(copies, "read_values", lambda _name, _keys: noted)
    assert keep_flags(TARGET, ("-L", "-c")) == flags


@pytest.mark.parametrize(("flags", "noted"), [((), "plain"), (("-L", "-e", "-c"), "large")])
def test_first_stream_notes_how_it_was_made(flags, noted):
    one = DatasetCopy(dataset(SOURCE), TARGET, "x", flags, TASK)
    assert f"larder:sent={noted}" in one.receiver(Decision("full"))


# --- access lists -----------------------------------------------------------------------------------------------------
def test_access_lists_are_kept_where_they_arrive_and_come_back():
    """A pool from elsewhere may not show any; compared, every file would then differ, and
    restored, be open to others."""
    listed = dataset(SOURCE, properties={"acltype": Property("posix", "inherited", "tank")})
    there = replace(listed, name=TARGET)
    for one in (DatasetCopy(listed, TARGET, "x", (), TASK), Restored(there, "tank/new", "x", (), "tank/new", 9)):
        assert "acltype=posix" in one.receiver(Decision("full"))
    for other in (
        dataset(SOURCE),
        dataset(SOURCE, properties={"acltype": Property("off", "default")}),
        replace(listed, kind="volume"),
    ):
        assert "acltype" not in DatasetCopy(other, TARGET, "x", (), TASK).properties


# --- what ZFS leaves out without saying so ----------------------------------------------------------------------------
@pytest.mark.parametrize("obeys", [True, False])
def test_property_that_was_silently_not_set_fails_the_copy(monkeypatch, obeys):
    now = {**copies.OFF, "canmount": "on"}

    def run(argv: Sequence[str], **_more: Any) -> command.Result:
        if argv[1] == "set" and obeys:
            now["canmount"] = "off"
        said = "".join(f"{key}\t{value}\tlocal\n" for key, value in now.items()) if argv[1] == "get" else ""
        return command.Result(tuple(argv), 0, said, "", 0.0)

    monkeypatch.setattr(command, "run", run)
    if obeys:
        copies.settle(Working(), TARGET, copies.OFF)
    else:
        with pytest.raises(Failed, match=r"was not kept out of use: canmount could not be set"):
            copies.settle(Working(), TARGET, copies.OFF)


# --- disks that take turns --------------------------------------------------------------------------------------------
def test_two_disks_in_turn_continue_from_their_own_bookmark_when_all_snapshots_are_gone(source, monkeypatch):  # noqa: F811
    """A and B are connected on alternate days. Whatever is pruned in between, each finds the
    moment that it ends with."""
    monkeypatch.setattr(libzfs, "destroy_bookmark", source.destroy_bookmark)
    disks: dict[str, list[int]] = {KEY: [], OTHER: []}
    for day in range(1, 21):
        key = (KEY, OTHER)[day % 2]
        task = BackupTask(key=key, pool=1, path="backups/photos", keep=Keep(hourly=0, daily=0, weekly=0, monthly=0))
        source.snapshots.append(snapshot(day))
        source.marks.append(mark(day, key))
        copy = Copy(TARGET, exists=bool(disks[key]), mark=CopyMark(5, raw=False), guids=tuple(disks[key]))
        points = [Point(one.name, one.guid) for one in (*source.snapshots, *source.marks)]
        decision = decide(SOURCE, points, day, False, copy)
        assert isinstance(decision, Decision)
        if disks[key]:
            assert (decision.kind, decision.base) == ("increment", f"{SOURCE}#larder-backup-{key}-{day - 2}")
        disks[key].append(day)
        let_go(Working(), DatasetCopy(dataset(SOURCE, guid=5), TARGET, snapshot(day).short, (), task), day, box_zone())
        source.snapshots = []  # somebody destroys every snapshot of the folder


def test_disk_that_was_away_for_too_long_is_a_question_and_never_sent_over():
    copy = Copy(TARGET, exists=True, mark=CopyMark(5, raw=False), guids=(1, 2))
    found = decide(SOURCE, [Point(f"{SOURCE}#x", 9)], 9, False, copy)
    assert isinstance(found, Reason) and found.code == "backup-no-common-snapshot"


# --- a disk that is pulled in the middle ------------------------------------------------------------------------------
def stopped(*more: Dataset) -> Facts:
    return Facts(pools=(Pool("usb", 9, "SUSPENDED"),), datasets=(dataset("usb"), *more))


def test_stopped_pool_with_encrypted_copies_is_not_cleared_but_the_box_restarted():
    copy = dataset("usb/backups/secret", copy_of=CopyMark(7, raw=True).text)
    with pytest.raises(Refused, match="restart the box") as seen:
        checked_plan(ClearErrors(pool="usb"), stopped(copy))
    assert [reason.code for reason in seen.value.reasons] == ["pool-needs-restart"]


def test_stopped_pool_without_encrypted_copies_goes_on():
    copy = dataset("usb/backups/photos", copy_of=CopyMark(5, raw=False).text)
    home = dataset("usb/backups", copy_of=CopyMark(0, raw=False).text)
    assert checked_plan(ClearErrors(pool="usb"), stopped(home, copy)).steps[0].command_text == "zpool clear -- usb"


def test_nothing_is_ever_forced(monkeypatch):
    """No stream destroys what the target has (``receive -F``), none carries properties, deletes or follows a tree."""
    ran: list[Sequence[str]] = []
    monkeypatch.setattr(command, "run", lambda argv, **_more: ran.append(argv))
    for kind, given in (("full", {}), ("increment", {"base": f"{SOURCE}@x"}), ("resume", {"token": "1-a"})):
        for flags in ((), ("-w",), ("-L", "-e", "-c")):
            one = DatasetCopy(dataset(SOURCE), TARGET, "x", flags, TASK)
            decision: Any = match.Decision(kind, **given)
            assert not {"-F", "-R", "-p", "-b", "-D", "-d", "--force"} & {
                *one.sender(decision),
                *one.receiver(decision),
            }
    assert ran == []
