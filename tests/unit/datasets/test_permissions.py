from __future__ import annotations

import json
import os
import struct
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from appliance.agent.registry import decode_operation
from appliance.datasets import access_note, permissions
from appliance.datasets.access_note import AccessNote, encode_note, foreign_note, read_note, resolve_numbers, valid_note
from appliance.datasets.encryption import key_store
from appliance.datasets.permissions import SetAccess
from appliance.errors import Cancelled, Failed, Refused
from appliance.facts.datasets import Dataset, Snapshot
from appliance.facts.sharing import Account, Group
from appliance.files import leftover, traversal
from appliance.files.posix_acl import ACCESS, DEFAULT, Access, Level
from appliance.operation import checked_plan
from appliance.system import accounts
from appliance.zfs import mountpoints
from tests.reasons import expect_refusal
from tests.unit.made import box, dataset
from tests.unit.pools.test_create import Working

ANNA, BEN = Account("anna", 10001, "Anna"), Account("ben", 10002)
FAMILY = Group("family", 20001, ("anna",))
PHOTOS = dataset("tank/photos")
BOX = box(datasets=(dataset("tank"), PHOTOS), accounts=(ANNA, BEN), groups=(FAMILY,))
OPEN = Access("none", {10001: "change", 10002: "read"}, {20001: "read"})


def entries(raw: bytes) -> list[tuple[int, int, int]]:
    assert struct.unpack_from("<I", raw) == (2,)
    return list(struct.iter_unpack("<HHI", raw[4:]))


def test_acl_is_encoded_for_kernel():
    nobody = 0xFFFFFFFF
    assert entries(OPEN.encode_acl(enter=True)) == [
        (0x01, 7, nobody),
        (0x02, 7, 10001),
        (0x02, 5, 10002),
        (0x04, 0, nobody),
        (0x08, 5, 20001),
        (0x10, 7, nobody),
        (0x20, 0, nobody),
    ]
    assert [bits for _tag, bits, _id in entries(OPEN.encode_acl(enter=False))] == [6, 6, 4, 0, 4, 6, 0]


def test_own_level_counts_before_most_generous_group():
    rules = Access("read", {1: "none"}, {7: "change", 8: "none"})
    assert rules.level_of(1, frozenset({7})) == "none"
    assert rules.level_of(2, frozenset({7, 8})) == "change"
    assert rules.level_of(2, frozenset({8})) == "read"


# The walk on real files. Changing owners needs root, so calls of chown are only recorded.


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """A folder with files and a link to a neighbour that must never change; the neighbour;
    the recorded calls of chown."""
    top, outside = tmp_path / "photos", tmp_path / "outside"
    (top / "2026" / "may").mkdir(parents=True)
    (top / "2026" / "may" / "sea.jpg").write_text("x")
    (top / "run.sh").write_text("x")
    (top / "run.sh").chmod(0o700)
    (top / ".zfs" / "snapshot").mkdir(parents=True)
    outside.mkdir()
    (outside / "secret").write_text("x")
    (top / "way-out").symlink_to(outside)
    (top / "file-out").symlink_to(outside / "secret")
    os.mkfifo(top / "pipe")
    try:
        os.setxattr(tmp_path, ACCESS, OPEN.encode_acl(enter=True))
    except OSError:
        pytest.skip("these files cannot keep ACLs")
    os.removexattr(tmp_path, ACCESS)
    monkeypatch.setattr(traversal, "dataset_of", lambda _handle: "tank/photos")
    monkeypatch.setattr(permissions, "group_number", lambda: 990)
    given: dict[int, tuple[int, int]] = {}

    def chown(path: str, uid: int, gid: int) -> None:
        inode = Path(path).stat().st_ino
        before = given.get(inode, (-1, -1))
        given[inode] = (before[0] if uid == -1 else uid, before[1] if gid == -1 else gid)

    monkeypatch.setattr("os.chown", chown)
    return top, outside, given


