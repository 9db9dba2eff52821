"""A pool as its card on the overview and its page show it."""

from __future__ import annotations

import msgspec
from django.utils.translation import gettext, ngettext

from appliance.facts import vdev_state
from appliance.facts.box import Pool
from appliance.facts.datasets import Dataset
from appliance.formatting import capitalize_opening, size_text
from appliance.pools import fullness, health
from appliance.pools.health import PoolHealth
from web.inventory.bays import SCAN_WORDS, Bay, KnownBays, device_label
from web.inventory.models import PoolRow
from web.translation import text_of


class PoolCard(msgspec.Struct, frozen=True):
    """A pool on the overview and on its page."""

    key: str
    pool: Pool
    verdict: PoolHealth
    layout: str
    used: int
    total: int
    encrypted: bool
    locked: bool
    state: str
    word: str

    @property
    def free(self) -> int:
        return max(self.total - self.used, 0)

    @property
    def survives(self) -> str:
        """``It survives 2 more failed disks.``"""
        return capitalize_opening(f"{text_of(health.survives_text(self.pool))}.")

    @property
    def scan_result(self) -> str:
        """How the last scrub or rebuilding ended: ``clean``."""
        scan = self.pool.scan
        if scan is None:
            return ""
        if scan.state == "canceled":
            return gettext("stopped before it finished")
        if scan.errors:
            return ngettext("{errors} error left", "{errors} errors left", scan.errors).format(errors=scan.errors)
        return (
            gettext("repaired {repaired}").format(repaired=text_of(size_text(scan.repaired)))
            if scan.repaired and scan.kind == "scrub"
            else gettext("clean")
        )

    @property
    def percent(self) -> int:
        return fullness.percent_used(self.used, self.total)

    @property
    def bar_limits(self) -> tuple[int, int]:
        """The last per cent at which its bar has the usual colour, and the last one before it is red."""
        return fullness.WARNING - 1, fullness.CRITICAL - 1


def describe_layout(pool: Pool) -> str:
    """``raidz2 of 5``, ``2 mirrors of 2``, ``stripe of 1``."""
    data = [vdev for vdev in pool.vdevs if vdev.role == "normal"]
    groups = [vdev for vdev in data if vdev.children]
    if not groups:
        return gettext("stripe of {count}").format(count=len(data))
    first = groups[0]
    name = first.name.rsplit("-", 1)[0]
    if len(groups) == 1:
        return gettext("{name} of {count}").format(name=name, count=len(first.children))
    return gettext("{count} × {name} of {count_2}").format(count=len(groups), name=name, count_2=len(first.children))


def build_pool_card(
    row: PoolRow,
    root: Dataset | None,
    known: dict[str, Bay],
    known_bays: KnownBays | None = None,
    *,
    settled: bool = True,
) -> PoolCard:
    pool: Pool = row.fact
    used, total = (root.used, root.used + root.available) if root else (pool.allocated, pool.size)
    found = health.of_pool(
        pool, lambda device: device_label(device, known, known_bays), used=used, total=total, settled=settled
    )
    locked = bool(root and root.locked)
    return PoolCard(
        row.key,
        pool,
        found,
        describe_layout(pool),
        used,
        total,
        bool(root and root.encryption != "off"),
        locked,
        *card_state(pool, found, locked=locked),
    )


def card_state(pool: Pool, found: PoolHealth, *, locked: bool) -> tuple[str, str]:
    """State and word of a pool for its card: "repaired itself" is not "degraded", and a locked one is neither."""
    scanning = SCAN_WORDS.get(pool.scan.kind, "") if pool.scan and pool.scan.state == "scanning" else ""
    if found.word and not (locked and found.state == "notice"):
        return found.state, text_of(found.word)
    if found.state == "failed":
        stopped = pool.state in vdev_state.LOST
        return "failed", text_of(vdev_state.describe(pool.state).word) if stopped else gettext("damaged files")
    if found.state == "attention":
        weak = pool.state != "ONLINE" or any(device.state in vdev_state.LOST for device in pool.devices())
        return (
            ("attention", scanning if pool.scan and scanning and pool.scan.kind == "resilver" else gettext("degraded"))
            if weak
            else ("repaired", gettext("repaired itself"))
        )
    if locked:
        return "locked", gettext("locked")
    return ("working", scanning) if found.state == "working" else (found.state, gettext("healthy"))
