"""Settings in a record: what is read of them, that nothing hostile passes, and that no former
ones are lost by themselves."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from appliance.errors import Failed, Refused
from appliance.facts.box import Facts
from appliance.facts.box_record import BoxMark, BoxMarks
from appliance.facts.datasets import Property
from appliance.operation import checked_plan
from appliance.recovery import box_settings, kept_settings, mail_password, records, refresh
from appliance.recovery.box_secrets import BoxSecrets, parse_secrets
from appliance.recovery.box_settings import GROUPS, BoxSettings, SettingGroups, read_settings
from appliance.recovery.settings_entries import AlertLevel, Notifications
from appliance.recovery.write_record import WriteRecord
from appliance.system import paths
from appliance.zfs import kstat
from tests.reasons import codes, expect_refusal
from tests.unit.made import box, dataset, recorded_pool
from tests.unit.pools.test_create import Working
from tests.unit.recovery.test_records import BOX, record

pytestmark = pytest.mark.usefixtures("folders")


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder of the pages, of the test alone."""
    monkeypatch.setattr(paths, "STATE", tmp_path / "pages")
    paths.STATE.mkdir()


GOOD: dict[str, list[Any]] = {
    "box": [{"language": "nl"}],
    "notifications": [
        {"host": "mail.example.org", "user": "box", "critical": ["anna@example.org"], "quiet_from": 22, "quiet_to": 7}
    ],
    "levels": [{"kind": "pool.full", "severity": "critical"}],
    "accepted": [{"disk": "ata-WD_1", "count": "reallocated", "value": 8, "by": "admin"}],
    "disks": [{"disk": "ata-WD_1", "tested": False, "sleep": 20}],
    "self_tests": [{"short": "week", "long": "quarter", "first": 1, "last": 6}],
    "care": [{"pool": "5", "kind": "scrub", "every": "week", "first": 2, "last": 5, "inside": True}],
    "price": [{"per_tb": "19.90", "currency": "EUR"}],
    "growth": [
        {
            "pool_guid": "5",
            "pool": "tank",
            "size": 8 * 10**12,
            "targets": [["7", "bay 1"]],
            "begun": 5,
            "moved": 6,
            "replaced": [["7", "9", "bay 2", 7]],
        }
    ],
    "bays": [{"port": "pci-0000:00:1f.2-ata-1", "position": 3, "label": "top"}],
    "pages": [{"user": "admin", "units": "TiB", "language": "nl", "show_commands": True}],
    "snapshots": [["6", "18446744073709551615", "hourly,daily", 1_790_000_000, None]],
}
MADE = 1_790_000_000_000_000


def text(groups: object = GOOD, **more: object) -> bytes:
    return json.dumps({"version": 1, "made": MADE, "groups": groups, **more}).encode()


def settings(made: int = MADE, **groups: Any) -> BoxSettings:
    return BoxSettings(made=made, groups=SettingGroups(**groups))


LOUD = (AlertLevel(kind="pool.full", severity="critical"),)
QUIET = (AlertLevel(kind="pool.full", severity="notice"),)


# --- reading ----------------------------------------------------------------------------------------------------------
def test_every_group_is_read_as_it_was_written():
    found = read_settings(text())
    assert found.left_out == ()
    assert set(GOOD) == set(GROUPS) == set(SettingGroups.__struct_fields__)
    assert all(len(getattr(found.settings.groups, group)) == 1 for group in GROUPS)
    assert read_settings(found.settings.text) == found
    assert msgspec.json.decode(found.settings.text, type=BoxSettings) == found.settings


@pytest.mark.parametrize(
    ("spoiled", "code"),
    [
        (b"", "settings-malformed"),
        (b"[]", "settings-malformed"),
        (b"\xff", "settings-malformed"),
        (b"[" * 100_000, "settings-malformed"),
        (text(version="1"), "settings-malformed"),
        (text(made=1.5), "settings-malformed"),
        (text(groups=[]), "settings-malformed"),
        (text(former=["x"]), "settings-malformed"),
        (text(version=0), "setting-out-of-range"),
        (text(made=0), "setting-out-of-range"),
        (text(made=2**60), "setting-out-of-range"),
        (text(written=-1), "setting-out-of-range"),
        (text(former=list(range(1, 50))), "setting-out-of-range"),
        (text(version=2), "record-too-new"),
        (text() + b" " * box_settings.LARGEST, "settings-too-large"),
    ],
)
def test_text_that_is_no_settings_is_refused_with_a_reason(spoiled, code):
    with expect_refusal(code):
        read_settings(spoiled)


