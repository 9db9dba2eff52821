"""Readings on request: pools that can be imported, and details of pools for the review of export and destroy."""

from __future__ import annotations

import hashlib

import msgspec
from django.utils import timezone

from appliance import agent_client
from appliance.facts.box import PoolDetail
from appliance.facts.importable import Importable
from appliance.facts.sharing import Session
from appliance.pools import features
from web.inventory import store
from web.inventory.fact_row import readable_facts
from web.inventory.models import DetailRow, ImportableRow, PoolRow, SessionRow
from web.inventory.source_names import IMPORTABLE
from web.jobs.models import Job
from workers.celery import app
from workers.collectors import update_source
from workers.throttle import Coalescer

# These jobs change the list of importable pools.
CHANGING = {"import-pool", "export-pool", "destroy-pool", "rewind-checkpoint", "erase-disk", "create-pool"}


def store_importable() -> None:
    """Store the importable pools. The agent opens every disk for it, so no schedule does this."""

    def read() -> bool:
        answer = agent_client.send_request({"verb": "look-for-pools"}, silence=900).get("facts", [])
        store.replace(ImportableRow, msgspec.convert(answer, list[Importable]), lambda pool: str(pool.guid))
        return True  # also without a change: the page that waits has to change

    # As of its beginning: a request during an earlier search waits for one that sees the disks of now.
    update_source(IMPORTABLE, read, at=timezone.now())


searching = Coalescer(store_importable)


@app.task(name="workers.look_for_pools")
def collect_importable() -> None:
    """Run a search that begins after this call; simultaneous callers share one."""
    searching.request_run()


@app.task(name="workers.read_details")
def collect_details() -> None:
    """Store what the review pages of export, destroy and upgrade show beyond the ordinary facts."""

    def found() -> bool:
        pools = readable_facts(PoolRow.objects.all())
        kept: list[PoolDetail] = [features.read_pool_detail(pool) for pool in pools if pool.state != "SUSPENDED"]
        return store.replace(DetailRow, kept, lambda detail: str(detail.guid))

    def sessions() -> bool:
        answer = agent_client.send_request({"verb": "read-sessions"}, silence=120).get("facts", [])
        return store.replace(SessionRow, msgspec.convert(answer, list[Session]), session_key)

    update_source("details", found)
    update_source("sessions", sessions)


def session_key(session: Session) -> str:
    return hashlib.sha256(msgspec.json.encode(session)).hexdigest()[:32]


def search_after_job(job_id: str) -> None:
    """Search again after a job that changes the list."""
    if Job.objects.filter(pk=job_id, kind__in=CHANGING).exists():
        collect_importable.delay()