def ruled(path: Path) -> bool:
    return ACCESS in os.listxattr(path, follow_symlinks=False)


def rules_of(path: Path, which: str = ACCESS) -> list[tuple[int, int, int]]:
    return entries(os.getxattr(path, which))


def carry_out(top: Path, work: Working | None = None, demoted: frozenset[int] = frozenset()) -> None:
    permissions.apply_access("tank/photos", str(top), OPEN, demoted, work or Working())


def test_access_is_applied_to_every_file_and_inherited_by_new_ones(tree):
    top, _outside, given = tree
    carry_out(top)
    for folder in (top, top / "2026", top / "2026" / "may"):
        assert rules_of(folder) == rules_of(folder, DEFAULT) == entries(OPEN.encode_acl(enter=True))
        assert folder.stat().st_mode & 0o7777 == 0o2770
    assert rules_of(top / "2026" / "may" / "sea.jpg") == entries(OPEN.encode_acl(enter=False))
    assert rules_of(top / "run.sh") == entries(OPEN.encode_acl(enter=True))
    assert set(given.values()) == {(-1, 990)}
    (top / "2026" / "new").write_text("x")
    assert (0x02, 6, 10001) in [(tag, bits & 6, who) for tag, bits, who in rules_of(top / "2026" / "new")]


def test_links_pipes_and_snapshots_are_left_alone(tree):
    top, outside, given = tree
    before = outside.stat(), (outside / "secret").stat()
    carry_out(top)
    for path in (outside, outside / "secret", top / ".zfs", top / ".zfs" / "snapshot", top / "pipe"):
        assert not ruled(path), path
        assert path.stat().st_ino not in given
    assert (outside.stat(), (outside / "secret").stat()) == before


def test_scratch_folder_of_an_import_stays_closed_and_hands_the_new_rules_on(tree):
    """Whatever an import still writes there is moved among the files afterwards, with the rules that it got there."""
    top, _outside, given = tree
    scratch = top / ".larder-importing"
    scratch.mkdir(mode=0o700)
    (scratch / "sea.jpg.Xk29aB").write_text("x")
    carry_out(top)
    assert scratch.stat().st_mode & 0o7777 == 0o2700
    assert not ruled(scratch) and rules_of(scratch, DEFAULT) == entries(OPEN.encode_acl(enter=True))
    assert given[scratch.stat().st_ino] == (-1, 990)
    assert rules_of(scratch / "sea.jpg.Xk29aB") == entries(OPEN.encode_acl(enter=False))
    with traversal.open_dir_nofollow(str(top)) as folder:
        leftover.remove_leftover(b".larder-importing", folder)
    assert not scratch.exists()


@pytest.mark.parametrize("theirs", ["of a user", "open to others"])
def test_folder_with_the_name_of_a_scratch_folder_follows_the_rules(tree, monkeypatch, theirs):
    top, _outside, _given = tree
    folder = top / ".larder-importing"
    folder.mkdir(mode=0o755 if theirs == "open to others" else 0o700)
    if theirs == "of a user":
        monkeypatch.setattr(os, "geteuid", lambda: folder.stat().st_uid + 1)
    carry_out(top)
    assert folder.stat().st_mode & 0o7777 == 0o2770 and ruled(folder)


def test_files_of_demoted_users_go_to_root(tree):
    top, _outside, given = tree
    carry_out(top, demoted=frozenset({os.getuid()}))
    assert set(given.values()) == {(0, 990)}


def test_demoted_owner_has_lost_a_file_before_its_rules_change(tree, monkeypatch):
    """He could put his rights back in between."""
    top, _outside, given = tree
    real = os.setxattr

    def setxattr(path: str, name: str, value: bytes) -> None:
        assert given[Path(path).stat().st_ino] == (0, -1)
        real(path, name, value)

    monkeypatch.setattr("os.setxattr", setxattr)
    carry_out(top, demoted=frozenset({os.getuid()}))


