"""A rebuild is rehearsed on an empty pool: its time agrees with a real one later, and nothing is
left of what was interrupted.

The disks have 512 MB and are made slow while they are rebuilt, so that a rebuild takes more than the
minute that an estimate asks for.
"""

from __future__ import annotations

import json
import re
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from deploy.image.machine import MIB, Machine, wait_for
from tests.system import moving, shapes
from tests.system.crash import no_lock_left, struck, watching
from tests.system.shapes import page_of, press, status
from tests.visitor import Answer, Visitor, create_pool

SIZE = 512 * MIB
RATE = MIB  # bytes a second of a slow disk
LONG = 600
TOLERANCE = 0.3


def serial(name: str) -> str:
    return f"{name.upper()}0001"


def new_disks(appliance: Machine, visitor: Visitor, *names: str) -> list[str]:
    """Plug empty disks in; their by-id paths once the pages know them."""
    for name in names:
        appliance.insert(name, SIZE, serial=serial(name))
    return [f"/dev/disk/by-id/{moving.disk_key(visitor, serial(name))}" for name in names]


@pytest.fixture(scope="module")
def twin(appliance, visitor) -> str:
    """An empty mirror of two small disks, twina and twinb; the address of its page."""
    create_pool(appliance, "-o", "ashift=12", "twin", "mirror", *new_disks(appliance, visitor, "twina", "twinb"))
    path = page_of(appliance, "twin")
    visitor.wait_until(path, "Rehearse a rebuild", timeout=LONG)
    return path


def review(appliance: Machine, visitor: Visitor, path: str, pool: str, name: str) -> Answer:
    """The review of a rehearsal with that disk, a quarter full."""
    vdev = shapes.guid_of(appliance, pool, serial(name))
    return visitor.get(f"{path}rehearsal/?" + urllib.parse.urlencode({"answered": 1, "share": 25, "vdev": vdev}))


@contextmanager
def slowed(appliance: Machine, name: str) -> Iterator[None]:
    """While the body runs, the disk moves so many bytes a second."""
    appliance.monitor(f"block_set_io_throttle drive-{name} {RATE} 0 0 0 0 0")
    try:
        yield
    finally:
        appliance.monitor(f"block_set_io_throttle drive-{name} 0 0 0 0 0 0")


def started(appliance: Machine, visitor: Visitor, path: str, step: str, *, victim: str = "nobody") -> str:
    """Confirm a rehearsal with the second disk of the mirror, and wait until that step begins; its job."""
    page = review(appliance, visitor, path, "twin", "twinb")
    with watching(appliance, entry="step begun", step=step, victim=victim) as watcher:
        job = visitor.confirm(page, typed="twin")
        struck(watcher)
    return job


def is_as_before(appliance: Machine, pool: str) -> None:
    """The pool is redundant, and nothing of a rehearsal is in it."""
    found = status(appliance, pool)
    assert found["state"] == "ONLINE", found
    assert {node["state"] for node in shapes.nodes(found)} == {"ONLINE"}
    assert appliance.run("zfs", "list", "-H", "-o", "name", "-r", pool).split() == [pool]
    no_lock_left(appliance)


def result_of(appliance: Machine, pool: str) -> dict[str, int]:
    """What the last rehearsal has stored on the pool."""
    found: dict[str, int] = json.loads(appliance.run("zfs", "get", "-H", "-o", "value", "larder:rehearsal", pool))
    return found


def scan_seconds(appliance: Machine, pool: str) -> int:
    scan = status(appliance, pool)["scan_stats"]
    assert (scan["function"], scan["state"]) == ("RESILVER", "FINISHED")
    return int(scan["end_time"]) - int(scan["start_time"])


def end_interrupted(appliance: Machine, visitor: Visitor, path: str) -> None:
    """The page of the pool offers the end of what was interrupted, and no other rehearsal;
    after it all is as before."""
    page = visitor.wait_until(path, "A rehearsal of a rebuild was interrupted", timeout=LONG)
    assert review(appliance, visitor, path, "twin", "twinb").status == 409
    done = visitor.confirm(visitor.get(shapes.link(page, "end/rehearsal/")))
    assert visitor.ended(done, timeout=LONG).startswith("Done.")
    is_as_before(appliance, "twin")
    visitor.wait_until(path, "Rehearse a rebuild", without=("was interrupted", "Rehearsed on"), timeout=LONG)


