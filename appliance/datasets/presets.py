"""Presets: the properties of a new dataset by its purpose, each with a reason."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import msgspec

from appliance.facts import user_properties
from appliance.message import Message, join_messages

Name = Literal["general", "media", "photos", "documents", "backups", "machines"]


class PresetProperty(msgspec.Struct, frozen=True):
    """One property that a preset sets, with the reason."""

    name: str
    value: str
    why: str


class Preset(msgspec.Struct, frozen=True):
    title: str
    choices: tuple[PresetProperty, ...]
    limit: str = ""  # advice about setting a limit

    @property
    def why(self) -> str:
        return join_messages([choice.why for choice in self.choices])


# recordsize (zfsprops(7)) is the largest block of a file. Large blocks suit files that are written once and read
# whole, small blocks suit files that are changed inside. zstd needs more processor time than lz4, which pays off
# where data compresses well and is written once; lz4 gives up early on data that does not compress. zfsconcepts(7),
# OpenZFS workload tuning guide.
LARGE = PresetProperty("recordsize", "1M", Message("Large pieces: such files are written once and read whole."))
MEDIUM = PresetProperty("recordsize", "128K", Message("Medium pieces: good for files of every size."))
LIGHT = PresetProperty(
    "compression", "lz4", Message("Light compression: it costs next to nothing where files are compressed already.")
)
FIRM = PresetProperty("compression", "zstd", Message("Stronger compression: text and office files take up about half."))
QUIET = PresetProperty("atime", "off", Message("Reading a file writes nothing."))
ORDINARY = PresetProperty("sync", "standard", Message("Programs decide which writes must be on disk at once."))

PRESETS: dict[str, Preset] = {
    "general": Preset(Message("A bit of everything"), (MEDIUM, LIGHT, QUIET, ORDINARY)),
    "media": Preset(Message("Films and music"), (LARGE, LIGHT, QUIET, ORDINARY)),
    "photos": Preset(Message("Photos"), (LARGE, LIGHT, QUIET, ORDINARY)),
    "documents": Preset(Message("Documents"), (MEDIUM, FIRM, QUIET, ORDINARY)),
    "backups": Preset(
        Message("Backups, Time Machine"),
        (
            LARGE,
            PresetProperty(
                "compression", "zstd", Message("Stronger compression: a backup is written once and seldom read.")
            ),
            QUIET,
            ORDINARY,
        ),
        limit=Message(
            "A backup program fills whatever it is given. Set a limit, for example twice the disk that is backed up."
        ),
    ),
    "machines": Preset(
        Message("Virtual machines"),
        (
            PresetProperty(
                "recordsize", "64K", Message("Small pieces: a machine changes its disk image here and there.")
            ),
            LIGHT,
            QUIET,
            PresetProperty(
                "sync",
                "standard",
                Message(
                    "A virtual machine waits until the writes that it must not lose are on disk, so a power "
                    "cut does not damage it."
                ),
            ),
        ),
    ),
}


def property_arguments(name: str) -> Iterator[str]:
    """``name=value`` of every property of a preset, and last of the property that names the preset."""
    for choice in PRESETS[name].choices:
        yield f"{choice.name}={choice.value}"
    yield f"{user_properties.PRESET}={name}"
