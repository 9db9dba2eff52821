from __future__ import annotations

import importlib
import json
import os
import pkgutil
import socket
import tempfile
import threading
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

import appliance
from appliance import agent_client, command
from appliance.agent import journal, protocol
from appliance.agent.registry import decode_operation
from appliance.agent.request_registry import RegisteredRequest, decode_request
from appliance.errors import Failed, Reason, Refused
from appliance.facts.box import Facts
from appliance.request import LONGEST_REQUEST, Request, verb_of
from appliance.system import paths as system_paths
from tests.unit.made import ANNA, JOB, OTHER_JOB, box, dataset, path_of

pytestmark = pytest.mark.usefixtures("folders")

SECRET = "correct horse battery"
OPERATIONS: dict[str, dict[str, Any]] = {
    "create-pool": {"name": "tank", "layout": "mirror", "groups": [[path_of(1), path_of(2)]]},
    "create-dataset": {"parent": "tank", "name": "music", "preset": "media"},
    "unlock-dataset": {"dataset": "tank/vault"},
    "set-dataset-property": {"dataset": "tank/photos", "guid": 5, "name": "compression", "value": "zstd"},
    "inherit-dataset-property": {"dataset": "tank/photos", "guid": 5, "name": "compression"},
    "set-user-quota": {"dataset": "tank/photos", "guid": 5, "of": "user", "who": "anna", "size": 5},
    "rename-dataset": {"dataset": "tank/photos", "guid": 5, "parent": "tank", "name": "pictures"},
    "promote-dataset": {"dataset": "tank/photos", "guid": 5},
    "mount-dataset": {"dataset": "tank/photos", "guid": 5},
    "unmount-dataset": {"dataset": "tank/photos", "guid": 5},
    "destroy-dataset": {"dataset": "tank/photos", "guid": 5},
    "unlock-all": {"datasets": ["tank/vault"]},
    "lock-dataset": {"dataset": "tank/photos", "guid": 5},
    "change-key": {"dataset": "tank/photos", "guid": 5, "to": "passphrase"},
    "store-key": {"dataset": "tank/photos", "guid": 5},
    "delete-key": {"dataset": "tank/photos", "guid": 5},
    "create-volume": {"parent": "tank", "name": "disk1", "size": 1073741824},
    "grow-volume": {"dataset": "tank/photos", "guid": 5, "size": 1073741824},
    "create-account": {"name": "berta"},
    "set-password": {"name": "anna"},
    "start-scrub": {"pool": "tank"},
    "pause-scrub": {"pool": "tank"},
    "stop-scrub": {"pool": "tank"},
    "start-trim": {"pool": "tank"},
    "stop-trim": {"pool": "tank"},
    "set-pool-property": {"pool": "tank", "name": "autotrim", "value": "on"},
    "approve-shares": {"pool": "tank", "guid": 1443772876214735903},
    "share-folder": {
        "dataset": "tank/music",
        "new_users": ["berta"],
        "people": {"berta": "change"},
        "smb": {"name": "music", "write": ["berta"]},
    },
    "set-share": {"dataset": "tank/photos", "protocol": "smb", "smb": {"name": "photos", "write": ["anna"]}},
    "set-target": {
        "dataset": "tank/photos",
        "guid": 5,
        "iscsi": {"name": "disk1", "initiators": ["iqn.1991-05.com.microsoft:pc"], "addresses": ["192.168.1.10"]},
    },
    "import-pool": {"guid": 4958685680270539150, "name": "attic"},
    "export-pool": {"pool": "tank", "guid": 4958685680270539150},
    "destroy-pool": {"pool": "tank", "guid": 4958685680270539150},
    "take-checkpoint": {"pool": "tank", "guid": 4958685680270539150},
    "discard-checkpoint": {"pool": "tank", "guid": 4958685680270539150},
    "rewind-checkpoint": {"pool": "tank", "guid": 4958685680270539150},
    "upgrade-pool": {"pool": "tank", "guid": 4958685680270539150},
    "erase-disk": {"disk": path_of(1), "how": "full"},
    "check-backup-keys": {"dataset": "tank/a", "key": "0123abcd", "target": "safe/backups/a"},
    "drill-backup": {"dataset": "tank/a", "key": "0123abcd", "target": "safe/backups/a", "pool": "tank"},
    "drill-remote": {"dataset": "tank/a", "key": "0123abcd", "remote": "0badcafe", "pool": "tank"},
    "remove-drill": {"scratch": "tank/drill-0123abcd", "guid": 5},
    "discard-received": {"copy": "safe/backups/a", "guid": 5},
    "send-backup": {"dataset": "tank/photos", "key": "0123abcd", "remote": "0badcafe", "moment": "2026.11.22-19.00.00"},
    "add-remote": {"remote": "0badcafe", "host": "attic.lan", "user": "backup", "root": "tank/attic", "port": 2222},
    "confirm-host-key": {"remote": "0badcafe", "fingerprint": f"SHA256:{'a' * 43}"},
    "test-remote": {"remote": "0badcafe"},
    "restore-remote": {
        "remote": "0badcafe",
        "copy": "photos",
        "guid": 5,
        "parent": "tank",
        "name": "pictures",
        "token": "0123abcd",
        "parts": [{"name": "photos", "guid": 5, "snapshot": 6, "short": "larder-backup-x", "original": 7, "size": 8}],
        "created": 1764000000,
        "rate": 20,
    },
    "remove-remote": {"remote": "0badcafe"},
    "pair-box": {"remote": "0badcafe", "host": "attic.lan", "port": 8443},
    "receive-copies": {
        "receiver": "0badcafe",
        "pool": "tank",
        "name": "attic",
        "limit": 2**30,
        "keep": {"daily": 7},
        "days": 7,
    },
    "remove-receiver": {"receiver": "0badcafe"},
    "set-received-retention": {"receiver": "0badcafe", "keep": {"hourly": 1, "daily": 7}, "days": 7},
    "prune-received": {"receiver": "0badcafe", "snapshots": [["tank/backups/attic/a@s", 5]]},
    "add-import": {
        "task": "0badcafe",
        "host": "nas.lan",
        "user": "admin",
        "path": "/volume1/photos",
        "dataset": "tank/photos",
        "guid": 5,
        "port": 2222,
        "existing": "none",
        "owners": {"1026": "anna"},
    },
    "confirm-import-key": {"task": "0badcafe", "fingerprint": f"SHA256:{'a' * 43}"},
    "test-import": {"task": "0badcafe"},
    "run-import": {"task": "0badcafe", "dataset": "tank/photos", "moment": "2026.11.22-19.00.00"},
    "set-import-password": {"task": "0badcafe"},
    "remove-import": {"task": "0badcafe"},
    "rehearse-rebuild": {"pool": "tank", "guid": 5, "vdev": 6, "disk": path_of(1), "share": 25},
    "clean-up-rehearsal": {"pool": "tank", "guid": 5},
    "burn-in-disk": {"disk": path_of(1), "size": 2 * 10**12},
    "take-place": {"pool": "tank", "guid": 1443772876214735903, "box": "0123456789abcdef", "sealed": True},
    "write-record": {"pool": "tank", "guid": 1443772876214735903},
    "set-host-name": {"name": "attic", "former": "larder"},
    "try-mtu": {"port": "eth0", "mtu": 9000, "former": 1500},
    "keep-mtu": {"port": "eth0", "mtu": 9000, "former": 1500},
    "keep-setting": {"setting": "nfs-threads", "value": "32", "former": "16"},
    "forget-port": {"setting": "mtu", "port": "eth7"},
    "put-setting-back": {"setting": "nfs-threads", "value": "16", "former": "32"},
    "set-time-servers": {"servers": ["fritz.box"]},
    "set-time-zone": {"zone": "Europe/Berlin"},
}
REQUESTS: list[dict[str, Any]] = [
    *(
        {"verb": "run", "job": JOB, "digest": "0" * 16, "operation": {"kind": kind, **fields}}
        for kind, fields in OPERATIONS.items()
    ),
    {"verb": "follow", "job": JOB},
    {"verb": "stop", "job": JOB},
    {"verb": "look-for-pools"},
    {"verb": "read-sessions"},
    {"verb": "read-damage", "pool": "tank"},
    {"verb": "read-history", "pool": "tank"},
    {"verb": "read-dataset", "dataset": "tank/photos"},
    {"verb": "read-content", "disks": [path_of(1)]},
    {"verb": "read-smart", "disks": [path_of(1)]},
]
SNAPSHOT = "tank/photos@before"
CURSOR = "s=0639a6b1e5a2;i=4f;b=1b2c;m=5e6f;t=62a;x=9c"
OFFER = {
    "public_key": f"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{'A' * 43}",
    "name": "attic",
    "nonce": "0" * 32,
    "proof": "0" * 64,
}
SETTINGS = {
    "made": 1_790_000_000_000_000,
    "groups": {
        "notifications": [{"host": "mail.example.org", "critical": ["anna@example.org"]}],
        "care": [{"pool": "5", "kind": "scrub", "every": "week", "first": 2, "last": 5}],
        "snapshots": [["5", "6", "hourly,daily"]],
    },
}
EVERY_REQUEST: list[dict[str, Any]] = [
    *REQUESTS,
    {"verb": "let-sleep", "disks": {path_of(1): 20}},
    {"verb": "open-wire"},
    {"verb": "read-settings"},
    {"verb": "switch-setting", "setting": "tcp-buffers", "on": True},
    {"verb": "read-connections"},
    {"verb": "read-edits"},
    {"verb": "read-target-edits"},
    {"verb": "read-import-report", "task": "0badcafe"},
    {"verb": "look-at-share", "dataset": "tank/photos", "protocol": "smb", "person": "anna"},
    {"verb": "look-at-target", "dataset": "tank/photos"},
    {"verb": "list-folder", "snapshot": SNAPSHOT, "path": "2026", "after": ""},
    {"verb": "open-file", "snapshot": SNAPSHOT, "path": "2026/a.jpg"},
    {"verb": "read-versions", "dataset": "tank/photos", "path": "2026/a.jpg"},
    {"verb": "search-names", "dataset": "tank/photos", "text": "letter", "after": "17", "room": 100},
    {"verb": "read-difference", "snapshot": SNAPSHOT, "until": "tank/photos@after"},
    {"verb": "read-space", "ranges": [[SNAPSHOT, "tank/photos@after"]], "held": [SNAPSHOT]},
    {"verb": "locate", "disk": path_of(1)},
    {"verb": "read-log", "area": "storage", "severity": "error", "period": "week", "text": "sdb", "after": CURSOR},
    {
        "verb": "make-bundle",
        "own": {"alerts.txt": "none"},
        "users": ["anna"],
        "hosts": ["attic"],
        "pools": ["tank"],
        "secrets": ["a long word"],
        "masked": ["names"],
    },
    {"verb": "prove", "job": JOB, "digest": "0" * 16, "operation": REQUESTS[0]["operation"], "password": "not the one"},
    {"verb": "keep-password", "password": "a long word", "old": "another one"},
    {"verb": "read-recovery"},
    {"verb": "make-recovery-phrase", "password": "a long word"},
    {"verb": "confirm-recovery-phrase", "phrase": "E8HJ-N9GE-7ARV-QS1X-2N7K-VJHC-XA8B"},
    {"verb": "read-box-record", "pool": "tank", "box": "0123456789abcdef"},
    {"verb": "keep-box-settings", "settings": SETTINGS, "former": 5},
    {"verb": "read-box-settings", "pool": "tank", "box": "0123456789abcdef"},
    {"verb": "make-pairing-code", "receiver": "0badcafe"},
    {"verb": "withdraw-pairing-code", "receiver": "0badcafe"},
    {"verb": "read-copies-in-use", "receiver": "0badcafe"},
    {"verb": "accept-pairing", "offer": OFFER},
    {"verb": "list-remote-copies", "remote": "0badcafe"},
    {"verb": "read-remote-copy", "remote": "0badcafe", "copy": "photos/trip", "moment": "larder-backup-x"},
]
VERBS = {verb_of(kind) for kind in get_args(RegisteredRequest)}
# Looking for pools, whole: with another word behind it that would be importing one.
# An import looks before its digest counts.
LOOKS = [["zpool", "import", "-d", "/dev/disk/by-id"], ["zpool", "import", "-D", "-d", "/dev/disk/by-id"]]
LOOKING = {"run", "look-for-pools"}
LIST, ASK = ("zfs", "list"), ("smartctl", "--json", "-n", "standby")
# How every command begins that a request may run with other words in it.
# Only what reads; a disk's timer is its request.
MAY_RUN: dict[str, tuple[tuple[str, ...], ...]] = {
    "run": (("smbstatus",), ("blkid", "--probe"), ("cmp",)),  # disks are read, to know what the plan would be
    "follow": (),
    "stop": (),
    "read-content": (),  # blkid and cmp, which are allowed above
    "prove": (),
    "read-import-report": (),
    "keep-password": (),
    "look-for-pools": (),
    "read-sessions": (("smbstatus",),),
    "read-connections": (("smbstatus",),),
    "read-edits": (LIST,),
    "read-target-edits": (LIST,),
    "look-at-share": (LIST,),
    "look-at-target": (LIST, ("ip", "-j", "address")),
    "open-wire": (("systemctl", "is-active", "larder-wire.service"), ("systemctl", "start", "larder-wire.service")),
    "read-settings": (),
    "switch-setting": (
        ("systemctl", "is-active", "larder-setting-back-a.timer", "larder-setting-back-b.timer"),
        ("systemctl", "stop", "larder-setting-back-a.timer", "larder-setting-back-b.timer"),
        (
            "systemd-run",
            "--quiet",
            "--collect",
            "--unit=larder-setting-back-a",
            "--on-active=1800s",
            "sysctl",
            "-q",
            "-w",
        ),
        ("sysctl", "-q", "-w"),
    ),
    "read-damage": (("zpool", "status"),),
    "read-history": (("zpool", "history"),),
    "read-dataset": (LIST,),
    "list-folder": (LIST,),
    "open-file": (LIST,),
    "read-versions": (LIST,),
    "search-names": (LIST,),
    "read-difference": (LIST, ("zfs", "diff")),
    "read-space": (),
    "read-smart": ((*ASK, "-a"),),
    "let-sleep": ((*ASK, "-s"),),
    "locate": (),
    "make-bundle": (
        *((tool,) for tool in ("uname", "dpkg-query", "ip", "df", "lsblk", "journalctl")),
        *(("systemctl", "--no-pager", "--plain", how) for how in ("--failed", "--all")),
        ("timedatectl", "show"),
        ("timedatectl", "timesync-status"),
        ("smartctl", "--version"),
        (*ASK, "--xall"),
        ("smbd", "--version"),
        ("zfs", "version"),
        ("zfs", "get", "-H"),
        LIST,
        *(("zpool", what) for what in ("list", "status", "get", "events", "history")),
    ),
    "read-recovery": (),
    "make-recovery-phrase": (),
    "confirm-recovery-phrase": (("age-keygen", "-y"),),
    "read-box-record": (),
    "keep-box-settings": (),
    "read-box-settings": (),
    "make-pairing-code": (("sshd", "-T"),),
    "withdraw-pairing-code": (),
    "read-copies-in-use": (),
    "accept-pairing": (),
    "list-remote-copies": (),
    "read-remote-copy": (),
    "read-log": (("journalctl", "--no-pager", "--quiet", "--output=json"),),
}


