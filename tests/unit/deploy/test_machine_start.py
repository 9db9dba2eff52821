"""Starting a virtual machine: ports that stay free until QEMU takes them, and a QEMU that ends at once."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from deploy.image import machine, states
from deploy.image.machine import Machine, MachineError, PortTaken

# As QEMU 7.2 says it.
TAKEN = (
    "qemu-system-x86_64: -netdev user,id=net,hostfwd=tcp:127.0.0.1:{}-:22: Could not set up host forwarding rule "
    "'tcp:127.0.0.1:{}-:22'\n"
)


def test_ports_are_free_different_and_none_that_outgoing_connections_get(monkeypatch):
    first, last = map(int, Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split())
    found = machine.free_ports(50)
    assert len(set(found)) == 50
    assert not [port for port in found if first <= port <= last]
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", found[0]))
        monkeypatch.setattr(machine, "LISTENING", range(found[0], found[0] + 1))
        with pytest.raises(MachineError, match="1 free ports"):
            machine.free_port()


@pytest.fixture
def qemu(tmp_path, monkeypatch):
    """A machine whose QEMU is a script."""
    (tmp_path / "bin").mkdir()

    def make(script: str) -> Machine:
        path = tmp_path / "bin" / "qemu-system-x86_64"
        path.write_text(f"#!/bin/bash\ncd {tmp_path}\n{script}")
        path.chmod(0o755)
        monkeypatch.setenv("PATH", f"{path.parent}:/usr/bin:/bin")
        return Machine("made", tmp_path, tmp_path, machine.new_ports(), "-accel tcg")

    return make


def test_qemu_that_ends_at_once_is_told_with_what_it_said_and_not_waited_for(qemu):
    with pytest.raises(MachineError, match=r"ended with 1: .*No space left"):
        qemu("echo No space left on device >&2; exit 1").spawn()


def test_port_that_another_program_took_meanwhile_is_replaced(qemu, tmp_path):
    made = qemu(
        f'if [ ! -e once ]; then touch once; echo "{TAKEN.format(1, 1).strip()}" >&2; exit 1; fi\ntouch '
        "qmp.sock; sleep 60"
    )
    before = dict(made.ports)
    states.spawn_on_free_ports(made)
    try:
        assert (tmp_path / "once").exists()
        assert made.running()
        assert made.ports.keys() == before.keys()
        assert made.ports != before
    finally:
        made.cut_power()


def test_ports_that_are_taken_again_and_again_end_with_what_qemu_said(qemu, tmp_path):
    made = qemu(f'echo x >> tries; echo "{TAKEN.format(1, 1).strip()}" >&2; exit 1')
    with pytest.raises(PortTaken, match="host forwarding rule"):
        states.spawn_on_free_ports(made)
    assert (tmp_path / "tries").read_text().count("x") == states.ATTEMPTS
