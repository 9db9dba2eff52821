"""Conclusions from a table of results, in sentences. States only what the runs show. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from appliance.benchmarks.afp_client import REQUEST
from appliance.benchmarks.case import NETWORK, WAYS, memory_for
from appliance.benchmarks.results import Block, CaseFigures, value_text
from appliance.benchmarks.statistics import Difference, change_text, find_difference, find_outlier, percent_change
from appliance.formatting import binary_text, capitalize_opening, link_label, list_with_and, number_text, rate_text
from appliance.message import Message, join_messages

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
        return Message("and with one run each, the difference may be chance")
    if "near" not in reasons:
        return Message("and their runs overlap")
    # Even if runs do not overlap, their medians can be too close to matter.
    if "overlap" not in reasons:
        return Message("which is too close to choose between them")
    return Message("and they overlap or are too close to choose between them")


def describe_block(block: Block) -> Iterator[str]:
    """Cases that are better or worse than the baseline. AFP is left out, because another client measured it."""
    rows = [row for row in valid_rows(block) if row.measured.case.protocol != "afp"]
    base = next((row for row in rows if row.is_baseline), None)
    if len(rows) == 1:
        yield Message(
            "{workload}: {value}. There is no other result to compare it with.",
            workload=block.kind.title,
            value=rows[0].value,
        )
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
        worst = capitalize_opening(worse[-1].name)
        yield Message(
            "{workload}: {base} is best, with {value}. {worst} gives {change}.",
            workload=block.kind.title,
            base=base.name,
            value=base.value,
            worst=worst,
            change=worse[-1].change_text,
        )
    else:
        yield describe_cost(block, worse[-1], base)
        alike = [row for row in by_value if row is not base and row not in worse]
        yield Message(
            "{workload}: no clear difference between {base} and {others}.",
            workload=block.kind.title,
            base=base.name,
            others=join_names(alike),
        )


def describe_similar(block: Block, by_value: Sequence[CaseFigures], base: CaseFigures) -> str:
    """Conclusion if no row differs clearly from the baseline. Two other rows still can."""
    best, worst, what = by_value[0], by_value[-1], block.kind.title
    if compare_rows(best, worst) == "clear":
        change = change_text(percent_change(median_of(best), median_of(worst)))
        return Message(
            "{workload}: {best} is better than {worst}, with {value}: {change} against {worst_value}. "
            "Neither differs clearly from {base} ({base_value}).",
            workload=what,
            best=best.name,
            worst=worst.name,
            value=best.value,
            change=change,
            worst_value=worst.value,
            base=base.name,
            base_value=base.value,
        )
    reasons = [row.difference for row in by_value if row.difference]
    low, high = (value_text(value, block.kind.unit) for value in sorted((median_of(worst), median_of(best))))
    return Message(
        "{workload}: no clear difference. All are between {low} and {high}, {why}.",
        workload=what,
        low=low,
        high=high,
        why=explain_no_winner(reasons),
    )


def describe_best(block: Block, by_value: Sequence[CaseFigures], first: CaseFigures, base: CaseFigures) -> str:
    """The best row, or a row better than the baseline if the best one is not clear."""
    alike = [row for row in by_value if row is not first and compare_rows(first, row) != "clear"]
    said = {
        "workload": block.kind.title,
        "best": first.name,
        "value": first.value,
        "change": first.change_text,
        "base": base.name,
        "base_value": base.value,
    }
    if not alike:
        return Message("{workload}: {best} is best, with {value}: {change} against {base} ({base_value}).", **said)
    return Message(
        "{workload}: {best} is better than {base}, with {value}: {change} against {base_value}. No clear "
        "difference between it and {others}.",
        **said,
        others=join_names(alike),
    )


def describe_cost(block: Block, row: CaseFigures, base: CaseFigures) -> str:
    return Message(
        "{workload}: {case} costs, with {value}: {change} against {base}.",
        workload=block.kind.title,
        case=row.name,
        value=row.value,
        change=row.change_text,
        base=base.name,
    )


def join_names(rows: Sequence[CaseFigures]) -> str:
    """Names of rows: ``ashift 9``, ``ashift 9 and ashift 12``, ``ashift 9 and 2 others``."""
    names = [row.name for row in rows]
    if len(names) > 2:
        return Message("{name} and {count} others", name=names[0], count=len(names) - 1)
    return list_with_and(names)


def median_of(row: CaseFigures) -> float:
    return row.summary.median if row.summary else 0.0


def describe_disks(block: Block) -> Iterator[str]:
    """A disk that is slower than the others."""
    rows = valid_rows(block)
    slow = find_outlier({row.name: median_of(row) for row in rows})
    row = next((row for row in rows if row.name == slow), None)
    if row and any(compare_rows(row, other) == "overlap" for other in rows if other is not row):
        yield Message(
            "{workload}: no clear difference between the disks; their runs overlap.", workload=block.kind.title
        )
    elif row:
        others = sorted(median_of(other) for other in rows if other is not row)
        usual = value_text(others[len(others) // 2], block.kind.unit)
        yield Message(
            "{workload}: {disk} is the odd one out, with {value} where the others reach about {usual}. Look "
            "at its cable and its health before a pool relies on it.",
            workload=block.kind.title,
            disk=slow,
            value=row.value,
            usual=usual,
        )
    elif len(rows) >= 3:
        yield Message(
            "{workload}: the disks are alike; none is notably slower than the others.", workload=block.kind.title
        )


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
        yield Message(
            "{disk} held the others up: a request took it {slow} ms, and them {usual} ms.",
            disk=link_label(slow),
            slow=f"{usual[slow] * 1000:.1f}",
            usual=f"{others * 1000:.1f}",
        )


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
        (first, share), *rest = ((name, f"{statistics.median(found) * 100:.0f}") for name, found in left.items())
        said = [
            Message("{compression} leaves {percent} % of them", compression=first, percent=share),
            *(f"{name} {percent} %" for name, percent in rest),
        ]
        yield Message("Your files: {shares}.", shares=join_messages(said, ", "))
    times = number_text(f"{statistics.median(met):.2f}") if met else ""
    if met and statistics.median(met) < WORTH_DEDUP:
        yield Message(
            "Your files: each block occurs {times} times, too seldom for the memory that dedup takes.", times=times
        )
    elif met:
        yield Message("Your files: each block occurs {times} times, so dedup saves space.", times=times)


def describe_link(block: Block) -> Iterator[str]:
    """The kind of network connection, judged by its speed."""
    for row in valid_rows(block):
        speed = median_of(row)
        if speed < FAST_ETHERNET:
            yield Message(
                "{workload}: {speed} is what 100 Mbit/s Ethernet or a poor radio link carries. Look at "
                "cable, socket and switch: one bad wire makes a gigabit connection fall back to this.",
                workload=block.kind.title,
                speed=row.value,
            )
        elif speed < HELD_UP * GIGABIT:
            yield Message(
                "{workload}: {speed}, where a gigabit network carries about {gigabit}. Radio, the other "
                "computer or a busy network holds it up.",
                workload=block.kind.title,
                speed=row.value,
                gigabit=rate_text(GIGABIT),
            )
        elif speed < GIGABIT * 1.1:
            yield Message(
                "{workload}: {speed}, all that a gigabit network carries.", workload=block.kind.title, speed=row.value
            )
        else:
            yield Message(
                "{workload}: {speed}, more than a gigabit network carries.", workload=block.kind.title, speed=row.value
            )


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
            way = join_messages([block.kind.title, WAYS[case.protocol]])
            if median_of(row) > GIGABIT:
                yield Message(
                    "{workload}: {speed}, more than a gigabit network carries. Over such a network the wire "
                    "is the limit.",
                    workload=way,
                    speed=row.value,
                )
            elif median_of(row) < HELD_UP * median_of(plain) and compare_rows(row, plain) != "overlap":
                yield Message(
                    "{workload}: the protocol is the limit, with {speed} where the folder itself gives {plain}.",
                    workload=way,
                    speed=row.value,
                    plain=plain.value,
                )
            else:
                yield Message(
                    "{workload}: the pool is the limit. The folder itself gives {plain}, and {speed} of it arrive.",
                    workload=way,
                    plain=plain.value,
                    speed=row.value,
                )


def describe_network_limit(blocks: Iterable[Block]) -> Iterator[str]:
    """Note that a gigabit network would be the limit for every case."""
    large = [row for block in blocks if block.workload in {"seq-read", "seq-write"} for row in valid_rows(block)]
    if large and all(median_of(row) > GIGABIT for row in large):
        yield Message(
            "All of these are faster than a gigabit network, which carries about {gigabit}. Over such a "
            "network large files will be equally fast with each of them.",
            gigabit=rate_text(GIGABIT),
        )


def describe_afp_client(blocks: Iterable[Block]) -> Iterator[str]:
    """Note which client measured AFP, because the other protocols use the kernel's."""
    if any(row.measured.case.protocol == "afp" for block in blocks for row in valid_rows(block)):
        yield Message(
            "AFP was measured with a client of Larder's own, because Debian has none that mounts such a "
            "folder. It asks for up to {size} at a time, waits for each answer and caches nothing. That "
            "shows what server and protocol cost, not how fast a Mac is, so AFP is left out when the best "
            "protocol is named.",
            size=binary_text(REQUEST),
        )


def describe_memory(blocks: Iterable[Block]) -> Iterator[str]:
    """Notes on how the ARC was kept out, where figures differ from daily use because of it."""
    cases = [row.measured.case for block in blocks if block.kind.reads for row in block.rows if row.measured.runs]
    if any(case.aside and case.workload in {"seq-read", "dd-read"} for case in cases):
        yield Message(
            "Memory was kept out of reads, so nothing was read ahead: in daily use large files are read "
            "faster than this. Compare these figures with each other only."
        )
    sizes = {memory_for(case.size) for case in cases if case.limited}
    if sizes:
        yield Message(
            "ZFS's memory was limited to {size} meanwhile, so that the disks were measured and not the "
            "memory. Data that is read again and again is faster in daily use.",
            size=binary_text(max(sizes)),
        )


def count_invalid(blocks: Iterable[Block]) -> Iterator[str]:
    every = [row for block in blocks for row in block.rows if row.measured.state in {"done", "failed"}]
    count = sum(row.summary is None for row in every)
    if count == 1:
        yield Message("1 of {total} cases does not count. The reason is shown beside it.", total=len(every))
    elif count:
        yield Message(
            "{count} of {total} cases do not count. The reason is shown beside each.", count=count, total=len(every)
        )
