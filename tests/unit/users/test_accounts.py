from __future__ import annotations

import grp
import json
import os
import pwd
import shlex
import signal
from collections.abc import Iterable, Iterator
from types import SimpleNamespace

import pytest
from msgspec.structs import replace

from appliance.agent.registry import decode_operation
from appliance.datasets.access_note import AccessNote, encode_note
from appliance.errors import Failed, Refused
from appliance.facts.sharing import Account, Group, Share
from appliance.files import traversal
from appliance.operation import checked_plan
from appliance.shares import approved, connections, disconnect, publish
from appliance.shares.connections import Connection
from appliance.system import accounts
from appliance.users import drop_from_shares
from appliance.users.accounts import CreateAccount, EnableAccount, RenameAccount
from appliance.users.groups import CreateGroup, RemoveGroup, SetMembers
from appliance.users.remove import RemoveAccount
from appliance.users.set_password import SetPassword
from tests.reasons import codes, expect_refusal
from tests.unit.made import ANNA, box, dataset, shared
from tests.unit.pools.test_create import CANARY, Working

NEW = CreateAccount(name="berta", display="Berta Ö")
BEN = Account("ben", 10002, "Ben", disabled=True)
FAMILY = Group("family", 20000, ("anna",))
KNOWN = "anna:1001:Larder\nben:10002:\n"


@pytest.fixture
def users(monkeypatch, folders):
    """The system's users by name; Larder has not used any number yet."""
    found: dict[str, object] = {}
    monkeypatch.setattr("pwd.getpwnam", lambda name: found[name])
    monkeypatch.setattr("pwd.getpwall", lambda: list(found.values()))
    monkeypatch.setattr("grp.getgrnam", lambda name: found[name])
    monkeypatch.setattr("grp.getgrall", list)
    return found


def run(operation, facts) -> Working:
    work = Working()
    for step in checked_plan(operation, facts).steps:
        step.run(work)
    return work


@pytest.mark.parametrize(
    ("operation", "number"),
    [(NEW, "10000"), (replace(NEW, display="$number"), "10000"), (CreateGroup(name="club"), "20000")],
)
def test_the_command_that_runs_is_the_one_that_was_shown_with_its_number(commands, users, operation, number):
    """Only the agent may read which numbers were given before, so a plan cannot know the next."""
    facts = box(accounts=(ANNA,))
    shown, note = checked_plan(operation, facts).steps[0].command_text.split("\n")
    assert note.startswith("# $number is ")
    work = run(operation, facts)
    assert shlex.split(shown.replace('"$number"', number, 1)) == commands.ran[0]
    assert work.notes[0] == shlex.join(commands.ran[0])


def test_create_user_has_no_shell_and_one_password(commands, users):
    run(NEW, box(accounts=(ANNA,)))
    assert commands.tools == ["useradd", "chpasswd", "smbpasswd"]
    useradd, chpasswd, smbpasswd = commands.ran
    assert useradd[-2:] == ["--", "berta"]
    assert "/usr/sbin/nologin" in useradd
    assert "/nonexistent" in useradd
    assert useradd[useradd.index("--uid") + 1] == "10000"
    assert useradd[useradd.index("--comment") + 1] == "Berta Ö"
    assert chpasswd == ["chpasswd"]
    assert smbpasswd[-1] == "berta"
    assert commands.given == [None, f"berta:{CANARY}\n", f"{CANARY}\n{CANARY}\n"]


@pytest.mark.parametrize("operation", [NEW, SetPassword(name="anna")])
def test_password_is_in_no_argument_plan_or_log(commands, users, operation):
    facts = box(accounts=(ANNA,))
    plan = operation.plan(facts)
    work = run(operation, facts)
    everything = (
        str(commands.ran) + str(work.notes) + "".join(step.command_text for step in plan.steps) + str(plan.identity)
    )
    assert CANARY not in everything


def test_numbers_are_never_used_twice(users):
    assert [accounts.new_uid(), accounts.new_uid()] == [10000, 10001]
    users["cleo"] = SimpleNamespace(pw_uid=10007)
    assert accounts.new_uid() == 10008
    users.clear()
    assert accounts.new_uid() == 10009
    assert accounts.new_gid() == 20000


