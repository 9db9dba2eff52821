"""What the page of a job that shared a folder shows in the end: the address for the computer that asks."""

from __future__ import annotations

import re

import msgspec
from django import template
from django.http import HttpRequest

from appliance.agent.registry import decode_operation
from appliance.errors import Refused
from appliance.shares.addresses import AddressWay, share_addresses
from appliance.shares.settings import PROTOCOLS
from appliance.users.share_folder import ShareFolder, child_of
from web.inventory.models import DatasetRow
from web.jobs.models import Job
from web.shares.box_address import box_host, box_numbers
from web.translation import lazy_text

register = template.Library()
# What a browser calls its computer, and what addresses call it. An iPad may call itself a Mac: both take the same address.
COMPUTERS = (
    (r"iPhone|iPad", lazy_text("iPhone and iPad")),
    (r"Android", "Android"),
    (r"Windows", "Windows"),
    (r"Macintosh|Mac OS X", lazy_text("Mac")),
    (r"Linux|X11", lazy_text("Linux, on the desktop")),
)


class ShareResult(msgspec.Struct, frozen=True):
    """``first`` is for the computer that asks, ``others`` for all others. ``key``: of the folder's page, if it is known."""

    dataset: str
    key: str
    first: AddressWay
    others: tuple[AddressWay, ...]
    numbers: list[str]


def computer_of(user_agent: str) -> str:
    """The computer that a browser runs on, as the addresses name it; empty if it does not say."""
    return next((computer for pattern, computer in COMPUTERS if re.search(pattern, user_agent)), "")


@register.simple_tag(takes_context=True)
def share_result(context: dict[str, object], job: Job) -> ShareResult | None:
    """How to open the folder that this job has shared; None for any other job."""
    request = context.get("request")
    if job.kind != "share-folder" or job.state != Job.State.DONE or not isinstance(request, HttpRequest):
        return None
    try:
        operation = decode_operation(job.operation)
    except Refused:
        return None
    return result_of(operation, request.headers.get("User-Agent", "")) if isinstance(operation, ShareFolder) else None


def result_of(operation: ShareFolder, user_agent: str) -> ShareResult | None:
    """The addresses of what was shared. A folder that is new may not be in the inventory yet: then it is where it was made."""
    parent = operation.dataset.rpartition("/")[0]
    rows = {row.name: row for row in DatasetRow.objects.filter(name__in=(operation.dataset, parent))}
    row = rows.get(operation.dataset)
    place = row.fact if row else child_of(rows[parent].fact, operation.dataset) if parent in rows else None
    host, path = box_host(), place.mountpoint if place else ""
    ways = [
        way
        for protocol in PROTOCOLS
        if path or protocol != "nfs"
        for way in share_addresses(operation.setting, protocol, host=host, path=path)
    ]
    if not ways:
        return None
    computer = computer_of(user_agent)
    first = next((way for way in ways if way.computer == computer), ways[0])
    return ShareResult(
        operation.dataset, row.key if row else "", first, tuple(way for way in ways if way != first), box_numbers()
    )
