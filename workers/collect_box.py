"""What the box is and how it is doing: read when a page asks."""

from __future__ import annotations

import json
import time
from functools import cache

from msgspec.structs import replace

from appliance import command
from appliance.system import box_info, time_sync
from appliance.system.box_info import BoxInfo
from appliance.system.time_sync import TimeSync
from web.inventory import store
from web.inventory.models import BoxRow
from web.inventory.source_names import BOX
from web.jobs.models import Job
from workers.celery import app
from workers.collectors import update_source
from workers.throttle import Coalescer

LONGEST_APART = 60.0  # seconds between two looks of which a throughput of now can be told
_last: list[tuple[float, BoxInfo]] = []
# Jobs that change what the page of the system says.
CHANGING = {"try-mtu", "keep-mtu", "set-host-name", "set-time-servers", "set-time-zone"}
SYNC_STAYS = 15.0  # seconds; asking for it starts three processes
_sync: list[tuple[float, TimeSync | None]] = []


@cache
def tools_version(_module: str) -> str:
    """The version of ZFS's commands; asked again when another module runs."""
    return box_info.read_tools_version()


def read_addresses() -> dict[str, tuple[str, ...]]:
    """Addresses by port, without those that only the next computer can use."""
    links = json.loads(command.run(["ip", "-j", "address"], timeout=10).stdout)
    return {
        link["ifname"]: tuple(
            f"{one['local']}/{one['prefixlen']}" for one in link.get("addr_info", ()) if one.get("scope") == "global"
        )
        for link in links
    }


def seconds_between(before: tuple[float, BoxInfo], after: tuple[float, BoxInfo]) -> float:
    """The seconds between two looks; 0 where they are too far apart or too near to tell how much moves now."""
    seconds = after[0] - before[0]
    return seconds if 0.5 <= seconds <= LONGEST_APART else 0.0


def rates_between(before: tuple[float, BoxInfo], after: tuple[float, BoxInfo]) -> dict[str, list[int]]:
    """Bytes a second received and sent through each port; none where the looks tell nothing of now."""
    seconds = seconds_between(before, after)
    if not seconds:
        return {}
    known = {port.name: port for port in before[1].ports}
    return {
        port.name: [
            max(int((port.received - known[port.name].received) / seconds), 0),
            max(int((port.sent - known[port.name].sent) / seconds), 0),
        ]
        for port in after[1].ports
        if port.name in known
    }


def disk_rates_between(before: tuple[float, BoxInfo], after: tuple[float, BoxInfo]) -> list[int]:
    """Bytes a second read and written on all disks; empty where the looks tell nothing of now, or where a disk was
    pulled, whose counters went with it."""
    seconds = seconds_between(before, after)
    read = after[1].disks_read - before[1].disks_read
    written = after[1].disks_written - before[1].disks_written
    if not seconds or min(read, written) < 0:
        return []
    return [int(read / seconds), int(written / seconds)]


def read_sync() -> TimeSync | None:
    """How the clock is set, read now or some seconds ago."""
    if not _sync or time.monotonic() - _sync[0][0] > SYNC_STAYS:
        _sync[:] = [(time.monotonic(), time_sync.read_time_sync())]
    return _sync[0][1]


def store_box() -> bool:
    """Read the box and store it; how much moves through its ports is told by the look before."""
    module = box_info.read_text(box_info.MODULE_VERSION)
    info = box_info.read_box_info(read_addresses(), tools_version(module))
    info = replace(info, time_sync=read_sync() if info.has_systemd else None)
    now = (time.monotonic(), info)
    rates = rates_between(_last[0], now) if _last else {}
    disk_rates = disk_rates_between(_last[0], now) if _last else []
    _last[:] = [now]
    return store.replace(
        BoxRow, [info], lambda _info: "box", rates=lambda _info: rates, disk_rates=lambda _info: disk_rates
    )


def update_box() -> None:
    update_source(BOX, store_box)


reading = Coalescer(update_box)


@app.task(name="workers.read_box")
def collect_box() -> None:
    """Run a reading that begins after this call; simultaneous callers share one."""
    reading.request_run()


def reread_after_job(job_id: str) -> None:
    """Read the box again after a job that changes what its pages say."""
    if Job.objects.filter(pk=job_id, kind__in=CHANGING).exists():
        reading.request_run()
