"""The results of a sweep as a table: a row for each case, with its median and its change from a baseline. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from appliance.benchmarks import validity
from appliance.benchmarks.case import Case
from appliance.benchmarks.matrix import axes_of
from appliance.benchmarks.parse_results import Figures
from appliance.benchmarks.statistics import (
    Difference,
    Summary,
    change_text,
    find_difference,
    percent_change,
    summarize_values,
)
from appliance.benchmarks.validity import Circumstances
from appliance.benchmarks.workloads import KINDS, Unit, WorkloadKind
from appliance.formatting import continue_sentence, duration_text, number_text, rate_text, with_unit
from appliance.message import Message, join_messages, plain_text

# Prefixes of the lines in a job's log that carry a run's result, and the versions it depends on.
RESULT, VERSIONS = "Result: ", "Versions and settings: "
SPEAKING = {
    "Layout",
    "Sectors",
    "Uses",
    "Disk",
    "Pool",
    "Way in",
    "Data",
}  # settings whose value is clear without their name


class BenchmarkRun(msgspec.Struct, frozen=True, kw_only=True):
    """One run, as it is stored. ``invalid``: why it does not count. ``disturbed``: why it was repeated."""

    number: int
    figures: Figures
    around: Circumstances
    invalid: tuple[str, ...] = ()
    disturbed: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()


LONGEST = 1900  # characters of a line in a job's log, with some reserve (``agent/run_operation.py`` cuts longer ones)


def encode_run(run: BenchmarkRun) -> str:
    """A run as a line of a job's log. What does not fit is left out, the least important first."""
    around, figures = run.around, run.figures
    less = msgspec.structs.replace(around, per_disk={})
    least = msgspec.structs.replace(less, busy=(), lost=around.lost[:1])
    short = msgspec.structs.replace(figures, told=figures.told[:200])
    reasons = tuple(text[:300] for text in run.invalid[:2])
    text = ""
    for one in (
        run,
        msgspec.structs.replace(run, around=less),
        msgspec.structs.replace(run, around=least, figures=short, disturbed=(), remarks=(), invalid=reasons),
    ):
        text = RESULT + msgspec.json.encode(one, enc_hook=plain_text).decode()
        if len(text) <= LONGEST:
            break
    return text


class MeasuredCase(msgspec.Struct, frozen=True):
    """A case with its runs; ``failure`` says why it could not be tested."""

    number: int
    case: Case
    runs: tuple[BenchmarkRun, ...] = ()
    state: str = "done"  # waiting, running, done, failed
    failure: str = ""

    @property
    def summary(self) -> Summary | None:
        """Summary of the runs that count."""
        main = KINDS[self.case.workload].main
        return summarize_values(run.figures.main_value(main) for run in self.runs if not run.invalid)

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why runs do not count or are missing, each reason once."""
        found = [reason for run in self.runs for reason in self.as_messages(run, run.invalid)]
        return tuple(dict.fromkeys([self.failure, *found] if self.failure else found))

    @property
    def remarks(self) -> tuple[str, ...]:
        found = [text for run in self.runs for text in self.as_messages(run, (*run.disturbed, *run.remarks))]
        return tuple(dict.fromkeys(found))

    def as_messages(self, run: BenchmarkRun, texts: Sequence[str]) -> list[str]:
        """Texts of a run as messages, where what was measured says the same again."""
        if not texts:  # of nearly every run
            return []
        every = (
            *validity.invalid_reasons(self.case, run.figures, run.around),
            *validity.find_disturbances(run.around),
            *validity.run_remarks(self.case, run.around),
        )
        known = {str(text): text for text in every}
        return [known.get(text, text) for text in texts]


class CaseFigures(msgspec.Struct, frozen=True):
    """A row of the table. ``change`` is in per cent of the baseline's median."""

    measured: MeasuredCase
    columns: tuple[str, ...]
    settings: tuple[str, ...]
    summary: Summary | None
    change: float | None = None
    is_baseline: bool = False
    difference: Difference | None = None  # from the baseline

    @property
    def clear(self) -> bool:
        """Whether the row differs clearly from the baseline."""
        return self.difference == "clear"

    @property
    def value(self) -> str:
        return value_text(self.summary.median, self.kind.unit) if self.summary else ""

    @property
    def spread(self) -> str:
        if not self.summary or self.summary.count < 2:
            return ""
        return span_text(self.summary.least, self.summary.most, self.kind.unit)

    @property
    def change_text(self) -> str:
        return change_text(self.change)

    @property
    def kind(self) -> WorkloadKind:
        return KINDS[self.measured.case.workload]

    @property
    def better(self) -> bool:
        return self.change is not None and self.change != 0 and (self.change > 0) == self.kind.more_is_better

    @property
    def name(self) -> str:
        """The settings of the row in one phrase: ``raidz1 of 5 disks, without log device``."""
        return join_messages(list(map(setting_phrase, self.columns, self.settings)), ", ") or Message("as it is")


