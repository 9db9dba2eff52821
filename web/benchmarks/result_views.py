"""Pages of results: a running or finished sweep, comparisons, trends, and exports."""

from __future__ import annotations

import json

import msgspec
from django.db.models import Case, When
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils.text import slugify
from django.utils.translation import gettext
from django.views.decorators.http import require_GET

from appliance.benchmarks import conclusions, conditions, estimate, export, results
from appliance.benchmarks.matrix import axes_of
from appliance.benchmarks.presets import BY_NAME, PRESETS, smallest_size
from appliance.benchmarks.results import Block, CaseFigures, MeasuredCase, value_text
from appliance.benchmarks.statistics import change_text
from appliance.benchmarks.workloads import KINDS
from appliance.formatting import continue_sentence, link_label
from appliance.message import join_messages
from web import live
from web.benchmarks import charts
from web.benchmarks.models import CaseRow, SweepRow
from web.inventory import store
from web.inventory.models import Progress
from web.jobs.models import Job
from web.translation import lazy_text, text_of

MOST_TIMES, MOST_OTHERS = 24, 30
UNCLEAR = {
    "single": lazy_text("not clear: one run of each tells nothing"),
    "overlap": lazy_text("not clear: the runs overlap"),
    "near": lazy_text("too little to matter"),
}
FORMS = {"csv": "text/csv", "json": "application/json", "md": "text/markdown"}
EXPORTS = (
    ("md", lazy_text("Markdown, for a forum")),
    ("csv", lazy_text("CSV, for a spreadsheet")),
    ("json", lazy_text("JSON, with everything")),
)


class ResultLine(msgspec.Struct, frozen=True):
    """A row of the table with its bar and the job that ran it."""

    row: CaseFigures
    bar: charts.Bar | None
    job: str = ""


def parse_number(number: str) -> int:
    """The case number in a query string; 0 for anything else."""
    return int(number) if number.isascii() and number.isdigit() and len(number) < 6 else 0


def case_rows(row: SweepRow) -> list[CaseRow]:
    return list(row.cases.prefetch_related("results"))


def measured_cases(cases: list[CaseRow]) -> list[MeasuredCase]:
    return [case.measured for case in cases]


def block_lines(
    blocks: tuple[Block, ...], cases: list[CaseRow]
) -> list[tuple[Block, list[ResultLine], charts.HeatMap | None]]:
    jobs = {case.number: str(case.job or "") for case in cases}
    return [
        (
            block,
            [ResultLine(row, charts.draw_bar(row, block), jobs[row.measured.number]) for row in block.rows],
            charts.draw_heat_map(block),
        )
        for block in blocks
    ]


@require_GET
def show_sweep(request: HttpRequest, pk: str) -> HttpResponse:
    """The page of a sweep: progress, results so far, and conclusions."""

    def build() -> dict[str, object]:
        row = get_object_or_404(SweepRow, pk=pk)
        cases = case_rows(row)
        blocks = results.build_blocks(measured_cases(cases), parse_number(request.GET.get("baseline", "")))
        current = next((case for case in cases if case.state in {CaseRow.State.RUNNING, CaseRow.State.CLEARING}), None)
        progress = Progress.objects.filter(job=current.job).first() if current and current.job else None
        ended = {
            case.number: case.seconds for case in cases if case.state in {CaseRow.State.DONE, CaseRow.State.FAILED}
        }
        return {
            "sweep": row,
            "held": row.state == SweepRow.State.QUEUED and row.is_held(),
            "blocks": block_lines(blocks, cases),
            "sentences": conclusions.summarize_results(blocks),
            "current": current,
            "title": continue_sentence(KINDS[current.case.workload].title) if current else "",
            "progress": progress,
            "graph": charts.draw_live_graph(progress.speeds) if progress else None,
            "done": len(ended),
            "total": len(cases),
            "percent": len(ended) * 100 // len(cases) if cases else 0,
            "left": remaining_seconds(row, cases, ended) if row.open else 0,
            "versions": sweep_versions(row),
            "disks": disk_labels(row),
            "shared": conditions.shared_conditions([case.case for case in cases]),
            "exports": EXPORTS,
            "repeated": row.state == SweepRow.State.DONE
            and SweepRow.objects.filter(preset=row.preset, spec=row.spec, state=SweepRow.State.DONE).count() > 1,
            "others": comparable_sweeps(row),
        }

    return live.respond(request, "benchmarks/benchmark.html", build)


def comparable_sweeps(row: SweepRow) -> list[SweepRow]:
    """Sweeps to compare with: the same preset first, then other presets with the same needs."""
    needs = BY_NAME[row.preset].needs if row.preset in BY_NAME else ""
    alike = [preset.name for preset in PRESETS if preset.needs == needs] or [row.preset]
    first = Case(When(preset=row.preset, then=0), default=1)
    found = SweepRow.objects.filter(preset__in=alike).exclude(pk=row.pk).exclude(state=SweepRow.State.QUEUED)
    return list(found.order_by(first, "-created").defer("spec")[:MOST_OTHERS])


def disk_labels(row: SweepRow) -> list[str]:
    """Labels of all disks of the sweep."""
    return [link_label(path.rsplit("/", 1)[-1]) for path in row.sweep.all_disks]


def remaining_seconds(row: SweepRow, cases: list[CaseRow], ended: dict[int, float]) -> int:
    facts = store.facts_of_pools()
    sizes = smallest_size([disk for path in row.sweep.disks if (disk := facts.disk(path))])
    return estimate.remaining_seconds([case.case for case in cases], ended, sizes)


