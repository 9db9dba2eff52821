"""From rows to what templates show. Pure shaping: no query is made for a single pool, disk or dataset."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from appliance.facts import vdev_state
from appliance.facts.box import Disk, Pool, Vdev
from appliance.facts.datasets import Dataset
from appliance.formatting import model_and_serial, size_text
from appliance.pools import fullness, health
from appliance.pools.health import PoolHealth
from appliance.zfs import vdev_tree
from web.disks import ports
from web.disks.models import BayRow
from web.inventory import stability, store
from web.inventory.models import DiskRow, PoolRow


@dataclass(frozen=True)
class Bay:
    """A disk where its owner finds it. ``number`` counts the disks of the box, the system disk last."""

    number: int
    key: str
    disk: Disk
    state: health.Health
    word: str
    pool: str = ""
    note: str = ""
    temperature: int | None = None
    asleep: bool = False
    pool_key: str = ""
    role: str = ""
    given: str = ""
    smart_passed: bool | None = None
    smart_text: str = ""
    verdict: str = ""

    @property
    def name(self) -> str:
        """What its owner calls the bay, or its number."""
        return self.given or str(self.number)

    @property
    def use(self) -> str:
        """What it does: ``tank``, ``log of tank``, ``holds the system``; empty where nothing."""
        if not self.pool or self.note:
            return self.note
        return self.pool if self.role in {"", "normal"} else f"{self.role} of {self.pool}"

    @property
    def in_front(self) -> bool:
        """Whether it sits in a bay that its owner can reach; the others are drawn beside the chassis."""
        return ports.in_front(self.disk)

    @property
    def label(self) -> str:
        return f"bay {self.name}"


@dataclass(frozen=True)
class Gone:
    """A disk that a pool misses: drawn as a bay, so that the picture shows what is wrong."""

    name: str
    pool: str
    pool_key: str
    state: health.Health
    word: str
    number: int = 0
    given: str = ""
    guid: int = 0
    gone: bool = True

    @property
    def label(self) -> str:
        """Its bay, empty where nobody knows where it sat."""
        return (self.given or str(self.number)) if self.number else ""


@dataclass(frozen=True)
class EmptyBay:
    """A bay that is known and holds nothing."""

    number: int
    given: str
    nothing: bool = True

    @property
    def name(self) -> str:
        return self.given or str(self.number)


def place(one: Bay | Gone | EmptyBay) -> int:
    """Where it stands among the bays; what has no place known comes last."""
    return one.number or 10**6


@dataclass(frozen=True)
class PoolCard:
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
        return f"{health.survives_text(self.pool).capitalize()}."

    @property
    def scan_result(self) -> str:
        """How the last scrub or rebuilding ended: ``clean``."""
        scan = self.pool.scan
        if scan is None:
            return ""
        if scan.state == "canceled":
            return "stopped before its end"
        if scan.errors:
            return f"{scan.errors} {'error' if scan.errors == 1 else 'errors'} left"
        return f"repaired {size_text(scan.repaired)}" if scan.repaired and scan.kind == "scrub" else "clean"

    @property
    def percent(self) -> int:
        return fullness.percent_used(self.used, self.total)

    @property
    def bar_limits(self) -> tuple[int, int]:
        """The last per cent at which its bar has the usual colour, and the last one before it is red."""
        return fullness.WARNING - 1, fullness.CRITICAL - 1


def link_of(device: Vdev) -> str:
    """The by-id name of the whole disk behind a device."""
    name = Path(device.path or device.name).name
    return name.rsplit("-part", 1)[0] if "-part" in name else name


def bays(disks: Iterable[DiskRow], pools: Iterable[Pool], homes: Homes | None = None) -> list[Bay]:
    """The disks in the order of their bays, the system's own last. A disk without a known bay comes after those."""
    homes = homes or {}
    devices = {
        link_of(device): (pool, device, vdev.role) for pool in pools for vdev in pool.vdevs for device in vdev.devices()
    }
    known = [(row, row.fact) for row in disks]
    known.sort(key=lambda pair: (any(use.kind == "system" for use in pair[1].uses), chassis_order(pair[1])))
    first = max((row.position for row in homes.values()), default=0)
    found, taken = [], set()
    for row, disk in known:
        home = homes.get(ports.port_of(disk.slot)) if disk.slot and ports.in_front(disk) else None
        if home is None or home.position in taken:
            first += 1
            number, given = first, ""
        else:
            number, given = home.position, home.label
            taken.add(home.position)
        found.append(replace(bay(number, row, disk, devices.get(row.key)), given=given, smart_passed=row.smart_passed, smart_text=row.smart_text, verdict=row.verdict))  # fmt: skip
    return sorted(found, key=lambda one: one.number)


