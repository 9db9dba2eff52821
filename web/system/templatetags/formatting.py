"""Numbers in templates, in the words that plans and mails use too."""

from __future__ import annotations

from datetime import datetime
from functools import lru_cache
from typing import Any

from django import template
from django.template import defaultfilters
from django.templatetags.static import static
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import get_language, gettext, ngettext

from appliance import formatting
from appliance.alerts import alert_kind
from appliance.files.posix_acl import MAY
from web.inventory import vdev_roles
from web.system.glossary import GLOSSARY
from web.translation import lazy_text, text_of

register = template.Library()
register.filter("role_word", vdev_roles.role_word)
register.filter("size", formatting.size_text)
register.filter("disk_size", formatting.disk_size)
register.filter("memory", formatting.binary_text)
register.filter("rate", formatting.rate_text)
register.filter("duration", formatting.duration_text)
register.filter("days", formatting.about_days)
register.filter("glossary", lambda term: GLOSSARY[term])
register.filter("may", lambda level: MAY[level])

ICONS = {
    "healthy": "check",
    "working": "loader",
    "notice": "info",
    "attention": "triangle-alert",
    "failed": "octagon-x",
    "asleep": "moon",
    "empty": "circle",
    "unknown": "circle-help",
    "repaired": "repair",
    "locked": "lock",
}
UNITS = (("year", 31557600), ("month", 2629800), ("day", 86400), ("hour", 3600), ("minute", 60), ("second", 1))
STATE_WORDS = {
    "healthy": lazy_text("healthy"),
    "working": lazy_text("working"),
    "notice": lazy_text("notice"),
    "attention": lazy_text("attention"),
    "failed": lazy_text("failed"),
    "asleep": lazy_text("asleep"),
    "empty": lazy_text("empty"),
    "unknown": lazy_text("unknown"),
    "repaired": lazy_text("repaired itself"),
    "locked": lazy_text("locked"),
}
STATE_NAMES = {**STATE_WORDS, "repaired": lazy_text("repaired")}
JOB_STATES = {
    "queued": "empty",
    "running": "working",
    "waiting": "attention",
    "done": "healthy",
    "failed": "failed",
    "refused": "attention",
    "cancelled": "empty",
    "interrupted": "attention",
}
SWEEP_STATES = {
    "queued": "empty",
    "running": "working",
    "pausing": "working",
    "paused": "attention",
    "cancelling": "working",
    "cancelled": "empty",
    "done": "healthy",
}


@register.filter
def ago(at: datetime) -> str:
    """How long ago, as ``larder.js`` says it, so that nothing moves when it takes over."""
    seconds = (at - timezone.now()).total_seconds()
    if abs(seconds) < 2:
        return gettext("just now")
    unit, size = next(((unit, size) for unit, size in UNITS if abs(seconds) >= size), UNITS[-1])
    count = int(abs(seconds) / size)
    words = count_units(unit, count)
    return gettext("in {words}").format(words=words) if seconds > 0 else gettext("{words} ago").format(words=words)


def count_units(unit: str, count: int) -> str:
    """``3 hours``."""
    words = {
        "year": ngettext("{count} year", "{count} years", count),
        "month": ngettext("{count} month", "{count} months", count),
        "day": ngettext("{count} day", "{count} days", count),
        "hour": ngettext("{count} hour", "{count} hours", count),
        "minute": ngettext("{count} minute", "{count} minutes", count),
        "second": ngettext("{count} second", "{count} seconds", count),
    }
    return words[unit].format(count=text_of(formatting.number_text(f"{count:,}")))


@register.simple_tag
@lru_cache(maxsize=256)  # a page draws a hundred icons
def icon(name: str, extra: str = "") -> SafeString:
    """One icon out of the file of all, and a space; ``extra`` are further classes."""
    classes = f"icon {extra}".strip()
    return format_html(
        '<svg class="{}" aria-hidden="true"><use href="{}#{}"></use></svg>\n', classes, static("icons.svg"), name
    )


