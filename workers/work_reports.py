"""Store a report of each scrub, rebuild or other long work that ended. ZFS keeps the last ones on the disks."""

from __future__ import annotations

import time
from collections.abc import Iterable

from appliance import agent_client
from appliance.benchmarks import scratch_claim
from appliance.facts.box import LongWork, Pool
from appliance.pools import progress, work_reports
from appliance.zfs.scan_status import parse_amount
from web import row_retention
from web.inventory.models import Activity
from web.pools.models import WorkReport

SECONDS_BETWEEN_TRIES = 60.0
_tried: dict[str, float] = {}


def store_reports(pools: Iterable[Pool]) -> bool:
    """Write what is missing; whether anything was. Raises Failed where the agent cannot name the damaged files."""
    lasting = [pool for pool in pools if not scratch_claim.is_scratch_name(pool.name)]
    ended = [
        (work_reports.report_key(pool, work), pool, work)
        for pool in lasting
        for work in pool.work
        if not work.under_way
    ]
    known = set(WorkReport.objects.filter(key__in=[key for key, _pool, _work in ended]).values_list("key", flat=True))
    missing = [found for found in ended if found[0] not in known]
    rows = {row.key: row for row in Activity.objects.all()} if missing else {}
    written = False
    for key, pool, work in missing:
        row = rows.get(progress.work_key(pool, work))
        if is_settled(work, row) and not is_from_earlier_run(pool, work, row):
            written = write_report(key, pool, work, row) or written
    return written


def is_settled(work: LongWork, row: Activity | None) -> bool:
    """Whether the end is one. A rebuilding that begins anew for another disk looks stopped for a moment, so what was
    stopped is believed at the second look."""
    return work.state == "finished" or bool(row and row.settled)


def is_from_earlier_run(pool: Pool, work: LongWork, row: Activity | None) -> bool:
    """Of work that is known by its end: an end older than the last report's comes from a disk of an earlier run."""
    if work.kind not in progress.KNOWN_BY_THEIR_END or work.ended is None or (row and row.started):
        return False
    return WorkReport.objects.filter(pool_key=str(pool.guid), kind=work.kind, ended__gte=work.ended).exists()


def write_report(key: str, pool: Pool, work: LongWork, row: Activity | None) -> bool:
    """One report, once: its key is unique. Files are asked for only where there is damage."""
    files: tuple[str, ...] = ()
    damaged = 0
    scan = work.kind in {"scrub", "resilver"}
    if scan and (pool.errors or work.errors):
        if time.monotonic() - _tried.get(key, -SECONDS_BETWEEN_TRIES) < SECONDS_BETWEEN_TRIES:
            return False
        _tried[key] = time.monotonic()
        found = agent_client.send_request({"verb": "read-damage", "pool": pool.name}, silence=90).get("facts") or {}
        files, damaged = tuple(str(name) for name in found.get("files") or ()), parse_amount(found.get("count"))
    began = row.started if row else None
    wear = work_reports.wear_of(pool) if scan else ()
    report = work_reports.make_report(work, began=began, files=files, damaged=damaged, wear=wear)
    _row, made = WorkReport.objects.get_or_create(
        key=key,
        defaults={
            "pool_key": str(pool.guid),
            "pool": pool.name,
            "kind": report.kind,
            "outcome": report.outcome,
            "started": report.started,
            "ended": report.ended,
            "looked": report.looked,
            "repaired": report.repaired,
            "errors": report.errors,
            "damaged": report.damaged,
            "files": list(report.files),
            "wear": [[found.device, found.read, found.write, found.checksum] for found in report.wear],
            "subject": report.subject[:255],
        },
    )
    _tried.pop(key, None)
    prune_reports(pool)
    return made


def prune_reports(pool: Pool) -> None:
    row_retention.choose_past(
        WorkReport.objects.filter(pool_key=str(pool.guid)), row_retention.REPORTS_OF_POOL
    ).delete()
