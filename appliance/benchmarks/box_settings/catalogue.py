"""The settings that can be tried, each with what it is now, what is tried, and the commands and files of it.

A value is text with one exact form, so that what comes back is what was there. Nobody chooses a value: ``propose`` makes the
one that is tried from the one that is there.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from appliance.errors import Reason, Refused
from appliance.formatting import size_text
from appliance.message import Message

TCP = Path("/proc/sys/net/ipv4")
NFS_THREADS = Path("/proc/fs/nfsd/threads")
SYSCTL_FILE = Path("/etc/sysctl.d/90-larder-tcp.conf")  # sysctl.d(5): read at each start
NFS_FILE = Path("/etc/nfs.conf.d/90-larder-threads.conf")  # nfs.conf(5): read when the server starts
# Least, usual and most bytes of a connection's buffer, for receiving and for sending (tcp(7), tcp_rmem and tcp_wmem).
TCP_VALUE = re.compile(r"(\d{3,7} \d{4,8}) (\d{5,9}), (\d{3,7} \d{4,8}) (\d{5,9})")
TCP_TRIED = 16 * 2**20  # bytes; enough for 10 Gbit/s and 12 ms
THREADS_VALUE = re.compile(r"[1-9]\d{0,2}")
MOST_THREADS = 64
MARK = "# Written by Larder, because it helped in a benchmark. Before: "


class BoxSetting(msgspec.Struct, frozen=True, kw_only=True):
    """``name`` and ``meaning`` for people; ``protocols`` that it can make faster; ``form`` of its values.

    ``read`` the value (raises Refused where the box has none), ``propose`` another (raises Refused where there is none to
    try), ``show`` a value to people, ``argv`` that sets it until the next start, and the ``lines`` of ``file`` that set it at
    each start.
    """

    name: str
    meaning: str
    protocols: tuple[str, ...]
    form: re.Pattern[str]
    read: Callable[[], str]
    propose: Callable[[str], str]
    show: Callable[[str], str]
    argv: Callable[[str], tuple[str, ...]]
    file: Path
    lines: Callable[[str], str]

    def body(self, value: str, former: str) -> str:
        """The whole file that keeps ``value``."""
        return f"{MARK}{former}\n{self.lines(value)}\n"

    def read_former(self) -> str:
        """What the value was before it was kept; empty where it is not kept."""
        try:
            first = self.file.read_text(encoding="utf-8", errors="replace").partition("\n")[0]
        except OSError:
            return ""
        former = first.removeprefix(MARK)
        return former if first.startswith(MARK) and self.form.fullmatch(former) else ""


def read_tcp() -> str:
    try:
        both = [" ".join((TCP / name).read_text().split()) for name in ("tcp_rmem", "tcp_wmem")]
    except OSError as error:
        raise Refused(Reason("setting-unreadable", "This box does not say how large the buffers of a connection are.")) from error  # fmt: skip
    return ", ".join(both)


def propose_tcp(value: str) -> str:
    found = TCP_VALUE.fullmatch(value)
    if not found or min(int(found[2]), int(found[4])) >= TCP_TRIED:
        raise Refused(Reason("tcp-buffers-large-already", "The buffers may grow to {size} already. Larger ones do not help in a home network.", size=size_text(TCP_TRIED)))  # fmt: skip
    return f"{found[1]} {max(TCP_TRIED, int(found[2]))}, {found[3]} {max(TCP_TRIED, int(found[4]))}"


def show_tcp(value: str) -> str:
    found = TCP_VALUE.fullmatch(value)
    if not found:
        return value
    return Message("up to {receiving} for receiving, {sending} for sending", receiving=size_text(int(found[2])), sending=size_text(int(found[4])))  # fmt: skip


def tcp_words(value: str) -> tuple[str, str]:
    receiving, sending = value.split(", ")
    return f"net.ipv4.tcp_rmem={receiving}", f"net.ipv4.tcp_wmem={sending}"


def read_threads() -> str:
    """Raises Refused where the NFS server does not run."""
    try:
        count = int(NFS_THREADS.read_text())
    except (OSError, ValueError):
        count = 0
    if not count:
        raise Refused(Reason("setting-nfs-off", "The NFS server does not run. It starts with the first folder that is shared over NFS."))  # fmt: skip
    return str(count)


def propose_threads(value: str) -> str:
    if int(value) >= MOST_THREADS:
        raise Refused(Reason("nfs-threads-many-already", "There are {count} threads already. More do not help a few computers.", count=int(value)))  # fmt: skip
    return str(min(2 * int(value), MOST_THREADS))


SETTINGS: dict[str, BoxSetting] = {
    "tcp-buffers": BoxSetting(
        name=Message("Larger buffers for connections (TCP)"),
        meaning=Message("How much may be under way to the other computer at once. It can help on fast networks with delays."),
        protocols=("smb", "nfs"),
        form=TCP_VALUE,
        read=read_tcp,
        propose=propose_tcp,
        show=show_tcp,
        argv=lambda value: ("sysctl", "-q", "-w", *tcp_words(value)),
        file=SYSCTL_FILE,
        lines=lambda value: "\n".join(tcp_words(value)),
    ),
    "nfs-threads": BoxSetting(
        name=Message("More threads of the NFS server"),
        meaning=Message("How many requests the NFS server works on at once. It can help several computers, or one with many small files."),
        protocols=("nfs",),
        form=THREADS_VALUE,
        read=read_threads,
        propose=propose_threads,
        show=lambda value: Message("{count} threads", count=int(value)),
        argv=lambda value: ("nfsdctl", "threads", value),
        file=NFS_FILE,
        lines=lambda value: f"[nfsd]\nthreads={value}",
    ),
}  # fmt: skip


class SettingStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A setting as it is. ``value`` and ``tried`` as ``show`` takes them, empty where there is none; ``refusal``: why it
    cannot be tried, as ``Reason.as_json`` has it; ``kept``: the value before it was kept, empty where it is as it came."""

    tag: str
    value: str = ""
    tried: str = ""
    refusal: dict[str, Any] | None = None
    kept: str = ""


def find_setting(tag: str) -> BoxSetting:
    """Raises Refused."""
    if tag not in SETTINGS:
        raise Refused(Reason("setting-unknown", "There is no such setting to try.", field="setting"))
    return SETTINGS[tag]


def read_setting(tag: str) -> SettingStatus:
    """Raises Refused for a setting that there is not."""
    setting = find_setting(tag)
    kept, value = setting.read_former(), ""
    try:
        value = setting.read()
        return SettingStatus(tag=tag, value=value, tried=setting.propose(value), kept=kept)
    except Refused as refused:
        return SettingStatus(tag=tag, value=value, refusal=refused.reasons[0].as_json(), kept=kept)
