"""Options of Samba that guides on the web recommend (smb.conf(5)).

Samba reads what is tried from a file in memory, after the one that keeps what has helped; so nothing that is only tried
outlives a restart. Run as a program, this module writes that file, for the timer that puts the former value back.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable

from appliance import command
from appliance.benchmarks.box_settings.box_setting import BoxSetting
from appliance.errors import Failed, Reason, Refused
from appliance.message import Message
from appliance.shares import samba_options as files
from appliance.system import atomic_file

PROGRAM = ("/opt/larder/venv/bin/python", "-I", "-m", "appliance.benchmarks.box_settings.samba_options")
SYNCHRONOUS, IN_THREADS = "0 0", "1 1"  # bytes from which on a read and a write are handed to a thread; 0: never
ASYNC_VALUE = re.compile(r"\d{1,7} \d{1,7}")
SOCKET_VALUE = re.compile(r"(?:[A-Z_]{4,30}(?:=\d{1,9})?)(?: [A-Z_]{4,30}(?:=\d{1,9})?){0,9}")
MOST = 50  # characters of options that there are already
RECOMMENDED = "SO_RCVBUF=131072 SO_SNDBUF=131072"  # what old guides name


def ask_samba(*names: str) -> list[str]:
    """The values of Samba's files, all taken together; a share of its owner's may have others. Raises Refused."""
    try:
        return [
            " ".join(command.run(("testparm", "-s", f"--parameter-name={name}"), timeout=60).stdout.split())
            for name in names
        ]
    except Failed as error:
        raise Refused(Reason("setting-smb-silent", "The settings of Samba cannot be read.")) from error


def read_async() -> str:
    return " ".join(ask_samba("aio read size", "aio write size"))


def propose_async(value: str) -> str:
    return IN_THREADS if value == SYNCHRONOUS else SYNCHRONOUS


def show_async(value: str) -> str:
    return Message("one after the other") if value == SYNCHRONOUS else Message("in threads")


def async_lines(value: str) -> str:
    read, write = value.split(" ")
    return f"[global]\n   aio read size = {read}\n   aio write size = {write}"


def read_socket() -> str:
    return ask_samba("socket options")[0]


def propose_socket(value: str) -> str:
    """Raises Refused where somebody has set buffers already, or more than is understood here."""
    if "SO_RCVBUF" in value or "SO_SNDBUF" in value or len(value) > MOST or not SOCKET_VALUE.fullmatch(value):
        raise Refused(Reason("smb-socket-set-already", "Samba sets the buffers of its connections already: {value}", value=value))  # fmt: skip
    return f"{value} {RECOMMENDED}"


def socket_lines(value: str) -> str:
    return f"[global]\n   socket options = {value}"


def set_until_restart(name: str, value: str) -> None:
    """Have Samba use a value until the next start. Nothing is written where it would do so anyway: then its owner's later
    changes count."""
    _form, read, lines = GROUPS[name]
    files.tried_file(name).unlink(missing_ok=True)
    if read() != value:
        atomic_file.write_atomically(files.tried_file(name), f"{lines(value)}\n".encode(), mode=0o644)
    command.run(("smbcontrol", "all", "reload-config"), timeout=60, accept=range(256))


def argv_for(name: str) -> Callable[[str], tuple[str, ...]]:
    return lambda value: (*PROGRAM, name, value)


ASYNCHRONOUS = BoxSetting(
    name=Message("Reads and writes of Samba (aio read size, aio write size)"),
    meaning=Message("Whether Samba hands each read and write to a thread of its own, which is usual, or does one after the other. On a slow processor the second can be faster."),
    protocols=("smb",),
    form=ASYNC_VALUE,
    read=read_async,
    propose=propose_async,
    show=show_async,
    argv=argv_for("async"),
    file=files.kept_file("async"),
    lines=async_lines,
)  # fmt: skip

SOCKET_BUFFERS = BoxSetting(
    name=Message("Fixed buffers of Samba’s connections (socket options)"),
    meaning=Message("Many guides recommend fixed sizes. The kernel then no longer fits them to the connection, which mostly makes it slower."),
    protocols=("smb",),
    form=SOCKET_VALUE,
    read=read_socket,
    propose=propose_socket,
    show=str,
    argv=argv_for("socket"),
    file=files.kept_file("socket"),
    lines=socket_lines,
)  # fmt: skip

GROUPS = {"async": (ASYNC_VALUE, read_async, async_lines), "socket": (SOCKET_VALUE, read_socket, socket_lines)}


def main(argv: list[str]) -> int:
    """``NAME VALUE``; 2 where it is neither a setting of Samba's nor a value of it."""
    match argv:
        case [name, value] if name in GROUPS and GROUPS[name][0].fullmatch(value):
            set_until_restart(name, value)
            return 0
    return 2


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
