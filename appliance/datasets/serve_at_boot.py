"""At each start, as root, once volumes and stored keys are there: serve volumes over iSCSI. At each stop: let them go.

Before the box goes down, what computers have written is brought to the disks: to them the box is a disk that keeps what it
has accepted while they stay switched on.
"""

from __future__ import annotations

import logging
import sys

from appliance import command
from appliance.datasets.encryption.unlock_at_boot import JournalWork
from appliance.errors import LarderError, explain_error
from appliance.shares import publish
from appliance.shares.iscsi import configfs, serve
from appliance.zfs import status


def main() -> None:
    """Exit with status 1 where something could not be done."""
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    work = JournalWork()
    try:
        if sys.argv[1:] == ["stop"]:
            stop(work)
        elif status.is_module_loaded():
            serve.serve_volumes(publish.agreed_facts(), insist=False, note=work.note)
    except LarderError as error:
        work.note(explain_error(error))
        sys.exit(1)


def stop(work: JournalWork) -> None:
    if not configfs.read_tree().folders:
        return
    serve.stop_all(work.note)
    command.run(["zpool", "sync"], timeout=60, accept=range(256))


if __name__ == "__main__":
    main()
