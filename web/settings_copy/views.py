"""The settings in a record: what they would change here, bringing them back, and writing the record now."""

from __future__ import annotations

import logging

import msgspec
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext, ngettext
from django.views.decorators.http import require_GET, require_http_methods

from appliance.errors import LarderError, Reason, explain_error
from appliance.recovery import records
from appliance.recovery.write_record import WriteRecord
from web.backups import recovery, status
from web.backups.recovery import OtherBox
from web.inventory.fact_row import look_up_or_none
from web.jobs import confirm
from web.jobs.refusals import refusals_lead_to
from web.settings_copy import current, hand_over, offers, restore
from web.settings_copy.offers import GroupOffer, SettingsOffer
from web.translation import reason_text, text_of

log = logging.getLogger(__name__)

STILL_RUNNING = Reason(
    "other-box-may-run",
    "Tick that the other box is switched off for good, or leave out the notifications: both boxes would send mail.",
    field="off",
)
NOTHING_CHOSEN = Reason("settings-none-chosen", "Choose at least one group.", field="group")


class TickedGroups(msgspec.Struct, frozen=True):
    """What was ticked."""

    chosen: tuple[GroupOffer, ...]
    error: Reason | None


def find_record(key: str, box: str) -> OtherBox:
    """The record of this or another box on a pool. Raises Http404."""
    facts = status.read_facts(look_up_or_none)
    pool = next((one for one in facts.pools if str(one.guid) == key), None)
    mark = records.marks_of(facts.dataset(pool.name)).find(box) if pool else None
    if pool is None or mark is None:
        raise Http404
    return OtherBox(pool, mark)


def read_answers(request: HttpRequest, offer: SettingsOffer, *, other: bool) -> TickedGroups:
    """The groups that were ticked, and what is missing."""
    names = set(request.POST.getlist("group"))
    chosen = tuple(one for one in offer.groups if one.group in names)
    mail = any(one.group == "notifications" for one in chosen)
    if not chosen:
        return TickedGroups(chosen, NOTHING_CHOSEN)
    return TickedGroups(chosen, STILL_RUNNING if mail and other and request.POST.get("off") != "on" else None)


@require_http_methods(["GET", "POST"])
@refusals_lead_to("recovery")
def show_settings(request: HttpRequest, key: str, box: str) -> HttpResponse:
    """Review what the settings of a record change here; confirmed, write what was chosen and shown."""
    record = find_record(key, box)
    found = hand_over.read_recorded(record.pool.name, box)
    user = request.user.get_username()
    offer = offers.compare(found, user)
    former = record.is_own and found.settings.made != current.database_made()
    answers, changed = TickedGroups((), None), False
    if request.method == "POST":
        if request.POST.get("keep") == "today" and former:
            return finish(
                request, record, found.settings.made, gettext("From now on the records have today’s settings.")
            )
        changed = request.POST.get("shown") != offer.fingerprint
        answers = read_answers(request, offer, other=not record.is_own)
        if not changed and answers.error is None:
            count = restore.bring_back(answers.chosen, by=user, box=box, own=record.is_own)
            log.info("%s brought back %d settings of %s", user, count, record.mark.host)
            text = ngettext("{count} setting was brought back.", "{count} settings were brought back.", count)
            return finish(request, record, found.settings.made if former else 0, text.format(count=count))
    context = {
        "record": record,
        "at": recovery.moment(found.settings.written or record.mark.at),
        "offer": offer,
        "former": former,
        "chosen": {one.group for one in answers.chosen} if request.method == "POST" else default_groups(offer, record),
        "error": reason_text(answers.error) if answers.error and not changed else "",
        "changed": changed,
    }
    failed = 409 if changed else 400 if answers.error else 200
    return render(request, "backups/settings.html", context, status=failed)


def default_groups(offer: SettingsOffer, record: OtherBox) -> set[str]:
    """What is ticked at first: nothing that replaces a setting, and no mail of a box that may still run."""
    return {one.group for one in offer.groups if not one.replaces and (record.is_own or one.group != "notifications")}


def finish(request: HttpRequest, record: OtherBox, former: int, said: str) -> HttpResponse:
    """Say what was done, and have the record get the settings as they are now. ``former`` 0: nothing was decided."""
    messages.success(request, said)
    if former:
        try:
            if hand_over.take_over(former).kept:
                confirm.start_without_review(WriteRecord.of(record.pool), user=request.user.get_username())
            else:
                messages.error(
                    request, gettext("The records keep other settings of this box. Look at the other pools.")
                )
        except LarderError as error:
            log.warning("the record does not get the settings of today: %s", error)
            messages.error(request, text_of(explain_error(error)))
    return redirect("recovery")


@require_GET
@refusals_lead_to("recovery")
def write_record(request: HttpRequest, key: str) -> HttpResponse:
    """Review writing the record of this box to a pool now."""
    pool = next((one for one in status.read_facts(look_up_or_none).pools if str(one.guid) == key), None)
    if pool is None:
        raise Http404
    try:
        hand_over.hand_over()  # so that the record has the settings of this moment
    except LarderError as error:
        log.warning("the settings were not handed over for the record: %s", error)
    return confirm.review(request, WriteRecord.of(pool), back=reverse("recovery"))
