"""The guided replacement of a disk: choose it, take it offline, pull it out, accept the new
one, close with a report."""

from __future__ import annotations

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext
from django.views.decorators.http import require_GET, require_http_methods, require_POST
from msgspec.structs import replace

from appliance.errors import Reason, Refused
from appliance.facts.box import Pool
from appliance.message import Message, join_messages
from appliance.pools.rebuild_estimate import RebuildEstimate
from appliance.pools.vdevs import online_offline
from appliance.pools.vdevs.replace import REPLACEABLE
from appliance.zfs import vdev_tree
from web import live
from web.disks.burn_in_report import with_burn_ins
from web.disks.models import Replacement
from web.inventory import store
from web.inventory.box import Box, read_box
from web.inventory.models import Activity, Progress
from web.jobs import confirm, operation_ui, queue
from web.jobs.refusals import refusals_lead_to
from web.pools import advice, new_disk, rebuild_time, topology
from web.pools import replacement as pool_replacement
from web.pools.maintenance_views import get_pool
from web.pools.topology_views import parse_guid
from web.said import said_in


@require_http_methods(["GET", "POST"])
@refusals_lead_to("pool", "key")
def choose_disk(request: HttpRequest, key: str) -> HttpResponse:
    """The first step: which disk. Choosing one opens its replacement, which changes nothing in the pool yet."""
    box = read_box()
    pool = get_pool(key)
    places = [
        place
        for place in vdev_tree.list_places(pool)
        if place.leaf and place.role in REPLACEABLE and not is_stand_in(place)
    ]
    if request.method == "POST":
        guid = parse_guid(request.POST.get("vdev", ""))
        place = next((place for place in places if place.vdev.guid == guid), None)
        if place is None:
            raise Refused(Reason("disk-not-in-pool", "That disk is no longer part of {pool}.", pool=pool.name))
        case = pool_replacement.open_replacement(pool, place, box, request.user.get_username())
        store.touch("replacements")
        return redirect("replacement", pk=case.pk)
    queue.request_refresh()
    rows = [(place.vdev, row) for place, row in zip(places, rows_of_places(pool, box, places), strict=True)]
    return render(
        request,
        "pools/replace/which.html",
        {
            "pool": pool,
            "key": key,
            "box": box,
            "rows": rows,
            "picked": parse_guid(request.GET.get("vdev", "")),
            "steps": operation_ui.REPLACEMENT_STEPS,
        },
    )


def is_stand_in(place: vdev_tree.Place) -> bool:
    """Whether this is a spare in use or the new disk of a replacement, which nobody wants to replace."""
    parent = place.parent
    return parent is not None and parent.kind in {"spare", "replacing"} and parent.children[0].guid != place.vdev.guid


def rows_of_places(pool: Pool, box: Box, places: list[vdev_tree.Place]) -> list[topology.TopologyRow]:
    """The rows of the tree for these places, in their order."""
    by_id: dict[str, topology.TopologyRow] = {}

    def collect(rows: tuple[topology.TopologyRow, ...]) -> None:
        for row in rows:
            by_id.setdefault(row.id, row)
            collect(row.children)

    collect(topology.topology_rows(pool, box))
    return [by_id[f"{place.vdev.guid}-{place.role}"] for place in places]


@require_GET
def list_replacements(request: HttpRequest) -> HttpResponse:
    """Open replacements and what to do about each, and the reports of closed ones."""

    def build_context() -> dict[str, object]:
        return {
            "open": advice.open_replacements(read_box()),
            "closed": list(Replacement.objects.exclude(closed=None)[:50]),
        }

    return live.respond(request, "pools/replace/list.html", build_context)


@require_GET
def show_replacement(request: HttpRequest, pk: int) -> HttpResponse:
    """The page of one replacement."""

    def build_context() -> dict[str, object]:
        case = get_object_or_404(Replacement, pk=pk)
        box = read_box()
        now = pool_replacement.replacement_state(case, replace(box, bays=with_burn_ins(box.bays)))
        return {
            "case": case,
            "now": now,
            "steps": operation_ui.REPLACEMENT_STEPS,
            "activities": Activity.objects.filter(pool=case.pool, kind="resilver", state__in=Activity.UNDER_WAY)[:1],
            **latest_job(case, now),
            "stop_link": stop_url(case, now),
            "estimate": estimate_of(case, now, box),
        }

    return live.respond(request, "pools/replace/replacement.html", build_context)


def latest_job(case: Replacement, now: pool_replacement.Situation) -> dict[str, object]:
    """The newest job of this replacement, where it is under way or has failed, and how far it is."""
    job = next(new_disk.jobs_of(case, *([now.new.guid] if now.new else [])), None)
    shown = job if job and (job.open or job.needs_attention) else None
    return {
        "job": shown,
        "progress": Progress.objects.filter(job=shown.pk).first() if shown else None,
    }


def estimate_of(case: Replacement, now: pool_replacement.Situation, box: Box) -> RebuildEstimate | None:
    """How long the rebuild will take, before it has begun; from then on its progress says that. Two queries."""
    if case.closed:
        return None
    pool = next((card.pool for card in box.cards if card.key == case.pool_guid), None)
    return rebuild_time.rebuild_estimate(pool, box) if pool and now.step in {"offline", "pull", "accept"} else None


def stop_url(case: Replacement, now: pool_replacement.Situation) -> str:
    """The page that stops a replacement whose new disk failed or is the wrong one."""
    return reverse("vdev_act", args=[case.pool_guid, now.new.guid, "detach"]) if now.new else ""


def get_open_case(pk: int) -> Replacement:
    """The replacement with that key. Raises Http404, also where it is closed."""
    case = get_object_or_404(Replacement, pk=pk)
    if case.closed:
        raise Http404
    return case


@require_POST
@refusals_lead_to("replacement", "pk")
def offline_disk(request: HttpRequest, pk: int) -> HttpResponse:
    """Take the old disk offline. One click undoes it, so it needs no review."""
    case = get_open_case(pk)
    pool = get_pool(case.pool_guid)
    operation = online_offline.OfflineDisk(pool=pool.name, vdev=int(case.vdev_guid))
    confirm.start_without_review(operation, user=request.user.get_username())
    return redirect("replacement", pk=pk)


@require_GET
@refusals_lead_to("replacement", "pk")
def accept_disk(request: HttpRequest, pk: int) -> HttpResponse:
    """The review page of replacing the old disk by the chosen one."""
    case = get_open_case(pk)
    pool = get_pool(case.pool_guid)
    if wrong := pool_replacement.replacement_state(case, read_box()).wrong:
        raise Refused(
            Reason("wrong-disk-pulled", "Put {disk} back first. {pool} still needs it.", disk=wrong[0], pool=pool.name)
        )
    operation = pool_replacement.replace_operation(case, pool.name, request.GET.get("disk", ""))
    return confirm.review(request, operation, back=reverse("replacement", args=[pk]))


@require_POST
def close_replacement(request: HttpRequest, pk: int) -> HttpResponse:
    """Close the replacement and save its report. The pool is not touched."""
    case = get_open_case(pk)
    now = pool_replacement.replacement_state(case, read_box())
    report = now.report or join_messages([Message("Closed before it was complete."), now.headline])
    said = case.said | said_in(report)
    Replacement.objects.filter(pk=pk, closed=None).update(closed=timezone.now(), report=report, said=said)
    store.touch("replacements")
    messages.success(request, gettext("The report is saved."))
    return redirect("pool", key=case.pool_guid) if now.step != "lost" else redirect("replacements")
