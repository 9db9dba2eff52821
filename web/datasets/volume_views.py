"""Volumes: the list, creating one, growing one. The rest is shared with folders."""

from __future__ import annotations

import msgspec
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext
from django.views.decorators.http import require_GET, require_http_methods

from appliance.datasets.volumes import CreateVolume, GrowVolume, block_of
from appliance.errors import Refused
from appliance.facts.datasets import Dataset
from appliance.layout.block_sizes import (
    FOR_DESKTOPS,
    FOR_MACHINES,
    MEASURED_WITH,
    BlockCost,
    advise_block,
    list_costs,
)
from web import live
from web.datasets import actions
from web.datasets.forms import GrowForm, VolumeForm
from web.datasets.views import list_filesystems
from web.inventory.dataset_models import DatasetRow
from web.inventory.fact_row import readable_facts, readable_rows
from web.inventory.models import PoolRow
from web.jobs import confirm
from web.jobs.refusals import add_reasons

PAGE = 100


class PoolCosts(msgspec.Struct, frozen=True):
    """What each block size costs in ``pools``, which are all alike.
    ``advised``: the block for machines and databases, where the usual one takes too much there; else 0."""

    pools: str
    costs: tuple[BlockCost, ...]
    advised: int


def compare_blocks() -> list[PoolCosts]:
    """Of all pools of which it is known."""
    alike: dict[tuple[BlockCost, ...], list[str]] = {}
    for pool in readable_facts(PoolRow.objects.order_by("name")):
        alike.setdefault(list_costs(pool), []).append(pool.name)
    return [
        PoolCosts(", ".join(names), costs, advised if (advised := advise_block(costs)) != FOR_MACHINES else 0)
        for costs, names in alike.items()
        if costs
    ]


@require_GET
def list_volumes(request: HttpRequest) -> HttpResponse:
    """The list of all volumes."""

    def build() -> dict[str, object]:
        found = DatasetRow.objects.filter(type="volume").order_by("name")
        page = Paginator(found, PAGE).get_page(request.GET.get("page"))
        return {"page": page, "volumes": readable_rows(page), "pools": DatasetRow.objects.exists()}

    return live.respond(request, "datasets/volumes.html", build)


@require_http_methods(["GET", "POST"])
def create_volume(request: HttpRequest) -> HttpResponse:
    """Create a volume without a review page."""
    parents = list(list_filesystems().values_list("name", flat=True)[:1000])
    form = VolumeForm(request.POST or None, parents=parents)
    if request.method == "POST" and form.is_valid():
        try:
            job = confirm.start_without_review(CreateVolume(**form.cleaned_data), user=request.user.get_username())
            return redirect("job", pk=job.pk)
        except Refused as refusal:
            add_reasons(form, refusal.reasons)
    context = {
        "form": form,
        "back": reverse("volumes"),
        "title": gettext("Create a volume"),
        "verb": gettext("Create the volume"),
        "compared": compare_blocks(),
        "machines": FOR_MACHINES,
        "desktops": FOR_DESKTOPS,
        "measured_with": MEASURED_WITH,
    }
    return render(request, "datasets/create_volume.html", context, status=400 if form.is_bound else 200)


@require_http_methods(["GET", "POST"])
def grow_volume(request: HttpRequest, key: str) -> HttpResponse:
    """A form for a larger size, then the review page, since a volume cannot shrink again."""
    volume: Dataset = actions.find_row(key).fact
    if volume.kind != "volume":
        raise Http404
    back = reverse("folder", args=[key])
    form = GrowForm(request.POST or None, block=block_of(volume), initial={"size": volume.volsize})
    if request.method == "POST" and form.is_valid():
        try:
            return confirm.review(
                request, GrowVolume(dataset=volume.name, guid=volume.guid, **form.cleaned_data), back=back
            )
        except Refused as refusal:
            add_reasons(form, refusal.reasons)
    context = {
        "form": form,
        "dataset": volume,
        "back": back,
        "title": gettext("Make {name} larger").format(name=volume.name),
        "verb": gettext("Review"),
    }
    return render(request, "datasets/form.html", context, status=400 if form.is_bound else 200)
