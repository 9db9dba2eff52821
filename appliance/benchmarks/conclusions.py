"""Conclusions from a table of results, in sentences. States only what the runs show. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from appliance.benchmarks.afp_client import REQUEST
from appliance.benchmarks.case import NETWORK, WAYS, memory_for
from appliance.benchmarks.results import Block, CaseFigures, value_text
from appliance.benchmarks.statistics import Difference, change_text, find_difference, find_outlier, percent_change
from appliance.formatting import binary_text, link_label, rate_text

GIGABIT = 117 * 2**20  # bytes a second that TCP carries over gigabit Ethernet at the usual MTU of 1500
FAST_ETHERNET = 12 * 2**20  # bytes a second
HELD_UP = 0.8  # share of the speed of the folder itself; below it, the protocol is the limit
WORTH_DEDUP = (
    2.0  # references to each block; below, dedup saves less than half and costs a third or more of the write speed
)
MUCH_SLOWER = 0.4  # share of the requests that the other disks answer in the same time


def summarize_results(blocks: Sequence[Block]) -> list[str]:
    """All conclusions, the most important first; empty without results."""
    found: list[str] = []
    for block in blocks:
        found += describe_disks(block) if block.workload.startswith("disk-") else describe_block(block)
    found += [
        *describe_sample(blocks),
        *describe_protocols(blocks),
        *describe_slow_member(blocks),
        *describe_network_limit(blocks),
        *describe_afp_client(blocks),
        *describe_memory(blocks),
        *count_invalid(blocks),
    ]
    return found


def valid_rows(block: Block) -> list[CaseFigures]:
    return [row for row in block.rows if row.summary]


def compare_rows(one: CaseFigures, other: CaseFigures) -> Difference:
    """How two rows differ; ``single`` if one of them has no runs that count."""
    return find_difference(one.summary, other.summary) if one.summary and other.summary else "single"


def explain_no_winner(reasons: Sequence[Difference]) -> str:
    """Explain why no winner is named, from several comparisons."""
    if "single" in reasons:
        return "and one run of each does not tell a difference from chance"
    if "near" not in reasons:
        return "and their runs overlap"
    # Even if runs do not overlap, their medians can be too close to matter.
    return "that is too little to choose by" if "overlap" not in reasons else "and they overlap or lie too near to choose by"  # fmt: skip


def describe_block(block: Block) -> Iterator[str]:
    """Cases that are better or worse than the baseline. AFP is left out, because another client measured it."""
    rows = [row for row in valid_rows(block) if row.measured.case.protocol != "afp"]
    base = next((row for row in rows if row.is_baseline), None)
    if len(rows) < 2 or base is None:
        return
    by_value = sorted(rows, key=median_of, reverse=block.kind.more_is_better)
    better = [row for row in by_value if row.clear and row.better]
    worse = [row for row in by_value if row.clear and not row.better]
    if not better and not worse:
        yield describe_similar(block, by_value, base)
    elif better:
        yield describe_best(block, by_value, better[0], base)
        if worse:
            yield describe_cost(block, worse[-1], base)
    elif len(worse) == len(rows) - 1:
        yield f"{block.kind.title}: {base.name} is best, with {base.value}. {capitalized_name(worse[-1])} gives {worse[-1].change_text}."
    else:
        yield describe_cost(block, worse[-1], base)
        alike = [row for row in by_value if row is not base and row not in worse]
        yield f"{block.kind.title}: no clear difference between {base.name} and {join_names(alike)}."


def describe_similar(block: Block, by_value: Sequence[CaseFigures], base: CaseFigures) -> str:
    """Conclusion if no row differs clearly from the baseline. Two other rows still can."""
    best, worst, what = by_value[0], by_value[-1], block.kind.title
    if compare_rows(best, worst) == "clear":
        return f"{what}: {best.name} is better than {worst.name}, with {best.value}: {change_text(percent_change(median_of(best), median_of(worst)))} against {worst.value}. Neither differs clearly from {base.name} ({base.value})."
    reasons = [row.difference for row in by_value if row.difference]
    return (
        f"{what}: no clear difference. All lie between {range_text(worst, best, block)}, {explain_no_winner(reasons)}."
    )


def describe_best(block: Block, by_value: Sequence[CaseFigures], first: CaseFigures, base: CaseFigures) -> str:
    """The best row, or a row better than the baseline if the best one is not clear."""
    alike = [row for row in by_value if row is not first and compare_rows(first, row) != "clear"]
    told = f"with {first.value}: {first.change_text} against"
    if not alike:
        return f"{block.kind.title}: {first.name} is best, {told} {base.name} ({base.value})."
    return f"{block.kind.title}: {first.name} is better than {base.name}, {told} {base.value}. No clear difference between it and {join_names(alike)}."


def describe_cost(block: Block, row: CaseFigures, base: CaseFigures) -> str:
    return f"{block.kind.title}: {row.name} costs, with {row.value}: {row.change_text} against {base.name}."


def join_names(rows: Sequence[CaseFigures]) -> str:
    """Names of rows: ``ashift 9``, ``ashift 9 and ashift 12``, ``ashift 9 and 2 others``."""
    names = [row.name for row in rows]
    return f"{names[0]} and {len(names) - 1} others" if len(names) > 2 else " and ".join(names)


def median_of(row: CaseFigures) -> float:
    return row.summary.median if row.summary else 0.0


def capitalized_name(row: CaseFigures) -> str:
    return row.name[:1].upper() + row.name[1:]


def range_text(one: CaseFigures, other: CaseFigures, block: Block) -> str:
    low, high = sorted((median_of(one), median_of(other)))
    return f"{value_text(low, block.kind.unit)} and {value_text(high, block.kind.unit)}"


def describe_disks(block: Block) -> Iterator[str]:
    """A disk that is slower than the others."""
    rows = valid_rows(block)
    slow = find_outlier({row.name: median_of(row) for row in rows})
    row = next((row for row in rows if row.name == slow), None)
    if row and any(compare_rows(row, other) == "overlap" for other in rows if other is not row):
        yield f"{block.kind.title}: no clear difference between the disks; their runs overlap."
    elif row:
        others = sorted(median_of(other) for other in rows if other is not row)
        usual = value_text(others[len(others) // 2], block.kind.unit)
        yield f"{block.kind.title}: {slow} is the odd one out, with {row.value} where the others reach about {usual}. Look at its cable and its health before a pool relies on it."
    elif len(rows) >= 3:
        yield f"{block.kind.title}: the disks are alike; none is notably slower than the others."


def describe_slow_member(blocks: Iterable[Block]) -> Iterator[str]:
    """A data disk of the scratch pools that took much longer for each request than the others."""
    waits: dict[str, list[float]] = {}
    for measured in (row.measured for block in blocks for row in block.rows if row.measured.case.where == "scratch"):
        data = {path.rsplit("/", 1)[-1] for path in measured.case.disks}
        for run in measured.runs:
            for link in data & run.around.per_disk.keys():
                waits.setdefault(link, []).append(run.around.per_disk[link])
    usual = {link: statistics.median(found) for link, found in waits.items()}
    slow = find_outlier({link: 1 / wait for link, wait in usual.items() if wait > 0}, share=MUCH_SLOWER)
    if slow:
        others = statistics.median(wait for link, wait in usual.items() if link != slow)
        yield f"{link_label(slow)} held the others up: a request took it {usual[slow] * 1000:.1f} ms, and them {others * 1000:.1f} ms."


def describe_sample(blocks: Iterable[Block]) -> Iterator[str]:
    """What compression and dedup save on the sample, whatever the workload."""
    left: dict[str, list[float]] = {}
    met: list[float] = []
    for measured in (row.measured for block in blocks for row in block.rows if row.measured.case.sample):
        for run in measured.runs:
            if measured.case.compression != "off" and run.around.sample:
                left.setdefault(measured.case.compression, []).append(run.around.kept)
            if measured.case.dedup and not run.invalid:
                met.append(run.around.deduped)
    if left:
        said = [
            f"{name}{'' if at else ' leaves'} {statistics.median(found) * 100:.0f} %{'' if at else ' of them'}"
            for at, (name, found) in enumerate(left.items())
        ]
        yield f"Your files: {', '.join(said)}."
    if met and statistics.median(met) < WORTH_DEDUP:
        yield f"Your files: dedup meets each block {statistics.median(met):.2f} times, too seldom for the memory that it takes."
    elif met:
        yield f"Your files: dedup meets each block {statistics.median(met):.2f} times."


def describe_link(block: Block) -> Iterator[str]:
    """The kind of network connection, judged by its speed."""
    for row in valid_rows(block):
        speed = median_of(row)
        if speed < FAST_ETHERNET:
            yield f"{block.kind.title}: {row.value} is what 100 Mbit/s Ethernet or a poor radio link carries. Look at cable, socket and switch: one bad wire makes a gigabit connection fall back to this."
        elif speed < HELD_UP * GIGABIT:
            yield f"{block.kind.title}: {row.value}, where a gigabit network carries about {rate_text(GIGABIT)}. Radio, the other computer or a busy network holds it up."
        elif speed < GIGABIT * 1.1:
            yield f"{block.kind.title}: {row.value}, all that a gigabit network carries."
        else:
            yield f"{block.kind.title}: {row.value}, more than a gigabit network carries."


def describe_protocols(blocks: Iterable[Block]) -> Iterator[str]:
    """Whether the pool, the protocol or the network limits large files on another computer."""
    for block in blocks:
        if block.workload in NETWORK:
            yield from describe_link(block)
        if block.workload not in {"seq-read", "seq-write"}:
            continue
        rows = valid_rows(block)
        for row in rows:
            case = row.measured.case
            plain = next((one for one in rows if msgspec.structs.replace(case, protocol="") == one.measured.case), None)
            if not case.protocol or plain is None:
                continue
            way = f"{block.kind.title} {WAYS[case.protocol]}"
            if median_of(row) > GIGABIT:
                yield f"{way}: {row.value}, more than a gigabit network carries. Over such a network the wire is the limit."
            elif median_of(row) < HELD_UP * median_of(plain) and compare_rows(row, plain) != "overlap":
                yield f"{way}: the protocol is the limit, with {row.value} where the folder itself gives {plain.value}."
            else:
                yield f"{way}: the pool is the limit. The folder itself gives {plain.value}, and {row.value} of it arrive."


def describe_network_limit(blocks: Iterable[Block]) -> Iterator[str]:
    """Note that a gigabit network would be the limit for every case."""
    large = [row for block in blocks if block.workload in {"seq-read", "seq-write"} for row in valid_rows(block)]
    if large and all(median_of(row) > GIGABIT for row in large):
        yield f"All of these are faster than a gigabit network, which carries about {rate_text(GIGABIT)}. Over such a network large files will be equally fast with each of them."


def describe_afp_client(blocks: Iterable[Block]) -> Iterator[str]:
    """Note which client measured AFP, because the other protocols use the kernel's."""
    if any(row.measured.case.protocol == "afp" for block in blocks for row in valid_rows(block)):
        yield f"Over AFP a client of Larder's own measured, since Debian has none that mounts such a folder: it asks for up to {binary_text(REQUEST)} at a time, waits for each answer and keeps nothing. That shows what server and protocol take, not how fast a Mac is; the best of the ways in is named without it."


def describe_memory(blocks: Iterable[Block]) -> Iterator[str]:
    """Notes on how the ARC was kept out, where figures differ from daily use because of it."""
    cases = [row.measured.case for block in blocks if block.kind.reads for row in block.rows if row.measured.runs]
    if any(case.aside and case.workload in {"seq-read", "dd-read"} for case in cases):
        yield "Memory was kept out of reads, so nothing was read ahead: in daily use large files are read faster than this. Compare these figures with each other only."
    sizes = {memory_for(case.size) for case in cases if case.limited}
    if sizes:
        yield f"ZFS's memory was held at {binary_text(max(sizes))} meanwhile, so that the disks were measured and not it. What is asked for again and again is faster in daily use."


def count_invalid(blocks: Iterable[Block]) -> Iterator[str]:
    every = [row for block in blocks for row in block.rows if row.measured.state in {"done", "failed"}]
    count = sum(row.summary is None for row in every)
    if count:
        one = count == 1
        yield f"{count} of {len(every)} cases {'does' if one else 'do'} not count. The reason stands with {'it' if one else 'each'}."
