from __future__ import annotations

import configparser
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance import command
from appliance.errors import Failed, Refused
from appliance.facts import Account
from appliance.operation import checked_plan
from appliance.shares import smb
from appliance.shares.owned_file import OwnedFile
from appliance.shares.smb import SetShare, render
from appliance.zfs import status
from tests.unit.made import ANNA, box, dataset, recorded, shared
from tests.unit.test_pools import Working

KEYS = {
    "path",
    "read only",
    "browseable",
    "guest ok",
    "valid users",
    "force group",
    "create mask",
    "directory mask",
    "preexec",
    "preexec close",
}
GLOBAL_KEYS = {"server min protocol", "vfs objects", "fruit:metadata", "fruit:model", "unix password sync"}


def sections(text: str) -> dict[str, dict[str, str]]:
    """The file as Samba would divide it; fails on a line that is neither section, setting nor comment, and on doubles."""
    parser = configparser.RawConfigParser(
        delimiters=("=",), comment_prefixes=("#", ";"), empty_lines_in_values=False, default_section="none at all"
    )
    parser.read_string("\n".join(line.strip() for line in text.splitlines()))
    assert not any(line.rstrip().endswith("\\") for line in text.splitlines())
    return {name: dict(parser[name]) for name in parser.sections()}


def test_it_renders_a_share_that_only_its_accounts_may_use():
    (photos,) = (body for name, body in sections(render([shared()], ["anna"])).items() if name == "photos")
    assert set(photos) == KEYS
    assert (photos["path"], photos["valid users"], photos["guest ok"]) == ("/tank/photos", "anna", "no")
    assert photos["preexec"] == '/usr/bin/mountpoint -q "/tank/photos"'


def test_nothing_shared_is_a_file_with_globals_only():
    assert set(sections(render([dataset()], ["anna"]))) == {"global"}


def test_the_recorded_dataset_with_half_a_setting_is_not_served():
    datasets = list(status.datasets_from(recorded("zfs-list-2.3.9.json")))
    assert any(found.share for found in datasets)
    assert set(sections(render(datasets, ["anna"]))) == {"global"}


def test_the_same_facts_always_make_the_same_text():
    datasets = [shared(), shared("tank/music")]
    assert render(datasets, ["anna", "berta"]) == render(datasets, ["berta", "anna"])


def test_a_share_whose_accounts_are_all_gone_lets_nobody_in():
    assert sections(render([shared()], ["berta"]))["photos"]["valid users"] == "larder-nobody"


def test_a_share_for_nobody_does_not_become_a_share_for_everybody():
    setting = json.dumps({"smb": True, "name": "photos", "users": []})
    assert sections(render([shared(share=setting)], ["anna"]))["photos"]["valid users"] == "larder-nobody"


def test_no_person_can_have_the_account_that_stands_for_nobody():
    setting = json.dumps({"smb": True, "name": "photos", "users": ["larder-nobody"]})
    assert set(sections(render([shared(share=setting)], ["larder-nobody"]))) == {"global"}


def test_the_first_of_two_shares_of_one_name_wins():
    second = shared("pond/photos", share=json.dumps({"smb": True, "name": "PHOTOS", "users": ["anna"]}))
    assert list(sections(render([shared(), second], ["anna"]))) == ["global", "photos"]


HOSTILE_TEXT = [
    "x\nroot preexec = /bin/sh -c id",
    "x\r\nroot preexec = /bin/sh",
    "x]\n[global",
    "x]",
    "[x",
    "x; comment",
    "# x",
    "x%Ux",
    "%H",
    "x\\",
    'x"; id; "',
    "x$(id)",
    "x`id`",
    "x\0",
    "x\x85y",
    "x\u2028y",
    "../x",
    "-x",
    "",
    " ",
    "global",
    "homes",
    "IPC$",
]


@pytest.mark.parametrize("text", HOSTILE_TEXT)
def test_a_hostile_share_name_on_foreign_disks_is_not_served(text):
    setting = json.dumps({"smb": True, "name": text, "users": ["anna"]})
    assert render([shared(share=setting)], ["anna"]) == render([], ["anna"])


@pytest.mark.parametrize(
    "text",
    [text for text in HOSTILE_TEXT if text not in {"global", "homes"}] + ["root", "@wheel", "+wheel", "anna, root"],
)
def test_a_hostile_user_on_foreign_disks_is_not_let_in(text):
    setting = json.dumps({"smb": True, "name": "photos", "users": [text]})
    assert render([shared(share=setting)], ["anna", text]) == render([], ["anna"])