class Block(msgspec.Struct, frozen=True):
    """All rows of one workload; only these can be compared. ``most`` is the end of their scale."""

    workload: str
    rows: tuple[CaseFigures, ...]
    columns: tuple[str, ...]

    @property
    def kind(self) -> WorkloadKind:
        return KINDS[self.workload]

    @property
    def most(self) -> float:
        return max((row.summary.most for row in self.rows if row.summary), default=0.0)


def setting_phrase(column: str, value: str) -> str:
    """A setting as part of a sentence: ``raidz1 of 5 disks``, ``sync standard``, ``without log device``."""
    if column.endswith(" device"):
        device = continue_sentence(column)
        if value == "none":
            return Message("without {device}", device=device)
        return Message("with {device} {name}", device=device, name=value)
    return value if column in SPEAKING else join_messages([continue_sentence(column), value])


def value_text(value: float, unit: Unit) -> str:
    """A figure with its unit: ``132 MiB/s``, ``6,000 a second``, ``3 h 10 min``."""
    if unit == "B/s":
        return rate_text(round(value))
    if unit == "seconds":
        return duration_text(round(value)) if value >= 10 else with_unit(f"{value:.1f}", "s")
    return Message("{count} a second", count=number_text(f"{value:,.0f}" if value >= 10 else f"{value:.1f}"))


def span_text(least: float, most: float, unit: Unit) -> str:
    """A range, ``81 to 84.9 MiB/s``, with a shared unit written once."""
    low, high = value_text(least, unit), value_text(most, unit)
    if low == high:
        return high
    number, _space, its = low.partition(" ")
    shared = high.endswith(f" {its}") and high.count(" ") == low.count(" ")
    return Message("{low} to {high}", low=number_text(number) if shared else low, high=high)


def build_blocks(measured: Sequence[MeasuredCase], baseline: int = 0) -> tuple[Block, ...]:
    """The table: a block for each workload. ``baseline`` is the number of the case that the others are compared with.

    A workload without a case of these settings uses its first case, as single disks do.
    """
    columns = axes_of([one.case for one in measured])
    chosen = next((one for one in measured if one.number == baseline), measured[0] if measured else None)
    found = []
    for workload in dict.fromkeys(one.case.workload for one in measured):
        ours = [one for one in measured if one.case.workload == workload]
        base = next((one for one in ours if chosen and has_same_settings(one.case, chosen.case, columns)), ours[0])
        found.append(Block(workload, tuple(build_row(one, base, columns) for one in ours), tuple(columns)))
    return tuple(found)


def has_same_settings(one: Case, other: Case, columns: Iterable[str]) -> bool:
    return all(one.settings.get(name) == other.settings.get(name) for name in columns)


def build_row(one: MeasuredCase, base: MeasuredCase, columns: Sequence[str]) -> CaseFigures:
    settings = tuple(one.case.settings.get(name, "") for name in columns)
    now, before = one.summary, base.summary
    if one is base or not now or not before:
        return CaseFigures(one, tuple(columns), settings, now, is_baseline=one is base)
    return CaseFigures(
        one,
        tuple(columns),
        settings,
        now,
        percent_change(now.median, before.median),
        difference=find_difference(now, before),
    )
