"""The record of a box: what it says, that nothing hostile passes, and that a write that is cut
off leaves the former one."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Collection
from pathlib import Path
from typing import Any

import msgspec
import pytest

from appliance import command
from appliance.datasets.encryption import key_store
from appliance.errors import Failed, Refused
from appliance.facts import box_record
from appliance.facts.box import Facts
from appliance.facts.box_record import BoxMark, BoxMarks, BoxRecord, parse_marks, parse_record
from appliance.facts.datasets import Property
from appliance.facts.sharing import Account, Group
from appliance.recovery import box_secrets, records, recovery_key, refresh, seal
from appliance.system import accounts
from tests.reasons import codes, expect_refusal
from tests.unit.made import box, dataset, shared
from tests.unit.pools.test_create import Working
from tests.unit.recovery.test_phrase import PHRASE, RECIPIENT, needs_age

pytestmark = pytest.mark.usefixtures("folders")

BOX, NEW = "0123456789abcdef", "fedcba9876543210"
ANNA, BERTA = Account("anna", 10003, "Anna"), Account("berta", 10005, disabled=True)
SHARED = shared()
GOOD: dict[str, Any] = {
    "version": 1,
    "box": BOX,
    "host": "attic",
    "written": 1_790_000_000,
    "users": [{"name": "anna", "uid": 10003, "display": "Anna"}],
    "groups": [{"name": "family", "gid": 20001, "members": ["anna"]}],
    "next_uid": 10007,
    "next_gid": 20002,
    "samba_sid": "S-1-5-21-1-2-3",
    "pools": {"5": "tank"},
    "folders": [{"name": "tank/photos", "guid": 6, "settings": {"larder:share": "{}"}}],
}


def record(**changes: Any) -> BoxRecord:
    return parse_record(json.dumps(GOOD | changes).encode())


def facts() -> Facts:
    return box(
        datasets=(dataset("tank"), SHARED, dataset("tank/copy", copy_of='{"guid":7,"raw":false}')),
        accounts=(ANNA, BERTA),
        groups=(Group("family", 20001, ("anna",)),),
    )


# --- what a record says -----------------------------------------------------------------------------------------------
def test_record_is_read_as_it_was_written():
    assert parse_record(record().text) == record()
    assert record().text == parse_record(record().text).text  # canonical: the same box has the same text


@pytest.mark.parametrize(
    "spoiled",
    [
        {"box": "../../etc"},
        {"host": "attic\nroot"},
        {"host": ""},
        {"written": 0},
        {"written": 2**40},
        {"users": [{"name": "root", "uid": 10003}]},
        {"users": [{"name": "anna", "uid": 0}]},
        {"users": [{"name": "anna", "uid": 1000}]},
        {"users": [{"name": "anna", "uid": 10003}, {"name": "berta", "uid": 10003}]},
        {"users": [{"name": "anna", "uid": 10003}, {"name": "anna", "uid": 10004}]},
        {"users": [{"name": "family", "uid": 10003}]},
        {"users": [{"name": "-anna", "uid": 10003}]},
        {"users": [{"name": "anna", "uid": 10003, "display": "A:0:0:root"}]},
        {"groups": [{"name": "sudo", "gid": 20001}]},
        {"groups": [{"name": "family", "gid": 27}]},
        {"groups": [{"name": "family", "gid": 20001, "members": ["root"]}]},
        {"folders": [{"name": "tank/../x", "guid": 6}]},
        {"folders": [{"name": "tank/x", "guid": 0}]},
        {"folders": [{"name": "tank/x", "guid": 6, "settings": {"mountpoint": "/etc"}}]},
        {"next_uid": 0},
        {"next_uid": 30000},
        {"samba_sid": "S-1-5-32-544"},
        {"samba_sid": "S-1-5-21-1-2-3 -d 10"},
        {"surprise": 1},
        {"version": 0},
        {"version": "1"},
    ],
)
def test_hostile_record_is_refused(spoiled):
    with pytest.raises(Refused):
        record(**spoiled)


@pytest.mark.parametrize(
    "text", [b"", b"null", b"[" * 100_000, b"\xff", b"{}", b'{"version":1}', json.dumps(GOOD).encode()[:-9]]
)
def test_damaged_record_is_refused(text):
    with expect_refusal("record-malformed"):
        parse_record(text)


def test_record_of_a_newer_larder_is_refused_with_the_way_out():
    with expect_refusal("record-too-new"):
        record(version=2, something_new=True)


def test_marks_of_boxes_are_bounded_and_survive_nonsense():
    marks = BoxMarks()
    for number in range(40):
        marks = marks.with_mark(BoxMark(id=f"{number:016x}", host="attic", at=1_790_000_000 + number))
    assert len(marks.boxes) == box_record.MOST_BOXES
    assert parse_marks(marks.text) == marks
    assert marks.find(f"{39:016x}") and not marks.find(f"{3:016x}")
    for text in ("", "x", "[" * 9000, '{"boxes":[{"id":"../x","host":"a","at":5}]}', '{"boxes":5}'):
        assert parse_marks(text) == BoxMarks()


def test_record_says_what_a_copy_does_not_carry(monkeypatch):
    monkeypatch.setattr(box_secrets, "read_sid", lambda: "S-1-5-21-1-2-3")
    accounts.note_given("account", 10040)
    found = refresh.read_box(facts(), sealed=True)
    assert [(one.name, one.uid, one.disabled) for one in found.users] == [
        ("anna", 10003, False),
        ("berta", 10005, True),
    ]
    assert (found.next_uid, found.next_gid) == (10041, 20002)  # a number that was given once is never given again
    assert [one.name for one in found.folders] == ["tank", "tank/photos"]  # no copy
    assert [one.settings for one in found.folders if one.guid == SHARED.guid] == [{"larder:share": SHARED.share}]
    assert parse_record(found.text) == found


# --- where it lies ----------------------------------------------------------------------------------------------------
def test_record_is_written_and_read_back(pools, commands):
    records.write_record("safe", record(), b"sealed")
    assert records.read_record("safe", BOX) == record()
    assert records.read_sealed("safe", BOX) == b"sealed"
    folder = pools / "safe/.larder-box" / BOX
    assert sorted(one.name for one in folder.iterdir()) == ["record.json", "secrets.age"]
    assert all(one.stat().st_mode & 0o077 == 0 for one in folder.iterdir())


def test_record_without_a_phrase_does_not_take_the_place_of_sealed_secrets(pools, commands):
    records.write_record("safe", record(sealed=True), b"sealed")
    with pytest.raises(Failed, match="no longer has"):
        records.write_record("safe", record(host="cellar"), b"")
    assert records.read_record("safe", BOX) == record(sealed=True)
    assert records.read_sealed("safe", BOX) == b"sealed"
    records.write_record("safe", record(host="cellar", sealed=True), b"for a new phrase")
    assert records.read_sealed("safe", BOX) == b"for a new phrase"


@pytest.mark.parametrize("at", range(4))
def test_write_that_is_cut_off_leaves_a_whole_record(pools, commands, monkeypatch, at):
    records.write_record("safe", record(), b"before")
    ended, real = iter([True] * at), os.fsync

    def fsync(handle: int) -> None:
        if next(ended, None) is None:
            raise OSError(5, "Input/output error")
        real(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(Failed):
        records.write_record("safe", record(host="cellar"), b"after")
    assert (pools / "safe/.larder-box" / BOX / "record.json").read_bytes() in {
        record().text,
        record(host="cellar").text,
    }
    assert records.read_record("safe", BOX).host == ("attic" if at < 2 else "cellar")
    assert records.read_sealed("safe", BOX) in {b"before", b"after"}


def test_record_behind_a_link_a_pipe_or_too_long_is_refused(pools, tmp_path):
    folder = pools / "safe/.larder-box" / BOX
    folder.mkdir(parents=True)
    with expect_refusal("record-missing"):
        records.read_record("safe", BOX)
    (folder / "record.json").symlink_to("/etc/passwd")
    with expect_refusal("record-missing"):
        records.read_record("safe", BOX)
    (folder / "record.json").unlink()
    os.mkfifo(folder / "record.json")
    with expect_refusal("record-malformed"):
        records.read_record("safe", BOX)
    (folder / "record.json").unlink()
    with (folder / "record.json").open("wb") as file:
        file.truncate(box_record.LARGEST + 1)
    with expect_refusal("record-malformed"):
        records.read_record("safe", BOX)
    shutil.rmtree(folder)
    folder.symlink_to(tmp_path)
    with expect_refusal("record-missing"):
        records.read_record("safe", BOX)


def test_record_in_another_boxs_folder_is_refused(pools):
    folder = pools / "safe/.larder-box" / NEW
    folder.mkdir(parents=True)
    (folder / "record.json").write_bytes(record().text)
    with expect_refusal("record-malformed"):
        records.read_record("safe", NEW)


# --- with secrets -----------------------------------------------------------------------------------------------------
SMBPASSWD = f"anna:10003:{'X' * 32}:{'0123456789ABCDEF' * 2}:[U          ]:LCT-6A1B2C3D:\nroot:0:x:short:[U]:\n"
VERBOSE = "Unix username:        anna\nUser SID:             S-1-5-21-1-2-3-1005\n"
SHADOW = (
    "root:$y$j9T$abcdefghijklmnop$x:1::::::\nanna:!$y$j9T$0123456789abcdef/x$yyyyyyyyyyyyyyyyyyyy:20000:0:99999:7:::\n"
)


def made_up_samba(monkeypatch, tmp_path) -> None:
    """Made up: output of pdbedit and net in the form that their manuals give."""
    shadow = tmp_path / "shadow"
    shadow.write_text(SHADOW)
    monkeypatch.setattr(box_secrets, "SHADOW", shadow)
    monkeypatch.setattr(box_secrets, "read_samba", lambda: box_secrets.parse_samba(SMBPASSWD))
    monkeypatch.setattr(box_secrets, "read_rids", lambda: box_secrets.parse_rids(VERBOSE))
    monkeypatch.setattr(box_secrets, "read_sid", lambda: "S-1-5-21-1-2-3")


def test_secrets_are_those_of_the_users_of_shares_alone(monkeypatch, tmp_path):
    made_up_samba(monkeypatch, tmp_path)
    found = box_secrets.read_box_secrets(BOX, ["anna", "berta"])
    assert [(one.name, one.nt, one.rid) for one in found.users] == [("anna", "0123456789ABCDEF" * 2, 1005)]
    assert found.users[0].system.startswith("$y$")
    assert b"root" not in found.text
    assert box_secrets.parse_secrets(found.text) == found


def test_samba_that_fails_is_not_a_box_without_passwords(monkeypatch):
    def run(argv: list[str], *, accept: Collection[int] = (0,), **_more: Any) -> command.Result:
        result = command.Result(tuple(argv), 1, "", "tdb(/var/lib/samba/private/passdb.tdb): tdb_oob len 1", 0.0)
        if result.status not in accept:
            raise command.CommandFailed(result)
        return result

    monkeypatch.setattr(command, "run", run)
    with pytest.raises(Failed, match="pdbedit"):
        box_secrets.read_samba()
    with pytest.raises(Failed, match="pdbedit"):
        box_secrets.read_rids()
    assert box_secrets.read_sid() == ""  # what Samba says before it has made one


def test_box_without_samba_has_no_passwords_of_it(commands):
    def missing(argv: list[str]) -> None:
        raise command.CommandMissing(f"{argv[0]} is not installed on this system")

    commands.on_run = missing
    assert box_secrets.read_samba() == {} and box_secrets.read_rids() == {}


def test_stored_keys_that_cannot_be_read_are_not_none(tmp_path, monkeypatch):
    keys = tmp_path / "keys"
    assert box_secrets.read_files(keys) == {}  # no key was ever stored
    keys.mkdir()
    (keys / "7").write_text("a passphrase")
    (keys / ".8.new").write_text("half")
    assert box_secrets.read_files(keys) == {"7": "a passphrase"}
    (keys / "7").write_bytes(b"\xff\xfe")
    with pytest.raises(Failed, match="keys"):
        box_secrets.read_files(keys)
    with pytest.raises(Failed, match="7"):
        box_secrets.read_files(keys / "7")  # no folder
    monkeypatch.setattr(box_secrets, "SHADOW", keys)
    with pytest.raises(Failed, match="keys"):
        box_secrets.read_shadow()


@pytest.mark.parametrize(
    "user",
    [
        {"name": "root"},
        {"name": "anna", "nt": "short"},
        {"name": "anna", "nt": "0" * 31 + "\n"},
        {"name": "anna", "flags": "[U]:\nroot"},
        {"name": "anna", "system": "$6$x\nroot:$6$y"},
        {"name": "anna", "rid": -1},
    ],
)
def test_hostile_secrets_are_refused_without_saying_what_they_are(user):
    text = json.dumps({"version": 1, "box": BOX, "users": [user]}).encode()
    with expect_refusal("record-malformed"):
        box_secrets.parse_secrets(text)


def made_up_pools(monkeypatch) -> list[str]:
    """Pools that take a record. Returns the marks that are set on them."""
    marked: list[str] = []
    monkeypatch.setattr(key_store, "box_mark", lambda: BOX)
    monkeypatch.setattr(records, "ensure_dataset", lambda _pool: None)
    monkeypatch.setattr(records, "read_marks", lambda _pool: BoxMarks())
    monkeypatch.setattr(records, "set_mark", lambda pool, _marks, mark: marked.append(f"{pool} {mark.id}"))
    return marked


def test_lost_or_damaged_phrase_leaves_the_sealed_secrets_of_every_pool(pools, folders, monkeypatch, tmp_path):
    made_up_samba(monkeypatch, tmp_path)
    made_up_pools(monkeypatch)
    monkeypatch.setattr(seal, "seal", lambda _text, _recipients: b"sealed")
    recovery_key.add_key(RECIPIENT)
    refresh.write_box(["tank", "safe"], facts())
    recovery_key.keys_file().write_bytes(b'{"keys":[{"rec')
    with pytest.raises(Failed, match="recovery phrase"):
        refresh.write_box(["tank", "safe"], facts())
    recovery_key.keys_file().unlink()
    with pytest.raises(Failed, match=r"tank.*safe"):
        refresh.write_box(["tank", "safe"], facts())
    for pool in ("tank", "safe"):
        assert records.read_record(pool, BOX).sealed and records.read_sealed(pool, BOX) == b"sealed"


def test_record_without_a_phrase_needs_no_secrets(pools, monkeypatch, tmp_path):
    made_up_samba(monkeypatch, tmp_path)
    made_up_pools(monkeypatch)

    def fail() -> None:
        raise Failed("pdbedit ended with status 1")

    monkeypatch.setattr(box_secrets, "read_samba", fail)
    refresh.write_box(["safe"], facts())
    assert not records.read_record("safe", BOX).sealed
    recovery_key.add_key(RECIPIENT)
    with pytest.raises(Failed, match="pdbedit"):
        refresh.write_box(["safe"], facts())


def test_damaged_phrase_can_be_made_anew(folders):
    recovery_key.add_key("first")
    recovery_key.keys_file().write_bytes(b"\0\0\0")
    assert recovery_key.add_key("second").made
    assert recovery_key.load_keys().recipients == ["second"]


def test_pool_that_takes_no_record_leaves_the_others_theirs(pools, monkeypatch, tmp_path):
    made_up_samba(monkeypatch, tmp_path)
    marked, real = made_up_pools(monkeypatch), records.write_record

    def write(pool: str, *given: Any) -> bool:
        if pool == "tank":
            raise Failed("The record of this box was not written to tank", "No space left on device")
        return real(pool, *given)

    monkeypatch.setattr(records, "write_record", write)
    with pytest.raises(Failed, match="not written to tank: No space left on device"):
        refresh.write_box(["tank", "safe"], facts())
    assert records.read_record("safe", BOX).host and marked == [f"safe {BOX}"]


@needs_age
def test_without_a_phrase_there_is_a_record_and_with_one_its_secrets_are_sealed(pools, monkeypatch, tmp_path):
    made_up_samba(monkeypatch, tmp_path)
    marked = made_up_pools(monkeypatch)
    refresh.write_box(["tank", "safe"], facts())
    for pool in ("tank", "safe"):
        assert not records.read_record(pool, BOX).sealed
        with expect_refusal("record-missing"):
            records.read_sealed(pool, BOX)
    recovery_key.add_key(RECIPIENT)
    refresh.write_box(["safe"], facts())
    assert records.read_record("safe", BOX).sealed
    opened = box_secrets.parse_secrets(seal.open_sealed(records.read_sealed("safe", BOX), PHRASE))
    assert [one.name for one in opened.users] == ["anna"]
    assert marked == [f"tank {BOX}", f"safe {BOX}", f"safe {BOX}"]
    held = b"".join(file.read_bytes() for file in pools.rglob("*") if file.is_file())
    assert b"0123456789ABCDEF0123" not in held and b"$y$j9T" not in held


def test_mark_of_each_pool_names_the_box(commands, pools, monkeypatch):
    records.set_mark("safe", BoxMarks(), BoxMark(id=BOX, host="attic", at=5))
    assert commands.ran == [
        ["zfs", "set", 'larder:box={"boxes":[{"id":"0123456789abcdef","host":"attic","at":5}]}', "safe"]
    ]


# --- a box that was replaced ------------------------------------------------------------------------------------------
def with_mark(**changes: Any) -> Facts:
    mark = msgspec.structs.replace(BoxMark(id=BOX, host="attic", at=5), **changes)
    noted = {"larder:box": Property(BoxMarks(boxes=(mark,)).text, "local")}
    return box(datasets=(dataset("safe", properties=noted), dataset("tank")))


def test_box_that_was_replaced_makes_no_backup_with_that_pool(monkeypatch):
    monkeypatch.setattr(key_store, "box_mark", lambda: BOX)
    assert refresh.replaced_reasons(("tank", "safe"), with_mark()) == []
    assert codes(refresh.replaced_reasons(("tank", "safe"), with_mark(by="attic2"))) == ["box-replaced"]
    assert refresh.replaced_reasons(("tank", "safe"), with_mark(id=NEW, by="attic2")) == []
    assert refresh.is_written(("safe",), with_mark()) and not refresh.is_written(("tank", "safe"), with_mark())


def test_record_that_cannot_be_written_is_said_and_keeps_no_folder_from_being_copied(monkeypatch):
    def fail(*_arguments: object) -> None:
        raise Failed("safe is full")

    monkeypatch.setattr(refresh, "write_box", fail)
    failures: list[str] = []
    refresh.record_step(("tank", "safe", "tank"), facts(), failures).run(Working())
    assert len(failures) == 1 and "safe is full" in failures[0]


# --- the phrase's public half -----------------------------------------------------------------------------------------
def test_new_phrase_leaves_the_confirmed_one_good_until_it_is_typed_back():
    assert recovery_key.state_of(recovery_key.read_keys()).made == 0
    recovery_key.add_key("first")
    assert recovery_key.read_keys().recipients == ["first"]
    recovery_key.add_key("second")
    assert recovery_key.read_keys().recipients == ["second"]  # the first was on no paper
    with expect_refusal("phrase-of-other"):
        recovery_key.confirm_key("first")
    assert recovery_key.confirm_key("second").confirmed
    recovery_key.add_key("third")
    assert recovery_key.read_keys().recipients == ["second", "third"]
    assert recovery_key.state_of(recovery_key.read_keys()).earlier
    recovery_key.confirm_key("third")
    assert recovery_key.read_keys().recipients == ["third"]
    assert recovery_key.read_state() == recovery_key.state_of(recovery_key.read_keys())


def test_phrase_that_was_never_made_is_not_confirmed():
    with expect_refusal("phrase-not-made"):
        recovery_key.confirm_key(RECIPIENT)


def test_the_phrase_is_in_no_file(folders):
    recovery_key.add_key(RECIPIENT)
    assert all(PHRASE[:9] not in file.read_text() for file in Path(folders).rglob("*") if file.is_file())
