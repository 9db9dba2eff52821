"""Diagnose why a user cannot see a share."""

from __future__ import annotations

import msgspec
from django.utils import timezone

from appliance import agent_client
from appliance.shares.troubleshoot import diagnose
from web.inventory.models import DatasetRow, SeenRow
from web.inventory.source_names import SEEN
from workers.celery import app
from workers.collectors import update_source


@app.task(name="workers.look_at_share")
def collect_diagnosis(key: str, protocol: str, person: str) -> None:
    """Have the agent diagnose one share for one user and store the result."""

    def read() -> bool:
        row = DatasetRow.objects.filter(key=key).first()
        if row is None:
            return True
        request = {"verb": "look-at-share", "dataset": row.name, "protocol": protocol, "person": person}
        seen = msgspec.convert(agent_client.send_request(request, silence=180).get("facts", {}), diagnose.Diagnosis)
        facts = msgspec.json.encode(seen).decode()
        SeenRow.objects.update_or_create(
            key=SeenRow.key_of(key, protocol, person), defaults={"name": row.name, "facts": facts}
        )
        return True

    update_source(SEEN, read, at=timezone.now())