def test_no_numbers_left_fails(users):
    users["last"] = SimpleNamespace(pw_uid=19999)
    with pytest.raises(Failed, match="All numbers"):
        accounts.new_uid()


def test_create_refuses_name_of_user_or_group():
    facts = box(accounts=(ANNA,), groups=(FAMILY,))
    for kind in (CreateAccount, CreateGroup):
        for name, code in (("anna", "user-exists"), ("family", "group-exists")):
            assert [(reason.field, reason.code) for reason in kind(name=name).check(facts)] == [("name", code)]


@pytest.mark.parametrize("operation", [NEW, CreateGroup(name="berta")])
def test_create_refuses_name_used_by_system(commands, users, operation):
    users["berta"] = SimpleNamespace(pw_uid=33)
    with expect_refusal("name-used-by-system"):
        operation.plan(box()).steps[0].run(Working())
    assert commands.ran == []


HOSTILE = [
    "root",
    "larder",
    "larder-nobody",
    "-a",
    "a b",
    "a\nb",
    "a\0",
    "a:b",
    "",
    "Anna",
    "a" * 40,
    "аnna",
    "ａnna",
    "anna ",
    "a,b",
    "a/b",
    "@a",
]


@pytest.mark.parametrize(
    "kind",
    [
        "create-account",
        "set-password",
        "rename-account",
        "enable-account",
        "remove-account",
        "create-group",
        "set-members",
        "remove-group",
    ],
)
@pytest.mark.parametrize("name", HOSTILE)
def test_agent_refuses_invalid_names(kind, name):
    more = {"enabled": True} if kind == "enable-account" else {}
    with pytest.raises(Refused):
        decode_operation(json.dumps({"kind": kind, "name": name, **more}))


@pytest.mark.parametrize("text", ["a:b", "a,b", "a\nb", "a\0b", "x" * 61, " a", "a\u202eb", 'a"b', "a\\b"])
def test_rename_refuses_invalid_display_name(text):
    with pytest.raises(Refused):
        RenameAccount(name="anna", display=text)


def test_set_password_refuses_disabled_and_unknown_users():
    facts = box(accounts=(ANNA, BEN))
    assert list(SetPassword(name="anna").check(facts)) == []
    assert [reason.field for reason in SetPassword(name="www").check(facts)] == ["name"]
    assert codes(SetPassword(name="ben").check(facts)) == ["user-disabled"]


def test_disable_locks_user_then_disconnects(commands, users):
    commands.answers["pdbedit"] = KNOWN
    run(EnableAccount(name="anna", enabled=False), box(accounts=(ANNA,)))
    changing = [argv for argv in commands.ran if argv[0] not in {"pdbedit"}]
    assert changing[:2] == [
        ["smbpasswd", "-d", "anna"],
        ["usermod", "--lock", "--comment", ",,,,disabled", "--", "anna"],
    ]
    assert changing[2][0] == "smbstatus"


def test_enable_keeps_display_name(commands, users):
    commands.answers["pdbedit"] = KNOWN
    run(EnableAccount(name="ben", enabled=True), box(accounts=(BEN,)))
    assert commands.ran[-1] == ["usermod", "--unlock", "--comment", "Ben", "--", "ben"]


def test_enable_is_probed_by_system(commands):
    off = EnableAccount(name="ben", enabled=False)
    commands.answers["passwd"] = "ben L 2026-11-21 0 99999 7 -1\n"
    assert off.probe("system", box(accounts=(BEN,)))
    commands.answers["passwd"] = "ben P 2026-11-21 0 99999 7 -1\n"
    assert not off.probe("system", box(accounts=(BEN,)))
    assert not off.probe("system", box(accounts=(replace(BEN, disabled=False),)))


def test_create_probes_user_and_password_separately(commands):
    commands.answers |= {"pdbedit": "anna:1001:Larder\nbertalot:1002:\n", "passwd": "berta P 2026-11-21 0 99999 7 -1\n"}
    facts = box(accounts=(ANNA, Account("berta", 1002)))
    assert [NEW.probe(step, box()) for step in ("user", "password")] == [False, False]
    assert [NEW.probe(step, facts) for step in ("user", "password")] == [True, False]
    commands.answers["pdbedit"] += "berta:1002:Larder\n"
    assert NEW.probe("password", facts)
    commands.answers["passwd"] = "berta L 2026-11-21 0 99999 7 -1\n"
    assert not NEW.probe("password", facts)


