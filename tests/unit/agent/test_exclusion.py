"""Which operations keep each other out: a table over every operation that the agent runs, and
real locks of two processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from itertools import combinations
from pathlib import Path
from typing import Any, get_args

import pytest
from msgspec.structs import replace

from appliance.agent import run_operation
from appliance.agent.registry import Registered, decode_operation
from appliance.errors import Refused
from appliance.facts.box import Facts, Use
from appliance.facts.importable import Importable, ImportablePart
from appliance.message import Message
from appliance.operation import Operation, kind_of
from appliance.system import disk_links, locks, paths
from tests.unit.made import JOB, box, disk, path_of

GUID = 4958685680270539150
TOKEN = "0123456789ab"
OF_DATASET = {"dataset": "tank/a", "guid": 5}
OF_SNAPSHOT = {"snapshot": "tank/a@s", "guid": 5}
OF_POOL = {"pool": "tank", "guid": GUID}
CHANGE = {"dataset": "tank/a", "protocol": "smb"}
SMB = {"smb": {"name": "a", "write": ["berta"]}}
# What each operation is about: (its fields, what it does). What it does decides below whom it must keep out:
# "uses X": works on the files of X; "takes X": X and all below leaves or is put back; "rules": rewrites who may use
# what; "disk": needs the disk for itself; "pool": changes the pool tank.
SAMPLES: dict[str, tuple[dict[str, Any], set[str]]] = {
    "create-pool": ({"name": "tank", "layout": "stripe", "groups": [[path_of(1)]]}, {"disk", "pool"}),
    "take-place": ({"pool": "tank", "guid": 5, "box": "0123456789abcdef", "sealed": True}, {"pool", "accounts"}),
    "write-record": (OF_POOL, {"pool"}),
    "create-dataset": ({"parent": "tank", "name": "b"}, {"pool"}),
    "set-dataset-property": ({**OF_DATASET, "name": "compression", "value": "zstd"}, {"pool"}),
    "inherit-dataset-property": ({**OF_DATASET, "name": "compression"}, {"pool"}),
    "set-user-quota": ({**OF_DATASET, "of": "user", "who": "anna", "size": 5}, {"pool"}),
    "rename-dataset": ({**OF_DATASET, "parent": "tank", "name": "b"}, {"pool", "takes tank/a", "takes tank/b"}),
    "promote-dataset": (OF_DATASET, {"pool"}),
    "mount-dataset": (OF_DATASET, {"pool"}),
    "unmount-dataset": (OF_DATASET, {"pool", "takes tank/a"}),
    "destroy-dataset": (OF_DATASET, {"pool", "takes tank/a"}),
    "unlock-dataset": ({"dataset": "tank/a"}, {"pool"}),
    "unlock-all": ({"datasets": ["tank/a"]}, {"pool"}),
    "lock-dataset": (OF_DATASET, {"pool", "takes tank/a"}),
    "change-key": ({**OF_DATASET, "to": "passphrase"}, {"pool"}),
    "store-key": (OF_DATASET, {"pool"}),
    "delete-key": (OF_DATASET, {"pool"}),
    "create-volume": ({"parent": "tank", "name": "v", "size": 2**30}, {"pool"}),
    "grow-volume": ({**OF_DATASET, "size": 2**30}, {"pool"}),
    "create-account": ({"name": "berta", "home": "tank"}, {"pool", "accounts"}),
    "set-password": ({"name": "anna"}, {"accounts"}),
    "rename-account": ({"name": "anna"}, {"accounts"}),
    "enable-account": ({"name": "anna", "enabled": False}, {"accounts"}),
    "remove-account": ({"name": "anna", "heir": "ben"}, {"accounts", "rules"}),
    "create-group": ({"name": "family"}, {"accounts"}),
    "set-members": ({"name": "family"}, {"accounts"}),
    "remove-group": ({"name": "family"}, {"accounts", "rules"}),
    "set-access": ({"dataset": "tank/a"}, {"uses tank/a"}),
    "share-folder": (
        {"dataset": "tank/a", "guid": 5, "new_users": ["berta"], "people": {"berta": "change"}, **SMB},
        {"pool", "accounts", "uses tank/a"},
    ),
    "set-share": ({**CHANGE, "smb": {"name": "a", "write": ["anna"]}}, {"pool"}),
    "set-target": ({**OF_DATASET, "iscsi": {"name": "disk1"}}, {"pool"}),
    "approve-shares": (OF_POOL, {"pool"}),
    "republish-share": (CHANGE, {"pool"}),
    "open-top-folder": ({"dataset": "tank/a"}, {"pool"}),
    "adopt-drift": ({"file": "smb", "seen": "0" * 64, "changes": [CHANGE]}, {"pool"}),
    "overwrite-drift": ({"file": "smb", "seen": "0" * 64}, set()),
    "overwrite-target": ({"target": "iqn.2026-01.local.larder:disk1", "seen": "0" * 64}, set()),
    "end-connection": ({"protocol": "smb", "id": "123", "who": "anna", "machine": "desk"}, set()),
    "restart-box": ({"boot": "1f0b6c1e-52a7-4a5d-9a43-f1f6b8d2c011"}, set()),
    "shut-down-box": ({"boot": "1f0b6c1e-52a7-4a5d-9a43-f1f6b8d2c011"}, set()),
    "set-host-name": ({"name": "attic", "former": "larder"}, set()),
    "try-mtu": ({"port": "eth0", "mtu": 9000, "former": 1500}, set()),
    "keep-mtu": ({"port": "eth0", "mtu": 9000, "former": 1500}, set()),
    "keep-setting": ({"setting": "nfs-threads", "value": "32", "former": "16"}, set()),
    "forget-port": ({"setting": "mtu", "port": "eth7"}, set()),
    "put-setting-back": ({"setting": "nfs-threads", "value": "16", "former": "32"}, set()),
    "set-time-servers": ({"servers": ["fritz.box"]}, set()),
    "set-time-zone": ({"zone": "Europe/Berlin"}, set()),
    "set-smb-security": ({"signing": "asked", "encryption": "asked"}, set()),
    **{
        kind: ({"pool": "tank"}, {"pool"})
        for kind in ("start-scrub", "pause-scrub", "stop-scrub", "start-trim", "stop-trim", "clear-errors")
    },
    "set-pool-property": ({"pool": "tank", "name": "autotrim", "value": "on"}, {"pool"}),
    "import-pool": ({"guid": GUID, "name": "tank"}, {"disk", "pool"}),
    "export-pool": (OF_POOL, {"pool", "takes tank"}),
    "destroy-pool": (OF_POOL, {"pool", "takes tank"}),
    "take-checkpoint": (OF_POOL, {"pool"}),
    "discard-checkpoint": (OF_POOL, {"pool"}),
    "rewind-checkpoint": (OF_POOL, {"pool", "takes tank", "disk"}),
    "upgrade-pool": (OF_POOL, {"pool"}),
    "erase-disk": ({"disk": path_of(1)}, {"disk"}),
    "rehearse-rebuild": ({**OF_POOL, "vdev": 5, "disk": path_of(1)}, {"disk", "pool", "takes tank"}),
    "clean-up-rehearsal": (OF_POOL, {"pool"}),
    "burn-in-disk": ({"disk": path_of(1), "size": 2 * 10**12}, {"disk"}),
    "start-self-test": ({"disk": path_of(1)}, {"disk"}),
    **{
        kind: ({"pool": "tank", "vdev": 7, "disk": path_of(1)}, {"pool", "disk"})
        for kind in ("replace-disk", "attach-disk", "expand-raidz")
    },
    **{
        kind: ({"pool": "tank", "vdev": 7}, {"pool"})
        for kind in ("detach-disk", "autoexpand-vdev", "remove-vdev", "online-disk", "offline-disk")
    },
    "add-vdev": ({"pool": "tank", "layout": "stripe", "disks": [path_of(1)]}, {"pool", "disk"}),
    **{
        kind: ({"pool": "tank", "disks": [path_of(1)]}, {"pool", "disk"})
        for kind in ("add-spare", "add-log", "add-cache")
    },
    "take-snapshot": ({"dataset": "tank/a", "name": "s"}, {"pool"}),
    "run-snapshot-policies": (
        {
            "pool": "tank",
            "run": JOB,
            "moment": "2026.11.22-19.00.00",
            "targets": [{"dataset": "tank/a", "guid": 5, "grains": ["hourly"]}],
        },
        {"pool"},
    ),
    "destroy-snapshots": ({"snapshots": [["tank/a@s", 5]]}, {"pool"}),
    "prune-snapshots": ({"snapshots": [["tank/a@s", 5]]}, {"pool"}),
    "set-copy-aside": (
        {"copy": "tank/backups/a", "guid": 5, "name": "a old"},
        {"pool", "takes tank/backups/a"},
    ),
    "restore-folder": (
        {
            "copy": "safe/backups/a",
            "guid": 5,
            "snapshots": [["safe/backups/a@s", 6]],
            "parent": "tank",
            "name": "b",
            "token": "0123abcd",
        },
        {"uses safe/backups/a", "uses tank", "takes tank/b"},
    ),
    "restore-remote": (
        {
            "remote": "0badcafe",
            "copy": "a",
            "guid": 5,
            "parent": "tank",
            "name": "b",
            "token": "0123abcd",
            "parts": [{"name": "a", "guid": 5, "snapshot": 6, "short": "s", "original": 7, "size": 8}],
            "created": 1764000000,
        },
        {"uses tank", "takes tank/b"},
    ),
    "set-backup": ({"dataset": "tank/a"}, {"pool"}),
    "run-backup": (
        {"dataset": "tank/a", "key": "0123abcd", "target": "safe/backups/a", "moment": "2026.11.22-19.00.00"},
        {"uses tank/a", "uses safe/backups/a"},
    ),
    "send-backup": (
        {"dataset": "tank/a", "key": "0123abcd", "remote": "0badcafe", "moment": "2026.11.22-19.00.00"},
        {"uses tank/a"},
    ),
    "add-remote": ({"remote": "0badcafe", "host": "attic.lan", "user": "backup", "root": "tank/attic"}, set()),
    "confirm-host-key": ({"remote": "0badcafe", "fingerprint": f"SHA256:{'a' * 43}"}, set()),
    "test-remote": ({"remote": "0badcafe"}, set()),
    "remove-remote": ({"remote": "0badcafe"}, set()),
    "pair-box": ({"remote": "0badcafe", "host": "attic.lan"}, set()),
    "receive-copies": ({"receiver": "0badcafe", "pool": "tank", "name": "attic"}, {"pool"}),
    "remove-receiver": ({"receiver": "0badcafe"}, set()),
    "set-received-retention": ({"receiver": "0badcafe"}, set()),
    "prune-received": ({"receiver": "0badcafe", "snapshots": [["tank/backups/attic/a@s", 5]]}, {"pool"}),
    "add-import": (
        {
            "task": "0badcafe",
            "host": "nas.lan",
            "user": "admin",
            "path": "/volume1/photos",
            "dataset": "tank/a",
            "guid": 5,
        },
        set(),
    ),
    "confirm-import-key": ({"task": "0badcafe", "fingerprint": f"SHA256:{'a' * 43}"}, set()),
    "test-import": ({"task": "0badcafe"}, set()),
    "run-import": ({"task": "0badcafe", "dataset": "tank/a", "moment": "2026.11.22-19.00.00"}, {"uses tank/a"}),
    "set-import-password": ({"task": "0badcafe"}, set()),
    "remove-import": ({"task": "0badcafe"}, set()),
    "verify-backup": (
        {"dataset": "tank/a", "key": "0123abcd", "target": "safe/backups/a"},
        {"uses tank/a", "uses safe/backups/a"},
    ),
    "check-backup-keys": (
        {"dataset": "tank/a", "key": "0123abcd", "target": "safe/backups/a"},
        {"uses tank/a", "uses safe/backups/a"},
    ),
    "drill-backup": (
        {"dataset": "tank/a", "key": "0123abcd", "target": "safe/backups/a", "pool": "tank"},
        {"uses tank/a", "uses safe/backups/a", "uses tank/drill-0123abcd"},
    ),
    "drill-remote": (
        {"dataset": "tank/a", "key": "0123abcd", "remote": "0badcafe", "pool": "tank"},
        {"uses tank/a", "uses tank/drill-0123abcd"},
    ),
    "remove-drill": ({"scratch": "tank/drill-0123abcd", "guid": 5}, {"pool", "takes tank/drill-0123abcd"}),
    "discard-received": ({"copy": "safe/backups/a", "guid": 5}, {"uses safe/backups/a"}),
    "set-snapshot-policy": ({"dataset": "tank/a"}, {"pool"}),
    "hold-snapshot": ({**OF_SNAPSHOT, "who": "anna", "why": "keep"}, {"pool"}),
    "release-snapshot": (OF_SNAPSHOT, {"pool"}),
    "rename-snapshot": ({**OF_SNAPSHOT, "to": "t"}, {"pool"}),
    "clone-snapshot": ({**OF_SNAPSHOT, "name": "b"}, {"pool"}),
    "bookmark-snapshot": ({**OF_SNAPSHOT, "name": "b"}, {"pool"}),
    "destroy-bookmark": ({"bookmark": "tank/a#b", "guid": 5}, {"pool"}),
    "roll-back": (OF_SNAPSHOT, {"pool", "takes tank/a"}),
    "restore-from-snapshot": ({**OF_SNAPSHOT, "path": "x"}, {"uses tank/a"}),
    "run-benchmark-case": (
        {"token": TOKEN, "case": {"where": "scratch", "workload": "seq-write", "disks": [path_of(1)], "size": 2**30}},
        {"disk"},
    ),
    "clean-up-benchmark": ({"token": TOKEN, "disks": [path_of(1)]}, {"disk"}),
}


@pytest.fixture
def facts(monkeypatch) -> Facts:
    """The disk carries the label of the pool that is to be brought in."""
    monkeypatch.setattr(disk_links, "read_links", lambda: {Path(path_of(1)).name: "sda"})
    found = Importable("tank", GUID, "ONLINE", parts=(ImportablePart(Path(path_of(1)).name, "ONLINE", depth=1),))
    return replace(box(), disks=(disk(1),), importable=(found,))


def sample(kind: str) -> Operation:
    return decode_operation(json.dumps({"kind": kind, **SAMPLES[kind][0]}))


def names_of(operation: Operation, facts: Facts) -> tuple[set[str], set[str]]:
    """The locks that it takes alone, and those that it shares."""
    alone = {*operation.locks(), *map(locks.files_of, operation.files_taken()), *operation.disks_found(facts)}
    shared = set(map(locks.files_of, operation.files_used()))
    return alone, {*shared, *(up for name in alone | shared for up in locks.locks_above(name))} - alone


def exclude(one: Operation, other: Operation, facts: Facts) -> bool:
    (alone, shared), (their_own, they_share) = names_of(one, facts), names_of(other, facts)
    return bool(alone & (their_own | they_share) or shared & their_own)


def must_exclude(one: set[str], other: set[str]) -> bool:
    def within(dataset: str, above: str) -> bool:
        return dataset == above or dataset.startswith(f"{above}/")

    if {"disk"} <= one & other or {"pool"} <= one & other or {"accounts"} <= one & other:
        return True
    for mine, theirs in ((one, other), (other, one)):
        used = [word.removeprefix("uses ") for word in mine if word.startswith("uses ")]
        taken = [word.removeprefix("takes ") for word in theirs if word.startswith("takes ")]
        if "rules" in theirs and (used or any(word.startswith("takes ") for word in mine) or "rules" in mine):
            return True
        if any(within(dataset, above) for dataset in used for above in taken):
            return True
    return False


def test_every_registered_operation_is_in_the_table():
    assert set(SAMPLES) == {kind_of(kind) for kind in get_args(Registered)}


@pytest.mark.parametrize("kind", SAMPLES)
def test_operation_excludes_all_it_must(kind, facts):
    for other, (_fields, does) in SAMPLES.items():
        if must_exclude(SAMPLES[kind][1], does):
            assert exclude(sample(kind), sample(other), facts), f"{kind} and {other} have no lock in common"


def test_the_table_covers_the_pairs_that_met():
    pairs = {
        frozenset(pair) for pair in combinations(SAMPLES, 2) if must_exclude(SAMPLES[pair[0]][1], SAMPLES[pair[1]][1])
    }
    for pair in (
        ("set-access", "roll-back"),
        ("set-access", "destroy-dataset"),
        ("set-access", "rename-dataset"),
        ("set-access", "remove-account"),
        ("set-access", "export-pool"),
        ("restore-from-snapshot", "roll-back"),
        ("import-pool", "erase-disk"),
        ("import-pool", "create-pool"),
        ("import-pool", "run-benchmark-case"),
    ):
        assert frozenset(pair) in pairs


@pytest.mark.parametrize(
    "kind", ["take-snapshot", "run-snapshot-policies", "start-scrub", "create-dataset", "restore-from-snapshot"]
)
def test_changing_access_does_not_hold_up_snapshots_and_scrubs(kind, facts):
    assert not exclude(sample("set-access"), sample(kind), facts)


def test_folders_beside_each_other_do_not_wait(facts):
    other = decode_operation('{"kind": "roll-back", "snapshot": "tank/b@s", "guid": 5}')
    assert not exclude(sample("set-access"), other, facts)
    nested = decode_operation('{"kind": "set-access", "dataset": "tank/a/b"}')
    assert exclude(nested, sample("roll-back"), facts)
    assert not exclude(nested, sample("set-access"), facts)


def test_import_locks_a_disk_by_its_other_name(facts, monkeypatch):
    named = replace(facts.importable[0], parts=(ImportablePart("wwn-0x50014ee2-part1", "ONLINE", depth=1),))
    monkeypatch.setattr(disk_links, "read_links", lambda: {"wwn-0x50014ee2": "sda"})
    assert sample("import-pool").disks_found(replace(facts, importable=(named,))) == (path_of(1),)


def test_import_locks_a_disk_that_carries_the_label(facts):
    marked = replace(disk(1), uses=(Use("exported", "holds the pool tank", str(GUID), "tank"),))
    assert sample("import-pool").disks_found(replace(facts, importable=(), disks=(marked,))) == (path_of(1),)


# Real locks ----------------------------------------------------------------------------------------------------------

OTHER = """
import sys, signal
from pathlib import Path
from appliance.message import Message
from appliance.system import locks, paths as places
places.LOCKS = Path(sys.argv[1])
alone, shared = sys.argv[2].split(",") if sys.argv[2] else (), sys.argv[3].split(",") if sys.argv[3] else ()
with locks.hold_locks(alone, print, shared=shared, who=Message("Set who may use {name}", name="tank/a")):
    print("held", flush=True)
    signal.pause()
