"""A pool's history and events in plain words. The lines here are made up after the recorded ones."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.pools import events, history
from appliance.pools.history import HistoryEntry, describe_entry, kept_lines, parse_entries
from tests.unit.made import recorded_text

TEXT = """History for 'tank':
2026-11-20.23:14:05 zpool create -o ashift=12 tank raidz2 /dev/disk/by-id/ata-A [user 0 (root) on larder:linux]
2026-11-20.23:14:05 [txg:4] create pool version 5000; software version zfs-2.3.9-0-g4c0eb72-dist; uts larder [on larder]
2026-11-20.23:14:06 [txg:5] set tank (21) compression=15 [on larder]
2026-11-20.23:15:00 ioctl snapshot
    input:
        snaps:
            tank@a
2026-11-20.23:15:00 (12ms) zfs snapshot tank@a [user 1000 (anna) on larder:linux]
2026-11-21.01:00:00 zpool scrub tank [user 0 (root) on larder:linux]
2026-11-21.01:00:01 [txg:90] scan setup func=1 mintxg=0 maxtxg=90 [on larder]
2026-11-21.03:00:01 [txg:990] scan done errors=0 [on larder]
2026-11-21.04:00:01 [txg:1990] vdev attach replace vdev=/dev/a for vdev=/dev/b [on larder]