def test_set_password_is_never_claimed(commands):
    assert not SetPassword(name="anna").probe("password", box(accounts=(ANNA,)))
    assert "Set it again" in SetPassword(name="anna").recovery_hint("password", box(accounts=(ANNA,)))


def test_create_hint_says_whether_user_exists():
    assert "no user" in NEW.recovery_hint("user", box())
    assert "no password" in NEW.recovery_hint("password", box(accounts=(Account("berta", 1002),)))


def test_home_folder_is_private():
    home = CreateAccount(name="berta", home="tank")
    plan = checked_plan(home, box(datasets=(dataset("tank"),)))
    assert [step.name for step in plan.steps] == ["user", "password", "home", "private"]
    said, account = dataset("tank/berta", access_source="local"), Account("berta", 10000)
    whole = replace(
        said,
        access=encode_note(
            AccessNote(guid=said.guid, people={"berta": "change"}, done=True).with_numbers(box(accounts=(account,)))
        ),
    )
    assert not home.probe("home", box(datasets=(dataset("tank"),), accounts=(account,)))
    assert home.probe("home", box(datasets=(said,), accounts=(account,)))
    assert not home.probe("private", box(datasets=(said,), accounts=(account,)))
    assert home.probe("private", box(datasets=(whole,), accounts=(account,)))


def test_home_folder_below_a_shared_one_is_served_at_once_after_it_is_private(monkeypatch):
    again: list[object] = []
    monkeypatch.setattr(publish, "republish_quietly", again.append)
    home = CreateAccount(name="berta", home="tank")
    plan = checked_plan(home, box(datasets=(shared("tank"),)))
    assert [step.name for step in plan.steps][-2:] == ["private", "serve"]
    work = Working()
    plan.steps[-1].run(work)
    assert again == [work]
    assert set(home.locks()) == {"accounts", "tank", "shares"}
    made = shared("tank/berta", share_source="inherited", share_from="tank")
    found = box(datasets=(shared("tank"), made), accounts=(Account("berta", 10000),))
    monkeypatch.setattr(approved, "read_approved", lambda: frozenset({shared("tank").guid}))
    assert not home.probe("serve", found)
    assert home.probe("serve", replace(found, shares=(Share("smb", "tank-berta", "/tank/berta"),)))


@pytest.mark.parametrize(
    "there", [(), (dataset("tank"), dataset("tank/berta")), (dataset("tank", key_status="unavailable"),)]
)
def test_home_folder_is_refused_at_its_field(there):
    reasons = list(CreateAccount(name="berta", home="tank").check(box(datasets=there)))
    assert [reason.field for reason in reasons] == ["home"]


def test_create_warns_about_share_that_names_user():
    facts = box(datasets=(shared("tank/photos"),))
    assert "The share of tank/photos already names anna" in checked_plan(CreateAccount(name="anna"), facts).warnings[0]


# Removal


def test_remove_disables_first_and_deletes_user_last(commands, users):
    commands.answers["pdbedit"] = KNOWN
    run(RemoveAccount(name="anna"), box(accounts=(ANNA, BEN)))
    changing = [argv for argv in commands.ran if argv[0] not in {"pdbedit", "smbstatus"}]
    assert changing == [
        ["smbpasswd", "-d", "anna"],
        ["usermod", "--lock", "--comment", ",,,,disabled", "--", "anna"],
        ["smbpasswd", "-x", "anna"],
        ["userdel", "--", "anna"],
    ]


@pytest.mark.parametrize("heir", ["", "ben"])
def test_removed_user_cannot_sign_in_over_afp_while_files_are_given_away(commands, users, monkeypatch, heir):
    """AFP asks PAM: a Mac connects again with the password that it has stored, and would
    write files behind the walk."""
    monkeypatch.setattr(disconnect, "disconnect_user", lambda name, _work: commands.ran.append(["disconnect", name]))
    monkeypatch.setattr(RemoveAccount, "hand_over", lambda *_arguments: commands.ran.append(["chown"]))
    commands.answers["pdbedit"] = KNOWN
    run(RemoveAccount(name="anna", heir=heir), box(accounts=(ANNA, BEN)))
    done = [argv[0] for argv in commands.ran if argv[0] != "pdbedit"]
    walk = ["chown"] if heir else []
    assert done == ["smbpasswd", "usermod", "disconnect", *walk, "smbpasswd", "disconnect", "userdel"]


