"""Set a property of a dataset, or inherit it again. Which there are, and their words: ``property_words.py``."""

from __future__ import annotations

from collections.abc import Iterator

from appliance import names
from appliance.datasets import reasons
from appliance.datasets.base import DatasetOperation
from appliance.datasets.property_words import KNOWN, WARNINGS, Name, read_property, value_text
from appliance.errors import Reason, Refused
from appliance.facts.box import Facts
from appliance.formatting import size_text
from appliance.message import Message
from appliance.operation import Plan, command_step, never

LARGEST_SIZE = 2**63 - 1
BACK = Message("It can be set back at any time.")


class SetDatasetProperty(DatasetOperation, tag="set-dataset-property"):
    """Set one property of a dataset, one of those in KNOWN. Sizes are whole bytes, 0 for none."""

    needs_proof = never

    name: Name
    value: str

    def __post_init__(self) -> None:
        super().__post_init__()
        names.refuse_invisible_characters(self.value, "value")
        if KNOWN[self.name].is_size:
            if (
                not (self.value.isascii() and self.value.isdigit() and len(self.value) < 20)
                or int(self.value) > LARGEST_SIZE
            ):
                raise Refused(reasons.size_malformed("value"))
        elif self.value not in KNOWN[self.name].choices:
            raise Refused(Reason("setting-value-invalid", "Choose one of the values in the list.", field="value"))

    @property
    def title(self) -> str:
        return Message("Change a setting of {dataset}", dataset=self.dataset)

    @property
    def needs_review(self) -> bool:
        """Whether the change has a warning, which a review page shows first."""
        return (self.name, self.value) in WARNINGS

    def check(self, facts: Facts) -> Iterator[Reason]:
        yield from super().check(facts)
        dataset = self.find_dataset(facts)
        if dataset is None:
            return
        if KNOWN[self.name].only not in {"", dataset.kind}:
            yield Reason("setting-not-available", "{dataset} has no such setting.", field="value", dataset=self.dataset)
        size = int(self.value) if KNOWN[self.name].is_size else 0
        if self.name in {"quota", "refquota"} and size:
            taken = dataset.used if self.name == "quota" else dataset.referenced
            if size < taken:
                yield Reason(
                    "limit-below-used",
                    "It already uses {used}. Choose a larger limit, or delete something first.",
                    field="value",
                    used=size_text(taken),
                )
        if self.name in {"reservation", "refreservation"} and size:
            now = int(read_property(dataset, self.name).value or 0)
            if size > now + dataset.available:
                yield Reason(
                    "reservation-above-free",
                    "Only {free} can be reserved here. Choose a smaller size.",
                    field="value",
                    free=size_text(now + dataset.available),
                )

    def plan(self, facts: Facts) -> Plan:
        words = KNOWN[self.name]
        value = value_text(self.name, self.value)
        shown = ("none" if self.value == "0" else self.value) if words.is_size else self.value
        return Plan(
            summary=Message(
                "{words_title}: {value}. {meaning}", words_title=words.title, value=value, meaning=words.meaning
            ),
            steps=(
                command_step(
                    "set",
                    Message("Set “{words_title}” to {value}", words_title=words.title, value=value),
                    ["zfs", "set", "--", f"{self.name}={shown}", self.dataset],
                    affects=[self.dataset],
                    undo=BACK,
                ),
            ),
            identity=self.plan_identity(),
            warnings=(WARNINGS[self.name, self.value],) if self.needs_review else (),
            undo=BACK,
        )

    def probe(self, step: str, facts: Facts) -> bool:
        dataset = self.find_dataset(facts)
        return dataset is not None and read_property(dataset, self.name).value == self.value

    def recovery_hint(self, step: str, facts: Facts) -> str:
        dataset = self.find_dataset(facts)
        if dataset is None:
            return self.reason_missing(facts).text
        return Message(
            "It is “{value_text}” now. Set it again if that is not what you want.",
            value_text=value_text(self.name, read_property(dataset, self.name).value),
        )


class InheritDatasetProperty(DatasetOperation, tag="inherit-dataset-property"):
    """Inherit a property from the parent dataset again."""

    needs_proof = never

    name: Name

    def __post_init__(self) -> None:
        super().__post_init__()
        if not KNOWN[self.name].inherits:
            raise Refused(
                Reason(
                    "setting-never-inherited",
                    "This setting is never inherited from the folder above. Set it to none instead.",
                    field="name",
                )
            )

    @property
    def title(self) -> str:
        return Message("Inherit a setting of {dataset} from the folder above", dataset=self.dataset)

    def check(self, facts: Facts) -> Iterator[Reason]:
        yield from super().check(facts)
        dataset = self.find_dataset(facts)
        # Not known only where the pages look: the agent sees each mount as it is.
        if dataset and read_property(dataset, self.name).source not in {"local", "received", "unknown"}:
            yield Reason(
                "setting-inherited-already",
                "This setting is already inherited from the folder above.",
                field="name",
            )

    def plan(self, facts: Facts) -> Plan:
        dataset, words = self.find_dataset(facts), KNOWN[self.name]
        above = facts.dataset(self.dataset.rsplit("/", 1)[0]) if not self.is_pool else None
        then = (
            Message(
                "{value_text}, as in {above}",
                value_text=value_text(self.name, read_property(above, self.name).value),
                above=above.name,
            )
            if above
            else Message("the default of ZFS")
        )
        now = value_text(self.name, read_property(dataset, self.name).value) if dataset else ""
        return Plan(
            summary=Message(
                "{words_title}: {then}, no longer {now}. From then on it changes with the folder above.",
                words_title=words.title,
                then=then,
                now=now,
            ),
            steps=(
                command_step(
                    "inherit",
                    Message("Inherit “{words_title}” from the folder above", words_title=words.title),
                    ["zfs", "inherit", "--", self.name, self.dataset],
                    affects=[self.dataset],
                    undo=BACK,
                ),
            ),
            identity=self.plan_identity(),
            undo=BACK,
        )

    def probe(self, step: str, facts: Facts) -> bool:
        dataset = self.find_dataset(facts)
        return dataset is not None and read_property(dataset, self.name).source not in {"local", "received"}

    def recovery_hint(self, step: str, facts: Facts) -> str:
        return Message("Its settings page says where each value comes from now.")
