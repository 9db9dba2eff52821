from __future__ import annotations

import configparser
import json
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.facts.datasets import Dataset
from appliance.facts.sharing import Account, Group
from appliance.shares import samba_defaults, smb
from appliance.shares.drift import parse
from appliance.shares.settings import PROTOCOLS, Afp, Nfs, ShareSetting, Smb, setting_of
from appliance.zfs import status
from tests.reasons import expect_refusal
from tests.unit.made import ANNA, box, dataset, recorded, recorded_text, shared

# What a plain share has; the others only where somebody wants them.
KEYS = {
    "path",
    "read only",
    "browseable",
    "guest ok",
    "valid users",
    "write list",
    "force group",
    "vfs objects",
    "shadow:snapdir",
    "shadow:sort",
    "shadow:snapdirseverywhere",
    "shadow:crossmountpoints",
    "shadow:format",
    "shadow:snapprefix",
    "shadow:delimiter",
    "create mask",
    "directory mask",
    "preexec",
    "preexec close",
    "inherit acls",
}
GLOBAL_KEYS = {
    "server min protocol",
    "vfs objects",
    "fruit:metadata",
    "fruit:model",
    "unix password sync",
    "multicast dns register",
}


def sections(text: str) -> dict[str, dict[str, str]]:
    """The file as Samba would divide it; fails on a line that is neither section, setting
    nor comment, and on doubles."""
    parser = configparser.RawConfigParser(
        delimiters=("=",), comment_prefixes=("#", ";"), empty_lines_in_values=False, default_section="none at all"
    )
    parser.read_string("\n".join(line.strip() for line in text.splitlines()))
    assert not any(line.rstrip().endswith("\\") for line in text.splitlines())
    return {name: dict(parser[name]) for name in parser.sections()}


def render(datasets: Iterable[Dataset], people: Iterable[str]) -> str:
    """The file for these datasets, with accounts of these names."""
    return smb.render_config(
        box(datasets=tuple(datasets), accounts=tuple(Account(name, 1001) for name in sorted(people)))
    )


def smb_part(**fields: Any) -> str:
    """A property as it may come along with disks."""
    return json.dumps({"smb": fields})


def test_it_renders_a_share_that_only_its_accounts_may_use():
    (photos,) = (body for name, body in sections(render([shared()], ["anna"])).items() if name == "photos")
    assert set(photos) == KEYS
    assert (photos["path"], photos["valid users"], photos["guest ok"]) == ("/tank/photos", "anna", "no")
    assert photos["preexec"] == '/usr/bin/mountpoint -q "/tank/photos"'


def test_nothing_shared_is_a_file_with_globals_only():
    assert set(sections(render([dataset()], ["anna"]))) == {"global"}


def test_the_recorded_dataset_with_half_a_setting_is_not_served():
    datasets = list(status.parse_datasets(recorded("zfs-list-2.3.9.json")))
    assert any(found.share for found in datasets)
    assert set(sections(render(datasets, ["anna"]))) == {"global"}


def test_the_same_facts_always_make_the_same_text():
    datasets = [shared(), shared("tank/music")]
    assert render(datasets, ["anna", "berta"]) == render(datasets, ["berta", "anna"])


def test_a_share_whose_accounts_are_all_gone_lets_nobody_in():
    assert sections(render([shared()], ["berta"]))["photos"]["valid users"] == "larder-nobody"


def test_a_share_for_nobody_does_not_become_a_share_for_everybody():
    setting = json.dumps({"smb": {"name": "photos", "write": []}})
    assert sections(render([shared(share=setting)], ["anna"]))["photos"]["valid users"] == "larder-nobody"


def test_a_group_that_is_not_here_is_nobody_of_this_box():
    setting = json.dumps({"smb": {"name": "photos", "write": ["@strangers"]}})
    assert sections(render([shared(share=setting)], ["anna"]))["photos"]["valid users"] == "larder-nobody"


def test_no_person_can_have_the_account_that_stands_for_nobody():
    setting = json.dumps({"smb": {"name": "photos", "write": ["larder-nobody"]}})
    assert set(sections(render([shared(share=setting)], ["larder-nobody"]))) == {"global"}