@pytest.mark.parametrize(
    "mountpoint",
    [f"/tank/{text}" for text in HOSTILE_TEXT if text not in {"global", "homes", "# x", "-x", "x\x85y", "x\u2028y"}]
    + [
        "/tank/x\x85y",
        "/tank/x\u2028y",
        "/tank/#x",
        "/",
        "/etc",
        "/root",
        "/var/lib/larder",
        "legacy",
        "none",
        "",
        "tank",
        "/tank/x ",
    ],
)
def test_a_hostile_place_on_foreign_disks_is_not_served(mountpoint):
    assert render([shared(mountpoint=mountpoint)], ["anna"]) == render([], ["anna"])


@pytest.mark.parametrize(
    "share",
    [
        "{",
        "[]",
        "null",
        "true",
        "7",
        '"smb"',
        '{"smb":"yes"}',
        '{"smb":1}',
        '{"smb":true}',
        '{"smb":true,"name":7}',
        '{"smb":true,"name":"a","users":"anna"}',
        '{"smb":true,"name":null}',
        '{"smb":true,"name":["a"]}',
        "[" * 5000,
        "�",
        '{"smb":false,"name":"photos","users":["anna"]}',
        "on",
        "-",
    ],
)
def test_a_setting_that_is_none_is_passed_over_and_silences_no_other(share):
    assert list(sections(render([shared("tank/x", share=share), shared()], ["anna"]))) == ["global", "photos"]


@pytest.mark.parametrize("source", ["inherited", "received", "none", "default", "temporary"])
def test_a_setting_that_is_not_the_datasets_own_is_not_served(source):
    assert render([shared(share_source=source)], ["anna"]) == render([], ["anna"])


@pytest.mark.parametrize("changes", [{"kind": "volume"}, {"canmount": "off"}, {"canmount": "noauto"}])
def test_what_is_not_meant_to_be_mounted_is_not_served(changes):
    assert render([shared(**changes)], ["anna"]) == render([], ["anna"])


@given(name=st.text(max_size=80), user=st.text(max_size=40), place=st.text(max_size=80))
def test_whatever_disks_say_the_file_holds_only_what_the_template_has(name, user, place):
    setting = json.dumps({"smb": True, "name": name, "users": ["anna", user]})
    text = render([shared(share=setting, mountpoint=f"/{place}"), shared("tank/music")], ["anna", user])
    for section, body in sections(text).items():
        assert set(body) == (GLOBAL_KEYS if section == "global" else KEYS)
        assert not any("%" in value for value in body.values())
    assert "music" in sections(text) or name.lower() == "music"


@given(share=st.text(max_size=200) | st.binary(max_size=100).map(lambda raw: raw.decode(errors="replace")))
def test_no_property_whatever_breaks_the_file(share):
    assert "photos" in sections(render([shared("tank/x", share=share), shared()], ["anna"]))


def on(**changes: Any) -> SetShare:
    return SetShare(**{"dataset": "tank/photos", "smb": True, "name": "photos", "users": ("anna",), **changes})


OFF = SetShare(dataset="tank/photos", smb=False)


def reasons(operation: SetShare, *datasets: Any) -> str:
    return " ".join(
        f"[{reason.field}] {reason.text}" for reason in operation.check(box(datasets=datasets, accounts=(ANNA,)))
    )


def test_nothing_speaks_against_sharing_a_mounted_folder_with_a_person():
    assert reasons(on(), dataset()) == ""
    assert reasons(OFF, dataset()) == ""


@pytest.mark.parametrize(
    ("operation", "found", "said"),
    [
        (on(), [], "no longer there"),
        (OFF, [], "no longer there"),
        (on(), [dataset(canmount="off")], "not a folder that can be shared"),
        (on(), [dataset(mounted=False)], "not mounted"),
        (on(), [dataset(key_status="unavailable", mounted=False)], "locked"),
        (on(), [dataset(mountpoint="/tank/a%U")], "cannot serve the place"),
        (on(users=()), [dataset()], "[users] Choose at least one"),
        (on(users=("berta",)), [dataset()], "[users] There is no account berta"),
        (on(), [dataset(), shared("pond/photos")], "[name] The share name photos is used for pond/photos"),
    ],
)
def test_it_refuses_what_could_not_be_served(operation, found, said):
    assert said in reasons(operation, *found)


def test_a_folder_may_be_shared_again_under_its_own_name():
    assert reasons(on(), shared()) == ""


