"""Earlier results with the same disks, shown by the layout advisor beside its own ratios. Pure."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from appliance.benchmarks.case import Case
from appliance.benchmarks.results import MeasuredCase, value_text
from appliance.benchmarks.workloads import KINDS
from appliance.layout.geometry import KIB
from appliance.message import Message, join_messages, message_template

WORTH = {
    "seq-write": message_template("writes large files with {value}"),
    "seq-read": message_template("reads them with {value}"),
    "random-read": message_template("finds small pieces {value}"),
    "resilver": message_template("rebuilt a disk in {value}"),
}


class LayoutResult(msgspec.Struct, frozen=True):
    """One result in words: ``writes large files with 132 MiB/s``."""

    workload: str
    text: str


def has_usual_settings(case: Case) -> bool:
    """Whether a case has the settings of a new pool, so that its result applies to one."""
    plain = not (
        case.partition or case.log or case.cache or case.dedup or case.protocol or case.volblocksize or case.sample
    )
    same = (case.where, case.ashift, case.recordsize, case.sync) == ("scratch", 12, 128 * KIB, "standard")
    return same and plain and not case.gentle and not lacks_read_ahead(case)


def lacks_read_ahead(case: Case) -> bool:
    """Whether a case read without the ARC: then large files read slower than in daily use. Writing is the same."""
    return case.aside and KINDS[case.workload].reads


def find_layout_results(
    measured: Iterable[MeasuredCase], layout: str, groups: int, disks: frozenset[str]
) -> tuple[LayoutResult, ...]:
    """Results of a layout on exactly these disks (by-id paths); ``measured`` has the newest case first."""
    found: dict[str, LayoutResult] = {}
    for one in measured:
        case, summary = one.case, one.summary
        if summary is None or case.workload not in WORTH or not has_usual_settings(case):
            continue
        shape = 1 if layout == "stripe" else len(case.vdev_disks)
        if (case.layout, shape, frozenset(case.disks)) != (layout, groups, disks):
            continue
        value = value_text(summary.median, KINDS[case.workload].unit)
        words = Message(WORTH[case.workload], value=value)
        if case.fill:
            words = Message("{what} when {percent} % full", what=words, percent=case.fill)
        found.setdefault(f"{case.workload}-{case.fill}", LayoutResult(case.workload, words))
    order = list(WORTH)
    return tuple(sorted(found.values(), key=lambda known: order.index(known.workload)))


def results_text(known: tuple[LayoutResult, ...]) -> str:
    """``Measured with these disks: it writes large files with 132 MiB/s.`` Empty without results."""
    listed = join_messages([one.text for one in known], ", ")
    return Message("Measured with these disks: it {results}.", results=listed) if known else ""
