"""What bringing back the settings of a record would change here, group by group: pure comparing and describing."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
from django.conf import settings
from django.contrib.auth import get_user_model
from django.utils.translation import gettext

from appliance.alerts.alert_kind import severity_word
from appliance.alerts.kinds import KINDS
from appliance.errors import Reason
from appliance.recovery.box_settings import GROUPS, BoxSettings, FoundSettings, SettingGroups, unknown_setting
from appliance.recovery.settings_entries import Notifications
from web.alerts import mail_form
from web.inventory.models import PoolRow
from web.settings_copy import current
from web.translation import lazy_text, reason_text, text_of

SHOWN = 100  # entries of a group that the page names
TITLES = {
    "box": lazy_text("Language of this box"),
    "notifications": lazy_text("Notifications"),
    "levels": lazy_text("Alert levels"),
    "accepted": lazy_text("Accepted values of disks"),
    "disks": lazy_text("Self-tests and sleep of single disks"),
    "self_tests": lazy_text("Self-test schedule"),
    "care": lazy_text("Scrub and trim schedules"),
    "price": lazy_text("Price of disks"),
    "growth": lazy_text("Plans for larger disks"),
    "bays": lazy_text("Bays"),
    "pages": lazy_text("Language and units"),
    "snapshots": lazy_text("Records of automatic snapshots"),
}
# What is here already stays: a plan may have gone on, and a record may have got more.
ADDED_ONLY = {"growth", "snapshots"}


class SettingChange(msgspec.Struct, frozen=True):
    """One entry: what it becomes, and what it is here; empty where there is none."""

    text: str
    here: str = ""


class GroupOffer(msgspec.Struct, frozen=True):
    """A group that is not here as it is in the record."""

    group: str
    entries: tuple[Any, ...]
    changes: tuple[SettingChange, ...]

    @property
    def title(self) -> str:
        return TITLES[self.group]

    @property
    def count(self) -> int:
        return len(self.entries)

    @property
    def replaces(self) -> bool:
        """Whether something that is set here would change: chosen only by who sees it."""
        return any(change.here for change in self.changes)

    @property
    def listed(self) -> tuple[SettingChange, ...]:
        """What the page names: all that is replaced, and the first of what is new."""
        replaced = [one for one in self.changes if one.here]
        added = [one for one in self.changes if not one.here]
        return (*replaced, *added[:SHOWN])

    @property
    def more(self) -> int:
        return len(self.changes) - len(self.listed)


class SettingsOffer(msgspec.Struct, frozen=True):
    """All groups that would change something, and what cannot be brought back."""

    settings: BoxSettings
    groups: tuple[GroupOffer, ...]
    left_out: tuple[tuple[str, int, str], ...]  # title, count, why
    fingerprint: str

    def group(self, name: str) -> GroupOffer | None:
        return next((one for one in self.groups if one.group == name), None)


def compare(found: FoundSettings, user: str) -> SettingsOffer:
    """What bringing back these settings would change, for the administrator who asks."""
    here = current.read_settings().groups
    left_out = [(TITLES.get(one.group, one.group), one.count, reason_text(one.reason)) for one in found.left_out]
    wanted = adapt_pages(found.settings.groups, user)
    groups = []
    for group in GROUPS:
        usable, against = [], []
        for entry in getattr(wanted, group):
            reason = next(reasons_against(group, entry), None)
            against.append(reason) if reason else usable.append(entry)
        if against:
            left_out.append((TITLES[group], len(against), reason_text(against[0])))
        if offer := offer_group(group, usable, getattr(here, group)):
            groups.append(offer)
    covered = found.settings.text + here.digest_text
    return SettingsOffer(found.settings, tuple(groups), tuple(left_out), hashlib.sha256(covered).hexdigest())


def offer_group(group: str, wanted: list[Any], here: tuple[Any, ...]) -> GroupOffer | None:
    """The entries that are missing or different here; None where all are as in the record."""
    known = {one.key: one for one in here}
    entries = [one for one in wanted if known.get(one.key) != one and not (group in ADDED_ONLY and one.key in known)]
    if not entries:
        return None
    describe = DESCRIBED[group]
    changes = tuple(
        SettingChange(describe(one), describe(known[one.key]) if one.key in known else "") for one in entries
    )
    return GroupOffer(group, tuple(entries), changes)


def adapt_pages(groups: SettingGroups, user: str) -> SettingGroups:
    """The choices of a single administrator are those of the one who asks, whatever each is called."""
    users = get_user_model().objects.count()
    if len(groups.pages) != 1 or users != 1:
        return groups
    return msgspec.structs.replace(groups, pages=(msgspec.structs.replace(groups.pages[0], user=user),))


def reasons_against(group: str, entry: Any) -> Iterator[Reason]:
    """Why an entry means nothing on this box, or is none that a page would take."""
    if group == "levels" and entry.kind not in KINDS:
        yield unknown_setting()
    if group in {"box", "pages"} and entry.language and entry.language not in dict(settings.LANGUAGES):
        yield unknown_setting()
    if group == "pages" and not get_user_model().objects.filter(username=entry.user).exists():
        yield Reason("setting-user-missing", "Nobody of that name signs in to this box.")
    if group == "notifications":
        yield from reasons_against_mail(entry)


def reasons_against_mail(entry: Notifications) -> Iterator[Reason]:
    """What the form of notifications would refuse."""
    for address in (*entry.critical, *entry.warning, *entry.notice):
        yield from mail_form.reasons_against_address("critical", address)
    if entry.address:
        yield from mail_form.reasons_against_link("address", entry.address)
    if entry.host and entry.authority:
        yield from mail_form.reasons_against_certificate(entry.authority)
    if entry.host and entry.user and entry.security == "none":
        yield Reason("mail-password-unencrypted", "A password is not sent over an unencrypted connection.")


# --- describing -------------------------------------------------------------------------------------------------
def pool_name(guid: str) -> str:
    row = PoolRow.objects.filter(key=guid).first()
    return str(row.name) if row else gettext("a pool that is not connected")


def describe_mail(one: Notifications) -> str:
    """Everything that decides who is notified of what, and whom the box believes: each of these could be made up."""
    how = {"none": gettext("not encrypted")}.get(one.security, one.security.upper())
    server = (
        f"{one.host}:{one.port} ({', '.join(filter(None, (how, one.user)))})" if one.host else gettext("no mail server")
    )
    parts = [
        describe_recipients(one),
        gettext("through {server}").format(server=server),
        gettext("quiet from {first} to {last}, daily summary at {hour}").format(
            first=f"{one.quiet_from}:00", last=f"{one.quiet_to}:00", hour=f"{one.digest_hour}:00"
        ),
        gettext("with a weekly report") if one.weekly else "",
        gettext("sent as {address}").format(address=one.sender) if one.sender else "",
        gettext("links to {address}").format(address=one.address) if one.address else "",
        gettext("also trusting the certificate {sum}").format(sum=short_sum(one.authority)) if one.authority else "",
    ]
    return "; ".join(filter(None, parts))


def describe_recipients(one: Notifications) -> str:
    critical, warning, notice = (
        ", ".join(level) or gettext("nobody") for level in (one.critical, one.warning, one.notice)
    )
    if critical == warning == notice:
        return gettext("To {recipients}").format(recipients=critical)
    return gettext("Critical alerts to {critical}, warnings to {warning}, notices to {notice}").format(
        critical=critical, warning=warning, notice=notice
    )


def short_sum(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def language_name(code: str) -> str:
    return dict(settings.LANGUAGES).get(code, code)


def describe_level(one: Any) -> str:
    name = text_of(KINDS[one.kind].name) if one.kind in KINDS else one.kind
    return f"{name}: {text_of(severity_word(one.severity))}"


def describe_disk(one: Any) -> str:
    tested = gettext("tested by the schedule") if one.tested else gettext("not tested by the schedule")
    if one.sleep is None:
        return f"{one.disk}: {tested}"
    sleep = (
        gettext("sleeps after {minutes} minutes").format(minutes=one.sleep) if one.sleep else gettext("never sleeps")
    )
    return f"{one.disk}: {tested}, {sleep}"


def describe_hours(one: Any) -> str:
    return f"{one.first}:00–{one.last}:00"


def describe_care(one: Any) -> str:
    if one.every == "never":
        return gettext("{kind} of {pool}: never").format(kind=kind_word(one.kind), pool=pool_name(one.pool))
    return gettext("{kind} of {pool}: {every}, {hours}").format(
        kind=kind_word(one.kind), pool=pool_name(one.pool), every=every_word(one.every), hours=describe_hours(one)
    )


def kind_word(kind: str) -> str:
    return gettext("Scrub") if kind == "scrub" else gettext("Trim")


def every_word(every: str) -> str:
    words = {
        "week": gettext("every week"),
        "month": gettext("every month"),
        "quarter": gettext("every quarter"),
        "never": gettext("never"),
    }
    return words[every]


def describe_self_tests(one: Any) -> str:
    return gettext("Short test {short}, long test {long}, {hours}").format(
        short=every_word(one.short), long=every_word(one.long), hours=describe_hours(one)
    )


def describe_bay(one: Any) -> str:
    return gettext("{port}: bay {name}").format(port=one.port, name=one.label or one.position)


def describe_page(one: Any) -> str:
    return ", ".join([one.user, one.units, language_name(one.language) or "–"])


def describe_growth(one: Any) -> str:
    return ", ".join([one.pool, *(label for _guid, label in one.targets)])


DESCRIBED: dict[str, Callable[[Any], str]] = {
    "box": lambda one: language_name(one.language),
    "notifications": describe_mail,
    "levels": describe_level,
    "accepted": lambda one: f"{one.disk}: {one.count} {one.value}",
    "disks": describe_disk,
    "self_tests": describe_self_tests,
    "care": describe_care,
    "price": lambda one: f"{one.per_tb} {one.currency}",
    "growth": describe_growth,
    "bays": describe_bay,
    "pages": describe_page,
    "snapshots": lambda one: one.guid,
}
