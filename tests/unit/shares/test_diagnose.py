"""Why can't I see it: each thing in the way is found, in its order, with what mends it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from appliance import command
from appliance.facts.datasets import Dataset
from appliance.shares import nfs_access
from appliance.shares.troubleshoot import diagnose, diagnosis
from tests.unit.made import dataset

GOOD: dict[str, Any] = {
    "dataset": "tank/photos",
    "protocol": "afp",
    "person": "anna",
    "unit": "active",
    "port": True,
    "served": True,
    "announced": True,
    "there": True,
    "mounted": True,
    "may_write": True,
    "account": "ready",
}
SETTING = {
    "smb": {"name": "photos", "write": ["anna"]},
    "afp": {"name": "photos", "write": ["anna"]},
    "nfs": {"hosts": ["192.168.1.0/24"]},
}


def photos(**setting: object) -> Dataset:
    return dataset(share=json.dumps(setting or SETTING), share_source="local")


def judged(
    asked_from: str = "192.168.1.5", folder: Dataset | None = None, **changes: Any
) -> dict[str, tuple[str, str]]:
    """Name of a check to its state and its mend."""
    seen = diagnosis.Diagnosis(**{**GOOD, **changes})
    return {
        one.name: (one.state, one.mend)
        for one in diagnose.explain_diagnosis(folder or photos(), seen, asked_from=asked_from)
    }


@pytest.mark.parametrize("protocol", ["smb", "afp"])
def test_where_nothing_is_in_the_way_every_check_says_so(protocol):
    assert {state for state, _mend in judged(protocol=protocol).values()} == {"healthy"}


@pytest.mark.parametrize(
    ("changes", "name", "found"),
    [
        ({"locked": "tank", "mounted": False}, "folder", ("failed", "unlock")),
        ({"mounted": False}, "folder", ("failed", "mount")),
        ({"unit": "inactive"}, "service", ("failed", "serve")),
        ({"unit": "failed"}, "service", ("failed", "serve")),
        ({"port": False}, "port", ("failed", "serve")),
        ({"served": False}, "served", ("failed", "serve")),
        ({"announced": False}, "announced", ("attention", "serve")),
        ({"announced": None}, "announced", ("empty", "")),
        ({"drifted": True}, "file", ("attention", "drift")),
        ({"account": "missing"}, "account", ("failed", "edit")),
        ({"account": "locked"}, "account", ("failed", "password")),
        ({"account": "strange"}, "account", ("failed", "password")),
        ({"stopped_at": "/tank"}, "permissions", ("failed", "let-in")),
        ({"may_write": False}, "permissions", ("attention", "let-in")),
        ({"person": "berta"}, "listed", ("failed", "edit")),
        ({"person": ""}, "person", ("empty", "")),
    ],
)
def test_each_thing_in_the_way_is_found_with_what_mends_it(changes, name, found):
    assert judged(**changes)[name] == found


def test_a_switch_that_is_off_is_all_there_is_to_say():
    assert judged(folder=photos(smb=SETTING["smb"])) == {"setting": ("failed", "edit")}


@pytest.mark.parametrize(
    ("protocol", "address", "state"),
    [
        ("nfs", "192.168.1.5", "healthy"),
        ("nfs", "::ffff:192.168.1.5", "healthy"),
        ("nfs", "192.168.2.5", "failed"),
        ("afp", "10.1.1.1", "healthy"),
        ("afp", "2001:db8::1", "failed"),
        ("afp", "8.8.8.8", "failed"),
    ],
)
def test_the_computer_before_which_the_person_sits_is_looked_at_too(protocol, address, state):
    assert judged(address, protocol=protocol)["address"][0] == state


def test_a_computer_that_may_have_an_allowed_name_is_not_said_to_be_shut_out():
    folder = photos(nfs={"hosts": ["10.0.0.0/8", "imac.local"]})
    assert judged("192.168.1.5", folder, protocol="nfs")["address"] == ("empty", "")


def test_smb_has_no_list_of_addresses():
    assert "address" not in judged("8.8.8.8", protocol="smb")


def test_a_member_of_a_group_is_not_said_to_be_left_out():
    folder = photos(afp={"name": "photos", "write": ["@family"]})
    assert judged(folder=folder)["listed"][0] == "empty"


@pytest.mark.parametrize("guest", ["read", "write"])
@pytest.mark.parametrize("listed", [{}, {"write": ["ben"]}, {"write": ["@family"]}])
@pytest.mark.parametrize(
    ("account", "found"),
    [("ready", ("healthy", "")), ("strange", ("attention", "password")), ("locked", ("failed", "password"))],
)
def test_share_for_guests_is_open_to_every_user(guest, listed, account, found):
    folder = photos(smb={"name": "photos", "guest": guest, **listed})
    checks = judged(folder=folder, protocol="smb", account=account)
    assert checks["account"] == found
    assert checks["listed"] == ("healthy", "")


@pytest.mark.parametrize("account", ["ready", "strange"])
def test_guest_access_over_smb_changes_nothing_for_afp(account):
    folder = photos(smb={"name": "photos", "guest": "write"}, afp={"name": "photos", "write": ["ben"]})
    failed = {name for name, (state, _mend) in judged(folder=folder, account=account).items() if state == "failed"}
    assert failed == {"listed" if account == "ready" else "account"}


def test_whether_a_person_may_pass_is_asked_of_the_kernel_as_that_person(monkeypatch):
    class Anna:
        pw_uid, pw_gid = 1001, 990

    asked: list[list[str]] = []

    def run(argv: list[str], **_more: Any) -> command.Result:
        asked.append(list(argv))
        return command.Result(tuple(argv), 1 if argv[-1] == "/tank/private" else 0, "", "", 0.0)

    monkeypatch.setattr("pwd.getpwnam", lambda _name: Anna)
    monkeypatch.setattr(command, "run", run)
    assert diagnose.way_of("anna", "/tank/private/photos") == ("/tank/private", False)
    assert diagnose.way_of("anna", "/tank/photos") == ("", True)
    assert all(argv[:4] == ["setpriv", "--reuid=1001", "--regid=990", "--init-groups"] for argv in asked)


@pytest.mark.parametrize(
    ("flags", "found"), [("[U          ]", "ready"), ("[DU         ]", "locked"), (None, "strange")]
)
def test_samba_is_asked_whether_the_account_is_switched_on(monkeypatch, flags, found):
    line = f"anna:1001:XX:XX:{flags}:LCT-5F5E1000:\n" if flags else ""
    monkeypatch.setattr("pwd.getpwnam", lambda name: name)
    monkeypatch.setattr(command, "run", lambda argv, **_more: command.Result(tuple(argv), 0, line, "", 0.0))
    assert diagnose.account_of("anna", "smb") == found


def test_an_account_that_is_gone_is_told():
    assert diagnose.account_of("larder-nobody-of-that-name", "smb") == "missing"


def over_nfs(part: dict[str, Any] | None = None, **client: Any) -> dict[str, tuple[str, str]]:
    asked = nfs_access.Numbers(**{"uid": 10000, "gid": 9999, "who": "anna", "may_write": True, **client})
    share = {"hosts": ["192.168.1.0/24"], **(part or {})}
    return judged(folder=photos(nfs=share), protocol="nfs", person="", client=asked)


@pytest.mark.parametrize(
    ("part", "client", "found"),
    [
        ({"everybody_as": "anna"}, {"for_everybody": True}, [("healthy", ""), ("healthy", "")]),
        (
            {"everybody_as": "anna"},
            {"for_everybody": True, "stopped_at": "/tank"},
            [("healthy", ""), ("failed", "let-in")],
        ),
        (
            {"everybody_as": "anna"},
            {"for_everybody": True, "unreadable": "/tank/a"},
            [("healthy", ""), ("failed", "let-in")],
        ),
        (
            {"everybody_as": "anna"},
            {"for_everybody": True, "may_write": False},
            [("healthy", ""), ("attention", "let-in")],
        ),
        (
            {"everybody_as": "anna", "write": False},
            {"for_everybody": True, "may_write": False},
            [("healthy", ""), ("healthy", "")],
        ),
        (
            {"everybody_as": "eve"},
            {"for_everybody": True, "who": "", "stopped_at": "/tank/photos"},
            [("failed", "edit"), ("failed", "edit")],
        ),
        ({}, {}, [("attention", "edit"), ("healthy", "")]),
        ({}, {"who": "", "uid": 1000, "stopped_at": "/tank/photos"}, [("attention", "edit"), ("failed", "edit")]),
    ],
)
def test_over_nfs_it_says_what_the_other_computer_may_do(part, client, found):
    said = over_nfs(part, **client)
    assert [said["account"], said["permissions"]] == found


def test_the_numbers_that_the_other_computer_needs_are_said():
    seen = diagnosis.Diagnosis(
        **{**GOOD, "protocol": "nfs", "client": nfs_access.Numbers(uid=10000, gid=9999, who="anna")}
    )
    text = " ".join(f"{one.title} {one.meaning}" for one in diagnose.explain_diagnosis(photos(), seen))
    assert "anna has the number 10000 here, with the group 9999" in text


def test_a_name_that_is_not_found_is_named():
    seen = diagnosis.Diagnosis(**{**GOOD, "protocol": "nfs", "served": False, "unknown": ("imac.local",)})
    (served,) = [one for one in diagnose.explain_diagnosis(photos(), seen) if one.name == "served"]
    assert (served.title, served.mend) == ("The name imac.local is not found in the network", "edit")
