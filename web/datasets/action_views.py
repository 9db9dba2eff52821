"""Actions on one dataset: rename, move, mount, promote, destroy, and limits of users."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext
from django.views.decorators.http import require_GET, require_http_methods

from appliance.datasets import dataset_detail
from appliance.datasets.destroy import DestroyDataset
from appliance.datasets.mount import MountDataset, UnmountDataset
from appliance.datasets.promote import PromoteDataset
from appliance.datasets.rename import RenameDataset
from appliance.datasets.user_quotas import SetUserQuota
from appliance.errors import Refused
from appliance.facts.datasets import Dataset
from appliance.operation import Operation
from web import live
from web.datasets import actions
from web.datasets.forms import RenameForm, SpaceQuotaForm
from web.inventory.dataset_models import DatasetRow
from web.inventory.fact_row import readable_rows
from web.jobs import confirm
from web.jobs.refusals import add_reasons, refusals_lead_to, review_act

ACTS: dict[str, type[Operation]] = {
    "promote": PromoteDataset,
    "mount": MountDataset,
    "unmount": UnmountDataset,
}


@require_GET
def review_action(request: HttpRequest, key: str, act: str) -> HttpResponse:
    """The review page of an action that needs no form."""
    row = actions.find_row(key)
    back = reverse("folder", args=[key])
    return review_act(request, ACTS, act, back=back, dataset=row.name, guid=row.fact.guid)


@require_GET
def rename_folder(request: HttpRequest, key: str) -> HttpResponse:
    """A form for a new name or parent, then the review page."""
    row = actions.find_row(key)
    dataset: Dataset = row.fact
    parent, _slash, name = dataset.name.rpartition("/")
    parents = [
        found.name
        for found in DatasetRow.objects.filter(pool=dataset.pool, type="filesystem").order_by("name")[:1000]
        if not f"{found.name}/".startswith(f"{dataset.name}/")
    ]
    form = RenameForm(
        request.GET if "answered" in request.GET else None, parents=parents, initial={"parent": parent, "name": name}
    )
    if form.is_bound and form.is_valid():
        try:
            operation = RenameDataset(dataset=dataset.name, guid=dataset.guid, **form.cleaned_data)
            return confirm.review(request, operation, back=reverse("rename_folder", args=[key]))
        except Refused as refusal:
            add_reasons(form, refusal.reasons)
    context = {
        "form": form,
        "dataset": dataset,
        "key": key,
        "title": gettext("Rename or move {name}").format(name=dataset.name),
        "get": True,
        "verb": gettext("Review"),
    }
    return render(request, "datasets/form.html", context, status=400 if form.is_bound else 200)


@require_GET
@refusals_lead_to("folder", "key")
def destroy_folder(request: HttpRequest, key: str) -> HttpResponse:
    """What would be destroyed, read on demand; then the review page."""
    row = actions.find_row(key)
    detail, error = actions.read_detail(row)
    if "review" in request.GET and detail:
        operation = DestroyDataset(dataset=row.name, guid=row.fact.guid, clones=request.GET.get("clones") == "on")
        return confirm.review(request, operation, back=reverse("destroy_folder", args=[key]))

    def build() -> dict[str, object]:
        below = DatasetRow.objects.filter(name__startswith=f"{row.name}/").count()
        found, failed = actions.read_detail(row)
        needing = found.clones if found else ()
        clones = {
            clone.name: (clone.key, fact) for clone, fact in readable_rows(DatasetRow.objects.filter(name__in=needing))
        }
        topmost = list(dataset_detail.find_topmost(needing))  # each counts what is below it too
        return {
            "dataset": row.fact,
            "key": key,
            "detail": found,
            "error": failed or error,
            "below": below,
            "clones": {name: clone for name, (clone, _fact) in clones.items()},
            "freed": row.fact.used + sum(clones[name][1].used for name in topmost if name in clones),
            "least": any(name not in clones for name in topmost),
            "most_held": len(found.held) >= dataset_detail.MOST_NAMED if found else False,
            "top": "/" not in row.name,
        }

    return live.respond(request, "datasets/destroy.html", build)


@require_http_methods(["GET", "POST"])
def limit_space(request: HttpRequest, key: str) -> HttpResponse:
    """Space used by users and groups, and a form to limit one."""
    row, back = actions.find_row(key), reverse("folder_people", args=[key])
    form = SpaceQuotaForm(
        request.POST or None, initial={"of": request.GET.get("of", "user"), "who": request.GET.get("who", "")}
    )
    if request.method == "POST" and form.is_valid():
        try:
            return actions.start_and_return(
                request, SetUserQuota(dataset=row.name, guid=row.fact.guid, **form.cleaned_data), back
            )
        except Refused as refusal:
            add_reasons(form, refusal.reasons)
    if form.is_bound:
        detail, error = actions.read_detail(row)
        return render(
            request,
            "datasets/people.html",
            {"dataset": row.fact, "key": key, "detail": detail, "error": error, "form": form},
            status=400,
        )

    def build() -> dict[str, object]:
        detail, error = actions.read_detail(row)
        return {"dataset": row.fact, "key": key, "detail": detail, "error": error, "form": form}

    return live.respond(request, "datasets/people.html", build)
