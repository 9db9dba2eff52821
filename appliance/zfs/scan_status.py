"""The long work of a pool from the JSON of ``zpool status -t -i``: scans, RAID-Z expansion, removal, trim, initialize.

Field names are those of OpenZFS 2.3 (cmd/zpool/zpool_main.c: ``scan_status_nvlist``, ``raidz_expand_status_nvlist``,
``removal_status_nvlist``, ``vdev_stats_nvlist``). Read tolerantly: what is missing gets its plain default.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from appliance.facts import vdev_state
from appliance.facts.box import LongWork

# ``zpool trim`` and ``zpool initialize`` of a pool leave its cache and spares alone (``zpool_collect_leaves``). A cache
# that ZFS trims for itself, or that it stopped trimming, is nobody's work.
GROUPS = ("vdevs", "logs", "special", "dedup")
ENDS = {"FINISHED": "finished", "COMPLETE": "finished", "CANCELED": "stopped"}
UNDER_WAY = {"running", "paused"}
PER_DISK = {
    "trim": ("trim_state", "trimmed", "to_trim", "trim_time", "trim_errors"),
    "initialize": ("init_state", "initialized", "to_initialize", "init_time", "init_errors"),
}


def parse_time(seconds: object) -> datetime | None:
    """A time since 1970; None for none, and for one beyond any calendar (a foreign pool may say anything)."""
    if not isinstance(seconds, int) or seconds <= 0:
        return None
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError, OSError):
        return None


def parse_number(value: object) -> int:
    return value if isinstance(value, int) else 0


def parse_amount(value: object) -> int:
    """Bytes or a count, within what a database can hold, whatever a foreign pool says."""
    return max(0, min(parse_number(value), 2**63 - 1))


def state_of(word: object, *, paused: bool = False) -> str:
    """A state as ZFS spells it, as one of ours; empty for none and for what nobody knows."""
    if word in {"SCANNING", "ACTIVE"}:
        return "paused" if paused else "running"
    return "paused" if word == "SUSPENDED" else ENDS.get(str(word), "")


def end_time(raw: Mapping[str, Any], state: str) -> datetime | None:
    """When it ended; None while it is under way, whatever an earlier run has left there."""
    return parse_time(raw.get("end_time")) if state in {"finished", "stopped"} else None


def data_leaves(node: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Every disk and file below that holds data of the pool, or its log."""
    for group in GROUPS:
        for child in (node.get(group) or {}).values():
            yield from data_leaves(child) if child.get("vdevs") else iter((child,))


def can_trim(raw: Mapping[str, Any]) -> bool:
    """Whether a disk says that it can be trimmed: ZFS tells its state of trimming of no other."""
    return any(
        leaf.get("trim_notsup") in (0, "0") or ("trim_notsup" not in leaf and "trim_state" in leaf)
        for leaf in data_leaves(raw)
    )


def parse_long_work(raw: Mapping[str, Any]) -> tuple[LongWork, ...]:
    """All of it, under way or ended, as one pool's part of the JSON tells."""
    found = [
        parse_scan(raw.get("scan_stats")),
        *parse_rebuilds(raw.get("scan_stats")),
        parse_expansion(raw.get("raidz_expand_stats")),
        parse_removal(raw.get("removal_stats")),
    ]
    found += [on_disks(kind, raw) for kind in PER_DISK]
    return tuple(work for work in found if work)


def parse_scan(raw: Mapping[str, Any] | None) -> LongWork | None:
    if not raw or not (started := parse_time(raw.get("start_time"))):
        return None
    state = state_of(raw.get("state"), paused=bool(raw.get("scrub_pause")))
    kind = str(raw.get("function", "")).lower()
    if not state or kind not in {"scrub", "resilver"}:
        return None
    return LongWork(
        kind,
        state,
        started,
        end_time(raw, state),
        done=parse_amount(raw.get("issued")),
        # What was freed since it began is counted as skipped (print_scan_scrub_resilver_status).
        total=max(parse_amount(raw.get("to_examine")) - parse_amount(raw.get("skipped")), 0),
        looked=parse_amount(raw.get("examined")),
        errors=parse_amount(raw.get("errors")),
        repaired=parse_amount(raw.get("processed")),
    )


def parse_rebuilds(raw: Mapping[str, Any] | None) -> Iterator[LongWork]:
    """Sequential rebuilds of mirrors (``zpool replace -s``, ``attach -s``), which only somebody at the shell begins."""
    for name, one in ((raw or {}).get("rebuild_stats") or {}).items():
        if state := state_of(one.get("state")):
            yield LongWork(
                "resilver",
                state,
                parse_time(one.get("start_time")),
                end_time(one, state),
                done=parse_amount(one.get("issued")),
                total=parse_amount(one.get("to_scan")),
                looked=parse_amount(one.get("scanned")),
                errors=parse_amount(one.get("errors")),
                repaired=parse_amount(one.get("rebuilt")),
                subject=str(name),
            )


