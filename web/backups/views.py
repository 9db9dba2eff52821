"""Pages of backups: the list of folders with their copies, one backup, setting up, running, removing."""

from __future__ import annotations

from collections.abc import Callable

from django.db.models import Q
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from appliance import snapshot_names
from appliance.backups import tasks
from appliance.backups.remote.send_backup import SendBackup
from appliance.backups.run_backup import RunBackup
from appliance.backups.set_aside import SetCopyAside
from appliance.backups.set_backup import SetBackup
from appliance.backups.verify_backup import VerifyBackup
from appliance.errors import Reason, Refused
from appliance.facts.box import Pool
from appliance.facts.datasets import Dataset
from appliance.formatting import names_text
from appliance.operation import Operation
from web import live
from web.backups import folder_backups, proof, recovery, status
from web.backups.forms import BackupForm, pool_choices, remote_choices
from web.backups.status import BackupStatus
from web.inventory.dataset_models import DatasetRow, SnapshotRow
from web.inventory.fact_row import OddRows, look_up_or_none, readable_rows, strict_about
from web.jobs import confirm
from web.jobs.models import Job
from web.jobs.refusals import add_reasons, refusals_lead_to
from web.translation import text_of

COPIES = 50
NAMED = 5  # folders in a sentence


@require_GET
def list_backups(request: HttpRequest) -> HttpResponse:
    """Each folder at the top of a pool with its copies, or that it is only on this box."""

    def build() -> dict[str, object]:
        odd = OddRows()
        facts = status.read_facts(odd)
        folders = folder_backups.read_folders(facts, status.read_statuses(facts))
        bare = [folder for folder in folders if not folder.backups and not folder.above]
        orphans = [] if odd.names else status.read_orphans(facts)  # the folder of a copy may be what is left out
        return {
            "odd": odd.names,
            "folders": folders,
            "bare": len(bare),
            "pools": facts.pools,
            "orphans": orphans,
            "no_phrase": any(folder.backups for folder in folders) and recovery.is_missing(),
        }

    return live.respond(request, "backups/list.html", build)


def dataset_of(key: str) -> Dataset:
    dataset: Dataset = get_object_or_404(DatasetRow, key=key).fact
    return dataset


@require_GET
def choose_folder(request: HttpRequest) -> HttpResponse:
    """What to back up: the first question of a new backup."""
    facts = status.read_facts(look_up_or_none)
    folders = [one for one in facts.datasets if not one.copy_of and not one.scratch]
    return render(request, "backups/choose.html", {"folders": folders, "pools": facts.pools})


@require_http_methods(["GET", "POST"])
@refusals_lead_to("backups")
def edit_backup(request: HttpRequest, key: str, task: str = "") -> HttpResponse:
    """A new backup of a folder, or another schedule for one that it has; the review follows."""
    dataset = dataset_of(key)
    facts = status.read_facts(strict_about(dataset.name))
    now = tasks.find_task(dataset, task)
    if task and now is None:
        raise Http404
    form = BackupForm(request.POST or None, dataset=dataset, facts=facts, task=now)
    if request.method == "POST" and form.is_valid():
        try:
            wanted = form.task
            others = tuple(one for one in tasks.tasks_of(dataset) if one.key != wanted.key)
            operation = SetBackup(dataset=dataset.name, tasks=(*others, wanted))
            return confirm.review(request, operation, back=reverse("backups"))
        except Refused as refusal:
            add_reasons(
                form, [reason.with_field("name") if reason.field == "path" else reason for reason in refusal.reasons]
            )
    context = {
        "form": form,
        "dataset": dataset,
        "task": now,
        "key": key,
        "pools": [*pool_choices(dataset, facts), *remote_choices(facts)],
    }
    return live.respond_to_form(request, "backups/edit.html", context)


def find_status(key: str, task: str) -> BackupStatus:
    """The backup with these keys. Raises Http404."""
    found = status.read_statuses(status.read_facts(look_up_or_none))
    one = next((one for one in found if (one.key, one.task.key) == (key, task)), None)
    if one is None:
        raise Http404
    return one


