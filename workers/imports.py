"""Go on with imports of files that were interrupted, by a power cut or a restart of the agent."""

from __future__ import annotations

import time

from django.utils import timezone

from appliance import snapshot_names
from appliance.facts.file_import import FileImport
from appliance.imports.run_import import RunImport
from web.inventory import store
from web.inventory.fact_row import readable_facts
from web.inventory.models import ImportRow
from web.jobs import confirm
from web.jobs.models import BY_SCHEDULE, Job
from workers import guard
from workers.interval import Interval

SECONDS_BETWEEN_LOOKS = 20
MOST_IN_A_ROW = 3  # an import that is interrupted again and again waits for its owner
SECONDS_OF_REST = 180  # after a refusal, which may last until its owner does something
looks = Interval(SECONDS_BETWEEN_LOOKS)
_refused: dict[str, float] = {}


def resume_imports() -> None:
    """Start each import again whose latest run was interrupted. One that failed or was stopped waits for its owner."""
    if not (store.is_read("imports") and store.is_read("datasets")):  # nothing is known right after a start
        return
    tasks: list[FileImport] = readable_facts(ImportRow.objects.order_by("key"))
    for task in tasks:
        jobs = Job.objects.filter(kind="run-import", subject=task.id).order_by("-created")
        states = list(jobs.values_list("state", flat=True)[:MOST_IN_A_ROW])
        if states[:1] != [Job.State.INTERRUPTED] or states == [Job.State.INTERRUPTED] * MOST_IN_A_ROW:
            continue
        if time.monotonic() - _refused.get(task.id, float("-inf")) < SECONDS_OF_REST:
            continue
        moment = snapshot_names.format_moment(timezone.now())
        operation = RunImport(task=task.id, dataset=task.dataset, moment=moment)
        with guard.refusals_logged(f"resuming the import {task.id}"):
            confirm.start_without_review(operation, user=BY_SCHEDULE)
            _refused.pop(task.id, None)
            continue
        _refused[task.id] = time.monotonic()
