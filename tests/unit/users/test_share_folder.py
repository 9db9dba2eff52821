"""Sharing a folder in one job: its parts, what is refused at which field, and the way on after an interruption."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from appliance.agent.registry import decode_operation
from appliance.datasets.access_note import AccessNote, encode_note
from appliance.errors import Failed, Refused
from appliance.facts.box import Facts
from appliance.facts.datasets import Property
from appliance.facts.sharing import Account, Group
from appliance.operation import Operation, Step, as_json, checked_plan
from appliance.shares import publish
from appliance.shares.set_share import SetShare
from appliance.shares.settings import Nfs, ShareSetting, Smb
from appliance.snapshots.policy import USUAL
from appliance.system import accounts
from appliance.users import new_passwords, share_folder
from appliance.users.share_folder import ShareFolder
from tests.reasons import codes, expect_refusal
from tests.unit.made import ANNA, box, dataset, shared
from tests.unit.pools.test_create import Working
from tests.unit.shares.test_smb import HOSTILE_TEXT

TANK = dataset("tank")
PASSWORDS = {"berta": "canary of berta", "cleo": "canary of cleo"}


def asked(**changes: Any) -> ShareFolder:
    fields: dict[str, Any] = {
        "dataset": "tank/photos",
        "new_users": ("berta",),
        "people": {"anna": "read", "berta": "change"},
        "smb": Smb(name="photos", write=("berta",), read=("anna",)),
        "policy": USUAL,
    }
    return ShareFolder(**{**fields, **changes})


def facts(*datasets: Any, **changes: Any) -> Facts:
    return box(datasets=(TANK, *datasets), **{"accounts": (ANNA,), **changes})


def refusals(operation: Operation, known: Facts) -> set[tuple[str, str]]:
    return {(reason.field, reason.code) for reason in operation.check(known)}


def test_one_plan_has_the_steps_of_every_part_in_their_order():
    plan = checked_plan(asked(nfs=Nfs(hosts=("10.0.0.0/24",), everybody_as="berta")), facts())
    parts = [step.name.partition(": ")[0] for step in plan.steps]
    assert list(dict.fromkeys(parts)) == ["user berta", "folder", "access", "smb", "nfs", "schedule"]
    assert len({step.name for step in plan.steps}) == len(plan.steps)
    assert plan.losses == ()


def test_pages_and_agent_plan_the_same():
    known = facts()
    assert asked().plan(known).digest() == decode_operation(as_json(asked())).plan(known).digest()
    assert asked().plan(known).digest() != asked(policy=None).plan(known).digest()


def test_it_needs_no_password_of_the_administrator_and_locks_what_its_parts_lock():
    operation = asked()
    assert not operation.needs_proof(facts(), operation.plan(facts()))
    assert set(operation.locks()) == {"accounts", "tank", "access tank/photos", "shares"}
    assert operation.files_used() == ("tank/photos",)


@pytest.mark.parametrize(
    ("operation", "known", "refused"),
    [
        (asked(), facts(dataset()), ("name", "dataset-exists")),
        (asked(), facts(dataset("tank/Photos")), ("name", "dataset-exists")),
        (asked(), facts(accounts=(ANNA, Account("berta", 1002))), ("new_users", "user-exists")),
        (asked(), facts(groups=(Group("berta", 20000),)), ("new_users", "group-exists")),
        (asked(), facts(accounts=()), ("people", "user-missing")),
        (asked(), facts(shared("tank/old/photos")), ("name", "share-name-taken")),
        (asked(smb=Smb(name="photos")), facts(), ("people", "share-without-users")),
        (asked(), box(accounts=(ANNA,)), ("pool", "folder-missing")),
        (
            asked(),
            box(datasets=(replace(TANK, key_status="unavailable"),), accounts=(ANNA,)),
            ("pool", "dataset-locked"),
        ),
        (asked(), box(datasets=(replace(TANK, available=0),), accounts=(ANNA,)), ("pool", "dataset-full")),
        (asked(guid=7), facts(), ("name", "folder-missing")),
        (asked(guid=7), facts(dataset()), ("name", "folder-missing")),
        (asked(guid=dataset().guid), facts(shared()), ("name", "folder-already-shared")),
    ],
)
def test_refused_at_its_field_before_anything_is_made(operation, known, refused):
    assert refused in refusals(operation, known)


def test_every_reason_is_given_at_once_and_none_twice():
    found = list(asked(dataset="tank/a", afp=None).check(facts(dataset("tank/a"), accounts=())))
    assert {reason.code for reason in found} == {"dataset-exists", "user-missing"}
    assert len(found) == len(set(found))


@pytest.mark.parametrize("text", HOSTILE_TEXT)
def test_hostile_names_are_refused(text):
    for changes in (
        {"new_users": (text,), "people": {text: "change"}},
        {"people": {text: "change"}, "new_users": ()},
        {"smb": ("name", text)},
    ):
        if text in {"global", "homes"} and "smb" not in changes:
            continue
        with pytest.raises(Refused):
            asked(**{k: Smb(name=text) if k == "smb" else v for k, v in changes.items()})
    if text not in {" ", "x\x85y", "global", "homes"}:
        with pytest.raises(Refused):
            asked(dataset=f"tank/{text}")


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"smb": None}, "share-without-protocol"),
        ({"new_users": ("berta", "berta")}, "new-user-twice"),
        ({"new_users": tuple(f"u{n}" for n in range(new_passwords.MOST + 1))}, "new-users-too-many"),
        ({"people": {"anna": "change"}}, "new-user-without-access"),
        ({"guid": -1}, "folder-missing"),
        ({"dataset": "tank"}, "dataset-name-malformed"),
    ],
)
def test_fields_that_do_not_go_together_are_refused(changes, code):
    with expect_refusal(code):
        asked(**changes)


def test_existing_folder_keeps_its_files_and_is_not_created():
    plan = checked_plan(asked(guid=dataset().guid), facts(dataset()))
    assert not any(step.name.startswith("folder") for step in plan.steps)
    assert asked(guid=dataset().guid).lasts()


def test_access_stays_as_it_is_where_nothing_of_it_changes():
    plan = checked_plan(
        asked(guid=dataset().guid, people={}, new_users=(), smb=Smb(name="photos", write=("anna",))), facts(dataset())
    )
    assert not any(step.name.startswith("access") for step in plan.steps)
    assert plan.details["Can read and change"] == "anna"


def test_new_folder_inherits_what_the_folder_above_shares():
    parent = shared("tank", share='{"smb": {"name": "all", "write": ["anna"]}}')
    child = share_folder.child_of(parent, "tank/photos")
    assert (child.share_source, child.share_from, child.mountpoint) == ("inherited", "tank", "/tank/photos")


def test_review_of_a_new_folder_for_time_machine_takes_no_limit_of_the_folder_above_for_its_own():
    limits = {"refquota": Property("2000000000", "local"), "compression": Property("lz4", "local")}
    parent = dataset("tank", properties=limits)
    assert set(share_folder.child_of(parent, "tank/photos").properties) == {"compression"}
    backups = Smb(name="photos", write=("anna",), time_machine=10**10)
    plan = asked(people={}, new_users=(), smb=backups).plan(facts(parent))
    step = next(step for step in plan.steps if step.name == "smb: property")
    assert "refquota=10000000000" in step.command_text


class WithPasswords(Working):
    """A Work whose secret is that of a job with two new users, to be had once."""

    def __init__(self) -> None:
        super().__init__()
        self.left = [new_passwords.encode_passwords(PASSWORDS)]

    def secret(self) -> str:
        return self.left.pop()


TWO = {
    "new_users": ("berta", "cleo"),
    "people": {"berta": "change", "cleo": "read"},
    "smb": Smb(name="photos", write=("berta",), read=("cleo",)),
}


@pytest.fixture
def users(monkeypatch, folders):
    """The system's users by name."""
    found: dict[str, object] = {}
    monkeypatch.setattr("pwd.getpwnam", lambda name: found[name])
    monkeypatch.setattr("pwd.getpwall", lambda: list(found.values()))
    monkeypatch.setattr("grp.getgrall", list)
    return found


