"""While the box restarts or is switched off, as root: a pool that has stopped is not waited for.

What asks such a pool for something waits in the kernel and cannot be killed: ``zfs``, ``umount``, ``sync``. systemd
waits for each of them in turn, and its own last ``sync`` never ends (systemd 257, OpenZFS 2.3.9: a box that was told
to restart still ran after twelve minutes). So once the services have ended, all else is written to its disks here,
and the kernel is asked to end.
"""

from __future__ import annotations

import ctypes
import logging
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

from appliance import command
from appliance.errors import LarderError
from appliance.zfs import kstat

log = logging.getLogger(__name__)
# What the kernel is asked for (reboot(2)), and the key of SysRq that does the same where that hangs in a driver.
ENDS = {"reboot": (0x01234567, "b"), "poweroff": (0x4321FEDC, "o"), "halt": (0xCDEF0123, "o")}
SYSRQ = Path("/proc/sysrq-trigger")
MOUNTS = Path("/proc/self/mounts")
# What has something to put away. systemd stops all of them anyway; one that is not installed is passed over.
SERVICES = (
    "smbd",
    "nmbd",
    "netatalk",
    "nfs-server",
    "larder-iscsi",
    "larder-worker",
    "larder-web",
    "larder-agent",
    "redis-server@larder",
)
SECONDS_TO_STOP = 60  # what still runs by then waits for the stopped pool itself
SECONDS_TO_WRITE = 60  # for each pool and each file system
SECONDS_TO_END = 60


def find_file_systems() -> Iterator[str]:
    """Where file systems of disks are mounted, other than those of ZFS: the system's own, and sticks."""
    for line in MOUNTS.read_text().splitlines():
        source, place, _rest = line.split(" ", 2)
        if source.startswith("/dev/"):
            yield place.replace("\\040", " ")


def attempt(*argv: str, timeout: float) -> None:
    """Run a command; one that fails or hangs is noted and keeps nothing after it from its turn."""
    try:
        command.run(argv, timeout=timeout)
    except LarderError as error:
        log.warning("%s: %s", " ".join(argv), error)


def write_all(running: list[str]) -> None:
    """Have everything written that is not in a stopped pool."""
    attempt("systemctl", "stop", *SERVICES, timeout=SECONDS_TO_STOP)
    for pool in running:
        attempt("zpool", "sync", pool, timeout=SECONDS_TO_WRITE)
    log.warning("The other pools are written: %s", ", ".join(running) or "there are none")
    attempt("journalctl", "--sync", timeout=SECONDS_TO_WRITE)
    for place in dict.fromkeys(find_file_systems()):
        attempt("sync", "--file-system", place, timeout=SECONDS_TO_WRITE)


def end_kernel(kind: str) -> None:
    """Ask the kernel to end, without another ``sync``. Does not return where it does."""
    number, key = ENDS[kind]
    asking = threading.Thread(target=ctypes.CDLL(None).reboot, args=(ctypes.c_int(number),), daemon=True)
    asking.start()
    asking.join(SECONDS_TO_END)
    log.warning("The kernel did not end within %d seconds. It is made to.", SECONDS_TO_END)
    SYSRQ.write_text(key)


def main(kind: str) -> None:
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    states = kstat.read_states()
    stopped = [pool for pool, state in states.items() if state == kstat.STOPPED]
    if not stopped:
        return
    log.warning("These pools have stopped and are not waited for: %s", ", ".join(stopped))
    write_all([pool for pool in states if pool not in stopped])
    end_kernel(kind)


if __name__ == "__main__":
    main(sys.argv[1])