def test_the_first_of_two_shares_of_one_name_wins():
    second = shared("pond/photos", share=json.dumps({"smb": {"name": "PHOTOS", "write": ["anna"]}}))
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
    setting = json.dumps({"smb": {"name": text, "write": ["anna"]}})
    assert render([shared(share=setting)], ["anna"]) == render([], ["anna"])


@pytest.mark.parametrize(
    "text",
    [text for text in HOSTILE_TEXT if text not in {"global", "homes"}] + ["root", "+wheel", "anna, root", "@", "@root"],
)
def test_a_hostile_user_on_foreign_disks_is_not_let_in(text):
    setting = json.dumps({"smb": {"name": "photos", "write": [text]}})
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
        '{"smb":{}}',
        '{"smb":{"name":7}}',
        '{"smb":{"name":"a","write":"anna"}}',
        '{"smb":{"name":null}}',
        '{"smb":{"name":["a"]}}',
        '{"smb":{"name":"a","guest":"perhaps"}}',
        '{"smb":{"name":"a","time_machine":-1}}',
        '{"smb":{"name":"a","time_machine":1e30}}',
        '{"smb":{"name":"a","write":["anna"],"read":["anna"]}}',
        "[" * 5000,
        "�",
        "on",
        "-",
    ],
)
def test_a_setting_that_is_none_is_passed_over_and_silences_no_other(share):
    assert list(sections(render([shared("tank/x", share=share), shared()], ["anna"]))) == ["global", "photos"]


@pytest.mark.parametrize("source", ["none", "default", "temporary"])
def test_a_setting_that_is_neither_the_datasets_own_nor_came_to_it_is_not_served(source):
    assert render([shared(share_source=source)], ["anna"]) == render([], ["anna"])


@pytest.mark.parametrize("changes", [{"kind": "volume"}, {"canmount": "off"}, {"canmount": "noauto"}])
def test_what_is_not_meant_to_be_mounted_is_not_served(changes):
    assert render([shared(**changes)], ["anna"]) == render([], ["anna"])


@given(name=st.text(max_size=80), user=st.text(max_size=40), place=st.text(max_size=80))
def test_whatever_disks_say_the_file_holds_only_what_the_template_has(name, user, place):
    setting = json.dumps({"smb": {"name": name, "write": ["anna", user]}})
    text = render([shared(share=setting, mountpoint=f"/{place}"), shared("tank/music")], ["anna", user])
    for section, body in sections(text).items():
        assert set(body) == (GLOBAL_KEYS if section == "global" else KEYS)
        assert not any("%" in value for key, value in body.items() if key != "shadow:format")
    assert "music" in sections(text) or name.lower() == "music"


@given(share=st.text(max_size=200) | st.binary(max_size=100).map(lambda raw: raw.decode(errors="replace")))
def test_no_property_whatever_breaks_the_file(share):
    assert "photos" in sections(render([shared("tank/x", share=share), shared()], ["anna"]))


def part_of(**fields: Any) -> dict[str, str]:
    """The section of one share with these settings."""
    share = ShareSetting(smb=Smb(**{"name": "photos", "write": ("anna",), **fields})).text()
    return sections(render([shared(share=share)], ["anna", "ben"]))["photos"]


def test_who_only_reads_is_let_in_and_may_not_write():
    found = part_of(read=("ben",))
    assert (found["read only"], found["write list"], found["read list"]) == ("yes", "anna", "ben")
    assert found["valid users"] == "anna ben"


def test_a_group_of_this_box_is_let_in():
    share = ShareSetting(smb=Smb(name="photos", write=("@family",))).text()
    text = smb.render_config(box(datasets=(shared(share=share),), groups=(Group("family", 1100, ("anna",)),)))
    assert sections(text)["photos"]["valid users"] == "@family"


@pytest.mark.parametrize(
    ("guest", "read_only", "ok"), [("no", "yes", "no"), ("read", "yes", "yes"), ("write", "no", "yes")]
)
def test_guests_come_in_only_where_they_are_allowed(guest, read_only, ok):
    found = part_of(guest=guest)
    assert (found["read only"], found["guest ok"]) == (read_only, ok)
    assert ("valid users" in found) == (guest == "no")


