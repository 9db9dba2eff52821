"""The questions that a benchmark answers, and what this box lacks for those that it cannot be asked now."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec
from django.utils.translation import gettext, ngettext

from appliance.benchmarks.presets import PRESETS, BenchmarkPreset
from appliance.facts.box import Disk
from appliance.shares.settings import SPOKEN
from web.inventory.fact_row import readable_facts
from web.inventory.models import DiskRow, PoolRow, ShareRow


class Question(msgspec.Struct, frozen=True):
    """A preset; ``lacking`` is why it cannot be run on this box now, empty where it can."""

    preset: BenchmarkPreset
    lacking: str


def is_usable(preset: BenchmarkPreset, disk: Disk) -> bool:
    """Whether a disk can be chosen: an empty one, or any where nothing is written."""
    return bool(disk.path) and (preset.needs == "any disks" or disk.free)


def lacking_for(preset: BenchmarkPreset, disks: Iterable[Disk], *, pools: bool) -> str:
    """What a preset needs and this box does not have."""
    if preset.needs == "pool":
        return "" if pools else gettext("No pool to benchmark")
    if preset.needs == "network":
        return ""
    usable = sum(is_usable(preset, disk) for disk in disks)
    if usable >= preset.least + bool(preset.extra):
        return ""
    if preset.needs == "any disks":
        return gettext("No disks")
    if not usable:
        return gettext("No empty disks")
    return ngettext("Only {count} empty disk", "Only {count} empty disks", usable).format(count=usable)


def list_questions() -> Iterator[Question]:
    """Every preset. Two queries."""
    disks = readable_facts(DiskRow.objects.all())
    pools = PoolRow.objects.exists()
    for preset in PRESETS:
        yield Question(preset, lacking_for(preset, disks, pools=pools))


def lacking_for_client() -> str:
    """The same for a measurement from another computer, which needs a share. One query."""
    shared = any(share.protocol in SPOKEN for share in readable_facts(ShareRow.objects.all()))
    return "" if shared else gettext("No shared folder to measure")
