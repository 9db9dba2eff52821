"""The rehearsal of a rebuild: its form, and what the pool's page says of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec
from django import forms
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext
from django.views.decorators.http import require_GET
from msgspec.structs import replace

from appliance.errors import Refused
from appliance.facts.box import Facts, Pool
from appliance.facts.datasets import Dataset
from appliance.formatting import capitalize_opening, duration_text, size_text
from appliance.rehearsal import checks, result
from appliance.rehearsal.rehearse import RehearseRebuild
from appliance.rehearsal.result import RehearsalResult
from appliance.zfs import vdev_tree
from web.inventory import store
from web.inventory.bays import device_label
from web.inventory.box import Box, read_box
from web.jobs import confirm
from web.jobs.models import Job
from web.jobs.refusals import refusals_lead_to
from web.pools import advice, rebuild_time
from web.pools.maintenance_views import get_pool
from web.pools.topology import box_facts
from web.translation import lazy_text, text_of

KINDS = ("rehearse-rebuild", "clean-up-rehearsal")


class RehearsalForm(forms.Form):
    share = forms.TypedChoiceField(
        label=lazy_text("How full should the pool be?"),
        coerce=int,
        initial=result.USUAL_SHARE,
        widget=forms.RadioSelect,
        help_text=lazy_text("The fuller, the longer it takes, and the more exact the later estimates are."),
    )
    vdev = forms.TypedChoiceField(
        label=lazy_text("Disk to rebuild"),
        coerce=int,
        help_text=lazy_text("It is taken offline and cleared as if it had failed, then rebuilt. It stays in its bay."),
    )

    def __init__(self, data: object, *, pool: Pool, facts: Facts, box: Box) -> None:
        super().__init__(data)  # type: ignore[arg-type]  # Django takes a QueryDict here
        bays = {bay.key: bay for bay in box.bays}
        rotational = rebuild_time.is_rotational(pool, box)
        shares = [(share, share_text(pool, facts, share, rotational=rotational)) for share in result.SHARES]
        disks = [
            (place.vdev.guid, capitalize_opening(device_label(place.vdev, bays)))
            for place in checks.possible_places(pool)
        ]
        self.fields["share"].choices = shares  # type: ignore[attr-defined]  # Django's stubs know fields only as Field
        self.fields["vdev"].choices = disks  # type: ignore[attr-defined]  # as above


def share_text(pool: Pool, facts: Facts, share: int, *, rotational: bool) -> str:
    """``25 %: 500 GB of test data, about 3 h in all``."""
    seconds = sum(result.expected_seconds(pool, share, rotational=rotational))
    size = text_of(size_text(result.fill_bytes(facts, pool.name, share)))
    return gettext("{share} %: {size} of test data, about {duration} in all").format(
        share=share, size=size, duration=text_of(duration_text(seconds))
    )


@require_GET
@refusals_lead_to("pool", "key")
def rehearse_rebuild(request: HttpRequest, key: str) -> HttpResponse:
    """The form, or the review once its values are valid. Raises Refused where the pool cannot be used for it."""
    pool, facts, box = get_pool(key), store.facts(), read_box()
    Refused.unless_empty(checks.check_pool(pool, facts))
    answered = "answered" in request.GET
    form = RehearsalForm(request.GET if answered else None, pool=pool, facts=facts, box=box)
    if answered and form.is_valid():
        place = vdev_tree.find_vdev(pool, form.cleaned_data["vdev"])
        disk = vdev_tree.disk_of(place.vdev, facts) if place else None
        operation = RehearseRebuild(
            pool=pool.name,
            guid=pool.guid,
            vdev=form.cleaned_data["vdev"],
            disk=disk.path if disk else "",
            share=form.cleaned_data["share"],
        )
        return confirm.review(request, operation, back=reverse("rehearse_rebuild", args=[key]))
    context = {"pool": pool, "key": key, "form": form}
    return render(request, "pools/rehearse.html", context, status=400 if answered else 200)


# --- on the pool's page -----------------------------------------------------------------------------------------
class RehearsalLine(msgspec.Struct, frozen=True):
    """What the pool's page says: the last result, and whether a rehearsal can be started."""

    result: RehearsalResult | None
    can_start: bool


def rehearsal_line(pool: Pool, box: Box, datasets: Iterable[Dataset]) -> RehearsalLine:
    facts = replace(box_facts(box), datasets=tuple(datasets))
    return RehearsalLine(
        result.read_result(pool, facts.datasets), not any(True for _reason in checks.check_pool(pool, facts))
    )


def rehearsal_advice(pool: Pool, datasets: Iterable[Dataset]) -> Iterator[advice.Advice]:
    """What to do about a rehearsal that was interrupted; what it is doing where it is under way.
    One query where one is."""
    if result.read_disk_out(pool.name, datasets) is None:
        return
    job = Job.objects.filter(state__in=Job.OPEN, subject=pool.name, kind__in=KINDS).only("id", "title").first()
    if job:
        yield advice.Advice(
            "working",
            gettext("A rebuild of {name} is being rehearsed.").format(name=pool.name),
            gettext("Store nothing in it before that has ended."),
            reverse("job", args=[job.pk]),
            gettext("See how far it is"),
        )
    else:
        yield advice.Advice(
            "attention",
            gettext("A rehearsal of a rebuild was interrupted, and its test data is still in {name}.").format(
                name=pool.name
            ),
            gettext("Clean up: the disk is put back if it is out, and the test data is deleted."),
            reverse("end_pool", args=[pool.guid, "rehearsal"]),
            gettext("Clean up"),
        )