def test_an_unknown_name_becomes_a_guest_only_where_some_share_takes_guests():
    """Else the setting of the admin's own smb.conf holds, for the admin's own shares."""
    share = ShareSetting(smb=Smb(name="photos", guest="read")).text()
    assert sections(render([shared(share=share)], []))["global"]["map to guest"] == "Bad User"
    assert "map to guest" not in sections(render([shared()], ["anna"]))["global"]


def test_each_wish_is_in_the_file_in_sambas_words():
    found = part_of(hidden=True, encrypt=True, exact_case=True, recycle=True, time_machine=5 * 10**9)
    assert (found["browseable"], found["smb encrypt"], found["case sensitive"]) == ("no", "required", "yes")
    assert found["vfs objects"] == "shadow_copy2 recycle catia fruit streams_xattr"
    assert (found["fruit:time machine"], found["fruit:time machine max size"]) == ("yes", "4768M")


def test_a_folder_that_netatalk_serves_too_keeps_what_macs_attach_where_netatalk_looks():
    """vfs_fruit(8) and afp.conf(5) ("ea = samba")."""
    both = ShareSetting(smb=Smb(name="both", write=("anna",), mac=False), afp=Afp(name="both", write=("anna",))).text()
    found = sections(render([shared(share=both), shared("tank/music")], ["anna"]))
    assert {key: value for key, value in found["both"].items() if key.startswith(("fruit:", "streams_xattr:"))} == {
        "fruit:metadata": "netatalk",
        "fruit:resource": "file",
        "fruit:locking": "netatalk",
        "fruit:encoding": "native",
        "streams_xattr:prefix": "user.",
        "streams_xattr:store_stream_type": "no",
    }
    assert "fruit" in found["both"]["vfs objects"]
    assert not any(key.startswith("streams_xattr:") for key in found["music"])


def test_larder_alone_announces_and_new_files_take_the_rules_of_their_folder():
    found = sections(render([shared()], ["anna"]))
    assert found["global"]["multicast dns register"] == "no"
    assert found["photos"]["inherit acls"] == "yes"


def test_what_macs_need_is_in_all_shares_or_in_none():
    plain, mac = (ShareSetting(smb=Smb(name=name, guest="read", mac=name == "mac")).text() for name in ("plain", "mac"))
    both = sections(render([shared(share=plain), shared("tank/mac", share=mac)], []))
    assert all("fruit" in section["vfs objects"] for section in both.values())
    alone = sections(render([shared(share=plain)], []))
    assert not any("fruit" in section["vfs objects"] for section in alone.values())


def test_an_inherited_share_has_a_name_of_its_own_is_hidden_and_takes_no_name_away():
    setting = ShareSetting(smb=Smb(name="photos", write=("anna",), time_machine=10**9)).text()
    child = shared("tank/photos/2024", share=setting, share_source="inherited", share_from="tank/photos")
    other = shared("tank/z", share=ShareSetting(smb=Smb(name="photos-2024", write=("anna",))).text())
    found = sections(render([shared(share=setting), child], ["anna"]))
    assert found["photos-2024"]["browseable"] == "no"
    assert "fruit:time machine" not in found["photos-2024"]
    assert sections(render([child, other], ["anna"]))["photos-2024"]["path"] == "/tank/z"


@pytest.mark.parametrize(("short", "kept"), [("smb", {"nfs", "afp"}), ("afp", {"nfs", "smb"}), ("", {"nfs"})])
def test_inherited_share_with_too_long_a_name_keeps_the_other_protocols(short, kept):
    """``short`` is the protocol whose name becomes too long, empty: both."""
    lengths = {protocol: "n" * (58 if short in {protocol, ""} else 20) for protocol in ("smb", "afp")}
    setting = ShareSetting(
        smb=Smb(name=lengths["smb"], write=("anna",)),
        nfs=Nfs(hosts=("10.0.0.0/8",)),
        afp=Afp(name=lengths["afp"], write=("anna",)),
    )
    child = shared("tank/photos/2024", share=setting.text(), share_source="inherited", share_from="tank/photos")
    found = setting_of(child)
    assert found
    assert {protocol for protocol in PROTOCOLS if found.part(protocol)} == kept
    assert found.nfs == setting.nfs