@pytest.mark.parametrize("text", HOSTILE_TEXT)
@pytest.mark.parametrize("smb_on", [True, False])
def test_it_refuses_hostile_text_in_every_field(text, smb_on):
    for changes in ({"name": text}, {"users": (text,)}, {"dataset": text}):
        # Names that are only reserved for shares are plain names of datasets and people; off needs no name.
        if (text == "" and not smb_on and "name" in changes) or (text in {"global", "homes"} and "name" not in changes):
            continue
        if "dataset" in changes and text in {" ", "x\x85y"}:
            continue
        with pytest.raises(Refused):
            on(**changes | {"smb": smb_on})


def test_the_setting_it_keeps_is_one_that_it_reads_back():
    kept = dataset(share=on().setting, share_source="local")
    setting = smb.setting_of(kept)
    assert setting is not None
    assert (setting.name, setting.users) == ("photos", ("anna",))
    assert on().happened("property", box(datasets=(kept,)))
    assert not OFF.happened("property", box(datasets=(kept,)))


@pytest.fixture
def samba(tmp_path, monkeypatch, commands):
    """A box with one dataset whose property follows ``zfs set``, and a Samba that lists what its file says."""
    found = {"share": ""}
    config = tmp_path / "larder.conf"
    monkeypatch.setattr(smb, "OWNED", OwnedFile(config, smb.check_with_samba))
    monkeypatch.setattr(status, "read_datasets", lambda: (dataset(share=found["share"], share_source="local"),))
    monkeypatch.setattr("appliance.shares.accounts.read", lambda: (Account("anna", 1001),))

    def on_run(argv: list[str]) -> None:
        if argv[:2] == ["zfs", "set"]:
            found["share"] = argv[2].partition("=")[2]
        names = [name for name in sections(config.read_text()) if name != "global"] if config.exists() else []
        commands.answers["smbclient"] = "".join(f"Disk|{name}|\n" for name in [*names, "IPC$"])

    commands.on_run = on_run
    commands.answers["smbstatus"] = json.dumps({"tcons": {"1": {"service": "photos"}, "2": {"service": "IPC$"}}})
    return config


def run(operation: SetShare) -> Working:
    work = Working()
    for step in checked_plan(operation, box(datasets=(dataset(),), accounts=(ANNA,))).steps:
        step.act(work)
    return work


def test_switching_on_writes_a_checked_file_and_sees_the_share_listed(samba, commands):
    work = run(on())
    assert "photos" in sections(samba.read_text())
    assert work.notes == ["Samba lists the share"]
    assert commands.tools.index("testparm") < commands.tools.index("smbcontrol") < commands.tools.index("smbclient")
    facts = box(datasets=(dataset(share=on().setting, share_source="local"),))
    assert all(on().happened(step, facts) for step in ("property", "config", "serve"))


def test_switching_off_throws_out_who_still_has_it_open(samba, commands):
    run(on())
    run(OFF)
    assert set(sections(samba.read_text())) == {"global"}
    assert ["smbcontrol", "smbd", "close-share", "photos"] in commands.ran


def test_a_share_that_samba_does_not_list_is_taken_back(samba, commands, monkeypatch):
    monkeypatch.setattr(smb, "SECONDS_TO_TAKE_UP", 0)
    run(on())
    before = samba.read_text()
    commands.on_run = lambda argv: commands.answers.update(smbclient="Disk|IPC$|\n")
    with pytest.raises(Failed, match="does not list"):
        run(on(users=("anna", "anna")))
    assert samba.read_text() == before
    assert commands.ran[-1] == ["smbcontrol", "all", "reload-config"]


@pytest.mark.parametrize("said", ['Unknown parameter encountered: "rot"', "Ignoring badly formed line"])
def test_a_file_that_samba_grumbles_at_never_goes_live(samba, commands, monkeypatch, said):
    def grumble(argv, **more):
        result = commands.run(argv, **more)
        return command.Result(result.argv, 0, "", said if argv[0] == "testparm" else "", 0.0)

    monkeypatch.setattr(command, "run", grumble)
    with pytest.raises(Failed, match="does not accept"):
        run(on())
    assert not samba.exists()


def test_its_probe_sees_a_hand_edit(samba):
    run(on())
    facts = box(datasets=(dataset(share=on().setting, share_source="local"),))
    samba.write_text(samba.read_text() + "   guest ok = yes\n")
    assert on().happened("property", facts)
    assert not on().happened("config", facts)


def test_it_locks_the_pool_and_samba():
    assert set(on().locks()) == {"tank", "samba"}
