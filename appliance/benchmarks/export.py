"""Export of results: CSV for a spreadsheet, JSON with everything, Markdown for a forum. Pure."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from appliance.benchmarks.results import Block

# Characters that start a formula in a spreadsheet (OWASP, "CSV injection"): names of disks are hostile text.
FORMULA = ("=", "+", "-", "@", "\t", "\r")


def escape_formula(text: str) -> str:
    return f"'{text}" if text.startswith(FORMULA) else text


def as_csv(blocks: Sequence[Block]) -> str:
    """One line for each run; plain numbers, in bytes and seconds."""
    out = io.StringIO()
    writer = csv.writer(out)
    columns = blocks[0].columns if blocks else ()
    writer.writerow(
        [
            "case",
            "workload",
            *columns,
            "run",
            "bytes per second",
            "operations per second",
            "seconds",
            "mean latency s",
            "99 % latency s",
            "counts",
            "why not",
        ]
    )
    for block in blocks:
        for row in block.rows:
            for run in row.measured.runs:
                found = run.figures
                writer.writerow(
                    [
                        row.measured.number,
                        block.workload,
                        *map(escape_formula, row.settings),
                        run.number,
                        round(found.rate),
                        round(found.operations, 1),
                        round(found.seconds, 3),
                        found.latency,
                        found.latency99,
                        "no" if run.invalid else "yes",
                        escape_formula(" ".join(run.invalid)),
                    ]
                )
    return out.getvalue()


def as_json(
    title: str, blocks: Sequence[Block], commands: Mapping[int, Sequence[str]] | None = None, **more: Any
) -> str:
    """Everything that is known, as JSON; ``commands`` are the commands of each case by its number."""
    cases = [
        {
            "number": row.measured.number,
            "case": msgspec.to_builtins(row.measured.case),
            "state": row.measured.state,
            "failure": row.measured.failure,
            "median": row.summary.median if row.summary else None,
            "unit": row.kind.unit,
            "commands": list((commands or {}).get(row.measured.number, ())),
            "runs": msgspec.to_builtins(row.measured.runs),
        }
        for block in blocks
        for row in block.rows
    ]
    return json.dumps({"title": title, **more, "cases": cases}, indent=1, ensure_ascii=False)


def escape_cell(text: str) -> str:
    """The text of a Markdown cell, with its special characters escaped."""
    for mark in "\\`*_[]<>|":
        text = text.replace(mark, f"\\{mark}")
    return " ".join(text.split())


def as_markdown(
    title: str, blocks: Sequence[Block], sentences: Sequence[str], kept: Mapping[str, str] | None = None
) -> str:
    """Tables in Markdown; ``kept`` has the versions and conditions by name."""
    lines = [f"# {escape_cell(title)}", "", *(f"- {escape_cell(text)}" for text in sentences)]
    for block in blocks:
        columns = [*block.columns, "Median", "Spread", "Change"]
        lines += [
            "",
            f"## {escape_cell(block.kind.title)}",
            "",
            f"| {' | '.join(map(escape_cell, columns))} |",
            f"|{' --- |' * len(columns)}",
        ]
        for row in block.rows:
            value = row.value or "does not count"
            changed = "baseline" if row.is_baseline else row.change_text
            lines.append(f"| {' | '.join(map(escape_cell, (*row.settings, value, row.spread, changed)))} |")
    lines += ["", *(f"- {escape_cell(name)}: {escape_cell(text)}" for name, text in (kept or {}).items() if text)]
    return "\n".join(lines).rstrip() + "\n"