def parse_expansion(raw: Mapping[str, Any] | None) -> LongWork | None:
    if not raw or not (state := state_of(raw.get("state"))):
        return None
    waiting = state == "running" and bool(parse_number(raw.get("waiting_for_resilver")))
    return LongWork(
        "expand",
        "waiting" if waiting else state,
        parse_time(raw.get("start_time")),
        end_time(raw, state),
        done=parse_amount(raw.get("reflowed")),
        total=parse_amount(raw.get("to_reflow")),
        subject=group_name(raw, "expanding_vdev"),
    )


def parse_removal(raw: Mapping[str, Any] | None) -> LongWork | None:
    if not raw or not (state := state_of(raw.get("state"))):
        return None
    return LongWork(
        "remove",
        state,
        parse_time(raw.get("start_time")),
        end_time(raw, state),
        done=parse_amount(raw.get("copied")),
        total=parse_amount(raw.get("to_copy")),
        subject=group_name(raw, "removing_vdev"),
    )


def had_removal(raw: Mapping[str, Any]) -> bool:
    """Whether a group of this pool was removed before, as one pool's part of the JSON tells.

    ``zpool status -j`` leaves out the indirect vdev that such a group becomes. Its table is counted also while another
    removal runs or was cancelled; it is empty where nothing of what the group held was left.
    """
    stats = raw.get("removal_stats") or {}
    return stats.get("state") == "FINISHED" or parse_number(stats.get("mapping_memory")) > 0


def group_name(raw: Mapping[str, Any], number_key: str) -> str:
    """The group it is about as the tree names it: ``raidz1`` with vdev 0 is ``raidz1-0``.

    A group that has been removed has lost its name (``indirect``). A single disk is told by its path.
    """
    name = str(raw.get("name") or "")
    if name in {"indirect", "hole"}:
        return ""
    return f"{name}-{parse_number(raw.get(number_key))}" if re.fullmatch(r"mirror|raidz\d?|draid[^-]*", name) else name


def on_disks(kind: str, raw: Mapping[str, Any]) -> LongWork | None:
    """Work that each disk does for itself, told as one.

    A disk's time is when its state last changed (vdev_trim.c, ``vdev_trim_change_state``): while it runs the
    beginning, afterwards the end. So an ended one has no known beginning. A disk that is away keeps the state that it
    left with, also ACTIVE: nothing goes on there, and the others do not wait for it.
    """
    name, done, total, time, errors = PER_DISK[kind]
    known = [(state_of(leaf.get(name)), leaf) for leaf in data_leaves(raw)]
    known = [
        (state, leaf)
        for state, leaf in known
        if state
        and parse_number(leaf.get(time))
        and not (state in UNDER_WAY and vdev_state.read_state(leaf) in vdev_state.LOST)
    ]
    if not known:
        return None
    active = [leaf for state, leaf in known if state in UNDER_WAY]
    if active:
        began = min(parse_number(leaf.get(time)) for leaf in active)
        # Disks that were ready sooner belong to it as well.
        part = [leaf for state, leaf in known if leaf in active or parse_number(leaf.get(time)) >= began]
        states = {state for state, leaf in known if leaf in active}
        state, started, ended = ("running" if "running" in states else "paused"), parse_time(began), None
    else:
        last = max(parse_number(leaf.get(time)) for _state, leaf in known)
        part = [leaf for _state, leaf in known if last - parse_number(leaf.get(time)) <= SAME_RUN]
        stopped = any(state == "stopped" for state, leaf in known if leaf in part)
        state, started, ended = ("stopped" if stopped else "finished"), None, parse_time(last)
    return LongWork(
        kind,
        state,
        started,
        ended,
        done=parse_amount(sum(parse_amount(leaf.get(done)) for leaf in part)),
        total=parse_amount(sum(parse_amount(leaf.get(total)) for leaf in part)),
        errors=parse_amount(sum(parse_amount(leaf.get(errors)) for leaf in part)),
        subject="" if len(part) == len(known) else disk_names(part),
    )


def disk_names(leaves: Iterable[Mapping[str, Any]]) -> str:
    """The first of these disks by their names, with an ellipsis where there are more."""
    names = [str(leaf.get("name", "")) for leaf in leaves]
    return ", ".join([*names[:MOST_NAMED], *(["…"] if len(names) > MOST_NAMED else [])])


# Disks that ended within so many seconds of the last were trimmed together: a large SSD takes hours at the most.
SAME_RUN = 12 * 3600
MOST_NAMED = 4
