"""Signing and encryption of SMB for the whole server."""

from __future__ import annotations

import json
import os
import stat

import pytest
from msgspec.structs import replace

from appliance.agent.registry import decode_operation
from appliance.errors import Failed, Refused
from appliance.facts.box import Facts
from appliance.facts.sharing import SmbPolicy
from appliance.operation import checked_plan
from appliance.shares import approved, publish, smb, smb_security
from appliance.shares.drift import parse
from appliance.shares.owned_file import OwnedFile
from appliance.shares.set_smb_security import SetSmbSecurity
from appliance.shares.settings import Smb
from appliance.zfs import status
from tests.reasons import expect_refusal
from tests.unit.made import ANNA, box, dataset, shared
from tests.unit.pools.test_create import Working

STRICT = SetSmbSecurity(signing="required", encryption="required")


def test_the_usual_choice_adds_nothing_to_sambas_settings():
    assert "signing" not in smb.render_config(box())
    assert "encrypt" not in smb.render_config(box())


@pytest.mark.parametrize(
    ("choice", "lines"),
    [
        (SmbPolicy("required", "asked"), {"server signing": "mandatory"}),
        (SmbPolicy("asked", "desired"), {"server smb encrypt": "desired"}),
        (SmbPolicy("required", "required"), {"server signing": "mandatory", "server smb encrypt": "required"}),
    ],
)
def test_a_choice_is_said_once_for_all_and_smb2_stays_the_oldest(choice, lines):
    found = parse.sections_of_samba(smb.render_config(box(datasets=(shared(),), accounts=(ANNA,), smb_policy=choice)))
    assert lines.items() <= found["global"].items()
    assert found["global"]["server min protocol"] == "SMB2_10"
    assert not lines.keys() & found["photos"].keys()


def test_encryption_for_everybody_and_guests_do_not_go_together():
    guests = dataset("tank/drop", share=json.dumps({"smb": {"name": "drop", "guest": "read"}}), share_source="local")
    (reason,) = STRICT.check(box(datasets=(guests,)))
    assert reason.field == "encryption"
    assert reason.code == "guests-not-encrypted"
    assert reason.message.arguments["shares"] == "tank/drop"
    assert not list(SetSmbSecurity(signing="required", encryption="desired").check(box(datasets=(guests,))))
    facts = box(smb_policy=STRICT.policy)
    (reason,) = smb.SERVING.against(dataset(), Smb(name="drop", guest="read"), facts)
    assert reason.field == "guest"


def test_old_computers_are_warned_of():
    assert "Windows 7" in checked_plan(STRICT, box()).warnings[0]
    assert not checked_plan(SetSmbSecurity(signing="asked", encryption="asked"), box()).warnings


@pytest.mark.parametrize(
    "text",
    [
        '{"kind":"set-smb-security","signing":"off","encryption":"asked"}',
        '{"kind":"set-smb-security","signing":"asked"}',
        '{"kind":"set-smb-security","signing":"asked","encryption":"required\\nguest ok = yes"}',
    ],
)
def test_no_other_choice_can_be_asked_for(text):
    with pytest.raises(Refused):
        decode_operation(text)


@pytest.fixture
def samba(tmp_path, monkeypatch, commands):
    """A Samba that serves what its file says, for a box with one share."""
    config = tmp_path / "larder.conf"
    monkeypatch.setattr(smb_security, "FILE", tmp_path / "policy.json")
    monkeypatch.setattr(approved, "FILE", tmp_path / "agreed")
    monkeypatch.setitem(publish.SERVING, "smb", replace(smb.SERVING, owned=OwnedFile(config, lambda _path: None)))
    monkeypatch.setattr(smb.SmbServing, "take_up", lambda *_given: None)
    monkeypatch.setattr(smb.SmbServing, "served", lambda self: frozenset((s.name, s.path) for s in self.configured()))
    monkeypatch.setattr("appliance.shares.discovery.announce_shares", lambda _datasets: None)
    monkeypatch.setattr(status, "read_datasets", lambda: (shared(),))
    monkeypatch.setattr("appliance.system.accounts.read_accounts", lambda: (ANNA,))
    monkeypatch.setattr("appliance.system.accounts.read_groups", lambda: ())
    return config


def run(operation: SetSmbSecurity) -> None:
    for step in checked_plan(operation, Facts()).steps:
        step.run(Working())


