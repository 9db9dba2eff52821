"""The bays and the pools of the whole box, which most pages of disks and pools show together."""

from __future__ import annotations

import msgspec
from django.utils.translation import gettext, ngettext

from web.inventory import stability, store
from web.inventory.bays import (
    Bay,
    EmptyBay,
    MissingDisk,
    bay_order,
    bays_by_key,
    list_bays,
    list_missing_disks,
    read_known_bays,
)
from web.inventory.models import DiskRow, PoolRow
from web.inventory.pool_cards import PoolCard, build_pool_card


class Box(msgspec.Struct, frozen=True):
    """Everything that pages of pools and disks show, in six queries however many there are."""

    bays: list[Bay]
    cards: list[PoolCard]
    gone: list[MissingDisk]
    nothing: list[EmptyBay] = msgspec.field(default_factory=list)

    @property
    def free_text(self) -> str:
        """``You have 4 free disks. 1 more holds old data and can be used once that is erased.``"""
        free, old = sum(bay.is_free for bay in self.bays), sum(bay.holds_old_data for bay in self.bays)
        failing = sum(bay.is_failing and not (bay.pool or bay.disk.blocked) for bay in self.bays)
        said = [
            ngettext("You have {free} free disk.", "You have {free} free disks.", free).format(free=free)
            if free
            else gettext("You have no free disks.")
        ]
        if old and free:
            said.append(
                ngettext(
                    "{old} more holds old data and can be used once that is erased.",
                    "{old} more hold old data and can be used once that is erased.",
                    old,
                ).format(old=old)
            )
        elif old:
            said.append(
                ngettext(
                    "{old} holds old data and can be used once that is erased.",
                    "{old} hold old data and can be used once that is erased.",
                    old,
                ).format(old=old)
            )
        if failing and free:
            said.append(
                ngettext(
                    "{failing} more is failing and should not be used.",
                    "{failing} more are failing and should not be used.",
                    failing,
                ).format(failing=failing)
            )
        elif failing:
            said.append(
                ngettext(
                    "{failing} is failing and should not be used.",
                    "{failing} are failing and should not be used.",
                    failing,
                ).format(failing=failing)
            )
        return " ".join(said)

    @property
    def places(self) -> list[Bay | MissingDisk | EmptyBay]:
        """What the chassis draws, bay by bay; missing disks without a known bay come last."""
        found: list[Bay | MissingDisk | EmptyBay] = [*self.front, *self.gone, *self.nothing]
        return sorted(found, key=bay_order)

    @property
    def front(self) -> list[Bay]:
        """Disks that the chassis shows: all of them in a box without bays."""
        return [bay for bay in self.bays if bay.in_front] or self.bays

    @property
    def inside(self) -> list[Bay]:
        """Disks outside the bays: NVMe, USB, the system's disk."""
        return [bay for bay in self.bays if not bay.in_front] if any(bay.in_front for bay in self.bays) else []


def read_box() -> Box:
    """Read the rows of disks, pools, bays and events, and put them together."""
    pool_rows = list(PoolRow.objects.order_by("name"))
    pools = [row.fact for row in pool_rows]
    places = read_known_bays()
    found = list_bays(DiskRow.objects.all(), pools, places)
    tops = store.top_datasets(row.name for row in pool_rows)
    known = bays_by_key(found)
    lost = list_missing_disks(pools, known, places)
    taken = {one.number for one in found} | {one.number for one in lost}
    nothing = [EmptyBay(row.position, row.label) for row in places.values() if row.position not in taken]
    restless = stability.unsettled_pools(pool_rows, stability.last_read())
    cards = [
        build_pool_card(row, tops.get(row.name), known, places, settled=row.key not in restless) for row in pool_rows
    ]
    return Box(found, cards, lost, nothing)
