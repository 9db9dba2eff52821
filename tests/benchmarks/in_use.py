"""Memory on a box in use: 105 datasets and 2,000 snapshots, after a share, a job and 40 page
views; and when nobody looks."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Iterator

from deploy.image.machine import Machine, wait_for
from tests.benchmarks import promises
from tests.benchmarks.figures import Result
from tests.system import sharing
from tests.visitor import Visitor

DATASETS, SNAPSHOTS, VIEWS = 105, 2000, 40
POOL = "bench"
LOOKED_AT = ("/", "/disks/", "/folders/", "/snapshots/")
# Ten minutes without a request, and some for the look that notices it.
UNTIL_ASLEEP = int(os.environ.get("LARDER_BENCH_IDLE", "700"))
FILL = f"""
import libzfs_core as core, subprocess
names = [b"{POOL}/f%03d" % at for at in range({DATASETS} - 2)]
for name in names:
    core.lzc_create(name)
made = 0
while made < {SNAPSHOTS}:
    now = names[: {SNAPSHOTS} - made]
    core.lzc_snapshot([b"%s@s%05d" % (name, made) for name in now])
    made += len(now)
"""
Units = Callable[[Machine], dict[str, dict[str, int]]]


def pages(appliance: Machine) -> list[str]:
    """What somebody looks at who looks at everything."""
    key = sharing.key_of(appliance, f"{POOL}/photos")
    pool = sharing.key_of(appliance, POOL)
    folder, root = f"/folders/{key}/", f"/folders/{pool}/"
    box = ["/", "/pools/", "/disks/", "/disks/bays/", "/jobs/", "/alerts/", "/alerts/mail/", "/users/"]
    folders = ["/folders/", folder, root, "/snapshots/", f"/snapshots/of/{key}/", "/snapshots/policies/"]
    return [
        *box,
        *folders,
        "/snapshots/space/",
        "/snapshots/holds/",
        "/benchmarks/",
        "/benchmarks/new/disks/",
        "/pools/new/?name=new&step=disks",
    ]


def times(visitor: Visitor) -> dict[str, float]:
    """The median seconds of some pages, looked at in turn."""
    taken: dict[str, list[float]] = {path: [] for path in LOOKED_AT}
    for _round in range(7):
        for path in LOOKED_AT:
            start = time.perf_counter()
            assert visitor.get(path).status == 200, path
            taken[path].append(time.perf_counter() - start)
    return {path: statistics.median(one) for path, one in taken.items()}


def told(appliance: Machine) -> bool:
    """Whether ZED runs no script just now, and none ten seconds later."""
    return not any(
        appliance.run("sh", "-c", f"sleep {wait}; pgrep -f '^/bin/sh /etc/zfs/zed[.]d/'", check=False)
        for wait in (0, 10)
    )


def figures(appliance: Machine, visitor: Visitor, units: Units, quiet: Callable[[Machine], bool]) -> Iterator[Result]:
    """Memory, the pages while the worker reads, and memory when nobody looks."""
    sharing.make_pool(appliance, POOL, "photos")
    appliance.run("python3", "-c", FILL, timeout=1800)
    while_reading = times(visitor)
    wait_for("ZED to have told of each snapshot", lambda: told(appliance), timeout=1800, every=5)
    sharing.make_person(visitor, "anna")
    visitor.wait_until(f"/folders/{sharing.key_of(appliance, f'{POOL}/photos')}/", "photos", timeout=300)
    said = sharing.set_share(visitor, appliance, f"{POOL}/photos", name="photos", write="anna")
    assert said.startswith("Done."), said
    seen = 0
    while seen < VIEWS:
        for path in pages(appliance)[: VIEWS - seen]:
            assert visitor.get(path).status == 200, path
            seen += 1
        assert visitor.get_live("/").status == 200
    wait_for("quiet", lambda: quiet(appliance), timeout=900, every=5)
    yield from promises.memory("the box in use", units(appliance))
    yield from promises.while_reading(SNAPSHOTS, while_reading, times(visitor))
    wait_for(
        "the web process to end, since nobody looks",
        lambda: units(appliance)["larder-web.service"]["pss"] == 0,
        timeout=UNTIL_ASLEEP,
        every=10,
    )
    yield promises.unseen(units(appliance))