def test_another_file_system_is_not_entered(tree, monkeypatch):
    top, _outside, _given = tree
    real = os.fstat
    other = (top / "2026").stat().st_ino

    def fstat(handle: int) -> os.stat_result:
        found = real(handle)
        if found.st_ino != other:
            return found
        return os.stat_result((*found[:2], found.st_dev + 1, *found[3:]))

    monkeypatch.setattr("os.fstat", fstat)
    carry_out(top)
    assert ruled(top / "run.sh")
    assert not ruled(top / "2026")
    assert not ruled(top / "2026" / "may")


@pytest.mark.parametrize("moment", ["before it is opened", "after it was opened", "before it is listed"])
def test_folder_swapped_for_link_during_walk_is_not_followed(tree, monkeypatch, moment):
    """A user with write access replaces a folder by a link at the worst moments."""
    top, outside, given = tree
    (outside / "may").mkdir()
    (outside / "may" / "deep").write_text("x")
    swapped: list[str] = []
    real_open, real_listing = os.open, traversal.open_listing
    victim = (top / "2026").stat().st_ino

    def swap() -> None:
        if not swapped:
            swapped.append(moment)
            (top / "2026").rename(top.parent / "hidden")
            (top / "2026").symlink_to(outside)

    def opened(path, flags, *more, **others):
        if path == "2026" and moment == "before it is opened":
            swap()
        handle = real_open(path, flags, *more, **others)
        if path == "2026" and moment == "after it was opened":
            swap()
        return handle

    def listing(handle: int):
        if os.fstat(handle).st_ino == victim and moment == "before it is listed":
            swap()
        return real_listing(handle)

    monkeypatch.setattr("os.open", opened)
    monkeypatch.setattr(traversal, "open_listing", listing)
    carry_out(top)
    assert swapped == [moment]
    for path in (outside, outside / "secret", outside / "may", outside / "may" / "deep"):
        assert not ruled(path), path
        assert path.stat().st_ino not in given
    # What was held when the name changed is still what was meant; what was a link when it was opened is left alone.
    assert ruled(top.parent / "hidden" / "may" / "sea.jpg") is (moment != "before it is opened")


def test_link_in_path_of_folder_is_refused(tree, tmp_path):
    top, outside, _given = tree
    (tmp_path / "around").symlink_to(top.parent)
    with pytest.raises(Failed, match="could not be opened"):
        carry_out(tmp_path / "around" / "photos")
    with pytest.raises(Failed, match="could not be opened"):
        carry_out(top / "way-out")
    assert not ruled(outside)


def test_another_file_system_at_mountpoint_is_refused(tree, monkeypatch):
    top, _outside, _given = tree
    monkeypatch.setattr(traversal, "dataset_of", lambda _handle: "")
    with expect_refusal("dataset-not-at-mountpoint"):
        carry_out(top)
    assert not ruled(top)


def test_mountinfo_names_dataset(tmp_path, monkeypatch):
    device = tmp_path.stat().st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    mounts = tmp_path / "mountinfo"
    mounts.write_text(
        f"30 1 9:9 / / rw - ext4 /dev/vda rw\n31 30 {number} / /tank/my\\040photos rw shared:1 - zfs "
        "tank/my\\040photos rw,posixacl\n"
    )
    monkeypatch.setattr(traversal, "MOUNTS", mounts)
    with traversal.open_dir_nofollow(str(tmp_path)) as handle:
        assert traversal.dataset_of(handle) == "tank/my photos"
        mounts.write_text(f"31 30 {number} / / rw - ext4 /dev/vda rw\n")
        assert traversal.dataset_of(handle) == ""