@register.filter
def state_icon(state: str) -> str:
    """The icon that goes with a state; states are never told by colour alone."""
    return ICONS.get(state, "circle-help")


@register.filter
def state_word(state: str) -> str:
    return STATE_WORDS.get(state, state)


@register.filter
def state_name(state: str) -> str:
    """The word beside the icon of a state that has no word of its own."""
    return STATE_NAMES.get(state, state)


@register.filter
def severity_word(severity: str) -> str:
    return text_of(alert_kind.severity_word(severity))


@register.filter(is_safe=True)
def capfirst(text: str) -> str:
    """Django's, for messages of ``appliance/`` too."""
    return defaultfilters.capfirst(text_of(text))


@register.filter(expects_localtime=True, is_safe=False)
def date(at: datetime | None, pattern: str | None = None) -> str:
    """Django's, with abbreviated months as the language writes them: ``17 Jan``, but ``17 jan`` in Dutch."""
    if pattern and not (get_language() or "en").startswith("en"):
        pattern = pattern.replace("M", "b")  # M has a capital in every language
    return str(defaultfilters.date(at, pattern))


@register.filter
def number(value: float) -> str:
    """A number that is read: with the marks of the reader's language."""
    return text_of(formatting.number_text(f"{value:,}"))


@register.filter
def job_state(state: str) -> str:
    """A job's state as one of the states that pages draw."""
    return JOB_STATES.get(str(state), "unknown")


@register.filter
def sweep_state(state: str) -> str:
    """A measurement's state as one of the states that pages draw."""
    return SWEEP_STATES.get(str(state), "unknown")


@register.filter
def exact(size: int) -> str:
    """Bytes in full, for hovering over a rounded size: ``4,000,787,030,016 bytes``."""
    return gettext("{size} bytes").format(size=text_of(formatting.number_text(f"{size:,}")))


@register.filter
def used_of(used: int, total: int) -> str:
    """Used and whole space with the unit once where both have the same: ``5.1 of 8.2 TB``."""
    number, _space, unit = text_of(formatting.size_text(used)).partition(" ")
    whole = text_of(formatting.size_text(total))
    return (
        gettext("{number} of {whole}").format(number=number, whole=whole)
        if whole.endswith(f" {unit}")
        else gettext("{number} {unit} of {whole}").format(number=number, unit=unit, whole=whole)
    )


BROWSERS = (("Edg", "Edge"), ("OPR/", "Opera"), ("Firefox/", "Firefox"), ("Chrome/", "Chrome"), ("Safari/", "Safari"))
SYSTEMS = (
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Android", "Android"),
    ("Windows", "Windows"),
    ("Mac OS X", "Mac"),
    ("CrOS", "Chromebook"),
    ("Linux", "Linux"),
)


@register.filter
def is_under(path: str, top: str) -> bool:
    """Whether an address lies below another one; nothing lies below the overview or below no address."""
    return top not in {"", "/"} and path.startswith(top)


@register.filter
def browser(agent: str) -> str:
    """What a browser calls itself, in two words: ``Firefox on Windows``; as it is where it says neither."""
    name = next((name for mark, name in BROWSERS if mark in agent), "")
    system = next((name for mark, name in SYSTEMS if mark in agent), "")
    if name and system:
        return gettext("{browser} on {system}").format(browser=name, system=system)
    return name or system or agent[:60] or gettext("unknown")


@register.filter
def steps_of(job: Any) -> list[dict[str, Any]]:
    """The job's steps, each with the state that its mark shows; the first not done is where it works or ended."""
    here = {"running": "working", "failed": "failed", "interrupted": "attention"}.get(str(job.state), "")
    found = []
    for step in job.steps:
        found.append({**step, "state": "healthy" if step["done"] else here})
        here = here if step["done"] else ""
    return found