def test_display_name_stays_when_a_user_who_is_being_removed_is_locked():
    (lock,) = [
        step
        for step in RemoveAccount(name="anna").plan(box(accounts=(replace(ANNA, display="Anna B"),))).steps
        if step.name == "lock"
    ]
    assert lock.command_text == "usermod --lock --comment 'Anna B,,,,disabled' -- anna"


def test_interrupted_removal_says_whether_user_is_disabled_yet(commands):
    """Each step has its effect only once the user is gone, so a job that was killed anywhere is not settled as done."""
    operation = RemoveAccount(name="anna", heir="ben")
    open_still, locked = box(accounts=(ANNA, BEN)), box(accounts=(replace(ANNA, disabled=True), BEN))
    steps = [step.name for step in operation.plan(open_still).steps]
    assert len(set(steps)) == len(steps)
    for step in steps:
        assert not operation.probe(step, open_still) and not operation.probe(step, locked)
    for answer, facts in (("P", open_still), ("P", locked), ("L", open_still)):
        commands.answers["passwd"] = f"anna {answer} 2026-11-20 0 99999 7 -1\n"
        assert "may still be able to use shares" in operation.recovery_hint("lock", facts)
    assert "is disabled but still there" in operation.recovery_hint("user", locked)
    assert operation.recovery_hint("user", box(accounts=(BEN,))) == "anna was removed."


@pytest.mark.parametrize(
    ("heir", "left"),
    [("", '{"smb":{"name":"photos","read":["ben"]}}'), ("ben", '{"smb":{"name":"photos","write":["ben"]}}')],
)
def test_removed_user_is_dropped_from_approved_shares(commands, users, monkeypatch, heir, left):
    setting = {"smb": {"name": "photos", "write": ["anna"], "read": ["ben"]}}
    mine, foreign = (dataset(name, share=json.dumps(setting), share_source="local") for name in ("tank/a", "tank/b"))
    monkeypatch.setattr(approved, "read_approved", lambda: frozenset({mine.guid}))
    again: list[object] = []
    monkeypatch.setattr(publish, "republish_quietly", again.append)
    work = Working()
    drop_from_shares.drop_user("anna", heir, box(datasets=(mine, foreign)), work)
    assert [argv for argv in commands.ran if argv[0] == "zfs"] == [["zfs", "set", f"larder:share={left}", "tank/a"]]
    assert again == [work]


def test_user_unknown_to_samba_can_be_removed(commands, users):
    work = run(RemoveAccount(name="anna"), box(accounts=(ANNA,)))
    assert commands.ran[-1] == ["userdel", "--", "anna"]
    assert "smbpasswd" not in commands.tools
    assert "Samba does not know anna" in work.notes


def test_removed_user_is_dropped_from_access_notes(commands, users):
    photos = dataset("tank/photos", access_source="local")
    photos = replace(
        photos,
        access=encode_note(
            AccessNote(guid=photos.guid, people={"anna": "change", "ben": "read"}, done=True).with_numbers(
                box(accounts=(ANNA, BEN))
            )
        ),
    )
    run(RemoveAccount(name="anna"), box(accounts=(ANNA, BEN), datasets=(photos,)))
    written = next(argv for argv in commands.ran if argv[0] == "zfs")
    assert json.loads(written[2].partition("=")[2])["people"] == {"ben": "read"}


def test_heir_gets_higher_level_of_both():
    operation = RemoveAccount(name="anna", heir="ben")
    said = AccessNote(guid=1, people={"anna": "change", "ben": "none"}, done=True)
    assert operation.inherit_rules(said, box(accounts=(ANNA, BEN))).people == {"ben": "change"}


BEFORE = "larder-before-2026.11.21-12.00.00"


