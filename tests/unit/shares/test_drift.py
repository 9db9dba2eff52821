"""Hand edits: seen, shown, adopted where settings can say the same, and never lost."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from appliance.agent import registry
from appliance.errors import Failed, Refused
from appliance.facts.box import Facts, Pool
from appliance.facts.sharing import Account, Group
from appliance.operation import Operation, as_json, checked_plan
from appliance.shares import afp, approved, discovery, nfs, publish, reconcile, smb
from appliance.shares.approve import ApproveShares
from appliance.shares.drift import detect, parse
from appliance.shares.drift.resolve import AdoptDrift, OverwriteDrift
from appliance.shares.owned_file import OwnedFile
from appliance.shares.publish import SERVING
from appliance.shares.set_share import SetShare
from appliance.shares.settings import Afp, Nfs, ShareSetting, Smb, setting_of
from appliance.zfs import status
from tests.reasons import codes, expect_refusal
from tests.unit.made import dataset, shared
from tests.unit.pools.test_create import Working

SETTING = {
    "smb": {"name": "photos", "write": ["anna"], "read": ["ben"], "time_machine": 5 * 10**9},
    "nfs": {"hosts": ["192.168.1.0/24", "10.0.0.7"]},
    "afp": {"name": "photos", "write": ["anna", "@family"], "time_machine": 5 * 10**9},
}
PEOPLE = (Account("anna", 1001), Account("ben", 1002))
BOX = Facts(
    datasets=(shared(share=json.dumps(SETTING)), dataset("tank/films"), dataset("tank/music", mounted=False)),
    accounts=PEOPLE,
    groups=(Group("family", 20000, ("anna",)),),
)
RENDERED = {"smb": smb.render_config(BOX), "nfs": nfs.render_exports(BOX), "afp": afp.render_config(BOX)}


@pytest.mark.parametrize("key", ["smb", "nfs", "afp"])
@pytest.mark.parametrize(
    "edit",
    [
        lambda text: text,
        lambda text: text + "\n# a remark of the owner's\n\n",
        lambda text: text.replace("\n", "\n\n"),
        lambda text: "# by hand\n" + text,
    ],
)
def test_comments_and_spacing_alone_change_no_setting(key, edit):
    assert parse.parse_changes(key, edit(RENDERED[key]), BOX) == ((), ())


EDITS: list[tuple[str, str, str, dict[str, Any] | None]] = [
    ("smb", "[photos]", "[pictures]", {"name": "pictures"}),
    ("smb", "read list = ben", "# nobody only reads", None),
    ("smb", "browseable = yes", "browsable = No", {"hidden": True}),
    ("smb", "create mask = 0760", "create mask = 0760\n   case sensitive = yes", {"exact_case": True}),
    ("smb", "create mask = 0760", "create mask = 0760\n   smb encrypt = required", {"encrypt": True}),
    ("smb", "max size = 4768M", "max size = 9536M", {"time_machine": 9536 * 2**20}),
    ("nfs", "rw,sync", "ro,sync", {"write": False}),
    ("nfs", "root_squash", "no_root_squash", {"root": True}),
    ("nfs", "sync", "async", {"sync": False}),
    ("nfs", "10.0.0.7(", "10.0.0.8(", {"hosts": ("192.168.1.0/24", "10.0.0.8")}),
    ("afp", "valid users = anna @family", "valid users = anna", {"write": ("anna",)}),
    ("afp", "valid users = anna @family", "valid users = anna @family ben\nrolist = ben", {"read": ("ben",)}),
]


@pytest.mark.parametrize(("key", "old", "new", "changed"), EDITS)
def test_what_settings_can_say_is_read_back_into_them(key, old, new, changed):
    text = RENDERED[key]
    assert old in text
    found, against = parse.parse_changes(key, text.replace(old, new), BOX)
    if changed is None:  # the list of who is let in still says ben
        assert "valid users = anna ben" in " ".join(against)
        return
    assert against == ()
    (only,) = found
    now = setting_of(BOX.datasets[0])
    assert now is not None
    before = {"smb": now.smb, "nfs": now.nfs, "afp": now.afp}[key]
    assert before is not None
    assert only.part == msgspec.structs.replace(before, **changed)


def test_a_limit_that_is_no_whole_mib_stays_exact_when_something_else_is_edited():
    found, _against = parse.parse_changes("smb", RENDERED["smb"].replace("[photos]", "[pictures]"), BOX)
    assert found[0].smb
    assert found[0].smb.time_machine == 5 * 10**9


def test_a_share_taken_out_is_switched_off_and_one_put_in_switched_on():
    text = RENDERED["nfs"]
    assert parse.parse_changes("nfs", "", BOX) == ((SetShare.of("tank/photos", "nfs", None),), ())
    more = text + '"/tank/films" 192.168.1.9(rw,sync,root_squash,no_subtree_check,insecure,mountpoint)\n'
    assert parse.parse_changes("nfs", more, BOX) == (
        (SetShare.of("tank/films", "nfs", Nfs(hosts=("192.168.1.9",))),),
        (),
    )


def test_what_inherits_goes_along_with_what_it_has_it_from():
    below = dataset("tank/photos/may", share=json.dumps(SETTING), share_source="inherited", share_from="tank/photos")
    box = replace(BOX, datasets=(BOX.datasets[0], below))
    text = smb.render_config(box)
    assert "[photos-may]" in text
    found, against = parse.parse_changes(
        "smb",
        text.replace("write list = anna", "write list = ben")
        .replace("read list = ben", "read list = anna")
        .replace("valid users = anna ben", "valid users = ben anna"),
        box,
    )
    assert against == ()
    assert {one.dataset for one in found} == {"tank/photos", "tank/photos/may"}


@pytest.mark.parametrize(
    ("key", "edit", "said"),
    [
        (
            "smb",
            lambda t: t + "   max connections = 3\n",
            "“max connections = 3” of photos is nothing that Larder can keep",
        ),
        ("smb", lambda t: t.replace("create mask = 0760", "create mask = 0777"), "create mask = 0777"),
        ("smb", lambda t: t.replace("   preexec close = yes\n", ""), "“preexec close = yes” of photos is missing"),
        (
            "smb",
            lambda t: t.replace("[global]\n", "[global]\n   server min protocol = NT1\n", 1),
            "cannot be read as settings",
        ),
        ("smb", lambda t: t.replace("= SMB2_10", "= NT1"), "“server min protocol = NT1” of global"),
        ("smb", lambda t: t + "[etc]\n path = /etc\n", "[etc] serves /etc, which is not a folder of your pools"),
        ("smb", lambda t: t + "[again]\n path = /tank/photos\n", "served twice"),
        ("smb", lambda t: t.replace("[photos]", "[a%Ub]"), "[a%Ub]: A share's name"),
        ("smb", lambda t: t.replace("write list = anna", "write list = root"), "[photos]: "),
        ("smb", lambda t: t + "\nnonsense\n", "cannot be read"),
        ("smb", lambda t: t + "include = /etc/passwd\n", "include"),
        ("nfs", lambda t: t + "/tank/films *(rw)\n", "everybody"),
        (
            "nfs",
            lambda t: t + "/tank/films 192.168.1.9(rw,sync)\n",
            "“192.168.1.9 = rw,sync” of /tank/films: Larder would write",
        ),
        ("nfs", lambda t: t + "/etc 192.168.1.9(rw)\n", "not a folder of your pools"),
        ("nfs", lambda t: t.replace("10.0.0.7(rw", "10.0.0.7(ro"), "10.0.0.7"),
        ("nfs", lambda t: t + "what is this\n", "cannot read this line"),
        ("nfs", lambda t: t + t, "same folder"),
        ("afp", lambda t: t.replace("uams_dhx2.so", "uams_guest.so"), "uams_guest.so"),
        ("afp", lambda t: t.replace("ea = samba", "ea = samba\nroot preexec = /bin/sh"), "root preexec"),
        ("larder.service", lambda _t: "", "follows from what is shared"),
    ],
)
def test_what_settings_cannot_say_is_named_and_not_adopted(key, edit, said):
    found, against = parse.parse_changes(key, edit(RENDERED.get(key, "")), BOX)
    assert said in " ".join(against), (found, against)


@pytest.fixture
def own_files(tmp_path, monkeypatch, commands):
    """Every owned file in a folder of this test's own, daemons that serve what their files say, and a box whose
    settings follow ``zfs set``."""
    box = {one.name: one for one in BOX.datasets}
    for key, one in (("smb", smb.SERVING), ("nfs", nfs.SERVING), ("afp", afp.SERVING)):
        changed = replace(one, owned=OwnedFile(tmp_path / f"larder.{key}", lambda _path: None))
        monkeypatch.setitem(SERVING, key, changed)
    for kind in (smb.SmbServing, nfs.NfsServing, afp.AfpServing):
        monkeypatch.setattr(kind, "take_up", lambda self, _shares: commands.ran.append(["take up", self.name]))
        monkeypatch.setattr(kind, "served", lambda self: frozenset((s.name, s.path) for s in self.configured()))
        monkeypatch.setattr(
            kind, "close", lambda self, gone: commands.ran.extend(["close", self.name, s.name] for s in gone)
        )
    avahi = tmp_path / "services"
    avahi.mkdir()
    monkeypatch.setattr(discovery, "FOLDER", avahi)
    monkeypatch.setattr(approved, "FILE", tmp_path / "agreed")
    approved.set_approved(BOX.datasets[0].guid, share=True)
    monkeypatch.setattr(status, "read_datasets", lambda: tuple(box.values()))
    monkeypatch.setattr("appliance.system.accounts.read_accounts", lambda: PEOPLE)
    monkeypatch.setattr("appliance.system.accounts.read_groups", lambda: BOX.groups)
    commands.answers["systemctl"] = "active\n"

    def on_run(argv: list[str]) -> None:
        if argv[:2] == ["zfs", "set"]:
            for share in (word.partition("=")[2] for word in argv if word.startswith("larder:share=")):
                box[argv[-1]] = replace(box[argv[-1]], share=share, share_source="local")
        if argv[:2] == ["zfs", "inherit"]:
            box[argv[-1]] = replace(box[argv[-1]], share="", share_source="none")

    commands.on_run = on_run
    publish.publish_shares(publish.agreed_facts())
    return box


def edited(key: str, old: str, new: str) -> detect.Edit:
    """Change an owned file by hand; how it looks on the page."""
    path = detect.owned_of(key).path  # type: ignore[union-attr]
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    (found,) = detect.detect_drift(detect.facts_now())
    assert found.key == key
    return found


def run(operation: Operation) -> Working:
    operation = registry.decode_operation(as_json(operation))  # as the agent gets it
    work = Working()
    for step in checked_plan(operation, detect.facts_now()).steps:
        step.run(work)
        assert operation.probe(step.name, detect.facts_now()), step.name
    return work


def test_files_as_larder_wrote_them_are_no_drift(own_files):
    assert detect.on_disk() == {}
    assert detect.detect_drift(detect.facts_now()) == []


def test_an_edit_is_shown_line_by_line_without_the_line_that_always_differs(own_files):
    found = edited("smb", "[photos]", "[photos]\n   max connections = 3")
    assert "+   max connections = 3" in found.diff
    assert [line for line in found.diff if line.startswith(("+", "-"))][2:] == ["+   max connections = 3"]
    assert not any("Written by Larder" in line for line in found.diff)
    assert not found.adoptable
    assert found.changes == ()


def test_a_hostile_file_makes_a_diff_of_bounded_size(own_files):
    path = detect.owned_of("nfs").path  # type: ignore[union-attr]
    path.write_bytes(b"\xff\x00" * 3000 + b"\n" + b"x\n" * 5000)
    (found,) = detect.detect_drift(detect.facts_now())
    assert len(found.diff) == detect.MOST_LINES
    assert max(map(len, found.diff)) <= detect.LONGEST_LINE
    assert found.left_out > 4000
    assert not found.adoptable


def test_a_file_that_cannot_be_read_is_one_that_was_changed(own_files, monkeypatch):
    def refuse(_self: OwnedFile) -> bool:
        raise PermissionError

    monkeypatch.setattr(OwnedFile, "drifted", refuse)
    assert detect.on_disk()["smb"].seen == detect.UNREADABLE


def test_overwriting_keeps_the_edit_as_a_copy_that_no_daemon_reads(own_files, commands):
    found = edited("smb", "[photos]", "[pictures]")
    by_hand = detect.owned_of("smb").path.read_bytes()  # type: ignore[union-attr]
    work = run(OverwriteDrift(file="smb", seen=found.seen))
    now = detect.on_disk()["smb"]
    assert not now.seen
    (copy,) = now.copies
    assert copy in " ".join(work.notes)
    assert Path(copy).read_bytes() == by_hand
    assert "[photos]" in detect.owned_of("smb").path.read_text()  # type: ignore[union-attr]
    assert ["close", "smb", "pictures"] in commands.ran


def test_adopting_sets_the_folder_and_the_file_is_larders_again(own_files):
    found = edited("smb", "[photos]", "[pictures]")
    assert found.adoptable
    run(AdoptDrift(file="smb", seen=found.seen, changes=found.changes))
    setting = setting_of(own_files["tank/photos"])
    assert setting
    assert setting.smb == Smb(name="pictures", write=("anna",), read=("ben",), time_machine=5 * 10**9)
    assert setting.nfs == Nfs(hosts=("192.168.1.0/24", "10.0.0.7"))
    assert not detect.on_disk()["smb"].seen
    assert "[pictures]" in detect.owned_of("smb").path.read_text()  # type: ignore[union-attr]


def test_adopting_shows_the_commands_that_run_with_the_limit_of_time_machine(own_files, commands):
    found = edited("smb", "max size = 4768M", "max size = 9536M")
    operation = AdoptDrift(file="smb", seen=found.seen, changes=found.changes)
    _keep, adopt = checked_plan(operation, detect.facts_now()).steps
    run(operation)
    ran = [shlex.join(argv) for argv in commands.ran if argv[:2] == ["zfs", "set"]]
    assert len(ran) == 1
    assert f"refquota={9536 * 2**20}" in ran[0]
    assert [line for line in adopt.command_text.splitlines() if line.startswith("zfs ")] == ran


def test_an_adopted_share_of_a_folder_that_was_not_shared_is_agreed_to(own_files):
    line = '"/tank/films" 192.168.1.9(rw,sync,root_squash,no_subtree_check,insecure,mountpoint)\n"/tank/photos"'
    found = edited("nfs", '"/tank/photos"', line)
    run(AdoptDrift(file="nfs", seen=found.seen, changes=found.changes))
    assert own_files["tank/films"].guid in approved.read_approved()
    setting = setting_of(own_files["tank/films"])
    assert setting
    assert setting.nfs == Nfs(hosts=("192.168.1.9",))


def test_adopting_one_share_approves_nothing_else_that_an_imported_disk_carries(own_files):
    theirs = ShareSetting(nfs=Nfs(hosts=("10.0.0.0/8",), root=True))
    own_files["tank/films"] = replace(own_files["tank/films"], share=theirs.text(), share_source="local")
    text = afp.render_config(
        Facts(
            datasets=(
                replace(own_files["tank/films"], share=json.dumps({"afp": {"name": "films", "write": ["anna"]}})),
            ),
            accounts=PEOPLE,
        )
    )
    path = detect.owned_of("afp").path  # type: ignore[union-attr]
    path.write_text(path.read_text() + text.partition("\n\n")[2])
    (found,) = detect.detect_drift(detect.facts_now())
    run(AdoptDrift(file="afp", seen=found.seen, changes=found.changes))
    assert own_files["tank/films"].share == ShareSetting(afp=Afp(name="films", write=("anna",))).text()


def test_comments_alone_can_be_adopted_too(own_files):
    found = edited("afp", "[photos]", "# for the old iMac\n[photos]")
    assert found.adoptable
    run(AdoptDrift(file="afp", seen=found.seen, changes=found.changes))
    assert "iMac" not in detect.owned_of("afp").path.read_text()  # type: ignore[union-attr]


@pytest.mark.parametrize("step", [0, 1])
@pytest.mark.parametrize("kind", ["adopt", "overwrite"])
def test_an_edit_that_was_changed_again_is_not_the_one_that_was_decided_about(own_files, step, kind):
    found = edited("smb", "[photos]", "[pictures]")
    operation: Operation = OverwriteDrift(file="smb", seen=found.seen)
    if kind == "adopt":
        operation = AdoptDrift(file="smb", seen=found.seen, changes=found.changes)
    steps = checked_plan(operation, detect.facts_now()).steps
    for one in steps[:step]:
        one.run(Working())
    path = detect.owned_of("smb").path  # type: ignore[union-attr]
    path.write_text(path.read_text() + "# more\n")
    before = path.read_bytes()
    with expect_refusal("file-changed-again"):
        steps[step].run(Working())
    assert path.read_bytes() == before
    assert not operation.probe("write" if kind == "overwrite" else "adopt", detect.facts_now())


@pytest.mark.parametrize("kind", ["adopt", "overwrite"])
def test_where_the_daemon_does_not_serve_it_the_edit_is_back_as_it_was(own_files, monkeypatch, kind):
    found = edited("smb", "[photos]", "[pictures]")
    path = detect.owned_of("smb").path  # type: ignore[union-attr]
    by_hand, setting = path.read_bytes(), own_files["tank/photos"].share
    monkeypatch.setattr(publish, "SECONDS_TO_TAKE_UP", 0)
    monkeypatch.setattr(smb.SmbServing, "served", lambda _self: frozenset())
    operation: Operation = OverwriteDrift(file="smb", seen=found.seen)
    if kind == "adopt":
        operation = AdoptDrift(file="smb", seen=found.seen, changes=found.changes)
    with pytest.raises(Failed, match="not served"):
        run(operation)
    assert path.read_bytes() == by_hand
    assert own_files["tank/photos"].share == setting
    assert detect.on_disk()["smb"].seen == found.seen


def test_changes_that_the_file_does_not_say_are_refused(own_files):
    found = edited("smb", "[photos]", "[pictures]")
    other = SetShare.of("tank/films", "smb", Smb(name="films", write=("ben",)))
    with expect_refusal("share-settings-changed"):
        run(AdoptDrift(file="smb", seen=found.seen, changes=(*found.changes, other)))
    assert not own_files["tank/films"].share


def test_an_edited_announcement_is_written_over_or_taken_away(own_files):
    name = f"larder-nfs-{BOX.datasets[0].guid}.service"
    for key in (discovery.BOX, name):
        path = discovery.FOLDER / key
        path.write_text(path.read_text().replace("<port>", "<!-- mine --><port>"))
    found = {one.key: one for one in detect.detect_drift(detect.facts_now())}
    assert set(found) == {discovery.BOX, name}
    assert not found[name].adoptable
    run(OverwriteDrift(file=discovery.BOX, seen=found[discovery.BOX].seen))
    assert "mine" not in (discovery.FOLDER / discovery.BOX).read_text()
    approved.set_approved(BOX.datasets[0].guid, share=False)
    run(OverwriteDrift(file=name, seen=found[name].seen))
    assert not (discovery.FOLDER / name).exists()
    assert all(not one.seen and one.copies for one in detect.on_disk().values())
    assert not [path for path in discovery.FOLDER.glob("*.service") if "by-hand" in path.name]


@pytest.mark.parametrize(
    "file", ["", "../larder.conf", "global", "larder.service\n", "larder-nfs-x.service", "/etc/passwd"]
)
def test_no_other_file_can_be_named(file):
    with pytest.raises(Refused):
        OverwriteDrift(file=file, seen="0" * 64)
    with pytest.raises(Refused):
        AdoptDrift(file=file, seen="0" * 64, changes=())


@pytest.mark.parametrize("seen", ["", "x" * 64, "0" * 63, "0" * 65, "../" + "0" * 61, "A" * 64])
def test_no_other_content_can_be_named(seen):
    with pytest.raises(Refused):
        OverwriteDrift(file="smb", seen=seen)


def test_a_folder_that_is_gone_is_said(own_files):
    found = edited("smb", "[photos]", "[pictures]")
    operation = AdoptDrift(file="smb", seen=found.seen, changes=found.changes)
    assert "folder-missing" in codes(operation.check(Facts()))


# --- after a start ----------------------------------------------------------------------------------------------------
def reconcile_now() -> list[str]:
    notes: list[str] = []
    reconcile.reconcile_files(publish.agreed_facts(), status.read_datasets(), notes.append)
    return notes


def test_files_that_say_what_the_folders_say_are_left_alone_after_a_start(own_files, commands):
    commands.ran.clear()
    assert reconcile_now() == []
    assert commands.ran == []


def test_share_switched_off_as_the_power_went_is_not_served_after_the_start(own_files, commands):
    """The setting is stored before the file is written; the page says off and Samba would go on serving."""
    own_files["tank/photos"] = replace(own_files["tank/photos"], share=json.dumps({"nfs": SETTING["nfs"]}))
    notes = reconcile_now()
    assert SERVING["smb"].configured() == ()
    assert ["close", "smb", "photos"] in commands.ran
    assert "SMB was not as the folders say, and is now" in notes


def test_folder_renamed_as_the_power_went_is_served_from_its_new_place(own_files):
    own_files["tank"] = dataset("tank")
    own_files["tank/pictures"] = replace(
        own_files.pop("tank/photos"), name="tank/pictures", mountpoint="/tank/pictures"
    )
    reconcile_now()
    assert {share.path for one in SERVING.values() for share in one.configured()} == {"/tank/pictures"}


def test_shares_of_a_pool_that_is_away_stay_in_their_files(own_files):
    own_files.clear()
    own_files["safe"] = dataset("safe")
    assert reconcile_now() == []
    assert [share.name for share in SERVING["smb"].configured()] == ["photos"]


def test_start_leaves_a_hand_edit_to_the_owner_and_brings_the_others_up_to_date(own_files):
    edited("smb", "[photos]", "[pictures]")
    own_files["tank/photos"] = replace(own_files["tank/photos"], share="", share_source="none")
    reconcile_now()
    assert [share.name for share in SERVING["smb"].configured()] == ["pictures"]
    assert SERVING["nfs"].configured() == SERVING["afp"].configured() == ()


def test_daemon_that_fails_at_the_start_stops_no_other(own_files, monkeypatch):
    own_files["tank/photos"] = replace(own_files["tank/photos"], share="", share_source="none")

    def fail(_self: object, _shares: object) -> None:
        raise Failed("smbd could not be started")

    monkeypatch.setattr(smb.SmbServing, "take_up", fail)
    assert any("smbd could not be started" in note for note in reconcile_now())
    assert SERVING["nfs"].configured() == SERVING["afp"].configured() == ()


# --- several protocols at once ----------------------------------------------------------------------------------------
def test_manual_change_of_one_file_keeps_no_other_protocol_from_being_served(own_files):
    edited("smb", "[photos]", "[pictures]")
    more = {"nfs": {"hosts": ["192.168.1.0/24"]}, "afp": {"name": "films", "write": ["anna"]}}
    own_files["tank/films"] = replace(own_files["tank/films"], share=json.dumps(more), share_source="local")
    approved.set_approved(own_files["tank/films"].guid, share=True)
    work = Working()
    publish.republish_quietly(work)
    assert [share.name for share in SERVING["smb"].configured()] == ["pictures"]
    for key in ("nfs", "afp"):
        assert "/tank/films" in {share.path for share in SERVING[key].configured()}
    assert (discovery.FOLDER / f"larder-nfs-{own_files['tank/films'].guid}.service").exists()
    assert len([note for note in work.notes if "larder.smb was changed by hand" in note]) == 1


def fail_once(monkeypatch: pytest.MonkeyPatch, kind: type, commands: Any) -> None:
    """The daemon refuses new settings, and takes the former ones again."""
    left = [Failed("It does not answer")]

    def take_up(self: Any, _shares: object) -> None:
        commands.ran.append(["take up", self.name])
        if left:
            raise left.pop()

    monkeypatch.setattr(kind, "take_up", take_up)


def test_afp_that_cannot_be_turned_on_leaves_the_smb_share_as_it_was(own_files, commands, monkeypatch):
    own_files["tank/photos"] = replace(own_files["tank/photos"], share=json.dumps({"smb": SETTING["smb"]}))
    publish.publish_shares(publish.agreed_facts())
    before = SERVING["smb"].owned.path.read_text()
    fail_once(monkeypatch, afp.AfpServing, commands)
    commands.ran.clear()
    with pytest.raises(Failed, match="does not answer"):
        run(SetShare.of("tank/photos", "afp", Afp(name="photos", write=("anna",))))
    assert "fruit:metadata = netatalk" not in before
    assert SERVING["smb"].owned.path.read_text() == before
    took_up = [argv[1] for argv in commands.ran if argv[0] == "take up"]
    assert took_up == ["smb", "afp", "afp", "smb"]


def test_user_who_was_removed_stays_out_of_smb_where_nfs_fails(own_files, commands, monkeypatch):
    without = {**SETTING, "smb": {"name": "photos", "write": ["ben"]}}
    own_files["tank/photos"] = replace(own_files["tank/photos"], share=json.dumps(without))
    fail_once(monkeypatch, nfs.NfsServing, commands)
    with pytest.raises(Failed, match="does not answer"):
        publish.publish_shares(publish.agreed_facts(), insist=False)
    assert "anna" not in SERVING["smb"].owned.path.read_text()


def test_approved_shares_are_all_off_again_where_one_protocol_fails(own_files, commands, monkeypatch):
    approved.set_approved(BOX.datasets[0].guid, share=False)
    publish.publish_shares(publish.agreed_facts())
    fail_once(monkeypatch, nfs.NfsServing, commands)
    pool = Pool("tank", 7, "ONLINE")
    plan = checked_plan(ApproveShares(pool="tank", guid=7), replace(BOX, pools=(pool,)))
    with pytest.raises(Failed, match="does not answer"):
        plan.steps[0].run(Working())
    assert approved.read_approved() == frozenset()
    assert all(one.configured() == () for one in SERVING.values())
