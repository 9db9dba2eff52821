"""What stands in for worker, agent and Redis of a recorded box: it runs nothing. Jobs end refused, and say why.

Pages reach the rest of Larder through few functions (``REPLACED``); these are put in their place.
"""

from __future__ import annotations

import os
import tempfile
import time
import zipfile
from collections.abc import Iterator
from typing import Any

from django.contrib.auth.models import User
from django.utils import timezone

from appliance import agent_client
from appliance.errors import Failed, Reason, Refused
from appliance.recovery import recovery_key
from appliance.snapshots.browse import diff
from appliance.support.sections import OWN, SECTIONS
from tests.dev import copies_elsewhere
from tests.dev.place import SENTENCE
from tests.unit.made import recorded_text
from tests.web.benchmarks import client_runs_made
from web.alerts.models import DiskCare, Message
from web.benchmarks.models import SweepRow
from web.disks.models import BurnIn
from web.inventory import source_names, store
from web.inventory.dataset_models import SnapshotRow
from web.inventory.models import SeenRow, Source
from web.jobs import queue
from web.jobs.models import Job
from web.system import service_status

NAME = PASSWORD = "admin"
NOTE = b"Plans for the garden\n\n- apples along the wall\n- a bench that looks west\n"
# Program, priority and text of lines of the system's log: made up in the form of real ones.
LOG = (
    ("kernel", 3, "ata3.00: failed command: READ FPDMA QUEUED"),
    (
        "zed",
        4,
        (
            "eid=41 class=checksum pool='tank' vdev=ata-WDC_WD20EARS-00MVWB0_WD-WCAZA0000003-part1 "
            "algorithm=fletcher4 size=131072"
        ),
    ),
    ("smartd", 4, "Device: /dev/sdc [SAT], 8 Currently unreadable (pending) sectors"),
    ("larder-sign-in", 4, "a sign-in at Larder's pages failed, from 192.168.1.77"),
    (
        "python",
        3,
        (
            "ERROR workers.guard: pools failed: zpool did not answer within 60 seconds\nTraceback (most recent "
            'call last):\n  File "guard.py", line 41, in run_guarded'
        ),
    ),
    ("systemd", 6, "Started smbd.service - Samba SMB Daemon."),
    ("avahi-daemon", 6, "Server startup complete. Host name is larder.local. Local service cookie is 2876543210."),
    (f"long{'-name' * 10}", 5, "x" * 300),
)


# --- in the place of Redis and the worker ----------------------------------------------------------------------------
def send(task: str, *args: str) -> bool:
    """Take a task as the queue would, and be done with it at once: what was to be done is refused, what was
    to be read is as recorded."""
    match task:
        case "workers.run_job":
            refuse_job(args[0])
        case "workers.collect":
            Source.objects.exclude(checked=None).update(checked=timezone.now())
        case "workers.read_history":
            store.checked(store.history_source(args[0]), changed=False)
        case "workers.read_dataset":
            store.checked(store.dataset_source(args[0]), changed=False)
        case "workers.read_connections":
            store.checked(source_names.CONNECTIONS, changed=False)
        case "workers.look_for_pools":
            store.checked(source_names.IMPORTABLE, changed=True)
        case "workers.look_at_share":
            key = SeenRow.key_of(*args)
            SeenRow.objects.update_or_create(key=key, defaults={"ended": timezone.now(), "error": SENTENCE})
            store.checked(source_names.SEEN, changed=True, error=SENTENCE)
        case "workers.deliver":
            Message.objects.filter(state="waiting").update(state="given-up", answer=SENTENCE)
        case "workers.sleep":
            DiskCare.objects.exclude(sleep=None).update(told="recorded", answer=SENTENCE)
        case "workers.tick":
            begun = SweepRow.objects.filter(state__in=(SweepRow.State.QUEUED, *SweepRow.ACTIVE))
            begun.update(state=SweepRow.State.CANCELLED, text=SENTENCE, finished=timezone.now())
            store.touch("sweeps")
            open_ones = BurnIn.objects.filter(state__in=BurnIn.ACTIVE)
            open_ones.update(state=BurnIn.State.STOPPED, finished=timezone.now())
            store.touch("burn-ins")
    return True


def refuse_job(job: str) -> None:
    """End a job as the agent ends one that it does not begin."""
    agent_client.forget_secret(job)
    ended = {"state": Job.State.REFUSED, "text": SENTENCE, "finished": timezone.now()}
    Job.objects.filter(pk=job, state__in=Job.OPEN).update(**ended)
    store.touch("jobs")


