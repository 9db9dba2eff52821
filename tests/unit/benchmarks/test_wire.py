"""The port for a minute: only who has the key is served, within bounds; and the script that asks it."""

from __future__ import annotations

import argparse
import socket
import sys
import threading
from contextlib import closing

import pytest

from appliance import command
from appliance.benchmarks import wire, wire_listener
from appliance.errors import Failed, Refused
from appliance.system import paths
from tests.unit.benchmarks.conftest import SCRIPT

KEY = bytes(range(32))


@pytest.fixture
def served(request):
    """Serves in a thread; the port, and a function that waits for the end and tells the bytes."""
    bounds = getattr(request, "param", {})
    listener = wire_listener.listen(0)
    moved: list[int] = []
    thread = threading.Thread(
        target=lambda: moved.append(wire_listener.serve(listener, KEY, **{"seconds": 20, **bounds}))
    )
    thread.start()
    yield listener.getsockname()[1], lambda: (thread.join(30), moved[0])[1]
    listener.shutdown(socket.SHUT_RDWR)  # to close it would wake nobody who waits for a connection
    thread.join(30)
    listener.close()
    assert not thread.is_alive()


def test_script_is_understood_by_python_3_8():
    compile(SCRIPT.read_text(), "larder-client", "exec", dont_inherit=True)
    import ast

    assert ast.parse(SCRIPT.read_text(), feature_version=(3, 8)).body


def test_script_imports_the_standard_library_alone():
    import ast

    names = {
        alias.name
        for node in ast.walk(ast.parse(SCRIPT.read_text()))
        if isinstance(node, ast.Import)
        for alias in node.names
    }
    assert {name.split(".")[0] for name in names} <= sys.stdlib_module_names


@pytest.mark.parametrize("way", [b"S", b"R"])
def test_script_measures_the_wire_both_ways(script, served, way):
    found = script.measure_wire(script.Data(), "127.0.0.1", served[0], KEY.hex(), 0.2, way)
    assert found > 1e5


class LateWire:
    """A connection to a box that needs a second to get ready, and then sends 100 bytes every tenth of a second."""

    def __init__(self) -> None:
        self.now, self.begun = 0.0, False

    def __enter__(self):
        return self

    def __exit__(self, *_error) -> None:
        pass

    def sendall(self, _data: bytes) -> None:
        pass

    def recv(self, _size: int) -> bytes:
        return b"+"

    def recv_into(self, _buffer: bytearray) -> int:
        self.now += 0.1 if self.begun else 1.0
        self.begun = True
        return 100


def test_wire_is_not_called_slow_for_the_time_that_the_box_needs_to_get_ready(script, monkeypatch):
    wire = LateWire()
    monkeypatch.setattr(script.socket, "create_connection", lambda *_args, **_more: wire)
    monkeypatch.setattr(script.time, "perf_counter", lambda: wire.now)
    assert script.measure_wire(script.Data(), "box", 1, KEY.hex(), 2, b"R") == pytest.approx(1000, rel=0.01)


def test_afp_is_measured_in_a_connected_folder_alone(script, tmp_path):
    asked = {"protocol": "afp", "share": "photos"}
    options = argparse.Namespace(folder="")
    with pytest.raises(script.Stop, match="connect the shared folder"):
        script.open_target(options, asked, "box")
    options.folder = str(tmp_path)
    assert isinstance(script.open_target(options, asked, "box"), script.Folder)


def test_wrong_key_moves_nothing(served):
    with closing(socket.create_connection(("127.0.0.1", served[0]), 5)) as one:
        one.sendall(bytes(32) + b"R")
        assert one.recv(1) == b""


@pytest.mark.parametrize("served", [{"most": 3 * 2**20}], indirect=True)
def test_bytes_are_bounded(served):
    port, wait = served
    with closing(socket.create_connection(("127.0.0.1", port), 5)) as one:
        one.sendall(KEY + b"R")
        while one.recv(2**20):
            pass
    assert 3 * 2**20 <= wait() < 5 * 2**20


@pytest.mark.parametrize("served", [{"seconds": 0.3}], indirect=True)
def test_it_ends_without_anybody(served):
    assert served[1]() == 0


def test_who_says_nothing_does_not_keep_others_out(script, served, monkeypatch):
    monkeypatch.setattr(wire_listener, "SECONDS_TO_ASK", 2.0)
    with closing(socket.create_connection(("127.0.0.1", served[0]), 5)):
        assert script.measure_wire(script.Data(), "127.0.0.1", served[0], KEY.hex(), 0.2, b"S") > 0


