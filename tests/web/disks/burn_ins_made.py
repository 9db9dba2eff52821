"""Made-up burn-ins in the database, and jobs that end as a test needs."""

from __future__ import annotations

import uuid
from typing import Any

import msgspec
from django.utils import timezone

from appliance.burn_in.regions import RegionResult, encode_result, split_disk
from appliance.burn_in.verdict import DriveFigures, judge_disk
from appliance.disks.exclusive_disk import GONE
from appliance.errors import Failed, explain_error
from tests.unit.made import path_of
from tests.web.routes import BURN_IN
from web.disks.models import BurnIn
from web.jobs.models import Job
from web.said import said_in

SIZE = 2 * 10**12
COUNTS = {"reallocated": 0, "pending": 0, "crc": 3}
PASSED = {"kind": "short", "passed": True, "text": "Completed without error", "hours": 12}


def made(number: int = 1, **changes: Any) -> BurnIn:
    """A burn-in of an empty disk that has just been started."""
    path = path_of(number)
    values: dict[str, Any] = {
        "pk": uuid.UUID(BURN_IN),
        "disk": path.rsplit("/", 1)[-1],
        "path": path,
        "serial": f"WD-WCAZA000000{number}",
        "model": "WDC WD20EARS-00MVWB0",
        "size": SIZE,
        "writes": True,
        "created_by": "admin",
    }
    return BurnIn.objects.create(**{**values, **changes})


def reading(row: BurnIn, **changes: Any) -> None:
    """What the disk has just said, as ``burn_in_readings`` keeps it."""
    told = {"asleep": False, "counts": COUNTS, "passed": True, "able": True, "left": None, "tests": [], "limit": None}
    row.refresh_from_db()
    row.reading = {**told, **changes, "at": timezone.now().isoformat()}
    row.before = row.before or row.reading
    row.save(update_fields=["reading", "before"])


def results(size: int = SIZE, **bad: RegionResult) -> list[RegionResult]:
    """A result for every region, somewhat slower towards the end of the disk."""
    regions = split_disk(size)
    found = {
        region.number: RegionResult(
            number=region.number, written=(150 - 60 * region.number // len(regions)) * 10**6, read=155 * 10**6
        )
        for region in regions
    }
    found |= {one.number: one for one in bad.values()}
    return list(found.values())


def finished(**changes: Any) -> BurnIn:
    """A burn-in that has ended well."""
    values = {
        "state": BurnIn.State.DONE,
        "stage": "last",
        "verdict": "clean",
        "finished": timezone.now(),
        "tests": {"short": {"passed": True, "text": ""}, "long": {"passed": True, "text": ""}},
        "results": msgspec.to_builtins(results()),
        "before": {"counts": COUNTS},
        "reading": {"counts": COUNTS, "hours": 40},
        "temperatures": [[0, 28], [60, 39], [600, 41]],
    }
    return made(**{**values, **changes})


def ended(row: BurnIn, state: str = "done", *found: RegionResult, text: str = "") -> Job:
    """End the job of a burn-in with this state and these results."""
    row.refresh_from_db()
    assert row.job is not None
    log = [encode_result(one) for one in found]
    assert Job.objects.filter(pk=row.job).update(state=state, text=text, log=log, finished=timezone.now()) == 1
    return Job.objects.get(pk=row.job)


def examples() -> None:
    """A disk that passed, one that failed, and one that is being tested: what there is to see."""
    finished()
    bad = RegionResult(number=30, problem="read", at=295 * 10**9)
    slow = RegionResult(number=120, written=20 * 10**6, read=155 * 10**6)
    before, after = DriveFigures(COUNTS, passed=True), DriveFigures({**COUNTS, "crc": 5}, passed=True)
    tests = {"short": {"passed": True, "text": ""}, "long": {"passed": True, "text": ""}}
    found = judge_disk(before, after, tests, split_disk(SIZE), results(bad=bad, slow=slow))
    findings = [[one.state, one.text] for one in found.findings]
    pulled = explain_error(Failed(GONE))
    finished(
        number=2,
        pk=uuid.UUID(int=2),
        verdict=found.state,
        results=msgspec.to_builtins(results(bad=bad, slow=slow)),
        findings=findings,
        said=said_in(findings),
        before={"counts": COUNTS},
        reading={"counts": {**COUNTS, "crc": 5}, "hours": 61},
    )
    made(
        3,
        pk=uuid.UUID(int=3),
        stage="write",
        state=BurnIn.State.PAUSED,
        text=pulled,
        said=said_in(pulled),
        tests={"short": {"passed": True}, "long": {"passed": True}},
        results=msgspec.to_builtins(results()[:77]),
        before={"counts": COUNTS},
        reading={"counts": COUNTS, "hours": 12},
        temperatures=[[0, 28], [60, 39], [300, 41]],
    )
