"""Pages that change a pool's vdevs: small acts go to their review at once, others ask for disks first."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext
from django.views.decorators.http import require_GET

from appliance.errors import Reason, Refused
from appliance.facts.box import Pool
from appliance.formatting import size_text
from appliance.layout.choices import LAYOUT_NAMES
from appliance.operation import Operation
from appliance.pools.vdevs import clear_errors, online_offline
from appliance.pools.vdevs.aux_vdevs import AddCache, AddLog, AddSpare
from appliance.pools.vdevs.expand import AddVdev, AutoexpandVdev, ExpandRaidz, expansion_sizes
from appliance.pools.vdevs.groups import data_groups, group_layout
from appliance.pools.vdevs.remove import RemoveVdev
from appliance.pools.vdevs.replace import AttachDisk, DetachDisk
from appliance.zfs import vdev_tree
from web.disks.burn_in_report import with_burn_ins
from web.inventory.box import read_box
from web.jobs import confirm
from web.jobs.refusals import review_act
from web.pools.forms import is_usable
from web.pools.maintenance_views import get_pool
from web.translation import lazy_text, text_of

ACTS: dict[str, type[Operation]] = {
    "offline": online_offline.OfflineDisk,
    "online": online_offline.OnlineDisk,
    "detach": DetachDisk,
    "remove": RemoveVdev,
    "grow": AutoexpandVdev,
    "clear": clear_errors.ClearErrors,
}


@require_GET
def review_vdev_act(request: HttpRequest, key: str, guid: int, what: str) -> HttpResponse:
    """The review page of a change that needs no further answer. The pool's own guid means the whole pool."""
    pool = get_pool(key)
    vdev = 0 if guid == pool.guid else guid
    return review_act(request, ACTS, what, back=reverse("pool", args=[key]), pool=pool.name, vdev=vdev)


class AddDisksKind(msgspec.Struct, frozen=True):
    """One way to add disks: how its page asks, and the operation that its answers mean."""

    heading: str
    lead: str
    make: Callable[[str, int, tuple[str, ...], HttpRequest], Operation]
    several: bool = True
    layouts: bool = False
    solid_state: bool = False
    term: str = ""  # of the glossary


KINDS = {
    "copy": AddDisksKind(
        lazy_text("Add a copy"),
        lazy_text(
            "The new disk holds the same as the others of its group. The pool survives one more failed disk "
            "but gets no more space."
        ),
        lambda pool, vdev, disks, _request: AttachDisk(pool=pool, vdev=vdev, disk=disks[0]),
        several=False,
    ),
    "expand": AddDisksKind(
        lazy_text("Expand the raidz by a disk"),
        lazy_text(
            "The new disk joins the raidz and adds space. ZFS spreads the data over all disks, which takes "
            "as long as reading all of it; files stay available."
        ),
        lambda pool, vdev, disks, _request: ExpandRaidz(pool=pool, vdev=vdev, disk=disks[0]),
        several=False,
    ),
    "group": AddDisksKind(
        lazy_text("Add a group of disks"),
        lazy_text(
            "Another group adds its space at once. A pool is as safe as its weakest group: losing one group "
            "loses the pool."
        ),
        lambda pool, _vdev, disks, request: AddVdev(
            pool=pool,
            layout=chosen_layout(request),  # type: ignore[arg-type]  # narrowed by LAYOUT_NAMES
            disks=disks,
            less_protection=request.GET.get("less_protection") == "on",
        ),
        layouts=True,
    ),
    "spare": AddDisksKind(
        lazy_text("Add a spare"),
        lazy_text("A spare stays switched on but unused, and stands in automatically when a disk of this pool fails."),
        lambda pool, _vdev, disks, _request: AddSpare(pool=pool, disks=disks),
        term="spare",
    ),
    "log": AddDisksKind(
        lazy_text("Add a log"),
        lazy_text(
            "A log speeds up writes that must be safe at once: NFS, databases, virtual machines. Choose two "
            "disks, which are mirrored. Windows and Mac shares hardly gain from it."
        ),
        lambda pool, _vdev, disks, _request: AddLog(pool=pool, disks=disks),
        solid_state=True,
        term="log",
    ),
    "cache": AddDisksKind(
        lazy_text("Add a cache"),
        lazy_text(
            "A cache keeps data that is read again and again and does not fit into memory. Its index takes "
            "memory, and it does not help with files that are read once."
        ),
        lambda pool, _vdev, disks, _request: AddCache(pool=pool, disks=disks),
        solid_state=True,
        term="cache",
    ),
}


