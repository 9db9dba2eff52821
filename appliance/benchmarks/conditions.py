"""The settings and conditions that all cases of a sweep share, for the table of results. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from appliance.benchmarks.case import Case, memory_for
from appliance.benchmarks.workloads import KINDS
from appliance.formatting import binary_text, duration_text
from appliance.message import Message

PLAIN = "none"  # settings with this value are left out
SINCE = " since case "


def shared_conditions(cases: Sequence[Case]) -> dict[str, str]:
    """The shared settings and conditions of the cases in words, by name."""
    return {**common_settings(cases), **run_conditions(cases)} if cases else {}


def common_settings(cases: Sequence[Case]) -> dict[str, str]:
    """The settings with the same value in all cases, without those that are ``none``."""
    every = [case.settings for case in cases]
    return {
        name: text
        for name, text in (every[0] if every else {}).items()
        if text != PLAIN and all(one.get(name) == text for one in every)
    }


def run_conditions(cases: Sequence[Case]) -> dict[str, str]:
    """How the cases were run: runs, data, memory, priority. The same for all cases of a sweep."""
    first, kinds = cases[0], [KINDS[case.workload] for case in cases]
    amounts = first.where != "network" and any(not kind.timed or kind.needs_file for kind in kinds)
    found = {
        Message("Runs"): Message(
            "{repeats} of each case, after {warmups} that do not count", repeats=first.repeats, warmups=first.warmups
        )
        if first.warmups
        else Message("{repeats} of each case", repeats=first.repeats),
        Message("Data per run"): binary_text(first.size)
        if amounts and any(case.workload != "resilver" for case in cases)
        else "",
        Message("A timed run lasts"): duration_text(first.seconds) if any(kind.timed for kind in kinds) else "",
        Message("At the same time"): Message("{count} writers", count=first.writers) if first.writers > 1 else "",
        Message("What is written"): data_text(first) if first.makes_folder else "",
        Message("Memory"): memory_text(first) if first.makes_folder and any(kind.reads for kind in kinds) else "",
        Message("Priority"): Message("everything else went first") if first.gentle else "",
    }
    return {name: text for name, text in found.items() if text}


def data_text(case: Case) -> str:
    """The kind of data in words: it decides how well compression works."""
    if case.sample:
        return ""  # the settings name it
    if case.zeros:
        return Message("zeros by dd, which say nothing about real data")
    if case.compressible:
        return Message("generated, {percent} % smaller once compressed", percent=case.compressible)
    return Message("generated, cannot be compressed")


def memory_text(case: Case) -> str:
    if case.limited:
        return Message("limited to {size}", size=binary_text(memory_for(case.size)))
    return Message("kept out of reads") if case.aside else Message("as in daily use")


def versions_since(known: Mapping[str, str], told: Mapping[str, str], number: int) -> dict[str, str]:
    """Add the versions of case ``number`` (from 1) to those of its sweep, each change under its own name.

    An update may happen during a sweep: ``{"ZFS": "2.3.9", "ZFS since case 5": "2.4.0"}``.
    """
    latest = {name.split(SINCE)[0]: value for name, value in known.items()}
    changed = {
        f"{name}{SINCE}{number}" if name in latest else name: value
        for name, value in told.items()
        if latest.get(name) != value
    }
    return {**known, **changed}
