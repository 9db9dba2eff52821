"""Backups on real ZFS: Larder's own code against bare commands in one run, what a run starts, and
the memory that it takes."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path

from appliance.backups.stream import send_stream
from deploy.image.machine import Machine
from tests.system.backups.test_pool_to_pool import FORM, key_of_pool, start_now
from tests.system.sharing import key_of
from tests.visitor import Visitor, create_pool, disk_paths

SCRIPT = Path(__file__).with_name("backups_inside.py")
# They would look at each of the hundreds of folders that are made here.
ELSE_AT_WORK = ("larder-worker.service", "zfs-zed.service")
GIB, MIB = 2**30, 2**20
AS_FAST = 1 / 0.95
ONCE_MIB = 64  # and four times as much
# The largest process of the worker, and of the agent, from the beginning of a job to its end. Not their sum: the agent
# starts one for each request, and the longer a job lasts, the more of them come together; and a command that is just
# being started still shares the memory of who starts it (vfork), which would count twice.
WATCH = """
import glob, json, os, sys, time
def pss(unit):
    largest = 0
    for path in glob.glob(f"/sys/fs/cgroup/system.slice/{unit}/**/cgroup.procs", recursive=True):
        try:
            for pid in open(path).read().split():
                if "python" in os.readlink(f"/proc/{pid}/exe"):
                    found = next(int(line.split()[1]) for line in open(f"/proc/{pid}/smaps_rollup") if line.startswith("Pss:"))
                    largest = max(largest, found)
        except (OSError, StopIteration):
            pass
    return largest
job, most, until = f"/run/larder/jobs/{sys.argv[1]}", {}, time.monotonic() + 300
while not os.path.exists(job):
    assert time.monotonic() < until, "the job was over before it was looked at, or has never begun"
    time.sleep(0.1)
while os.path.exists(job):
    for unit in ("larder-worker.service", "larder-agent.service"):
        most[unit] = max(most.get(unit, 0), pss(unit))
    time.sleep(0.2)
print(json.dumps(most))
"""
Figure = tuple[str, float, str, float | None]


def relay_here() -> Iterator[Figure]:
    """What moving the bytes costs the processor of this computer, without a machine; written in records, as ZFS does.

    The promise is held against this alone: a second of a processor that is emulated says little of one that
    is not, as calls into the kernel and switches between processes are slowed down far more than the loop
    that the factor is taken from.
    """
    sender = ["dd", "if=/dev/zero", "bs=128k", "count=16384", "status=none"]
    receivers = {
        "into a pool": ["cat"],
        "into ssh, which takes 16 KiB at a time": ["dd", "of=/dev/null", "bs=16k", "status=none"],
    }

    def cost(receiver: list[str]) -> float:
        begun = time.process_time()
        moved = send_stream(sender, receiver, lambda _moved: None)
        return (time.process_time() - begun) / moved * GIB

    for words, receiver in receivers.items():
        yield f"relay on this computer {words}", min(cost(receiver) for _time in range(3)), "CPU-s/GiB", 0.1


def figures(appliance: Machine, factor: float) -> Iterator[Figure]:
    """Each with its unit, and its bound where one is promised. ``factor``: how much slower a loop is in the machine."""
    yield from relay_here()
    appliance.run("systemctl", "stop", *ELSE_AT_WORK)
    said = appliance.run(
        "/opt/larder/venv/bin/python", "-c", SCRIPT.read_text(), *disk_paths(appliance, 3, 4), timeout=7200
    )
    yield from ratios(json.loads(said.splitlines()[-1]), factor)


def ratios(out: dict[str, float], factor: float) -> list[Figure]:
    """What the script measured, as the promises are made."""
    found: list[Figure] = []
    for name, words, other in (
        ("local", "to a pool", "zfs send | zfs receive"),
        ("ssh", "over ssh", "zfs send | ssh with the same ciphers"),
    ):
        size = f"{out[f'{name} bytes'] / MIB:,.0f} MiB"
        found += [
            (
                f"copying {size} {words} against bare {other}",
                out[f"{name} stream"] / out[f"{name} bare"],
                "times",
                AS_FAST,
            ),
            ("the same, with looking before and after", out[f"{name} step"] / out[f"{name} bare"], "times", None),
            (
                f"relay in the appliance {words}, by its slowness",
                out[f"{name} relay"] / max(factor, 1),
                "CPU-s/GiB",
                None,
            ),
        ]
    for kind in ("pool", "computer"):
        few, many = f"20 to the {kind}", f"200 to the {kind}"
        what = f"nothing new in 200 folders, to a {kind}"
        found += [
            (
                f"{what}: commands beside lists, more than for 20",
                out[f"{many} others"] - out[f"{few} others"],
                "commands",
                0,
            ),
            (f"{what}: commands beside lists", out[f"{many} others"], "commands", None),
            (f"{what}: lists, of at most 50 folders each", out[f"{many} lists"], "lists", None),
            (
                f"{what}: processes and threads of the computer for each folder more",
                (out[f"{many} forks"] - out[f"{few} forks"]) / 180,
                "a folder",
                0.5,
            ),
            (f"{what}: time against the same with 20", out[f"{many} seconds"] / out[f"{few} seconds"], "times", None),
        ]
    return found


def memory(appliance: Machine, visitor: Visitor) -> Iterator[Figure]:
    """What worker and agent take at most while a folder is copied, and while four times as much is."""
    for pool, disk in zip(("bench", "copies"), disk_paths(appliance, 1, 2), strict=True):
        create_pool(appliance, "-o", "ashift=12", "-m", f"/{pool}", pool, disk)
    appliance.run("zfs", "create", "bench/photos")
    visitor.wait_until("/backups/", "bench/photos", "no backup", timeout=90)
    folder = key_of(appliance, "bench/photos")
    visitor.wait_until(f"/backups/of/{folder}/new/", "copies (", timeout=90)
    review = visitor.post(f"/backups/of/{folder}/new/", pool=key_of_pool(appliance, "copies"), name="photos", **FORM)
    assert visitor.ended(visitor.confirm(review)).startswith("Done.")
    page = visitor.wait_until("/backups/", "bench/photos", "copies", "good", timeout=180)
    task = re.search(rf"/backups/of/{folder}/[0-9a-f]{{8}}/", page.text)
    assert task
    most = {}
    for name, size in (("warm", ONCE_MIB), ("once", ONCE_MIB), ("fourfold", 4 * ONCE_MIB)):
        appliance.run(
            "dd", "if=/dev/urandom", f"of=/bench/photos/{name}", "bs=1M", f"count={size}", "conv=fsync", "status=none"
        )
        job = start_now(visitor, task[0])
        most[name] = json.loads(appliance.run("python3", "-c", WATCH, job, timeout=1200))
        assert visitor.ended(job).startswith("Done.")
    for part in ("worker", "agent"):
        once, fourfold = (most[name][f"larder-{part}.service"] for name in ("once", "fourfold"))
        yield f"memory of the {part} while {ONCE_MIB} MiB are copied, PSS", once / 1024, "MiB", None
        yield f"memory of the {part} while four times as much is copied, against that", fourfold / once, "times", 1.05
