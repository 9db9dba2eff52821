"""The time zones that a form offers, and the one that is chosen when the box is set up."""

from __future__ import annotations

from django.utils.translation import gettext

from appliance.errors import Refused
from appliance.system import time_zone
from appliance.system.service_start import SYSTEMD
from appliance.system.time_zone import SetTimeZone
from web.jobs import confirm
from web.translation import reason_text

Choices = list[tuple[str, str] | tuple[str, list[tuple[str, str]]]]


def list_choices(chosen: str | None) -> Choices:
    """The zones by region, each under the name of its place; an empty one first if ``chosen`` is not among them."""
    zones = time_zone.list_zones()
    regions: dict[str, list[tuple[str, str]]] = {}
    for zone in zones:
        region, slash, place = zone.partition("/")
        if slash:
            regions.setdefault(region, []).append((zone, place.replace("_", " ").replace("/", ", ")))
    return [
        *([] if chosen in zones else [("", gettext("Choose a time zone"))]),
        *((zone, zone) for zone in zones if "/" not in zone),
        *regions.items(),
    ]


def can_be_set() -> bool:
    """Whether the zone is the box's own: a container has that of its host."""
    return SYSTEMD.is_dir()


def set_first_zone(zone: str, *, user: str) -> str:
    """Start the job that sets the zone chosen at set-up; a sentence where that cannot be, empty otherwise."""
    if not zone or zone == time_zone.read_zone_name():
        return ""
    try:
        confirm.start_without_review(SetTimeZone(zone=zone), user=user)
    except Refused as refusal:
        reasons = " ".join(reason_text(reason) for reason in refusal.reasons)
        return gettext("The time zone was not set. {reasons} You can set it on the System page.").format(
            reasons=reasons
        )
    return ""