def test_every_request_of_the_agent_is_tried_and_what_it_may_run_is_listed():
    assert {request["verb"] for request in EVERY_REQUEST} == VERBS == set(MAY_RUN)


def leaves(kind: type[Request]) -> set[type[Request]]:
    """Every class below a base that is itself no base."""
    below = kind.__subclasses__()
    return set().union(*map(leaves, below)) if below else {kind}


def test_every_request_that_the_appliance_defines_is_registered():
    for module in pkgutil.walk_packages(appliance.__path__, "appliance."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    ours = {kind for kind in leaves(Request) if kind.__module__.startswith("appliance.")}
    assert ours == set(get_args(RegisteredRequest))


def facts() -> Facts:
    return box(
        datasets=(
            dataset("tank"),
            dataset(),
            dataset("tank/vault", encryption_root="tank/vault", key_status="unavailable"),
        ),
        accounts=(ANNA,),
    )


def ask(request: Any) -> list[dict[str, Any]]:
    line = request if isinstance(request, bytes) else json.dumps(request).encode()
    sent: list[dict[str, Any]] = []
    protocol.answer_request(line, sent.append, facts)
    return sent


def final(request: Any) -> dict[str, Any]:
    """The one final answer; fails where there is none, more than one, or something after it."""
    sent = ask(request)
    ends = [bool({"outcome", "facts", "refused", "failed"} & set(message)) for message in sent]
    assert ends.count(True) == 1
    assert ends[-1]
    json.dumps(sent)
    return sent[-1]


def paths(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where in a request a string stands."""
    if isinstance(value, str):
        return [at]
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path for key, inner in items for path in paths(inner, (*at, key))]


def with_value(request: Any, path: tuple[Any, ...], value: Any) -> Any:
    changed = json.loads(json.dumps(request))
    inner = changed
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return changed


def digest_of(request: dict[str, Any]) -> str:
    return decode_operation(json.dumps(request["operation"])).plan(facts()).digest()


EVERY_FIELD = [
    pytest.param(request, path, id=f"{request['verb']}-{request.get('operation', {}).get('kind', '')}-{path[-1]}")
    for request in REQUESTS
    for path in paths(request)
    if path != ("digest",)
]
HOSTILE = [
    "\n",
    "{}\n",
    "\n{}",
    "{}\0",
    "\0",
    "-{}",
    "--{}",
    "{}\nroot preexec = /bin/sh",
    "{}\r",
    "{};id",
    "{}$(id)",
    "{}`id`",
    "{}'",
    '{}"',
    "{}|id",
]
HOSTILE += ["{}%U", "{}]", "{}\\", "{}*", "{}/../..", "../{}", "{}\u2028", "{}\u202e", "", " ", "{}" * 300, "{}#x"]


@pytest.mark.parametrize(("request_", "path"), EVERY_FIELD)
def test_hostile_text_in_any_field_is_refused_and_runs_nothing(request_, path, commands):
    good = request_
    for key in path:
        good = good[key]
    for hostile in HOSTILE:
        assert set(final(with_value(request_, path, hostile.replace("{}", good)))) == {"refused"}, repr(hostile)
    assert commands.ran == []
    assert list(system_paths.JOURNALS.iterdir()) == []


@pytest.mark.parametrize("hostile", [*HOSTILE, "0" * 16, "f" * 5000])
def test_no_digest_but_the_right_one_runs_anything(hostile, commands):
    outcome = final(REQUESTS[0] | {"digest": hostile})["outcome"]
    assert outcome["state"] == "refused"
    assert set(commands.tools) <= {"blkid", "cmp"}  # the disks are read, to know what the plan would be


@pytest.mark.parametrize(("request_", "path"), EVERY_FIELD)
def test_a_field_of_another_shape_is_refused_and_runs_nothing(request_, path, commands):
    shapes: tuple[object, ...] = (None, 7, 1.5, True, [], {}, [[]], ["tank"], {"name": "tank"})
    for value in shapes:
        assert set(final(with_value(request_, path, value))) == {"refused"}, repr(value)
    assert commands.ran == []


@pytest.mark.parametrize("request_", REQUESTS, ids=str)
def test_an_unknown_or_missing_field_is_refused(request_, commands):
    assert set(final(request_ | {"force": True})) == {"refused"}
    if "operation" in request_:
        assert set(final(request_ | {"operation": request_["operation"] | {"shell": "id"}})) == {"refused"}
    for key in request_:
        assert set(final({name: value for name, value in request_.items() if name != key})) == {"refused"}
    assert commands.ran == []


# Fields of any text: a password, a digest (compared as it is), a part of a file's name, the last entry of a page.
ANY_TEXT: set[tuple[str | int, ...]] = {("digest",), ("password",), ("old",), ("text",), ("after",)}
# So have the files that the pages add to a support bundle, and what is to be hidden in it.
ANY_TEXT |= {("own", "alerts.txt"), ("secrets", 0), ("users", 0), ("hosts", 0), ("pools", 0)}
NOT_A_NAME = [
    "-{}",
    "--{}",
    "../{}",
    "{}/../..",
    "{}/..",
    "/{}/",
    "{}\n",
    "{}\0",
    "{}\r",
    "{}\x1b[2J",
    "{}\u202e",
    "{}" * 300,
]
# Way down to a file: each part is percent-encoded, and a file's name may begin with a dash.
NOT_A_PATH = [
    "../{}",
    "{}/../..",
    "{}/..",
    "/{}",
    "{}/",
    "{}//x",
    "{}\n",
    "{}\0",
    "{}\x1b[2J",
    "%2e%2e/{}",
    "{}%2f..",
    "{}/%zz",
]
MORE_AT = {
    "dataset": ["{}@x", "@{}"],
    "pool": ["{}@x", "{}/x"],
    "snapshot": ["{}@x", "{}/x"],
    "until": ["{}@x", "{}/x"],
}
EVERY_TEXT = [
    pytest.param(request, path, id=f"{request['verb']}-{'-'.join(map(str, path))}")
    for request in EVERY_REQUEST
    for path in paths(request)
    if path not in ANY_TEXT and path[0] != "operation"
]


@pytest.mark.parametrize(("request_", "path"), EVERY_TEXT)
def test_no_name_of_any_request_begins_with_a_dash_climbs_or_holds_control_characters(request_, path, commands):
    good = request_
    for key in path:
        good = good[key]
    bad = NOT_A_PATH if path == ("path",) else [*NOT_A_NAME, *MORE_AT.get(str(path[0]), [])]
    for hostile in bad:
        spoiled = with_value(request_, path, hostile.replace("{}", good))
        # By the request itself: what reads may check once more, but does not have to.
        with pytest.raises(Refused):
            decode_request(json.dumps(spoiled).encode())
        assert set(final(spoiled)) == {"refused"}, repr(hostile)
    assert commands.ran == []


DISKS = [f"/dev/disk/by-id/ata-{number}" for number in range(129)]
PAIR = [SNAPSHOT, "tank/photos@after"]
# What is still allowed, and the next one that is not.
BOUNDS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"verb": "read-smart", "disks": DISKS[:128]}, {"disks": DISKS}),
    ({"verb": "read-content", "disks": DISKS[:128]}, {"disks": DISKS}),
    ({"verb": "let-sleep", "disks": dict.fromkeys(DISKS[:128], 20)}, {"disks": dict.fromkeys(DISKS, 20)}),
    ({"verb": "let-sleep", "disks": {DISKS[0]: 0}}, {"disks": {DISKS[0]: 7}}),
    *(
        ({"verb": "let-sleep", "disks": {DISKS[0]: 20}}, {"disks": {bad: 20}})
        for bad in (f"{DISKS[0]}\n", f"-{DISKS[0]}", f"{DISKS[0]}/../sda", "/dev/sda", "", f"{DISKS[0]}@/x")
    ),
    ({"verb": "read-difference", "snapshot": SNAPSHOT, "seconds": 1}, {"seconds": 0}),
    ({"verb": "read-difference", "snapshot": SNAPSHOT, "seconds": 60}, {"seconds": 61}),
    ({"verb": "read-space", "ranges": [PAIR] * 100}, {"ranges": [PAIR] * 101}),
    ({"verb": "read-space", "held": [SNAPSHOT] * 200}, {"held": [SNAPSHOT] * 201}),
    ({"verb": "search-names", "dataset": "tank", "text": "a" * 200}, {"text": "a" * 201}),
    ({"verb": "search-names", "dataset": "tank", "text": "a", "room": 200}, {"room": 201}),
    ({"verb": "search-names", "dataset": "tank", "text": "a", "room": 1}, {"room": 0}),
    ({"verb": "search-names", "dataset": "tank", "text": "a"}, {"text": "a/b"}),
    ({"verb": "search-names", "dataset": "tank", "text": "a", "after": "17"}, {"after": "x"}),
    ({"verb": "look-at-share", "dataset": "tank", "protocol": "afp"}, {"protocol": "ftp"}),
    ({"verb": "read-log", "text": "a" * 100}, {"text": "a" * 101}),
    *(
        ({"verb": "read-log", "after": CURSOR}, {"after": bad})
        for bad in (f"{CURSOR}\n", f"{CURSOR} _PID=1", "--file=/etc/shadow", "x", f"{CURSOR};" * 3)
    ),
    ({"verb": "make-bundle", "own": {"jobs.txt": "a" * 250_000}}, {"own": {"jobs.txt": "a" * 250_001}}),
    ({"verb": "make-bundle", "own": {"jobs.txt": ""}}, {"own": {"../../etc/passwd": ""}}),
    *(
        ({"verb": "make-bundle", name: ["a" * 500] * 300}, {name: bad})
        for name in ("users", "hosts", "pools", "secrets")
        for bad in (["a" * 501], ["a"] * 301)
    ),
    *(
        ({"verb": "accept-pairing", "offer": OFFER}, {"offer": OFFER | {name: bad}})
        for name, good in OFFER.items()
        for bad in (
            f"{good}\n",
            f"{good}\nssh-ed25519 x",
            f"{good}0" * 20,
            f'{good}",command="id',
            "",
            "-",
            f"{good}\0",
        )
    ),
    *(({"verb": "read-log"}, {name: "--file"}) for name in ("area", "severity", "period")),
]


@pytest.mark.parametrize(("allowed", "beyond"), BOUNDS)
def test_a_request_is_bounded_before_anything_is_read(allowed, beyond):
    assert verb_of(decode_request(json.dumps(allowed).encode())) == allowed["verb"]
    with pytest.raises(Refused):
        decode_request(json.dumps(allowed | beyond).encode())


@pytest.mark.parametrize("request_", EVERY_REQUEST, ids=lambda request: request["verb"])
def test_every_request_refuses_unknown_fields_wrong_types_and_too_long_a_line(request_, commands):
    assert set(final(request_ | {"force": True})) == {"refused"}
    shapes: tuple[object, ...] = (None, 1.5, True, 2**70, [[]], {"name": 7}, [None])
    for key in request_:
        for value in shapes:
            assert set(final(request_ | {key: value})) == {"refused"}, (key, value)
    line = json.dumps(request_).encode()
    assert set(final(line + b" " * LONGEST_REQUEST)) == {"refused"}
    assert commands.ran == []


@given(line=st.binary(max_size=400))
def test_every_byte_string_gets_one_refusal_and_runs_nothing(line, commands):
    assert set(final(line)) == {"refused"}
    assert commands.ran == []


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["verb", "job", "digest", "operation", "kind", "name"]) | st.text(max_size=8),
            inner,
            max_size=6,
        )
    ),
    max_leaves=15,
)


@given(value=json_values)
def test_every_json_value_gets_one_refusal_and_runs_nothing(value, commands):
    assert set(final(value)) == {"refused"}
    assert commands.ran == []


@given(request=st.sampled_from(EVERY_REQUEST), data=st.data())
def test_a_request_spoiled_anywhere_gets_one_answer_and_runs_nothing_that_was_not_asked_for(
    request, data, commands, monkeypatch
):
    path = data.draw(st.sampled_from(paths(request)))
    text = data.draw(st.text(max_size=60) | json_values)
    commands.ran.clear()
    reply = final(with_value(request, path, text))
    # Whatever still is of the grammar: something that may be asked about, or a job that the digest stops. Only read.
    for argv in commands.ran:
        looks = argv in LOOKS and request["verb"] in LOOKING
        assert looks or any(tuple(argv[: len(words)]) == words for words in MAY_RUN[request["verb"]]), argv
    if "outcome" in reply:
        assert reply["outcome"].get("state", "unknown") in {"refused", "unknown"}
    commands.ran.clear()
    for file in system_paths.JOURNALS.iterdir():
        file.unlink()


@given(cut=st.integers(min_value=0), request=st.sampled_from(REQUESTS))
def test_a_request_cut_short_is_refused(cut, request, commands):
    line = json.dumps(request).encode()
    assert set(final(line[: cut % len(line)])) == {"refused"}
    assert commands.ran == []


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"null",
        b"[" * 100_000,
        b'{"verb":' * 20_000,
        b'{"verb":"stop","job":"\xff"}',
        b'{"verb":"stop","job":"\\ud800"}',
        b'{"verb":"shell","job":"id"}',
        b'{"verb":"stop","verb":"shell","job":"' + JOB.encode() + b'"}',
        b"\xef\xbb\xbf{}",
        b"1" * 5000,
        b'{"verb":"stop","job":"' + b"a" * 300_000 + b'"}',
    ],
    ids=range(11),
)
def test_a_line_made_to_break_the_reader_is_refused(line, commands):
    assert set(final(line)) == {"refused"}
    assert commands.ran == []


def test_a_good_request_in_too_long_a_line_is_refused(commands):
    line = json.dumps(REQUESTS[-1]).encode()
    assert set(final(line + b" " * LONGEST_REQUEST)) == {"refused"}
    assert commands.ran == []
    assert set(final(line + b" ")) == {"facts"}


def test_a_request_of_the_grammar_with_its_digest_runs(commands, mounts):
    request = next(request for request in REQUESTS if request.get("operation", {}).get("kind") == "create-dataset")
    outcome = final(request | {"digest": digest_of(request)})["outcome"]
    assert outcome["state"] == "done"
    assert commands.tools == ["zfs", "mount", "zfs", "chgrp", "zpool", "chmod", "zpool"]


def test_an_operation_that_wants_a_secret_is_refused_without_one(commands):
    request = next(request for request in REQUESTS if request.get("operation", {}).get("kind") == "unlock-dataset")
    outcome = final(request | {"digest": digest_of(request)})["outcome"]
    assert outcome["state"] == "refused"
    assert "no longer at hand" in outcome["text"]
    assert commands.ran == []


def test_a_secret_left_by_the_client_reaches_the_command_and_nothing_else(commands, folders, capsys):
    agent_client.leave_secret(JOB, SECRET)
    request = next(request for request in REQUESTS if request.get("operation", {}).get("kind") == "unlock-dataset")
    sent = ask(request | {"digest": digest_of(request)})
    assert commands.given[0] == f"{SECRET}\n"
    assert SECRET not in json.dumps(sent) + str(commands.ran) + "".join(capsys.readouterr())
    assert all(not path.is_file() or SECRET not in path.read_text() for path in folders.rglob("*"))


def test_a_secret_is_left_once_and_for_one_reader():
    agent_client.leave_secret(JOB, SECRET)
    path = system_paths.SECRETS / JOB
    assert path.stat().st_mode & 0o777 == 0o600
    with pytest.raises(FileExistsError):
        agent_client.leave_secret(JOB, SECRET)
    agent_client.forget_secret(JOB)
    agent_client.forget_secret(JOB)
    assert not path.exists()


@pytest.mark.parametrize("job", ["", "../x", JOB + "\n", "-"])
def test_a_secret_is_left_under_a_jobs_id_only(job):
    with pytest.raises(Refused):
        agent_client.leave_secret(job, SECRET)
    with pytest.raises(Refused):
        agent_client.forget_secret(job)


def test_a_job_that_the_agent_does_not_know_is_unknown(commands):
    assert final({"verb": "follow", "job": OTHER_JOB})["outcome"]["state"] == "unknown"
    assert final({"verb": "stop", "job": OTHER_JOB})["outcome"] == {"stopping": False}


def test_a_refused_job_is_told_again_and_not_tried_again(commands):
    assert (
        final(REQUESTS[0])["outcome"]
        == final(REQUESTS[0])["outcome"]
        == final({"verb": "follow", "job": JOB})["outcome"]
    )
    assert (found := journal.read_journal(JOB)) is not None and found.state == "refused"


def test_smart_is_read_without_waking_a_sleeping_disk(commands):
    commands.answers["smartctl"] = '{"smartctl": {"exit_status": 2}}'
    assert final(REQUESTS[-1]) == {"facts": {path_of(1): {"smartctl": {"exit_status": 2}}}}
    (argv,) = commands.ran
    assert argv[argv.index("-n") + 1] == "standby"
    assert argv[-1] == path_of(1)


def test_a_disk_that_says_nothing_readable_does_not_hide_the_others(commands):
    commands.answers["smartctl"] = "Smartctl open device failed"
    assert final({"verb": "read-smart", "disks": [path_of(1), path_of(2)]})["facts"] == {
        path_of(1): None,
        path_of(2): None,
    }


def test_a_word_comes_after_each_disk_so_that_several_that_hang_are_not_taken_for_silence(commands, monkeypatch):
    def hang(*_args: Any, **_more: Any) -> None:
        raise command.CommandTimedOut(["smartctl"], 30, 4711)

    monkeypatch.setattr(command, "run", hang)
    paths = [path_of(number) for number in range(1, 8)]
    for request in ({"verb": "read-smart", "disks": paths}, {"verb": "let-sleep", "disks": dict.fromkeys(paths, 20)}):
        *words, answer = ask(request)
        assert words == [{"asked": path} for path in paths]
        assert list(answer["facts"]) == paths


@pytest.mark.parametrize(
    "error", [Failed("smartctl did not answer within 30 seconds"), RuntimeError("canary"), RecursionError()]
)
def test_an_error_while_answering_is_an_answer(commands, monkeypatch, error, capsys):
    def fail(*_args, **_more):
        raise error

    monkeypatch.setattr("appliance.command.run", fail)
    reply = final(REQUESTS[-1])
    if isinstance(error, Failed):
        # One disk that does not answer hides no other.
        assert set(reply["facts"].values()) == {None}
    else:
        assert reply["failed"]
    assert "canary" not in json.dumps(reply)


def test_more_disks_than_anyone_has_are_refused(commands):
    assert set(final({"verb": "read-smart", "disks": [path_of(1)] * 129})) == {"refused"}
    assert commands.ran == []


# Over a real socket


def test_a_connection_of_another_user_is_refused(monkeypatch):
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert protocol.may_ask(theirs)
        me = os.getuid()
        monkeypatch.setattr("struct.unpack", lambda *_args: (1, me + 4711, 1))
        assert not protocol.may_ask(theirs)


class Listening:
    """Stands where the agent's socket is and says what the test wants."""

    def __init__(self, replies: bytes) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.bind(str(system_paths.AGENT_SOCKET))
        self.socket.listen()
        self.replies = replies
        self.thread = threading.Thread(target=self.serve)
        self.thread.start()

    def serve(self) -> None:
        connection, _ = self.socket.accept()
        with connection:
            connection.makefile("rb").readline()
            connection.sendall(self.replies)

    def __enter__(self) -> None: ...

    def __exit__(self, *_error: object) -> None:
        self.thread.join()
        self.socket.close()


@pytest.fixture
def short(monkeypatch):
    """A socket's path has at most 107 bytes."""
    with tempfile.TemporaryDirectory() as folder:
        monkeypatch.setattr(system_paths, "AGENT_SOCKET", Path(folder) / "agent.sock")
        yield


def test_the_client_yields_replies_as_they_come(short):
    with Listening(b'{"percent": 5}\n{"outcome": {"state": "done"}}\n'):
        assert list(agent_client.stream_replies({"verb": "follow"})) == [{"percent": 5}, {"outcome": {"state": "done"}}]
    system_paths.AGENT_SOCKET.unlink()
    with Listening(b'{"percent": 5}\n{"outcome": {"state": "done"}}\n'):
        assert agent_client.send_request({"verb": "follow"}) == {"outcome": {"state": "done"}}


def test_the_client_raises_a_refusal_with_its_fields(short):
    reason = Reason("name-taken", "There is already a {name}. Choose another name.", field="name", name="a")
    line = json.dumps({"refused": [reason.as_json()]}).encode() + b"\n"
    with Listening(line), pytest.raises(Refused) as caught:
        agent_client.send_request({"verb": "run"})
    assert caught.value.reasons == (reason,)


@pytest.mark.parametrize("replies", [b"", b"not json\n"])
def test_an_agent_that_dies_without_an_answer_is_a_failure_with_words(short, replies):
    with Listening(replies), pytest.raises(Failed):
        agent_client.send_request({"verb": "run"})


def test_an_agent_out_of_reach_is_a_failure_with_words(short):
    with pytest.raises(Failed, match="does not answer: it is not running"):
        agent_client.send_request({"verb": "run"})
    with socket.socket(socket.AF_UNIX) as left:  # what is left of one that was killed
        left.bind(str(system_paths.AGENT_SOCKET))
        with pytest.raises(Failed, match="does not answer: it is not running"):
            agent_client.send_request({"verb": "run"})
