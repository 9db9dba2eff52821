"""Pages of snapshots: lists, taking and destroying them, bookmarks, and schedules."""

from __future__ import annotations

from datetime import date, datetime

from django.db.models import QuerySet, Sum
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from appliance import schedule, snapshot_names
from appliance.errors import Refused
from appliance.facts.copy_mark import is_continued
from appliance.facts.datasets import Dataset
from appliance.snapshots import policy as snapshot_policy
from appliance.snapshots.bookmarks import DestroyBookmark
from appliance.snapshots.destroy import MOST, DestroySnapshots
from appliance.snapshots.policy import USUAL, Policy
from appliance.snapshots.set_policy import SetSnapshotPolicy
from appliance.snapshots.take import TakeSnapshot
from web import live
from web.inventory.dataset_models import BookmarkRow, DatasetRow, SnapshotReading, SnapshotRow
from web.inventory.fact_row import facts_of, readable_facts
from web.jobs import confirm
from web.jobs.models import Job
from web.jobs.refusals import add_reasons, refusal_page, refusals_lead_to
from web.snapshots import adoption, agent_queries, paging, policy_ledger, policy_timeline
from web.snapshots.forms import PolicyForm, TakeForm

OWN = ("take-snapshot", "destroy-snapshots", "destroy-bookmark", "set-snapshot-policy")
BOOKMARKS = 20  # that are shown below the snapshots
BOOKMARKS_A_PAGE = 100


def dataset_of(key: str) -> Dataset:
    dataset: Dataset = get_object_or_404(DatasetRow, key=key).fact
    return dataset


@require_GET
def all_snapshots(request: HttpRequest) -> HttpResponse:
    """The snapshots of all folders."""
    asked = paging.Asked.from_query(request.GET)

    def build() -> dict[str, object]:
        totals = SnapshotReading.objects.aggregate(count=Sum("count"), used=Sum("used"))
        return {
            "found": paging.snapshot_page(asked),
            "count": totals["count"] or 0,
            "used": totals["used"] or 0,
            **filter_context(asked),
        }

    return live.respond(request, "snapshots/list.html", build)


@require_GET
def snapshots_of_dataset(request: HttpRequest, key: str) -> HttpResponse:
    """The snapshots of one folder, and the schedule that it follows."""
    asked = paging.Asked.from_query(request.GET, key)

    def build() -> dict[str, object]:
        dataset = dataset_of(key)
        reading = SnapshotReading.objects.filter(dataset_key=key).first()
        policy = snapshot_policy.policy_of(dataset)
        bookmarks = list(bookmarks_of(key)[: BOOKMARKS + 1])
        return {
            "found": paging.snapshot_page(asked),
            "dataset": dataset,
            "takes": not is_continued(dataset.copy_of),
            "key": key,
            "count": reading.count if reading else 0,
            "used": dataset.used_by_snapshots,
            "newest": newest_of(dataset, key),
            "policy": policy,
            "unrecorded": adoption.count_unrecorded([key]).get(key, 0),
            "from_above": dataset.policy_source == "inherited",
            "offered": snapshot_policy.offered_policy(dataset),
            "latest": Job.objects.filter(subject=dataset.name, kind__in=OWN).defer("plan", "log").first(),
            "bookmarks": bookmarks[:BOOKMARKS],
            "more_bookmarks": len(bookmarks) > BOOKMARKS,
            **filter_context(asked),
        }

    return live.respond(request, "snapshots/list.html", build)


def newest_of(dataset: Dataset, key: str) -> str:
    """The guid of the latest snapshot with files to browse; empty if there is none."""
    newest = SnapshotRow.objects.filter(dataset_key=key).order_by("-created", "-id").values_list("guid", flat=True)
    return (newest.first() or "") if dataset.kind == "filesystem" else ""


def filter_context(asked: paging.Asked) -> dict[str, object]:
    return {"asked": asked, "kinds": paging.KINDS.items(), "orders": paging.ORDERS.items()}


