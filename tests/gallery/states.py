"""What a recorded box lacks for a gallery: work that runs, fails and waits, manual changes, a diagnosis, notifications.

Made up. Only the degraded box has them, so that the healthy one stays calm.
"""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any

import msgspec
from django.utils import timezone
from msgspec.structs import replace

from appliance.backups.transfer import phrase
from appliance.benchmarks.matrix import Sweep
from appliance.facts.sharing import Share
from appliance.formatting import duration_text, size_text
from appliance.message import Message, join_messages
from appliance.shares.drift.detect import Edit
from appliance.shares.iscsi.differences import TargetDifference
from appliance.shares.iscsi.divergence import TargetEdit, key_of
from appliance.shares.iscsi.part import PREFIX, Iscsi, device_of
from appliance.shares.settings import ISCSI, ShareSetting
from appliance.shares.troubleshoot.diagnosis import Diagnosis
from appliance.system import mtu
from appliance.system.mtu import MtuStatus, Trial, Unreached
from appliance.zfs import vdev_tree
from tests.web import rows
from tests.web.benchmarks import client_runs_made, sweeps_made
from web.alerts.models import MailSettings
from web.alerts.models import Message as Letter
from web.benchmarks import create
from web.benchmarks.models import CaseRow, SweepRow
from web.inventory import store
from web.inventory.box import read_box
from web.inventory.dataset_models import DatasetRow
from web.inventory.models import BoxRow, EditRow, Progress, SeenRow, ShareRow, TargetEditRow
from web.jobs.models import Job
from web.pools import replacement
from web.said import said_in, with_said

LONG_OUTPUT = (
    "cannot receive incremental stream: destination tank/photos has been modified since most recent snapshot",
    "/dev/disk/by-id/ata-WDC_WD30EZRS-11J99B1_WD-WCAWZ0000007-part1: " + "0123456789abcdef" * 8,
)
ERASED_IN_PART = Message(
    "{disk} is partly erased. Nothing on it can be relied on: plan it again to erase it from the beginning.",
    disk=Message("{model} (serial {serial})", model="WDC WD30EZRS-11J99B1", serial="WD-WCAWZ0000007"),
)
IN_USE = Message("This pool is already in use here, as {pool}.", pool="attic")
PHRASE = phrase("tank/photos", 193 * 10**9, 522 * 10**9, 2800)[1]
REPORT = join_messages(
    [
        Message("Rebuilding took {took} and wrote {size}.", took=duration_text(25920), size=size_text(18 * 10**11)),
        Message("Nothing was lost."),
    ]
)
CHANGED = (
    "--- what Larder wrote",
    "+++ /etc/samba/larder.conf",
    "@@ -12,3 +12,4 @@",
    " [photos]",
    "-   read only = no",
    "+   read only = yes",
    "+   veto files = /" + "*.very-long-pattern-that-nobody-breaks/" * 4,
)


def add_states(box: str) -> None:
    """Add them to the box that was just filled."""
    if box == "degraded":
        add_jobs()
        add_failed_switch()
        add_replacements()
        add_benchmark()
        add_client_runs()
        add_mtu_trial()
        add_shared_volume()
        add_manual_changes()
        add_diagnosis()
        add_notifications()
        store.touch("jobs")


def add_jobs() -> None:
    now = timezone.now()
    ends: tuple[tuple[str, str, dict[str, Any]], ...] = (
        (Job.State.QUEUED, Message("{verb} {pool}", verb=Message("Scrub"), pool="attic"), {}),
        (Job.State.WAITING, Message("Destroy {dataset}", dataset="tank/old"), {"starts": now + timedelta(hours=1)}),
        (
            Job.State.RUNNING,
            Message("Back up {dataset}", dataset="tank/photos"),
            {"started": now - timedelta(minutes=9)},
        ),
        (
            Job.State.FAILED,
            Message("Back up {dataset}", dataset="tank/" + "photographs-and-films-" * 4),
            {"text": LONG_OUTPUT[0], "log": list(LONG_OUTPUT)},
        ),
        (Job.State.INTERRUPTED, Message("Erase {name}", name=Message("bay {name}", name=5)), {"text": ERASED_IN_PART}),
        (Job.State.REFUSED, Message("Import {name}", name="attic"), {"text": IN_USE}),
    )
    for at, (state, title, more) in enumerate(ends, 51):
        ended = {} if state in Job.OPEN else {"finished": now - timedelta(minutes=at)}
        rows.job(id=uuid.UUID(int=at), title=title, state=state, **ended, **more)
        Job.objects.filter(pk=uuid.UUID(int=at)).update(created=now - timedelta(minutes=at))
    Progress.objects.create(job=uuid.UUID(int=53), percent=37, **with_said(phrase=PHRASE))


def add_failed_switch() -> None:
    """A switch whose last change went wrong, of the first folder that is not shared."""
    row = next(row for row in DatasetRow.objects.order_by("name") if not row.fact.share and row.fact.mounted)
    title = Message("Share {dataset} over {spoken}", dataset=row.name, spoken="SMB")
    text = Message("There is no user {user}.", user="anna")
    rows.job(
        id=uuid.UUID(int=59),
        kind="set-share",
        title=title,
        subject=row.name,
        operation=f'{{"kind":"set-share","dataset":"{row.name}","protocol":"smb",'
        '"smb":{"name":"photos","write":["anna"]}}',
        state=Job.State.FAILED,
        text=text,
        finished=timezone.now(),
    )