def case_commands(cases: list[CaseRow]) -> dict[int, list[str]]:
    """The commands in each case's plan, by case number."""
    plans = dict(Job.objects.filter(pk__in=[case.job for case in cases if case.job]).values_list("pk", "plan"))
    return {
        case.number: [str(step.get("shown", "")) for step in plans[case.job].get("steps", [])]
        for case in cases
        if case.job in plans
    }


@require_GET
def export_sweep(request: HttpRequest, pk: str, form: str) -> HttpResponse:
    """The results as a file."""
    if form not in FORMS:
        raise Http404
    row = get_object_or_404(SweepRow, pk=pk)
    cases = case_rows(row)
    blocks = results.build_blocks(measured_cases(cases), parse_number(request.GET.get("baseline", "")))
    versions = sweep_versions(row)
    when = row.started.isoformat(timespec="minutes") if row.started else ""
    if form == "csv":
        text = export.as_csv(blocks)
    elif form == "json":
        text = export.as_json(
            row.title, blocks, case_commands(cases), versions=versions, began=when, sweep=json.loads(row.spec)
        )
    else:
        shared = conditions.shared_conditions([case.case for case in cases])
        kept = {**shared, "Begun": when, "Disks": ", ".join(disk_labels(row)), **versions}
        text = export.as_markdown(row.title, blocks, conclusions.summarize_results(blocks), kept)
    response = HttpResponse(text, content_type=f"{FORMS[form]}; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{slugify(row.title) or "sweep"}.{form}"'
    return response


class CasePair(msgspec.Struct, frozen=True):
    """The same case in two sweeps."""

    name: str
    workload: str
    before: CaseFigures
    now: CaseFigures
    change: str
    unclear: str  # why it does not count as a change; empty if it does


def pair_cases(before: SweepRow, now: SweepRow) -> list[CasePair]:
    """Cases that both sweeps have, in the order of the newer sweep."""
    first, second = (measured_cases(case_rows(row)) for row in (before, now))
    old = {case_key(one): one for one in first}
    both_times = [one for one in second if case_key(one) in old]
    columns = axes_of([one.case for one in both_times])
    found = []
    for one in both_times:
        here, there = (
            results.build_row(one, old[case_key(one)], columns),
            results.build_row(old[case_key(one)], old[case_key(one)], ()),
        )
        unclear = UNCLEAR.get(here.difference or "", "")
        found.append(CasePair(here.name, here.kind.title, there, here, change_text(here.change), unclear))
    return found


def case_key(one: MeasuredCase) -> tuple[object, ...]:
    """Key for matching cases of two sweeps: workload and settings. Disks count only for single-disk cases."""
    return (one.case.workload, *one.case.settings.items())


@require_GET
def over_time(request: HttpRequest, pk: str) -> HttpResponse:
    """All runs of the same sweep, the oldest first, with a line for each case."""
    row = get_object_or_404(SweepRow, pk=pk)
    again = SweepRow.objects.filter(preset=row.preset, spec=row.spec, state=SweepRow.State.DONE).order_by("-created")
    made = list(again.prefetch_related("cases__results")[:MOST_TIMES])[::-1]
    tables = [results.build_blocks([case.measured for case in one.cases.all()]) for one in made]
    found = []
    for block in tables[-1] if tables else ():
        same = [next((other for other in one if other.workload == block.workload), None) for one in tables]
        rows = [[find_row(other, line.measured.number) for other in same] for line in block.rows]
        if most := max((other.most for other in same if other), default=0.0):
            found.append((block, charts.draw_trends(rows, most), text_of(value_text(most, block.kind.unit))))
    context = {"sweep": row, "made": made, "blocks": found, "wide": charts.WIDE, "tall": charts.TALL}
    return render(request, "benchmarks/over_time.html", context)


def find_row(block: Block | None, number: int) -> CaseFigures | None:
    return next((row for row in block.rows if row.measured.number == number), None) if block else None


@require_GET
def compare_sweeps(request: HttpRequest, pk: str, other: str) -> HttpResponse:
    """Compare two sweeps, the older one first."""
    chosen = [get_object_or_404(SweepRow, pk=one) for one in (pk, other)]
    before, now = sorted(chosen, key=lambda row: row.created)
    found = pair_cases(before, now)
    same = conditions.common_settings([pair.now.measured.case for pair in found])
    context = {
        "before": before,
        "now": now,
        "pairs": found,
        "same": join_messages([results.setting_phrase(name, text) for name, text in same.items()], ", "),
        "differences": setting_differences(before, now),
    }
    return render(request, "benchmarks/compare.html", context)


class SettingDifference(msgspec.Struct, frozen=True):
    """A difference in setup between two sweeps, apart from the settings."""

    name: str
    before: str
    now: str


def setting_differences(before: SweepRow, now: SweepRow) -> list[SettingDifference]:
    """Differences in conditions, disks and versions, which may explain different figures."""
    then, since = (
        {
            **conditions.run_conditions(list(row.sweep.build_cases())),
            gettext("Disks"): text_of(join_messages(disk_labels(row), ", ")),
            **sweep_versions(row),
        }
        for row in (before, now)
    )
    return [
        SettingDifference(name, then.get(name, ""), since.get(name, ""))
        for name in dict.fromkeys((*then, *since))
        if then.get(name, "") != since.get(name, "")
    ]


def sweep_versions(row: SweepRow) -> dict[str, str]:
    return dict(json.loads(row.versions)) if row.versions else {}
