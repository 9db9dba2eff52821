"""Restoring a folder out of its copy: what is refused, what is sent where, what an interruption and stopping leave."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec.structs import replace

from appliance import command
from appliance.backups import copies, staging, stored_keys, transfer
from appliance.backups.origin import Origin
from appliance.backups.restore_folder import RestoreFolder
from appliance.backups.tasks import BackupTask, encode_tasks
from appliance.datasets.access_note import AccessNote
from appliance.datasets.encryption import key_store
from appliance.errors import Cancelled, Failed, Refused
from appliance.facts import user_properties
from appliance.facts.box import Facts, Pool
from appliance.facts.copy_mark import CopyMark
from appliance.facts.datasets import Dataset, Property, Snapshot
from appliance.operation import Plan, checked_plan
from appliance.snapshots import bookmarks
from appliance.zfs import kstat, list_snapshots, mount, mountpoints
from tests.reasons import expect_refusal
from tests.unit.made import dataset
from tests.unit.pools.test_create import Working

AT = datetime(2026, 11, 20, 2, tzinfo=UTC)
COPY, TRIP, SECRET = "safe/backups/photos", "safe/backups/photos/trip 2019", "safe/backups/photos/secret"
STAGE = "tank/restoring-0123abcd"
PHOTOS, TRIP_GUID, SECRET_GUID = 5, 6, 7
WANTED = {COPY: 101, TRIP: 102, SECRET: 103}


def copy_of(name: str, guid: int, original: int, *, raw: bool = False, **changes: Any) -> Dataset:
    off: dict[str, Any] = {"mounted": False, "canmount": "off", "mountpoint": "none"}
    return dataset(name, guid=guid, copy_of=CopyMark(original, raw).text, **{**off, **changes})


def snapshot(name: str, guid: int, size: int = 10**9) -> Snapshot:
    return Snapshot(f"{name}@larder-backup-x", guid, guid, AT, referenced=size)


TREE = (
    dataset("tank", guid=1, available=10**12),
    dataset("safe", guid=2),
    copy_of("safe/backups", 50, 0),
    copy_of(COPY, 55, PHOTOS),
    copy_of(
        SECRET, 57, SECRET_GUID, raw=True, encryption="aes-256-gcm", encryption_root=SECRET, key_status="unavailable"
    ),
    copy_of(TRIP, 56, TRIP_GUID),
)
SNAPSHOTS = tuple(snapshot(name, guid) for name, guid in WANTED.items())


def facts_of(*more: Dataset, **changes: Any) -> Facts:
    pools = (Pool("tank", 1000, "ONLINE"), Pool("safe", 2000, "ONLINE"))
    return Facts(**{"pools": pools, "datasets": (*TREE, *more), "snapshots": SNAPSHOTS, **changes})


def restore(**changes: Any) -> RestoreFolder:
    found = tuple((one.name, one.guid) for one in SNAPSHOTS)
    given = {"copy": COPY, "guid": 55, "snapshots": found, "parent": "tank", "name": "photos", "token": "0123abcd"}
    return RestoreFolder(**{**given, **changes})


def changed(name: str, **changes: Any) -> Facts:
    return facts_of(datasets=tuple(replace(one, **changes) if one.name == name else one for one in TREE))


# --- what is refused ------------------------------------------------------------------------------------------------
def test_nothing_speaks_against_a_free_name():
    plan = checked_plan(restore(), facts_of())
    assert [step.name for step in plan.steps] == ["prepare", "copy-101", "copy-102", "copy-103", "place"]
    assert not plan.losses


def test_name_that_exists_is_refused_whatever_its_case():
    with expect_refusal("dataset-exists"):
        checked_plan(restore(), facts_of(dataset("tank/Photos", guid=PHOTOS)))


def test_restore_without_room_is_refused_with_numbers():
    with expect_refusal("restore-no-room"):
        checked_plan(restore(), changed("tank", available=3 * 10**9))


def test_what_has_arrived_counts_as_room():
    tank = replace(TREE[0], available=10**9)
    stage = copy_of(STAGE, 70, 0, used=25 * 10**8)
    checked_plan(restore(), facts_of(datasets=(tank, *TREE[1:], stage)))


@pytest.mark.parametrize(
    ("name", "changes", "code"),
    [
        (COPY, {"guid": 99}, "folder-missing"),
        (COPY, {"copy_of": ""}, "not-a-copy"),
        (TRIP, {"copy_of": ""}, "not-a-copy"),
        (TRIP, {"encryption": "on", "key_status": "unavailable"}, "dataset-locked"),
        ("tank", {"readonly": True}, "dataset-read-only"),
        ("tank", {"key_status": "unavailable"}, "dataset-locked"),
        ("tank", {"mountpoint": "none"}, "parent-without-mountpoint"),
        ("tank", {"copy_of": CopyMark(3, raw=False).text}, "restore-into-copy"),
    ],
)
def test_what_cannot_be_restored_or_not_there_is_refused(name, changes, code):
    with expect_refusal(code):
        checked_plan(restore(), changed(name, **changes))


def test_snapshot_that_is_gone_is_refused():
    with expect_refusal("snapshot-missing"):
        checked_plan(restore(), facts_of(snapshots=SNAPSHOTS[:2]))


def test_folder_that_only_looks_like_that_of_this_restore_is_refused():
    with expect_refusal("dataset-exists"):
        checked_plan(restore(), facts_of(dataset(STAGE)))


@pytest.mark.parametrize(
    "found",
    [(), ((f"{TRIP}@s", 1),), ((f"{COPY}@s", 1), ("safe/other@s", 2)), ((f"{COPY}@s", 1), (f"{TRIP}/x@s", 2))],
)
def test_snapshots_are_of_one_tree_parents_first(found):
    with pytest.raises(Refused):
        restore(snapshots=found)


# --- what the plan says ---------------------------------------------------------------------------------------------
def said(facts: Facts, **changes: Any) -> str:
    return " ".join(checked_plan(restore(**changes), facts).warnings)


def test_plan_says_what_stays_locked_and_what_is_left_out():
    both = tuple((one.name, one.guid) for one in SNAPSHOTS[:1])
    assert "others stay locked until you give it" in said(facts_of())
    assert f"Left out, since there is no copy of that moment or an earlier one: {SECRET}, {TRIP}" in said(
        facts_of(), snapshots=both
    )


def test_plan_says_that_the_original_stays():
    assert "tank/photos is still there" in said(facts_of(dataset("tank/photos", guid=PHOTOS)), name="photos-restored")


def test_plan_says_what_applies_to_the_new_folder_by_its_place():
    task = BackupTask(key="89abcdef", pool=2000, path="backups/tank")
    tank = replace(
        TREE[0],
        share='{"smb":{"name":"all"}}',
        share_source="local",
        policy='{"hourly":4}',
        policy_source="local",
        backup=encode_tasks((task,)),
        backup_source="local",
    )
    text = said(facts_of(datasets=(tank, *TREE[1:])))
    for part in ("It is not shared, although tank is", "the snapshot schedule of tank: 4 hourly", "The backup of tank"):
        assert part in text


def settings_in(argv: Sequence[str]) -> dict[str, str]:
    pairs = (word.partition("=") for word in argv)
    return {key: value for key, equals, value in pairs if equals}


# --- what is done ---------------------------------------------------------------------------------------------------
@dataclass
class Zfs:
    """Stands in for ZFS: datasets with what is set on themselves, snapshots by their guid, and interrupted receives."""

    own: dict[str, dict[str, str]]
    snapshots: dict[str, list[int]]
    partly: dict[str, int] = field(default_factory=dict)
    locked: set[str] = field(default_factory=set)
    ran: list[list[str]] = field(default_factory=list)
    streams: list[tuple[list[str], list[str]]] = field(default_factory=list)
    interrupt: BaseException | None = None
    forgets: bool = False  # what was set at the beginning of a receive that was interrupted

    def below(self, name: str) -> list[str]:
        return [one for one in sorted(self.own) if one == name or one.startswith(f"{name}/")]

    def run(self, argv: Sequence[str], **_more: Any) -> command.Result:
        self.ran.append(list(argv))
        return command.Result(tuple(argv), 0, self.answer(list(argv)), "", 0.0)

    def answer(self, argv: list[str]) -> str:
        match argv[:2]:
            case ["zfs", "get"]:
                return self.get(argv[-1], argv[-2].split(","))
            case ["zfs", "create"]:
                self.make(argv)
            case ["zfs", "rename"]:
                assert argv[-1] not in self.own
                for name in self.below(argv[-2]):
                    new = argv[-1] + name.removeprefix(argv[-2])
                    self.own[new], self.snapshots[new] = self.own.pop(name), self.snapshots.pop(name, [])
            case ["zfs", "set"]:
                self.own[argv[-1]].update(settings_in(argv[2:-1]))
            case ["zfs", "inherit"]:
                self.own[argv[-1]].pop(argv[2], None)
            case ["zfs", "destroy"]:
                going = self.below(argv[-1])
                assert len(going) == 1 or "-r" in argv
                for name in going:
                    del self.own[name]
            case ["zfs", "list"]:
                return "\n".join(self.below(argv[-1]))
            case ["zfs", "send"]:
                return TOKEN.format(guid=WANTED[COPY], name=f"{COPY}@larder-backup-x")
            case ["zpool", "get"]:
                return "".join(f"feature@{name}\tactive\n" for name in transfer.FEATURES)
        return ""

    def make(self, argv: list[str]) -> None:
        self.own[argv[-1]] = settings_in(argv)
        self.snapshots[argv[-1]] = []

    def get(self, name: str, wanted: list[str]) -> str:
        if name not in self.own:
            raise command.CommandFailed(
                command.Result(("zfs",), 1, "", f"cannot open '{name}': dataset does not exist", 0.0)
            )
        known = {
            "guid": "9",
            "written": "0",
            "keystatus": "unavailable" if name in self.locked else "-",
            **self.own[name],
        }
        if name in self.partly:
            known |= {"receive_resume_token": "1-abc", "written": "30000000"}
        return "".join(f"{key}\t{known[key]}\tlocal\n" for key in wanted if key in known)

    def list_snapshots(self, names: Sequence[str]) -> list[Snapshot]:
        return [
            Snapshot(f"{name}@larder-backup-x", guid, guid, AT)
            for name in names
            for guid in self.snapshots.get(name, [])
        ]

    def send(
        self, sender: Sequence[str], receiver: Sequence[str], tell: Any, *_more: Any, may_end: bool, foreign: bool
    ) -> int:
        assert not may_end
        self.streams.append((list(sender), list(receiver)))
        target = receiver[-1]
        if target not in self.own:
            self.make(list(receiver))
        if self.interrupt:
            self.partly[target] = 1
            if self.forgets:
                self.own[target] = {}
            raise self.interrupt
        tell(5)
        name = COPY if "-t" in sender else sender[-1].partition("@")[0]
        self.partly.pop(target, None)
        self.snapshots[target].append(WANTED[name])
        return 10


TOKEN = "resume token contents:\nnvlist version: 0\n\ttoguid = {guid:#x}\n\ttoname = {name}\n"


@pytest.fixture
def zfs(monkeypatch) -> Zfs:
    own = {one.name: {"larder:copy-of": one.copy_of} if one.copy_of else {} for one in TREE}
    found = Zfs(own, {name: [guid] for name, guid in WANTED.items()})
    monkeypatch.setattr(command, "run", found.run)
    monkeypatch.setattr(list_snapshots, "list_snapshots", found.list_snapshots)
    monkeypatch.setattr(bookmarks, "read_bookmarks", lambda _names: [])
    monkeypatch.setattr(transfer, "send_stream", found.send)
    monkeypatch.setattr(mount, "mount_dataset", lambda name, _work, **_more: found.run(["mount", name]))
    monkeypatch.setattr(mountpoints, "refuse_taken", lambda place: found.run(["free?", place]))
    return found


def run(plan: Plan, work: Working | None = None) -> None:
    for step in plan.steps:
        step.run(work or Working())


def test_everything_is_received_apart_and_then_gets_its_name(zfs):
    zfs.locked = {"tank/photos/secret"}
    before = {name: dict(values) for name, values in zfs.own.items()}
    run(checked_plan(restore(), facts_of()))
    assert [(sender[-1], receiver[-1]) for sender, receiver in zfs.streams] == [
        (f"{name}@larder-backup-x", f"{STAGE}/photos{name.removeprefix(COPY)}") for name in WANTED
    ]
    assert zfs.own.pop("tank/photos") == zfs.own.pop("tank/photos/trip 2019") == {"canmount": "on"}
    assert zfs.own.pop("tank/photos/secret") == {"canmount": "on"}
    assert zfs.own == before  # the copy has what it had, and the folder that was received into is gone
    mounted = [argv[1] for argv in zfs.ran if argv[0] == "mount"]
    assert mounted == ["tank/photos", "tank/photos/trip 2019"]


@pytest.mark.parametrize("under", [SECRET_GUID, PHOTOS, 9])
def test_encrypted_folder_is_unlocked_with_the_key_that_is_stored_for_its_original_or_one_above_it(
    zfs, monkeypatch, tmp_path, under
):
    """9 is the guid of the pool's top folder, which is still here.
    The key is then stored for the restored folder itself."""
    monkeypatch.setattr(key_store, "FOLDER", tmp_path)
    monkeypatch.setattr(stored_keys, "try_key", lambda name, given, *, only_try: opens(zfs, name, given, only_try))
    zfs.locked = {"tank/photos/secret"}
    zfs.own |= {"tank": {}}
    key_store.store_key(under, "the phrase of the attic")
    key_store.store_key(12345, "of another folder")
    work = Working()
    plan = checked_plan(
        restore(),
        changed(SECRET, properties={user_properties.ORIGIN: Property(Origin(name="tank/photos/secret").text, "local")}),
    )
    for step in plan.steps:
        step.run(work)
    assert key_store.read_key(9) == "the phrase of the attic"  # every dataset has this guid here
    assert zfs.own["tank/photos/secret"]["larder:unlock"] == key_store.box_mark()
    assert ["mount", "tank/photos/secret"] in zfs.ran
    assert "the phrase" not in " ".join(work.notes)


def opens(zfs: Zfs, name: str, given: object, only_try: bool) -> bool:
    """Unlocked only once the key is kept: a process that ends in between leaves it locked, and is done again."""
    if not only_try:
        assert key_store.has_key(9) and zfs.own[name]["larder:unlock"] == key_store.box_mark()
        zfs.locked -= {name}
    return given == "the phrase of the attic\n"


def test_encrypted_folder_whose_key_is_not_stored_stays_locked(zfs, monkeypatch, tmp_path):
    monkeypatch.setattr(key_store, "FOLDER", tmp_path)
    zfs.locked = {"tank/photos/secret"}
    key_store.store_key(12345, "of another folder")
    run(checked_plan(restore(), facts_of()))
    assert not [argv for argv in zfs.ran if argv[1] == "load-key"] and len(list(tmp_path.iterdir())) == 1


def test_nothing_is_forced_and_encrypted_folders_travel_encrypted(zfs):
    run(checked_plan(restore(), facts_of()))
    flags = {sender[-1].partition("@")[0]: sender[2:-2] for sender, _receiver in zfs.streams}
    assert flags == {COPY: ["-L", "-e", "-c"], TRIP: ["-L", "-e", "-c"], SECRET: ["-w"]}
    for _sender, receiver in zfs.streams:
        assert receiver[:4] == ["zfs", "receive", "-u", "-s"] and "-F" not in receiver
        assert "canmount=noauto" in receiver and any(word.startswith("larder:copy-of=") for word in receiver)


def test_nothing_is_embedded_in_what_the_destination_encrypts(zfs):
    run(checked_plan(restore(), changed("tank", encryption="aes-256-gcm", encryption_root="tank")))
    assert zfs.streams[0][0][2:-2] == ["-L", "-c"]


def test_folder_below_a_shared_one_is_not_shared_with_it(zfs):
    run(checked_plan(restore(), changed("tank", share='{"smb":{"name":"all"}}', share_source="local")))
    assert zfs.own["tank/photos"] == {"canmount": "on", "larder:share": "{}"}
    assert "larder:share" not in zfs.own["tank/photos/trip 2019"]  # it inherits


def test_settings_and_the_list_of_users_come_back_where_the_copy_remembers_them(zfs):
    origin = Origin(
        name="tank/photos", settings={"recordsize": "1048576"}, access=AccessNote(guid=PHOTOS, people={"anna": "read"})
    )
    facts = changed(COPY, properties={"larder:origin": Property(origin.text, "local")})
    plan = checked_plan(restore(), facts)
    assert plan.details["Settings that come back"] == "recordsize 1048576"
    run(plan)
    found = zfs.own["tank/photos"]
    assert found.pop("larder:access").startswith('{"box":"","done":false,"everybody":"none","groups":{},"guid":9,')
    assert found == {"canmount": "on", "recordsize": "1048576"}


@pytest.mark.parametrize("forgets", [False, True])
def test_interrupted_restore_goes_on_with_its_token(zfs, forgets):
    zfs.forgets = forgets
    zfs.interrupt = Failed("killed")
    with pytest.raises(Failed):
        run(checked_plan(restore(), facts_of()))
    zfs.interrupt = None
    run(checked_plan(restore(), facts_now(zfs)))
    assert zfs.streams[1][0] == ["zfs", "send", "-t", "1-abc"]
    assert zfs.own["tank/photos"] == {"canmount": "on"} and STAGE not in zfs.own


def test_token_of_something_else_is_not_used(zfs, monkeypatch):
    zfs.interrupt = Failed("killed")
    with pytest.raises(Failed):
        run(checked_plan(restore(), facts_of()))
    zfs.interrupt = None
    monkeypatch.setattr("tests.unit.backups.test_restore_folder.TOKEN", TOKEN.replace("{name}", "tank/papers@x"))

    def discard(argv: Sequence[str], **more: Any) -> command.Result:
        if argv[:3] == ["zfs", "receive", "-A"]:
            del zfs.own[argv[-1]], zfs.partly[argv[-1]]
        return Zfs.run(zfs, argv, **more)

    monkeypatch.setattr(command, "run", discard)
    run(checked_plan(restore(), facts_of()))
    assert ["zfs", "receive", "-A", f"{STAGE}/photos"] in zfs.ran
    assert not any("-t" in sender for sender, _receiver in zfs.streams)


@pytest.mark.parametrize("at", ["zfs rename", "zfs destroy", "mount tank/photos", "zfs inherit"])
def test_restore_that_ended_while_it_got_its_name_is_finished(zfs, monkeypatch, at):
    operation, seen = restore(), list[Sequence[str]]()

    def killed(argv: Sequence[str], **more: Any) -> command.Result:
        result = Zfs.run(zfs, argv, **more)
        if " ".join(argv).startswith(at) and not seen:
            seen.append(argv)
            raise KeyboardInterrupt
        return result

    monkeypatch.setattr(command, "run", killed)
    monkeypatch.setattr(mount, "mount_dataset", lambda name, _work, **_more: killed(["mount", name]))
    with pytest.raises(KeyboardInterrupt):
        run(checked_plan(operation, facts_of()))
    assert seen
    now = facts_now(zfs)
    assert not operation.probe("place", now)
    run(checked_plan(operation, now))
    assert zfs.own["tank/photos"] == {"canmount": "on"} and STAGE not in zfs.own
    assert len(zfs.streams) == 3
    after = facts_now(zfs)
    assert all(operation.probe(step, after) for step in ("prepare", "copy-101", "copy-103", "place"))


def mount_fails(zfs: Zfs, monkeypatch: pytest.MonkeyPatch, error: Failed) -> None:
    def mount_dataset(name: str, _work: Any, **_more: Any) -> None:
        zfs.run(["mount", name])
        if name == "tank/photos/trip 2019":
            raise error

    monkeypatch.setattr(mount, "mount_dataset", mount_dataset)


def test_folder_that_cannot_be_mounted_leaves_out_no_other_and_is_named(zfs, monkeypatch):
    said = "mount: /tank/photos/trip 2019: can't read superblock."  # made up for ZFS; the words are those of mount(8)
    mount_fails(zfs, monkeypatch, command.CommandFailed(command.Result(("mount",), 32, "", said, 0)))
    operation, work = restore(), Working()
    with pytest.raises(Failed, match=r"tank/photos was restored, but .*: Left unmounted: tank/photos/trip 2019\."):
        run(checked_plan(operation, facts_of()), work)
    assert any("tank/photos/trip 2019 could not be mounted: mount: " in note for note in work.notes)
    # The others are as after any restore; it stays out of use until somebody mounts it, and counts as no copy either.
    assert zfs.own["tank/photos"] == zfs.own["tank/photos/secret"] == {"canmount": "on"}
    assert zfs.own["tank/photos/trip 2019"] == {"canmount": "noauto"}
    assert STAGE not in zfs.own
    hint = operation.recovery_hint("place", facts_now(zfs))
    assert "Nothing was restored" not in hint and "Mount those folders on their pages" in hint


def test_folder_below_one_that_cannot_be_mounted_is_not_put_into_its_empty_place(zfs, monkeypatch):
    below = f"{TRIP}/paris"
    monkeypatch.setitem(WANTED, below, 104)
    zfs.own[below], zfs.snapshots[below] = {"larder:copy-of": CopyMark(8, raw=False).text}, [104]
    found = (*((one.name, one.guid) for one in SNAPSHOTS), (f"{below}@larder-backup-x", 104))
    known = facts_of(copy_of(below, 58, 8), snapshots=(*SNAPSHOTS, snapshot(below, 104)))
    mount_fails(zfs, monkeypatch, mountpoints.Blocked("There is something at /tank/photos/trip 2019 already"))
    with pytest.raises(Failed, match=r"Left unmounted: tank/photos/trip 2019, tank/photos/trip 2019/paris\."):
        run(checked_plan(restore(snapshots=found), known))
    assert ["mount", "tank/photos/trip 2019/paris"] not in zfs.ran
    assert zfs.own["tank/photos/trip 2019/paris"] == {"canmount": "noauto"}
    assert zfs.own["tank/photos/secret"] == {"canmount": "on"}


@pytest.mark.parametrize("stopped", [True, False])
def test_restore_into_a_pool_that_no_longer_answers_ends_at_once_and_can_be_finished(zfs, monkeypatch, stopped):
    monkeypatch.setattr(kstat, "is_stopped", lambda pool: stopped and pool == "tank")
    late = command.CommandTimedOut(["mount"], 120, None)
    mount_fails(zfs, monkeypatch, Failed("Input/output error") if stopped else late)
    with pytest.raises(Failed, match="Input/output error" if stopped else "did not answer"):
        run(checked_plan(restore(), facts_of()))
    assert ["mount", "tank/photos/secret"] not in zfs.ran
    assert "Start the restore again to finish it" in restore().recovery_hint("place", facts_now(zfs))


def facts_now(zfs: Zfs) -> Facts:
    known = {one.name: one for one in TREE}
    found = tuple(
        replace(known.get(name, dataset(name, guid=900 + at)), copy_of=values.get("larder:copy-of", ""))
        for at, (name, values) in enumerate(sorted(zfs.own.items()))
    )
    taken = tuple(snapshot(name, guid) for name in zfs.own for guid in zfs.snapshots.get(name, []))
    return facts_of(datasets=found, snapshots=taken)


def test_stopping_removes_what_arrived_and_nothing_else(zfs):
    before = set(zfs.own)
    zfs.interrupt = Cancelled()
    with pytest.raises(Cancelled):
        run(checked_plan(restore(), facts_of()))
    assert zfs.own.keys() - before == {STAGE, f"{STAGE}/photos"}
    restore().clean_up(Working())
    assert set(zfs.own) == before
    restore().clean_up(Working())  # nothing is there: nothing happens
    assert set(zfs.own) == before


ASIDE = {"larder:copy-of": CopyMark(0, raw=False).text}
OURS = {**ASIDE, "larder:restore": "0123abcd"}


@pytest.mark.parametrize(
    "there",
    [
        {STAGE: {}},
        {STAGE: ASIDE},  # a copy that was set aside, or the folder of an interrupted restore of an older version
        {STAGE: {**ASIDE, "larder:restore": "89abcdef"}},
        {STAGE: OURS, f"{STAGE}/mine": {}},
        {STAGE: OURS, f"{STAGE}/photos": {}},  # a folder that was moved there
        {STAGE: OURS, f"{STAGE}/photos": ASIDE},
    ],
)
def test_stopping_leaves_what_another_has_made(zfs, there):
    zfs.own |= there
    with pytest.raises(Failed):
        restore().clean_up(Working())
    assert there.keys() <= zfs.own.keys()


def test_stopping_removes_what_lost_its_mark_when_it_was_interrupted(zfs):
    zfs.forgets, zfs.interrupt = True, Cancelled()
    with pytest.raises(Cancelled):
        run(checked_plan(restore(), facts_of()))
    restore().clean_up(Working())
    assert STAGE not in zfs.own


def test_nothing_is_received_into_a_copy_that_was_set_aside(zfs):
    zfs.own[STAGE] = dict(ASIDE)
    with pytest.raises(Failed, match="not a folder that a restore has made"):
        run(checked_plan(restore(), facts_now(zfs)))
    assert not zfs.streams


def test_snapshot_that_did_not_arrive_gets_no_place(zfs):
    plan = checked_plan(restore(), facts_of())
    for step in plan.steps[:-1]:
        step.run(Working())
    zfs.snapshots[f"{STAGE}/photos/secret"] = []
    with pytest.raises(Failed, match="has not arrived"):
        plan.steps[-1].run(Working())
    assert "tank/photos" not in zfs.own


def test_original_at_the_place_is_never_taken_for_the_restored_folder():
    facts = facts_of(dataset("tank/photos", guid=PHOTOS))
    facts = replace(facts, snapshots=(*SNAPSHOTS, snapshot("tank/photos", 101)))
    assert not restore().is_placed(facts)
    with expect_refusal("dataset-exists"):
        checked_plan(restore(), facts)


def test_volume_is_renamed_without_mounting(zfs):
    zfs.own = {name: values for name, values in zfs.own.items() if name not in {TRIP, SECRET}}
    datasets = tuple(replace(one, kind="volume") if one.name == COPY else one for one in TREE[:4])
    plan = checked_plan(restore(snapshots=((SNAPSHOTS[0].name, 101),)), facts_of(datasets=datasets))
    run(plan)
    # A copy does not say whether another computer wrote the partitions on it, so this box does not look for them.
    assert zfs.own["tank/photos"] == {"volmode": "dev"}
    assert not any(argv[:3] == ["zfs", "inherit", "volmode"] for argv in zfs.ran)
    assert "zfs set volmode=dev tank/photos" in plan.steps[-1].command_text
    assert "zfs inherit volmode tank/photos" in str(plan.warnings)
    assert ["zfs", "rename", "--", f"{STAGE}/photos", "tank/photos"] in zfs.ran
    assert not any(argv[0] == "mount" for argv in zfs.ran)


def test_copy_that_was_set_aside_is_restored_as_well():
    checked_plan(restore(), changed(COPY, copy_of=CopyMark(0, raw=False).text))


def test_lock_is_that_of_the_copys_backup():
    assert restore(copy=TRIP, snapshots=((f"{TRIP}@s", 1),)).locks() == (copies.lock_of(COPY),)
    assert CopyMark(0, raw=False).text == staging.MARK