def test_a_choice_is_kept_taken_up_and_seen(samba):
    approved.set_approved(shared().guid, share=True)
    publish.publish_shares(publish.agreed_facts(), ["smb"])
    assert not STRICT.probe("protect", Facts())
    run(STRICT)
    assert STRICT.probe("protect", Facts())
    assert "server signing = mandatory" in samba.read_text()
    assert smb_security.read_security() == SmbPolicy("required", "required")
    assert stat.S_IMODE(os.stat(smb_security.FILE).st_mode) == 0o644  # noqa: PTH116


def test_before_the_first_share_the_choice_waits_for_it(samba):
    run(STRICT)
    assert not samba.exists()
    assert STRICT.probe("protect", Facts())
    approved.set_approved(shared().guid, share=True)
    publish.publish_shares(publish.agreed_facts(), ["smb"])
    assert "server smb encrypt = required" in samba.read_text()


def test_where_samba_does_not_take_it_the_choice_is_as_before(samba, monkeypatch):
    approved.set_approved(shared().guid, share=True)
    publish.publish_shares(publish.agreed_facts(), ["smb"])

    def fail(*_given: object) -> None:
        if "mandatory" in samba.read_text():
            raise Failed("no")

    monkeypatch.setattr(smb.SmbServing, "take_up", fail)
    with pytest.raises(Failed):
        run(STRICT)
    assert smb_security.read_security() == SmbPolicy()
    assert "mandatory" not in samba.read_text()


def test_a_hand_edit_stops_it_before_anything_is_kept(samba):
    approved.set_approved(shared().guid, share=True)
    publish.publish_shares(publish.agreed_facts(), ["smb"])
    samba.write_text(samba.read_text() + "# mine\n")
    with expect_refusal("file-changed-by-hand"):
        run(STRICT)
    assert smb_security.read_security() == SmbPolicy()


@pytest.mark.parametrize("text", ["", "{", '{"signing":"off"}', "[" * 100000, "\xff"])
def test_a_file_that_says_nothing_sensible_is_the_usual_choice(samba, text):
    smb_security.FILE.write_text(text)
    assert smb_security.read_security() == SmbPolicy()


# A power cut between the two files


def cut_after_sambas_file(monkeypatch):
    """The machine is gone once Samba's file is in place: nothing after that runs."""

    def gone(*_given: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(smb.SmbServing, "take_up", gone)


def test_a_choice_cut_between_its_two_files_shows_what_samba_serves(samba, monkeypatch):
    approved.set_approved(shared().guid, share=True)
    publish.publish_shares(publish.agreed_facts(), ["smb"])
    cut_after_sambas_file(monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        run(STRICT)
    assert "server signing = mandatory" in samba.read_text()
    assert smb_security.read_security() == SmbPolicy()
    assert publish.smb_policy() == STRICT.policy
    assert STRICT.probe("protect", Facts())


def test_a_choice_kept_by_an_older_version_and_never_served_is_not_shown(samba):
    """0.1.0 wrote the choice first: cut there, the page showed it and Samba served what was before."""
    approved.set_approved(shared().guid, share=True)
    publish.publish_shares(publish.agreed_facts(), ["smb"])
    smb_security.store_security(STRICT.policy)
    assert publish.smb_policy() == SmbPolicy()
    assert not STRICT.probe("protect", Facts())
    publish.publish_shares(publish.agreed_facts(), ["smb"])
    assert smb_security.read_security() == SmbPolicy()
    assert "mandatory" not in samba.read_text()


@pytest.mark.parametrize(
    "choice", [SmbPolicy(s, e) for s in ("asked", "required") for e in ("asked", "desired", "required")]
)
def test_every_choice_is_read_back_from_sambas_file(samba, choice):
    samba.write_text(smb.render_config(box(datasets=(shared(),), accounts=(ANNA,), smb_policy=choice)))
    assert smb.policy_in(samba) == choice


def test_a_hand_edit_of_sambas_file_is_not_taken_for_a_choice(samba):
    approved.set_approved(shared().guid, share=True)
    publish.publish_shares(publish.agreed_facts(), ["smb"])
    samba.write_text(samba.read_text().replace("[global]", "[global]\n   server signing = mandatory"))
    assert publish.smb_policy() == SmbPolicy()