# As an old box has left them on its pool.
RECORDED_SETTINGS = {
    "made": 1_700_000_000_000_000,
    "version": 1,
    "written": 1_772_000_000,
    "groups": {
        "notifications": [
            {
                "host": "mail.example.org",
                "user": "attic@example.org",
                "critical": ["dora@example.org"],
                "quiet_from": 22,
                "quiet_to": 7,
            }
        ],
        "self_tests": [{"short": "week", "long": "quarter", "first": 2, "last": 5}],
        "snapshots": [["91", "92", "daily"], ["91", "93", "hourly"]],
        "levels": [{"kind": "of-a-later-larder", "severity": "notice"}],
    },
}


# --- in the place of the agent ---------------------------------------------------------------------------------------
def ask(request: dict[str, Any], **_more: object) -> Iterator[dict[str, Any]]:
    """Answer what pages ask of the agent, from recordings and from what is made up.
    Raises Failed for everything else."""
    now = time.time()
    match request["verb"]:
        case "keep-password":
            yield {"facts": {"kept": True}}
        case "prove":
            if not any(user.check_password(request["password"]) for user in User.objects.all()):
                raise Refused(
                    Reason("", "That is not the administrator's password. Nothing was started.", field="password")
                )
            yield {"facts": {"known": True}}
        case "read-recovery":
            recovery_key.mark(recovery_key.RecoveryState())
            yield {"facts": {}}
        case "make-recovery-phrase":
            recovery_key.mark(recovery_key.RecoveryState(made=int(now)))
            yield {"facts": {"phrase": "E8HJ-N9GE-7ARV-QS1X-2N7K-VJHC-XA8B", "state": {}}}
        case "confirm-recovery-phrase":
            recovery_key.mark(recovery_key.RecoveryState(made=int(now), confirmed=int(now)))
            yield {"facts": {}}
        case "read-box-record":
            people = [{"name": "dora", "uid": 10107}, {"name": "emil", "uid": 10108}]
            kept = [{"name": f"tank/{name}", "guid": 90 + at} for at, name in enumerate(("photos", "papers"))]
            yield {
                "facts": {
                    "version": 1,
                    "box": request["box"],
                    "host": "larder-2019",
                    "written": 1_772_000_000,
                    "larder": "0.1.0",
                    "users": people,
                    "groups": [],
                    "folders": kept,
                    "sealed": True,
                }
            }
        case "keep-box-settings":
            yield {"facts": {"kept": True, "written": int(now)}}
        case "read-box-settings":
            yield {"facts": {"settings": RECORDED_SETTINGS, "left_out": []}}
        case "make-pairing-code":
            yield {"facts": {"code": "7KQ2M-T0B8R-0XHVN-4J3PC", "minutes": 10}}
        case "withdraw-pairing-code":
            yield {"facts": {}}
        case "read-content":  # disks that look empty are empty
            yield {"facts": {}}
        case "list-folder":
            made = (
                ("2025", "folder", 0, "same"),
                ("letters", "folder", 0, "gone"),
                ("garden.txt", "file", len(NOTE), "changed"),
                ("house.pdf", "file", 2_400_000, "same"),
            )
            entries = [
                {"name": name, "kind": kind, "size": size, "mtime": now - 9 * 86400, "now": against}
                for name, kind, size, against in made
            ]
            yield {"facts": {"entries": entries, "total": len(entries), "next": ""}}
        case "read-versions":
            taken = SnapshotRow.objects.filter(dataset=request["dataset"]).order_by("-created")[:6]
            runs = [(taken[:1], True, len(NOTE)), (taken[1:4], True, 2_400), (taken[4:], False, 0)]
            versions = [
                {
                    "there": there,
                    "first": run[len(run) - 1].short,
                    "last": run[0].short,
                    "guid": run[0].guid,
                    "count": len(run),
                    "kind": "file",
                    "size": size,
                    "mtime": run[0].created.timestamp() - 3600,
                }
                for run, there, size in runs
                if run
            ]
            yield {"facts": {"versions": versions, "now": "changed", "complete": True}}
        case "search-names":
            newest = SnapshotRow.objects.filter(dataset=request["dataset"]).order_by("-created").first()
            known = (
                ("letters/garden%20plan.txt", "file", len(NOTE), "gone"),
                ("2025", "folder", 0, "same"),
                (f"{'long' * 30}.txt", "file", 2_400_000, "changed"),
            )
            hits = [
                {
                    "entry": {"name": name, "kind": kind, "size": size, "mtime": now - 9 * 86400, "now": against},
                    "snapshot": newest.short if newest else "",
                    "guid": newest.guid if newest else "",
                }
                for name, kind, size, against in known
            ]
            counts = {"searched": 3, "total": 3, "after": "", "full": False, "complete": True}
            yield {"facts": {"found": hits, **counts}}
        case "list-remote-copies" | "read-remote-copy" if request["remote"] == copies_elsewhere.COMPUTER:
            yield {"facts": copies_elsewhere.answer(request)}
        case "look-at-target":
            yield {
                "facts": {
                    "on": True,
                    "agreed": True,
                    "secret": False,
                    "device": True,
                    "served": True,
                    "silent": ["192.168.1.5"],
                    "foreign": ["10.9.8.7"],
                    "connected": ["iqn.1991-05.com.microsoft:desk.example.org"],
                }
            }
        case "read-difference":
            lines = recorded_text("zfs-diff-2.3.9.txt").encode().splitlines()
            changes = [
                {"what": one.what, "kind": one.kind, "path": one.path, "to": one.to}
                for one in diff.sort_changes(diff.changes_from(lines, "/tank/f"))
            ]
            yield {"facts": {"changes": changes, "complete": True}}
        case "read-space":
            sizes = [2**30 + 7 * 2**20 * at for at, _pair in enumerate(request.get("ranges", ()))]
            held = {name: {"larder:admin:Before the move": int(now) - 40 * 86400} for name in request.get("held", ())}
            yield {"facts": {"ranges": sizes, "holds": held}}
        case "read-settings":
            yield {
                "facts": [
                    {"tag": "tcp-buffers", "value": client_runs_made.FORMER, "tried": client_runs_made.TRIED},
                    {
                        "tag": "ring-sizes",
                        "value": "eth0 rx 256 of 4096, tx 256 of 4096",
                        "tried": "eth0 rx 4096 of 4096, tx 4096 of 4096",
                    },
                    {"tag": "flow-control", "refusal": SILENT_PORT.as_json()},
                    {"tag": "interrupts", "value": "eth0 3 us", "tried": "eth0 100 us"},
                    {"tag": "nfs-threads", "value": "64", "kept": "16", "refusal": MANY_THREADS.as_json()},
                    {"tag": "smb-async", "value": "1 1", "tried": "0 0"},
                    {
                        "tag": "smb-socket",
                        "value": "TCP_NODELAY",
                        "tried": "TCP_NODELAY SO_RCVBUF=131072 SO_SNDBUF=131072",
                    },
                ]
            }
        case "read-log":
            told = [one for one in LOG if request["text"].casefold() in one[2].casefold()]
            worst = {"error": 3, "warning": 4}.get(request["severity"], 7)
            shown = [
                {"at": now - 60 * at, "source": source, "priority": priority, "text": text}
                for at, (source, priority, text) in enumerate(told)
                if priority <= worst
            ]
            yield {"facts": {"lines": shown, "after": "", "reached": now - 3600 if shown else 0}}
        case _:
            raise Failed(SENTENCE)


