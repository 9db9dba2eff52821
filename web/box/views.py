"""What the box is and how it is doing, and the reviews of restarting it and switching it off."""

from __future__ import annotations

from datetime import timedelta

import msgspec
from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext, ngettext
from django.views.decorators.http import require_GET

from appliance.errors import LarderError, Reason, Refused, explain_error
from appliance.formatting import names_text
from appliance.shares.connections import Connection
from appliance.system.box_info import BoxInfo, Port
from appliance.system.power import PowerOperation, RestartBox, ShutDownBox
from web import agent, live
from web.inventory import store
from web.inventory.fact_row import OddRow
from web.inventory.models import BoxRow, Source
from web.inventory.source_names import BOX
from web.jobs import confirm, queue
from web.jobs.models import Job
from web.jobs.refusals import refusals_lead_to
from web.language import language_of_box
from web.translation import text_of

FRESH = timedelta(seconds=3)
SECONDS_TO_ASK_FOR_CLIENTS = 15.0
NAMED = 5  # clients, and jobs, in a sentence
ACTS: dict[str, type[PowerOperation]] = {"restart": RestartBox, "shut-down": ShutDownBox}


class PortLine(msgspec.Struct, frozen=True):
    """A network port with what moves through it now, in bytes a second; None while that is not known yet."""

    port: Port
    receiving: int | None
    sending: int | None


@require_GET
def show_box(request: HttpRequest) -> HttpResponse:
    """The box as of some seconds ago; looking at the page reads it again."""
    if store.claim_refresh(BOX, not_since=timezone.now() - FRESH):
        queue.send("workers.read_box")

    def build() -> dict[str, object]:
        row, source = BoxRow.objects.first(), Source.objects.filter(name=BOX).first()
        trouble = source.error if source else ""
        if row is None:
            return {"trouble": trouble}
        try:
            info: BoxInfo = row.fact
        except OddRow as odd:
            return {"trouble": explain_error(odd)}
        started = source.checked - timedelta(seconds=info.uptime) if source and source.checked else None
        lines = [PortLine(port, *row.rates.get(port.name, (None, None))) for port in info.ports]
        return {
            "info": info,
            "started": started,
            "trouble": trouble,
            "lines": lines,
            "language": dict(settings.LANGUAGES).get(language_of_box(), ""),
            "now": date_format(timezone.localtime(), "d F Y, H:i (T)"),
        }

    return live.respond(request, "box/box.html", build)


@require_GET
@refusals_lead_to("box")
def review_power(request: HttpRequest, act: str) -> HttpResponse:
    """The review of restarting the box or switching it off: who is connected and what runs comes first."""
    if act not in ACTS:
        raise Http404
    row = BoxRow.objects.first()
    if row is None:
        raise Refused(Reason("box-not-read", "Larder is still reading this box. Try again in a few seconds."))
    notice = f"{describe_clients()} {describe_jobs()}".strip()
    return confirm.review(request, ACTS[act](boot=row.fact.boot), back=reverse("box"), notice=notice)


def describe_clients() -> str:
    """Who has a share open now, in a sentence."""
    try:
        answer = agent.last({"verb": "read-connections"}, silence=SECONDS_TO_ASK_FOR_CLIENTS).get("facts", [])
        found = msgspec.convert(answer, list[Connection])
    except (LarderError, msgspec.ValidationError):
        return gettext("Larder could not find out who is connected.")
    if not found:
        return gettext("Nobody is connected.")
    names = sorted({f"{one.user or gettext('a guest')} ({one.machine or one.protocol})" for one in found})
    return ngettext(
        "{names} is connected and will lose the connection.",
        "{names} are connected and will lose the connection.",
        len(names),
    ).format(names=text_of(names_text(names, NAMED)))


def describe_jobs() -> str:
    """The jobs under way, in a sentence; empty where there are none."""
    titles = [job.title for job in Job.objects.filter(state__in=Job.OPEN).only("title", "said")]
    listed = text_of(names_text(titles, NAMED, "; "))
    return gettext("These jobs will be interrupted: {titles}.").format(titles=listed) if titles else ""
