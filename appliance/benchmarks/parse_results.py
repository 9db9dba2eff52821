"""Parse the output of fio, dd, iperf3, bonnie++ and the AFP client into figures. Raises Failed for anything else."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import msgspec

from appliance.errors import Failed
from appliance.formatting import rate_text
from appliance.message import Message


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """Figures of one run.

    ``rate`` in bytes a second, ``operations`` a second, ``latency`` (mean) and ``latency99`` (99th percentile) in
    seconds, ``read`` and ``written`` in bytes as the program counted them. ``told`` has other figures as a sentence.
    """

    rate: float = 0.0
    operations: float = 0.0
    seconds: float = 0.0
    latency: float = 0.0
    latency99: float = 0.0
    read: int = 0
    written: int = 0
    tool: str = ""
    told: str = ""

    def with_extra_seconds(self, seconds: float) -> Figures:
        """The figures for the same amount of data in ``seconds`` more."""
        whole = self.seconds + seconds
        part = self.seconds / whole if whole else 1.0
        return msgspec.structs.replace(self, seconds=whole, rate=self.rate * part, operations=self.operations * part)

    def main_value(self, which: str) -> float:
        found = {"rate": self.rate, "operations": self.operations, "seconds": self.seconds}
        return found[which]


def number_at(raw: Mapping[str, Any], key: str) -> float:
    found = raw.get(key)
    return float(found) if isinstance(found, (int, float)) and not isinstance(found, bool) else 0.0


def object_at(raw: object, key: str) -> Mapping[str, Any]:
    found = raw.get(key) if isinstance(raw, dict) else None
    return found if isinstance(found, dict) else {}


def from_fio(text: str) -> Figures:
    """Figures from fio's JSON with one group. Reads and writes are added; latencies are of the slower direction."""
    # Notes for people may come before the JSON (fio 3.39: "both iodepth >= 1 and synchronous I/O engine ...").
    start = text.find("{")
    try:
        answer = json.loads(text[start:]) if start >= 0 else None
    except ValueError as error:
        raise Failed(Message("fio printed something that is not JSON"), text[:200]) from error
    answer = answer if isinstance(answer, dict) else {}
    jobs = answer.get("jobs")
    if not isinstance(jobs, list) or len(jobs) != 1 or not isinstance(jobs[0], dict):
        raise Failed(Message("fio printed no figures"), text[:200])
    if jobs[0].get("error"):
        raise Failed(Message("fio ended with error {error}", error=jobs[0]["error"]))
    ways = {way: object_at(jobs[0], way) for way in ("read", "write")}
    seconds = max(number_at(found, "runtime") for found in ways.values()) / 1000
    return Figures(
        rate=sum(number_at(found, "bw_bytes") for found in ways.values()),
        operations=sum(number_at(found, "iops") for found in ways.values()),
        seconds=seconds,
        latency=max(number_at(object_at(found, "lat_ns"), "mean") for found in ways.values()) / 1e9,
        latency99=max(
            number_at(object_at(object_at(found, "clat_ns"), "percentile"), "99.000000") for found in ways.values()
        )
        / 1e9,
        read=int(number_at(ways["read"], "io_bytes")),
        written=int(number_at(ways["write"], "io_bytes")),
        tool=str(answer.get("fio version", ""))[:40],
    )


def from_dd(text: str, *, reading: bool) -> Figures:
    """Figures from dd's last line on standard error. Uses bytes and seconds, because dd rounds the rate."""
    found = re.search(r"^([0-9]+) bytes .*copied, ([0-9.]+(?:e-?[0-9]+)?) s", text, re.MULTILINE)
    if not found or float(found[2]) <= 0:
        raise Failed(Message("dd printed no figures"), text[:200])
    amount, seconds = int(found[1]), float(found[2])
    return Figures(
        rate=amount / seconds,
        seconds=seconds,
        read=amount if reading else 0,
        written=0 if reading else amount,
        tool="dd",
    )


def from_afp(text: str, said: str) -> Figures:
    """Figures from the output of ``afp_benchmark.py``; ``said`` is its standard error. Raises Failed with its error."""
    try:
        answer = json.loads(text)
        if why := answer.get("error"):
            raise Failed(Message("AFP could not be measured"), str(why)[:600])
        return msgspec.convert(answer, Figures)
    except (ValueError, AttributeError) as error:
        raise Failed(Message("AFP could not be measured"), said[-300:] or text[:200]) from error


def from_iperf(text: str) -> Figures:
    """Figures from iperf3's JSON: what arrived at the other end. Raises Failed with iperf3's own error."""
    try:
        answer = json.loads(text)
    except ValueError as error:
        raise Failed(Message("iperf3 printed something that is not JSON"), text[:200]) from error
    answer = answer if isinstance(answer, dict) else {}
    if said := str(answer.get("error", "")):
        raise Failed(Message("iperf3 could not measure. Does iperf3 -s run on the other computer"), said[:300])
    arrived, left = object_at(object_at(answer, "end"), "sum_received"), object_at(object_at(answer, "end"), "sum_sent")
    if not number_at(arrived, "seconds"):
        raise Failed(Message("iperf3 printed no figures"), text[:200])
    again = int(number_at(left, "retransmits"))
    return Figures(
        rate=number_at(arrived, "bits_per_second") / 8,
        seconds=number_at(arrived, "seconds"),
        tool=str(object_at(answer, "start").get("version", ""))[:40],
        told=f"{again:,} packets were sent again." if again else "",
    )


# Columns of bonnie++ 2.00's CSV (bon_csv.cpp, format 1.98). Rates in KiB a second; plus signs mean too fast to measure.
BONNIE = {"written": 11, "rewritten": 13, "read": 17, "seeks": 19, "created": 26, "deleted": 30}
BONNIE_FIELDS = 21


def from_bonnie(text: str) -> Figures:
    """Figures from bonnie++'s line of CSV: block writes as the rate, the rest in words. Raises Failed."""
    lines = [line.split(",") for line in text.splitlines() if line.startswith(("1.9", "2."))]
    if len(lines) != 1 or len(lines[0]) < BONNIE_FIELDS:
        raise Failed(Message("bonnie++ printed no figures"), text[:200])
    (line,) = lines
    found = {name: parse_count(line[at]) for name, at in BONNIE.items() if at < len(line)}
    if not found["written"]:
        raise Failed(Message("bonnie++ ended too soon to tell a speed. Measure with more data"), text[:200])
    sizes = [f"{rate_text(found[name] * 1024)} {name}" for name in ("rewritten", "read") if found[name]]
    counts = [
        f"{found[name]:,} {what} a second"
        for name, what in (("seeks", "seeks"), ("created", "files made"), ("deleted", "files removed"))
        if found.get(name)
    ]
    return Figures(
        rate=found["written"] * 1024,
        tool=f"bonnie++ {line[1]}"[:40],
        told=f"{', '.join([*sizes, *counts])}. As bonnie++ says it: {','.join(line)}"[:700],
    )


def parse_count(text: str) -> int:
    """A number of bonnie++; 0 if there is none."""
    return int(float(text)) if re.fullmatch(r"[0-9]+([.][0-9]+)?", text) else 0
