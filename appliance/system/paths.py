"""Where things are. A folder can be moved by an environment variable, for containers and tests."""

from __future__ import annotations

import os
from pathlib import Path

RUN = Path(os.environ.get("LARDER_RUN", "/run/larder"))
STATE = Path(os.environ.get("LARDER_STATE", "/var/lib/larder"))
AGENT_STATE = Path(os.environ.get("LARDER_AGENT_STATE", "/var/lib/larder-agent"))
SSH = Path(os.environ.get("LARDER_SSH", "/var/lib/larder-ssh"))  # root's: other computers that backups go to
RECEIVE = Path(
    os.environ.get("LARDER_RECEIVE", "/var/lib/larder-receive")
)  # root's: other Larders whose backups come here
SPOOL = Path(os.environ.get("LARDER_SPOOL", "/var/spool/larder/events"))
POOLS = Path(os.environ.get("LARDER_POOLS", "/"))  # new pools are mounted below

AGENT_SOCKET = RUN / "agent.sock"
SECRETS = RUN / "secrets"  # written by web, consumed by the agent
LOCKS = RUN / "locks"  # root's
ASKED = RUN / "asked"  # root's: which disk is being asked something, and since when one owes an answer
TARGETS = RUN / "targets"  # root's: how each iSCSI target was left in the kernel
JOBS = RUN / "jobs"  # root's: progress of jobs under way, requests to stop them
JOURNALS = AGENT_STATE / "journal"  # root's: what each job has begun and done
