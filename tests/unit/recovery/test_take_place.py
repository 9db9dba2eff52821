"""Taking the place of a box: what is refused, what runs in which order, and that it can be done twice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from appliance.datasets.encryption import key_store
from appliance.errors import Failed, Refused
from appliance.facts.box import Facts, PoolProperties
from appliance.facts.box_record import BoxMark, BoxMarks, parse_record
from appliance.facts.copy_mark import CopyMark
from appliance.facts.datasets import Property
from appliance.facts.sharing import Account, Group
from appliance.operation import checked_plan
from appliance.recovery import bring_users, records, rid_counter, seal, take_place
from appliance.recovery.box_secrets import BoxSecrets, UserSecret
from appliance.recovery.phrase import make_phrase
from appliance.recovery.take_place import TakePlace
from appliance.system import accounts, paths
from appliance.zfs import status
from tests.reasons import codes, expect_refusal
from tests.unit.made import box, dataset, recorded_pool, shared
from tests.unit.pools.test_create import Working
from tests.unit.recovery.test_phrase import PHRASE, RECIPIENT, needs_age
from tests.unit.recovery.test_records import BOX, GOOD, NEW

pytestmark = pytest.mark.usefixtures("folders")

POOL = replace(recorded_pool(), name="safe", guid=77)
NT, CRYPTED = "0123456789ABCDEF" * 2, "$y$j9T$0123456789abcdef/x$yyyyyyyyyyyyyyyyyyyy"
SECRETS = BoxSecrets(
    version=1,
    box=BOX,
    users=(UserSecret(name="anna", nt=NT, flags="[U          ]", rid=1005, system=CRYPTED),),
    keys={"66": "the passphrase of the vault"},
)


def record(**changes: Any):
    return parse_record(json.dumps(GOOD | {"sealed": True} | changes).encode())


def facts(*more: Any, by: str = "", **changes: Any) -> Facts:
    mark = BoxMark(id=BOX, host="attic", at=5, by=by)
    root = dataset("safe", properties={"larder:box": Property(BoxMarks(boxes=(mark,)).text, "local")})
    return box(**{"pools": (POOL,), "datasets": (root, *more), "box_record": record(), **changes})


def taken(**changes: Any) -> TakePlace:
    return TakePlace(**{"pool": "safe", "guid": 77, "box": BOX, "sealed": True, **changes})


@pytest.fixture(autouse=True)
def identity(monkeypatch) -> None:
    monkeypatch.setattr(key_store, "box_mark", lambda: NEW)
    monkeypatch.setattr(take_place, "read_host_name", lambda: "attic2")


def test_plan_names_who_comes_and_asks_for_the_phrase():
    plan = checked_plan(taken(), facts())
    assert plan.title == "Take the place of attic"
    assert [step.name for step in plan.steps] == ["open", "users", "groups", "passwords", "keys", "mark"]
    assert "useradd" in plan.steps[1].command_text and "--uid 10003" in plan.steps[1].command_text
    assert taken().wants_secret() and taken().needs_proof(facts(), plan)
    assert plan.details["Users"] == "anna" and plan.details["Restored afterwards"] == "tank/photos"


def test_record_without_secrets_asks_for_no_phrase_and_says_so():
    operation, found = taken(sealed=False), facts(box_record=record(sealed=False))
    plan = checked_plan(operation, found)
    assert not operation.wants_secret()
    assert [step.name for step in plan.steps] == ["users", "groups", "mark"]
    assert "No password comes back" in " ".join(plan.warnings)


def test_another_record_is_another_plan():
    assert (
        checked_plan(taken(), facts()).digest()
        != checked_plan(taken(), facts(box_record=record(next_uid=10008))).digest()
    )


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"pools": ()}, "pool-missing"),
        ({"box_record": None}, "record-missing"),
        ({"box_record": record(box=NEW)}, "record-missing"),
        ({"box_record": record(sealed=False)}, "record-missing"),
        ({"properties": (PoolProperties("safe", 77, {"readonly": "on"}),)}, "record-pool-read-only"),
        ({"accounts": (Account("anna", 10009),)}, "recorded-name-taken"),
        ({"groups": (Group("anna", 20009),)}, "recorded-name-taken"),
        ({"accounts": (Account("berta", 10003),)}, "recorded-number-taken"),
        ({"groups": (Group("family", 20009),)}, "recorded-name-taken"),
        ({"accounts": (Account("family", 10009),)}, "recorded-name-taken"),
        ({"groups": (Group("friends", 20001),)}, "recorded-number-taken"),
    ],
)
def test_what_means_something_else_here_is_refused(changes, code):
    assert code in codes(taken().check(facts(**changes)))


def test_own_record_is_refused_unless_another_box_has_taken_the_place(monkeypatch):
    monkeypatch.setattr(key_store, "box_mark", lambda: BOX)
    assert codes(taken().check(facts())) == ["record-of-this-box"]
    assert codes(taken().check(facts(by="attic2"))) == []


def test_same_users_are_no_collision_so_it_can_be_done_again():
    here = facts(accounts=(Account("anna", 10003),), groups=(Group("family", 20001, ("anna",)),))
    plan = checked_plan(taken(), here)
    assert plan.steps[1].command_text == plan.steps[2].command_text == "nothing is missing"
    assert taken().probe("users", here) and taken().probe("groups", here)
    assert not taken().probe("users", facts()) and not taken().probe("passwords", here)
    assert taken().probe("passwords", facts(by="attic2"))  # the last step is done


def test_users_get_their_numbers_and_no_number_is_given_twice(commands, monkeypatch):
    monkeypatch.setattr(accounts, "read_accounts", lambda: ())
    monkeypatch.setattr(accounts, "read_groups", lambda: ())
    for step in (bring_users.users_step(record(), facts()), bring_users.groups_step(record(), facts())):
        step.run(Working())
    made = [argv for argv in commands.ran if argv[0] in {"useradd", "groupadd"}]
    assert made[0][made[0].index("--uid") :][:2] == ["--uid", "10003"] and made[0][-1] == "anna"
    assert made[1] == ["groupadd", "--gid", "20001", "--", "family"]
    assert accounts.free_number("account", accounts.UIDS, ()) == 10007
    assert accounts.free_number("group", accounts.GIDS, ()) == 20002
    accounts.note_given("account", 10100)
    bring_users.users_step(record(), facts()).run(Working())
    assert accounts.free_number("account", accounts.UIDS, ()) == 10101  # never lower than here


def test_hashes_go_through_memory_and_standard_input_alone(commands, monkeypatch):
    monkeypatch.setattr(accounts, "read_accounts", lambda: ())
    seen: list[str] = []
    commands.on_run = lambda argv: seen.extend(
        Path(word.split(":", 1)[1]).read_text() for word in argv if "/proc/self/fd/" in word
    )
    work = Working()
    bring_users.bring_passwords(record(), SECRETS, work)
    assert ["net", "setlocalsid", "S-1-5-21-1-2-3"] in commands.ran
    assert [f"anna:{CRYPTED}\n"] == [given for given in commands.given if given]
    assert [line[:-10] for line in seen] == [f"anna:10003:{'X' * 32}:{NT}:[U          ]:LCT-"]
    assert int(seen[0][-10:-2], 16) > 0  # Samba wants a password changed that was set never
    said = json.dumps(commands.ran) + str(work.notes)
    assert NT not in said and CRYPTED not in said


def test_samba_counts_on_from_the_numbers_that_came_over(commands, monkeypatch):
    raised: list[int] = []
    monkeypatch.setattr(accounts, "read_accounts", lambda: ())
    monkeypatch.setattr(rid_counter, "raise_next", raised.append)
    commands.answers["pdbedit"] = (
        "Unix username:        anna\nUser SID:             S-1-5-21-1-2-3-1005\n"
        "Unix username:        berta\nUser SID:             S-1-5-21-1-2-3-1002\n"
    )
    bring_users.bring_passwords(record(), SECRETS, Working())
    assert raised == [1006]


def test_passwords_stay_where_the_counter_of_samba_cannot_be_set(commands, monkeypatch):
    def fail(_number: int) -> None:
        raise Failed("Samba's database of users does not open", "Permission denied")

    monkeypatch.setattr(accounts, "read_accounts", lambda: ())
    monkeypatch.setattr(rid_counter, "raise_next", fail)
    commands.answers["pdbedit"] = "Unix username: anna\nUser SID: S-1-5-21-1-2-3-1005\n"
    work = Working()
    bring_users.bring_passwords(record(), SECRETS, work)
    assert "1 passwords were taken over" in str(work.notes) and "Permission denied" in str(work.notes)


def test_disabled_user_stays_disabled(commands, monkeypatch):
    monkeypatch.setattr(accounts, "read_accounts", lambda: ())
    off = record(users=[{"name": "anna", "uid": 10003, "disabled": True}])
    bring_users.bring_passwords(off, SECRETS, Working())
    assert ["usermod", "--lock", "--comment", ",,,,disabled", "--", "anna"] in commands.ran


def test_box_with_users_of_its_own_stays_who_it_is_for_windows(commands, monkeypatch):
    monkeypatch.setattr(accounts, "read_accounts", lambda: (Account("berta", 10001),))
    bring_users.bring_passwords(record(), SECRETS, Working())
    assert "net" not in commands.tools and "systemctl" not in commands.tools


def test_password_of_nobody_in_the_record_is_left_out(commands, monkeypatch):
    monkeypatch.setattr(accounts, "read_accounts", lambda: ())
    bring_users.bring_passwords(record(users=[], groups=[]), SECRETS, Working())
    assert "pdbedit" not in commands.tools and "chpasswd" not in commands.tools


@needs_age
def test_wrong_phrase_stops_before_anything_is_made(pools):
    records_of_safe = pools / "safe/.larder-box" / BOX
    records_of_safe.mkdir(parents=True)
    (records_of_safe / "secrets.age").write_bytes(seal.seal(SECRETS.text, [RECIPIENT]))
    first = checked_plan(taken(), facts()).steps[0]

    class Typed(Working):
        def __init__(self, phrase: str) -> None:
            super().__init__()
            self.phrase = phrase

        def secret(self) -> str:
            return self.phrase

    first.run(Typed(PHRASE.lower()))
    with expect_refusal("phrase-does-not-open"):
        first.run(Typed(make_phrase()))
    (records_of_safe / "secrets.age").write_bytes(b"spoiled")
    with expect_refusal("phrase-does-not-open"):
        first.run(Typed(PHRASE))


def test_keys_are_stored_for_folders_that_are_here(commands, monkeypatch, folders):
    vault = dataset("safe/vault", guid=66)
    monkeypatch.setattr(status, "read_datasets", lambda: (vault,))
    taken().bring_keys(record(), take_place.Opened(SECRETS), Working())
    assert key_store.read_key(66) == "the passphrase of the vault"
    assert commands.ran == [["zfs", "set", f"larder:unlock={NEW}", "safe/vault"]]


def test_key_that_is_stored_here_already_stays(commands, monkeypatch, folders):
    """It may have been changed since the record was written: the old one would open nothing."""
    monkeypatch.setattr(status, "read_datasets", lambda: (dataset("safe/vault", guid=66),))
    key_store.store_key(66, "the newer passphrase")
    work = Working()
    taken().bring_keys(record(), take_place.Opened(SECRETS), work)
    assert key_store.read_key(66) == "the newer passphrase"
    assert "safe/vault keeps the key that is stored here" in str(work.notes)
    assert commands.ran == []
    key_store.store_key(66, "the passphrase of the vault")  # an interrupted attempt goes on
    taken().bring_keys(record(), take_place.Opened(SECRETS), Working())
    assert commands.ran == [["zfs", "set", f"larder:unlock={NEW}", "safe/vault"]]


def test_key_of_a_folder_that_is_only_a_copy_is_stored_for_its_restore(commands, monkeypatch, folders):
    """A restored folder has a guid of its own, and the copy of a folder below an encrypted one is locked by itself."""
    names = {"tank/vault": 66, "tank/vault/inner": 67, "tank/open": 68, "tank/other": 69}
    folders_of = [
        {"name": name, "guid": guid, "kind": "filesystem", "encrypted": guid != 68, "settings": {}}
        for name, guid in names.items()
    ]
    monkeypatch.setattr(
        status, "read_datasets", lambda: (dataset("safe/backups/vault", guid=70, copy_of=CopyMark(66, raw=True).text),)
    )
    taken().bring_keys(record(folders=folders_of), take_place.Opened(SECRETS), Working())
    assert key_store.read_key(66) == key_store.read_key(67) == "the passphrase of the vault"
    assert not key_store.has_key(68) and not key_store.has_key(69)
    assert commands.ran == []


def test_shares_of_its_own_pool_are_served_with_the_same_review():
    own = shared("safe/photos", guid=6)
    plan = checked_plan(taken(), facts(own))
    assert [step.name for step in plan.steps][-2:] == ["shares", "mark"]
    assert "photos" in plan.details["safe/photos"]
    assert "no anna" not in " ".join(plan.warnings)  # she comes over before
    stranger = shared("safe/photos", guid=9)
    assert "shares" not in [step.name for step in checked_plan(taken(), facts(stranger)).steps]


def test_last_step_notes_who_has_taken_the_place(monkeypatch):
    noted: list[BoxMark] = []
    marks = BoxMarks(boxes=(BoxMark(id=BOX, host="attic", at=5),))
    monkeypatch.setattr(records, "read_marks", lambda _pool: marks)
    monkeypatch.setattr(records, "set_mark", lambda _pool, _marks, mark: noted.append(mark))
    taken().mark(Working())
    assert (noted[0].id, noted[0].by) == (BOX, "attic2")
    monkeypatch.setattr(key_store, "box_mark", lambda: BOX)
    taken().mark(Working())
    assert noted[1].by == ""  # the old box takes its place back
    monkeypatch.setattr(records, "read_marks", lambda _pool: BoxMarks())
    with pytest.raises(Refused):
        taken().mark(Working())


def test_password_of_the_mail_server_waits_for_the_mail_settings(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "STATE", tmp_path)
    secrets = replace(SECRETS, keys={}, mail="the canary of mail")
    monkeypatch.setattr(status, "read_datasets", lambda: ())
    taken().bring_keys(record(folders=()), take_place.Opened(secrets), Working())
    assert (tmp_path / f"mail-password-{BOX}").read_text() == "the canary of mail"
    assert not (tmp_path / "mail-password").exists()


def test_place_is_taken_also_where_the_password_of_the_mail_server_cannot_be_left(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "STATE", tmp_path / "nowhere")
    monkeypatch.setattr(status, "read_datasets", lambda: ())
    work = Working()
    taken().bring_keys(record(folders=()), take_place.Opened(replace(SECRETS, keys={}, mail="canary")), work)
    assert "was not taken over" in " ".join(work.notes)
