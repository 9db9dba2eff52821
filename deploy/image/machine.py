"""One virtual appliance: start it, reach inside, do to its disks what life does to disks, stop it.

QEMU runs the system layer's root image with six thin disks, one AHCI controller each so that any of them can be
pulled alone. KVM is used where a probe boot shows that it works, plain emulation (TCG) where it does not.
A *warm* machine is a booted one whose memory was saved once; restoring it takes seconds and every restore gets
its own throw-away overlays over the saved disks.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import shlex
import shutil
import signal
import socket
import ssl
import subprocess
import time
import urllib.request
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from deploy.image.build import CACHE, CHECKOUT, SHIPPED
from deploy.image.disk_models import DISKS, DiskModel, failing_drive

MIB, GIB = 2**20, 2**30
RUN = CACHE / "run"
MEMORY = "4096"
CPUS = "2"
LISTENING = range(20000, 32768)
PORTS = {"ssh": 22, "http": 80, "https": 443, "smb": 445, "nfs": 2049, "iscsi": 3260}


class MachineError(RuntimeError):
    """The machine did not do what was asked; the text has its answer."""


class PortTaken(MachineError):
    """Somebody else listens on a port that was free a moment ago."""


# A wait ends with what it waits for; its limit is there for what never comes.
# Two emulated machines on two processors stand still for seconds, so the limits of the tests are taken this many times.
PATIENCE = 2.5
USUAL_REST = 0.3  # seconds between two looks
LONGEST_REST = 5.0  # seconds that a look which takes long is followed by


def wait_for(what: str, ready: Callable[[], object], *, timeout: float = 180, every: float = USUAL_REST) -> Any:
    """Return the first true answer of ``ready``; MachineError with ``what`` after PATIENCE times ``timeout`` seconds.

    Looks take a third of the time at most, whatever each costs: an emulated box has something better to do than to be
    asked. Who asks more often than usual waits for a moment that passes, and is not slowed down.
    """
    timeout *= PATIENCE
    end = time.monotonic() + timeout
    last: object = None
    while (began := time.monotonic()) < end:
        try:
            last = ready()
            if last:
                return last
        except (OSError, MachineError, subprocess.SubprocessError) as error:
            last = error
        took = time.monotonic() - began
        time.sleep(every if every < USUAL_REST else max(every, min(2 * took, LONGEST_REST)))
    raise MachineError(f"waited {timeout:.0f} s for {what}; last: {last!r}")


def free_ports(number: int) -> list[int]:
    """So many ports that nothing listens on, each another. None is of those that the kernel gives to outgoing
    connections (ip(7), ``ip_local_port_range``), which might take it before QEMU does."""
    found: list[int] = []
    for port in random.sample(LISTENING, len(LISTENING)):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            found.append(port)
        if len(found) == number:
            return found
    raise MachineError(f"{number} free ports were not found")


def free_port() -> int:
    return free_ports(1)[0]


def new_ports() -> dict[str, int]:
    """A free port for each that leads into a machine."""
    return dict(zip(PORTS, free_ports(len(PORTS)), strict=True))


@dataclass
class Machine:
    """A running appliance. ``folder`` holds its overlays, sockets and console log."""

    name: str
    folder: Path
    layer: Path
    ports: dict[str, int]
    accel: str
    pid: int = 0
    disks: tuple[DiskModel, ...] = DISKS
    plugged: list[str] = field(default_factory=list)

    # --- life -----------------------------------------------------------------------------------------------

    @classmethod
    def find(cls, name: str) -> Machine:
        """The running machine of that name, for a second process."""
        facts = json.loads((RUN / name / "machine.json").read_text())
        facts["disks"] = tuple(DiskModel(**disk) for disk in facts["disks"])
        return cls(**{**facts, "folder": Path(facts["folder"]), "layer": Path(facts["layer"])})

    def remember(self) -> None:
        (self.folder / "machine.json").write_text(
            json.dumps({**asdict(self), "folder": str(self.folder), "layer": str(self.layer)})
        )

    def spawn(self, *extra: str) -> None:
        """Start QEMU on ``root.qcow2`` and ``disk*.qcow2`` here. Raises MachineError with what it said, PortTaken."""
        forwards = ",".join(f"hostfwd=tcp:127.0.0.1:{self.ports[name]}-:{inside}" for name, inside in PORTS.items())
        argv = ["qemu-system-x86_64", "-M", "pc", *self.accel.split(), "-m", MEMORY, "-smp", CPUS]
        argv += ["-nodefaults", "-display", "none", "-no-user-config", "-rtc", "base=utc"]
        argv += ["-kernel", str(self.layer / "vmlinuz"), "-initrd", str(self.layer / "initrd.img")]
        # Emulated processors sometimes crash while the kernel patches its own code at boot (an int3 oops): try again.
        kernel = "root=/dev/vda rw console=ttyS0 quiet net.ifnames=0 mitigations=off random.trust_cpu=on panic=1"
        if "tcg" in self.accel:
            # QEMU keeps translated code by its address. A program that lies somewhere else each time it is started is
            # translated anew each time: five times as long for a small one.
            kernel += " norandmaps"
        argv += ["-append", kernel]
        argv += ["-drive", f"if=none,id=root,file={self.folder}/root.qcow2,cache=unsafe,discard=unmap"]
        argv += ["-device", "virtio-blk-pci,drive=root,serial=LARDER-SYSTEM"]
        argv += ["-netdev", f"user,id=net,{forwards}", "-device", "virtio-net-pci,netdev=net,romfile="]
        argv += ["-device", "virtio-rng-pci", "-device", "virtio-scsi-pci,id=vs"]
        argv += ["-chardev", f"file,id=console,path={self.folder}/console.log,append=on", "-serial", "chardev:console"]
        argv += ["-qmp", f"unix:{self.folder}/qmp.sock,server=on,wait=off"]
        for bay, disk in enumerate(self.disks, 1):
            argv += ["-drive", f"if=none,id=d{bay},file={self.folder}/disk{bay}.qcow2,cache=unsafe,discard=unmap"]
            argv += ["-device", f"ich9-ahci,id=ahci{bay}", "-device", self.drive_device(bay, disk)]
        with (self.folder / "qemu.log").open("ab") as log:
            process = subprocess.Popen(
                [*argv, *extra], stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        self.pid = process.pid
        self.remember()
        wait_for(
            "QEMU's control socket",
            lambda: process.poll() is not None or (self.folder / "qmp.sock").exists(),
            timeout=60,
        )
        if process.poll() is not None:
            said = (self.folder / "qemu.log").read_text(errors="replace")[-2000:]
            fault = PortTaken if "host forwarding rule" in said else MachineError
            raise fault(f"QEMU ended with {process.returncode}: {said}")

    @staticmethod
    def drive_device(bay: int, disk: DiskModel) -> str:
        return (
            f"ide-hd,id=disk{bay},bus=ahci{bay}.0,drive=d{bay},serial={disk.serial},model={disk.model},"
            f"rotation_rate={disk.rpm},logical_block_size=512,physical_block_size={disk.physical}"
        )

    def running(self) -> bool:
        try:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self.pid, os.WNOHANG)
            os.kill(self.pid, 0)
        except (ProcessLookupError, OverflowError):
            return False
        return True

    def cut_power(self) -> None:
        """Stop the machine as a power cut does: at once, without writing anything back."""
        self.close_ssh()
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        wait_for("QEMU to end", lambda: not self.running(), timeout=20, every=0.05)
        (self.folder / "qmp.sock").unlink(missing_ok=True)

    def power_on(self) -> None:
        """Boot again with the same disks after a power cut or a stop."""
        self.spawn()
        self.wait_ready()

    def reboot(self) -> None:
        """Restart the guest with its own command, and wait until it serves again."""
        before = self.run("cat", "/proc/sys/kernel/random/boot_id")
        self.run("systemctl", "reboot", "--no-block", check=False)  # sshd may end before it has answered
        self.close_ssh()
        wait_for(
            "another boot",
            lambda: self.run("cat", "/proc/sys/kernel/random/boot_id", timeout=30) != before,
            timeout=300,
            every=1,
        )
        self.wait_ready()

    def shut_down(self, *, timeout: float = 90) -> None:
        """Press the power button; cut the power if the guest does not power off."""
        with contextlib.suppress(MachineError, subprocess.SubprocessError):
            self.run("systemctl", "poweroff", "--no-block")
            self.close_ssh()
            with contextlib.suppress(MachineError):
                wait_for("the appliance to power off", lambda: not self.running(), timeout=timeout)
        self.cut_power()

    def discard(self) -> None:
        """Stop the machine and delete its overlays."""
        self.cut_power()
        shutil.rmtree(self.folder, ignore_errors=True)

    # --- reaching inside ------------------------------------------------------------------------------------

    @property
    def address(self) -> str:
        return f"https://localhost:{self.ports['https']}"

    def ssh_argv(self) -> list[str]:
        options = [
            "BatchMode=yes",
            "StrictHostKeyChecking=no",
            "UserKnownHostsFile=/dev/null",
            "LogLevel=ERROR",
            "ConnectTimeout=20",
        ]
        options += ["ControlMaster=auto", f"ControlPath={self.folder}/ssh", "ControlPersist=600"]
        argv = ["ssh", "-i", str(self.layer / "id_ed25519"), "-p", str(self.ports["ssh"])]
        return [*argv, *(word for option in options for word in ("-o", option)), "root@127.0.0.1"]

    def close_ssh(self) -> None:
        subprocess.run([*self.ssh_argv()[:-1], "-O", "exit", "root@127.0.0.1"], capture_output=True)

    def run(self, *argv: str, given: str | bytes | None = None, timeout: float = 300, check: bool = True) -> str:
        """Run a command inside as root and return its standard output. Raises MachineError on failure."""
        data = given.encode() if isinstance(given, str) else given
        done = subprocess.run(
            [*self.ssh_argv(), shlex.join(argv)],
            input=data if data is not None else b"",
            capture_output=True,
            timeout=timeout,
        )
        if check and done.returncode:
            raise MachineError(
                f"{shlex.join(argv)}: status {done.returncode}: "
                f"{done.stderr.decode(errors='replace')[-2000:]}{done.stdout.decode(errors='replace')[-2000:]}"
            )
        return done.stdout.decode(errors="replace")

    def shell(self, script: str, *, timeout: float = 300, check: bool = True) -> str:
        """Run a shell script inside, for tests that need a pipe or a loop."""
        return self.run("sh", "-ceu", script, timeout=timeout, check=check)

    def put(self, path: str, content: str | bytes, *, mode: str = "0644") -> None:
        """Write a file inside."""
        self.run(
            "sh", "-ceu", 'mkdir -p "$(dirname "$1")"; cat > "$1"; chmod "$2" "$1"', "sh", path, mode, given=content
        )

    def push_code(self) -> None:
        """Copy the checkout's code into the machine, install it with ``deploy/install`` and restart the services."""
        self.run(f"{self.bring_code()}/deploy/install", "code", timeout=600)

    def bring_code(self) -> str:
        """Copy the checkout's code into the machine. Returns the folder."""
        names = [name for name in SHIPPED if (CHECKOUT / name).exists()]
        packed = subprocess.run(
            ["tar", "-C", str(CHECKOUT), "--exclude=__pycache__", "-cz", *names], check=True, capture_output=True
        ).stdout
        self.run("sh", "-ceu", "rm -rf /tmp/larder; mkdir /tmp/larder; tar -xz -C /tmp/larder", given=packed)
        return "/tmp/larder"

    def wait_ready(self, *, timeout: float = 600) -> None:
        """Wait until ssh answers and every unit of Larder is up and serves a page."""
        wait_for("ssh", lambda: self.run("true", timeout=25) == "", timeout=timeout, every=1)
        wait_for("the web page", self.serves, timeout=timeout, every=1)

    def serves(self) -> bool:
        """Whether a page can be fetched through TLS, nginx and the web process, as by a browser."""
        trust = ssl.create_default_context()
        trust.check_hostname, trust.verify_mode = False, ssl.CERT_NONE  # self-signed at the first boot
        with urllib.request.urlopen(f"{self.address}/ready/", context=trust, timeout=60) as answer:
            return bool(answer.status == 200)

    def set_clock(self) -> None:
        """Set the clock of a restored guest, which still has the time at which it was saved."""
        self.run("date", "-s", f"@{time.time():.0f}")

    # --- disk faults ----------------------------------------------------------------------------------------

    def qmp(self, command: str, **arguments: object) -> Any:
        """Run a QMP command and return its result. Raises MachineError with QEMU's error."""
        with socket.socket(socket.AF_UNIX) as control:
            control.settimeout(120)
            control.connect(str(self.folder / "qmp.sock"))
            lines = control.makefile("rw")
            lines.readline()
            for request in ({"execute": "qmp_capabilities"}, {"execute": command, "arguments": arguments}):
                lines.write(json.dumps(request) + "\n")
                lines.flush()
                while "event" in (answer := json.loads(lines.readline())):
                    pass
            if "error" in answer:
                raise MachineError(f"{command}: {answer['error']['desc']}")
            return answer["return"]

    def monitor(self, line: str) -> str:
        """Run a command of QEMU's human monitor. Returns its output."""
        return str(self.qmp("human-monitor-command", **{"command-line": line}))

    def device_of(self, serial: str) -> str:
        """The kernel's name (``sda``) of the disk with that serial, now."""
        for row in json.loads(self.run("lsblk", "-J", "-d", "-o", "NAME,SERIAL"))["blockdevices"]:
            if row["serial"] == serial:
                return str(row["name"])
        raise MachineError(f"no disk with serial {serial} in the machine")

    def pull(self, bay: int) -> str:
        """Pull the disk out of its bay, for ``put_back``. Returns its SCSI host."""
        name = self.device_of(self.disks[bay - 1].serial)
        host = self.shell(f"basename $(readlink -f /sys/block/{name}/device/../..)").strip()
        self.shell(f"echo 1 > /sys/block/{name}/device/delete")
        (self.folder / f"bay{bay}").write_text(host)
        return host

    def put_back(self, bay: int) -> None:
        """Put the pulled disk back into its bay."""
        host = (self.folder / f"bay{bay}").read_text()
        self.shell(f"echo '- - -' > /sys/class/scsi_host/{host}/scan")

    def remove(self, bay: int) -> None:
        """Take the disk and its controller out for good."""
        self.qmp("device_del", id=f"ahci{bay}")

    def kill(self, bay: int) -> None:
        """Make the disk fail in its slot: it stays visible, and every request fails."""
        self.monitor(f"drive_del d{bay}")

    def slow(self, bay: int, operations: int) -> None:
        """Limit the disk to ``operations`` a second; 0 removes the limit."""
        self.monitor(f"block_set_io_throttle d{bay} 0 0 0 {operations} 0 0")

    def insert(
        self,
        name: str,
        size: int,
        *,
        serial: str,
        kind: str = "scsi-hd",
        model: str = "",
        unreadable: int | None = None,
    ) -> None:
        """Plug a disk in, live: ``scsi-hd``, ``nvme``, or ``usb`` for one in a case of its own; the one of that name,
        where it was unplugged before. ``size`` in bytes. The sector at ``unreadable`` takes writes and fails reads."""
        form = "raw" if unreadable is not None else "qcow2"
        path = self.folder / f"{name}.{form}"
        if not path.exists():
            subprocess.run(["qemu-img", "create", "-q", "-f", form, str(path), str(size)], check=True)
        drive = f"file={path}" if unreadable is None else failing_drive(path, unreadable)

        def added() -> bool:
            self.monitor(f"drive_add 0 if=none,id=drive-{name},{drive},cache=unsafe")
            return f"drive-{name}" in self.monitor("info block")

        # The name is taken for a moment longer where a disk was unplugged just now.
        wait_for(f"the image of {name} to be opened", added, timeout=60)
        extra: dict[str, object]
        if kind == "nvme":
            # Only a controller with such a region can warn of it. Its size has to be a power of two.
            region = {"qom-type": "memory-backend-ram", "id": f"pmr-{name}", "size": MIB, "share": True}
            self.qmp("object-add", **region)
            extra = {"pmrdev": f"pmr-{name}"}
        elif kind == "usb":
            if 'id "usb"' not in self.monitor("info qtree"):
                self.qmp("device_add", driver="qemu-xhci", id="usb")
            extra = {"bus": "usb.0"}
        else:
            extra = {"bus": "vs.0", "vendor": "LARDER", "product": model or name}
        driver = "usb-storage" if kind == "usb" else kind
        self.qmp("device_add", driver=driver, id=name, drive=f"drive-{name}", serial=serial, **extra)
        self.plugged.append(name)
        self.remember()

    def unplug(self, name: str) -> None:
        """Take a disk out that was plugged in, live. Its image is closed, and so whole, when this returns."""
        self.qmp("device_del", id=name)
        wait_for(f"{name} to be out", lambda: f"drive-{name}" not in self.monitor("info qtree"), timeout=60)
        self.monitor(f"drive_del drive-{name}")  # where it has not gone with its device
        wait_for(f"{name} to be closed", lambda: f"drive-{name}" not in self.monitor("info block"), timeout=60)
        self.plugged.remove(name)
        self.remember()

    def nvme_warning(self, name: str, value: int) -> None:
        """Set NVMe's critical warning: 1 spare, 2 temperature, 4 reliability, 8 read-only, 16 backup, 32 region."""
        self.qmp("qom-set", path=f"/machine/peripheral/{name}", property="smart_critical_warning", value=value)
