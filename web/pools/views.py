"""Pools: the list, one pool, and the wizard that makes one."""

from __future__ import annotations

from dataclasses import dataclass

from django import forms
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_GET

from appliance.errors import Refused
from appliance.layout.geometry import LEAST_DISKS, parity_of, usable_bytes
from appliance.zfs.datasets import UnlockDataset
from appliance.zfs.pools import LAYOUT_NAMES, survival
from web import live
from web.inventory import present, store
from web.inventory.models import Activity, DatasetRow
from web.inventory.present import Bay
from web.jobs import confirm
from web.pools import topology
from web.pools.forms import STEPS, DisksForm, LayoutForm, NameForm, OptionsForm, grouped, operation_from


@dataclass(frozen=True)
class Choice:
    """One layout of the chosen disks, with what it gives."""

    value: str
    title: str
    usable: int
    survives: str
    percent: int
    words: str
    recommended: bool = False


WORDS = {
    "stripe": "All space, no protection: one failed disk loses everything.",
    "mirror": "Every disk of a group holds the same. Fast, simple to grow.",
    "raidz1": "One disk's worth of space protects the others.",
    "raidz2": "Any two disks may fail. The usual choice from five disks on.",
    "raidz3": "Any three disks may fail. For many large disks.",
}


def layouts_for(sizes: list[int], ashift: int = 12) -> list[Choice]:
    """Every sensible way to use so many disks: each layout, in one group or several equal ones."""
    count, found = len(sizes), []
    total = sum(sizes) or 1
    for layout, least in LEAST_DISKS.items():
        for groups in range(1, count + 1):
            size, rest = divmod(count, groups)
            if rest or size < least or (layout == "stripe" and groups > 1) or (layout == "mirror" and size > 4):
                continue
            dealt = [list(part) for part in grouped([str(size) for size in sizes], groups)]
            usable = usable_bytes(layout, [[int(size) for size in part] for part in dealt], ashift)
            name = LAYOUT_NAMES[layout] if groups == 1 else f"{groups} × {LAYOUT_NAMES[layout]}"
            title = (
                f"{name} of {size}" if layout != "stripe" else (f"Stripe of {count}" if count > 1 else "One disk alone")
            )
            survives = survival(parity_of(layout, size)) + (" in each group" if groups > 1 else "")
            found.append(Choice(f"{layout}-{groups}", title, usable, survives, usable * 100 // total, WORDS[layout]))
    best = recommended(count)
    return [Choice(**{**choice.__dict__, "recommended": choice.value == best}) for choice in found]


def recommended(count: int) -> str:
    """The layout for a household: survive one failure from two disks on, two from five on (field notes, “Which layout”)."""
    if count == 1:
        return "stripe-1"
    if count == 2:
        return "mirror-1"
    if count == 3:
        return "raidz1-1"
    if count == 4:
        return "mirror-2"
    return "raidz2-1" if count <= 10 or count % 2 else "raidz2-2"


@require_GET
def pools(request: HttpRequest) -> HttpResponse:
    """Every pool."""

    def build() -> dict[str, object]:
        box = present.box()
        return {"cards": box.cards, "free": sum(bay.state == "empty" for bay in box.bays)}

    return live.respond(request, "pools/list.html", build)


@require_GET
def pool(request: HttpRequest, key: str) -> HttpResponse:
    """One pool: how it is, what it is made of, its folders."""

    def build() -> dict[str, object]:
        box = present.box()
        card = next((card for card in box.cards if card.key == key), None)
        if card is None:
            raise Http404
        folders = [row.fact for row in DatasetRow.objects.filter(pool=card.pool.name).order_by("name")[:200]]
        return {
            "card": card,
            "pool": card.pool,
            "folders": folders,
            "locked": [dataset for dataset in folders if dataset.locked and dataset.encryption_root == dataset.name],
            "activities": Activity.objects.filter(pool=card.pool.name)[:5],
            "rows": topology.rows(card.pool, box),
            "pool_actions": list(topology.pool_actions(card.pool)),
            "advice": topology.advice(card.pool, box),
        }

    return live.respond(request, "pools/pool.html", build)


@require_GET
def unlock(request: HttpRequest) -> HttpResponse:
    """The review page of unlocking; it asks for the passphrase."""
    name = request.GET.get("dataset", "")
    try:
        return confirm.review(request, UnlockDataset(dataset=name), back=reverse("pools"))
    except Refused as refusal:
        return render(request, "jobs/refused.html", {"reasons": refusal.reasons, "back": reverse("pools")}, status=409)


def link(query: QueryDict, step: str) -> str:
    """The wizard's address at a step, with every answer so far."""
    moved = query.copy()
    moved["step"] = step
    return f"{reverse('create_pool')}?{moved.urlencode()}"


def form_of(step: str, query: QueryDict | None, bays: list[Bay], disks: int) -> forms.Form:
    if step == "name":
        return NameForm(query)
    if step == "disks":
        return DisksForm(query, bays=bays)
    if step == "layout":
        return LayoutForm(query, disks=disks)
    return OptionsForm(query)


@require_GET
def create(request: HttpRequest) -> HttpResponse:
    """The wizard. Answers travel in the address: going back loses nothing, and nothing happens before the review."""
    bays = present.box().bays
    query = request.GET
    order = [step for step, _title in STEPS]
    step = query.get("step", "name")
    if step not in order:
        step = "name"
    chosen = [bay for bay in bays if bay.disk.path in query.getlist("disks")]
    # A step is shown when those before it have good answers; the first that has not is shown instead.
    for earlier in order[: order.index(step)]:
        form = form_of(earlier, query, bays, len(chosen))
        if not form.is_valid():
            return question(request, earlier, form, bays, chosen, status=400)
    if step == "disks":
        facts = store.facts()
        taken = facts.pool(query.get("name", "")) is not None
        exported = any(
            use.kind == "exported" and use.pool == query.get("name", "") for disk in facts.disks for use in disk.uses
        )
        if taken or (exported and not query.getlist("disks")):
            form = NameForm(query)
            form.full_clean()
            form.add_error(
                "name",
                "That name is taken by a pool of this box."
                if taken
                else "That name belongs to a pool on disks that are not in use at the moment. Choose another.",
            )
            return question(request, "name", form, bays, chosen, status=400)
    if step == "review":
        return review(request, bays, chosen)
    # A layout kept from other disks is not held against them: the page then proposes one anew.
    again = step in query.getlist("answered") and step != "layout"
    form = form_of(step, query if again else None, bays, len(chosen))
    return question(request, step, form, bays, chosen)


def review(request: HttpRequest, bays: list[Bay], chosen: list[Bay]) -> HttpResponse:
    """The last step: the generic review page, or the step whose answer the operation does not take."""
    try:
        return confirm.review(request, operation_from(request.GET, bays), back=link(request.GET, "options"))
    except Refused as refusal:
        order = [step for step, _title in STEPS]
        step = next((reason.field for reason in refusal.reasons if reason.field in order), "disks")
        form = form_of(step, request.GET, bays, len(chosen))
        form.full_clean()
        for reason in refusal.reasons:
            form.add_error(step if step in form.fields and reason.field == step else None, reason.text)
        return question(request, step, form, bays, chosen, status=400)


def question(
    request: HttpRequest, step: str, form: forms.Form, bays: list[Bay], chosen: list[Bay], status: int = 200
) -> HttpResponse:
    """One step of the wizard."""
    order = [name for name, _title in STEPS]
    own = {
        "name": ["name"],
        "disks": ["disks"],
        "layout": ["layout"],
        "options": ["encrypted", "compression", "ashift", "atime"],
    }[step]
    kept = [
        (key, value)
        for key, values in request.GET.lists()
        for value in dict.fromkeys(values)
        if key not in {*own, "step"} and (key, value) != ("answered", step)
    ]
    choices = layouts_for([bay.disk.size for bay in chosen]) if step == "layout" and chosen else []
    layout = request.GET.get("layout", "")
    context = {
        "form": form,
        "step": step,
        "steps": STEPS,
        "at": order.index(step),
        "next": order[order.index(step) + 1],
        "kept": kept,
        "back": link(request.GET, order[order.index(step) - 1]) if step != "name" else reverse("pools"),
        "usable": [bay for bay in bays if bay.disk.path and not bay.disk.blocked],
        "unusable": [bay for bay in bays if not bay.disk.path or bay.disk.blocked],
        "picked": request.GET.getlist("disks"),
        "choices": choices,
        "layout": layout if any(choice.value == layout for choice in choices) else recommended(len(chosen)),
        "notice": "\n".join(CREATE_NOTICE) if not any(bay.state == "empty" for bay in bays) else "",
    }
    return render(request, "pools/create.html", context, status=status)


CREATE_NOTICE = ("There is no free disk in this box.", "Add a disk, or free one, then come back.")
