"""Snapshots: of one folder or of all, taking, destroying, and the policy that does both by itself."""

from __future__ import annotations

from collections.abc import Callable

from django.db.models import Sum
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from appliance import schedules
from appliance.errors import Refused
from appliance.facts import Dataset
from appliance.operation import Operation
from appliance.zfs import naming, policies
from appliance.zfs.clearing import MOST, DestroySnapshots
from appliance.zfs.policies import USUAL, Policy
from appliance.zfs.policing import SetPolicy
from appliance.zfs.taking import TakeSnapshot
from web import live
from web.datasets.views import add_reasons
from web.inventory.models import DatasetRow, SnapshotReading, SnapshotRow
from web.jobs import confirm
from web.jobs.models import Job
from web.snapshots import listing, recorded
from web.snapshots.forms import PolicyForm, TakeForm

OWN = ("TakeSnapshot", "DestroySnapshots", "SetPolicy")


def dataset_of(key: str) -> Dataset:
    dataset: Dataset = get_object_or_404(DatasetRow, key=key).fact
    return dataset


def reviewed(request: HttpRequest, operation: Callable[[], Operation], back: str) -> HttpResponse:
    """The review page, or the reasons against it."""
    try:
        return confirm.review(request, operation(), back=back)
    except Refused as refusal:
        return render(request, "jobs/refused.html", {"reasons": refusal.reasons, "back": back}, status=409)


@require_GET
def everything(request: HttpRequest) -> HttpResponse:
    """The snapshots of all folders."""
    asked = listing.Asked.of(request.GET)

    def build() -> dict[str, object]:
        totals = SnapshotReading.objects.aggregate(count=Sum("count"), used=Sum("used"))
        return {
            "found": listing.page(asked),
            "count": totals["count"] or 0,
            "used": totals["used"] or 0,
            **around(asked),
        }

    return live.respond(request, "snapshots/list.html", build)


@require_GET
def of_dataset(request: HttpRequest, key: str) -> HttpResponse:
    """The snapshots of one folder, and the policy that is in force for it."""
    asked = listing.Asked.of(request.GET, key)

    def build() -> dict[str, object]:
        dataset = dataset_of(key)
        reading = SnapshotReading.objects.filter(dataset_key=key).first()
        policy = policies.of(dataset)
        return {
            "found": listing.page(asked),
            "dataset": dataset,
            "key": key,
            "count": reading.count if reading else 0,
            "used": dataset.used_by_snapshots,
            "newest": newest_of(dataset, key),
            "policy": policy,
            "from_above": dataset.policy_source == "inherited",
            "offered": policies.parse(dataset.policy) if dataset.policy_source == "received" else None,
            "latest": Job.objects.filter(subject=dataset.name, kind__in=OWN).defer("plan", "log").first(),
            **around(asked),
        }

    return live.respond(request, "snapshots/list.html", build)


def newest_of(dataset: Dataset, key: str) -> str:
    """The guid of the latest snapshot in which a lost file may be looked for; empty where there is none."""
    newest = SnapshotRow.objects.filter(dataset_key=key).order_by("-created", "-id").values_list("guid", flat=True)
    return (newest.first() or "") if dataset.kind == "filesystem" else ""


def around(asked: listing.Asked) -> dict[str, object]:
    return {"asked": asked, "kinds": listing.KINDS.items(), "orders": listing.ORDERS.items()}


@require_http_methods(["GET", "POST"])
def take(request: HttpRequest, key: str) -> HttpResponse:
    """Take one now; a small act, so without a review page."""
    dataset = dataset_of(key)
    form = TakeForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        name = form.cleaned_data["name"] or naming.name_for(naming.BY_HAND, timezone.now())
        try:
            operation = TakeSnapshot(
                dataset=dataset.name, name=name, below=form.cleaned_data["below"], note=form.cleaned_data["note"]
            )
            job = confirm.start(operation, user=request.user.get_username())
            return redirect("job", pk=job.pk)
        except Refused as refusal:
            add_reasons(form, refusal)
    status = 400 if form.is_bound else 200
    return render(request, "snapshots/take.html", {"form": form, "dataset": dataset, "key": key}, status=status)


