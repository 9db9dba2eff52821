"""What the script on the other computer measures, and in which order."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

MIB = 2**20
SIGNALS = [signal.SIGTERM, signal.SIGHUP]


class Pipe:
    """The output of smbclient: pieces, each after some seconds of a clock that only they move."""

    def __init__(self, clock: SimpleNamespace, pieces: list[tuple[float, int]]) -> None:
        self.clock, self.pieces = clock, pieces

    def read1(self, _most: int = -1) -> bytes:
        seconds, size = self.pieces.pop(0) if self.pieces else (0.0, 0)
        self.clock.now += seconds
        return bytes(size)


@pytest.fixture
def clock(script: ModuleType, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    found = SimpleNamespace(now=0.0)
    monkeypatch.setattr(script, "time", SimpleNamespace(perf_counter=lambda: found.now))
    return found


def test_read_over_smb_counts_the_time_until_the_first_byte(script, clock, monkeypatch):
    """smbclient 4.22 hands on nothing until 8 MiB are there: measured from the first byte
    on, 1 MB/s looked like 200."""
    client = script.SmbClient.__new__(script.SmbClient)
    client.name = "larder-client-1"
    monkeypatch.setattr(client, "run", lambda _command: 2.0, raising=False)
    process = SimpleNamespace(stdout=Pipe(clock, [(18.0, MIB)] + [(0.0, MIB)] * 15))
    monkeypatch.setattr(client, "start", lambda *_words, **_streams: process)
    monkeypatch.setattr(client, "finish", lambda: None)
    nothing = SimpleNamespace(brake=lambda _count: None)
    assert client.read(nothing, "large-0", 16 * MIB) == pytest.approx(MIB)


class Target:
    """A shared folder that notes what is done, and is twice as fast while the setting is switched."""

    def __init__(self) -> None:
        self.done: list[Any] = []
        self.on = False

    def reconnect(self) -> None:
        self.done.append(("connect", "", self.on))

    def write(self, _data: object, name: str, _size: int) -> float:
        self.done.append(("write", name, self.on))
        return 2.0 if self.on else 1.0

    def read(self, _data: object, name: str, _size: int) -> float:
        self.done.append(("read", name, self.on))
        return 4.0 if self.on else 2.0

    def small(self, _data: object, names: list[str]) -> float:
        self.done.append(("small", names[0], self.on))
        return float(len(names))


def figures_of(script: ModuleType, runs: int, *, compare: bool) -> tuple[dict[str, Any], Target, list[Any]]:
    target, asked = Target(), []

    def ask(what: str, message: dict[str, Any]) -> dict[str, Any]:
        asked.append((what, message["on"]))
        target.on = message["on"]
        return {}

    figures: dict[str, Any] = {
        name: [] for name in ("write", "read", "small", "changed_write", "changed_read", "changed_small")
    }
    begun = {"token": "t", "size": MIB, "runs": runs, "small_files": 5, "compare": compare}
    script.measure_files(SimpleNamespace(ask=ask), target, None, begun, figures)
    return figures, target, asked


def test_setting_is_switched_in_turns_and_back_at_the_end(script):
    figures, target, asked = figures_of(script, 3, compare=True)
    # Without, with; with, without; without, with: what else changes with time evens out.
    # The box is asked before each part.
    assert [on for _what, on in asked] == [
        on for on in (False, True, True, False, False, True) for _part in range(3)
    ] + [False]
    parts = [(what, on) for what, _name, on in target.done]
    assert parts[:8] == [(what, on) for on in (False, True) for what in ("connect", "write", "read", "small")]
    assert {what for what, _on in asked} == {"setting"}
    assert not target.on
    assert (figures["write"], figures["changed_write"]) == ([1.0] * 3, [2.0] * 3)
    assert (figures["read"], figures["changed_read"]) == ([2.0] * 3, [4.0] * 3)
    assert (figures["small"], figures["changed_small"]) == ([5.0] * 3, [5.0] * 3)
    # No file is written over: that would be faster or slower than a new one.
    written = [name for what, name, _on in target.done if what in {"write", "small"}]
    assert len(set(written)) == len(written) == 12


def test_folder_that_was_connected_before_says_what_it_does_not_show(script, monkeypatch, tmp_path):
    figures: dict[str, Any] = {"notes": [], "write": [], "read": [], "small": []}
    begun = {"token": "t", "size": MIB, "runs": 0, "small_files": 5, "compare": True}
    folder = script.Folder(str(tmp_path), "larder-client-1")
    monkeypatch.setattr(script, "statistics", SimpleNamespace(median=lambda _values: 0.0))
    script.measure_files(SimpleNamespace(ask=lambda *_words: {}), folder, None, begun, figures)
    assert "only new connections use" in figures["notes"][0]


class Library:
    """libnfs: what it was called for, and with which connection."""

    def __init__(self) -> None:
        self.called: list[tuple[str, int]] = []
        self.opened = 0

    def __getattr__(self, name: str) -> Any:
        def call(*words: Any) -> Any:
            if name == "nfs_init_context":
                self.opened += 1
                return self.opened
            if name == "nfs_parse_url_dir":
                assert words[1] == b"nfs://box/tank/films?version=3"
                return SimpleNamespace(contents=SimpleNamespace(server=b"box", path=b"/tank/films"))
            self.called.append((name, words[0].value))
            return 0

        self.__dict__[name] = call  # the script says what it returns
        return call


def test_nfs_connects_anew_so_that_the_setting_counts(script, monkeypatch):
    library = Library()
    monkeypatch.setattr(script.NfsClient, "load", staticmethod(lambda _number: (library, 16)))
    client = script.NfsClient("box", "/tank/films", "version=3", "larder-client-1")
    client.reconnect()
    assert library.called == [("nfs_mount", 1), ("nfs_destroy_context", 1), ("nfs_mount", 2)]


def test_box_has_more_time_to_switch(script, monkeypatch):
    waited = []

    class Connection:
        def __init__(self, _host: str, _port: int, *, timeout: int, context: object) -> None:
            waited.append(timeout)

        def connect(self) -> None:
            raise OSError("refused")

        def close(self) -> None:
            pass

    monkeypatch.setattr(script.http.client, "HTTPSConnection", Connection)
    box = script.Box("https://box", "", True)
    for what in ("begin", "setting"):
        with pytest.raises(script.Stop):
            box.ask(what, {})
    assert waited == [60, 120]


def test_without_a_setting_nothing_is_switched(script):
    figures, _target, asked = figures_of(script, 2, compare=False)
    assert asked == []
    assert (figures["write"], figures["changed_write"], figures["small"]) == ([1.0] * 2, [], [5.0])


# --- what it leaves behind ------------------------------------------------------------------------------------------
@pytest.fixture
def signals() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in SIGNALS}
    for number in SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("signals")
@pytest.mark.parametrize("number", SIGNALS)
def test_closed_terminal_removes_what_was_written_and_ends_the_setting(script, monkeypatch, number):
    """A closed terminal sends SIGHUP, and takes no more text."""
    told, cleaned = [], []

    class Box:
        host = "box"

        def __init__(self, *_words: object) -> None:
            pass

        def ask(self, what: str, message: dict[str, Any]) -> dict[str, Any]:
            told.append((what, message.get("failed")))
            return {"token": "t", "runs": 0, "size": MIB}

    class Closed:
        def write(self, _text: str) -> None:
            raise OSError(5, "Input/output error")

    def closed() -> None:
        monkeypatch.setattr(script.sys, "stdout", Closed())
        os.kill(os.getpid(), number)

    def clean() -> bool:
        os.kill(os.getpid(), number)  # the shell may send it once more
        cleaned.append(True)
        return False

    target = SimpleNamespace(way="", make=closed, clean=clean)
    monkeypatch.setattr(script, "Box", Box)
    monkeypatch.setattr(script, "open_target", lambda *_words: target)
    monkeypatch.setattr(script, "measure_network", lambda *_words: None)
    monkeypatch.setattr(script.statistics, "median", lambda _values: 0.0)
    script.catch_signals()
    options = SimpleNamespace(box="", fingerprint="", insecure=True, code="c", server="", wire_port=0)
    with pytest.raises(SystemExit):
        script.measure(options)
    assert told == [("begin", None), ("finish", "It was stopped on the other computer.")]
    assert cleaned == [True]


@pytest.mark.usefixtures("signals")
def test_nohup_lets_it_go_on_without_a_terminal(script):
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    script.catch_signals()
    assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    assert signal.getsignal(signal.SIGTERM) == script.stop_by_signal


@pytest.mark.parametrize("in_memory", [True, False])
def test_password_is_kept_in_memory_and_removed(script, monkeypatch, tmp_path, in_memory):
    memory, temporary = tmp_path / "shm", tmp_path / "tmp"
    temporary.mkdir()
    if in_memory:
        memory.mkdir()
    monkeypatch.setattr(script, "MEMORY", str(memory))
    monkeypatch.setattr(script.tempfile, "tempdir", str(temporary))
    monkeypatch.setenv("LARDER_PASSWORD", "secret")
    monkeypatch.setattr(script.shutil, "which", lambda _name: "/usr/bin/smbclient")
    monkeypatch.setattr(script.subprocess, "run", lambda *_words, **_more: SimpleNamespace(stdout="Version 4.22"))
    client = script.SmbClient("box", "films", 0, "anna", False, "larder-client-1")
    path = Path(client.argv[-1])
    assert "secret" in path.read_text()
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.parent == (memory if in_memory else temporary)
    monkeypatch.setattr(client, "run", lambda _command: 0.0)
    assert client.clean()
    assert not path.parent.exists()
