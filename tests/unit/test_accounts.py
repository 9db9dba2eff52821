from __future__ import annotations

import pwd
from types import SimpleNamespace

import pytest

from appliance.errors import Refused
from appliance.facts import Account
from appliance.operation import checked_plan
from appliance.shares import accounts
from appliance.shares.accounts import CreateAccount, SetPassword
from tests.unit.made import ANNA, box
from tests.unit.test_pools import CANARY, Working

NEW = CreateAccount(name="berta")


@pytest.fixture
def users(monkeypatch):
    """The system's own list of users, by name."""
    found: dict[str, object] = {}
    monkeypatch.setattr("pwd.getpwnam", lambda name: found[name])
    return found


def test_it_makes_a_user_without_a_shell_and_gives_samba_and_the_system_the_password(commands, users):
    plan = checked_plan(NEW, box(accounts=(ANNA,)))
    for step in plan.steps:
        step.act(Working())
    assert commands.tools == ["useradd", "smbpasswd", "chpasswd"]
    useradd, smbpasswd, _chpasswd = commands.ran
    assert useradd[-2:] == ["--", "berta"]
    assert "/usr/sbin/nologin" in useradd
    assert smbpasswd[-1] == "berta"
    assert commands.given == [None, f"{CANARY}\n{CANARY}\n", f"berta:{CANARY}\n"]


def test_the_password_stands_in_no_argument_plan_or_note(commands, users):
    work = Working()
    plan = NEW.plan(box())
    for step in plan.steps:
        step.act(work)
    everything = str(commands.ran) + str(work.notes) + "".join(step.shown for step in plan.steps) + str(plan.identity)
    assert CANARY not in everything


def test_it_refuses_a_name_that_an_account_has():
    assert [reason.field for reason in CreateAccount(name="anna").check(box(accounts=(ANNA,)))] == ["name"]


def test_it_takes_over_no_user_of_the_system(commands, users):
    users["berta"] = SimpleNamespace(pw_uid=33)
    with pytest.raises(Refused, match="system itself"):
        NEW.plan(box()).steps[0].act(Working())
    assert commands.ran == []


@pytest.mark.parametrize("operation", [CreateAccount, SetPassword])
@pytest.mark.parametrize("name", ["root", "larder", "larder-nobody", "-a", "a b", "a\nb", "a:b", "", "Anna", "a" * 40])
def test_it_refuses_a_name_that_no_account_of_larder_has(operation, name):
    with pytest.raises(Refused):
        operation(name=name)


def test_it_sets_a_password_only_for_an_account_of_larders():
    assert list(SetPassword(name="anna").check(box(accounts=(ANNA,)))) == []
    assert [reason.field for reason in SetPassword(name="www").check(box(accounts=(ANNA,)))] == ["name"]


def test_both_want_a_secret_and_the_same_lock():
    assert NEW.wants_secret()
    assert SetPassword(name="anna").wants_secret()
    assert NEW.locks() == SetPassword(name="anna").locks()


def test_probes_tell_the_user_from_its_password(commands):
    commands.answers["pdbedit"] = "anna:1001:Larder\nbertalot:1002:\n"
    facts = box(accounts=(ANNA, Account("berta", 1002)))
    assert [NEW.happened(step, box()) for step in ("user", "password")] == [False, False]
    assert [NEW.happened(step, facts) for step in ("user", "password")] == [True, False]
    commands.answers["pdbedit"] += "berta:1002:Larder\n"
    assert NEW.happened("password", facts)


def test_whether_a_new_password_was_taken_is_never_claimed(commands):
    assert not SetPassword(name="anna").happened("password", box(accounts=(ANNA,)))
    assert "Set it again" in SetPassword(name="anna").way_on("password", box(accounts=(ANNA,)))


def test_the_way_on_says_whether_the_account_is_there():
    assert "no account" in NEW.way_on("user", box())
    assert "no password" in NEW.way_on("password", box(accounts=(Account("berta", 1002),)))


def test_it_lists_whoever_has_the_group_of_people_first(monkeypatch):
    monkeypatch.setattr("grp.getgrnam", lambda _name: SimpleNamespace(gr_gid=900))
    people = [("root", 0, 0), ("zoe", 1002, 900), ("anna", 1001, 900), ("guest", 1003, 901)]
    rows = [pwd.struct_passwd((name, "x", uid, gid, "", "/", "/")) for name, uid, gid in people]
    monkeypatch.setattr("pwd.getpwall", lambda: rows)
    assert [account.name for account in accounts.read()] == ["anna", "zoe"]


def test_without_the_group_there_are_no_accounts(monkeypatch):
    def missing(_name):
        raise KeyError

    monkeypatch.setattr("grp.getgrnam", missing)
    assert accounts.read() == ()
