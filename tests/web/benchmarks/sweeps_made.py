"""Made-up sweeps in the database, and jobs that end as a test needs."""

from __future__ import annotations

import json
import uuid
from typing import Any

import msgspec
from django.utils import timezone

from appliance.benchmarks.matrix import Sweep
from appliance.benchmarks.parse_results import Figures
from appliance.benchmarks.results import RESULT, VERSIONS, BenchmarkRun
from appliance.benchmarks.validity import Circumstances
from appliance.layout.geometry import MIB
from tests.unit.made import path_of
from tests.web.routes import SWEEP
from web.benchmarks import create
from web.benchmarks.models import CaseRow, ResultRow, SweepRow
from web.jobs.models import Job


def spec(**changes: Any) -> Sweep:
    made = {
        "where": "scratch",
        "workloads": ["seq-write"],
        "disks": [path_of(1), path_of(2)],
        "layouts": ["mirror"],
        "ashifts": [9, 12],
        "repeats": 2,
    }
    return msgspec.convert({**made, **changes}, Sweep)


def made(of: Sweep | None = None, **changes: Any) -> SweepRow:
    row = create.store_sweep(of or spec(), title="Sectors", preset="ashift", pk=SWEEP, user="admin")
    for name, value in changes.items():
        setattr(row, name, value)
    row.save()
    return row


def run(number: int = 1, rate: float = 100.0 * MIB, **changes: Any) -> BenchmarkRun:
    return BenchmarkRun(number=number, figures=Figures(rate=rate, operations=rate), around=Circumstances(), **changes)


def told(*runs: BenchmarkRun, zfs: str = "2.3.9") -> list[str]:
    return [VERSIONS + json.dumps({"ZFS": zfs}), *(RESULT + msgspec.json.encode(one).decode() for one in runs)]


def ended(case: CaseRow, state: str = "done", *runs: BenchmarkRun, text: str = "", zfs: str = "2.3.9") -> None:
    """End the job of a case with this state."""
    case.refresh_from_db()
    log = told(*(runs or (run(1), run(2))), zfs=zfs) if state == "done" else []
    assert case.job is not None
    found = Job.objects.filter(pk=case.job).update(state=state, text=text, log=log, finished=timezone.now())
    assert found == 1


def finished(of: Sweep | None = None, rates: tuple[float, ...] = (79.0, 133.0), **changes: Any) -> SweepRow:
    """A sweep with a result for each of its cases."""
    row = made(
        of, state=SweepRow.State.DONE, finished=timezone.now(), versions='{"ZFS": "2.3.9", "Linux": "6.12"}', **changes
    )
    now = timezone.now()
    for case, rate in zip(row.cases.all(), [rates[at % len(rates)] for at in range(row.cases.count())], strict=True):
        CaseRow.objects.filter(pk=case.pk).update(state=CaseRow.State.DONE, started=now, finished=now)
        ResultRow.objects.bulk_create(
            ResultRow(case=case, number=at, told=msgspec.json.encode(run(at, (rate + at / 10) * MIB)).decode())
            for at in (1, 2, 3)
        )
    return row


def again(first: SweepRow, factor: float) -> SweepRow:
    """The same sweep a second time, with every figure multiplied by ``factor``."""
    row = create.store_sweep(first.sweep, title="Again", preset=first.preset, pk=str(uuid.uuid4()), user="admin")
    for case, before in zip(row.cases.all(), first.cases.all(), strict=True):
        CaseRow.objects.filter(pk=case.pk).update(state=CaseRow.State.DONE)
        for result in before.results.all():
            told = run(result.number, result.run.figures.rate * factor)
            ResultRow.objects.create(case=case, number=result.number, told=msgspec.json.encode(told).decode())
    return row