"""


class StillWaiting(Exception):
    pass


def give_up(name: str) -> None:
    raise StillWaiting(name)


@pytest.fixture
def another(folders):
    """Another process that holds locks."""
    running = []

    def hold(alone: str = "", shared: str = "") -> subprocess.Popen[str]:
        argv = [sys.executable, "-c", OTHER, str(paths.LOCKS), alone, shared]
        child = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
        running.append(child)
        assert child.stdout is not None
        assert child.stdout.readline() == "held\n"
        return child

    yield hold
    for child in running:
        child.kill()
        child.wait()
        if child.stdout:
            child.stdout.close()


def test_two_processes_share_a_shared_lock(another):
    another(shared="files tank/a")
    with locks.hold_locks((), give_up, shared=["files tank/a", "files tank/b"]):
        assert locks.any_held()


@pytest.mark.parametrize("name", ["files tank/a", "files tank", "files"])
def test_taking_a_folder_away_waits_for_who_works_on_its_files(another, name):
    another(shared="files tank/a")
    with pytest.raises(StillWaiting, match=name), locks.hold_locks([name], give_up):
        pytest.fail("both held it")


def test_working_on_files_waits_while_the_pool_goes(another):
    another(alone="files tank")
    with pytest.raises(StillWaiting, match="files tank"), locks.hold_locks((), give_up, shared=["files tank/a/b"]):
        pytest.fail("both held it")


def test_whoever_waits_is_told_for_whom(another):
    another(shared="files tank/a")
    said = locks.holder_text("files tank/a")
    assert said == "Set who may use tank/a"
    assert isinstance(said, Message)
    assert locks.holder_text("pond") == ""


def test_nothing_is_held_while_waiting(another):
    another(alone="tank")

    def waiting(_name: str) -> None:
        with locks.hold_locks(["accounts"], give_up):
            pass
        raise StillWaiting

    with pytest.raises(StillWaiting), locks.hold_locks(["accounts", "tank"], waiting):
        pytest.fail("both held it")


def test_disks_that_facts_name_are_locked_before_anything_is_planned(folders, facts, another):
    another(alone=path_of(1))
    looked = []

    def look() -> Facts:
        looked.append(True)
        return facts

    with pytest.raises(StillWaiting), run_operation.locked(sample("import-pool"), look, give_up):
        pytest.fail("it went on without the disk")
    assert looked


def test_a_command_that_outlives_its_job_keeps_the_lock_and_is_told(folders, monkeypatch):
    """As one that hangs in the kernel does: it holds what its job held, until it ends."""
    monkeypatch.setattr(locks, "SECONDS_TO_END", -1.0)
    script = (
        "import sys; from pathlib import Path; from appliance import command; from appliance.system import "
        "locks, paths as places\n"
        "places.LOCKS = Path(sys.argv[1])\n"
        "import subprocess\n"
        "with locks.hold_locks(['tank'], print):\n"
        "    child = subprocess.Popen(['sleep', '60'], pass_fds=(*command.HELD_BY_ALL,), stdout=-3, stderr=-3)\n"
        "    print(child.pid, flush=True)\n"
        "    import os; os._exit(0)\n"
    )
    paths.LOCKS.mkdir(parents=True)
    ended = subprocess.run([sys.executable, "-c", script, str(paths.LOCKS)], capture_output=True, text=True, check=True)
    pid = int(ended.stdout)
    try:
        with pytest.raises(Refused, match="still waits in the kernel"), locks.hold_locks(["tank"], lambda _name: None):
            pytest.fail("both held it")
    finally:
        os.kill(pid, signal.SIGKILL)
    monkeypatch.undo()
    monkeypatch.setattr(paths, "LOCKS", folders / "run" / "locks")
    with locks.hold_locks(["tank"], lambda _name: None):
        assert locks.any_held()