@require_http_methods(["GET", "POST"])
def take_snapshot(request: HttpRequest, key: str) -> HttpResponse:
    """Take a snapshot now, without a review."""
    dataset = dataset_of(key)
    form = TakeForm(request.POST or None, dataset=dataset)
    if request.method == "POST" and form.is_valid():
        name = form.cleaned_data["name"] or snapshot_names.name_for(snapshot_names.BY_HAND, timezone.now())
        try:
            operation = TakeSnapshot(
                dataset=dataset.name,
                name=name,
                below=form.cleaned_data.get("below", False),
                note=form.cleaned_data["note"],
            )
            job = confirm.start_without_review(operation, user=request.user.get_username())
            return redirect("job", pk=job.pk)
        except Refused as refusal:
            add_reasons(form, refusal.reasons)
    return live.respond_to_form(request, "snapshots/take.html", {"form": form, "dataset": dataset, "key": key})


@require_POST
def destroy_snapshots(request: HttpRequest) -> HttpResponse:
    """Review what destroying the chosen snapshots means. This request changes nothing."""
    chosen = [int(key) for key in request.POST.getlist("snapshot") if key.isdecimal() and len(key) < 19]
    rows: list[SnapshotRow] = []
    for start in range(0, len(chosen), 500):
        rows += SnapshotRow.objects.filter(pk__in=chosen[start : start + 500])
    key = request.POST.get("of", "")
    if "every" in request.POST and key.isdecimal():
        # All snapshots of the filtered list, not only of this page; the oldest if there are too many at once.
        rows = list(paging.rows_for(paging.Asked.from_query(request.POST, key)).order_by("txg")[:MOST])
    back = reverse("snapshots_of", args=[key]) if key.isdecimal() else reverse("snapshots")
    try:
        operation = DestroySnapshots.for_pairs((row.name, int(row.guid)) for row in rows)
        return confirm.review(request, operation, back=back, facts=agent_queries.measure_facts(operation))
    except Refused as refusal:
        return refusal_page(request, refusal.reasons, back)


def bookmarks_of(key: str) -> QuerySet[BookmarkRow]:
    """The bookmarks of a folder, newest first; several may be of one moment."""
    return BookmarkRow.objects.filter(dataset_key=key).order_by("-txg", "short")


@require_GET
def list_bookmarks(request: HttpRequest, key: str) -> HttpResponse:
    """A page of the bookmarks of one folder."""
    dataset, after = dataset_of(key), request.GET.get("after", "")
    page, last = paging.page_by_number(bookmarks_of(key), after, BOOKMARKS_A_PAGE, "txg", "short")
    context = {"dataset": dataset, "key": key, "bookmarks": page, "after": after, "next": last}
    return render(request, "snapshots/bookmarks_of.html", context)


@require_GET
@refusals_lead_to("snapshots_of", "key")
def destroy_bookmark(request: HttpRequest, key: str, short: str) -> HttpResponse:
    """Review what destroying a bookmark means."""
    row = get_object_or_404(BookmarkRow, dataset_key=key, short=short)
    operation = DestroyBookmark(bookmark=row.name, guid=int(row.guid))
    return confirm.review(request, operation, back=reverse("snapshots_of", args=[key]))