def users_steps(operation: ShareFolder) -> list[Step]:
    return [step for step in operation.plan(facts()).steps if step.name.startswith("user")]


def test_each_new_user_gets_the_own_password_by_standard_input_alone(commands, users):
    work = WithPasswords()
    for step in users_steps(asked(**TWO)):
        step.run(work)
    given = [text for text in commands.given if text]
    assert given == [
        "berta:canary of berta\n",
        "canary of berta\ncanary of berta\n",
        "cleo:canary of cleo\n",
        "canary of cleo\ncanary of cleo\n",
    ]
    plan = asked(**TWO).plan(facts())
    shown = "".join(step.command_text for step in plan.steps) + str(plan.identity) + str(plan.details) + str(work.notes)
    assert "canary" not in shown + str(commands.ran)


@pytest.mark.parametrize("secret", ["not JSON canary", "[]", '{"berta": 5}', '{"anna": "canary for you"}'])
def test_secret_that_is_no_list_of_passwords_is_refused_without_being_quoted(commands, users, secret):
    work = Working()
    work.secret = lambda: secret  # type: ignore[method-assign]
    user, password = users_steps(asked())
    user.run(work)
    with pytest.raises(Refused) as caught:
        password.run(work)
    assert codes(caught.value.reasons) == ["secret-gone"]
    assert "canary" not in str(caught.value)


@pytest.mark.parametrize(
    ("passwords", "code"),
    [
        ({"berta": "short"}, "password-too-short"),
        ({"berta": "with\na line"}, "invisible-characters"),
        (dict.fromkeys(("a", "b", "c"), '"' * 120), "passwords-too-long"),
    ],
)
def test_passwords_that_cannot_be_taken_are_refused_at_their_field(passwords, code):
    with pytest.raises(Refused) as caught:
        new_passwords.encode_passwords(passwords)
    assert codes(caught.value.reasons) == [code]
    assert caught.value.reasons[0].field in {"secret-berta", "secret-a"}


