"""The wizard that makes a pool: the advisor's proposals first, "choose myself" always beside them."""

from __future__ import annotations

import secrets
from collections import Counter
from dataclasses import dataclass

from django import forms
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_GET

from appliance import names
from appliance.benchmarks import known_results
from appliance.benchmarks.results import MeasuredCase
from appliance.disks.smr_models import shingled
from appliance.errors import Reason, Refused
from appliance.facts.box import Caching
from appliance.layout import aux_devices, choices, risk
from appliance.layout.advice import Candidate, Proposal, advise, for_data, judge
from appliance.pools.create import survival
from web.benchmarks.models import CaseRow
from web.inventory import present, store
from web.inventory.models import CachingRow
from web.inventory.present import Bay
from web.jobs import confirm
from web.jobs.refusals import add_reasons
from web.pools import layout_diagram
from web.pools.forms import (
    FIELDS,
    ORDER,
    SHOWN_AT,
    STEP_OF,
    TITLES,
    DisksForm,
    ExtrasForm,
    LayoutForm,
    NameForm,
    OptionsForm,
    operation_from,
)

WORTH_A_WORD = 50  # a fiftieth of the disks
NO_FREE_DISK = "There is no free disk in this box. Add a disk, or free one, then come back."


MOST_LOOKED_AT = 300  # cases; older ones tell of disks as they were


@dataclass(frozen=True)
class LayoutOffer:
    """A proposal as the page shows it."""

    proposal: Proposal
    picture: layout_diagram.LayoutDiagram
    survives: str
    second: str
    third: str
    warnings: tuple[str, ...] = ()  # those that are not said of most of the proposals
    idle: int = 0  # bytes that lie unused, where that is worth a word
    known: str = ""  # what was measured of it with these disks


@dataclass(frozen=True)
class Answers:
    """The wizard's answers so far, with the disks that they name. Disks nobody has chosen yet are proposed."""

    query: QueryDict
    bays: list[Bay]

    @classmethod
    def of(cls, request: HttpRequest) -> Answers:
        query, bays = request.GET.copy(), present.box().bays
        if "disks" not in query and "disks" not in query.getlist("answered"):
            query.setlist("disks", proposed(bays))
        return cls(query, bays)

    @property
    def name(self) -> str:
        return self.query.get("name", "")

    @property
    def chosen(self) -> list[Bay]:
        return [bay for bay in self.bays if bay.disk.path in self.query.getlist("disks")]

    @property
    def others(self) -> list[Bay]:
        """What could be log, cache or spare."""
        chosen = self.query.getlist("disks")
        return [bay for bay in self.bays if usable(bay) and bay.disk.path not in chosen]

    @property
    def sizes(self) -> list[int]:
        return [bay.disk.size for bay in self.chosen]

    def asked(self, step: str) -> bool:
        """Whether the person has sent this step's form before."""
        return step in self.query.getlist("answered")

    def form(self, step: str, *, bound: bool = True) -> forms.Form:
        query = self.query if bound else None
        if step == "name":
            return NameForm(query)
        if step == "disks":
            return DisksForm(query, bays=self.bays)
        if step == "layout":
            return LayoutForm(query, sizes=self.sizes)
        if step == "extras":
            return ExtrasForm(query, bays=self.others)
        return OptionsForm(query, choice=choices.parse(self.query.get("layout", "")), name=self.name)

    def link(self, step: str) -> str:
        """The wizard's address at a step, with every answer so far."""
        moved = self.query.copy()
        moved["step"] = step
        return f"{reverse('create_pool')}?{moved.urlencode()}"


def usable(bay: Bay) -> bool:
    return bool(bay.disk.path) and not bay.disk.blocked


def trouble_of(bay: Bay) -> str:
    """What the disk says against itself, where that is known, as the rest of a sentence."""
    bad = bay.verdict in {"watch", "failing"}
    return bay.smart_text.removeprefix("It ").rstrip(".") if bad else ""


def candidate(bay: Bay) -> Candidate:
    disk = bay.disk
    return Candidate(
        disk.size, bay.label.capitalize(), disk.physical_sector, disk.rotational, shingled(disk.model), trouble_of(bay)
    )


