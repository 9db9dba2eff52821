"""What a copy remembers of its original, in its property ``larder:origin``: name, settings, and who may use it.

Properties do not travel in streams, so that no copy takes over a mountpoint or a share. What is safe to have again is
noted here, by each run anew, and checked when it is read: the copy may have come with disks from anywhere.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec

from appliance import names
from appliance.datasets import access_note
from appliance.datasets.access_note import AccessNote
from appliance.datasets.presets import PRESETS
from appliance.errors import Refused
from appliance.facts import user_properties
from appliance.facts.datasets import Dataset

LONGEST = 8000  # bytes; a ZFS user property holds 8 KiB
COMPRESSION = re.compile(r"on|off|lz4|lzjb|zle|gzip(-[1-9])?|zstd(-fast)?(-[1-9][0-9]{0,3})?")
# What comes back, and which values of it. A sync that is disabled is not among them: it loses what was just written.
CARRIED: dict[str, Callable[[str], bool]] = {
    "recordsize": lambda value: value in {str(2**power) for power in range(9, 25)},
    "compression": lambda value: COMPRESSION.fullmatch(value) is not None,
    "atime": lambda value: value in {"on", "off"},
    "sync": lambda value: value in {"standard", "always"},
    user_properties.PRESET: lambda value: value in PRESETS,
}


class Origin(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The original as it was at the newest run. ``settings``: of CARRIED, those that were set on it."""

    name: str
    settings: dict[str, str] = {}
    access: AccessNote | None = None

    @property
    def text(self) -> str:
        return msgspec.json.encode(self, order="sorted").decode()


def origin_of(dataset: Dataset) -> Origin:
    """What a copy of this dataset remembers of it."""
    found = {name: dataset.properties[name] for name in CARRIED if name in dataset.properties}
    settings = {name: one.value for name, one in found.items() if one.source == "local" and CARRIED[name](one.value)}
    whole = Origin(name=dataset.name, settings=settings, access=access_note.read_note(dataset))
    return whole if len(whole.text.encode()) <= LONGEST else Origin(name=dataset.name, settings=settings)


def parse_origin(copy: Dataset) -> Origin | None:
    """What a copy says of its original; None where it says nothing that Larder could have written."""
    noted = copy.properties.get(user_properties.ORIGIN)
    if noted is None or noted.source != "local":
        return None
    try:
        found = msgspec.json.decode(noted.value, type=Origin)
        names.existing_dataset(found.name)
    except (msgspec.MsgspecError, RecursionError, Refused):
        return None
    safe = all(name in CARRIED and CARRIED[name](value) for name, value in found.settings.items())
    return found if safe else None
