"""Numbers in templates, in the words that plans and mails use too."""

from __future__ import annotations

from django import template

from appliance import words

register = template.Library()
register.filter("size", words.size_text)
register.filter("maker_size", words.maker_size)

ICONS = {
    "healthy": "check",
    "working": "loader",
    "attention": "triangle-alert",
    "failed": "octagon-x",
    "asleep": "moon",
    "empty": "circle",
    "unknown": "circle-help",
}
STATE_WORDS = {
    "healthy": "works",
    "working": "working",
    "attention": "attention",
    "failed": "failed",
    "asleep": "asleep",
    "empty": "empty",
    "unknown": "unknown",
}
JOB_STATES = {
    "queued": "empty",
    "running": "working",
    "done": "healthy",
    "failed": "failed",
    "refused": "attention",
    "cancelled": "empty",
    "interrupted": "attention",
}


@register.filter
def state_icon(state: str) -> str:
    """The icon that goes with a state; states are never told by colour alone."""
    return ICONS.get(state, "circle-help")


@register.filter
def state_word(state: str) -> str:
    return STATE_WORDS.get(state, state)


@register.filter
def job_state(state: str) -> str:
    """A job's state as one of the states that pages draw."""
    return JOB_STATES.get(str(state), "unknown")


@register.filter
def duration(seconds: int) -> str:
    """Seconds as a person says them: ``3 h 10 min``."""
    if seconds < 90:
        return f"{seconds} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"
