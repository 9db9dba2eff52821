"""``make bench``: the promises of the design, measured; figures and ratios of one run, in build/bench.json and a table.

Each part can be run alone: ``python -m tests.benchmarks memory``.

Memory, idle processor time and idle writes are read in a warm appliance; query counts and page ratios come from the
same views over databases in memory. Under emulation a processor second does less: idle time is scaled by how long
the same small loop takes inside and outside, in the same run, and both figures are given.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path

from deploy.image import build, machine, states
from deploy.image.machine import Machine
from tests.benchmarks import backups, in_use, pages, promises, snapshots
from tests.benchmarks.figures import Result, result, seconds
from tests.visitor import Visitor

UNITS = ("larder-web.service", "larder-worker.service", "redis-server@larder.service")
IDLE_SECONDS = int(os.environ.get("LARDER_BENCH_SECONDS", "120"))
LOOP = "import time; t=time.process_time(); sum(i*i for i in range(3_000_000)); print(time.process_time()-t)"
IN_UNITS = """
import glob, json, sys
def pids(unit):
    for path in glob.glob(f"/sys/fs/cgroup/system.slice/**/{unit}/cgroup.procs", recursive=True):
        yield from map(int, open(path).read().split())
def number(path, key):
    try:
        for line in open(path):
            if line.startswith(key):
                return int(line.split()[1])
    except (FileNotFoundError, ProcessLookupError):
        pass  # a command that ended meanwhile
    return 0
out = {}
for unit in sys.argv[1:]:
    found = list(pids(unit))
    usage = sum(number(path, "usage_usec") for path in glob.glob(f"/sys/fs/cgroup/system.slice/**/{unit}/cpu.stat", recursive=True))
    out[unit] = {
        "pss": sum(number(f"/proc/{pid}/smaps_rollup", "Pss:") for pid in found) * 1024,
        "written": sum(number(f"/proc/{pid}/io", "write_bytes:") for pid in found),
        "cpu": usage,
    }
print(json.dumps(out))
"""


def units(appliance: Machine) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = json.loads(appliance.run("python3", "-c", IN_UNITS, *UNITS))
    return found


def in_appliance(appliance: Machine) -> list[Result]:
    """What only the real thing can tell."""
    visitor = Visitor(appliance)
    visitor.set_up()
    visitor.wait_until("/disks/", appliance.disks[0].serial)
    results = [
        result(f"page {path} in the appliance, after the first", seconds(partial(visitor.get, path)), "s")
        for path in ("/", "/disks/", "/pools/")
    ]
    # Nobody looks from here on; what the last page asked for is finished first.
    machine.wait_for("quiet", lambda: quiet(appliance), timeout=120, every=5)
    now = units(appliance)
    ours = appliance.run("ps", "-eo", "user:20,args").splitlines()
    root = [line for line in ours if line.startswith("root") and "/opt/larder" in line]
    return [
        *results,
        *promises.memory("an empty box", now),
        result("root processes of ours, idle", len(root), "processes", 0),
        *idling(appliance, "an empty box"),
    ]


def idling(appliance: Machine, which: str) -> list[Result]:
    """What the box does while nobody looks and nothing happens."""
    factor = slowness(appliance)
    before, start = units(appliance), time.monotonic()
    time.sleep(IDLE_SECONDS)
    after, passed = units(appliance), time.monotonic() - start
    return promises.idle(which, before, after, passed, factor)


def slowness(appliance: Machine) -> float:
    """The emulation factor: how long the same small loop takes inside against outside."""
    inside = float(appliance.run("python3", "-c", LOOP))
    clock = time.process_time()
    sum(i * i for i in range(3_000_000))
    return inside / (time.process_time() - clock)


def first_page(visitor: Visitor) -> list[Result]:
    """How long the page takes that starts the web process, against the same page when it runs."""
    start = time.perf_counter()
    assert visitor.get("/").status == 200
    first = time.perf_counter() - start
    warm = seconds(partial(visitor.get, "/"))
    return [
        result("the page that starts the web process, as measured here", first, "s"),
        result("the same page when it runs, as measured here", warm, "s"),
        result("the page that starts it against the page when it runs", first / warm, "times"),
    ]


def quiet(appliance: Machine) -> bool:
    """Whether the worker has just done next to nothing for five seconds."""
    first = units(appliance)["larder-worker.service"]["cpu"]
    time.sleep(5)
    return units(appliance)["larder-worker.service"]["cpu"] - first < 1_000_000


def measure_idle() -> Iterator[Result]:
    with states.borrow_machine("bench", build.build_system_layer()) as appliance:
        yield from in_appliance(appliance)


def measure_snapshots() -> Iterator[Result]:
    with states.borrow_machine("bench-snapshots", build.build_system_layer()) as appliance:
        yield from (result(*figure) for figure in snapshots.figures(appliance))


def measure_backups() -> Iterator[Result]:
    with states.borrow_machine("bench-backups", build.build_system_layer()) as appliance:
        yield from (result(*figure) for figure in backups.memory(appliance, Visitor.of_new(appliance)))
        factor = slowness(appliance)
        yield result("emulation factor (same loop inside and outside)", factor, "times")
        yield from (result(*figure) for figure in backups.figures(appliance, factor))


def measure_use() -> Iterator[Result]:
    with states.borrow_machine("bench-in-use", build.build_system_layer()) as appliance:
        visitor = Visitor.of_new(appliance)
        yield from in_use.figures(appliance, visitor, units, quiet)
        yield from first_page(visitor)
        machine.wait_for("quiet", lambda: quiet(appliance), timeout=600, every=5)
        yield from idling(appliance, "a box in use")


PARTS: dict[str, tuple[Callable[[], Iterable[Result]], str]] = {
    "pages": (pages.results, "queries, commands and time of the pages; needs no machine"),
    "memory": (measure_use, "memory, idling and the first page on a box in use; pages while the worker reads"),
    "idle": (measure_idle, "an empty box that nobody looks at"),
    "snapshots": (measure_snapshots, "taking, reading and destroying 2,000, against bare ZFS"),
    "backups": (measure_backups, "copying, to a pool and over ssh, against bare commands; what a run starts; memory"),
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("parts", nargs="*", help="; ".join(f"{name}: {text}" for name, (_run, text) in PARTS.items()))
    asked = parser.parse_args().parts or list(PARTS)
    if unknown := set(asked) - set(PARTS):
        parser.error(f"there is no part called {', '.join(sorted(unknown))}")
    file = Path("build/bench.json")
    file.parent.mkdir(exist_ok=True)
    results: list[Result] = []
    for name in asked:
        print(f"\n{name}")
        # Each figure is told and kept as it comes: the next one may take half an hour, or fail.
        for item in PARTS[name][0]():
            results.append(item)
            file.write_text(json.dumps({"results": [asdict(one) for one in results]}, indent=1))
            verdict = {True: "within", False: "OVER", None: ""}[item.within_budget]
            bound = f"budget {item.budget:g}" if item.budget is not None else ""
            print(f"{item.name:<96}  {item.value:>10.3f} {item.unit:<12} {bound:<12} {verdict}", flush=True)
    raise SystemExit(any(item.within_budget is False for item in results))


if __name__ == "__main__":
    main()