@require_POST
def destroy(request: HttpRequest) -> HttpResponse:
    """Show what destroying the chosen ones takes away. Nothing is changed by this request."""
    chosen = [int(key) for key in request.POST.getlist("snapshot") if key.isdecimal() and len(key) < 19]
    rows: list[SnapshotRow] = []
    for start in range(0, len(chosen), 500):
        rows += SnapshotRow.objects.filter(pk__in=chosen[start : start + 500])
    key = request.POST.get("of", "")
    if "every" in request.POST and key.isdecimal():
        # All that the list shows, not only this page of it; the oldest where they are more than go at once.
        rows = list(listing.rows_for(listing.Asked.of(request.POST, key)).order_by("txg")[:MOST])
    back = reverse("snapshots_of", args=[key]) if key.isdecimal() else reverse("snapshots")
    return reviewed(request, lambda: DestroySnapshots.of((row.name, int(row.guid)) for row in rows), back)


# --- policies -------------------------------------------------------------------------------------------------
@require_http_methods(["GET", "POST"])
def policy(request: HttpRequest, key: str) -> HttpResponse:
    """The policy of a folder: first the numbers, then what they will destroy, then the change."""
    dataset = dataset_of(key)
    now = policies.of(dataset) or policies.parse(dataset.policy) or USUAL
    form = PolicyForm(request.POST or None, initial=now)
    context: dict[str, object] = {
        "form": form,
        "dataset": dataset,
        "key": key,
        "own": dataset.policy_source in {"local", "received"},
        "from_above": dataset.policy_source == "inherited" and policies.of(dataset),
        "hours": f"{timezone.now().astimezone(schedules.box_zone()):%H:%M (%Z)}",
    }
    if request.method == "POST" and form.is_valid():
        wanted = form.policy
        context |= {"wanted": wanted, **shown(dataset, wanted)}
        # Numbers changed after they were looked at are shown first.
        if "set" in request.POST and request.POST.get("shown") == wanted.sentence_in_full:
            return begun(request, SetPolicy(dataset=dataset.name, policy=wanted), key)
    return render(request, "snapshots/policy.html", context, status=400 if form.is_bound and form.errors else 200)


@require_POST
def follow(request: HttpRequest, key: str) -> HttpResponse:
    """Take a folder's own policy away."""
    return begun(request, SetPolicy(dataset=dataset_of(key).name), key)


def begun(request: HttpRequest, operation: Operation, key: str) -> HttpResponse:
    back = reverse("snapshots_of", args=[key])
    try:
        job = confirm.start(operation, user=request.user.get_username())
    except Refused as refusal:
        return render(request, "jobs/refused.html", {"reasons": refusal.reasons, "back": back}, status=409)
    return redirect("job", pk=job.pk)


def shown(dataset: Dataset, wanted: Policy) -> dict[str, object]:
    """What the policy will keep in the long run, and what it destroys at once, in every folder that it will hold for."""
    concerned = [(dataset, wanted)]
    if wanted.below:
        concerned += [(below, wanted) for below in followers(dataset)]
    counts = dict(SnapshotReading.objects.values_list("dataset_key", "count"))
    going = recorded.expired(concerned, counts)
    return {
        "going": going[: listing.PAGE],
        "going_count": len(going),
        "folders": len(concerned),
        "will_be": policies.picture(wanted, timezone.now(), schedules.box_zone()),
    }


def followers(dataset: Dataset) -> list[Dataset]:
    """The datasets below that will inherit what is set on this one: nothing of their own on them, nor in between."""
    rows = DatasetRow.objects.filter(name__startswith=f"{dataset.name}/", pool=dataset.pool).order_by("name")
    below: list[Dataset] = [row.fact for row in rows]
    own = tuple(f"{one.name}/" for one in below if one.policy_source in {"local", "received"})
    return [one for one in below if not f"{one.name}/".startswith(own)]