BAD: list[tuple[str, Any]] = [
    ("notifications", {"host": "-oProxyCommand=x"}),
    ("notifications", {"host": "a b"}),
    ("notifications", {"port": 0}),
    ("notifications", {"port": 65536}),
    ("notifications", {"port": "587"}),
    ("notifications", {"security": "ssl"}),
    ("notifications", {"critical": ["anna"]}),
    ("notifications", {"critical": ["anna@example.org\nBcc: eve@example.org"]}),
    ("notifications", {"critical": ["anna@example.org"] * 151}),
    ("notifications", {"sender": "a\r\nb"}),
    ("notifications", {"user": "a" * 256}),
    ("notifications", {"quiet_from": 24}),
    ("notifications", {"digest_hour": -1}),
    ("notifications", {"authority": "-----BEGIN PRIVATE KEY-----"}),
    ("notifications", {"password": "canary"}),
    ("notifications", {"webhook": "https://example.org/token"}),
    ("levels", {"kind": "pool.full", "severity": "none"}),
    ("levels", {"kind": "Pool Full", "severity": "notice"}),
    ("accepted", {"disk": "", "count": "reallocated", "value": 1}),
    ("accepted", {"disk": "a", "count": "reallocated", "value": -1}),
    ("accepted", {"disk": "a", "count": "reallocated", "value": 2**63}),
    ("disks", {"disk": "a", "sleep": 100_000}),
    ("disks", {"disk": "a\n"}),
    ("self_tests", {"short": "day"}),
    ("self_tests", {"last": 24}),
    ("care", {"pool": "-1", "kind": "scrub", "every": "week", "first": 1, "last": 2}),
    ("care", {"pool": "5", "kind": "wipe", "every": "week", "first": 1, "last": 2}),
    ("price", {"per_tb": "1e9", "currency": "EUR"}),
    ("price", {"per_tb": "-5", "currency": "EUR"}),
    ("growth", {**GOOD["growth"][0], "targets": []}),
    ("growth", {**GOOD["growth"][0], "done": 2}),
    ("growth", {**GOOD["growth"][0], "replaced": [["7", "<b>", "bay 2", 7]]}),
    ("growth", {**GOOD["growth"][0], "replaced": [["7", "9", "bay\n2", 7]]}),
    ("growth", {**GOOD["growth"][0], "replaced": [["7", "9", "bay 2", 2**40]]}),
    ("growth", {**GOOD["growth"][0], "replaced": [["7", "9", "bay 2", 7]] * 1001}),
    ("growth", {**GOOD["growth"][0], "begun": 2**40}),
    ("bays", {"port": "x", "position": 1, "label": "a" * 21}),
    ("pages", {"user": "admin", "units": "MB"}),
    ("pages", {"user": "admin", "language": "../nl"}),
    ("box", {"language": "../nl"}),
    ("box", {}),
    ("snapshots", ["6", "7", "yearly"]),
    ("snapshots", ["6", "7", "daily,daily"]),
    ("snapshots", ["6", "7", ""]),
    ("snapshots", ["06", "7", "daily"]),
    ("snapshots", ["6", "7", "daily", 2**40]),
    ("snapshots", ["6", "7", "daily", None, None, None]),
    ("levels", 7),
    ("levels", None),
]


@pytest.mark.parametrize(("group", "entry"), BAD, ids=[f"{at}-{group}" for at, (group, _entry) in enumerate(BAD)])
def test_bad_entry_is_left_out_with_its_reason_and_loses_no_other(group, entry):
    entries = [entry] if GROUPS[group][1] == 1 else [entry, *GOOD[group]]
    found = read_settings(text(GOOD | {group: entries}))
    (left,) = found.left_out
    assert (left.group, left.count) == (group, 1) and left.reason.text
    others = {name: len(getattr(found.settings.groups, name)) for name in GROUPS if name != group}
    assert set(others.values()) == {1}
    assert len(getattr(found.settings.groups, group)) == len(entries) - 1
    # The agent takes all or nothing of what the pages hand over.
    with pytest.raises((Refused, msgspec.ValidationError)):
        msgspec.json.decode(text(GOOD | {group: entries}), type=BoxSettings)