def test_later_parts_are_planned_from_what_is_there_when_they_run(monkeypatch):
    """Numbers of users and the guid of the folder are not known before."""
    there = facts(dataset(), accounts=(ANNA, Account("berta", 10007)))
    monkeypatch.setattr(share_folder, "read_facts", lambda: there)
    planned: list[Facts] = []
    ran: list[str] = []

    def noted(name: str) -> Step:
        return Step(name, "", "", lambda _work: ran.append(name))

    def plan(part: SetShare, known: Facts) -> SimpleNamespace:
        planned.append(known)
        steps = [noted(name) for name in ("property", "serve")]
        return SimpleNamespace(steps=tuple(steps), identity={}, warnings=())

    steps = [step for step in asked().plan(facts()).steps if step.name.startswith("smb")]
    monkeypatch.setattr(SetShare, "plan", plan)
    for step in steps:
        step.run(Working())
    assert ran == ["property", "serve"]
    # Once for both: what is put back after a failure is what was there before the first.
    assert planned == [there]


def test_later_part_that_something_speaks_against_by_then_stops_the_job(monkeypatch):
    monkeypatch.setattr(share_folder, "read_facts", lambda: facts(accounts=()))
    step = next(step for step in asked().plan(facts()).steps if step.name == "smb: property")
    with expect_refusal("folder-missing"):
        step.run(Working())


def made_until(step: str) -> Facts:
    """The box after a job that was killed during this step, as its parts would find it."""
    berta = Account("berta", 10007)
    setting = ShareSetting(smb=asked().smb)
    note = AccessNote(guid=dataset().guid, people={"anna": "read", "berta": "change"}, done=True)
    full = dataset(
        share=setting.text(),
        share_source="local",
        access=encode_note(note.with_numbers(facts(accounts=(ANNA, berta)))),
        access_source="local",
        policy=json.dumps({"hourly": 24}),
        policy_source="local",
    )
    bare = replace(full, share="", share_source="none", policy="", policy_source="none")
    return {
        "user berta: user": facts(),
        "user berta: password": facts(accounts=(ANNA, berta)),
        "folder: create": facts(accounts=(ANNA, berta)),
        "access: kind": facts(replace(bare, access="", access_source="none"), accounts=(ANNA, berta)),
        "smb: property": facts(bare, accounts=(ANNA, berta)),
        "schedule: set": facts(replace(full, policy="", policy_source="none"), accounts=(ANNA, berta)),
    }[step]


STEPS = ["user berta: user", "user berta: password", "folder: create", "access: kind", "smb: property", "schedule: set"]


@pytest.fixture
def samba(monkeypatch):
    """A Samba that serves what the folder asks for, and that knows nobody's password."""
    one = publish.SERVING["smb"]
    served = SimpleNamespace(
        name="smb",
        shares=lambda _facts: (SimpleNamespace(name="photos", path="/tank/photos"),),
        served=lambda: frozenset({("photos", "/tank/photos")}),
        against=one.against,
        warnings=one.warnings,
        units=one.units,
        owned=SimpleNamespace(says=lambda _text: True, path=Path("/x")),
        render=lambda _facts: "",
    )
    monkeypatch.setitem(publish.SERVING, "smb", served)
    monkeypatch.setattr(publish, "agreed_facts", Facts)
    monkeypatch.setattr(accounts, "known_to_samba", lambda _name: False)


@pytest.mark.parametrize("step", STEPS)
def test_a_kill_during_a_step_is_seen_by_its_probe_and_leaves_a_way_on(step, samba):
    known = made_until(step)
    assert not asked().probe(step, known)
    assert asked().recovery_hint(step, known)
    rest = asked().again(known)
    assert list(rest.check(known)) == []
    parts = [key for key, _part in rest.parts()]
    assert ("user berta" in parts) is (step == "user berta: user")
    assert ("folder" in parts) is (step in STEPS[:3])
    assert rest.people == asked().people


def test_user_without_a_password_is_told(samba):
    said = asked().recovery_hint("user berta: password", made_until("user berta: password"))
    assert "berta was created but has no password" in said


def test_probe_of_an_unknown_step_claims_nothing():
    assert not asked().probe("afp: serve", facts())
    assert not asked().probe("nonsense", facts())


def test_failure_of_a_protocol_puts_its_setting_back_as_its_own_operation_does(monkeypatch):
    """The plan of a part is that of the operation, so what it undoes it undoes here too."""
    monkeypatch.setattr(share_folder, "read_facts", lambda: facts(dataset(), accounts=(ANNA, Account("berta", 10007))))
    put_back: list[str] = []

    def fail(operation: SetShare, work: object, before: object) -> None:
        put_back.append(operation.dataset)
        raise Failed("Samba does not serve it")

    monkeypatch.setattr(SetShare, "serve", fail)
    step = next(step for step in asked().plan(facts()).steps if step.name == "smb: serve")
    with pytest.raises(Failed):
        step.run(Working())
    assert put_back == ["tank/photos"]