def test_folders_get_snapshot_before_files_are_given_away(tmp_path, monkeypatch):
    """Only folders with such files, before the first file, and folders whose access note names the user."""
    done: list[object] = []
    found = {name: dataset(f"tank/{name}", mountpoint=str(tmp_path / name)) for name in ("mine", "other", "ruled")}
    for name in found:
        (tmp_path / name).mkdir()
    (tmp_path / "mine" / "letter").write_text("x")
    facts = box(accounts=(ANNA, BEN), datasets=tuple(found.values()))
    said = AccessNote(guid=found["ruled"].guid, people={"anna": "change"}, done=True).with_numbers(facts)
    found["ruled"] = replace(found["ruled"], access=encode_note(said), access_source="local")
    facts = replace(facts, datasets=tuple(found.values()))
    owner = (tmp_path / "mine" / "letter").stat().st_ino
    monkeypatch.setattr(traversal, "refuse_unless_of", lambda *_given: None)
    monkeypatch.setattr(traversal, "walk_tree", lambda root: owned_by(7, walk_real_tree(root), owner))
    monkeypatch.setattr("appliance.zfs.libzfs.take_snapshots", lambda names, _properties: done.append(names[0]))
    monkeypatch.setattr("os.chown", lambda path, uid, _gid: done.append(uid))
    monkeypatch.setattr("appliance.datasets.permissions.apply_note", lambda dataset, *_given: done.append(dataset.name))
    monkeypatch.setattr("appliance.zfs.pool_sync.sync_pool_of", lambda name: done.append(f"sync {name}"))
    RemoveAccount(name="anna", heir="ben", before=BEFORE).hand_over(7, 1003, facts, Working())
    # The user is removed once the new owner is on the disks: a power cut must not take the files back to nobody.
    assert done == [f"tank/mine@{BEFORE}", 1003, "sync tank/mine", f"tank/ruled@{BEFORE}", "tank/ruled"]


walk_real_tree = traversal.walk_tree


def owned_by(uid: int, found: Iterable[traversal.OpenEntry], inode: int) -> Iterator[traversal.OpenEntry]:
    """Made up: one file belongs to ``uid``, the rest to an unknown number."""
    for one in found:
        owner = uid if one.status.st_ino == inode else 12345
        yield traversal.OpenEntry(one.handle, os.stat_result((*one.status[:4], owner, *one.status[5:])))


def test_plan_mentions_snapshot_only_with_heir():
    facts = box(accounts=(ANNA, BEN))
    plan = checked_plan(RemoveAccount(name="anna", heir="ben", before=BEFORE), facts)
    assert "gets a snapshot first" in plan.summary
    assert f"zfs snapshot -- FOLDER@{BEFORE}" in next(step.command_text for step in plan.steps if step.name == "files")
    assert "snapshot" not in checked_plan(RemoveAccount(name="anna"), facts).summary


def test_remove_refuses_invalid_or_too_long_snapshot_name():
    with expect_refusal("snapshot-name-not-before"):
        RemoveAccount(name="anna", heir="ben", before="x@y")
    facts = box(accounts=(ANNA, BEN), datasets=(dataset(f"tank/{'x' * 230}"),))
    with expect_refusal("folder-name-too-long-for-snapshot"):
        checked_plan(RemoveAccount(name="anna", heir="ben", before=BEFORE), facts)


@pytest.mark.parametrize(("heir", "code"), [("anna", "heir-is-removed"), ("eve", "user-missing")])
def test_remove_refuses_invalid_heir(heir, code):
    with expect_refusal(code):
        checked_plan(RemoveAccount(name="anna", heir=heir), box(accounts=(ANNA, BEN)))


def test_remove_refuses_heir_while_folders_are_locked():
    facts = box(accounts=(ANNA, BEN), datasets=(dataset("tank/vault", key_status="unavailable"),))
    with expect_refusal("folders-locked"):
        checked_plan(RemoveAccount(name="anna", heir="ben"), facts)
    assert checked_plan(RemoveAccount(name="anna"), facts)


def test_remove_warns_about_last_user_of_share():
    facts = box(accounts=(ANNA, BEN), datasets=(shared("tank/photos"),))
    assert (
        "the only one who may use the share of tank/photos"
        in checked_plan(RemoveAccount(name="anna"), facts).warnings[0]
    )


def test_operations_refuse_missing_user():
    for operation in (
        SetPassword(name="anna"),
        RenameAccount(name="anna"),
        EnableAccount(name="anna", enabled=True),
        RemoveAccount(name="anna"),
    ):
        with expect_refusal("user-missing"):
            checked_plan(operation, box())


