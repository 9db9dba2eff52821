"""The MTU of a network port: what it is, who manages the port, and a trial that puts the former value back by itself.

Nothing of a trial is lasting. A systemd timer, armed before the change, puts the former value back after ``SECONDS``,
also if everything of Larder has ended, and with it what was confirmed before; a restart of the box brings it back as
well. What was confirmed is a number in a file of the agent, which ``/etc/network/if-up.d/larder-mtu`` sets whenever
ifupdown (Debian's ``/etc/network/interfaces``) brings the port up. Ports that somebody else manages are refused.
"""

from __future__ import annotations

import re
import time
from pathlib import Path

import msgspec

from appliance.errors import Reason, Refused
from appliance.message import Message
from appliance.system import paths
from appliance.system.atomic_file import write_atomically

SECONDS = 90  # until the former value comes back
SECONDS_KNOWN = 60 * 60  # that it counts who cannot follow
LEAST, USUAL, MOST = 1280, 1500, 9216  # IPv6 needs 1280 (RFC 8200); switches for homes carry up to 9216
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,14}")  # of a port, as the kernel's 15 bytes and no way out of a folder
PORTS = Path("/sys/class/net")
INTERFACES = Path("/etc/network/interfaces")
HOOK = Path("/etc/network/if-up.d/larder-mtu")


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """A change that waits for its confirmation. ``until``: seconds of the clock that counts from the start of the box.

    ``clients``: addresses of those that were connected before; ``tested``: whether they were asked since;
    ``deaf``: those of them that no full frame reached; ``silent``: those that answered nothing before
    either, so that it is not known.
    """

    port: str
    mtu: int
    former: int
    until: float
    tested: bool = False
    clients: tuple[str, ...] = ()
    deaf: tuple[str, ...] = ()
    silent: tuple[str, ...] = ()

    @property
    def seconds_left(self) -> int:
        return max(round(self.until - now()), 0)


class Unreached(msgspec.Struct, frozen=True, kw_only=True):
    """Why an MTU was not tried: the computers that cannot follow, and those of which it is
    not known, as in ``Trial``."""

    port: str
    mtu: int
    at: float
    deaf: tuple[str, ...] = ()
    silent: tuple[str, ...] = ()


class MtuStatus(msgspec.Struct, frozen=True):
    """What pages know of a port's MTU. ``refusal``: why it cannot be changed here, as a
    sentence; empty where it can."""

    value: int
    refusal: str = ""
    trial: Trial | None = None
    unreached: Unreached | None = None


def now() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def check_port(name: str) -> str:
    """Raises Refused."""
    if not NAME.fullmatch(name):
        raise Refused(Reason("port-name-invalid", "That is not the name of a network port.", field="port"))
    return name


def check_value(mtu: int) -> int:
    """Raises Refused."""
    if not LEAST <= mtu <= MOST:
        raise Refused(
            Reason(
                "mtu-out-of-range", "An MTU must be between {least} and {most}.", field="mtu", least=LEAST, most=MOST
            )
        )
    return mtu


def read_mtu(port: str) -> int:
    """The MTU that a port has now; 0 where there is no such port."""
    try:
        return int((PORTS / port / "mtu").read_text())
    except (OSError, ValueError):
        return 0


def trial_file(port: str) -> Path:
    """In a folder of root's in memory, so that it goes with the restart that puts the value back."""
    return paths.RUN / f"mtu-{port}"


def read_trial(port: str) -> Trial | None:
    """The trial that is under way; None where there is none, or where the former value is back."""
    try:
        trial = msgspec.json.decode(trial_file(port).read_bytes(), type=Trial)
    except (OSError, msgspec.MsgspecError):
        return None
    return trial if trial.port == port and trial.until > now() and read_mtu(port) == trial.mtu else None


def note_trial(trial: Trial) -> None:
    """For pages, which may read it."""
    write_atomically(trial_file(trial.port), msgspec.json.encode(trial), mode=0o644)


def unreached_file(port: str) -> Path:
    """Beside the trial's."""
    return paths.RUN / f"mtu-unreached-{port}"


def read_unreached(port: str) -> Unreached | None:
    """Who could not follow when the last MTU was tried; None where everybody could, or where it was long ago."""
    try:
        found = msgspec.json.decode(unreached_file(port).read_bytes(), type=Unreached)
    except (OSError, msgspec.MsgspecError):
        return None
    return found if found.port == port and now() < found.at + SECONDS_KNOWN else None


def note_unreached(port: str, mtu: int, deaf: tuple[str, ...], silent: tuple[str, ...]) -> None:
    """For pages, which may read it."""
    found = Unreached(port=port, mtu=mtu, at=now(), deaf=deaf, silent=silent)
    write_atomically(unreached_file(port), msgspec.json.encode(found), mode=0o644)


def confirmed_file(port: str) -> Path:
    return paths.AGENT_STATE / "mtu" / port


def former_file(port: str) -> Path:
    """What was confirmed before a trial, for the timer, beside the trial's; there is none where nothing was."""
    return paths.RUN / f"mtu-former-{port}"


def read_confirmed(port: str) -> bytes | None:
    """The content of the confirmed file. Raises OSError where it cannot be read."""
    try:
        return confirmed_file(port).read_bytes()
    except FileNotFoundError:
        return None


def list_confirmed() -> tuple[str, ...]:
    """The ports for which an MTU was confirmed, whether they are there or not."""
    try:
        names = sorted(path.name for path in confirmed_file("any").parent.iterdir())
    except OSError:
        return ()
    return tuple(name for name in names if NAME.fullmatch(name))


def read_status(port: str) -> MtuStatus:
    return MtuStatus(read_mtu(port), describe_manager(port), read_trial(port), read_unreached(port))


def describe_manager(port: str) -> str:
    """Why Larder does not change a port's MTU; empty where ifupdown manages it and nothing else sets an MTU."""
    if not (PORTS / port / "device").exists():
        return Message("It is not a port of its own, but a bridge, bond or the like, whose MTU depends on its members.")
    stanza = find_stanza(port)
    if stanza is None:
        return Message("It is not in /etc/network/interfaces, so something else manages it. Set its MTU there.")
    if any(line.split()[0] in {"mtu", "bridge_ports", "bond-master"} for line in stanza):
        return Message("Its settings in /etc/network/interfaces name an MTU, a bridge or a bond. Change them there.")
    return "" if HOOK.exists() else Message("Larder was installed here without ifupdown. Install Larder again.")


def find_stanza(port: str) -> list[str] | None:
    """The lines of a port in the files of ifupdown (interfaces(5)); None where it has none."""
    found: list[str] | None = None
    for path in (INTERFACES, *sorted(INTERFACES.with_name("interfaces.d").glob("*"))):
        inside = False
        for line in read_lines(path):
            words = line.split()
            if words[0] in {"iface", "mapping", "auto", "source", "source-directory"} or words[0].startswith("allow-"):
                inside = words[0] == "iface" and words[1:2] == [port]
                found = found or [] if inside else found
            elif inside and found is not None:
                found.append(line)
    return found


def read_lines(path: Path) -> list[str]:
    try:
        lines = path.read_text(errors="replace").splitlines()
    except OSError:
        return []
    return [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]
