"""Diagnose why a user cannot see a share."""

from __future__ import annotations

import msgspec
from django.utils import timezone

from appliance import agent_client
from appliance.errors import explain_error
from appliance.shares.troubleshoot import diagnosis
from web.inventory.dataset_models import DatasetRow
from web.inventory.models import SeenRow
from web.inventory.source_names import SEEN
from web.said import with_said
from workers.celery import app
from workers.collectors import update_source


@app.task(name="workers.look_at_share")
def collect_diagnosis(key: str, protocol: str, person: str) -> None:
    """Have the agent diagnose one share for one user and store the result, or why there is none,
    with that question alone."""
    at = timezone.now()

    def store_answer(name: str, error: str = "", **found: object) -> None:
        SeenRow.objects.update_or_create(
            key=SeenRow.key_of(key, protocol, person),
            defaults={"name": name, "ended": at, **with_said(error=error), **found},
        )

    def read() -> bool:
        row = DatasetRow.objects.filter(key=key).first()
        if row is None:
            return True
        request = {"verb": "look-at-share", "dataset": row.name, "protocol": protocol, "person": person}
        try:
            seen = msgspec.convert(
                agent_client.send_request(request, silence=180).get("facts", {}), diagnosis.Diagnosis
            )
        except Exception as problem:
            store_answer(row.name, explain_error(problem))
            raise
        store_answer(row.name, facts=msgspec.json.encode(seen).decode(), checked=at)
        return True

    update_source(SEEN, read, at=at)
