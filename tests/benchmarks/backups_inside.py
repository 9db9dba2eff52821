"""What ``make bench`` runs inside the appliance about backups, as one script: Larder's own code against bare commands.

It gets two empty disks, makes a pool of each, and prints one JSON object of figures: seconds, bytes and
counts. The other computer is this one by loopback. Nothing else is to be at work meanwhile, and the
machine is discarded afterwards.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import libzfs_core as bare
from msgspec.structs import replace

from appliance import schedule
from appliance.agent.read_facts import read_facts
from appliance.backups import copies, tasks, transfer
from appliance.backups.copy_dataset import DatasetCopy, run_copy
from appliance.backups.remote import connection, instructions, settings
from appliance.backups.remote.remote_place import RemotePlace, say_hello
from appliance.backups.remote.send_backup import RemoteTransfer, SendBackup
from appliance.backups.run_backup import RunBackup
from appliance.backups.stream import send_stream
from appliance.backups.tasks import BackupTask
from appliance.backups.transfer import find_snapshot, read_features, run_transfer, send_flags
from appliance.facts.datasets import Dataset
from appliance.facts.remote import Remote
from appliance.operation import Operation, checked_plan

MIB = 2**20
SOURCE, SHORT = "tank/photos", "larder-backup-2026.01.01-00.00.00"
ROOT, USER, BARE_USER, PORT = "safe/backups", "peer", "bare", 2222
LOCAL_MIB, SSH_MIB, TIMES = 256, 192, 3  # with 64 it is the second that signing in costs which is measured
FEW, MANY = 20, 200  # folders of which nothing is new
MOMENTS = ("2026.01.02-00.00.00", "2026.01.03-00.00.00")
REMOTE = Remote("0badcafe", "127.0.0.1", PORT, USER, ROOT)
out: dict[str, float] = {}


class Quiet:
    """What surrounds a step of which nobody wants to hear."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def progress(self, percent: int, phrase: str) -> None: ...

    def note(self, text: str) -> None:
        self.notes.append(text)

    def secret(self) -> str:
        raise AssertionError("no secret goes with it")

    def stop_if_asked(self) -> None: ...


class Timed:
    """``send_stream`` as before; keeps the bytes, the seconds and the processor's seconds of each stream.
    The latter are those of this process alone, which moves the bytes."""

    def __init__(self) -> None:
        self.real: Callable[..., int] = send_stream
        self.streams: list[tuple[int, float, float]] = []
        transfer.__dict__["send_stream"] = self

    def __call__(self, *given: Any, **how: Any) -> int:
        begun, busy = time.perf_counter(), time.process_time()
        moved = self.real(*given, **how)
        self.streams.append((moved, time.perf_counter() - begun, time.process_time() - busy))
        return moved


def run(*argv: str) -> str:
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout


def took(act: Callable[[], object]) -> float:
    start = time.perf_counter()
    act()
    return time.perf_counter() - start


def find(name: str) -> Dataset:
    found = read_facts().dataset(name)
    assert found, name
    return found


def fill(mib: int) -> None:
    """The folder that is copied, with one snapshot of so much that cannot be compressed."""
    run("zfs", "create", SOURCE)
    run("dd", "if=/dev/urandom", f"of=/{SOURCE}/one", "bs=1M", f"count={mib}", "status=none")
    run("zfs", "snapshot", f"{SOURCE}@{SHORT}")
    run("zpool", "sync")


def drop(name: str) -> None:
    """Destroy a copy, and wait until its blocks are free: that would go on beside the next one."""
    run("zfs", "destroy", "-r", name)
    run("zpool", "wait", "-t", "free", "safe")
    run("zpool", "sync")


# --- how fast one folder is copied ------------------------------------------------------------------------------------
def compare(name: str, ours: Callable[[str], None], theirs: Callable[[str], str]) -> None:
    """The same snapshot copied by Larder and by a shell, in turn; of each the shortest.
    The first of both does not count."""
    timed, steps, streams, bares = Timed(), list[float](), list[float](), list[float]()
    for at in range(TIMES + 1):
        steps.append(took(lambda at=at: ours(f"ours{at}")))  # type: ignore[misc]
        drop(f"{ROOT}/ours{at}")
        streams.append(timed.streams[-1][1])
        command = theirs(f"bare{at}")
        bares.append(took(lambda command=command: run("sh", "-c", command)))  # type: ignore[misc]
        drop(f"{ROOT}/bare{at}")
    transfer.__dict__["send_stream"] = timed.real
    moved = sum(stream[0] for stream in timed.streams[1:])
    out[f"{name} bytes"] = timed.streams[-1][0]
    out[f"{name} bare"], out[f"{name} stream"], out[f"{name} step"] = min(bares[1:]), min(streams[1:]), min(steps[1:])
    out[f"{name} relay"] = sum(stream[2] for stream in timed.streams[1:]) / moved * 2**30


def local(flags: tuple[str, ...]) -> None:
    source, task = find(SOURCE), BackupTask(key="0123abcd", pool=0, path="backups/photos")

    def ours(name: str) -> None:
        run_copy(Quiet(), DatasetCopy(source, f"{ROOT}/{name}", SHORT, flags, task), schedule.box_zone())

    compare(
        "local", ours, lambda name: f"zfs send {' '.join(flags)} {SOURCE}@{SHORT} | zfs receive -u -s {ROOT}/{name}"
    )


