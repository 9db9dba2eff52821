"""Exporting, destroying and upgrading a pool, its checkpoint, and the shares that it brought along."""

from __future__ import annotations

from datetime import timedelta

import msgspec
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_GET

from appliance.facts.box import Pool, PoolDetail
from appliance.facts.datasets import Dataset
from appliance.operation import Operation
from appliance.pools.checkpoint import DiscardCheckpoint, RewindCheckpoint, TakeCheckpoint
from appliance.pools.export_destroy import DestroyPool, ExportPool
from appliance.pools.upgrade import UpgradePool
from appliance.rehearsal.rehearse import CleanUpRehearsal
from appliance.shares.approve import ApproveShares, is_offered
from appliance.shares.settings import ShareSetting, setting_of
from web.inventory import store
from web.inventory.dataset_models import DatasetRow
from web.inventory.fact_row import first_fact, readable_facts
from web.inventory.models import DetailRow, PoolRow, ShareRow
from web.jobs import queue
from web.jobs.refusals import review_act
from web.shares.switches import DETAILS

DETAILS_FRESH = timedelta(seconds=20)
ACTS: dict[str, type[Operation]] = {
    "export": ExportPool,
    "destroy": DestroyPool,
    "checkpoint": TakeCheckpoint,
    "discard": DiscardCheckpoint,
    "rewind": RewindCheckpoint,
    "upgrade": UpgradePool,
    "accept": ApproveShares,
    "rehearsal": CleanUpRehearsal,
}


class ShareOffer(msgspec.Struct, frozen=True):
    """A share that is stored with a folder and not approved on this box."""

    dataset: Dataset
    setting: ShareSetting

    @property
    def name(self) -> str:
        named = self.setting.smb or self.setting.afp or (self.setting.iscsi if self.dataset.kind == "volume" else None)
        return named.name if named else self.dataset.mountpoint

    @property
    def route(self) -> str:
        """The page where it is switched on by itself: of a folder that asks for several protocols, its own page."""
        if self.dataset.kind == "volume":
            return "share_iscsi"
        pages = [page for protocol, page in DETAILS.items() if self.setting.part(protocol)]
        return pages[0] if len(pages) == 1 else "folder"

    @property
    def people(self) -> str:
        named = self.setting.smb or self.setting.afp
        return ", ".join((*named.write, *named.read)) if named else ""


def share_offers(pool: Pool) -> list[ShareOffer]:
    """Shares that are stored with the folders of a pool but not served; two queries."""
    served = {(share.protocol, share.path) for share in readable_facts(ShareRow.objects.all())}
    rows = DatasetRow.objects.filter(pool=pool.name, share_source__in=("local", "received"))
    settings = [(fact, setting_of(fact)) for fact in readable_facts(rows.order_by("name")[:50])]
    return [
        ShareOffer(dataset, setting)
        for dataset, setting in settings
        if setting and is_offered(dataset, setting, served)
    ]


def lifecycle_context(pool: Pool) -> dict[str, object]:
    """What the pool's page shows of its lifecycle. Also requests the details that the review pages need."""
    if store.claim_refresh("looking-details", not_since=timezone.now() - DETAILS_FRESH):
        queue.send("workers.read_details")
    detail: PoolDetail | None = first_fact(DetailRow.objects.filter(key=str(pool.guid)))
    return {"checkpoint": pool.checkpoint, "detail": detail, "offers": share_offers(pool)}


@require_GET
def review_pool_act(request: HttpRequest, key: str, act: str) -> HttpResponse:
    """The review page of exporting, destroying or upgrading a pool, of its checkpoint, of approving its
    shares, or of cleaning up."""
    row = get_object_or_404(PoolRow, key=key)
    return review_act(request, ACTS, act, back=reverse("pool", args=[key]), pool=row.name, guid=row.fact.guid)
