"""The environment of a run: I/O of the disks, other load, temperatures, versions. Reads only."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

import msgspec

from appliance.benchmarks.scratch_claim import is_scratch_name
from appliance.benchmarks.validity import Circumstances
from appliance.disks import query, selftest, smart
from appliance.disks.partitions import BLOCK, SECTOR
from appliance.disks.smart import read_temperature
from appliance.errors import Failed
from appliance.facts import vdev_state
from appliance.facts.box import Pool
from appliance.formatting import binary_text, link_label
from appliance.layout.geometry import KIB, MIB
from appliance.message import Message, message_template
from appliance.zfs import kstat, status

MODULE = Path("/sys/module/zfs")
TUNABLES = ("zfs_arc_max", "zfs_dirty_data_max", "zfs_txg_timeout", "zfs_prefetch_disable")
THROTTLES = "cpu*/thermal_throttle/core_throttle_count"
PROCESSORS = Path("/sys/devices/system/cpu")
PROCESSOR, MEMORY = Path("/proc/cpuinfo"), Path("/proc/meminfo")
LEAST_USE = 4 * MIB  # bytes a second; a box in use is never completely idle
MOST_TOLD = 8  # most entries, so that a run fits into one line of a job's log
WORK = {
    "scrub": message_template("{pool} was being scrubbed."),
    "resilver": message_template("{pool} was being rebuilt."),
    "trim": message_template("{pool} was being trimmed."),
    "expand": message_template("{pool} was being expanded."),
    "remove": message_template("{pool} was being emptied."),
    "initialize": message_template("{pool} was being initialized."),
}
OTHER_WORK = message_template("{pool} was being worked on.")


class DiskIo(msgspec.Struct, frozen=True):
    """I/O of a block device since the box started (the kernel's Documentation/block/stat.rst)."""

    requests: int = 0
    read: int = 0
    written: int = 0
    seconds: float = 0.0  # total of the time that requests waited and were served


def parse_block_stat(text: str) -> DiskIo:
    """Parse a ``stat`` file: requests, merges, sectors and milliseconds of reads, then of writes."""
    words = [int(word) for word in text.split() if word.isdigit()]
    if len(words) < 8:
        return DiskIo()
    return DiskIo(words[0] + words[4], words[2] * SECTOR, words[6] * SECTOR, (words[3] + words[7]) / 1000)


def read_io(paths: Iterable[str]) -> dict[str, DiskIo]:
    """I/O by path, without devices that are missing."""
    found = {}
    for path in paths:
        try:
            found[path] = parse_block_stat((BLOCK / Path(path).resolve(strict=True).name / "stat").read_text())
        except OSError:
            continue
    return found


def read_throttle_count() -> int:
    return sum(int(text) for text in kstat.read_texts(PROCESSORS.glob(THROTTLES)) if text.strip().isdigit())


def hottest_disk(paths: Iterable[str]) -> int:
    """Temperature of the warmest disk in degrees Celsius; 0 if none reports one. Sleeping disks are not woken."""
    found = [0]
    for path in paths:
        try:
            result = query.query_disk(path, ["smartctl", "--json", "-n", "standby", "-A", path], timeout=30)
            found.append(read_temperature(json.loads(result.stdout)) or 0)
        except (Failed, ValueError):
            continue
    return max(found)


def running_selftests(paths: Iterable[str]) -> tuple[str, ...]:
    """Disks that run a self-test now, in sentences. Sleeping disks are not woken.

    Partitions count as their disk, and each disk is asked once.
    """
    found = []
    for path in dict.fromkeys(re.sub(r"-part[0-9]+$", "", path) for path in paths):
        try:
            answer = selftest.read_selftests(path, wake=False)
        except Failed:
            continue
        if smart.is_testing(answer):
            found.append(Message("The disk {disk} was testing itself.", disk=link_label(path.rsplit("/", 1)[-1])))
    return tuple(found[:MOST_TOLD])


def read_pools() -> tuple[Pool, ...]:
    """All pools; empty without ZFS, because single disks can be tested without it."""
    return status.read_pools() if status.is_module_loaded() else ()


def running_pool_work(pools: Iterable[Pool], but: str) -> tuple[str, ...]:
    """Long work of all pools but the scratch pool, in sentences."""
    return tuple(
        Message(WORK.get(work.kind, OTHER_WORK), pool=pool.name)
        for pool in pools
        if pool.name != but
        for work in pool.work
        if work.state == "running"
    )


def read_other_io(pools: Iterable[Pool], pool: str, but: str, measured: Collection[str]) -> dict[str, int]:
    """Bytes that others have read and written so far: by other pool, and by dataset of the pool that is tested.

    ``but`` is the scratch pool or dataset, ``measured`` its devices or the raw disk. Other benchmarks are left out,
    because ``has_other_scratch_pool`` reports them.
    """
    found = {}
    for one in pools:
        beside = [device.path for device in one.devices() if device.path and device.path not in measured]
        if one.name != pool and not is_scratch_name(one.name) and beside:
            found[one.name] = sum(done.read + done.written for done in read_io(beside).values())
    for text in kstat.read_texts((kstat.KSTAT / pool).glob("objset-*")):
        name = re.search(r"^dataset_name\s+\S+\s+(.+)$", text, re.MULTILINE)
        if name and not name[1].startswith((pool + "/" + but, but)):
            done = kstat.parse_counters(text)
            found[name[1]] = found.get(name[1], 0) + done.get("nread", 0) + done.get("nwritten", 0)
    return found


def describe_other_io(before: Mapping[str, int], after: Mapping[str, int], seconds: float) -> tuple[str, ...]:
    """Pools and datasets with much I/O between two readings, the busiest first, in sentences."""
    found = {name: now - before.get(name, 0) for name, now in after.items()}
    busy = sorted(
        (name for name in found if found[name] >= LEAST_USE * max(seconds, 1.0)), key=lambda name: -found[name]
    )
    return tuple(
        Message("{name} was in use: {size} were read or written.", name=name, size=binary_text(found[name]))
        for name in busy[:MOST_TOLD]
    )


def has_other_scratch_pool(pools: Iterable[Pool], but: str) -> bool:
    """Whether another benchmark has a scratch pool now."""
    return any(is_scratch_name(pool.name) and pool.name != but for pool in pools)


def lost_devices(pools: Iterable[Pool], name: str) -> tuple[str, ...]:
    """Names of devices of the pool that do not work."""
    pool = next((pool for pool in pools if pool.name == name), None)
    devices = pool.devices() if pool else ()
    return tuple(one.name for one in devices if one.state not in vdev_state.HEALTHY)


def read_memory_limit() -> int:
    """Maximum of the ARC in bytes."""
    return kstat.read_kstat().memory


def io_between(before: Mapping[str, DiskIo], after: Mapping[str, DiskIo]) -> Circumstances:
    """I/O between two readings."""
    both = [(path, before[path], after[path]) for path in after if path in before]
    waits = {
        path.rsplit("/", 1)[-1]: round((now.seconds - then.seconds) / (now.requests - then.requests), 6)
        for path, then, now in both
        if now.requests > then.requests
    }
    slowest = dict(sorted(waits.items(), key=lambda item: -item[1])[:MOST_TOLD])
    return Circumstances(
        read=sum(max(now.read - then.read, 0) for _path, then, now in both),
        written=sum(max(now.written - then.written, 0) for _path, then, now in both),
        per_disk=slowest,
    )


def read_hardware() -> dict[str, str]:
    """Processor and memory of the box, for comparing results of two boxes."""
    found = {}
    for text in kstat.read_texts([PROCESSOR]):
        if model := re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE):
            found[message_template("Processor")] = f"{' '.join(model[1].split())}, {os.cpu_count() or 1} cores"
    for text in kstat.read_texts([MEMORY]):
        if total := re.search(r"^MemTotal:\s*([0-9]+) kB$", text, re.MULTILINE):
            found[message_template("Memory of the box")] = binary_text(int(total[1]) * KIB)
    return found


def read_versions() -> dict[str, str]:
    """Hardware, versions and ZFS tunables that the figures depend on."""
    found = {**read_hardware(), "Linux": os.uname().release}
    for text in kstat.read_texts([MODULE / "version"]):
        found["ZFS"] = text.strip()
    for name in TUNABLES:
        for text in kstat.read_texts([MODULE / "parameters" / name]):
            found[name] = text.strip()
    return found
