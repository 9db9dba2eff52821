"""What the page of the ways to more room shows: each way with its cost, its date and its line over five years."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime, timedelta
from decimal import Decimal

import msgspec
from django.urls import reverse
from django.utils.formats import date_format
from django.utils.translation import gettext

from appliance.facts.box import Facts
from appliance.facts.cleanup import Cleanup
from appliance.facts.datasets import Dataset
from appliance.formatting import disk_size, number_text
from appliance.layout.growth import read_groups
from appliance.pools.growth import find_old_blocks, list_ways
from appliance.pools.growth_disks import disk_choices, usual_disk
from appliance.pools.growth_forecast import MONTHS, Pace, find_pace, forecast_way
from appliance.pools.growth_way import GrowthFacts, OldBlocks, Way
from appliance.pools.properties import lacks_expansion
from appliance.zfs import kernel_module
from web.alerts.models import PoolDay
from web.backups.status import read_facts, read_orphans
from web.disks.burn_in_report import with_burn_ins
from web.inventory.box import Box
from web.inventory.fact_row import OddRows, first_fact
from web.inventory.models import BoxRow, DetailRow, PropertiesRow
from web.inventory.pool_cards import PoolCard
from web.pools.growth_chart import NOW, Line, draw_chart
from web.pools.models import DiskPrice
from web.pools.rebuild_time import is_rotational, past_work
from web.pools.topology import add_url, replace_url
from web.snapshots.cleanup import read_cleanup
from web.translation import text_of

TB = 10**12


class WayOffer(msgspec.Struct, frozen=True):
    """A way as the page shows it. ``style`` is the number of its line; 0: it has none."""

    way: Way
    style: int
    full: str = ""  # when it is 80 % full, in words; empty where that cannot be told
    cost: str = ""  # empty without a price
    link: str = ""
    link_text: str = ""
    plans: bool = False  # whether choosing it begins a plan
    more_link: str = ""  # another page that is part of it
    more_text: str = ""

    @property
    def disks_text(self) -> str:
        """``4: 1 is in the box, 3 of 4 TB have to be bought``."""
        bought, own = len(self.way.bought), self.way.disks - len(self.way.bought)
        if not bought:
            return gettext("{own}, in the box already").format(own=own)
        buy = gettext("{bought} of {bought_2}, to be bought").format(
            bought=bought, bought_2=text_of(disk_size(self.way.bought[0]))
        )
        return (
            gettext("{disks}: {own} in the box already, {buy}").format(disks=self.way.disks, own=own, buy=buy)
            if own
            else buy
        )


class GrowthPage(msgspec.Struct, frozen=True):
    """Everything that the page shows. ``full`` is when the pool is 80 % full if nothing is done."""

    offers: list[WayOffer]
    pace: Pace | None
    known_days: int
    full: str
    chart: list[Line]
    sizes: tuple[int, ...]
    new_disk: int
    can_rewrite: bool
    folder: str = ""  # where the topmost folder is mounted; empty where it is not
    limit: int = 0  # bytes that the topmost folder may take; 0: no limit
    old_blocks: OldBlocks | None = None

    @property
    def hindered(self) -> bool:
        """Whether a way needs room for disks that the box is not known to have."""
        return any(offer.way.hindrance and offer.way.disks for offer in self.offers)


def build_page(card: PoolCard, box: Box, now: datetime, size: int = 0) -> GrowthPage:
    """The page of one pool; ``size`` is that of a new disk, 0 for the usual one. A constant number of queries."""
    odd = OddRows()
    found = read_facts(odd)
    # The folder of a copy may be what cannot be decoded: then none is called an orphan.
    orphans = [] if odd.names else read_orphans(found)
    root, info = found.dataset(card.pool.name), first_fact(BoxRow.objects.filter(key="box"))
    facts = growth_facts(card, box, found, size, orphans=orphans, can_rewrite=bool(info and rewrites(info)))
    groups, history = read_groups(card.pool), read_history(card.key, now.date())
    pace = find_pace(history, now.date())
    ways, price = list_ways(facts), DiskPrice.load_row()
    offers = [offer_way(way, facts, pace, price, now.date(), style) for style, way in enumerate(ways, NOW + 1)]
    plain = forecast_way(facts.used, facts.total, pace) if pace else None
    return GrowthPage(
        offers=offers,
        pace=pace,
        known_days=(now.date() - min(day for day, _used in history)).days if history else 0,
        full=full_text(plain.days_until(), now.date()) if plain else "",
        chart=draw_chart(facts, [offer for offer in offers if offer.way.is_possible], pace) if pace else [],
        sizes=disk_choices(groups, facts.free),
        new_disk=size or usual_disk(groups),
        can_rewrite=facts.rewrites,
        folder=root.mountpoint if root and root.mounted else "",
        limit=limit_of(root),
        old_blocks=find_old_blocks(facts),
    )


def growth_facts(
    card: PoolCard, box: Box, found: Facts, size: int, *, orphans: list[Dataset], can_rewrite: bool
) -> GrowthFacts:
    """What the ways of a pool depend on, from the rows and what ZFS measures. A constant number of queries."""
    name = card.pool.name
    own = found.below(name)
    copies = [one.name for one in orphans if one.pool == name]
    detail = first_fact(DetailRow.objects.filter(key=card.key))
    settings = first_fact(PropertiesRow.objects.filter(key=card.key))
    free = tuple(bay.disk.size for bay in with_burn_ins(box.bays) if bay.is_free and bay.disk.path)
    return GrowthFacts(
        pool=card.pool,
        used=card.used,
        total=card.total,
        free=free,
        places=len(free) + len(box.nothing),
        new_disk=size,
        held=sum(one.used_by_snapshots for one in own),
        cleanup=read_cleanup(own, copies),
        features_off=detail.features_off if detail else (),
        lacks_expansion=lacks_expansion(settings.values) if settings else False,
        rewrites=can_rewrite,
        rotational=is_rotational(card.pool, box),
        past=tuple(past_work(card.pool, own)),
    )


def read_history(key: str, today: date) -> list[tuple[date, int]]:
    """The bytes that were used on each day of the last months. One query."""
    rows = PoolDay.objects.filter(guid=key, day__gte=today - MONTHS, day__lte=today)
    return list(rows.values_list("day", "used"))


def rewrites(info: object) -> bool:
    """Whether both the module and the tools of ZFS here have ``zfs rewrite``."""
    versions = (getattr(info, "zfs_module", ""), getattr(info, "zfs_tools", ""))
    return all(kernel_module.can_rewrite(version) for version in versions)


def limit_of(root: Dataset | None) -> int:
    """The quota of a pool's topmost folder; 0 for none."""
    quota = root.properties.get("quota") if root else None
    return int(quota.value) if quota and quota.value.isdigit() else 0


