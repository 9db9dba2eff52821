"""The overview page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlencode
from django.utils.translation import gettext
from django.views.decorators.http import require_GET
from msgspec.structs import replace

from web import live
from web.alerts.models import Alert
from web.datasets.views import Folder, build_folders
from web.inventory.box import Box, read_box
from web.inventory.dataset_models import DatasetRow
from web.inventory.models import Activity, Progress
from web.inventory.pool_cards import PoolCard
from web.jobs.models import Job
from web.overview import first_steps, right_now
from web.overview.trends import pool_trends
from web.overview.week import read_week
from web.shares.box_address import BoxAddress, box_host
from web.system import service_status
from web.translation import text_of

WORST_FIRST = ("failed", "attention", "locked", "repaired", "notice", "working")
SHOWN = 8
BAD_STATES = {"failed", "attention"}
# Alerts that repeat a pool's health. They stay open for a while after the fault has ended.
POOL_HEALTH_ALERTS = {
    "pool.stopped",
    "pool.no-redundancy",
    "pool.degraded",
    "pool.offline",
    "pool.damaged",
    "pool.errors",
}


class Attention(msgspec.Struct, frozen=True):
    """One message with what to do about it. The first one counts the others in ``more``."""

    state: str
    headline: str
    meaning: str = ""
    link: str = ""
    link_text: str = ""
    more: int = 0


def pool_messages(cards: Iterable[PoolCard]) -> Iterator[Attention]:
    """Pools that need attention, then locked pools."""
    for card in cards:
        if card.verdict.state in BAD_STATES:
            state = "repaired" if card.state == "repaired" else card.verdict.state
            yield Attention(
                state, card.verdict.headline, card.verdict.meaning, f"/pools/{card.key}/", gettext("What to do")
            )
        if card.locked:
            yield Attention(
                "locked",
                gettext("{name} is locked.").format(name=card.pool.name),
                gettext("Its files can be reached once you unlock it."),
                f"{reverse('unlock')}?{urlencode({'dataset': card.pool.name})}",
                gettext("Unlock {name}").format(name=card.pool.name),
            )


def alert_messages(cards: Iterable[PoolCard]) -> Iterator[Attention]:
    """Open alerts, without those that repeat what is known of a pool."""
    states = {card.key: card.verdict.state for card in cards}
    for alert in Alert.objects.filter(state=Alert.State.OPEN, gone=None)[:40]:
        subject = alert.subject.split("/")[0]
        has_message = states.get(subject) in BAD_STATES
        is_over = subject in states and alert.kind in POOL_HEALTH_ALERTS
        if alert.wants_somebody and not has_message and not is_over:
            yield Attention(
                alert.mark_state, alert.summary, alert.detail, reverse("alert", args=[alert.pk]), gettext("What to do")
            )


def collect_attention(
    box: Box, troubles: list[service_status.Trouble], failed: list[Job], checked: object, *, heard: bool
) -> list[Attention]:
    """All messages, the worst first; one line if nothing is wrong. ``heard``: somebody would be told of a failure."""
    messages = [
        *pool_messages(box.cards),
        *(
            Attention(
                "attention",
                gettext("{name} cannot be shown.").format(name=name),
                gettext(
                    "What Larder stored of it cannot be read. It is read again within a minute. If this "
                    "stays, restart the box."
                ),
            )
            for name in box.odd
        ),
        *(Attention("attention", trouble.headline, trouble.meaning) for trouble in troubles),
        *alert_messages(box.cards),
    ]
    for job in failed:
        headline = f"{text_of(job.title)}: {job.get_state_display().lower()}."
        messages.append(Attention("attention", headline, job.text, f"/jobs/{job.pk}/", gettext("See what happened")))
    messages.sort(key=lambda message: WORST_FIRST.index(message.state))
    if messages:
        return [replace(messages[0], more=len(messages) - 1), *messages[1:]]
    if checked is None:
        return [
            Attention(
                "working",
                gettext("Larder is looking at this box for the first time."),
                gettext("This takes a few seconds."),
            )
        ]
    if not box.cards:
        return [Attention("healthy", gettext("Nothing is wrong. There is no pool yet."))]
    if not heard:
        return [
            Attention(
                "notice",
                gettext("Nothing is wrong now, but nobody would hear of a failure."),
                gettext("Set up notifications, and send a test that arrives."),
                reverse("mail_settings"),
                gettext("Set up notifications"),
            )
        ]
    return [Attention("healthy", gettext("All is well."))]


def shared_folders(request: HttpRequest) -> list[tuple[Folder, str]]:
    """Folders that are shared, or that are being shared, each with its address for the computer that asks."""
    rows = DatasetRow.objects.filter(share_source="local").order_by("name")[:100]
    found = [folder for folder in build_folders(list(rows), BoxAddress(box_host())) if folder.shared]
    return [(folder, folder.address_for(request.headers.get("User-Agent", ""))) for folder in found[:SHOWN]]


@require_GET
def show_overview(request: HttpRequest) -> HttpResponse:
    """The overview: whether the data is safe, what is running, what to do."""
    now = service_status.service_status(request)
    right_now.request_readings(now.sources)

    def build() -> dict[str, object]:
        box = read_box()
        unseen = list(
            Job.objects.filter(acknowledged=None, state__in=Job.BAD_ENDS).defer("plan", "log", "operation")[:20]
        )
        under_way = list(Job.objects.filter(state__in=Job.OPEN).defer("plan", "log", "operation")[:20])
        progress = {row.job: row for row in Progress.objects.filter(job__in=[job.pk for job in under_way])}
        moment = timezone.now()
        trends = pool_trends(box.cards, moment)
        heard, shared = first_steps.is_heard(), shared_folders(request)
        worst, *others = collect_attention(box, now.troubles, unseen, now.checked, heard=heard)
        return {
            "attention": worst,
            "others": others,
            "box": box,
            "cards": [(card, trends.get(card.key)) for card in box.cards],
            "week": read_week(moment),
            "now": right_now.read_right_now(box.bays, now.sources, shared=bool(shared)),
            "activities": list(Activity.objects.filter(state__in=Activity.UNDER_WAY)),
            "jobs": [(job, progress.get(job.pk)) for job in under_way],
            "ended": unseen,
            "shared": shared,
            "steps": first_steps.open_steps(pools=bool(box.cards), shared=bool(shared), heard=heard),
        }

    return live.respond(request, "overview/overview.html", build)
