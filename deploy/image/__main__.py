"""The virtual appliance on the command line: ``python3 -m deploy.image start``, and so on. See ``--help``."""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from deploy.image import build, states
from deploy.image.build import say
from deploy.image.machine import RUN, Machine

DEMO_PORTS = {"ssh": 8022, "http": 8080, "https": 8443, "smb": 8445, "nfs": 8049, "iscsi": 8326}
DEMO = RUN / os.environ.get("LARDER_DEMO", "demo")


def demo() -> None:
    """Boot the appliance with persistent disks, print its address, and shut it down at Ctrl-C."""
    began = time.monotonic()
    layer = build.build_system_layer()
    refresh_root(layer)
    say("Starting the appliance. It needs about a minute.")
    appliance = states.boot_machine(DEMO.name, layer, folder=DEMO, ports=DEMO_PORTS)
    # Ctrl-C reaches every process of the terminal. QEMU has its own session and is asked to power off.
    signal.signal(signal.SIGTERM, stop)
    try:
        appliance.wait_ready()
        code = appliance.run("cat", "/run/larder/inventory/setup-code", check=False).strip()
        say(f"Ready after {time.monotonic() - began:.0f} s.")
        print(f"\n  Larder:       {appliance.address}/   (its certificate is self-made: your browser asks once)")
        print(f"  Set-up code:  {code or 'none, it is set up'}")
        print(f"  SMB:          smbclient -p {DEMO_PORTS['smb']} -U NAME //127.0.0.1/SHARE")
        print("\n  Ctrl-C stops it; its disks are kept until make demo-reset.\n", flush=True)
        while appliance.running():
            time.sleep(1)
        say("The appliance has switched itself off.")
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        say("Stopping the appliance.")
    finally:
        appliance.shut_down()


def stop(*_signal: object) -> None:
    """Stop as at Ctrl-C. SIGINT itself may be ignored in a background process of a script."""
    raise KeyboardInterrupt


def refresh_root(layer: Path) -> None:
    """Replace the system disk if its layer has changed: an overlay fits only the layer it was made for."""
    mark = DEMO / "layer"
    DEMO.mkdir(parents=True, exist_ok=True)
    if mark.exists() and mark.read_text() != layer.name:
        say(
            "Larder has changed since the demo last ran: it gets a new system disk and is set up anew; the "
            "data disks are kept."
        )
        (DEMO / "root.qcow2").unlink(missing_ok=True)
    mark.write_text(layer.name)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python3 -m deploy.image", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("build", help="make every layer of the image that is not in the cache")
    verbs.add_parser("demo", help="boot the demo in the foreground")
    verbs.add_parser("demo-reset", help="forget the demo's disks")
    for verb, words, help_text in (
        ("start", (), "boot a machine on new disks"),
        ("warm", (), "restore a booted machine in seconds, on throw-away disks"),
        ("ready", (), "wait until it serves"),
        ("run", ("command...",), "run a command inside"),
        ("push", (), "bring this checkout's code into it"),
        ("pull", ("bay",), "take a disk out, to be put back"),
        ("return", ("bay",), "put it back"),
        ("remove", ("bay",), "take a disk out for good"),
        ("kill", ("bay",), "let a disk die in its bay"),
        ("slow", ("bay", "operations"), "hold a disk to so many operations a second, 0 for no limit"),
        ("insert", ("disk", "gigabytes", "kind"), "plug in a new disk: scsi-hd or nvme"),
        ("insert-bad", ("disk", "megabytes", "unreadable"), "plug in a disk that cannot be read at that MB"),
        ("warn", ("disk", "value"), "set the critical warning of an inserted NVMe disk"),
        ("cut", (), "cut the power"),
        ("on", (), "switch it on again"),
        ("stop", (), "power it off cleanly"),
        ("discard", (), "end it and forget its disks"),
    ):
        sub = verbs.add_parser(verb, help=help_text)
        sub.add_argument("machine")
        for word in words:
            sub.add_argument(word.rstrip("."), nargs="+" if word.endswith("...") else None)
    asked = parser.parse_args()
    if asked.verb == "build":
        print(build.build_system_layer())
    elif asked.verb == "demo":
        demo()
    elif asked.verb == "demo-reset":
        shutil.rmtree(DEMO, ignore_errors=True)
        say("The demo's disks are gone.")
    elif asked.verb in {"start", "warm"}:
        started = (states.boot_machine if asked.verb == "start" else states.restore_machine)(
            asked.machine, build.build_system_layer()
        )
        started.wait_ready()
        print(started.address)
    else:
        act(asked, Machine.find(asked.machine))


def act(asked: argparse.Namespace, target: Machine) -> None:
    """Run one command on a running machine."""
    match asked.verb:
        case "ready":
            target.wait_ready()
        case "run":
            sys.exit(subprocess.run([*target.ssh_argv(), shlex.join(asked.command)]).returncode)
        case "push":
            target.push_code()
        case "pull":
            target.pull(int(asked.bay))
        case "return":
            target.put_back(int(asked.bay))
        case "remove":
            target.remove(int(asked.bay))
        case "kill":
            target.kill(int(asked.bay))
        case "slow":
            target.slow(int(asked.bay), int(asked.operations))
        case "insert":
            target.insert(asked.disk, int(asked.gigabytes) * 10**9, serial=asked.disk.upper(), kind=asked.kind)
        case "insert-bad":
            size, at = int(asked.megabytes) * 10**6 // 512 * 512, int(asked.unreadable) * 10**6
            target.insert(asked.disk, size, serial=asked.disk.upper(), unreadable=at)
        case "warn":
            target.nvme_warning(asked.disk, int(asked.value))
        case "cut":
            target.cut_power()
        case "on":
            target.power_on()
        case "stop":
            target.shut_down()
        case "discard":
            target.discard()


if __name__ == "__main__":
    main()