def test_killed_rehearsal_is_told_and_cleaned_up(appliance, visitor, twin):
    job = started(appliance, visitor, twin, "rebuild", victim="agent")
    said = visitor.ended(job, timeout=LONG)
    assert "interrupted" in said, said
    assert "is out of twin" in said, said
    assert status(appliance, "twin")["state"] == "DEGRADED"
    end_interrupted(appliance, visitor, twin)


def test_rehearsal_whose_power_was_cut_is_told_and_cleaned_up(appliance, visitor, twin):
    job = started(appliance, visitor, twin, "rebuild")
    appliance.cut_power()
    appliance.power_on()
    appliance.set_clock()
    moving.plug_in_again(appliance, "twin", {name: serial(name) for name in ("twina", "twinb")}, SIZE)
    visitor.sign_in()
    said = visitor.ended(job, timeout=LONG)
    assert said.startswith("Interrupted."), said
    end_interrupted(appliance, visitor, twin)


def test_stopped_rebuild_leaves_the_pool_redundant_and_empty(appliance, visitor, twin):
    job = started(appliance, visitor, twin, "offline")
    with slowed(appliance, "twinb"):
        wait_for(
            "the rebuild to run",
            lambda: status(appliance, "twin").get("scan_stats", {}).get("state") == "SCANNING",
            timeout=LONG,
        )
        page = visitor.get(f"/jobs/{job}/")
        visitor.send(f"/jobs/{job}/stop/", {"csrfmiddlewaretoken": page.hidden()["csrfmiddlewaretoken"]})
        wait_for(
            "the test data to go",
            lambda: "larder-rehearsal" not in appliance.run("zfs", "list", "-H", "-o", "name"),
            timeout=LONG,
        )
    assert "It was asked to stop" in visitor.ended(job, timeout=LONG)
    is_as_before(appliance, "twin")


def test_rehearsed_time_agrees_with_a_real_replacement(appliance, visitor, twin):
    job = started(appliance, visitor, twin, "offline")
    with slowed(appliance, "twinb"):
        assert visitor.ended(job, timeout=LONG).startswith("Done.")
    is_as_before(appliance, "twin")
    result = result_of(appliance, "twin")
    assert result["share"] == 25
    assert result["seconds"] >= 60, result
    page = visitor.wait_until(twin, "Rehearsed on", timeout=LONG)
    assert re.search(r"a disk of 537 MB, 25 % full, was rebuilt in \d+ (s|min)", page.words), page.words

    appliance.shell("dd if=/dev/urandom of=/twin/films bs=1M count=120 status=none; zpool sync twin")
    visitor.wait_until(twin, without=("Rehearse a rebuild",), timeout=LONG)
    assert review(appliance, visitor, twin, "twin", "twinb").status == 409
    expected = (
        result["seconds"]
        * int(appliance.run("zpool", "get", "-Hp", "-o", "value", "allocated", "twin"))
        / result["looked"]
    )
    (new,) = new_disks(appliance, visitor, "twinc")
    case = press(
        visitor,
        visitor.get(f"{twin}replace/"),
        f"{twin}replace/",
        vdev=shapes.guid_of(appliance, "twin", serial("twinb")),
    ).url
    path = case[case.index("/pools/") :]
    page = visitor.wait_until(path, "is still in use", "as long as the rehearsal of a rebuild took", timeout=LONG)
    with slowed(appliance, "twinc"):
        review_of_new = visitor.get(f"{path}accept/?disk={urllib.parse.quote(new)}")
        visitor.send("/jobs/confirm/", review_of_new.hidden())  # it leads back to the page of the replacement
        visitor.wait_until(path, "twin is complete again", timeout=LONG)
    real = scan_seconds(appliance, "twin")
    assert real == pytest.approx(expected, rel=TOLERANCE), (expected, real, result)
    assert appliance.shell("zpool scrub -w twin; zpool status -x twin").strip().endswith("is healthy")
