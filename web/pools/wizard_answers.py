"""The answers of the create-pool wizard, which travel in the address, and the operation that they mean."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec
from django import forms
from django.http import HttpRequest, QueryDict
from django.urls import reverse

from appliance.errors import Reason, Refused
from appliance.facts.box import Facts
from appliance.layout import choices
from appliance.layout.choices import LayoutChoice
from appliance.pools.create import CreatePool
from web.disks.burn_in_report import with_burn_ins
from web.inventory import store
from web.inventory.bays import Bay
from web.inventory.box import read_box
from web.pools.forms import DisksForm, ExtrasForm, LayoutForm, NameForm, OptionsForm, is_usable
from web.pools.layout_offers import propose_disks

# The order in which answers are needed, and the steps with titles of their own: choosing disks is part of the layout.
ORDER = ("name", "disks", "layout", "extras", "options", "review")
LISTED = ("name", "layout", "extras", "options", "review")
FIELDS = {
    "name": ("name",),
    "disks": ("disks",),
    "layout": ("layout",),
    "extras": ("logs", "cache", "spares"),
    "options": ("encrypted", "key_file", "compression", "ashift", "atime", "rest"),
}
STEP_OF = {field: step for step, fields in FIELDS.items() for field in fields} | {"encryption": "options"}


class Answers(msgspec.Struct, frozen=True):
    """The answers so far, and all bays. Disks are proposed until some are chosen;
    ``query`` then has the proposed ones."""

    query: QueryDict
    bays: list[Bay]
    disks_given: bool  # whether the address names disks

    @classmethod
    def from_request(cls, request: HttpRequest) -> Answers:
        query, bays = request.GET.copy(), with_burn_ins(read_box().bays)
        answers = cls(query, bays, "disks" in query)
        if not answers.disks_given and not answers.has_answered("disks"):
            query.setlist("disks", propose_disks(bays))
        for step in filter(answers.skips, ("layout", "extras")):
            for field in FIELDS[step]:
                query.pop(field, None)  # an answer for other disks would come back with them
        return answers

    @property
    def step(self) -> str:
        """The step that the address asks for, or the next one where that has nothing to choose."""
        step = "layout" if self.compares else self.query.get("step", "name")
        if step not in ORDER:
            return "name"
        return next(other for other in ORDER[ORDER.index(step) :] if not self.skips(other))

    @property
    def compares(self) -> bool:
        """Whether the address asks for the table of all layouts instead of the suggestions."""
        return self.query.get("step") == "compare"

    @property
    def name(self) -> str:
        return self.query.get("name", "")

    @property
    def pool_names(self) -> set[str]:
        """The names of all pools of which a disk is in the box, in use or exported."""
        return {bay.pool for bay in self.bays} | {use.pool for bay in self.bays for use in bay.disk.uses}

    @property
    def chosen(self) -> list[Bay]:
        """The bays of the disks for data."""
        return [bay for bay in self.bays if bay.disk.path in self.query.getlist("disks")]

    @property
    def others(self) -> list[Bay]:
        """The bays of the disks that can become log, cache or spare."""
        chosen = self.query.getlist("disks")
        return [bay for bay in self.bays if is_usable(bay) and bay.disk.path not in chosen]

    @property
    def choice(self) -> LayoutChoice | None:
        return self.only_choice or choices.parse_layout(self.query.get("layout", ""))

    @property
    def only_choice(self) -> LayoutChoice | None:
        """The layout where these disks allow no other and there are no more of them, or they were chosen by hand."""
        is_settled = self.has_answered("disks") or not self.others
        return choices.only_layout(len(self.chosen)) if is_settled else None

    @property
    def needs_disks(self) -> bool:
        """Whether disks have to be asked for because none could be proposed."""
        return not self.chosen and not self.disks_given and not self.has_answered("disks")

    def has_answered(self, step: str) -> bool:
        """Whether this step's form was sent before."""
        return step in self.query.getlist("answered")

    def skips(self, step: str) -> bool:
        """Whether a step has nothing to choose. A device that is no longer there is said at its field."""
        if step == "layout":
            return self.only_choice is not None
        named = {path for field in FIELDS["extras"] for path in self.query.getlist(field)}
        return step == "extras" and not self.others and named <= set(self.query.getlist("disks"))

    def list_steps(self, current: str) -> list[str]:
        """The steps that this pool takes, for the list on the page; the current one is always among them."""
        here = "layout" if current == "disks" or self.has_answered("disks") else current
        return [step for step in LISTED if step in {here, current} or not self.skips(step)]

    def step_before(self, step: str) -> str:
        """The step that "Back" leads to; the first has none before it."""
        listed = self.list_steps(step)
        before = listed[listed.index("layout" if step == "disks" else step) - 1]
        return "disks" if before == "layout" and self.skips("layout") else before

    def build_form(self, step: str, *, bound: bool = True) -> forms.Form:
        query = self.query if bound else None
        if step == "name":
            return NameForm(query, taken=self.pool_names)
        if step == "disks":
            return DisksForm(query, bays=self.bays)
        if step == "layout":
            return LayoutForm(query, sizes=[bay.disk.size for bay in self.chosen])
        if step == "extras":
            return ExtrasForm(query, bays=self.others)
        return OptionsForm(query, choice=self.choice, name=self.name)

    def step_url(self, step: str, *, without: Iterable[str] = ()) -> str:
        """The wizard's address at a step, with every answer so far but these."""
        query = self.query.copy()
        for field in without:
            query.pop(field, None)
        query["step"] = step
        return f"{reverse('create_pool')}?{query.urlencode()}"

    def other_fields(self, step: str) -> list[tuple[str, str]]:
        """Names and values of the hidden fields that keep the answers of all other steps."""
        left_out = {*FIELDS[step], "step"}
        if step == "name" and not self.disks_given:
            left_out.add("disks")
        return [
            (key, value)
            for key, values in self.query.lists()
            for value in dict.fromkeys(values)
            if key not in left_out and (key, value) != ("answered", step)
        ]

    def reasons_before(self, step: str) -> list[Reason]:
        """Reasons of the operation against earlier answers, where the review would be too late to say so."""
        after_name = step in {"disks", "layout"} or (step in {"extras", "options"} and self.skips("layout"))
        if after_name and (reasons := list(self.check_name(store.facts(), step))):
            return reasons
        if step == "options":
            try:
                reasons = list(self.build_operation().check(store.facts()))
            except Refused as refusal:
                reasons = list(refusal.reasons)
            return [reason for reason in reasons if STEP_OF.get(reason.field) == "extras"]
        return []

    def check_name(self, facts: Facts, step: str) -> Iterator[Reason]:
        """Whether another pool has the name, also one on disks that are not chosen."""
        # Disks that hold a pool of that name can still be chosen, until the disks have been asked for.
        can_choose = step == "disks" and self.has_answered("disks")
        paths = {
            disk.path for disk in facts.disks for use in disk.uses if (use.kind, use.pool) == ("exported", self.name)
        }
        if facts.pool(self.name):
            yield Reason(
                "pool-name-taken",
                "The name {name} is taken by a pool of this box. Choose another.",
                field="name",
                name=self.name,
            )
        elif paths - set(self.query.getlist("disks")) and not can_choose:
            yield Reason(
                "pool-name-exported",
                "The name {name} belongs to a pool on disks that are not in use at the moment. Choose another.",
                field="name",
                name=self.name,
            )

    def build_operation(self) -> CreatePool:
        """The operation that the answers mean. Raises Refused by the operation's own grammar."""
        choice = self.choice or LayoutChoice("stripe")
        options = self.build_form("options")
        options.full_clean()
        given = options.cleaned_data
        disks = [bay.disk for bay in self.chosen if bay.disk.path]
        sizes = [disk.size for disk in disks]
        groups, spares = choices.deal_disks(sizes, choice)
        others = {field: self.chosen_paths(field) for field in FIELDS["extras"]}
        others["spares"] = tuple(dict.fromkeys([disks[at].path for at in spares] + list(others["spares"])))
        return CreatePool(
            name=self.name,
            layout=choice.layout,  # type: ignore[arg-type]  # parse knows only layouts
            groups=tuple(tuple(disks[at].path for at in group) for group in groups),
            ashift=given.get("ashift") or 12,
            compression=given.get("compression") or "lz4",
            atime=bool(given.get("atime")),
            autotrim=bool(disks) and not any(disk.rotational for disk in disks),
            encrypted=bool(given.get("encrypted")),
            key_file=bool(given.get("key_file")),
            partition=choices.partition_size(sizes) if choice.equal and sizes else 0,
            rest=given.get("rest", "") if choice.equal else "",
            rest_mirror=choice.mirrored and bool(given.get("rest")),
            **others,
        )

    def chosen_paths(self, field: str) -> tuple[str, ...]:
        """The disks that an answer names and that are there, in the order of the bays."""
        paths = self.query.getlist(field)
        return tuple(bay.disk.path for bay in self.bays if bay.disk.path and bay.disk.path in paths)
