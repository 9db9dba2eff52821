"""Start machines: boot them, or restore the saved state of a machine that was booted before."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

from deploy.image.build import CACHE, lock_layer, say
from deploy.image.disk_models import DISKS
from deploy.image.machine import GIB, RUN, Machine, PortTaken, new_ports, wait_for

ATTEMPTS = 3


def accelerator() -> str:
    """``kvm`` if a kernel boots with it, otherwise ``tcg``. Tested once on a computer, then cached."""
    known = CACHE / "processor"
    if known.exists():
        return known.read_text()
    # Page tables of five levels make each miss of an emulated processor dearer, and no home server has them.
    chosen = "-accel tcg,thread=multi,tb-size=1024 -cpu max,la57=off"
    kernels = sorted(CACHE.glob("system-*/vmlinuz"))
    if kernels and os.access("/dev/kvm", os.W_OK):
        argv = [
            "qemu-system-x86_64",
            "-accel",
            "kvm",
            "-cpu",
            "host",
            "-m",
            "512",
            "-nodefaults",
            "-display",
            "none",
            "-no-reboot",
        ]
        argv += ["-kernel", str(kernels[-1]), "-append", "console=ttyS0 panic=-1", "-serial", "stdio"]
        with contextlib.suppress(subprocess.TimeoutExpired):
            tried = subprocess.run(argv, capture_output=True, stdin=subprocess.DEVNULL, timeout=20)
            if b"Unable to mount root" in tried.stdout or b"Kernel panic" in tried.stdout:
                chosen = "-accel kvm -cpu host"
    say(f"Virtual machines run with {'KVM' if 'kvm' in chosen else 'plain emulation (KVM does not work here)'}.")
    known.write_text(chosen)
    return chosen


def create_overlay(backing: Path, target: Path) -> None:
    subprocess.run(
        ["qemu-img", "create", "-q", "-f", "qcow2", "-F", "qcow2", "-b", str(backing), str(target)], check=True
    )


def fresh_folder(name: str) -> Path:
    folder = RUN / name
    with contextlib.suppress(FileNotFoundError, json.JSONDecodeError):
        Machine.find(name).cut_power()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def boot_machine(name: str, layer: Path, *, folder: Path | None = None, ports: dict[str, int] | None = None) -> Machine:
    """Boot the layer's image. The overlays are new, or persistent in ``folder``."""
    home = folder or fresh_folder(name)
    home.mkdir(parents=True, exist_ok=True)
    if not (home / "root.qcow2").exists():
        create_overlay(layer / "root.qcow2", home / "root.qcow2")
    for bay, disk in enumerate(DISKS, 1):
        if not (home / f"disk{bay}.qcow2").exists():
            subprocess.run(
                ["qemu-img", "create", "-q", "-f", "qcow2", str(home / f"disk{bay}.qcow2"), str(disk.size)], check=True
            )
    (home / "qmp.sock").unlink(missing_ok=True)
    machine = Machine(name, home, layer, ports or new_ports(), accelerator())
    if ports:
        machine.spawn()
    else:
        spawn_on_free_ports(machine)
    return machine


def spawn_on_free_ports(machine: Machine, *extra: str) -> None:
    """Start it, on other ports where another program was quicker to take one."""
    for _again in range(ATTEMPTS - 1):
        with contextlib.suppress(PortTaken):
            machine.spawn(*extra)
            return
        (machine.folder / "qemu.log").unlink()
        machine.ports = new_ports()
    machine.spawn(*extra)


def warm_state(layer: Path) -> Path:
    """The saved state of a booted machine of this layer; made once, in about a minute."""
    state = layer / "warm"
    with lock_layer("warm"):
        if not (state / "done").exists():
            save_warm_state(layer, state)
    return state


# Exit status 0 once the collectors have read the disks and their temperatures.
FIRST_FACTS = """
import sqlite3
rows = sqlite3.connect("file:/run/larder/inventory/inventory.sqlite3?mode=ro", uri=True)
raise SystemExit(not rows.execute("select count(*) from inventory_diskrow where temperature is not null").fetchone()[0])
"""


def save_warm_state(layer: Path, state: Path) -> None:
    """Boot a machine, wait until it serves and has read its first facts, and save its disks and memory."""
    shutil.rmtree(state, ignore_errors=True)
    say("Booting the appliance once to save its warm state.")
    machine = boot_machine("warming", layer)
    try:
        machine.wait_ready()
        wait_for("the first facts", lambda: machine.run("python3", "-c", FIRST_FACTS) == "", timeout=240, every=1)
        save_machine(machine, state)
    finally:
        machine.discard()


def save_machine(machine: Machine, state: Path) -> None:
    """Stop a machine and save its disks and memory as they are now."""
    machine.run("sync")
    machine.close_ssh()
    state.mkdir()
    machine.qmp("stop")
    machine.qmp("migrate-set-parameters", **{"max-bandwidth": 64 * GIB})
    machine.qmp("migrate", uri=f"exec:cat > {shlex.quote(str(state / 'memory'))}")
    wait_for("the memory to be saved", lambda: machine.qmp("query-migrate").get("status") == "completed", timeout=120)
    machine.qmp("quit")
    wait_for("QEMU to end", lambda: not machine.running(), timeout=20)
    for file in machine.folder.glob("*.qcow2"):
        shutil.move(file, state / file.name)
    (state / "done").touch()


def prepared_state(layer: Path, name: str, under: Path, prepare: Callable[[Machine], None]) -> Path:
    """The saved state of a machine that was restored from ``under`` and then prepared; made once."""
    state = layer / name
    with lock_layer(name):
        if not (state / "done").exists():
            shutil.rmtree(state, ignore_errors=True)
            say(f"Preparing the appliance once for tests: {name}.")
            machine = restore_machine(f"making-{name}", layer, under)
            try:
                prepare(machine)
                save_machine(machine, state)
            finally:
                machine.discard()
    return state


def restore_machine(name: str, layer: Path, state: Path | None = None) -> Machine:
    """Restore a booted machine within seconds, with temporary overlays over a saved state (default: the warm one)."""
    state = state or warm_state(layer)
    folder = fresh_folder(name)
    for file in state.glob("*.qcow2"):
        create_overlay(file, folder / file.name)
    machine = Machine(name, folder, layer, new_ports(), accelerator())
    spawn_on_free_ports(machine, "-incoming", f"exec:cat {shlex.quote(str(state / 'memory'))}")
    wait_for(
        "the memory to be read",
        lambda: machine.qmp("query-status")["status"] in {"running", "paused", "postmigrate"},
        timeout=60,
    )
    machine.qmp("cont")
    wait_for("ssh", lambda: machine.run("true", timeout=30) == "", timeout=60)
    machine.set_clock()
    return machine


@contextlib.contextmanager
def borrow_machine(name: str, layer: Path, state: Path | None = None) -> Iterator[Machine]:
    """A restored machine for a group of tests, deleted afterwards."""
    machine = restore_machine(name, layer, state)
    try:
        yield machine
    finally:
        machine.discard()
