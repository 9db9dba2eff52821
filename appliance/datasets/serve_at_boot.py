"""At each start, as root, once folders, volumes and stored keys are there: serve volumes over iSCSI, and bring the
files of the other shares to what the folders say. At each stop: let volumes go.

Before the box goes down, what computers have written is brought to the disks: to them the box is a disk that keeps what
it has accepted while they stay switched on.
"""

from __future__ import annotations

import logging
import sys

from appliance import command
from appliance.datasets.encryption.unlock_at_boot import JournalWork
from appliance.errors import LarderError, explain_error
from appliance.shares import publish, reconcile
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
            start(work)
    except LarderError as error:
        work.note(explain_error(error))
        sys.exit(1)


def start(work: JournalWork) -> None:
    facts = publish.agreed_facts()
    try:
        serve.serve_volumes(facts, insist=False, note=work.note)
    finally:
        # All datasets, as what nobody agreed to share shows too which pools are here.
        reconcile.reconcile_files(facts, status.read_datasets(), work.note)


def stop(work: JournalWork) -> None:
    if not configfs.read_tree().folders:
        return
    serve.stop_all(work.note)
    command.run(["zpool", "sync"], timeout=60, accept=range(256))


if __name__ == "__main__":
    main()