def test_another_user_of_same_name_changes_digest():
    operation = RemoveAccount(name="anna")
    assert (
        operation.plan(box(accounts=(ANNA,))).digest() != operation.plan(box(accounts=(Account("anna", 7),))).digest()
    )


# Connections


def test_disconnect_ends_only_connections_of_user(commands, monkeypatch):
    mine, another = Connection("smb", "4000001", "Anna", "10.0.0.7"), Connection("smb", "4000002", "ben", "10.0.0.8")
    left = [mine, another, Connection("afp", "4000003", "anna", "")]
    monkeypatch.setattr(
        connections, "read_connections", lambda protocols: tuple(one for one in left if one.protocol in protocols)
    )
    commands.on_run = lambda _argv: left.remove(mine)
    killed: list[tuple[int, int]] = []

    def kill(pid: int, how: int) -> None:
        killed.append((pid, how))
        left.pop()

    monkeypatch.setattr("os.kill", kill)
    work = Working()
    disconnect.disconnect_user("anna", work)
    assert commands.ran == [["smbcontrol", "4000001", "shutdown"]]
    assert killed == [(4000003, signal.SIGTERM)]
    assert work.notes == ["2 connections were ended"]


@pytest.mark.parametrize("said", ["", "nonsense", "[]", '{"sessions": []}', '{"sessions": {}}'])
def test_disconnect_ends_nothing_without_connections(commands, said):
    commands.answers["smbstatus"] = said
    work = Working()
    disconnect.disconnect_user("anna", work)
    assert commands.tools == ["smbstatus"]
    assert work.notes == ["anna was not connected"]


# Groups


def test_create_group_sets_number_and_members(commands, users):
    run(CreateGroup(name="club", members=("anna",)), box(accounts=(ANNA,)))
    assert commands.ran == [["groupadd", "--gid", "20000", "--", "club"], ["gpasswd", "--members", "anna", "club"]]


def test_set_members_empties_group_and_refuses_unknown_users(commands, users):
    facts = box(accounts=(ANNA,), groups=(FAMILY,))
    run(SetMembers(name="family"), facts)
    assert commands.ran == [["gpasswd", "--members", "", "family"]]
    with expect_refusal("user-missing"):
        checked_plan(SetMembers(name="family", members=("eve",)), facts)


def test_removed_group_is_dropped_from_access_notes(commands, users):
    photos = dataset("tank/photos", access_source="local")
    photos = replace(
        photos,
        access=encode_note(
            AccessNote(guid=photos.guid, groups={"family": "change"}, done=True).with_numbers(box(groups=(FAMILY,)))
        ),
    )
    facts = box(groups=(FAMILY,), datasets=(photos,))
    assert checked_plan(RemoveGroup(name="family"), facts).warnings == ("It has access to tank/photos.",)
    run(RemoveGroup(name="family"), facts)
    assert json.loads(commands.ran[0][2].partition("=")[2])["groups"] == {}
    assert commands.ran[-1] == ["groupdel", "--", "family"]


# Reading


def test_read_accounts_lists_users_by_primary_group(monkeypatch):
    monkeypatch.setattr("grp.getgrnam", lambda _name: SimpleNamespace(gr_gid=900))
    people = [
        ("root", 0, 0, ""),
        ("zoe", 1002, 900, "Zoë,,,,disabled"),
        ("anna", 1001, 900, "Anna"),
        ("guest", 1003, 901, ""),
    ]
    rows = [pwd.struct_passwd((name, "x", uid, gid, gecos, "/", "/")) for name, uid, gid, gecos in people]
    monkeypatch.setattr("pwd.getpwall", lambda: rows)
    assert accounts.read_accounts() == (Account("anna", 1001, "Anna"), Account("zoe", 1002, "Zoë", disabled=True))


def test_read_groups_ignores_system_groups(monkeypatch):
    rows = [grp.struct_group(("sudo", "x", 27, ["admin"])), grp.struct_group(("family", "x", 20000, ["zoe", "anna"]))]
    monkeypatch.setattr("grp.getgrall", lambda: rows)
    assert accounts.read_groups() == (Group("family", 20000, ("anna", "zoe")),)


def test_read_accounts_is_empty_without_group(monkeypatch):
    def missing(_name):
        raise KeyError

    monkeypatch.setattr("grp.getgrnam", missing)
    assert accounts.read_accounts() == ()