def proposed(bays: list[Bay]) -> list[str]:
    """The disks of the first proposal: empty, built in, and of the kind that pools are made of."""
    free = [bay for bay in bays if bay.disk.path and bay.disk.free and bay.disk.bus != "usb"]
    return [free[at].disk.path for at in for_data([candidate(bay) for bay in free])]


def offer(
    proposal: Proposal, disks: list[Candidate], common: list[str], paths: list[str], measured: list[MeasuredCase]
) -> LayoutOffer:
    """A proposal as the page shows it; ``paths`` are the disks in the order of the candidates."""
    own = frozenset(paths[at] for group in proposal.groups for at in group)
    choice = proposal.choice
    told = () if choice.equal else known_results.of_layout(measured, choice.layout, choice.groups, own)
    return LayoutOffer(
        proposal,
        layout_diagram.draw(proposal, disks),
        survival(proposal.survives),
        risk.percent_text(proposal.second_loss),
        risk.percent_text(proposal.third_loss),
        tuple(text for text in proposal.warnings if text not in common),
        proposal.waste if proposal.waste * WORTH_A_WORD > proposal.raw else 0,
        known_results.sentence(told),
    )


def newest_measured() -> list[MeasuredCase]:
    """Cases that were measured on disks, the newest first. Two queries."""
    cases = CaseRow.objects.filter(state=CaseRow.State.DONE).order_by("-finished").prefetch_related("results")
    return [case.measured for case in cases[:MOST_LOOKED_AT]]


def said_of_most(proposals: tuple[Proposal, ...]) -> list[str]:
    """Warnings that belong to the disks rather than to a layout: said once above instead of in each row."""
    every = Counter(text for proposal in proposals for text in proposal.warnings)
    return [text for text, count in every.items() if count > 1 and count * 2 >= len(proposals)]


@require_GET
def create(request: HttpRequest) -> HttpResponse:
    """One step. Answers travel in the address: going back loses nothing, and nothing happens before the review."""
    answers = Answers.of(request)
    step = answers.query.get("step", "name")
    if step not in ORDER:
        step = "name"
    # A step is shown when those before it have good answers; the first that has not is shown instead.
    for earlier in ORDER[: ORDER.index(step)]:
        if earlier == "disks" and not answers.chosen and "disks" not in request.GET and not answers.asked("disks"):
            return question(request, answers, "disks", answers.form("disks", bound=False))
        form = answers.form(earlier)
        if not form.is_valid():
            return question(request, answers, earlier, form, status=400)
    if refused := refused_before(step, answers):
        return asked_again(request, answers, refused)
    if step == "review":
        try:
            return confirm.review(request, operation_from(answers.query, answers.bays), back=answers.link("options"))
        except Refused as refusal:
            return asked_again(request, answers, refusal.reasons)
    # A layout kept from other disks is not held against them: the page then proposes one anew.
    again = answers.asked(step) and step != "layout"
    return question(request, answers, step, answers.form(step, bound=again))


def refused_before(step: str, answers: Answers) -> list[Reason]:
    """What the operation itself says against answers given before this step, where waiting for the review would be late."""
    found: list[Reason] = []
    if step in {"disks", "layout"}:
        facts = store.facts()
        # Disks that hold a pool of that name may still be chosen, as long as none have been.
        free_to_choose = step == "disks" and answers.asked("disks")
        chosen = set(answers.query.getlist("disks"))
        held = [
            disk.path for disk in facts.disks for use in disk.uses if (use.kind, use.pool) == ("exported", answers.name)
        ]
        if facts.pool(answers.name):
            found.append(Reason("", "That name is taken by a pool of this box.", field="name"))
        elif set(held) - chosen and not free_to_choose:
            found.append(
                Reason(
                    "",
                    "That name belongs to a pool on disks that are not in use at the moment. Choose another.",
                    field="name",
                )
            )
    elif step == "options":
        try:
            reasons = list(operation_from(answers.query, answers.bays).check(store.facts()))
        except Refused as refusal:
            reasons = list(refusal.reasons)
        found += [reason for reason in reasons if STEP_OF.get(reason.field) == "extras"]
    return found


