"""Which disks were pulled out by mistake while another one is being replaced."""

from __future__ import annotations

from appliance.facts.box import Facts
from appliance.zfs import vdev_tree
from web.disks.models import Replacement
from web.inventory.box import Box
from web.translation import text_of


def missing_disks(case: Replacement, box: Box, facts: Facts) -> tuple[str, ...]:
    """The disks that have gone since the replacement began although a pool needs them. One query.

    One that another guide is about is not gone by mistake: its own guide says what to do.
    """
    expected = set(Replacement.objects.filter(closed=None).exclude(pk=case.pk).values_list("disk", flat=True))
    here = {bay.key for bay in box.bays}
    return tuple(
        text_of(text) for key, text in case.known.items() if key not in here | expected and is_needed(key, facts)
    )


def is_needed(key: str, facts: Facts) -> bool:
    """Whether a disk that is gone is still part of a pool, so that pulling it out was a mistake."""
    return any(vdev_tree.link_of(device) == key for pool in facts.pools for device in pool.devices())