def test_script_writes_reads_and_removes_in_a_folder_of_its_own(script, tmp_path):
    (tmp_path / "photo").write_text("mine")
    target = script.Folder(str(tmp_path), "larder-client-1")
    target.make()
    asked = {"runs": 2, "size": 3 * 2**20 + 5, "small_files": 4}
    figures: dict[str, list[float]] = {"write": [], "read": [], "small": []}
    script.measure_files(None, target, script.Data(), asked, figures)
    assert [len(figures[name]) for name in ("write", "read", "small")] == [2, 2, 1]
    assert (tmp_path / "larder-client-1/large-1").stat().st_size == asked["size"]
    assert target.clean()
    assert [one.name for one in tmp_path.iterdir()] == ["photo"]


class StandIn:
    """Stands in for the box that the script asks; ``closed``: it is gone once the run has begun."""

    host = "127.0.0.1"

    def __init__(self, script, closed: bool) -> None:
        self.script, self.closed = script, closed
        self.told: list[dict] = []

    def ask(self, what, message):
        if what == "begin":
            return {"token": "t", "protocol": "nfs", "share": "/tank", "size": 1, "runs": 1, "small_files": 1}
        if self.closed:
            raise self.script.Stop("The box does not answer")
        self.told.append(message)
        return {}


@pytest.mark.parametrize("closed", [False, True])
def test_reason_of_a_failure_reaches_user_and_box_in_one_line(script, monkeypatch, closed):
    def fail(*_words):
        raise OSError("nfs_mount: the server\n\tsaid \x1b no")

    box = StandIn(script, closed)
    monkeypatch.setattr(script, "Box", lambda *_words: box)
    monkeypatch.setattr(script, "open_target", fail)
    options = type("Options", (), {"box": "", "fingerprint": "", "insecure": True, "code": "c", "server": ""})
    with pytest.raises(OSError, match="nfs_mount"):
        script.measure(options)
    assert [one["failed"] for one in box.told] == ([] if closed else ["nfs_mount: the server said no"])


def test_slow_hook_makes_the_script_slow_everywhere(script, monkeypatch):
    monkeypatch.setattr(script, "SLOW", 20e6)
    assert script.measure_own(script.Data(), 0.5) < 40e6


def test_data_does_not_compress(script):
    import zlib

    data = b"".join(script.Data().chunks(4 * 2**20))
    assert len(zlib.compress(data)) > len(data) * 0.99


# --- the request ------------------------------------------------------------------------------------------------
@pytest.fixture
def systemd(monkeypatch, tmp_path):
    """systemctl: what it is told, what the state is, and which key lay there when it started."""
    told: dict = {"state": "inactive", "ran": [], "key": "", "error": None}

    def run(argv, **_more):
        told["ran"].append(argv)
        if argv[1] == "start":
            told["key"] = (tmp_path / "wire-key").read_text()
            if told["error"]:
                raise Failed("systemctl ended with status 1", told["error"])
        return command.Result(tuple(argv), 0, f"{told['state']}\n", "", 0.0)

    monkeypatch.setattr(command, "run", run)
    monkeypatch.setattr(paths, "RUN", tmp_path)
    return told


def test_each_opening_has_a_key_of_its_own_that_lies_nowhere_afterwards(systemd, tmp_path):
    first, second = wire.OpenWire().read(), wire.OpenWire().read()
    assert first["port"] == wire_listener.PORT
    assert systemd["key"] == second["key"] != first["key"]
    assert not (tmp_path / "wire-key").exists()
    assert not any(second["key"] in " ".join(argv) for argv in systemd["ran"])


@pytest.mark.parametrize("state", ["active", "activating", "deactivating"])
def test_second_opening_at_once_is_refused(systemd, state):
    systemd["state"] = state
    with pytest.raises(Refused, match="Another computer measures"):
        wire.OpenWire().read()
    assert [argv[1] for argv in systemd["ran"]] == ["is-active"]


def test_port_in_use_is_said(systemd, tmp_path):
    systemd["error"] = "Job for larder-wire.service failed"
    with pytest.raises(Failed, match="Port 5208 could not be opened"):
        wire.OpenWire().read()
    assert not (tmp_path / "wire-key").exists()
