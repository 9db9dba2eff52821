"""Sleep timers of disks: set again whenever a disk may have lost power; sleepy disks are not queried."""

from __future__ import annotations

import time
from collections.abc import Iterable

from appliance import agent_client
from appliance.disks import latency, standby
from appliance.message import shorten
from web.alerts.models import DiskCare
from web.inventory.fact_row import readable_rows
from web.inventory.models import DiskRow
from web.said import with_said

_asked: dict[str, tuple[float, int]] = {}  # by kernel name: when a disk was last asked, and its requests until then


def set_timers() -> bool:
    """Tell the disks whose timer may not stand at what was wanted; whether any was told. A sleeping one waits."""
    wanted = {care.disk: care for care in DiskCare.objects.exclude(sleep=None)}
    if not wanted:
        return False
    due = {}
    for row, disk in readable_rows(DiskRow.objects.filter(key__in=wanted, asleep=False)):
        care = wanted[row.key]
        now = f"{standby.power_token(disk.name)} {care.sleep}"
        if disk.path and care.told != now:
            due[disk.path] = care, now
    if not due:
        return False
    disks = {path: care.sleep for path, (care, _now) in due.items()}
    answers = agent_client.send_request({"verb": "let-sleep", "disks": disks}, silence=180).get("facts", {})
    for path, (care, now) in due.items():
        answer = answers.get(path, "")
        if answer and answer != standby.ASLEEP:
            # Only where nobody has wanted something else meanwhile.
            DiskCare.objects.filter(pk=care.pk, sleep=care.sleep).update(
                told=now, **with_said(answer=shorten(answer, 300))
            )
    return True


def take_disks_to_query(rows: Iterable[DiskRow]) -> list[DiskRow]:
    """The disks that may be asked how they are without keeping one awake that is about to fall asleep."""
    minutes = dict(DiskCare.objects.exclude(sleep=None).values_list("disk", "sleep"))
    counters, now, found = latency.read_counters(), time.monotonic(), []
    for row, disk in readable_rows(rows):
        name = disk.name
        requests = counters[name].requests if name in counters else 0
        since, before = _asked.get(name, (0.0, -1))
        if standby.should_leave_alone(minutes.get(row.key), idle=requests == before, since=now - since):
            continue
        _asked[name] = now, requests
        found.append(row)
    return found