@require_GET
def show_backup(request: HttpRequest, key: str, task: str) -> HttpResponse:
    """One backup: how old the newest copy is, the copies there are, the latest run."""

    def build() -> dict[str, object]:
        one = find_status(key, task)
        rows = (
            SnapshotRow.objects.filter(dataset=one.target, short__startswith=status.NAMES)
            if one.pool
            else SnapshotRow.objects.none()
        )
        context: dict[str, object] = {"one": one, "copies": list(rows.order_by("-txg")[:COPIES]), "count": rows.count()}
        context |= {"levels": proof.levels(one), "summary": list(proof.summary(one)), "test": latest_test(one)}
        if one.task.drill and one.can_run:
            facts = status.read_facts(look_up_or_none)
            context["place"] = proof.drill_place(one.dataset, one.task, facts)
            context["locked"] = text_of(names_text(proof.locked_folders(one.dataset, one.task, facts), NAMED))
        if one.failed and one.pool:
            below = DatasetRow.objects.filter(Q(name=one.target) | Q(name__startswith=f"{one.target}/"))
            context["stuck"] = [row for row, fact in readable_rows(below.order_by("name")[:COPIES]) if fact.copy_of]
        return context

    return live.respond(request, "backups/show.html", build)


def latest_test(one: BackupStatus) -> Job | None:
    """The latest test of a restore, while it runs or where it failed."""
    tests = Job.objects.filter(kind__in=proof.DRILL_KINDS, subject=one.dataset.name, backup=one.task.key)
    job = tests.order_by("-created").first()
    return job if job and job.state != Job.State.DONE else None


@require_POST
@refusals_lead_to("backup", "key", "task")
def run_backup(request: HttpRequest, key: str, task: str) -> HttpResponse:
    """Start a run now."""
    one = find_status(key, task)
    moment = snapshot_names.format_moment(timezone.now())
    if one.task.remote:
        return start_job(request, one, SendBackup.of(one.dataset, one.task, moment))
    return start_now(request, one, lambda pool: RunBackup.of(one.dataset, one.task, pool, moment))


@require_POST
@refusals_lead_to("backup", "key", "task")
def compare_backup(request: HttpRequest, key: str, task: str) -> HttpResponse:
    """Compare every file with its original now."""
    one = find_status(key, task)
    return start_now(
        request, one, lambda pool: VerifyBackup(dataset=one.dataset.name, key=task, target=one.task.root(pool))
    )


def start_now(request: HttpRequest, one: BackupStatus, build: Callable[[Pool], Operation]) -> HttpResponse:
    """Start a job on a backup; the one under way where there is one. Raises Refused."""
    if one.pool is None and not one.is_running:
        raise Refused(
            Reason(
                "backup-pool-missing",
                "The pool for the copies of {dataset} is not connected. Connect its disks and import it.",
                dataset=one.dataset.name,
            )
        )
    return start_job(request, one, build(one.pool) if one.pool else None)


def start_job(request: HttpRequest, one: BackupStatus, operation: Operation | None) -> HttpResponse:
    """The job of an operation; the one under way where there is one. Raises Refused."""
    if one.is_running and one.job:
        return redirect("job", pk=one.job.pk)
    if operation is None:
        raise Http404
    return redirect("job", pk=confirm.start_without_review(operation, user=request.user.get_username()).pk)


@require_GET
@refusals_lead_to("backup", "key", "task")
def remove_backup(request: HttpRequest, key: str, task: str) -> HttpResponse:
    """Review what removing a backup means. The copies stay."""
    dataset = dataset_of(key)
    if tasks.find_task(dataset, task) is None:
        raise Http404
    others = tuple(one for one in tasks.tasks_of(dataset) if one.key != task)
    return confirm.review(
        request, SetBackup(dataset=dataset.name, tasks=others), back=reverse("backup", args=[key, task])
    )


@require_GET
@refusals_lead_to("backup", "key", "task")
def set_copy_aside(request: HttpRequest, key: str, task: str, copy: str) -> HttpResponse:
    """Review what setting a copy aside means, so that the next run makes a new one."""
    found = dataset_of(copy)
    facts = status.read_facts(strict_about(found.name))
    operation = SetCopyAside.of(found, facts, timezone.localdate())
    return confirm.review(request, operation, back=reverse("backup", args=[key, task]))
