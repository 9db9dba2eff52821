"""Store a confirmed sweep as rows."""

from __future__ import annotations

import uuid

import msgspec
from django.db import IntegrityError, transaction

from appliance.benchmarks.matrix import Sweep
from web.benchmarks.models import CaseRow, SweepRow
from web.inventory import store


def store_sweep(sweep: Sweep, *, title: str, preset: str, pk: str, user: str) -> SweepRow:
    """Store a sweep with all its cases. A second call with the same id returns the same sweep."""
    key = uuid.UUID(pk)
    row = SweepRow(pk=key, title=title, preset=preset, spec=msgspec.json.encode(sweep).decode(), created_by=user)
    try:
        with transaction.atomic():
            row.save(force_insert=True)
            CaseRow.objects.bulk_create(
                CaseRow(
                    sweep=row,
                    number=number,
                    spec=msgspec.json.encode(case).decode(),
                    workload=case.workload,
                    pool=case.pool,
                )
                for number, case in enumerate(sweep.build_cases())
            )
    except IntegrityError:
        return SweepRow.objects.get(pk=key)
    store.touch("sweeps")
    return row