def test_mounted_folder_with_other_bytes_hides_no_mount(tmp_path, monkeypatch):
    """Nor does one with a line break that only Python takes for one."""
    mounts = tmp_path / "mountinfo"
    mounts.write_bytes(
        b"31 30 0:9 / /tank/M\xfcsik rw shared:1 - zfs tank/music rw\n"
        b"32 30 0:8 / /tank/a\x0bb rw shared:1 - zfs tank/a rw\n33 30 0:7 / /tank/b rw - zfs tank/b rw\n"
    )
    monkeypatch.setattr(traversal, "MOUNTS", mounts)
    found = dict(mountpoints.mounted_places())
    assert (found["tank/a"], found["tank/b"]) == ("/tank/a\x0bb", "/tank/b")
    assert os.fsencode(found["tank/music"]) == b"/tank/M\xfcsik"
    with traversal.open_dir_nofollow(str(tmp_path)) as handle:
        assert traversal.dataset_of(handle) == ""


def test_walk_stops_when_asked_and_closes_descriptors(tree, monkeypatch):
    top, _outside, _given = tree
    monkeypatch.setattr(traversal, "SECONDS_BETWEEN_REPORTS", 0)

    class Stopped(Working):
        def stop_if_asked(self) -> None:
            raise Cancelled

    before = len(list(Path("/proc/self/fd").iterdir()))
    with pytest.raises(Cancelled):
        carry_out(top, Stopped())
    assert len(list(Path("/proc/self/fd").iterdir())) == before
    assert not ruled(top / "2026" / "may" / "sea.jpg")


def test_walk_reports_progress(tree, monkeypatch):
    top, _outside, _given = tree
    monkeypatch.setattr(traversal, "SECONDS_BETWEEN_REPORTS", 0)
    told: list[tuple[int, str]] = []

    class Told(Working):
        def progress(self, percent: int, phrase: str) -> None:
            told.append((percent, phrase))

    work = Told()
    carry_out(top, work)
    assert [phrase.split()[0] for _percent, phrase in told] == ["1", "2", "3", "4", "5"]
    assert all(0 <= percent <= 99 for percent, _phrase in told)
    assert work.notes == ["5 files and folders follow the new rules"]


# The operation


def asked(**changes) -> SetAccess:
    return SetAccess(
        **{"dataset": "tank/photos", "people": {"anna": "change"}, "groups": {"family": "read"}, **changes}
    )


def test_note_is_written_before_and_after_walk(commands, monkeypatch):
    walked: list[tuple[object, ...]] = []
    monkeypatch.setattr(permissions, "apply_access", lambda *given: walked.append(given[:4]))
    for step in checked_plan(asked(), BOX).steps:
        step.run(Working())
    texts = [argv[2].partition("=") for argv in commands.ran if argv[2].startswith("larder:access=")]
    assert [json.loads(text)["done"] for _name, _is, text in texts] == [False, True]
    assert commands.ran[0][2] == "acltype=posix"
    where, demoted = walked[0][:3], frozenset(walked[0][3])  # type: ignore[call-overload]
    assert where == ("tank/photos", "/tank/photos", Access("none", {10001: "change"}, {20001: "read"}))
    assert 10002 in demoted
    assert 10001 not in demoted


def test_files_of_unused_numbers_go_to_root(commands, monkeypatch):
    walked: list[frozenset[int]] = []
    monkeypatch.setattr(permissions, "apply_access", lambda *given: walked.append(given[3]))
    permissions.apply_note(PHOTOS, AccessNote(guid=PHOTOS.guid, everybody="change"), BOX, Working())
    assert 10003 in walked[0]
    assert walked[0].isdisjoint({0, 33, 10001, 10002})