# --- schedules ------------------------------------------------------------------------------------------------
@require_http_methods(["GET", "POST"])
@refusals_lead_to("snapshots_of", "key")
def edit_policy(request: HttpRequest, key: str) -> HttpResponse:
    """The schedule of a folder: first the numbers, then what they will destroy, then the change."""
    dataset = dataset_of(key)
    now = snapshot_policy.policy_of(dataset) or snapshot_policy.offered_policy(dataset) or USUAL
    form = PolicyForm(request.POST or None, initial=now, dataset=dataset)
    context: dict[str, object] = {
        "form": form,
        "dataset": dataset,
        "key": key,
        "own": dataset.policy_source in snapshot_policy.OWN,
        **cost_of(dataset),
        "unrecorded": adoption.count_unrecorded([key]).get(key, 0),
        "policy": snapshot_policy.policy_of(dataset),
        "from_above": dataset.policy_source == "inherited" and snapshot_policy.policy_of(dataset),
        "hours": f"{timezone.now().astimezone(schedule.box_zone()):%H:%M (%Z)}",
    }
    if request.method == "POST" and form.is_valid():
        wanted = form.policy
        # The effect of numbers that were changed after the last look is shown before they are set.
        if "set" in request.POST and request.POST.get("shown") == wanted.fingerprint:
            operation = SetSnapshotPolicy(dataset=dataset.name, policy=wanted)
            return confirm.start_or_review(request, operation, back=reverse("snapshots_of", args=[key]))
        context |= {
            "wanted": wanted,
            **policy_effect(dataset, wanted),
            **project_policy(wanted, form.cleaned_data["day"]),
        }
    return render(request, "snapshots/policy.html", context, status=400 if form.is_bound and form.errors else 200)


@require_http_methods(["GET", "POST"])
@refusals_lead_to("snapshots_of", "key")
def follow_parent(request: HttpRequest, key: str) -> HttpResponse:
    """Remove a folder's own schedule: first what following the one above means, then the change."""
    dataset = dataset_of(key)
    row = DatasetRow.objects.filter(name=dataset.name.rpartition("/")[0]).first()
    parent: Dataset | None = row.fact if row else None
    wanted = snapshot_policy.parent_policy(parent)
    shown = wanted.fingerprint if wanted else ""
    if request.method == "POST" and request.POST.get("shown") == shown:
        operation = SetSnapshotPolicy(dataset=dataset.name)
        return confirm.start_or_review(request, operation, back=reverse("snapshots_of", args=[key]))
    context = {"dataset": dataset, "key": key, "parent": parent, "wanted": wanted, "shown": shown}
    return render(request, "snapshots/follow.html", {**context, **policy_effect(dataset, wanted)})


def policy_effect(dataset: Dataset, wanted: Policy | None) -> dict[str, object]:
    """What a schedule destroys at once, in every folder that will follow it."""
    followers = [dataset]
    if wanted is None or wanted.below:
        # Strictly: nothing that would lose snapshots may be missing.
        followers += snapshot_policy.inheriting_datasets(dataset, list(facts_of(rows_below(dataset))))
    counts = dict(SnapshotReading.objects.values_list("dataset_key", "count"))
    going = policy_ledger.expired_rows([(follower, wanted) for follower in followers], counts)
    return {
        "going": going[: paging.PAGE],
        "going_count": len(going),
        "freed": agent_queries.freed_by_pruning(going) if going else None,
        "folders": len(followers),
    }


def project_policy(wanted: Policy, day: date | None) -> dict[str, object]:
    """What a schedule keeps in the long run, as of a day at this hour."""
    now, zone = timezone.now(), schedule.box_zone()
    at = datetime.combine(day, now.astimezone(zone).time(), zone) if day else now
    kept = snapshot_policy.project_snapshots(wanted, at, zone)
    return {"will_be": kept, "day": day, "drawing": policy_timeline.draw_timeline(kept, at)}


def cost_of(dataset: Dataset) -> dict[str, object]:
    """The space used by automatic snapshots of a folder and of those that follow its schedule."""
    followers = [dataset, *snapshot_policy.inheriting_datasets(dataset, readable_facts(rows_below(dataset)))]
    costs = policy_ledger.policy_costs(followers)
    return {"cost": sum(costs.values(), policy_ledger.Cost()), "cost_folders": len(costs)}


def rows_below(dataset: Dataset) -> QuerySet[DatasetRow]:
    """The datasets below it."""
    return DatasetRow.objects.filter(name__startswith=f"{dataset.name}/").order_by("name")
