"""The pages of the create-pool wizard: the suggested layouts as cards first, and all of them to compare."""

from __future__ import annotations

import secrets
from collections.abc import Iterable

from django import forms
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_GET

from appliance import names
from appliance.errors import Reason, Refused
from appliance.facts.box import Caching
from appliance.layout import aux_devices
from appliance.pools.create import CreatePool
from web.inventory.fact_row import first_fact
from web.inventory.models import CachingRow
from web.jobs import confirm, queue
from web.jobs.operation_ui import UI
from web.jobs.refusals import add_reasons
from web.pools.forms import is_usable
from web.pools.layout_offers import offer_layouts
from web.pools.wizard_answers import FIELDS, LISTED, ORDER, STEP_OF, Answers
from web.translation import lazy_text

NO_FREE_DISK = lazy_text("There is no free disk in this box. Add a disk, or free one, then come back.")


@require_GET
def create_pool(request: HttpRequest) -> HttpResponse:
    """One step. Answers travel in the address: going back loses nothing, and nothing happens before the review."""
    answers = Answers.from_request(request)
    step = answers.step
    # The first earlier step without good answers is shown instead of the one that was asked for.
    for earlier in ORDER[: ORDER.index(step)]:
        if answers.skips(earlier):
            continue
        if earlier == "disks" and answers.needs_disks:
            return step_page(request, answers, "disks", answers.build_form("disks", bound=False))
        form = answers.build_form(earlier)
        if not form.is_valid():
            return step_page(request, answers, earlier, form, status=400)
    if reasons := answers.reasons_before(step):
        return refused_step(request, answers, reasons)
    if step == "review":
        try:
            back, titles = answers.step_url("options"), step_titles(answers.list_steps(step))
            return confirm.review(request, answers.build_operation(), back=back, titles=titles)
        except Refused as refusal:
            return refused_step(request, answers, refusal.reasons)
    # A layout that was chosen for other disks is no error: the page proposes another one.
    bound = answers.has_answered(step) and step != "layout"
    if not bound:
        queue.request_refresh()  # a disk that was put in just now can be chosen as soon as it is known
    return step_page(request, answers, step, answers.build_form(step, bound=bound))


def refused_step(request: HttpRequest, answers: Answers, reasons: Iterable[Reason]) -> HttpResponse:
    """The step whose answer the operation refuses, with the reasons."""
    reasons = tuple(reasons)
    step = next((STEP_OF[reason.field] for reason in reasons if reason.field in STEP_OF), "disks")
    form = answers.build_form(step)
    form.full_clean()
    add_reasons(form, reasons)
    return step_page(request, answers, step, form, status=400)


def step_page(request: HttpRequest, answers: Answers, step: str, form: forms.Form, status: int = 200) -> HttpResponse:
    """The page of one step."""
    listed = answers.list_steps(step)
    context: dict[str, object] = {
        "form": form,
        "step": step,
        "titles": step_titles(listed),
        "at": listed.index("layout" if step == "disks" else step),
        "next": "layout" if step == "name" else ORDER[ORDER.index(step) + 1],
        "kept": answers.other_fields(step),
        "back": answers.step_url(answers.step_before(step)) if step != "name" else reverse("pools"),
        "notice": NO_FREE_DISK if not any(map(is_usable, answers.bays)) else "",
    }
    if step == "disks":
        context |= disks_context(answers)
    elif step == "layout":
        context |= layout_context(answers)
    elif step == "extras":
        context |= extras_context(answers)
    return render(request, "pools/create.html", context, status=status)


def step_titles(steps: list[str]) -> list[str]:
    """The titles of these steps."""
    return [title for step, title in zip(LISTED, UI[CreatePool].steps, strict=True) if step in steps]


def disks_context(answers: Answers) -> dict[str, object]:
    return {
        "usable": [bay for bay in answers.bays if is_usable(bay)],
        "unusable": [bay for bay in answers.bays if not is_usable(bay)],
        "picked": answers.query.getlist("disks"),
    }


def layout_context(answers: Answers) -> dict[str, object]:
    """The suggested layouts as cards, or the table of all of them: where it is asked for, or
    where one of it was chosen."""
    offers = offer_layouts(answers.chosen)
    layout = offers.select(answers.query.get("layout", ""))
    compares = answers.compares or not offers.suggests(layout)
    shown = offers.proposed if compares else [card.offer for card in offers.suggested]
    return {
        "chosen": answers.chosen,
        "choose": answers.step_url("disks"),
        "common": offers.common_warnings if compares else offers.shared_warnings,
        "offers": offers.proposed if compares else [],
        "others": offers.others,
        "other_chosen": offers.is_other(layout),
        "suggested": offers.suggested,
        "layout": layout,
        "uses": {part.use for offer in shown for part in offer.picture.parts},
        "compare": answers.step_url("compare") if offers.count > 1 else "",
        "suggest": answers.step_url("layout", without=() if offers.suggests(layout) else ("layout",)),
    }


def extras_context(answers: Answers) -> dict[str, object]:
    """The disks that can become log, cache or spare, and what these would bring and cost on this box."""
    caching: Caching = first_fact(CachingRow.objects.filter(key="box")) or Caching()
    fast = [bay.disk.size for bay in answers.others if not bay.disk.rotational]
    choice = answers.choice
    return {
        "others": answers.others,
        "told": {
            "logs": aux_devices.log_advice(caching),
            "cache": aux_devices.cache_advice(caching, max(fast, default=0)),
        },
        "stripe": choice is not None and choice.layout == "stripe",
        "dealt": choice.spares if choice else 0,
        "picked": {field: answers.query.getlist(field) for field in FIELDS["extras"]},
    }


@require_GET
def create_key(_request: HttpRequest, name: str) -> HttpResponse:
    """A new key as a file. Larder keeps no copy: the review page asks for the file."""
    try:
        names.existing_pool(name)  # a folder's key is named like tank-photos
    except Refused as refusal:
        raise Http404 from refusal
    response = HttpResponse(f"{secrets.token_hex(32)}\n", content_type="application/octet-stream")
    response["Content-Disposition"] = f'attachment; filename="{name}.key"'
    response["Cache-Control"] = "no-store"
    return response
