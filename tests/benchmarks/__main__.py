"""``make bench``: the promises of the design, measured; figures and ratios of one run, in build/bench.json and a table.

Memory, idle processor time and idle writes are read in a warm appliance; query counts and page ratios come from the
same views over databases in memory. Under emulation a processor second does less: idle time is scaled by how long
the same small loop takes inside and outside, in the same run, and both figures are given.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from deploy.image import build, machine, states
from deploy.image.machine import Machine
from tests.benchmarks import in_use, snapshots
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
    for line in open(path):
        if line.startswith(key):
            return int(line.split()[1])
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


@dataclass(frozen=True)
class Result:
    """One figure; ``within_budget`` is None where the design sets no bound."""

    name: str
    value: float
    unit: str
    budget: float | None = None
    within_budget: bool | None = None


def result(name: str, value: float, unit: str, budget: float | None = None) -> Result:
    return Result(name, round(value, 3), unit, budget, None if budget is None else value <= budget)


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
    for unit in UNITS:
        results.append(result(f"memory of {unit}, PSS", now[unit]["pss"] / 2**20, "MiB"))
    return [
        *results,
        result("memory idle: web + worker + Redis, PSS", sum(now[unit]["pss"] for unit in UNITS) / 2**20, "MiB", 130),
        result("root processes of ours, idle", len(root), "processes", 0),
        *idling(appliance, "an empty box"),
    ]


def idling(appliance: Machine, which: str) -> list[Result]:
    """What the box does while nobody looks and nothing happens."""
    inside = float(appliance.run("python3", "-c", LOOP))
    clock = time.process_time()
    sum(i * i for i in range(3_000_000))
    factor = inside / (time.process_time() - clock)
    before, start = units(appliance), time.monotonic()
    time.sleep(IDLE_SECONDS)
    after, passed = units(appliance), time.monotonic() - start
    cpu = sum(after[unit]["cpu"] - before[unit]["cpu"] for unit in UNITS) / 1e6 / passed * 100
    written = sum(max(after[unit]["written"] - before[unit]["written"], 0) for unit in UNITS) / passed * 86400 / 1e6
    return [
        result(f"processor idle, {which}, as measured here", cpu, "% of a core"),
        result("emulation factor at that time (same loop inside and outside)", factor, "times"),
        result(f"processor idle, {which}, scaled by the emulation factor", cpu / max(factor, 1), "% of a core", 1),
        result(f"written to the system disk when idle, {which}", written, "MB a day", 20),
    ]


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


def seconds(act: Callable[[], object], times: int = 5, clock: Callable[[], float] = time.perf_counter) -> float:
    """The median of some runs after a first one. What waits for nothing is measured by the processor's time."""
    act()
    taken = []
    for _ in range(times):
        start = clock()
        act()
        taken.append(clock() - start)
    return sorted(taken)[len(taken) // 2]


def in_process() -> list[Result]:
    """Queries and time of the pages over databases in memory, with little and with much in them."""
    os.environ["DJANGO_SETTINGS_MODULE"] = "web.settings_test"
    import django

    django.setup()
    from django.contrib.auth.models import User
    from django.core.management import call_command
    from django.db import connections
    from django.test import Client
    from django.test.utils import CaptureQueriesContext, setup_test_environment

    from tests.benchmarks.rows import fill

    setup_test_environment()
    for name in ("default", "inventory"):
        call_command("migrate", database=name, verbosity=0)
    call_command("createcachetable", database="inventory", verbosity=0)
    client = Client()
    client.force_login(User.objects.create_superuser("bench", password="only for the bench"))
    pages = ("/", "/pools/", "/disks/", "/folders/", "/jobs/")
    figures: dict[str, list[tuple[int, float]]] = {page: [] for page in pages}
    for pools, datasets in ((1, 10), (10, 1000)):
        fill(pools=pools, datasets=datasets)
        for page in pages:
            client.get(page)
            with (
                CaptureQueriesContext(connections["default"]) as first,
                CaptureQueriesContext(connections["inventory"]) as second,
            ):
                assert client.get(page).status_code == 200
            figures[page].append(
                (len(first) + len(second), seconds(partial(client.get, page), clock=time.process_time))
            )
    results = []
    for page, ((few, fast), (many, slow)) in figures.items():
        results.append(
            result(f"queries of {page}: 10 pools and 1,000 folders more than 1 and 10", many - few, "queries", 0)
        )
        results.append(result(f"queries of {page}", many, "queries"))
        results.append(result(f"time of {page}: 10 pools and 1,000 folders against 1 and 10", slow / fast, "times"))
    return results + snapshot_pages(client.get)


def snapshot_pages(get: Callable[[str], object]) -> list[Result]:
    """Pages of snapshots with a hundred thousand on a thousand folders, against ten on one."""
    from tests.benchmarks.rows import fill, fill_snapshots
    from web.inventory.models import SnapshotRow

    fast: dict[str, float] = {}
    results = []
    for count, datasets in ((10, 1), (100_000, 1000)):
        fill(pools=1, datasets=datasets)
        fill_snapshots(count, datasets)
        key = SnapshotRow.objects.values_list("dataset_key", flat=True)[0]
        pages = {
            "of a folder": f"/snapshots/of/{key}/",
            "of all": "/snapshots/",
            "made by policies": "/snapshots/?kind=policy",
            "held": "/snapshots/?kind=held",
            "the largest": "/snapshots/?order=size",
            "by name": "/snapshots/?begins=larder-h",
        }
        for words, page in pages.items():
            taken = seconds(partial(get, page), 15, time.process_time)
            if words in fast:
                results.append(
                    result(f"time of the snapshots {words}: 100,000 against 10", taken / fast[words], "times", 2)
                )
            fast[words] = taken
    return results


def main() -> None:
    results = in_process()
    layer = build.build_system_layer()
    with states.borrow_machine("bench", layer) as appliance:
        results += in_appliance(appliance)
        results += [result(*figure) for figure in snapshots.figures(appliance)]
    with states.borrow_machine("bench-in-use", layer) as appliance:
        visitor = Visitor.of_new(appliance)
        results += [result(*figure) for figure in in_use.figures(appliance, visitor, units, quiet)]
        results += idling(appliance, "a box in use")
        results += first_page(visitor)
    file = Path("build/bench.json")
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps({"results": [asdict(item) for item in results]}, indent=1))
    width = max(len(item.name) for item in results)
    for item in results:
        verdict = {True: "within", False: "OVER", None: ""}[item.within_budget]
        bound = f"budget {item.budget:g}" if item.budget is not None else ""
        print(f"{item.name:<{width}}  {item.value:>10.3f} {item.unit:<12} {bound:<12} {verdict}")
    raise SystemExit(any(item.within_budget is False for item in results))


if __name__ == "__main__":
    main()
