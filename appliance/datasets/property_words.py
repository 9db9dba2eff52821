"""The settings of datasets in words: what each is for, its values, and what a value costs."""

from __future__ import annotations

from typing import Literal

import msgspec

from appliance.facts.datasets import Dataset, Property
from appliance.formatting import binary_text, size_text
from appliance.message import Message

KIB = 2**10


class DatasetPropertyWords(msgspec.Struct, frozen=True):
    """A property in plain words. ``choices`` gives the words for each value that can be chosen; empty for a size."""

    title: str
    meaning: str
    choices: dict[str, str] = msgspec.field(default_factory=dict)
    inherits: bool = True
    only: str = ""  # filesystem, volume; empty: both

    @property
    def is_size(self) -> bool:
        return not self.choices


SWITCH: dict[str, str] = {"on": Message("on"), "off": Message("off")}
# zfsprops(7), OpenZFS 2.3.
KNOWN: dict[str, DatasetPropertyWords] = {
    "quota": DatasetPropertyWords(
        Message("Limit, with subfolders and snapshots"),
        Message("This folder, its snapshots and everything below it never use more than this."),
        inherits=False,
        only="filesystem",
    ),
    "refquota": DatasetPropertyWords(
        Message("Limit for the files"),
        Message("The files in this folder never use more than this. Snapshots and folders below do not count."),
        inherits=False,
        only="filesystem",
    ),
    "reservation": DatasetPropertyWords(
        Message("Reserved space, with subfolders and snapshots"),
        Message("This much of the pool is kept for this folder, its snapshots and everything below it."),
        inherits=False,
    ),
    "refreservation": DatasetPropertyWords(
        Message("Reserved space for the files"),
        Message("This much of the pool is kept for the files here. Snapshots need space in addition."),
        inherits=False,
    ),
    "compression": DatasetPropertyWords(
        Message("Compression"),
        Message("Files use less space. Applies to what is written from now on."),
        {
            "lz4": Message("fast (lz4)"),
            "zstd": Message("stronger (zstd)"),
            "on": Message("ZFS default (lz4)"),
            "off": Message("off"),
        },
    ),
    "recordsize": DatasetPropertyWords(
        Message("Record size"),
        Message(
            "Large records suit films and photos, small ones databases and virtual machines. Applies to new files."
        ),
        {str(size * KIB): binary_text(size * KIB) for size in (16, 32, 64, 128, 256, 512, 1024)},
        only="filesystem",
    ),
    "atime": DatasetPropertyWords(
        Message("Access times"),
        Message(
            "Stores when each file was last read. Every read then causes a write, and hardly any program needs it."
        ),
        SWITCH,
        only="filesystem",
    ),
    "sync": DatasetPropertyWords(
        Message("Synchronous writes"),
        Message("Whether a write is done only when it is on disk. Databases ask for that where it matters."),
        {
            "standard": Message("when programs ask for it"),
            "always": Message("always (slow)"),
            "disabled": Message("never: a power cut loses the last seconds"),
        },
    ),
    "readonly": DatasetPropertyWords(
        Message("Read-only"), Message("Nobody can change anything in it, neither over a share nor on the box."), SWITCH
    ),
    "snapdir": DatasetPropertyWords(
        Message("Snapshot folder"),
        Message("Whether the folder .zfs, which contains every snapshot, is listed. It can always be opened by name."),
        {"hidden": Message("hidden"), "visible": Message("visible")},
        only="filesystem",
    ),
    "copies": DatasetPropertyWords(
        Message("Copies of each file"),
        Message(
            "Additional copies survive bad sectors, but not a failed disk. Files use two or three times the space."
        ),
        {"1": Message("one"), "2": Message("two"), "3": Message("three")},
    ),
    "dedup": DatasetPropertyWords(
        Message("Deduplication"),
        Message(
            "Stores identical blocks once. It needs a lot of memory and slows a small box down. Switching it "
            "off applies to what is written from now on."
        ),
        {"off": Message("off")},
    ),
    "logbias": DatasetPropertyWords(
        Message("Use of the log"),
        Message("Whether synchronous writes go to the pool’s log device, if it has one."),
        {"latency": Message("use the log (lower latency)"), "throughput": Message("bypass the log")},
    ),
    "primarycache": DatasetPropertyWords(
        Message("Memory cache"),
        Message("What ZFS keeps in memory for the next read."),
        {"all": Message("everything"), "metadata": Message("metadata only"), "none": Message("nothing (very slow)")},
    ),
}
Name = Literal[
    "quota",
    "refquota",
    "reservation",
    "refreservation",
    "compression",
    "recordsize",
    "atime",
    "sync",
    "readonly",
    "snapdir",
    "copies",
    "dedup",
    "logbias",
    "primarycache",
]
WARNINGS = {
    ("sync", "disabled"): Message(
        "A power cut loses the last seconds of writes, even those that a program believes are safe. "
        "Databases and virtual machines may be damaged."
    ),
    ("primarycache", "none"): Message("Every read goes to the disks, even if the same data was just read."),
    ("readonly", "on"): Message("Programs that are writing to it now will get an error."),
}


def properties_of_kind(kind: str) -> list[str]:
    """The names of the properties that a file system or volume has."""
    return [name for name, words in KNOWN.items() if words.only in {"", kind}]


def read_property(dataset: Dataset, name: str) -> Property:
    return dataset.properties.get(name, Property("0" if KNOWN[name].is_size else "", "default"))


def value_text(name: str, value: str) -> str:
    """A value in words; a value that is none of the choices is returned unchanged."""
    if KNOWN[name].is_size:
        return size_text(int(value)) if value.isdigit() and int(value) else Message("none")
    if name == "recordsize" and value.isdigit():
        return binary_text(int(value))
    return KNOWN[name].choices.get(value, value or Message("not known"))


def describe_source(value: Property) -> str:
    """A phrase for where a value comes from."""
    if value.source == "inherited":
        return Message("from {of}", of=value.of)
    return {
        "local": Message("set here"),
        "received": Message("received with a copy"),
        "unknown": Message("not known"),
    }.get(value.source, Message("ZFS default"))
