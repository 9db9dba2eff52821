"""What ``make bench`` runs inside the appliance about snapshots, as one script: Larder's own code against bare ZFS.

It runs in the appliance's Python, over a pool of its own in a file and databases in memory, and prints one JSON object
of figures: seconds and counts. Nothing else is to be at work meanwhile: the worker would read what this makes.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
import uuid
from collections.abc import Callable, Iterable
from typing import Any

import libzfs_core as bare

from appliance.facts.box import Facts, Pool
from appliance.operation import Operation, checked_plan
from appliance.snapshots.destroy import DestroySnapshots
from appliance.snapshots.take import RunSnapshotPolicies
from appliance.zfs import libzfs, list_snapshots, status

FILE = "/var/tmp/larder-bench.img"
FOLDERS = [f"bench/d{number:03d}" for number in range(200)]
EACH = 10  # snapshots of each of them: 2,000 in all
MANY = [f"bench/many{number}" for number in range(10)]
ROUNDS = 200  # snapshots of each of these: 2,000 too
SAMPLE = 40  # of those, destroyed by one command each
TIMES = 3
out: dict[str, float] = {}


class Quiet:
    """What surrounds a step of which nobody wants to hear."""

    def progress(self, percent: int, phrase: str) -> None: ...

    def note(self, text: str) -> None: ...

    def secret(self) -> str:
        raise AssertionError("no secret goes with it")

    def stop_if_asked(self) -> None: ...


class Counted:
    """A function of a module that does as before, and keeps what it was called with."""

    def __init__(self, module: Any, name: str) -> None:
        self.real = getattr(module, name)
        self.calls: list[list[Any]] = []
        setattr(module, name, self)

    def __call__(self, names: Iterable[Any], *rest: Any) -> Any:
        self.calls.append(list(names))
        return self.real(self.calls[-1], *rest)


def run(*argv: str) -> None:
    subprocess.run(argv, check=True, capture_output=True)


def took(act: Callable[[], object]) -> float:
    start = time.perf_counter()
    act()
    return time.perf_counter() - start


def best(ours: Callable[[int], float], theirs: Callable[[int], float], times: int = TIMES) -> tuple[float, float]:
    """The shortest of each, in turn: what else the box did once or twice does not count."""
    pairs = [(ours(at), theirs(at)) for at in range(times)]
    return min(mine for mine, _other in pairs), min(other for _mine, other in pairs)


def facts() -> Facts:
    return Facts(pools=(Pool("bench", 1, "ONLINE"),), datasets=status.read_datasets())


def acts(operation: Operation, known: Facts) -> Callable[[], None]:
    """What the agent runs of an operation once it is planned."""
    steps = checked_plan(operation, known).steps

    def act() -> None:
        for step in steps:
            step.run(Quiet())

    return act


def policies() -> None:
    """A run over 200 folders, as the agent does it, against one call of the library for as many."""
    known = facts()
    hourly: tuple[str, ...] = ("hourly",)
    targets = [(one.name, one.guid, hourly) for one in known.datasets if one.name in FOLDERS]
    assert len(targets) == len(FOLDERS), len(targets)
    libzfs.take_snapshots([f"{name}@warm" for name in FOLDERS], {})
    calls = Counted(bare, "lzc_snapshot")

    def ours(at: int) -> float:
        return took(
            acts(
                RunSnapshotPolicies.for_targets("bench", str(uuid.uuid4()), f"2026.01.01-00.00.{at:02d}", targets),
                known,
            )
        )

    def theirs(at: int) -> float:
        return took(lambda: calls.real([f"{name}@bare{at}".encode() for name in FOLDERS]))

    out["our run"], out["bare run"] = best(ours, theirs)
    out["transactions of a run"] = len(calls.calls) / TIMES
    assert all(len(names) == len(FOLDERS) for names in calls.calls)
    bare.lzc_snapshot = calls.real
    for at in range(EACH - 1 - 2 * TIMES):
        libzfs.take_snapshots([f"{name}@more{at}" for name in FOLDERS], {})


def refresh() -> None:
    """What the collector does after one new snapshot among 2,000, rows and all, against a
    bare listing of all of them."""
    os.environ["DJANGO_SETTINGS_MODULE"] = "web.settings_test"  # no file of the box is read or written
    import django

    django.setup()
    from django.core.management import call_command

    from web.inventory.dataset_models import SnapshotRow
    from workers import collect_snapshots as inventory

    for database in ("default", "inventory"):
        call_command("migrate", database=database, verbosity=0)

    def follow() -> float:
        found = status.read_datasets()
        return took(lambda: inventory.update_snapshots(found))

    def settle() -> None:
        """So long that no reading is doubted any more because of its second."""
        time.sleep(inventory.SECONDS_OF_DOUBT + 2)
        follow()

    settle()
    out["listed"] = SnapshotRow.objects.count()
    assert out["listed"] == len(FOLDERS) * EACH, out["listed"]
    calls = Counted(list_snapshots, "list_snapshots")
    read: list[str] = []

    def one(at: int) -> float:
        settle()
        run("zfs", "snapshot", f"{FOLDERS[7]}@new{at}")
        calls.calls.clear()
        seconds = follow()
        read.extend(name for names in calls.calls for name in names)
        assert SnapshotRow.objects.filter(dataset=FOLDERS[7], short=f"new{at}").exists()
        return seconds

    def every(_at: int) -> float:
        return took(lambda: list(calls.real(FOLDERS)))

    out["refresh of one"], out["listing of all"] = best(one, every)
    out["folders read"] = len(read) / TIMES
    out["listing of one"] = min(took(lambda: list(calls.real(FOLDERS[7:8]))) for _ in range(TIMES))
    list_snapshots.list_snapshots = calls.real


def fill(prefix: str) -> list[str]:
    """2,000 snapshots; their names, folder by folder."""
    for at in range(ROUNDS):
        bare.lzc_snapshot([f"{name}@{prefix}{at:03d}".encode() for name in MANY])
    return [f"{name}@{prefix}{at:03d}" for name in MANY for at in range(ROUNDS)]


def destroying() -> None:
    """2,000 that a person chose, as the agent does it, against one command each and against the library alone."""
    for name in MANY:
        bare.lzc_create(name.encode())
    names = fill("c")
    out["each by command"] = (
        took(lambda: [run("zfs", "destroy", name) for name in names[:SAMPLE]]) / SAMPLE * len(names)
    )
    libzfs.destroy_snapshots(names)
    whole: list[float] = []

    def ours(at: int) -> float:
        names = fill(f"o{at}")
        chosen = DestroySnapshots.for_pairs((one.name, one.guid) for one in list_snapshots.list_snapshots(MANY))
        assert len(chosen.snapshots) == len(names)
        known = facts()
        begun = time.perf_counter()
        act = acts(chosen, chosen.load_extra_facts(known))
        seconds = took(act)
        whole.append(time.perf_counter() - begun)
        assert not list(list_snapshots.list_snapshots(MANY))
        return seconds

    def theirs(at: int) -> float:
        """In calls of the same size: a person can stop between two of them."""
        names = [name.encode() for name in fill(f"b{at}")]
        calls = [names[start : start + libzfs.BATCH] for start in range(0, len(names), libzfs.BATCH)]
        return took(lambda: [bare.lzc_destroy_snaps(call, False) for call in calls])

    out["our destroy"], out["bare destroy"] = best(ours, theirs, 2)
    out["our destroy, looked at before"] = min(whole)
    once = [name.encode() for name in fill("a")]
    out["bare destroy at once"] = took(lambda: bare.lzc_destroy_snaps(once, False))


def main() -> None:
    run("truncate", "-s", "2G", FILE)
    try:
        run("zpool", "create", "-m", "/bench", "bench", FILE)
        try:
            for name in FOLDERS:
                bare.lzc_create(name.encode())
            policies()
            refresh()
            destroying()
        finally:
            run("zpool", "destroy", "bench")
    finally:
        run("rm", FILE)
    print(json.dumps(out))


if __name__ == "__main__":
    main()