# Why the NFS server of a recorded box gets no more threads.
SILENT_PORT = Reason(
    "setting-port-silent", "The driver of the network port {port} does not have this setting.", port="eth0"
)
MANY_THREADS = Reason(
    "nfs-threads-many-already", "There are {count} threads already. More do not help a few computers.", count=64
)


def open_file(request: dict[str, Any], **_more: object) -> tuple[dict[str, Any], int]:
    """The one file that every snapshot of a recorded box holds; a support bundle of made-up files."""
    if request["verb"] == "make-bundle":
        return make_bundle(request)
    with tempfile.TemporaryFile() as file:
        file.write(NOTE)
        file.seek(0)
        return {"size": len(NOTE), "mtime": time.time() - 9 * 86400}, os.dup(file.fileno())


def make_bundle(request: dict[str, Any]) -> tuple[dict[str, Any], int]:
    texts = {one.name: f"What {one.holds} would be.\n" * 40 for one in SECTIONS} | request["own"]
    with tempfile.TemporaryFile() as file:
        with zipfile.ZipFile(file, "w") as archive:
            for name, text in texts.items():
                archive.writestr(name, text)
        holds = {one.name: one.holds for one in SECTIONS} | OWN
        files = [[name, holds[name], len(text)] for name, text in texts.items()]
        return {"size": 0, "files": files}, os.dup(file.fileno())


def yes() -> bool:
    return True


REPLACED: tuple[tuple[Any, str, Any], ...] = (
    (queue, "send", send),
    (queue, "is_reachable", yes),
    (service_status, "worker_runs", yes),
    (agent_client, "stream_replies", ask),
    (agent_client, "open_file", open_file),
)
