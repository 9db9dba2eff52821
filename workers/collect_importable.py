"""Readings that are made only when somebody asks: pools that could be brought in, and what a pool that may end holds."""

from __future__ import annotations

import hashlib

import msgspec
from django.utils import timezone

from appliance import agent_client
from appliance.facts.box import PoolDetail
from appliance.facts.importable import Importable
from appliance.facts.sharing import Session
from appliance.pools import details
from web.inventory import store
from web.inventory.models import DetailRow, ImportableRow, PoolRow, SessionRow
from web.jobs.models import Job
from workers.celery import app
from workers.collectors import update_source
from workers.throttle import Coalescer

# After these the list of pools that could be brought in is another.
CHANGING = {"import-pool", "export-pool", "destroy-pool", "rewind-checkpoint", "erase-disk", "create-pool"}


def store_importable() -> None:
    """Have the agent search all disks; it opens each of them, so it is never done by the clock."""

    def read() -> bool:
        answer = agent_client.request({"verb": "look-for-pools"}, silence=900).get("facts", [])
        store.replace(ImportableRow, msgspec.convert(answer, list[Importable]), lambda pool: str(pool.guid))
        return True  # also where it found the same: a page that says "looking" has to hear that this is over

    # As of its beginning: who asks while an earlier look is under way still waits for one that sees the disks of now.
    update_source("importable", read, at=timezone.now())


searching = Coalescer(store_importable)


@app.task(name="workers.look_for_pools")
def collect_importable() -> None:
    """A search that begins after this call; many who ask at once get one."""
    searching.request_run()


@app.task(name="workers.read_details")
def collect_details() -> None:
    """What the review pages of export, destroy and upgrade show beyond the ordinary facts."""

    def found() -> bool:
        pools = [row.fact for row in PoolRow.objects.all()]
        kept: list[PoolDetail] = [details.read_details(pool) for pool in pools if pool.state != "SUSPENDED"]
        return store.replace(DetailRow, kept, lambda detail: str(detail.guid))

    def sessions() -> bool:
        answer = agent_client.request({"verb": "read-sessions"}, silence=120).get("facts", [])
        return store.replace(SessionRow, msgspec.convert(answer, list[Session]), session_key)

    update_source("details", found)
    update_source("sessions", sessions)


def session_key(session: Session) -> str:
    return hashlib.sha256(msgspec.json.encode(session)).hexdigest()[:32]


def search_after_job(job_id: str) -> None:
    """What a job of that kind has changed is looked for again."""
    if Job.objects.filter(pk=job_id, kind__in=CHANGING).exists():
        collect_importable.delay()