Homes = dict[str, BayRow]


def homes() -> Homes:
    """The bays that are known, by their port; one query."""
    return {row.port: row for row in BayRow.objects.all()}


def chassis_order(disk: Disk) -> tuple[str, int, str]:
    """By port, which is the nearest to the chassis; kernel names (sda, sdb) change from boot to boot."""
    return (disk.slot, len(disk.name), disk.name)


def gone(pools: Iterable[Pool], known: dict[str, Bay], homes: Homes | None = None) -> list[Gone]:
    """The disks that pools miss and that are nowhere in the box, in the bay where they were unless it has another."""
    free = {port: row for port, row in (homes or {}).items() if row.position not in {one.number for one in known.values()}}  # fmt: skip

    def at(device: Vdev) -> tuple[int, str]:
        row = free.get(ports.port_of(device.slot)) if device.slot else None
        return (row.position, row.label) if row else (0, "")

    return [
        Gone(
            name_of_link(link_of(device)),
            pool.name,
            str(pool.guid),
            health.of_device(device),
            vdev_state.describe(device.state).word,
            *at(device),
            guid=device.guid,
        )
        for pool in pools
        for device in pool.devices()
        if device.state in vdev_state.LOST and link_of(device) not in known
    ]


def bay(number: int, row: DiskRow, disk: Disk, member: tuple[Pool, Vdev, str] | None) -> Bay:
    temperature, asleep = row.temperature, row.asleep
    if member:
        pool, device, role = member
        state = health.of_device(device)
        word = vdev_state.describe(device.state).word
        if state == "attention" and device.state == "ONLINE":
            word = "made errors"
        if state == "healthy" and pool.scan and pool.scan.state == "scanning" and at_work(pool, device):
            state, word = "working", SCAN_WORDS.get(pool.scan.kind, "working")
        return Bay(
            number,
            row.key,
            disk,
            "asleep" if asleep else state,
            "asleep" if asleep else word,
            pool.name,
            "",
            temperature,
            asleep,
            str(pool.guid),
            role,
        )
    if disk.blocked:
        pool_name = disk.blocked.pool
        if disk.blocked.kind == "pool":
            return Bay(
                number,
                row.key,
                disk,
                "attention",
                "not in use by its pool",
                pool_name,
                disk.blocked.text,
                temperature,
                asleep,
            )
        return Bay(
            number,
            row.key,
            disk,
            "healthy",
            "system" if disk.blocked.kind == "system" else "in use",
            "",
            disk.blocked.text,
            temperature,
            asleep,
        )
    return Bay(
        number,
        row.key,
        disk,
        "empty",
        "free" if disk.free else "holds old data",
        "",
        "; ".join(use.text for use in disk.uses),
        temperature,
        asleep,
    )


def at_work(pool: Pool, device: Vdev) -> bool:
    """Whether the scan is about this device: a scrub about all, a resilver about those that it fills."""
    filled = vdev_tree.filling(pool)
    return not filled or device.guid in filled


def names_of(found: Iterable[Bay]) -> dict[str, Bay]:
    return {bay.key: bay for bay in found}


def device_label(device: Vdev, known: dict[str, Bay], homes: Homes | None = None) -> str:
    """``bay 3 (WDC WD20EARS, serial …)``; where the disk is gone, its bay as long as that is known, and its own name."""
    if found := known.get(link_of(device)):
        return f"{found.label} ({found.disk.model} {found.disk.serial})"
    home = (homes or {}).get(ports.port_of(device.slot)) if device.slot else None
    name = name_of_link(link_of(device))
    return f"bay {home} ({name.replace('(', '').replace(')', '')})" if home else name


