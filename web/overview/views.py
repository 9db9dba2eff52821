"""The overview."""

from __future__ import annotations

from dataclasses import dataclass, replace

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_GET

from web import live
from web.alerts.models import Alert
from web.datasets.views import Folder, build_folders
from web.inventory import present
from web.inventory.models import Activity, DatasetRow, Progress
from web.jobs.models import Job
from web.system import service_status

WORST_FIRST = ("failed", "attention", "locked", "repaired", "working")
SHOWN = 8
# What a pool's verdict says as long as it is so. These alerts settle for a while after their end.
SAID_BY_POOLS = {"pool.stopped", "pool.bare", "pool.weakened", "pool.offline", "pool.damaged", "pool.errors"}


@dataclass(frozen=True)
class Attention:
    """One thing to know, with what to do about it. ``more`` is on the first: how many follow."""

    state: str
    headline: str
    meaning: str = ""
    link: str = ""
    link_text: str = ""
    more: int = 0


def collect_attention(
    box: present.Box, troubles: list[service_status.Trouble], waiting: list[Job], checked: object
) -> list[Attention]:
    """What the owner should know, the worst first; one calm line where nothing is wrong."""
    found = [
        Attention(
            "repaired" if card.state == "repaired" else card.verdict.state,
            card.verdict.headline,
            card.verdict.meaning,
            f"/pools/{card.key}/",
            "What to do",
        )
        for card in box.cards
        if card.verdict.state in {"failed", "attention"}
    ]
    found += [
        Attention(
            "locked",
            f"{card.pool.name} is locked.",
            "Its files can be reached once you unlock it.",
            f"{reverse('unlock')}?{urlencode({'dataset': card.pool.name})}",
            f"Unlock {card.pool.name}",
        )
        for card in box.cards
        if card.locked
    ]
    found += [Attention("attention", trouble.headline, trouble.meaning) for trouble in troubles]
    told = {card.key for card in box.cards if card.verdict.state in {"failed", "attention"}}
    cards = {card.key for card in box.cards}
    found += [
        Attention(
            {"critical": "failed", "warning": "attention"}.get(alert.severity, "repaired"),
            alert.summary,
            alert.detail,
            reverse("alert", args=[alert.pk]),
            "What to do",
        )
        for alert in Alert.objects.filter(state=Alert.State.OPEN, gone=None)[:40]
        if alert.wants_somebody
        and (subject := alert.subject.split("/")[0]) not in told  # the pool's own line says it already
        and not (alert.kind in SAID_BY_POOLS and subject in cards)  # as the pool is now, it is over
    ]
    found += [
        Attention(
            "attention",
            f"{job.title}: {job.get_state_display().lower()}.",
            job.text,
            f"/jobs/{job.pk}/",
            "See what happened",
        )
        for job in waiting
    ]
    found.sort(key=lambda item: WORST_FIRST.index(item.state))
    if found:
        return [replace(found[0], more=len(found) - 1), *found[1:]]
    if checked is None:
        return [Attention("working", "Larder is looking at this box for the first time.", "This takes a few seconds.")]
    if not box.cards:
        return [Attention("healthy", "All is well. There is no pool yet.")]
    return [Attention("healthy", "All is well.")]


def shared_folders() -> list[Folder]:
    """The folders that people reach from other computers, or that are on the way there."""
    rows = DatasetRow.objects.filter(facts__contains='"share_source":"local"').order_by("name")[:100]
    return [folder for folder in build_folders(list(rows)) if folder.shared][:SHOWN]


@require_GET
def show_overview(request: HttpRequest) -> HttpResponse:
    """Is my data safe, is anything happening, what should I do."""

    def build() -> dict[str, object]:
        now = service_status.service_status(request)
        box = present.box()
        unseen = list(
            Job.objects.filter(
                acknowledged=None, state__in=[Job.State.FAILED, Job.State.REFUSED, Job.State.INTERRUPTED]
            ).defer("plan", "log", "operation")[:20]
        )
        under_way = list(Job.objects.filter(state__in=Job.OPEN).defer("plan", "log", "operation")[:20])
        progress = {row.job: row for row in Progress.objects.filter(job__in=[job.pk for job in under_way])}
        free = [bay for bay in box.bays if bay.state == "empty"]
        worst, *others = collect_attention(box, now.troubles, unseen, now.checked)
        return {
            "attention": worst,
            "others": others,
            "box": box,
            "cards": box.cards,
            "free": len(free),
            "activities": list(Activity.objects.filter(state__in=Activity.UNDER_WAY)),
            "jobs": [(job, progress.get(job.pk)) for job in under_way],
            "ended": unseen,
            "shared": shared_folders(),
        }

    return live.respond(request, "overview/overview.html", build)