# What Debian's smb.conf offers without being asked


DEBIANS = (
    "[global]\n   workgroup = WORKGROUP\n\n[homes]\n   comment = Home Directories\n   read only = "
    "yes\n\n[print$]\n   path = /var/lib/samba/printers\n;   write list = root\n"
)


@pytest.fixture
def debian(tmp_path, monkeypatch):
    """The administrator's smb.conf beside what the package ships."""
    own, shipped = tmp_path / "own.conf", tmp_path / "shipped.conf"
    for path in (own, shipped):
        path.write_text(DEBIANS)
    monkeypatch.setattr(samba_defaults, "CONFIG", own)
    monkeypatch.setattr(samba_defaults, "SHIPPED", shipped)
    return own


def test_what_debian_offers_unasked_is_switched_off_and_is_no_share(debian, tmp_path):
    debian.write_text(DEBIANS + "[mine]\n   path = /srv/mine\n[global]\n   include = /etc/samba/larder.conf\n")
    text = render([shared()], ["anna"])
    found = sections(text)
    assert found["homes"] == found["print$"] == {"available": "no"}
    assert "printers" not in found
    assert "mine" not in found
    assert set(smb.parse_sections(text)) == {"photos"}


@pytest.mark.parametrize(
    "change", [("read only = yes", "read only = no"), ("[homes]", "[homes]\n   hide dot files = no")]
)
def test_a_section_that_the_administrator_changed_is_left_alone(debian, change):
    debian.write_text(DEBIANS.replace(*change))
    found = sections(render([shared()], ["anna"]))
    assert "homes" not in found
    assert "print$" in found


def test_a_section_that_is_gone_from_smb_conf_is_not_brought_back(debian):
    debian.write_text("[global]\n")
    assert set(sections(render([shared()], ["anna"]))) == {"global", "photos"}


def test_a_hand_edit_beside_what_is_switched_off_can_be_adopted(debian):
    facts = box(datasets=(shared(),), accounts=(ANNA,))
    text = smb.render_config(facts).replace("browseable = yes", "browseable = no")
    found, reasons = parse.parse_changes("smb", text, facts)
    assert reasons == ()
    assert [one.smb.hidden for one in found if one.smb] == [True]


def test_a_folder_with_two_spaces_in_a_row_is_refused_in_words_and_never_served():
    """testparm 4.22 reads `/tank/two  spaces` as `/tank/two spaces`, which is another folder."""
    folder = shared("tank/two  spaces")
    assert folder.mountpoint == "/tank/two  spaces"
    (reason,) = smb.SERVING.against(folder, Smb(name="two", write=("anna",)), box(accounts=(ANNA,)))
    assert reason.code == "mountpoint-with-two-spaces"
    assert set(sections(render([folder], ["anna"]))) == {"global"}
    assert smb.SERVING.shares(box(datasets=(folder,), accounts=(ANNA,))) == ()
    with expect_refusal("share-name-with-two-spaces"):
        Smb(name="two  spaces")


def test_samba_is_asked_for_each_share_by_name_and_never_for_its_list(commands):
    """What answers with the list starts helpers that took 21 s in the emulated appliance, and 40 MiB."""
    commands.answers["systemctl"] = "active\n"
    commands.answers["testparm"] = "".join(
        f"[{name}]\npath = /tank/{name}\n" for name in ("photos", "open", "nothere", "not here")
    )
    commands.answers["smbclient"] = recorded_text("smbclient-tcon-4.22.11.txt")
    assert smb.SERVING.served() == {("photos", "/tank/photos"), ("open", "/tank/open")}
    (asked,) = (argv for argv in commands.ran if argv[0] == "smbclient")
    assert asked[-1] == 'tcon "photos"; tcon "open"; tcon "nothere"; tcon "not here"'


@pytest.mark.parametrize("said", ["", "tcon to photos successful, tid: 1\n"])
def test_a_samba_that_stops_answering_serves_nothing(commands, said):
    commands.answers["smbclient"] = said
    assert smb.known_shares(["photos", "films"]) == set()


def test_a_name_that_would_be_another_command_is_not_asked_for(commands):
    assert smb.known_shares(['a"; del *']) == set()
    assert not commands.ran
