"""More threads of the NFS server (nfsdctl(8))."""

from __future__ import annotations

import re
from pathlib import Path

from appliance.benchmarks.box_settings.catalogue_entry import BoxSetting
from appliance.errors import Reason, Refused
from appliance.message import Message

THREADS = Path("/proc/fs/nfsd/threads")
FILE = Path("/etc/nfs.conf.d/90-larder-threads.conf")  # nfs.conf(5): read when the server starts
VALUE = re.compile(r"[1-9]\d{0,2}")
MOST = 64


def read_threads() -> str:
    """Raises Refused where the NFS server does not run."""
    try:
        count = int(THREADS.read_text())
    except (OSError, ValueError):
        count = 0
    if not count:
        raise Refused(
            Reason(
                "setting-nfs-off",
                "The NFS server does not run. It starts with the first folder that is shared over NFS.",
            )
        )
    return str(count)


def propose_threads(value: str) -> str:
    if int(value) >= MOST:
        raise Refused(
            Reason(
                "nfs-threads-many-already",
                "There are {count} threads already. More do not help a few computers.",
                count=int(value),
            )
        )
    return str(min(2 * int(value), MOST))


NFS_THREADS = BoxSetting(
    name=Message("More threads of the NFS server"),
    meaning=Message(
        "How many requests the NFS server works on at once. It can help several computers at once; a single "
        "one hardly notices."
    ),
    protocols=("nfs",),
    form=VALUE,
    read=read_threads,
    propose=propose_threads,
    show=lambda value: Message("{count} threads", count=int(value)),
    argv=lambda value: ("nfsdctl", "threads", value),
    file=FILE,
    lines=lambda value: f"[nfsd]\nthreads={value}",
)
