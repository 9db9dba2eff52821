"""Read a dataset's details when a page asks: what destroying it would take along, and space by user. Only root can."""

from __future__ import annotations

import msgspec

from appliance import agent_client
from appliance.facts.datasets import DatasetDetail
from appliance.message import plain_text
from web.inventory import store
from web.inventory.dataset_models import DatasetDetailRow, DatasetRow
from web.jobs.models import Job
from workers.celery import app
from workers.collectors import update_source

# These jobs change the details of a dataset.
CHANGING = {"set-user-quota", "promote-dataset", "rename-dataset"}


@app.task(name="workers.read_dataset")
def collect_dataset(key: str) -> None:
    """Update the details of one dataset and delete those of datasets that are gone."""
    gone = DatasetDetailRow.objects.exclude(key__in=DatasetRow.objects.values("key"))
    gone.delete()
    row = DatasetRow.objects.filter(key=key).first()
    if row is None:
        return

    def read() -> bool:
        answer = agent_client.send_request({"verb": "read-dataset", "dataset": row.name}, silence=300)
        if not (found := answer.get("facts")):
            return bool(DatasetDetailRow.objects.filter(key=key).delete()[0])
        detail = msgspec.convert(found, DatasetDetail)
        facts = msgspec.json.encode(detail, enc_hook=plain_text).decode()
        if DatasetDetailRow.objects.filter(key=key, facts=facts).exists():
            return False
        DatasetDetailRow.objects.update_or_create(key=key, defaults={"name": detail.name, "facts": facts})
        return True

    update_source(store.dataset_source(key), read)
    store.touch("dataset-details")


def reread_after_job(job_id: str) -> None:
    """Read the dataset again that a job has changed."""
    job = Job.objects.filter(pk=job_id, kind__in=CHANGING).first()
    row = DatasetRow.objects.filter(name=job.subject).first() if job else None
    if row:
        collect_dataset.delay(row.key)