def name_of_link(link: str) -> str:
    """A disk that is not there, by what its by-id name tells: ``ata-WDC_WD20EARS_WD-1`` is ``WDC WD20EARS (WD-1)``."""
    model, serial = model_and_serial(link)
    return f"{model} ({serial})" if model else link


def layout_of(pool: Pool) -> str:
    """``raidz2 of 5``, ``2 mirrors of 2``, ``stripe of 1``."""
    data = [vdev for vdev in pool.vdevs if vdev.role == "normal"]
    groups = [vdev for vdev in data if vdev.children]
    if not groups:
        return f"stripe of {len(data)}"
    first = groups[0]
    name = first.name.rsplit("-", 1)[0]
    if len(groups) == 1:
        return f"{name} of {len(first.children)}"
    return f"{len(groups)} × {name} of {len(first.children)}"


def pool_card(
    row: PoolRow, root: Dataset | None, known: dict[str, Bay], homes: Homes | None = None, *, settled: bool = True
) -> PoolCard:
    pool: Pool = row.fact
    used, total = (root.used, root.used + root.available) if root else (pool.allocated, pool.size)
    found = health.of_pool(
        pool, lambda device: device_label(device, known, homes), used=used, total=total, settled=settled
    )
    locked = bool(root and root.locked)
    return PoolCard(
        row.key,
        pool,
        found,
        layout_of(pool),
        used,
        total,
        bool(root and root.encryption != "off"),
        locked,
        *in_a_word(pool, found, locked=locked),
    )


SCAN_WORDS = {"scrub": "being checked", "resilver": "rebuilding"}


def in_a_word(pool: Pool, found: PoolHealth, *, locked: bool) -> tuple[str, str]:
    """State and word of a pool for its card: "repaired itself" is not "degraded", and a locked one is neither."""
    scanning = SCAN_WORDS.get(pool.scan.kind, "") if pool.scan and pool.scan.state == "scanning" else ""
    if found.word and not (locked and found.state == "notice"):
        return found.state, found.word
    if found.state == "failed":
        stopped = pool.state in vdev_state.LOST
        return "failed", vdev_state.describe(pool.state).word if stopped else "damaged files"
    if found.state == "attention":
        weak = pool.state != "ONLINE" or any(device.state in vdev_state.LOST for device in pool.devices())
        return (
            ("attention", scanning if scanning == "rebuilding" else "degraded")
            if weak
            else ("repaired", "repaired itself")
        )
    if locked:
        return "locked", "locked"
    return ("working", scanning) if found.state == "working" else (found.state, "healthy")


@dataclass(frozen=True)
class Box:
    """Everything that pages of pools and disks draw, in six queries however many there are."""

    bays: list[Bay]
    cards: list[PoolCard]
    gone: list[Gone]
    nothing: list[EmptyBay] = field(default_factory=list)

    @property
    def places(self) -> list[Bay | Gone | EmptyBay]:
        """What the chassis draws, bay by bay; disks that are gone from nobody knows where come last."""
        found: list[Bay | Gone | EmptyBay] = [*self.front, *self.gone, *self.nothing]
        return sorted(found, key=place)

    @property
    def front(self) -> list[Bay]:
        """What the chassis shows; everything, in a box without bays."""
        return [bay for bay in self.bays if bay.in_front] or self.bays

    @property
    def inside(self) -> list[Bay]:
        """What sits elsewhere: NVMe, USB, the system's disk."""
        return [bay for bay in self.bays if not bay.in_front] if any(bay.in_front for bay in self.bays) else []


def box() -> Box:
    pool_rows = list(PoolRow.objects.order_by("name"))
    pools = [row.fact for row in pool_rows]
    places = homes()
    found = bays(DiskRow.objects.all(), pools, places)
    tops = store.roots(row.name for row in pool_rows)
    known = names_of(found)
    lost = gone(pools, known, places)
    taken = {one.number for one in found} | {one.number for one in lost}
    nothing = [EmptyBay(row.position, row.label) for row in places.values() if row.position not in taken]
    restless = stability.unsettled(pool_rows, stability.last_read())
    cards = [pool_card(row, tops.get(row.name), known, places, settled=row.key not in restless) for row in pool_rows]
    return Box(found, cards, lost, nothing)
