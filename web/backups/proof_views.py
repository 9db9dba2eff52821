"""What somebody can do to prove a backup: test a restore, try its key, discard what an interrupted run has left."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_GET

from appliance.backups.check_keys import CheckBackupKeys
from appliance.backups.discard_received import DiscardReceived
from appliance.errors import Reason, Refused
from appliance.facts.box import Pool
from web.backups import proof, status
from web.backups.status import BackupStatus
from web.backups.views import dataset_of, find_status
from web.inventory.fact_row import strict_about
from web.jobs import confirm
from web.jobs.refusals import refusals_lead_to


def pool_of(one: BackupStatus) -> Pool:
    """The pool of the copies. Raises Refused while it is not connected."""
    if one.pool is None:
        raise Refused(
            Reason(
                "backup-pool-missing",
                "The pool for the copies of {dataset} is not connected. Connect its disks and import it.",
                dataset=one.dataset.name,
            )
        )
    return one.pool


@require_GET
@refusals_lead_to("backup", "key", "task")
def drill_backup(request: HttpRequest, key: str, task: str) -> HttpResponse:
    """Review what testing a restore means: where to, how much, and that nothing stays."""
    one = find_status(key, task)
    pool = None if one.task.remote else pool_of(one)
    operation = proof.make_drill(one, pool, status.read_facts(strict_about(one.dataset.name, one.target)))
    return confirm.review(request, operation, back=reverse("backup", args=[key, task]))


@require_GET
@refusals_lead_to("backup", "key", "task")
def try_key(request: HttpRequest, key: str, task: str) -> HttpResponse:
    """Ask for the key of the encrypted folders, to try it on their copies."""
    one = find_status(key, task)
    operation = CheckBackupKeys(dataset=one.dataset.name, key=task, target=one.task.root(pool_of(one)), typed=True)
    return confirm.review(request, operation, back=reverse("backup", args=[key, task]))


@require_GET
@refusals_lead_to("backup", "key", "task")
def discard_received(request: HttpRequest, key: str, task: str, copy: str) -> HttpResponse:
    """Review what discarding a half received copy means."""
    found = dataset_of(copy)
    operation = DiscardReceived(copy=found.name, guid=found.guid)
    return confirm.review(request, operation, back=reverse("backup", args=[key, task]))