def offer_way(way: Way, facts: GrowthFacts, pace: Pace | None, price: DiskPrice, today: date, style: int) -> WayOffer:
    """A way with its date, its cost and the page that carries it out."""
    if not way.is_possible:
        return WayOffer(way, 0)
    full = ""
    if pace:
        forecast = forecast_way(facts.used, way.total, pace, freed=way.freed, share=way.share)
        full = full_text(forecast.days_until(), today)
    (link, words), *more = actions_of(way, facts)
    more_link, more_words = more[0] if more else ("", "")
    plans = way.key == "replace" and way.disks > 1
    return WayOffer(way, style, full, cost_text(way, price), link, words, plans, more_link, more_words)


def actions_of(way: Way, facts: GrowthFacts) -> list[tuple[str, str]]:
    """The pages that carry a way out, with the words on their buttons. One, or two for cleaning up."""
    pool = facts.pool
    match way.key:
        case "clean":
            return list(cleanup_actions(facts.cleanup))
        case "expand":
            return [(add_url(pool, "expand", way.targets[0]), gettext("Choose the disk"))]
        case "group":
            return [(add_url(pool, "group"), gettext("Choose the disks"))]
        case "replace":
            return [(replace_url(pool, way.targets[0]), gettext("Replace the disk"))]
        case _:
            return [(reverse("create_pool"), gettext("Choose the disks"))]


def cleanup_actions(cleanup: Cleanup) -> Iterator[tuple[str, str]]:
    """Where snapshots and old copies are deleted. The page of snapshots by space has only
    folders with deleted files."""
    if cleanup.snapshots:
        yield reverse("snapshots_space"), gettext("Show snapshots by space")
    elif cleanup.reserved:
        yield reverse("snapshots"), gettext("Show the snapshots")
    if cleanup.copies:
        yield reverse("backups"), gettext("Show the copies")


def full_text(days: int | None, today: date) -> str:
    """``in March 2028``; to the month, as a forecast is no more exact."""
    if days is None:
        return gettext("not within five years")
    if days == 0:
        return gettext("already")
    return gettext("in {month}").format(month=date_format(today + timedelta(days=days), "F Y"))


def cost_text(way: Way, price: DiskPrice) -> str:
    """What the disks that have to be bought cost; empty where no price is known."""
    if price.per_tb is None:
        return ""
    amount = price.per_tb * Decimal(sum(way.bought)) / TB
    if not way.bought:
        return gettext("nothing")
    return gettext("about {amount}").format(
        amount=f"{text_of(number_text(f'{amount:,.0f}'))} {price.currency}".rstrip()
    )