"""


def read() -> list[HistoryEntry]:
    return list(parse_entries(kept_lines(TEXT.splitlines())))


def test_commands_and_what_says_more_are_kept_and_book_keeping_is_not():
    assert [entry.text.split(" ")[0] for entry in read()] == ["zpool", "create", "zfs", "zpool", "scan", "scan", "vdev"]


def test_of_a_recorded_new_pool_only_its_making_is_kept():
    """The 45 lines between say which features were switched on: no rebuilding, no trimming, no expansion."""
    found = list(parse_entries(kept_lines(recorded_text("zpool-history-2.3.9.txt").splitlines())))
    assert [(entry.kind, describe_entry(entry.kind, entry.text), entry.by) for entry in found] == [
        ("noted", "The pool was created.", "larder"),
        ("command", "The pool was created.", "root@larder"),
    ]
    assert found[0].at == datetime(2026, 11, 21, 9, 48, 6, tzinfo=UTC)
    assert found[1].text.endswith(" spare /dev/disk/by-id/ata-WDC_WD30EZRS-11J99B1_WD-WCAWZ0000006")


def test_an_entry_says_when_what_and_by_whom():
    first, _made, snapshot, *_rest = read()
    assert first.at == datetime(2026, 11, 20, 23, 14, 5, tzinfo=UTC)
    assert (first.kind, first.by) == ("command", "root@larder")
    assert first.text == "zpool create -o ashift=12 tank raidz2 /dev/disk/by-id/ata-A"
    assert (snapshot.text, snapshot.by) == ("zfs snapshot tank@a", "anna@larder")
    assert (read()[4].kind, read()[4].by) == ("noted", "larder")


def test_each_says_what_it_means():
    assert [describe_entry(entry.kind, entry.text) for entry in read()] == [
        "The pool was created.",
        "The pool was created.",
        "A snapshot was taken.",
        "A scrub was asked for.",
        "A scrub began.",
        "The scrub or rebuild finished. No errors were left.",
        "A disk was attached or replaced.",
    ]


@pytest.mark.parametrize(
    ("kind", "text", "said"),
    [
        ("command", "zpool scrub -s tank", "asked to stop"),
        ("command", "zpool scrub -p tank", "asked to pause"),
        ("command", "zpool frobnicate tank", "A command was run"),
        ("command", "zpool", "A command was run"),
        ("command", "zfs set comment='an open quote tank", "A setting of a folder"),
        ("noted", "scan setup func=2 mintxg=3 maxtxg=9", "A rebuild began"),
        ("noted", "scan done errors=3", "3 errors were left"),
        ("noted", "trim vdev=/dev/disk/by-id/ata-A-part1 complete", "Trimming a disk finished"),
        ("noted", "raidz vdev expansion started tank vdev 0 new width 5", "Growing a raidz group"),
        ("noted", "open pool version 5000; software version zfs-2.3.9", "The pool was opened"),
        ("noted", "set feature@device_rebuild=enabled", "ZFS noted an internal event"),
        ("noted", "set autotrim=on", "ZFS noted an internal event"),
        ("noted", "something of tomorrow", "ZFS noted an internal event"),
    ],
)
def test_other_lines(kind, text, said):
    assert said in describe_entry(kind, text)


def test_only_the_latest_are_kept():
    lines = [f"2026-11-20.23:14:05 zfs snapshot tank@{at} [user 0 (root) on larder:linux]" for at in range(10_000)]
    found = kept_lines(lines)
    assert len(found) == history.KEPT
    assert "tank@9999 " in found[-1]


@pytest.mark.parametrize(
    "line", [None, 7, [], "", "2026-13-45.99:99:99 zpool scrub tank", "no history", "2026-11-20.23:14:05 "]
)
def test_what_is_no_line_of_history_is_passed_over(line):
    assert list(parse_entries([line])) == []


@given(st.text(max_size=200))
def test_any_text_is_shown_as_text_and_breaks_nothing(text):
    lines = [text, f"2026-11-20.23:14:05 {text}", f"2026-11-20.23:14:05 [txg:1] {text}"]
    for entry in parse_entries(kept_lines(lines)):
        assert describe_entry(entry.kind, entry.text).endswith(".")


def test_it_reads_the_long_form_of_one_pool(commands):
    commands.answers["zpool"] = TEXT
    assert len(history.read_history("tank")) == 7
    assert commands.ran == [["zpool", "history", "-i", "-l", "--", "tank"]]


# --- events ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("kind", "fields", "sentence", "state"),
    [
        ("sysevent.fs.zfs.scrub_finish", {}, "The scrub finished.", "healthy"),
        (
            "ereport.fs.zfs.checksum",
            {"ZEVENT_VDEV_PATH": "/dev/disk/by-id/ata-A_1-part1"},
            "A (serial 1) gave back something other than what was written.",
            "attention",
        ),
        ("ereport.fs.zfs.vdev.open_failed", {}, "A disk could not be opened.", "attention"),
        (
            "resource.fs.zfs.statechange",
            {"ZEVENT_VDEV_STATE_STR": "FAULTED", "ZEVENT_VDEV_PATH": "/dev/sda1"},
            "sda1 is failed now.",
            "attention",
        ),
        ("resource.fs.zfs.statechange", {"ZEVENT_VDEV_STATE_STR": "ONLINE"}, "A disk is healthy now.", "healthy"),
        ("resource.fs.zfs.statechange", {}, "A disk is in another state now.", "attention"),
        ("resource.fs.zfs.removed", {}, "A disk was pulled out.", "attention"),
        ("something new", {}, "ZFS reported an event.", "unknown"),
        ("", {}, "ZFS reported an event.", "unknown"),
    ],
)
def test_an_event_in_words(kind, fields, sentence, state):
    found = events.describe_event(kind, fields)
    assert (found.sentence, found.state) == (sentence, state)


def test_each_event_of_zfs_has_words_or_is_left_out():
    """Listed from the headers of 2.3.9 (sys/fm/fs/zfs.h, sys/sysevent/eventdefs.h), without
    those that it never sends."""
    kinds = recorded_text("zfs-event-classes-2.3.9.txt").split()
    assert "sysevent.fs.zfs.scrub_start" in kinds
    assert [
        kind
        for kind in kinds
        if not kind.endswith(events.QUIET) and events.describe_event(kind, {}).sentence == "ZFS reported an event."
    ] == []


def test_the_counts_behind_an_event():
    fields = {"ZEVENT_VDEV_READ_ERRORS": "2", "ZEVENT_VDEV_WRITE_ERRORS": "0", "ZEVENT_VDEV_CKSUM_ERRORS": "9"}
    assert events.describe_event("ereport.fs.zfs.io", fields).detail == "2 read errors, 9 checksum errors"


def test_a_disk_named_like_a_placeholder_is_only_a_name():
    assert (
        "{state}" in events.describe_event("resource.fs.zfs.statechange", {"ZEVENT_VDEV_PATH": "/dev/{state}"}).sentence
    )