def add_replacements() -> None:
    """One for each disk of the first pool that gives trouble."""
    box = read_box()
    for card in box.cards:
        for place in vdev_tree.list_places(card.pool):
            if place.leaf and place.vdev.state != "ONLINE":
                replacement.open_replacement(card.pool, place, box, "admin")
    pool = box.cards[0].pool
    last = replacement.open_replacement(pool, list(vdev_tree.list_places(pool))[-1], box, "admin")
    last.closed, last.report = timezone.now(), REPORT
    last.said |= said_in(REPORT)
    last.save()


def add_benchmark() -> None:
    """One that runs, with a case that could not be measured."""
    first = SweepRow.objects.order_by("created").first()
    if first is None:
        return
    spec: Sweep = sweeps_made.spec(workloads=["seq-write", "seq-read"])
    row = create.store_sweep(spec, title="Which layout", preset="ashift", pk=str(uuid.UUID(int=71)), user="admin")
    SweepRow.objects.filter(pk=row.pk).update(state=SweepRow.State.RUNNING, started=timezone.now())
    cases = list(row.cases.order_by("number"))
    CaseRow.objects.filter(pk=cases[0].pk).update(state=CaseRow.State.FAILED)
    CaseRow.objects.filter(pk=cases[1].pk).update(state=CaseRow.State.RUNNING)


def add_client_runs() -> None:
    """One that waits for its script, one that could not be measured, and one whose network is the limit."""
    client_runs_made.made(pk=uuid.UUID(int=72))
    tries = {"setting": client_runs_made.SETTING, "former": client_runs_made.FORMER, "tried": client_runs_made.TRIED}
    now = timezone.now()
    client_runs_made.made(
        pk=uuid.UUID(int=74), state="running", begun=now, heard=now, switched=True, switches=2, **tries
    )
    failed = "smbclient: tree connect failed: NT_STATUS_ACCESS_DENIED"
    client_runs_made.made(pk=uuid.UUID(int=73), state="failed", text=failed, finished=timezone.now())


def add_mtu_trial() -> None:
    """A port on which another MTU is being tried, which one computer cannot follow."""
    for row in BoxRow.objects.all():
        info = row.fact
        trial = Trial(
            port=info.ports[0].name, mtu=9000, former=1500, until=mtu.now() + 60, tested=True, deaf=("192.168.1.21",)
        )
        unreached = Unreached(port=trial.port, mtu=9000, at=mtu.now(), deaf=("192.168.1.21",), silent=("192.168.1.22",))
        ports = (replace(info.ports[0], mtu=MtuStatus(9000, trial=trial, unreached=unreached)), *info.ports[1:])
        rows.put_box(replace(info, ports=ports))


def add_shared_volume() -> None:
    """A volume that another computer uses as its disk over iSCSI."""
    for row in DatasetRow.objects.filter(facts__contains='"kind":"volume"'):
        desk = "iqn.1991-05.com.microsoft:" + "a-computer-with-a-long-name-" * 3 + "desk"
        target = Iscsi(name="tank-machines-router", initiators=(desk,), user="desk", back_user="box")
        volume = replace(row.fact, share=ShareSetting(iscsi=target).text(), share_source="local")
        DatasetRow.objects.filter(pk=row.pk).update(facts=msgspec.json.encode(volume).decode())
        share = Share(ISCSI, target.iqn, device_of(row.name), (f"{desk} (192.168.1.21)",))
        ShareRow.objects.create(key=share.key, name=share.name, facts=msgspec.json.encode(share).decode())


def add_manual_changes() -> None:
    edits = [
        Edit(
            "smb", "/etc/samba/larder.conf", "ab" * 32, CHANGED, copies=("/var/lib/larder-agent/edits/larder.conf.1",)
        ),
        Edit(
            "nfs",
            "/etc/exports.d/larder.exports",
            "cd" * 32,
            CHANGED,
            against=(
                Message(
                    "“{line}” of {name} is nothing that Larder can keep as a setting.",
                    line="crossmnt",
                    name="/tank/photos",
                ),
            ),
        ),
    ]
    store.replace(EditRow, edits, lambda edit: edit.key)
    differences = (
        TargetDifference("chap-off"),
        TargetDifference("initiator-added", "iqn.1991-05.com.microsoft:" + "long-name-of-a-computer-" * 6),
        TargetDifference("device", "/dev/sda", device_of("tank/machines/router")),
    )
    router = f"{PREFIX}tank-machines-router"  # of the volume that is shared
    targets = [
        TargetEdit(key_of(router), router, "ab" * 32, "tank/machines/router", differences),
        TargetEdit("1badcafe1badcafe", f"{PREFIX}Someone's own", "cd" * 32, differences=(TargetDifference("unasked"),)),
    ]
    store.replace(TargetEditRow, targets, lambda edit: edit.key)


def add_diagnosis() -> None:
    for row in DatasetRow.objects.filter(name__in=("tank/photos", "tank/documents", "tank/backups", "tank/media")):
        for protocol in ("smb", "nfs", "afp"):
            found = Diagnosis(
                dataset=row.name, protocol=protocol, person="anna", unit="failed", port=False, mounted=True
            )
            SeenRow.objects.create(
                key=f"{row.key}:{protocol}:anna",
                name=row.name,
                facts=msgspec.json.encode(found).decode(),
                checked=timezone.now(),
            )


def add_notifications() -> None:
    now = timezone.now()
    MailSettings.objects.update_or_create(
        pk=1,
        defaults={
            "host": "mail.example.org",
            "user": "box@example.org",
            "sender": "box@example.org",
            "critical": "anna@example.org",
        },
    )
    answer = "550 5.7.1 The address " + "x" * 80 + "@example.org was refused"
    Letter.objects.create(
        key="test-mail",
        event="test",
        way="mail",
        state=Letter.State.GIVEN_UP,
        made=now,
        next_try=now,
        tries=9,
        answer=answer,
    )
