"""The files of the support bundle: what each one holds, in words for the page, and how it is read.

A file that cannot be read says why; it never keeps the others from being made. Each is bounded in bytes and seconds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import msgspec

from appliance import __version__, command
from appliance.disks import disk_request
from appliance.errors import Failed
from appliance.facts import user_properties
from appliance.facts.box import Facts
from appliance.message import Message, plain_text
from appliance.pools import history
from appliance.system import box_info, journal
from appliance.system.redaction import Redactor

MOST_TEXT = 1_000_000  # characters of one file; of the journal, see below
MOST_JOURNAL, JOURNAL_DAYS, JOURNAL_SECONDS = 4_000_000, 3, 60.0
MOST_POOLS, MOST_DISKS, HISTORY_LINES = 20, 64, 400
ALL_STATUS = range(256)  # what fails has the most to tell
SECONDS, SECONDS_OF_FILE = 30.0, 60.0  # for one command, and after which a file gets no further one
SECONDS_OF_DISK = 15.0  # so that a few that hang leave time for the others
PACKAGES = (
    "zfs-dkms",
    "zfsutils-linux",
    "zfs-zed",
    "samba",
    "netatalk",
    "nfs-kernel-server",
    "smartmontools",
    "redis-server",
    "nginx",
    "nginx-light",
    "avahi-daemon",
    "wsdd2",
    "linux-image-amd64",
    "systemd",
    "openssh-server",
    "python3",
)


class Section(msgspec.Struct, frozen=True):
    """A file of the bundle. ``holds`` ends the sentence “this file holds …”; ``read`` gives its text.
    Raises LarderError."""

    name: str
    holds: str
    read: Callable[[Facts], str]


def run_all(*argvs: Sequence[str]) -> str:
    """Each command with what it printed; one that fails is part of the text and stops no other."""
    return in_time(partial(run_one, argv) for argv in argvs)


def in_time(parts: Iterable[Callable[[], str]]) -> str:
    """The parts of a file, as far as its time goes."""
    until = time.monotonic() + SECONDS_OF_FILE
    texts = []
    for part in parts:
        if time.monotonic() > until:
            texts.append("(The rest was left out: it took too long.)\n")
            break
        texts.append(part())
    return "\n".join(texts)


def run_one(argv: Sequence[str]) -> str:
    head = f"$ {' '.join(argv)}\n"
    try:
        result = command.run(argv, timeout=SECONDS, accept=ALL_STATUS)
    except Failed as error:
        return f"{head}({error})\n"
    ended = f"(status {result.status})\n" if result.status else ""
    return f"{head}{result.stdout[:MOST_TEXT]}{result.stderr[:20_000]}{ended}"


def read_versions(_facts: Facts) -> str:
    made = f"Larder {__version__}, written {datetime.now(UTC):%Y-%m-%d %H:%M} UTC\n"
    wanted = ["dpkg-query", "--show", "--showformat=${Package} ${Version} ${Status}\n", *PACKAGES]
    return made + run_all(
        ["uname", "-srvm"], ["zfs", "version"], wanted, ["smartctl", "--version"], ["smbd", "--version"]
    )


def read_system(_facts: Facts) -> str:
    info = box_info.read_box_info({}, "")
    shown = msgspec.json.format(msgspec.json.encode(info, enc_hook=plain_text), indent=2).decode()
    commands = (
        ["ip", "-brief", "address"],
        ["df", "--human-readable", "--local", "--output=target,fstype,size,used,avail,pcent"],
        ["systemctl", "--no-pager", "--plain", "--failed", "list-units"],
        [
            "systemctl",
            "--no-pager",
            "--plain",
            "--all",
            "list-units",
            "larder*",
            "redis*",
            "nginx*",
            "zfs*",
            "smb*",
            "nmb*",
            "nfs*",
            "netatalk*",
            "smart*",
        ],
        ["timedatectl", "show"],
    )
    return f"{shown}\n\n{run_all(*commands)}"


def read_disks(facts: Facts) -> str:
    columns = "NAME,TYPE,SIZE,LOG-SEC,PHY-SEC,ROTA,TRAN,MODEL,SERIAL,WWN,REV,FSTYPE,PARTTYPENAME"
    paths = "\n".join(f"{disk.name} {disk.path} {disk.model} {disk.serial}" for disk in facts.disks[:MOST_DISKS])
    return f"{run_all(['lsblk', '--output', columns])}\n{paths}\n"


def read_smart(facts: Facts) -> str:
    """The report of each disk; one that sleeps is left asleep."""
    paths = [disk.path or f"/dev/{disk.name}" for disk in facts.disks[:MOST_DISKS]]
    return in_time(partial(read_report, path) for path in paths) or "There is no disk.\n"


def read_report(path: str) -> str:
    """The whole report of one disk, as JSON; a disk that does not answer is part of the text and
    keeps none from being asked."""
    head = f"$ smartctl --json --xall {path}\n"
    try:
        return f"{head}{disk_request.read_report(path, timeout=SECONDS_OF_DISK)[:MOST_TEXT]}\n"
    except Failed as error:
        return f"{head}({error})\n"


def read_pools(_facts: Facts) -> str:
    # Without -v: that lists the names of damaged files.
    return run_all(
        ["zpool", "list", "-v"],
        ["zpool", "status", "-t", "-i", "-s", "-D"],
        ["zpool", "get", "all"],
        ["zpool", "events"],
    )


def read_pool_history(facts: Facts) -> str:
    def of_pool(pool: str) -> str:
        try:
            return "\n".join([pool, *history.read_history(pool)[-HISTORY_LINES:], ""])
        except Failed as error:
            return f"{pool}\n({error})\n"

    return in_time(partial(of_pool, pool.name) for pool in facts.pools[:MOST_POOLS])


def read_folders(_facts: Facts) -> str:
    columns = "name,type,used,available,referenced,compressratio,mounted,keystatus,encryption,recordsize,quota,sync"
    plain = ["zfs", "list", "-t", "filesystem,volume", "-o", columns]
    own = ",".join((user_properties.POLICY, user_properties.BACKUP, user_properties.SHARE))
    set_here = ["zfs", "get", "-H", "-t", "filesystem,volume", "-s", "local,received", "-o", "name,property,value", own]
    return run_all(plain, set_here)


def read_shares(facts: Facts) -> str:
    """Who may use which share, as Larder set it: no password is part of that."""
    found = [msgspec.to_builtins(one, enc_hook=plain_text) for one in (*facts.shares, *facts.accounts, *facts.groups)]
    lines = [msgspec.json.encode(one).decode() for one in found]
    return "\n".join([*lines, msgspec.json.encode(facts.smb_policy).decode(), ""])


def read_journal(_facts: Facts) -> str:
    """The last days, the oldest line first. Where there is too much, the newest are kept."""
    since = time.time() - timedelta(days=JOURNAL_DAYS).total_seconds()
    argv = journal.ReadLog().argv(since)
    lines: list[str] = []
    size, until, whole = 0, time.monotonic() + JOURNAL_SECONDS, True
    with closing(command.read_lines(argv, silence=SECONDS)) as raw:
        for line in written_lines(raw):
            size += len(line) + 1
            if size > MOST_JOURNAL or time.monotonic() > until:
                whole = False
                break
            lines.append(line)
    head = "" if whole else "(Older lines were left out: there were too many.)\n"
    return head + "\n".join(reversed(lines)) + "\n"


def written_lines(raw: Iterable[bytes]) -> Iterator[str]:
    """Lines of the journal as text: time, severity, program, message."""
    plain = Redactor()
    for entry, _length in journal.parse_entries(raw):
        line = journal.line_of(entry, plain)
        if line is not None:
            at = datetime.fromtimestamp(line.at, UTC)
            yield f"{at:%Y-%m-%d %H:%M:%S} {line.priority} {line.source}: {line.text}"


def read_command_line(_facts: Facts) -> str:
    return "\n".join(
        f"{path}:\n{box_info.read_text(path)[:50_000]}\n"
        for path in (
            Path("/proc/cmdline"),
            Path("/proc/modules"),
            Path("/proc/mounts"),
            Path("/proc/pressure/io"),
            Path("/proc/spl/kstat/zfs/arcstats"),
        )
    )


# What asks disks and pools stands last: where they hang, that may take all the time there is.
SECTIONS: tuple[Section, ...] = (
    Section("versions.txt", Message("the versions of Larder, Linux, ZFS, Samba and what they need"), read_versions),
    Section(
        "system.txt",
        Message("model, memory, load, temperatures, network addresses, file systems and services"),
        read_system,
    ),
    Section("kernel.txt", Message("how Linux was started, its modules, and what is mounted where"), read_command_line),
    Section("shares.txt", Message("shares, users and groups, without passwords"), read_shares),
    Section("journal.txt", Message("the system log of the last {days} days", days=JOURNAL_DAYS), read_journal),
    Section("disks.txt", Message("the disks with model, serial number, size and partitions"), read_disks),
    Section("smart.txt", Message("the SMART report of every disk that is not asleep"), read_smart),
    Section("pools.txt", Message("state, layout, settings and events of the pools"), read_pools),
    Section("pool-history.txt", Message("the last commands that changed each pool"), read_pool_history),
    Section(
        "folders.txt",
        Message("names, sizes and settings of folders and volumes, their snapshot schedules, backups and shares"),
        read_folders,
    ),
)
# What only the pages know, which they send along.
OWN: dict[str, str] = {
    "settings.txt": Message(
        "Larder's settings: notifications, alert levels, self-tests, scrubs and trims, without passwords"
    ),
    "alerts.txt": Message("the alerts, open and past"),
    "jobs.txt": Message("the last jobs: what they did and what became of them"),
}
