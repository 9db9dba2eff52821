"""Manual changes of files that Larder writes and of iSCSI targets: how each differs, and the choice
to adopt or overwrite it."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils.translation import gettext
from django.views.decorators.http import require_GET

from appliance.errors import Refused
from appliance.operation import Operation
from appliance.shares.drift.detect import Edit
from appliance.shares.drift.resolve import AdoptDrift, OverwriteDrift, without_setting
from appliance.shares.drift.targets import OverwriteTarget
from appliance.shares.iscsi.differences import explain_difference
from appliance.shares.iscsi.divergence import TargetEdit
from appliance.shares.settings import SPOKEN
from web import live
from web.inventory.dataset_models import DatasetRow
from web.inventory.fact_row import readable_facts
from web.inventory.models import EditRow, TargetEditRow
from web.jobs import confirm
from web.jobs.refusals import refusal_page

KINDS = {"+": "added", "-": "removed", "@": "place"}


class DiffLine(msgspec.Struct, frozen=True):
    """A line of a difference: added, removed, place or plain, with a sign that does not depend on colour."""

    kind: str
    text: str


class Shown(msgspec.Struct, frozen=True):
    """A hand edit with its difference as lines."""

    edit: Edit
    lines: tuple[DiffLine, ...]

    @property
    def about(self) -> str:
        return (
            gettext("the shares over {spoken}").format(spoken=SPOKEN[self.edit.key])
            if self.edit.key in SPOKEN
            else gettext("what is announced in the network")
        )


class ShownTarget(msgspec.Struct, frozen=True):
    """A target that was changed by hand, with its differences as sentences and the key of its volume's page."""

    edit: TargetEdit
    volume: str
    differences: tuple[str, ...]


def lines_of(edit: Edit) -> tuple[DiffLine, ...]:
    """The difference without its two lines of file names."""
    return tuple(DiffLine(KINDS.get(line[:1], "plain"), line) for line in edit.diff[2:])


@require_GET
def list_edits(request: HttpRequest) -> HttpResponse:
    """Every hand edit, and the copies of earlier ones."""

    def build() -> dict[str, object]:
        found: list[Edit] = readable_facts(EditRow.objects.order_by("key"))
        return {
            "edits": [Shown(one, lines_of(one)) for one in found if one.seen],
            "copies": [copy for one in found for copy in one.copies],
            "targets": list(shown_targets()),
        }

    return live.respond(request, "shares/drift.html", build)


def shown_targets() -> Iterator[ShownTarget]:
    """Every target that was changed by hand: two queries."""
    found: list[TargetEdit] = readable_facts(TargetEditRow.objects.order_by("name", "key"))
    volumes = dict(DatasetRow.objects.filter(name__in=[one.volume for one in found]).values_list("name", "key"))
    for one in found:
        yield ShownTarget(one, volumes.get(one.volume, ""), tuple(map(explain_difference, one.differences)))


@require_GET
def put_target_back(request: HttpRequest, key: str) -> HttpResponse:
    """The review page of serving a target as it is set, in place of what was made of it by hand."""
    back = reverse("edits")
    row = TargetEditRow.objects.filter(key=key).first()
    if row is None:
        return redirect(back)
    edit: TargetEdit = row.fact
    if not edit.writable:
        raise Http404
    try:
        return confirm.review(request, OverwriteTarget(target=edit.name, seen=edit.seen), back=back)
    except Refused as refusal:
        return refusal_page(request, refusal.reasons, back)


@require_GET
def decide_edit(request: HttpRequest, key: str, what: str) -> HttpResponse:
    """The review page of adopting a hand edit or of writing over it."""
    if what not in {"adopt", "overwrite"}:
        raise Http404
    edit: Edit = get_object_or_404(EditRow, key=key).fact
    back = reverse("edits")
    if not edit.seen:
        return redirect(back)
    try:
        if edit.against and what == "adopt":
            raise Refused(*map(without_setting, edit.against))
        operation: Operation = OverwriteDrift(file=key, seen=edit.seen)
        if what == "adopt":
            operation = AdoptDrift(file=key, seen=edit.seen, changes=edit.changes)
        return confirm.review(request, operation, back=back)
    except Refused as refusal:
        return refusal_page(request, refusal.reasons, back)
