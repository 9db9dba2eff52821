"""How long an operation takes, for its review: what was measured on its pool counts."""

from __future__ import annotations

from django import template

from appliance.facts.box import Facts
from appliance.operation import Operation
from web.jobs.durations import EstimateFacts, duration_of
from web.pools.rebuild_time import past_work

register = template.Library()


@register.simple_tag
def how_long(operation: Operation, facts: Facts) -> str:
    """The sentence: an estimate with its basis, or what it depends on."""
    return duration_of(operation, EstimateFacts(facts, past_work))
