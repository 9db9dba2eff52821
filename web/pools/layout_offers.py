"""The advisor's layouts of the chosen disks as the create-pool wizard shows them."""

from __future__ import annotations

from collections import Counter

import msgspec
from django.utils.translation import gettext

from appliance.benchmarks import layout_results
from appliance.benchmarks.results import MeasuredCase
from appliance.disks.smr_models import is_shingled
from appliance.formatting import capitalize_opening, rest_of_sentence
from appliance.layout import choices, risk
from appliance.layout.advice import choose_data_disks, judge_layout, propose_layouts
from appliance.layout.descriptions import describe_failures, describe_survival, explain_layout
from appliance.layout.proposal import Candidate, Proposal
from appliance.layout.shortlist import Suggestion, shorten_proposals
from web.benchmarks.models import CaseRow
from web.inventory.bays import Bay
from web.pools import layout_diagram

NOTABLE_SHARE = 50  # less than a fiftieth of the disks unused is not mentioned
MOST_CASES = 300  # older ones were measured on disks as they were then


class LayoutOffer(msgspec.Struct, frozen=True):
    """A proposal as the page shows it."""

    proposal: Proposal
    picture: layout_diagram.LayoutDiagram
    explained: str  # what protects the files, as half a sentence
    survives: str
    second: str
    third: str
    warnings: tuple[str, ...] = ()  # without those that most proposals share
    idle: int = 0  # unused bytes, 0 where they are not worth mentioning
    known: str = ""  # what was measured of it with these disks


class LayoutCard(msgspec.Struct, frozen=True):
    """One of the few suggested layouts: which goals it serves, and how many disks may fail, as a sentence."""

    title: str
    recommended: bool
    failures: str
    note: str  # what speaks for it where another seems better
    offer: LayoutOffer
    warnings: tuple[str, ...]  # without those that every card has


class LayoutOffers(msgspec.Struct, frozen=True):
    """The proposed layouts, the recommended one first; every other possible layout; the suggested few of the proposed.

    Warnings that most of the proposed layouts share, and those that all suggested ones do, stand apart.
    """

    proposed: list[LayoutOffer]
    others: list[LayoutOffer]
    common_warnings: list[str]
    suggested: list[LayoutCard]
    shared_warnings: list[str]

    @property
    def count(self) -> int:
        """How many layouts there are to choose from."""
        return len(self.proposed) + len(self.others)

    def suggests(self, value: str) -> bool:
        """Whether that layout is one of the suggested ones."""
        return value in {card.offer.proposal.choice.value for card in self.suggested}

    def is_other(self, value: str) -> bool:
        """Whether that layout is possible but not proposed."""
        return value in {offer.proposal.choice.value for offer in self.others}

    def select(self, value: str) -> str:
        """The layout that is ticked: ``value`` where it is possible, else the recommended one."""
        values = [offer.proposal.choice.value for offer in (*self.proposed, *self.others)]
        return value if value in values else values[0] if values else ""


def disk_trouble(bay: Bay) -> str:
    """What is wrong with a disk by its own report or by its burn-in, as the rest of a
    sentence; empty for a good one."""
    if bay.test_failed and not bay.is_failing:
        return gettext("failed its burn-in")
    return rest_of_sentence(bay.smart_text) if bay.verdict in {"watch", "failing"} else ""


def layout_candidate(bay: Bay) -> Candidate:
    """The disk in a bay as the advisor sees it."""
    disk = bay.disk
    return Candidate(
        disk.size,
        capitalize_opening(bay.label),
        disk.physical_sector,
        disk.rotational,
        is_shingled(disk.model),
        disk_trouble(bay),
    )


def propose_disks(bays: list[Bay]) -> list[str]:
    """Paths of the disks for the first proposal: empty, built in, fit, and of the kind that pools are made of."""
    free = [bay for bay in bays if bay.disk.path and bay.disk.free and bay.disk.bus != "usb" and not bay.is_unfit]
    return [free[at].disk.path for at in choose_data_disks([layout_candidate(bay) for bay in free])]


def offer_layouts(bays: list[Bay]) -> LayoutOffers:
    """Every layout of the disks in these bays. Two queries."""
    disks, paths = [layout_candidate(bay) for bay in bays], [bay.disk.path for bay in bays]
    proposals = propose_layouts(disks)
    chosen = {proposal.choice for proposal in proposals}
    common, measured = common_warnings(proposals), read_measured_cases()
    others = [judge_layout(disks, choice) for choice in choices.possible_layouts(len(disks)) if choice not in chosen]

    def offer(proposal: Proposal) -> LayoutOffer:
        return make_offer(proposal, disks, common, paths, measured)

    proposed = [offer(proposal) for proposal in proposals]
    cards, shared = make_cards(proposed)
    return LayoutOffers(proposed, [offer(other) for other in others], common, cards, shared)


def make_offer(
    proposal: Proposal, disks: list[Candidate], common: list[str], paths: list[str], measured: list[MeasuredCase]
) -> LayoutOffer:
    """A proposal as the page shows it; ``paths`` are the disks in the order of the candidates."""
    used = frozenset(paths[at] for group in proposal.groups for at in group)
    choice = proposal.choice
    cases = () if choice.equal else layout_results.find_layout_results(measured, choice.layout, choice.groups, used)
    return LayoutOffer(
        proposal,
        layout_diagram.draw_layout(proposal, disks),
        explain_layout(choice, len(proposal.groups[0])),
        describe_survival(proposal.survives),
        risk.percent_text(proposal.second_loss),
        risk.percent_text(proposal.third_loss),
        tuple(text for text in proposal.warnings if text not in common),
        proposal.waste if proposal.waste * NOTABLE_SHARE > proposal.raw else 0,
        layout_results.results_text(cases),
    )


def make_cards(proposed: list[LayoutOffer]) -> tuple[list[LayoutCard], list[str]]:
    """The balanced, the safest and the roomiest of the proposed layouts, and the warnings that all of them share."""
    offers = {offer.proposal.choice: offer for offer in proposed}
    found = shorten_proposals([offer.proposal for offer in proposed])
    every = Counter(text for suggestion in found for text in suggestion.proposal.warnings)
    shared = [text for text, count in every.items() if 1 < count == len(found)]
    return [make_card(suggestion, offers[suggestion.proposal.choice], shared) for suggestion in found], shared


def make_card(suggestion: Suggestion, offer: LayoutOffer, shared: list[str]) -> LayoutCard:
    """A suggested layout as its card shows it."""
    proposal = suggestion.proposal
    disks = sum(map(len, proposal.groups)) + len(proposal.spares)
    return LayoutCard(
        suggestion.title,
        "balanced" in suggestion.goals,
        describe_failures(proposal.survives, disks),
        suggestion.note,
        offer,
        tuple(text for text in proposal.warnings if text not in shared),
    )


def read_measured_cases() -> list[MeasuredCase]:
    """Benchmark cases that were measured on disks, the newest first. Two queries."""
    cases = CaseRow.objects.filter(state=CaseRow.State.DONE).order_by("-finished").prefetch_related("results")
    return [case.measured for case in cases[:MOST_CASES]]


def common_warnings(proposals: tuple[Proposal, ...]) -> list[str]:
    """Warnings that at least half of the proposals share, shown once above the table."""
    every = Counter(text for proposal in proposals for text in proposal.warnings)
    return [text for text, count in every.items() if count > 1 and count * 2 >= len(proposals)]
