"""Options of Samba that guides on the web recommend (smb.conf(5)).

Samba reads what is tried from a file in memory, after the one that keeps what has helped; so nothing that is only tried
outlives a restart. Run as a program, this module writes that file, for the timer that puts the former value back.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

from appliance import command
from appliance.benchmarks.box_settings.catalogue_entry import BoxSetting
from appliance.errors import Failed, Reason, Refused
from appliance.message import Message
from appliance.system import atomic_file, paths

PROGRAM = ("/opt/larder/venv/bin/python", "-I", "-m", "appliance.benchmarks.box_settings.samba_options")
SYNCHRONOUS, IN_THREADS = "0 0", "1 1"  # bytes from which on a read and a write are handed to a thread; 0: never
ASYNC_VALUE = re.compile(r"\d{1,7} \d{1,7}")
SOCKET_VALUE = re.compile(r"(?:[A-Z_]{4,30}(?:=\d{1,9})?)(?: [A-Z_]{4,30}(?:=\d{1,9})?){0,9}")
MOST = 50  # characters of options that there are already
RECOMMENDED = "SO_RCVBUF=131072 SO_SNDBUF=131072"  # what old guides name


def kept_file(name: str) -> Path:
    """Where smb.conf finds what is kept (deploy/samba/larder-options.conf)."""
    return Path(f"/etc/samba/larder-{name}.conf")


def tried_file(name: str) -> Path:
    """In memory, so that it goes with a restart; read after the one that keeps."""
    return paths.RUN / f"samba-{name}.conf"


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
        raise Refused(
            Reason("smb-socket-set-already", "Samba sets the buffers of its connections already: {value}", value=value)
        )
    return f"{value} {RECOMMENDED}"


def socket_lines(value: str) -> str:
    return f"[global]\n   socket options = {value}"


def for_samba(
    option: str,
    *,
    name: str,
    meaning: str,
    form: re.Pattern[str],
    read: Callable[[], str],
    propose: Callable[[str], str],
    show: Callable[[str], str],
    lines: Callable[[str], str],
) -> BoxSetting:
    """What all options of Samba have in common; ``option``: its key in ``OPTIONS``."""
    return BoxSetting(
        name=name,
        meaning=meaning,
        protocols=("smb",),
        form=form,
        read=read,
        propose=propose,
        show=show,
        argv=lambda value: (*PROGRAM, option, value),
        file=kept_file(option),
        lines=lines,
    )


ASYNCHRONOUS = for_samba(
    "async",
    name=Message("Reads and writes of Samba (aio read size, aio write size)"),
    meaning=Message(
        "Whether Samba hands each read and write to a thread of its own, which is usual, or does one after "
        "the other. On a slow processor the second can be faster."
    ),
    form=ASYNC_VALUE,
    read=read_async,
    propose=propose_async,
    show=show_async,
    lines=async_lines,
)

SOCKET_BUFFERS = for_samba(
    "socket",
    name=Message("Fixed buffers of Samba’s connections (socket options)"),
    meaning=Message(
        "Many guides recommend fixed sizes. The kernel then no longer fits them to the connection, which "
        "mostly makes it slower."
    ),
    form=SOCKET_VALUE,
    read=read_socket,
    propose=propose_socket,
    show=str,
    lines=socket_lines,
)

OPTIONS = {"async": ASYNCHRONOUS, "socket": SOCKET_BUFFERS}


def set_until_restart(option: str, value: str) -> None:
    """Have Samba use a value until the next start. Nothing is written where it would do so anyway: then its
    owner's later changes count."""
    setting, file = OPTIONS[option], tried_file(option)
    file.unlink(missing_ok=True)
    if setting.read() != value:
        atomic_file.write_atomically(file, f"{setting.lines(value)}\n".encode(), mode=0o644)
    command.run(("smbcontrol", "all", "reload-config"), timeout=60, accept=range(256))


def main(argv: list[str]) -> int:
    """``OPTION VALUE``; 2 where it is neither an option of Samba's nor a value of it."""
    match argv:
        case [option, value] if option in OPTIONS and OPTIONS[option].form.fullmatch(value):
            set_until_restart(option, value)
            return 0
    return 2


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
