"""The bays and the pools of the whole box, which most pages of disks and pools show together."""

from __future__ import annotations

import msgspec
from django.utils.translation import gettext, ngettext
from msgspec.structs import replace

from web.inventory import stability, store
from web.inventory.bays import (
    NOT_IN_USE,
    Bay,
    EmptyBay,
    MissingDisk,
    bay_order,
    bays_by_key,
    list_bays,
    list_missing_disks,
    read_known_bays,
    without_guesses,
)
from web.inventory.fact_row import OddRows, facts_of, look_up_or_none
from web.inventory.models import DiskRow, PoolRow
from web.inventory.pool_cards import PoolCard, build_pool_card
from web.translation import text_of


class Box(msgspec.Struct, frozen=True):
    """Everything that pages of pools and disks show, in six queries however many there are."""

    bays: list[Bay]
    cards: list[PoolCard]
    gone: list[MissingDisk]
    nothing: list[EmptyBay] = msgspec.field(default_factory=list)
    odd: list[str] = msgspec.field(default_factory=list)  # names of pools and disks that cannot be decoded

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
    """Read the rows of disks, pools, bays and events, and put them together.
    One that cannot be decoded is only named."""
    odd_pools, odd_disks = OddRows(), OddRows()
    rows, disk_rows, places = list(PoolRow.objects.order_by("name")), list(DiskRow.objects.all()), read_known_bays()
    pools = list(facts_of(rows, odd_pools))
    pool_rows = [row for row in rows if row.name not in odd_pools.names]
    found = [with_odd_pool(bay, odd_pools.names) for bay in list_bays(disk_rows, pools, places, odd_disks)]
    if odd_disks.names:
        found = without_guesses(found, places.values())
    tops = store.top_datasets((row.name for row in pool_rows), look_up_or_none)
    known = bays_by_key(found)
    lost = list_missing_disks(pools, known, places)
    taken = {one.number for one in found} | {one.number for one in lost}
    nothing = [EmptyBay(row.position, row.label) for row in places.values() if row.position not in taken]
    if odd_disks.names:
        nothing = []  # one of them may be in a bay that looks empty
    restless = stability.unsettled_pools(pool_rows, stability.last_read())
    cards = [
        build_pool_card(row, tops.get(row.name), known, places, settled=row.key not in restless) for row in pool_rows
    ]
    return Box(found, cards, lost, nothing, [*odd_pools.names, *odd_disks.names])


def with_odd_pool(bay: Bay, odd: list[str]) -> Bay:
    """The same; where its pool cannot be decoded, it is not known whether that uses the disk."""
    if bay.role or bay.pool not in odd or bay.word != text_of(NOT_IN_USE):
        return bay
    return replace(bay, state="unknown", word=gettext("unknown"))