def test_group_of_another_shape_unknown_or_with_something_twice_is_left_out():
    groups = GOOD | {"bays": {"a": 1}, "later": [1, 2], "levels": GOOD["levels"] * 3}
    found = read_settings(text(groups))
    assert {(one.group, one.count, one.code) for one in found.left_out} == {
        ("bays", 1, "setting-malformed"),
        ("later", 1, "kept-setting-unknown"),
        ("levels", 2, "setting-out-of-range"),
    }
    assert found.settings.groups.bays == () and len(found.settings.groups.levels) == 1


def test_no_more_entries_are_read_than_a_group_may_have():
    many = [{"disk": f"ata-{number}", "sleep": 5} for number in range(GROUPS["disks"][1] + 3)]
    found = read_settings(text({"disks": many}))
    assert len(found.settings.groups.disks) == GROUPS["disks"][1]
    assert found.left_out[0].count == 3


# --- the agent's copy -------------------------------------------------------------------------------------------------
def test_settings_are_kept_and_their_date_is_that_of_the_last_change(monkeypatch):
    monkeypatch.setattr(time, "time", lambda: 100.0)
    assert kept_settings.keep_settings(settings(levels=LOUD)).written == 100
    monkeypatch.setattr(time, "time", lambda: 200.0)
    same = kept_settings.keep_settings(settings(levels=LOUD))
    assert (same.kept, same.written) == (True, 100)
    assert kept_settings.keep_settings(settings(levels=QUIET)).written == 200
    assert kept_settings.settings_file().stat().st_mode & 0o777 == 0o600


def test_settings_of_a_new_database_wait_until_somebody_decides():
    kept_settings.keep_settings(settings(levels=LOUD))
    assert not kept_settings.keep_settings(settings(MADE + 1)).kept
    assert not kept_settings.keep_settings(settings(MADE + 1), former=MADE + 7).kept
    assert (known := kept_settings.read_kept()) and known.groups.levels == LOUD
    assert kept_settings.keep_settings(settings(MADE + 1), former=MADE).kept
    assert kept_settings.keep_settings(settings(MADE + 1, levels=QUIET)).kept
    assert (known := kept_settings.read_kept()) and known.former == (MADE,)
    assert not kept_settings.keep_settings(settings(MADE)).kept  # an old copy of the database does not undo it


def test_damaged_copy_of_the_agent_is_none():
    paths.AGENT_STATE.mkdir(exist_ok=True)
    kept_settings.settings_file().write_bytes(b"{")
    assert kept_settings.read_kept() is None
    assert kept_settings.keep_settings(settings()).kept


# --- on the pool ------------------------------------------------------------------------------------------------------
def stored(pools, name: str = "settings.json"):
    return pools / "tank/.larder-box" / BOX / name


def test_settings_lie_beside_the_record_and_are_read_again(pools, commands):
    assert records.write_record("tank", record(), b"", settings(levels=LOUD))
    assert records.read_settings("tank", BOX).settings.groups.levels == LOUD
    assert stored(pools).stat().st_mode & 0o777 == 0o600
    records.write_record("tank", record(), b"")  # without settings those that are there stay
    assert records.read_settings("tank", BOX).settings.groups.levels == LOUD


def test_settings_of_a_former_database_on_the_pool_stay_until_somebody_decides(pools, commands):
    records.write_record("tank", record(), b"", settings(levels=LOUD))
    assert not records.write_record("tank", record(host="other"), b"", settings(MADE + 1))
    assert records.read_settings("tank", BOX).settings.groups.levels == LOUD
    assert records.read_record("tank", BOX).host == "other"  # the rest of the record is new
    decided = msgspec.structs.replace(settings(MADE + 1, levels=QUIET), former=(MADE,))
    assert records.write_record("tank", record(), b"", decided)
    assert records.read_settings("tank", BOX).settings.groups.levels == QUIET


def test_damaged_settings_on_the_pool_are_replaced_and_those_of_a_newer_larder_are_not(pools, commands):
    records.write_record("tank", record(), b"", settings())
    stored(pools).write_bytes(b"nonsense")
    assert records.write_record("tank", record(), b"", settings(levels=LOUD))
    newer = b'{"version":2}'
    stored(pools).write_bytes(newer)
    assert not records.write_record("tank", record(), b"", settings())
    assert stored(pools).read_bytes() == newer