def over_ssh(remote: Remote, flags: tuple[str, ...]) -> None:
    source, task = find(SOURCE), BackupTask(key="0123abcd", pool=0, path="photos", remote=remote.id)
    place = RemotePlace(remote, say_hello(remote))

    def ours(name: str) -> None:
        copy = RemoteTransfer(source, name, SHORT, flags, task, place)
        run_transfer(Quiet(), copy, find_snapshot(copy))

    def theirs(name: str) -> str:
        ssh = [*connection.ssh_words(remote, aes=place.aes), "-l", BARE_USER, "--", remote.host]
        return f"zfs send {' '.join(flags)} {SOURCE}@{SHORT} | {shlex.join([*ssh, f'zfs receive -u -s {ROOT}/{name}'])}"

    compare("ssh", ours, theirs)


def set_up_remote() -> Remote:
    """This computer as another one: an sshd of its own, and two users, of whom one may run what it likes."""
    remote = replace(REMOTE, public_key=settings.make_key(REMOTE.id))
    script = Path(instructions.INSTALLED)
    script.parent.mkdir(parents=True, exist_ok=True)
    script.write_text(instructions.script_text())
    script.chmod(0o755)
    for user, line in ((USER, instructions.key_line(remote)), (BARE_USER, remote.public_key)):
        run("useradd", "--create-home", "--shell", "/bin/sh", user)
        run(*instructions.allow_argv(user, ROOT))
        file = Path(f"/home/{user}/.ssh/authorized_keys")
        file.parent.mkdir(mode=0o700)
        file.write_text(f"{line}\n")
        run("chown", "-R", f"{user}:", str(file.parent))
    Path("/run/sshd").mkdir(exist_ok=True)
    run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", "/root/host_key")
    run(
        "/usr/sbin/sshd",
        "-p",
        str(PORT),
        "-h",
        "/root/host_key",
        "-o",
        "PidFile=none",
        "-o",
        "PerSourcePenalties=no",
        "-o",
        "ListenAddress=127.0.0.1",
    )
    settings.write_remote(remote)
    return settings.pin_host_key(remote, connection.fetch_host_key(remote.host, remote.port))


# --- what a run starts that has nothing to send -----------------------------------------------------------------------
def widen(count: int) -> str:
    """A folder with others below it, so many in all, of which each has a complete copy."""
    top = f"tank/wide{count}"
    names = [top, *(f"{top}/{at:03d}" for at in range(count - 1))]
    for name in names:
        bare.lzc_create(name.encode())
    bare.lzc_snapshot([f"{name}@first".encode() for name in names])
    known = read_facts()
    for name in names:
        one, copy = known.dataset(name), name.replace("tank/", f"{ROOT}/", 1)
        assert one
        pairs = {**copies.properties_of(one), "larder:sent": "large"}
        options = shlex.join(word for key, value in pairs.items() for word in ("-o", f"{key}={value}"))
        run("sh", "-c", f"zfs send -L -e -c {name}@first | zfs receive -u {options} {copy}")
    return top


@contextmanager
def counted(name: str) -> Iterator[None]:
    """Count what is started meanwhile: by Larder itself, lists and all else apart, and by the whole computer."""
    real: Any = subprocess.Popen
    started: list[list[str]] = []

    def start(argv: list[str], **how: Any) -> Any:
        started.append(argv)
        return real(argv, **how)

    subprocess.Popen = start  # type: ignore[assignment,misc]
    before = forks()
    try:
        yield
    finally:
        subprocess.Popen = real  # type: ignore[misc]
    out[f"{name} forks"] = forks() - before
    lists = [argv for argv in started if argv[:2] in (["zfs", "list"], ["zfs", "get"])]
    out[f"{name} lists"], out[f"{name} others"] = len(lists), len(started) - len(lists)


def forks() -> int:
    """What the kernel has started since it booted, threads with them."""
    return next(
        int(line.split()[1]) for line in Path("/proc/stat").read_text().splitlines() if line.startswith("processes ")
    )


def nothing_new(remote: Remote, count: int) -> None:
    """A run to the pool and one to the other computer, as the agent does them, over a
    folder of which nothing is new."""
    top = widen(count)
    safe = read_facts().pool("safe")
    assert safe
    there = BackupTask(key="0123abcd", pool=safe.guid, path=f"backups/wide{count}")
    beyond = BackupTask(key="4567abcd", pool=0, path=f"wide{count}", remote=remote.id)
    run("zfs", "set", f"larder:backup={tasks.encode_tasks((there, beyond))}", top)
    one = find(top)
    runs: dict[str, list[Operation]] = {
        "pool": [RunBackup.of(one, there, safe, moment) for moment in MOMENTS],
        "computer": [SendBackup.of(one, beyond, moment) for moment in MOMENTS],
    }
    for kind, operations in runs.items():
        # The first writes the record of the box anew, the second finds everything as it is.
        for operation in operations:
            work = Quiet()
            with counted(f"{count} to the {kind}"):
                seconds = took(lambda operation=operation, work=work: whole(operation, work))  # type: ignore[misc]
            assert f"Nothing new in {count} of {count} folders: their copies are complete." in work.notes, work.notes
            out[f"{count} to the {kind} seconds"] = seconds


def whole(operation: Operation, work: Quiet) -> None:
    """All that the agent does of a job, but for its journal."""
    for step in checked_plan(operation, operation.load_extra_facts(read_facts())).steps:
        step.run(work)


def main() -> None:
    for pool, disk in zip(("tank", "safe"), sys.argv[1:], strict=True):
        run("zpool", "create", "-f", "-o", "ashift=12", "-m", f"/{pool}", pool, disk)
    run(*instructions.create_argv(ROOT))
    remote = set_up_remote()
    flags = send_flags(read_features("safe"), raw=False, into_encrypted=False)
    for count in (FEW, MANY):
        nothing_new(remote, count)
    fill(LOCAL_MIB)
    local(flags)
    run("zfs", "destroy", "-r", SOURCE)
    fill(SSH_MIB)
    over_ssh(remote, flags)
    print(json.dumps(out))


if __name__ == "__main__":
    main()