def test_snapshot_is_taken_first_if_asked(commands, monkeypatch):
    taken: list[tuple[list[str], dict[str, str]]] = []
    monkeypatch.setattr(
        "appliance.zfs.libzfs.take_snapshots", lambda names, properties: taken.append((names, properties))
    )
    name = "larder-before-2026.11.21-12.00.00"
    wanted = asked(before=name)
    plan = checked_plan(wanted, BOX)
    assert [step.name for step in plan.steps] == ["before", "kind", "begun", "apply", "done"]
    plan.steps[0].run(Working())
    assert taken == [([f"tank/photos@{name}"], {"larder:note": "before setting access to its files"})]
    assert commands.ran == []
    assert "rights that they had" in plan.undo
    assert not wanted.probe("before", BOX)
    there = Snapshot(f"tank/photos@{name}", 5, 5, datetime(2026, 11, 21, tzinfo=UTC))
    assert wanted.probe("before", replace(BOX, snapshots=(there,)))
    assert "Nothing was changed" in wanted.recovery_hint("before", BOX)
    assert (wanted.snapshot_datasets(), asked().snapshot_datasets()) == (("tank/photos",), ())
    for other in ("x", "larder-daily-2026.11.21-12.00.00", f"{name}\n"):
        with pytest.raises(Refused):
            asked(before=other)


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"dataset": "tank/gone"}, "folder-missing"),
        ({"people": {"eve": "read"}}, "user-missing"),
        ({"groups": {"club": "read"}}, "group-missing"),
    ],
)
def test_set_access_refuses_missing_folder_user_or_group(changes, code):
    with expect_refusal(code):
        checked_plan(asked(**changes), BOX)


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"mounted": False}, "dataset-not-mounted"),
        ({"key_status": "unavailable"}, "dataset-locked"),
        ({"readonly": True}, "dataset-read-only"),
        ({"mountpoint": "/etc"}, "mountpoint-in-system"),
        ({"mountpoint": "legacy"}, "mountpoint-in-system"),
    ],
)
def test_set_access_refuses_unavailable_folder(changes, code):
    with expect_refusal(code):
        checked_plan(asked(), replace(BOX, datasets=(replace(PHOTOS, **changes),)))


@pytest.mark.parametrize(
    "fields",
    [
        {"people": {"-x": "read"}},
        {"people": {"a\nb": "read"}},
        {"people": {"root": "change"}},
        {"groups": {"sudo": "change"}},
        {"people": {"anna": "own"}},
        {"everybody": ""},
        {"dataset": "-o"},
        {"people": {f"a{at}": "read" for at in range(101)}},
    ],
)
def test_agent_refuses_invalid_access(fields):
    text = json.dumps({"kind": "set-access", "dataset": "tank/photos", **fields})
    with pytest.raises(Refused):
        decode_operation(text)


def test_user_created_again_changes_digest():
    again = replace(BOX, accounts=(replace(ANNA, uid=10003), BEN))
    assert asked().plan(BOX).digest() != asked().plan(again).digest()


def test_access_blocked_by_parent_is_warned_about():
    around = replace(
        BOX.datasets[0],
        access=encode_note(
            AccessNote(guid=BOX.datasets[0].guid, people={"anna": "none"}, everybody="read", done=True).with_numbers(
                BOX
            )
        ),
        access_source="local",
    )
    plan = checked_plan(asked(everybody="read"), replace(BOX, datasets=(around, PHOTOS)))
    assert plan.warnings == ("Anna may not enter tank, which contains it, and so cannot reach it.",)


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("", "none"),
        ("{", "local"),
        ('{"guid": 1}', "local"),
        ("[" * 5000, "local"),
        ('{"guid": GUID, "people": {"root": "change"}}', "local"),
        ('{"guid": GUID, "people": {"a\\nb": "change"}}', "local"),
        ('{"guid": GUID}', "received"),
        ('{"guid": GUID}', "inherited"),
    ],
)
def test_invalid_note_is_ignored(text, source):
    came = replace(PHOTOS, access=text.replace("GUID", str(PHOTOS.guid)), access_source=source)
    assert read_note(came) is valid_note(came, BOX) is foreign_note(came, BOX) is None


# Disks that moved to another box: names are those of that one, and files carry its numbers.


