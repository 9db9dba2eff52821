"""How Larder itself is: its worker, its queue, its agent, how old its facts are.
Looked at without asking any of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta

import msgspec
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext

from appliance.alerts.sources import source_text
from appliance.system import locks, paths
from web.inventory.models import Source
from web.jobs import queue
from web.translation import text_of

WORKER_LOCK = paths.RUN / "inventory" / "worker.lock"
OLD = timedelta(seconds=90)
LONG_AT_IT = timedelta(seconds=20)
READ = ("pools", "datasets", "disks", "services", "shares", "accounts")


class Trouble(msgspec.Struct, frozen=True):
    """Something wrong with Larder itself or below it, in words."""

    key: str
    headline: str
    meaning: str
    page: str = ""  # where something can be done about it, by its name


class ServiceStatus(msgspec.Struct):
    sources: list[Source] = msgspec.field(default_factory=list)
    troubles: list[Trouble] = msgspec.field(default_factory=list)
    checked: datetime | None = None


def worker_runs() -> bool:
    """The worker holds a lock on a file as long as it lives."""
    try:
        return locks.is_taken(WORKER_LOCK)
    except OSError:
        return False


def troubles_of(sources: list[Source], checked: datetime | None) -> list[Trouble]:
    """What is wrong with Larder itself, and with what it reads."""
    known = {source.name: source for source in sources}
    worker, broker = worker_runs(), queue.is_reachable()
    found = [*program_troubles(worker=worker, broker=broker), *source_troubles(known)]
    if (
        worker
        and broker
        and checked
        and timezone.now() - checked > OLD
        and (looking := known.get("looking"))
        and looking.requested
        and timezone.now() - looking.requested < LONG_AT_IT
    ):
        found.append(
            Trouble(
                "slow",
                gettext("The system is slow to answer."),
                gettext("A pool or a disk may hang. What you see is as old as it says."),
            )
        )
    return found


def program_troubles(*, worker: bool, broker: bool) -> Iterator[Trouble]:
    if not worker:
        yield Trouble(
            "worker",
            gettext("Larder's worker is not running."),
            gettext(
                "What you see may be old, and nothing can be changed until it runs again. It restarts by "
                "itself; if that does not help, restart the box or run: systemctl restart larder-worker"
            ),
        )
    if not broker:
        yield Trouble(
            "queue",
            gettext("Larder's queue (Redis) is not running."),
            gettext(
                "Changes you confirm now wait until it is back. Your pools and shares go on working. On the "
                "box: systemctl restart redis-server@larder"
            ),
        )
    if not paths.AGENT_SOCKET.exists():
        yield Trouble(
            "agent",
            gettext("Larder's agent cannot be reached."),
            gettext(
                "Pages can be read, but nothing can be changed. On the box: systemctl restart "
                "larder-agent.socket larder-agent.service"
            ),
        )


def source_troubles(known: Mapping[str, Source]) -> Iterator[Trouble]:
    if (zfs := known.get("zfs")) and zfs.error:
        yield Trouble(
            "zfs",
            zfs.error,
            gettext(
                "Your data is not touched by this, but it cannot be reached. It often follows a kernel "
                "update: restart the box; if that does not help, run: dpkg-reconfigure zfs-dkms"
            ),
        )
    if (edits := known.get("by-hand")) and edits.error:
        yield Trouble(
            "by-hand",
            edits.error,
            gettext(
                "Larder does not write over it: until you decide, changes of those shares are refused. What "
                "is shared now goes on."
            ),
            "edits",
        )
    if (targets := known.get("targets-by-hand")) and targets.error:
        yield Trouble(
            "targets-by-hand",
            targets.error,
            gettext(
                "Larder does not change it: until you decide, changes of that share are refused. It goes on "
                "as it is until the box restarts."
            ),
            "edits",
        )
    for name in READ:
        if (source := known.get(name)) and source.error:
            yield Trouble(
                f"source-{name}",
                gettext("Larder could not read the {name}.").format(name=text_of(source_text(name).name)),
                source.error,
            )


def service_status(request: HttpRequest) -> ServiceStatus:
    """The state, read once per request: one query."""
    known: ServiceStatus | None = getattr(request, "larder_state", None)
    if known is None:
        sources = list(Source.objects.all())
        ages = [source.checked for source in sources if source.name in READ and source.checked]
        known = ServiceStatus(sources, checked=min(ages) if ages else None)
        known.troubles = troubles_of(sources, known.checked)
        request.larder_state = known  # type: ignore[attr-defined]
    return known