def asked_again(request: HttpRequest, answers: Answers, reasons: tuple[Reason, ...] | list[Reason]) -> HttpResponse:
    """The step whose answer the operation does not take, with its reasons."""
    step = next((STEP_OF[reason.field] for reason in reasons if reason.field in STEP_OF), "disks")
    form = answers.form(step)
    form.full_clean()
    add_reasons(form, reasons)
    return question(request, answers, step, form, status=400)


def question(request: HttpRequest, answers: Answers, step: str, form: forms.Form, status: int = 200) -> HttpResponse:
    """One step of the wizard."""
    at = ORDER.index(step)
    back = "name" if step == "layout" else ORDER[at - 1]
    kept = [
        (key, value)
        for key, values in answers.query.lists()
        for value in dict.fromkeys(values)
        if key not in {*FIELDS[step], "step"} and (key, value) != ("answered", step)
    ]
    if step == "name" and "disks" not in request.GET:
        kept = [(key, value) for key, value in kept if key != "disks"]
    context: dict[str, object] = {
        "form": form,
        "step": step,
        "titles": TITLES,
        "at": SHOWN_AT[step],
        "next": "layout" if step == "name" else ORDER[at + 1],
        "kept": kept,
        "back": answers.link(back) if step != "name" else reverse("pools"),
        "notice": NO_FREE_DISK if not any(bay.state == "empty" for bay in answers.bays) else "",
    }
    context |= {"disks": disks_context, "layout": layout_context, "extras": extras_context}.get(step, nothing_more)(
        answers
    )
    return render(request, "pools/create.html", context, status=status)


def nothing_more(_answers: Answers) -> dict[str, object]:
    return {}


def disks_context(answers: Answers) -> dict[str, object]:
    return {
        "usable": [bay for bay in answers.bays if usable(bay)],
        "unusable": [bay for bay in answers.bays if not usable(bay)],
        "picked": answers.query.getlist("disks"),
    }


def layout_context(answers: Answers) -> dict[str, object]:
    """The proposals side by side, and every other layout of the same disks for those who know better."""
    disks = [candidate(bay) for bay in answers.chosen]
    found = advise(disks)
    common = said_of_most(found)
    shown = {proposal.choice for proposal in found}
    others = [judge(disks, choice) for choice in choices.possible(len(disks)) if choice not in shown]
    paths, measured = [bay.disk.path for bay in answers.chosen], newest_measured()
    now = answers.query.get("layout", "")
    values = {proposal.choice.value for proposal in (*found, *others)}
    return {
        "chosen": answers.chosen,
        "choose": answers.link("disks"),
        "common": common,
        "offers": [offer(proposal, disks, common, paths, measured) for proposal in found],
        "others": [offer(proposal, disks, common, paths, measured) for proposal in others],
        "other_chosen": now in {proposal.choice.value for proposal in others},
        "layout": now if now in values else found[0].choice.value if found else "",
    }


def extras_context(answers: Answers) -> dict[str, object]:
    row = CachingRow.objects.filter(key="box").first()
    caching: Caching = row.fact if row else Caching()
    fast = [bay.disk.size for bay in answers.others if not bay.disk.rotational]
    told = {"logs": aux_devices.log_told(caching), "cache": aux_devices.cache_told(caching, max(fast, default=0))}
    choice = choices.parse(answers.query.get("layout", ""))
    return {
        "others": answers.others,
        "told": told,
        "stripe": choice is not None and choice.layout == "stripe",
        "dealt": choice.spares if choice else 0,
        "picked": {field: answers.query.getlist(field) for field in FIELDS["extras"]},
    }


@require_GET
def key(_request: HttpRequest, name: str) -> HttpResponse:
    """A new key as a file. It is kept nowhere: whoever confirms the review page sends it back with it."""
    try:
        names.existing_pool(name)  # a folder's key is named like tank-photos
    except Refused as refusal:
        raise Http404 from refusal
    response = HttpResponse(f"{secrets.token_hex(32)}\n", content_type="application/octet-stream")
    response["Content-Disposition"] = f'attachment; filename="{name}.key"'
    response["Cache-Control"] = "no-store"
    return response
