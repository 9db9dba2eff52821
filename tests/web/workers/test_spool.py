from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from django.db import DatabaseError

from appliance.system import paths
from web import row_retention
from web.inventory.models import Event, Source
from workers import spool

RECEIVED = "2026-11-20T22:52:26Z"


def drop(name: str = "1.json", **changes: Any) -> Path:
    """An event as the hooks write it."""
    fields = {"ZEVENT_CLASS": "sysevent.fs.zfs.vdev_remove", "ZEVENT_POOL": "tank"}
    path = paths.SPOOL / name
    path.write_text(json.dumps({"source": "zed", "received": RECEIVED, "fields": fields, **changes}))
    return path


def aside() -> list[str]:
    folder = paths.SPOOL.parent / "aside"
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def test_an_event_becomes_a_row_and_its_file_goes():
    path = drop()
    assert len(spool.ingest_events()) == 1
    row = Event.objects.get()
    assert (row.source, row.kind, row.subject) == ("zed", "sysevent.fs.zfs.vdev_remove", "tank")
    assert row.received.isoformat() == "2026-11-20T22:52:26+00:00"
    assert not path.exists()


def test_an_event_of_smartd_is_about_its_device():
    drop(source="smartd", fields={"SMARTD_FAILTYPE": "Health", "SMARTD_DEVICE": "/dev/sda", "SMARTD_MESSAGE": "FAILED"})
    spool.ingest_events()
    row = Event.objects.get()
    assert (row.kind, row.subject, row.fields["SMARTD_MESSAGE"]) == ("Health", "/dev/sda", "FAILED")


def test_a_file_that_could_not_be_removed_is_still_one_event():
    drop()
    spool.ingest_events()
    drop()
    assert spool.ingest_events() == []
    assert Event.objects.count() == 1
    assert not list(paths.SPOOL.iterdir())


def test_an_event_moves_the_pages_that_show_it():
    drop()
    spool.ingest_events()
    first = Source.objects.get(name="events").version
    spool.ingest_events()
    assert Source.objects.get(name="events").version == first
    drop("2.json")
    spool.ingest_events()
    assert Source.objects.get(name="events").version == first + 1


def test_an_empty_or_missing_spool_is_no_fault():
    assert spool.ingest_events() == []
    paths.SPOOL.rmdir()
    assert spool.ingest_events() == []


SPOILED = {
    "huge": b'{"source":"zed","fields":{"a":"' + b"x" * 70_000 + b'"}}',
    "half": b'{"source":"zed","fiel',
    "empty": b"",
    "not json": b"hello",
    "not text": b"\xff\xfe\x00",
    "nested without end": b"[" * 60_000,
    "half a letter": b'{"source":"zed","fields":{"ZEVENT_CLASS":"\\ud800"}}',
    "a list": b"[]",
    "a number": b"1" * 5000,
    "of nobody": b'{"source":"eve","fields":{}}',
    "without fields": b'{"source":"zed"}',
    "fields are a list": b'{"source":"zed","fields":[]}',
}


@pytest.mark.parametrize("content", SPOILED.values(), ids=SPOILED)
def test_what_is_no_event_is_put_aside_and_the_others_are_taken_in(content):
    drop("1.json")
    (paths.SPOOL / "2.json").write_bytes(content)
    drop("3.json")
    assert len(spool.ingest_events()) == 2
    assert aside() == ["2.json"]
    assert not list(paths.SPOOL.iterdir())


def test_a_link_is_removed_and_never_followed(tmp_path):
    secret = tmp_path / "secret.json"
    secret.write_text(json.dumps({"source": "zed", "fields": {"ZEVENT_CLASS": "canary"}}))
    (paths.SPOOL / "1.json").symlink_to(secret)
    (paths.SPOOL / "2.json").symlink_to("/dev/zero")
    (paths.SPOOL / "3.json").symlink_to("nowhere")
    drop("4.json")
    assert len(spool.ingest_events()) == 1
    assert not Event.objects.filter(kind="canary").exists()
    assert secret.exists()
    assert (aside(), list(paths.SPOOL.iterdir())) == ([], [])


def test_a_pipe_or_a_folder_holds_nobody_up():
    os.mkfifo(paths.SPOOL / "1.json")
    (paths.SPOOL / "2.json").mkdir()
    drop("3.json")
    assert len(spool.ingest_events()) == 1
    assert aside() == ["1.json", "2.json"]


def test_what_is_still_being_written_is_left_alone():
    (paths.SPOOL / ".1.new").write_text("{")
    assert spool.ingest_events() == []
    assert [path.name for path in paths.SPOOL.iterdir()] == [".1.new"]


def test_only_a_few_spoiled_files_are_kept_to_look_at():
    for number in range(60):
        (paths.SPOOL / f"{number:03}.json").write_text("{")
    spool.ingest_events()
    assert len(aside()) == spool.MOST_ASIDE
    assert not list(paths.SPOOL.iterdir())


def test_a_flood_is_taken_in_by_and_by_the_oldest_first():
    for number in range(spool.AT_ONCE + 5):
        drop(f"{number:04}.json")
    assert len(spool.ingest_events()) == spool.AT_ONCE
    assert sorted(path.name for path in paths.SPOOL.iterdir())[0] == f"{spool.AT_ONCE:04}.json"
    assert len(spool.ingest_events()) == 5


def test_only_the_newest_events_are_kept(monkeypatch):
    monkeypatch.setattr(row_retention, "EVENTS", 3)
    for number in range(6):
        drop(f"{number}.json", received=f"2026-11-20T22:52:2{number}Z")
    spool.ingest_events()
    assert [row.file for row in Event.objects.all()] == ["5.json", "4.json", "3.json"]


def test_while_the_database_cannot_be_written_events_wait_in_the_spool(monkeypatch):
    path = drop()

    def fail(**_more: Any) -> None:
        raise DatabaseError("disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(Event.objects, "get_or_create", fail)
        with pytest.raises(DatabaseError):
            spool.ingest_events()
    assert path.exists()
    assert len(spool.ingest_events()) == 1


def test_long_and_many_values_are_cut(monkeypatch):
    drop(
        fields={
            "ZEVENT_CLASS": "x" * 5000,
            "ZEVENT_POOL": "y" * 5000,
            **{f"f{number}": number for number in range(500)},
        }
    )
    spool.ingest_events()
    row = Event.objects.get()
    assert (len(row.kind), len(row.subject), len(row.fields)) == (120, 255, 200)
    assert len(row.fields["ZEVENT_CLASS"]) == 4000


@pytest.mark.parametrize("received", ["", "yesterday", None, 5, "2026-13-45T00:00:00Z"])
def test_an_event_without_a_time_gets_the_time_of_its_arrival(received):
    drop(received=received)
    assert len(spool.ingest_events()) == 1
