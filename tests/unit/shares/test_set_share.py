"""Switching shares on and off, with Samba as the protocol that is driven."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from appliance import command
from appliance.errors import Failed, Refused
from appliance.facts.datasets import Dataset, Property
from appliance.facts.sharing import Account, Share
from appliance.formatting import size_text
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
    found = {"share": "", "source": "none", "refquota": "0"}
    config = tmp_path / "larder.conf"
    monkeypatch.setattr(approved, "FILE", tmp_path / "agreed")
    monkeypatch.setitem(SERVING, "smb", replace(smb.SERVING, owned=OwnedFile(config, smb.check_with_samba)))

    def read_datasets() -> tuple[Dataset, ...]:
        limit = {"refquota": Property(found["refquota"].replace("none", "0"), "local")}
        return (dataset(share=found["share"], share_source=found["source"], properties=limit),)

    monkeypatch.setattr(status, "read_datasets", read_datasets)
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


LIMIT = 5 * 10**9


def limited(refquota: int, time_machine: int = LIMIT, **changes: Any) -> Dataset:
    """A folder for Time Machine, or not with 0, that may refer to so many bytes; 0: as many as there are."""
    setting = on(time_machine=time_machine).setting(None).text()
    return dataset(
        **{
            "share": setting,
            "share_source": "local",
            "properties": {"refquota": Property(str(refquota), "local")},
            **changes,
        }
    )


def limits_set(commands: Any) -> list[str]:
    return [word for argv in commands.ran for word in argv if word.startswith("refquota=")]


def test_the_limit_of_time_machine_is_the_file_systems_too_and_goes_with_it(samba, commands):
    run(on(time_machine=LIMIT))
    assert limits_set(commands) == ["refquota=5000000000"]
    run(OFF)
    assert limits_set(commands) == ["refquota=5000000000", "refquota=none"]


@pytest.mark.parametrize("other", [{"guest": "read"}, {"name": "pictures"}, {"read": ("anna",), "write": ()}])
@pytest.mark.parametrize("own", [0, 10**12])
def test_a_change_of_anything_else_leaves_the_folders_own_limit(samba, commands, other, own):
    """Also one that was set or taken away since Time Machine was turned on."""
    for found in (limited(own), limited(own, time_machine=0)):
        commands.found.update(share=found.share, source="local", refquota=str(own))
        time_machine = LIMIT if found.share == limited(own).share else 0
        run(on(time_machine=time_machine, **other))
    assert limits_set(commands) == []


@pytest.mark.parametrize("own", [10**12, 2 * 10**9])
def test_a_limit_that_the_owner_set_stays_when_time_machine_is_turned_on_changed_and_off(samba, commands, own):
    commands.found.update(refquota=str(own))
    review = checked_plan(on(time_machine=LIMIT), box(datasets=status.read_datasets(), accounts=(ANNA,)))
    assert f"keeps its own limit of {size_text(own)}" in " ".join(review.warnings)
    for operation in (on(time_machine=LIMIT), on(time_machine=2 * LIMIT), on(), on(time_machine=LIMIT), OFF):
        run(operation)
    assert limits_set(commands) == []


def test_the_limit_follows_another_size_for_time_machine(samba, commands):
    run(on(time_machine=LIMIT))
    run(on(time_machine=2 * LIMIT))
    assert limits_set(commands) == ["refquota=5000000000", "refquota=10000000000"]


def test_time_machine_that_came_with_a_received_folder_has_its_limit_set_when_it_is_used(samba, commands):
    commands.found.update(share=limited(0).share, source="received")
    run(on(time_machine=LIMIT))
    assert limits_set(commands) == ["refquota=5000000000"]


@pytest.mark.parametrize("source", ["local", "none"])
@pytest.mark.parametrize("own", [0, 10**12])
def test_a_failure_puts_the_folders_own_limit_back(samba, commands, monkeypatch, source, own):
    monkeypatch.setattr(publish, "SECONDS_TO_TAKE_UP", 0)
    if source == "local":
        commands.found.update(share=on().setting(None).text(), source="local")
        approved.set_approved(dataset().guid, share=True)
    commands.found.update(refquota=str(own))
    follow = commands.on_run

    def forgets(argv: list[str]) -> None:
        follow(argv)
        commands.answers["smbclient"] = samba_knows((), argv)

    commands.on_run = forgets
    before = dict(commands.found)
    with pytest.raises(Failed, match="is not served"):
        run(on(time_machine=LIMIT, name="other"))
    assert commands.found == {**before, "refquota": str(own) if own else "none"}


def test_a_failed_end_of_time_machine_puts_its_limit_back(samba, commands, monkeypatch):
    run(on(time_machine=LIMIT))

    def fail(*_some: Any, **_more: Any) -> None:
        raise Failed("Samba does not answer")

    monkeypatch.setattr(publish, "publish_shares", fail)
    with pytest.raises(Failed):
        run(on())
    assert limits_set(commands) == ["refquota=5000000000", "refquota=none", "refquota=5000000000"]
    assert commands.found["share"] == on(time_machine=LIMIT).setting(None).text()


def test_a_limit_below_what_is_there_is_refused():
    assert "[time_machine]" in reasons(on(time_machine=10**9), dataset(referenced=2 * 10**9))
