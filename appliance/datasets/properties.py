"""Properties of datasets: their words, setting them, inheriting them again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from appliance import names
from appliance.datasets import reasons
from appliance.datasets.base import DatasetOperation
from appliance.errors import Reason, Refused
from appliance.facts.box import Facts
from appliance.facts.datasets import Dataset, Property
from appliance.formatting import binary_text, size_text
from appliance.operation import Plan, command_step, never

KIB, MIB = 2**10, 2**20
LARGEST_SIZE = 2**63 - 1
BACK = "It can be set back at any time."


@dataclass(frozen=True)
class DatasetPropertyWords:
    """A property in plain words. ``choices`` gives the words for each value that can be chosen; empty for a size."""

    title: str
    meaning: str
    choices: dict[str, str] = field(default_factory=dict)
    inherits: bool = True
    only: str = ""  # filesystem, volume; empty: both

    @property
    def is_size(self) -> bool:
        return not self.choices


SWITCH = {"on": "on", "off": "off"}
# zfsprops(7), OpenZFS 2.3.
KNOWN: dict[str, DatasetPropertyWords] = {
    "quota": DatasetPropertyWords("Limit, with subfolders and snapshots", "This folder, its snapshots and everything below it never use more than this.", inherits=False, only="filesystem"),
    "refquota": DatasetPropertyWords("Limit for the files", "The files in this folder never use more than this. Snapshots and folders below do not count.", inherits=False, only="filesystem"),
    "reservation": DatasetPropertyWords("Reserved space, with subfolders and snapshots", "This much of the pool is kept for this folder, its snapshots and everything below it.", inherits=False),
    "refreservation": DatasetPropertyWords("Reserved space for the files", "This much of the pool is kept for the files here. Snapshots need space in addition.", inherits=False),
    "compression": DatasetPropertyWords(
        "Compression", "Files use less space. Applies to what is written from now on.",
        {"lz4": "fast (lz4)", "zstd": "stronger (zstd)", "on": "ZFS default (lz4)", "off": "off"},
    ),
    "recordsize": DatasetPropertyWords(
        "Record size", "Large records suit films and photos, small ones databases and virtual machines. Applies to new files.",
        {str(size * KIB): binary_text(size * KIB) for size in (16, 32, 64, 128, 256, 512, 1024)}, only="filesystem",
    ),
    "atime": DatasetPropertyWords("Access times", "Stores when each file was last read. Every read then causes a write, and hardly any program needs it.", SWITCH, only="filesystem"),
    "sync": DatasetPropertyWords(
        "Synchronous writes", "Whether a write is done only when it is on disk. Databases ask for that where it matters.",
        {"standard": "when programs ask for it", "always": "always (slow)", "disabled": "never: a power cut loses the last seconds"},
    ),
    "readonly": DatasetPropertyWords("Read-only", "Nobody can change anything in it, neither over a share nor on the box.", SWITCH),
    "snapdir": DatasetPropertyWords("Snapshot folder", "Whether the folder .zfs, which contains every snapshot, is listed. It can always be opened by name.", {"hidden": "hidden", "visible": "visible"}, only="filesystem"),
    "copies": DatasetPropertyWords("Copies of each file", "Additional copies survive bad sectors, but not a failed disk. Files use two or three times the space.", {"1": "one", "2": "two", "3": "three"}),
    "dedup": DatasetPropertyWords("Deduplication", "Stores identical blocks once. It needs a lot of memory and slows a small box down. Switching it off applies to what is written from now on.", {"off": "off"}),
    "logbias": DatasetPropertyWords("Use of the log", "Whether synchronous writes go to the pool’s log device, if it has one.", {"latency": "use the log (lower latency)", "throughput": "bypass the log"}),
    "primarycache": DatasetPropertyWords("Memory cache", "What ZFS keeps in memory for the next read.", {"all": "everything", "metadata": "metadata only", "none": "nothing (very slow)"}),
}  # fmt: skip  # a table, one property a row
Name = Literal[
    "quota", "refquota", "reservation", "refreservation", "compression", "recordsize", "atime", "sync", "readonly",
    "snapdir", "copies", "dedup", "logbias", "primarycache",
]  # fmt: skip  # a list of words
WARNINGS = {
    ("sync", "disabled"): "A power cut loses the last seconds of writes, even those that a program believes are safe. Databases and virtual machines may be damaged.",
    ("primarycache", "none"): "Every read goes to the disks, even if the same data was just read.",
    ("readonly", "on"): "Programs that are writing to it now will get an error.",
}  # fmt: skip  # a table, one value a row


def properties_of_kind(kind: str) -> list[str]:
    """The names of the properties that a file system or volume has."""
    return [name for name, words in KNOWN.items() if words.only in {"", kind}]


def read_property(dataset: Dataset, name: str) -> Property:
    return dataset.properties.get(name, Property("0" if KNOWN[name].is_size else "", "default"))


def value_text(name: str, value: str) -> str:
    """A value in words; a value that is none of the choices is returned unchanged."""
    if KNOWN[name].is_size:
        return size_text(int(value)) if value.isdigit() and int(value) else "none"
    if name == "recordsize" and value.isdigit():
        return binary_text(int(value))
    return KNOWN[name].choices.get(value, value or "not known")


def describe_source(value: Property) -> str:
    """A phrase for where a value comes from."""
    if value.source == "inherited":
        return f"from {value.of}"
    return {
        "local": "set here",
        "received": "received with a copy",
        "temporary": "until it is next mounted",
    }.get(value.source, "ZFS default")


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
        return f"Change a setting of {self.dataset}"

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
            summary=f"{words.title}: {value}. {words.meaning}",
            steps=(
                command_step(
                    "set",
                    f"Set “{words.title}” to {value}",
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
        return f"It is “{value_text(self.name, read_property(dataset, self.name).value)}” now. Set it again if that is not what you want."


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
        return f"Take a setting of {self.dataset} from above"

    def check(self, facts: Facts) -> Iterator[Reason]:
        yield from super().check(facts)
        dataset = self.find_dataset(facts)
        if dataset and read_property(dataset, self.name).source not in {"local", "received"}:
            yield Reason(
                "setting-inherited-already",
                "This setting is already inherited from the folder above.",
                field="name",
            )

    def plan(self, facts: Facts) -> Plan:
        dataset, words = self.find_dataset(facts), KNOWN[self.name]
        above = facts.dataset(self.dataset.rsplit("/", 1)[0]) if not self.is_pool else None
        then = (
            f"{value_text(self.name, read_property(above, self.name).value)}, as in {above.name}"
            if above
            else "what ZFS has by itself"
        )
        now = value_text(self.name, read_property(dataset, self.name).value) if dataset else ""
        return Plan(
            summary=f"{words.title}: {then}, no longer {now}. It follows when that changes.",
            steps=(
                command_step(
                    "inherit",
                    f"Take “{words.title}” from above",
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
        return "Its settings page says where each value comes from now."