def chosen_layout(request: HttpRequest) -> str:
    """The layout in the address; a stripe for anything else."""
    layout = request.GET.get("layout", "")
    return layout if layout in LAYOUT_NAMES else "stripe"


def parse_guid(text: str) -> int:
    """The guid in an address; 0 for anything else."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 20 else 0


@require_GET
def add_disks(request: HttpRequest, key: str, kind: str) -> HttpResponse:
    """Ask for the disks, then show the review. Answers travel in the address, so nothing happens before the review."""
    pool = get_pool(key)
    if kind not in KINDS:
        raise Http404
    how, vdev = KINDS[kind], parse_guid(request.GET.get("vdev", ""))
    picked = tuple(dict.fromkeys(request.GET.getlist("disks")))
    here = f"{request.path}?{without_answer(request)}"
    reasons: tuple[Reason, ...] = ()
    if "answered" in request.GET:
        try:
            if not picked:
                raise Refused(Reason("disk-not-chosen", "Choose at least one disk.", field="disks"))
            return confirm.review(request, how.make(pool.name, vdev, picked, request), back=here)
        except Refused as refusal:
            reasons = refusal.reasons
    bays = with_burn_ins(read_box().bays)
    usable = [bay for bay in bays if is_usable(bay)]
    usable.sort(key=lambda bay: (bay.is_unfit, how.solid_state and bay.disk.rotational))
    context = {
        "how": how,
        "kind": kind,
        "pool": pool,
        "key": key,
        "vdev": vdev,
        "usable": usable,
        "unusable": [bay for bay in bays if bay not in usable],
        "picked": picked,
        "reasons": reasons,
        "asks_agreement": any(reason.field == "less_protection" for reason in reasons)
        or request.GET.get("less_protection") == "on",
        "agreed": request.GET.get("less_protection") == "on",
        "layouts": layout_options(pool) if how.layouts else (),
        "layout": request.GET.get("layout") or usual_layout(pool),
        "yields": expansion_facts(pool, vdev) if kind == "expand" else (),
    }
    return render(request, "pools/add.html", context, status=400 if reasons else 200)


def without_answer(request: HttpRequest) -> str:
    """The query of this page without the mark that its form was sent."""
    query = request.GET.copy()
    query.pop("answered", None)
    return query.urlencode()


def usual_layout(pool: Pool) -> str:
    """The layout of the pool's first group that can be created here."""
    return next((group_layout(group) for group in data_groups(pool) if group_layout(group) in LAYOUT_NAMES), "mirror")


def layout_options(pool: Pool) -> list[tuple[str, str]]:
    """Values and labels of layouts, the pool's own first because it keeps the pool as safe as it is."""
    own = usual_layout(pool)
    words = {
        "stripe": gettext("One disk alone, without protection"),
        "mirror": gettext("Mirror: each disk holds the same"),
    }
    rest = [layout for layout in ("mirror", "raidz1", "raidz2", "raidz3", "stripe") if layout != own]
    return [
        (layout, words.get(layout, LAYOUT_NAMES[layout]) + (gettext(", as the pool has now") if layout == own else ""))
        for layout in (own, *rest)
    ]


def expansion_facts(pool: Pool, vdev: int) -> list[tuple[str, str]]:
    """The space that an expansion adds, shown before a disk is chosen."""
    place = vdev_tree.find_vdev(pool, vdev)
    if place is None or place.vdev.kind != "raidz":
        return []
    before, shown, rewritten = expansion_sizes(place.vdev)
    return [
        (gettext("Space for files now"), gettext("about {before}").format(before=text_of(size_text(before)))),
        (gettext("With one more disk"), gettext("about {shown}").format(shown=text_of(size_text(shown)))),
        (
            gettext("For files written afterwards"),
            gettext("as if it held {rewritten}, because they need less parity").format(
                rewritten=text_of(size_text(rewritten))
            ),
        ),
    ]
