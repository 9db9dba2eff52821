"""Switching shares on and off, with Samba as the protocol that is driven."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from appliance import command
from appliance.errors import Failed, Refused
from appliance.facts.sharing import Account, Share
from appliance.operation import checked_plan
from appliance.shares import approved, publish, smb
from appliance.shares.owned_file import OwnedFile
from appliance.shares.publish import SERVING
from appliance.shares.set_share import SetShare
from appliance.shares.settings import Afp, Nfs, ShareSetting, Smb, setting_of
from appliance.zfs import status
from tests.unit.made import ANNA, box, dataset, samba_knows, shared
from tests.unit.pools.test_create import Working
from tests.unit.shares.test_smb import HOSTILE_TEXT


def on(**changes: Any) -> SetShare:
    part = Smb(**{"name": "photos", "write": ("anna",), **changes})
    return SetShare.of("tank/photos", "smb", part)


OFF = SetShare.of("tank/photos", "smb", None)


def reasons(operation: SetShare, *datasets: Any) -> str:
    return " ".join(
        f"[{reason.field}] {reason.code}" for reason in operation.check(box(datasets=datasets, accounts=(ANNA,)))
    )


def test_nothing_speaks_against_sharing_a_mounted_folder_with_a_person():
    assert reasons(on(), dataset()) == ""
    assert reasons(OFF, dataset()) == ""


@pytest.mark.parametrize(
    ("operation", "found", "code"),
    [
        (on(), [], "folder-missing"),
        (OFF, [], "folder-missing"),
        (on(), [dataset(canmount="off")], "dataset-not-shareable"),
        (on(), [dataset(mounted=False)], "dataset-not-mounted"),
        (on(), [dataset(key_status="unavailable", mounted=False)], "dataset-locked"),
        (on(), [dataset(mountpoint="/tank/a%U")], "mountpoint-not-shareable"),
        (on(write=()), [dataset()], "[people] share-without-users"),
        (on(write=("berta",)), [dataset()], "[people] user-missing"),
        (on(), [dataset(), shared("pond/photos")], "[name] share-name-taken"),
    ],
)
def test_it_refuses_what_could_not_be_served(operation, found, code):
    assert code in reasons(operation, *found)


def test_a_folder_may_be_shared_again_under_its_own_name():
    assert reasons(on(), shared()) == ""


@pytest.mark.parametrize("text", HOSTILE_TEXT)
def test_it_refuses_hostile_text_in_every_field(text):
    # Names that are only reserved for shares are plain names of datasets and people.
    for changes in ({"name": text}, {"write": (text,)}, {"read": (text,)}):
        if text in {"global", "homes"} and "name" not in changes:
            continue
        with pytest.raises(Refused):
            on(**changes)
    if text not in {" ", "x\x85y", "global", "homes"}:
        with pytest.raises(Refused):
            SetShare.of(text, "smb", None)


def test_a_part_of_another_protocol_is_refused():
    with pytest.raises(Refused):
        SetShare(dataset="tank/photos", protocol="smb", nfs=Nfs(hosts=("10.0.0.0/8",)))


def test_the_setting_it_keeps_is_one_that_it_reads_back():
    kept = dataset(share=on().setting(dataset()).text(), share_source="local")
    setting = setting_of(kept)
    assert setting is not None
    assert setting.smb == on().smb
    assert on().probe("property", box(datasets=(kept,)))
    assert not OFF.probe("property", box(datasets=(kept,)))


def test_switching_one_protocol_leaves_what_the_others_say():
    nfs = Nfs(hosts=("192.168.1.0/24",))
    found = dataset(share=ShareSetting(nfs=nfs).text(), share_source="local")
    assert on().setting(found) == ShareSetting(smb=on().smb, nfs=nfs)
    assert OFF.setting(found) == ShareSetting(nfs=nfs)


@pytest.fixture
def samba(tmp_path, monkeypatch, commands):
    """A box with one dataset whose property follows ``zfs set``, and a Samba that serves what its file says."""
    found = {"share": "", "source": "none"}
    config = tmp_path / "larder.conf"
    monkeypatch.setattr(approved, "FILE", tmp_path / "agreed")
    monkeypatch.setitem(SERVING, "smb", replace(smb.SERVING, owned=OwnedFile(config, smb.check_with_samba)))
    monkeypatch.setattr(status, "read_datasets", lambda: (dataset(share=found["share"], share_source=found["source"]),))
    monkeypatch.setattr("appliance.system.accounts.read_accounts", lambda: (Account("anna", 1001),))
    commands.found = found
    commands.answers["systemctl"] = "active\n"

    def on_run(argv: list[str]) -> None:
        if argv[:2] == ["zfs", "set"]:
            for word in argv[2:-1]:
                name, _, value = word.partition("=")
                found.update({"share": value, "source": "local"} if name == "larder:share" else {name: value})
        if argv[:2] == ["zfs", "inherit"]:
            found.update(share="", source="none")
        text = config.read_text() if config.exists() else ""
        commands.answers["testparm"] = text
        commands.answers["smbclient"] = samba_knows(smb.parse_sections(text), argv)

    commands.on_run = on_run
    return config


def run(operation: SetShare) -> Working:
    work = Working()
    for step in checked_plan(operation, box(datasets=status.read_datasets(), accounts=(ANNA,))).steps:
        step.run(work)
    return work


def test_switching_on_writes_a_checked_file_and_samba_says_that_it_knows_the_share(samba, commands):
    work = run(on())
    assert "photos" in smb.parse_sections(samba.read_text())
    assert work.notes == ["SMB serves tank/photos"]
    assert commands.tools.index("testparm") < commands.tools.index("smbcontrol") < commands.tools.index("smbclient")
    facts = box(datasets=(dataset(share=on().setting(None).text(), share_source="local"),))
    assert all(on().probe(step, facts) for step in ("property", "serve"))


def test_switching_off_throws_out_who_still_has_it_open(samba, commands):
    run(on())
    run(OFF)
    assert smb.parse_sections(samba.read_text()) == {}
    assert ["smbcontrol", "smbd", "close-share", "photos"] in commands.ran


FOREIGN = ShareSetting(
    smb=Smb(name="theirs", guest="write"), nfs=Nfs(hosts=("10.0.0.0/8",), root=True), afp=Afp(name="theirs")
)


@pytest.mark.parametrize("source", ["local", "received"])
def test_one_switch_does_not_approve_what_else_an_imported_disk_carries(samba, commands, source):
    commands.found.update(share=FOREIGN.text(), source=source)
    run(on())
    assert commands.found["share"] == ShareSetting(smb=on().smb).text()


def test_stopping_a_share_of_an_imported_disk_approves_none_of_the_others(samba, commands):
    commands.found.update(share=FOREIGN.text(), source="local")
    run(OFF)
    assert commands.found["share"] == ShareSetting().text()
    assert approved.read_approved() == frozenset()


def test_what_was_approved_here_stays_when_one_switch_moves(samba, commands):
    commands.found.update(share=ShareSetting(nfs=FOREIGN.nfs).text(), source="local")
    approved.set_approved(dataset().guid, share=True)
    run(on())
    assert commands.found["share"] == ShareSetting(smb=on().smb, nfs=FOREIGN.nfs).text()


@pytest.mark.parametrize("agreed", [True, False])
def test_subfolder_keeps_what_it_inherits_only_from_an_approved_folder(samba, monkeypatch, agreed):
    above = dataset("tank", share=FOREIGN.text(), share_source="local")
    below = dataset(share=FOREIGN.text(), share_source="inherited", share_from="tank")
    approved.set_approved(above.guid, share=agreed)
    kept = on().agreed_setting((above, below))
    assert kept.smb == on().smb
    assert kept.nfs == (FOREIGN.nfs if agreed else None)


def test_review_says_that_settings_which_were_never_approved_are_removed():
    found = dataset(share=FOREIGN.text(), share_source="local")
    served = Share("nfs", "/tank/photos", "/tank/photos")
    review = checked_plan(on(), box(datasets=(found,), accounts=(ANNA,)))
    assert "settings for NFS and AFP that are not in use" in " ".join(review.warnings)
    assert "10.0.0.0/8" not in review.steps[0].command_text
    review = checked_plan(on(), box(datasets=(found,), accounts=(ANNA,), shares=(served,)))
    assert "not in use" not in " ".join(review.warnings)
    assert "10.0.0.0/8" in review.steps[0].command_text


def test_a_share_that_samba_does_not_serve_is_taken_back(samba, commands, monkeypatch):
    monkeypatch.setattr(publish, "SECONDS_TO_TAKE_UP", 0)
    follow = commands.on_run

    def forgets(argv: list[str]) -> None:
        follow(argv)
        commands.answers["smbclient"] = samba_knows({"photos"}, argv)

    run(on())
    before = samba.read_text()
    commands.on_run = forgets
    with pytest.raises(Failed, match="is not served"):
        run(on(name="other"))
    assert samba.read_text() == before
    assert approved.read_approved() == {dataset().guid}


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
    facts = box(datasets=(dataset(share=on().setting(None).text(), share_source="local"),))
    samba.write_text(samba.read_text() + "   guest ok = yes\n")
    assert on().probe("property", facts)
    assert not on().probe("serve", facts)


def test_it_locks_the_pool_and_all_shares():
    assert set(on().locks()) == {"tank", "shares"}


def test_the_limit_of_time_machine_is_the_file_systems_too_and_goes_with_it(samba, commands):
    limited = on(time_machine=5 * 10**9)
    run(limited)
    assert next(argv for argv in commands.ran if argv[:2] == ["zfs", "set"])[2] == "refquota=5000000000"
    found = dataset(share=limited.setting(None).text(), share_source="local")
    assert OFF.set_too(found) == ["refquota=none"]
    assert OFF.set_too(dataset()) == on().set_too(dataset()) == []


def test_a_limit_below_what_is_there_is_refused():
    assert "[time_machine]" in reasons(on(time_machine=10**9), dataset(referenced=2 * 10**9))