def noted_with(said: AccessNote) -> Dataset:
    return replace(PHOTOS, access=encode_note(said), access_source="local")


HERE = AccessNote(guid=PHOTOS.guid, people={"anna": "change"}, groups={"family": "read"}, done=True)


def test_note_is_valid_on_own_box():
    assert valid_note(noted_with(HERE.with_numbers(BOX)), BOX) == HERE.with_numbers(BOX)
    assert foreign_note(noted_with(HERE.with_numbers(BOX)), BOX) is None


def test_note_is_invalid_where_users_have_other_numbers():
    """Also where both boxes have the same mark, as two copies of one system disk do."""
    there = replace(BOX, accounts=(replace(ANNA, uid=10002), replace(BEN, uid=10001)))
    moved = noted_with(HERE.with_numbers(BOX))
    assert valid_note(moved, there) is None
    assert foreign_note(moved, there) == HERE.with_numbers(BOX)
    assert resolve_numbers(HERE.with_numbers(BOX), there).people == {"ben": "change"}


def test_note_is_invalid_where_another_user_has_number():
    there = replace(BOX, accounts=(replace(BEN, uid=10001),))
    assert valid_note(noted_with(HERE.with_numbers(BOX)), there) is None


def test_note_stays_valid_where_user_is_gone():
    assert valid_note(noted_with(HERE.with_numbers(BOX)), replace(BOX, accounts=(BEN,))) is not None


def test_note_is_invalid_for_user_created_again():
    there = replace(BOX, accounts=(replace(ANNA, uid=10005), BEN))
    assert valid_note(noted_with(HERE.with_numbers(BOX)), there) is None


def test_note_is_invalid_where_groups_have_other_numbers(monkeypatch):
    signed = HERE.with_numbers(BOX)
    assert valid_note(noted_with(signed), replace(BOX, groups=(replace(FAMILY, gid=20005),))) is None
    monkeypatch.setattr(access_note, "people_number", lambda: 987)
    assert valid_note(noted_with(signed), BOX) is None
    assert resolve_numbers(msgspec.structs.replace(signed, everybody="read"), BOX).everybody == "none"


def test_note_is_invalid_on_another_box_with_same_numbers(monkeypatch):
    """Other users may have the numbers of the files' owners there, and owners can always change their files."""
    signed = HERE.with_numbers(BOX)
    monkeypatch.setattr(key_store, "box_mark", lambda: "another")
    assert valid_note(noted_with(signed), BOX) is None


def test_note_without_numbers_is_invalid():
    assert valid_note(noted_with(HERE), BOX) is None
    assert foreign_note(noted_with(HERE), BOX) == HERE


def test_longest_note_fits_into_property():
    people: dict[str, Level] = {f"a{number:030}": "change" for number in range(access_note.MOST)}
    facts = box(accounts=tuple(Account(name, 10000 + number) for number, name in enumerate(people)))
    assert len(encode_note(AccessNote(guid=2**64 - 1, people=people, done=True).with_numbers(facts))) < 8192


def test_group_of_users_has_same_number_on_every_box():
    lines = Path("deploy/systemd/larder.sysusers").read_text().splitlines()
    assert f"g {accounts.PEOPLE} {accounts.PEOPLE_GID} - -" in lines
    assert accounts.PEOPLE_GID not in {*accounts.UIDS, *accounts.GIDS}


def test_only_last_note_says_that_access_was_applied():
    def after(done: bool):
        said = replace(
            PHOTOS,
            access=encode_note(asked().make_note(PHOTOS.guid, done=done).with_numbers(BOX)),
            access_source="local",
        )
        facts = replace(BOX, datasets=(said,))
        return [asked().probe(step, facts) for step in ("kind", "begun", "apply", "done")]

    assert after(False) == [True, True, False, False]
    assert after(True) == [True] * 4
    assert not asked().probe("begun", BOX)
