"""What the page of a job that shared a folder shows in the end: the address for the computer that asks."""

from __future__ import annotations

import msgspec
from django import template
from django.http import HttpRequest

from appliance.agent.registry import decode_operation
from appliance.errors import Refused
from appliance.shares.addresses import AddressWay
from appliance.shares.iscsi.part import PREFIX
from appliance.shares.settings import ShareSetting, Smb
from appliance.users.share_folder import ShareFolder, child_of
from web.inventory.dataset_models import DatasetRow
from web.inventory.fact_row import readable_rows
from web.jobs.models import Job
from web.shares.box_address import BoxAddress, asker_first, box_host, read_box_address

register = template.Library()


class ShareResult(msgspec.Struct, frozen=True):
    """``first`` is for the computer that asks, ``others`` for all others.
    ``key``: of the folder's page, if it is known."""

    dataset: str
    key: str
    first: AddressWay
    others: tuple[AddressWay, ...]
    other_numbers: tuple[str, ...]


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
    return result_of(operation, request) if isinstance(operation, ShareFolder) else None


def result_of(operation: ShareFolder, request: HttpRequest) -> ShareResult | None:
    """The addresses of what was shared. A folder that is new may not be in the inventory yet:
    then it is where it was made."""
    parent = operation.dataset.rpartition("/")[0]
    rows = DatasetRow.objects.filter(name__in=(operation.dataset, parent))
    known = {row.name: (row.key, fact) for row, fact in readable_rows(rows)}
    key, place = known.get(operation.dataset, ("", None))
    if place is None and parent in known:
        place = child_of(known[parent][1], operation.dataset)
    box = read_box_address(request)
    ways = box.all_ways(operation.setting, place.mountpoint if place else "")
    if not ways:
        return None
    first, *others = asker_first(ways, request.headers.get("User-Agent", ""))
    return ShareResult(operation.dataset, key, first, tuple(others), box.other_numbers)


@register.simple_tag
def example_address(name: str, computer: str) -> str:
    """How a share of that name is opened from a kind of computer: an example with the name of this box."""
    setting = ShareSetting(smb=Smb(name=name))
    return next(way.address for way in BoxAddress(box_host()).ways(setting, "smb", "") if way.computer == computer)


@register.simple_tag
def example_target(name: str) -> str:
    """By which name a volume is found over iSCSI: an example."""
    return f"{PREFIX}{name}"