@pytest.mark.parametrize("how", ["link", "pipe", "large", "missing"])
def test_file_that_larder_did_not_write_is_not_read(pools, commands, how, tmp_path):
    records.write_record("tank", record(), b"", settings())
    file = stored(pools)
    file.unlink()
    if how == "link":
        (tmp_path / "elsewhere").write_bytes(text())
        file.symlink_to(tmp_path / "elsewhere")
    elif how == "pipe":
        os.mkfifo(file)
    elif how == "large":
        file.write_bytes(b" " * (box_settings.LARGEST + 1))
    with pytest.raises(Refused) as refused:
        records.read_settings("tank", BOX)
    expected = {
        "link": "record-missing",
        "pipe": "record-malformed",
        "large": "settings-too-large",
        "missing": "settings-missing",
    }
    assert codes(refused.value.reasons) == [expected[how]]


# --- the mail password ------------------------------------------------------------------------------------------------
def test_mail_password_goes_into_the_sealed_secrets_and_is_left_for_the_pages():
    (paths.STATE / "mail-password").write_text("canary pass")
    secrets = BoxSecrets(version=1, box=BOX, mail=mail_password.read_mail_password())
    assert parse_secrets(secrets.text).mail == "canary pass"
    mail_password.leave_password(BOX, secrets.mail)
    left = mail_password.left_file(BOX)
    assert left.read_text() == "canary pass" and left.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("how", ["symlink", "hard link", "pipe", "two lines", "large"])
def test_mail_password_of_another_kind_of_file_is_none(tmp_path, how):
    file, other = paths.STATE / "mail-password", tmp_path / "shadow"
    other.write_text("root:hash")
    match how:
        case "symlink":
            file.symlink_to(other)
        case "hard link":
            file.hardlink_to(other)
        case "pipe":
            os.mkfifo(file)
        case "two lines":
            file.write_text("a\nb")
        case _:
            file.write_text("a" * 5000)
    assert mail_password.read_mail_password() == ""


def test_mail_password_is_left_beside_no_other_name():
    mail_password.leave_password("../../etc/x", "secret")
    mail_password.leave_password(BOX, "two\nlines")
    assert list(paths.STATE.glob("mail-password*")) == []


# --- writing a record -------------------------------------------------------------------------------------------------
POOL = recorded_pool()
WRITE = WriteRecord.of(POOL)


def facts(by: str | None = None, **changes: Any) -> Facts:
    marks = BoxMarks(boxes=(BoxMark(id=BOX, host="attic", at=5, by=by),)) if by is not None else BoxMarks()
    root = dataset(POOL.name, properties={"larder:box": Property(marks.text, "local")})
    return box(**{"pools": (POOL,), "datasets": (root,), **changes})


@pytest.fixture
def own(monkeypatch) -> None:
    from appliance.datasets.encryption import key_store

    monkeypatch.setattr(key_store, "box_mark", lambda: BOX)


def test_record_is_written_by_one_step_that_asks_for_nothing(own):
    plan = checked_plan(WRITE, facts())
    assert [step.name for step in plan.steps] == ["record"]
    assert not WRITE.needs_proof(facts(), plan) and not WRITE.wants_secret()
    assert not WRITE.probe("record", facts()) and WRITE.probe("record", facts(by=""))


def test_record_is_refused_where_the_pool_is_away_or_another_box_took_the_place(own):
    assert codes(WRITE.check(facts(pools=()))) == ["pool-missing"]
    assert codes(WRITE.check(facts(by="attic2"))) == ["box-replaced"]


def test_failure_to_write_fails_the_job(own, monkeypatch):
    def fail(*_arguments: object) -> None:
        raise Failed("no room")

    monkeypatch.setattr(refresh, "write_box", fail)
    monkeypatch.setattr(kstat, "is_stopped", lambda _pool: False)
    (step,) = checked_plan(WRITE, facts()).steps
    with pytest.raises(Failed, match="no room"):
        step.run(Working())
    monkeypatch.setattr(kstat, "is_stopped", lambda _pool: True)
    with pytest.raises(Failed, match="has stopped"):
        step.run(Working())


def test_notifications_have_no_field_for_a_secret():
    assert not {"password", "webhook"} & set(Notifications.__struct_fields__)
