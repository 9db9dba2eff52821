"""The disks of the box in their bays, as pages show them. Pure shaping: no query is made for a single disk."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import count
from typing import ClassVar

import msgspec
from django.utils.translation import gettext
from msgspec.structs import replace

from appliance.facts import vdev_state
from appliance.facts.box import Disk, Pool, Vdev
from appliance.formatting import model_and_serial
from appliance.message import Message
from appliance.pools import health
from appliance.zfs import vdev_tree
from appliance.zfs.vdev_tree import link_of
from web.addresses import address
from web.disks import bay_state, ports
from web.disks.models import BayRow
from web.inventory.fact_row import LookUp, look_up_strictly
from web.inventory.models import DiskRow
from web.inventory.vdev_roles import role_word
from web.translation import lazy_text, text_of

KnownBays = dict[str, BayRow]  # by port
NOT_IN_USE = lazy_text("not in use by its pool")
SCAN_WORDS = {"scrub": lazy_text("scrubbing"), "resilver": lazy_text("rebuilding")}


class Bay(msgspec.Struct, frozen=True):
    """A disk where its owner finds it. ``number`` counts the disks of the box, the system
    disk last; 0: it is unknown."""

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
    tested: str = ""  # whether its disk had a burn-in here, as a sentence; only where that is asked for
    test_failed: bool = False
    gone: ClassVar[bool] = False
    nothing: ClassVar[bool] = False

    @property
    def name(self) -> str:
        """The label that its owner gave the bay, or its number, or a question mark where that is unknown."""
        return self.given or (str(self.number) if self.number else "?")

    @property
    def is_failing(self) -> bool:
        """Whether its own figures say that it fails, so that nothing should be built on it."""
        return self.verdict == "failing"

    @property
    def is_unfit(self) -> bool:
        """Whether it must not be proposed for anything: it is failing, or failed its burn-in,
        where that was asked for."""
        return self.is_failing or self.test_failed

    @property
    def is_free(self) -> bool:
        """Whether it can be used at once: it is empty, is no part of a pool, and is fit."""
        return self.disk.free and not self.pool and not self.is_unfit

    @property
    def holds_old_data(self) -> bool:
        """Whether it can be used once what it holds is erased."""
        return not (self.disk.free or self.disk.blocked or self.pool or self.is_failing)

    @property
    def address(self) -> str:
        """The address of its disk's page."""
        return address("disk", self.key)

    @property
    def use(self) -> str:
        """What it is used for: ``tank``, ``log of tank``, ``holds the system``; empty for nothing."""
        if not self.pool or self.note:
            return self.note
        return (
            self.pool
            if self.role in {"", "normal"}
            else gettext("{role} of {pool}").format(role=role_word(self.role), pool=self.pool)
        )

    @property
    def in_front(self) -> bool:
        """Whether it sits in a bay that its owner can reach; the others are drawn beside the chassis."""
        return ports.in_front(self.disk)

    @property
    def label(self) -> str:
        return gettext("bay {name}").format(name=self.name)


class MissingDisk(msgspec.Struct, frozen=True):
    """A disk that a pool lacks: drawn as a bay, so that the picture shows what is wrong."""

    name: str
    pool: str
    pool_key: str
    state: health.Health
    word: str
    number: int = 0
    given: str = ""
    guid: int = 0
    gone: ClassVar[bool] = True
    nothing: ClassVar[bool] = False

    @property
    def label(self) -> str:
        """Its bay; empty where that is unknown."""
        return (self.given or str(self.number)) if self.number else ""


class EmptyBay(msgspec.Struct, frozen=True):
    """A known bay without a disk."""

    number: int
    given: str
    gone: ClassVar[bool] = False
    nothing: ClassVar[bool] = True

    @property
    def name(self) -> str:
        return self.given or str(self.number)


def bay_order(one: Bay | MissingDisk | EmptyBay) -> int:
    """Sort key of a place in the chassis; disks without a known bay come last."""
    return one.number or 10**6


def list_bays(
    disks: Iterable[DiskRow],
    pools: Iterable[Pool],
    known_bays: KnownBays | None = None,
    look_up: LookUp = look_up_strictly,
) -> list[Bay]:
    """The disks in the order of their bays, the system's own last. A disk without a known bay comes after those.

    One whose row is odd is left out if ``look_up`` returns None for it.
    """
    known_bays = known_bays or {}
    devices = {
        link_of(device): (pool, device, vdev.role) for pool in pools for vdev in pool.vdevs for device in vdev.devices()
    }
    decoded = [(row, look_up(row.label, partial(getattr, row, "fact"))) for row in disks]
    known = [(row, disk) for row, disk in decoded if disk is not None]
    known.sort(key=lambda pair: (any(use.kind == "system" for use in pair[1].uses), chassis_key(pair[1])))
    numbers = unused_numbers(known_bays.values())
    found, taken = [], set()
    for row, disk in known:
        home = known_bays.get(ports.port_of(disk.slot)) if disk.slot and ports.in_front(disk) else None
        if home is None or home.position in taken:
            number, given = next(numbers), ""
        else:
            number, given = home.position, home.label
            taken.add(home.position)
        bay = look_up(row.label, partial(build_bay, number, row, disk, devices.get(row.key)))
        if bay is not None:
            found.append(replace(bay, given=given))
    return sorted(found, key=lambda one: one.number)


def without_guesses(bays: Iterable[Bay], known: Iterable[BayRow]) -> list[Bay]:
    """The bays without the numbers that only count the disks: while one of these cannot be read,
    they may be those of others."""
    stored = {row.position for row in known}
    return [bay if bay.number in stored else replace(bay, number=0) for bay in bays]


def unused_numbers(known: Iterable[BayRow]) -> Iterator[int]:
    """Numbers for disks without a known bay: after every place, and none that is the label of a bay."""
    known = list(known)
    labels = {row.label for row in known}
    first = max((row.position for row in known), default=0) + 1
    return (number for number in count(first) if str(number) not in labels)


def read_known_bays() -> KnownBays:
    """Read the known bays by their ports, in one query."""
    return {row.port: row for row in BayRow.objects.all()}


def chassis_key(disk: Disk) -> tuple[str, int, str]:
    """Sort key by port, which is nearest to the chassis; kernel names (sda, sdb) change from boot to boot."""
    return (disk.slot, len(disk.name), disk.name)


def list_missing_disks(
    pools: Iterable[Pool], known: dict[str, Bay], known_bays: KnownBays | None = None
) -> list[MissingDisk]:
    """The disks that pools lack and that are nowhere in the box, in their bays unless these have other disks."""
    free = {
        port: row
        for port, row in (known_bays or {}).items()
        if row.position not in {one.number for one in known.values()}
    }

    def at(device: Vdev) -> tuple[int, str]:
        row = free.get(ports.port_of(device.slot)) if device.slot else None
        return (row.position, row.label) if row else (0, "")

    return [
        MissingDisk(
            missing_disk_name(link_of(device)),
            pool.name,
            str(pool.guid),
            health.of_device(device),
            text_of(vdev_state.describe(device.state).word),
            *at(device),
            guid=device.guid,
        )
        for pool in pools
        for device in pool.devices()
        if device.state in vdev_state.LOST and link_of(device) not in known
    ]


def build_bay(number: int, row: DiskRow, disk: Disk, member: tuple[Pool, Vdev, str] | None) -> Bay:
    """A disk with its state and word; ``member`` is its pool, its device there, and the role of its group."""
    bay = Bay(
        number,
        row.key,
        disk,
        "empty",
        "",
        temperature=row.temperature,
        asleep=row.asleep,
        smart_passed=row.smart_passed,
        smart_text=text_of(row.smart_text),
        verdict=row.verdict,
    )
    in_use: bay_state.State = "empty", gettext("free") if disk.free else gettext("holds old data")
    if member:
        pool, device, role = member
        in_use, bay = member_state(pool, device), replace(bay, pool=pool.name, pool_key=str(pool.guid), role=role)
    elif not disk.blocked:
        bay = replace(bay, note="; ".join(text_of(use.text) for use in disk.uses))
    elif disk.blocked.kind == "pool":
        in_use = "attention", text_of(NOT_IN_USE)
        bay = replace(bay, note=text_of(disk.blocked.text), pool=disk.blocked.pool)
    else:
        in_use = "healthy", gettext("system") if disk.blocked.kind == "system" else gettext("in use")
        bay = replace(bay, note=text_of(disk.blocked.text))
    state, word = bay_state.disk_state(row, in_use)
    return replace(bay, state=state, word=word)


def member_state(pool: Pool, device: Vdev) -> bay_state.State:
    """State and word of a disk by its place in a pool."""
    state, word = health.of_device(device), text_of(vdev_state.describe(device.state).word)
    if state == "attention" and device.state == "ONLINE":
        word = gettext("made errors")
    if state == "healthy" and device.deferred:
        return "working", gettext("waits to be rebuilt")
    if state == "healthy" and pool.scan and pool.scan.state == "scanning" and is_being_scanned(pool, device):
        state, word = "working", SCAN_WORDS.get(pool.scan.kind) or gettext("working")
    return state, word


def is_being_scanned(pool: Pool, device: Vdev) -> bool:
    """Whether the scan covers this device: a scrub covers all, a resilver those that it fills."""
    filled = vdev_tree.guids_being_filled(pool)
    return not filled or device.guid in filled


def bays_by_key(found: Iterable[Bay]) -> dict[str, Bay]:
    """The bays by the stable names of their disks, which ``link_of`` gives for a device of a pool."""
    return {bay.key: bay for bay in found}


def device_label(device: Vdev, known: dict[str, Bay], known_bays: KnownBays | None = None) -> str:
    """``device_name`` in the language of the reader."""
    return text_of(device_name(device, known, known_bays))


def device_name(device: Vdev, known: dict[str, Bay], known_bays: KnownBays | None = None) -> str:
    """``bay 3 (WDC WD20EARS, serial …)``; where the disk is gone, its bay as long as that
    is known, and its own name."""
    if (found := known.get(link_of(device))) and found.number:
        return Message("bay {name} ({disk})", name=found.name, disk=f"{found.disk.model} {found.disk.serial}")
    home = (known_bays or {}).get(ports.port_of(device.slot)) if device.slot else None
    name = missing_disk_name(link_of(device))
    return Message("bay {name} ({disk})", name=home, disk=name.replace("(", "").replace(")", "")) if home else name


def missing_disk_name(link: str) -> str:
    """Name a disk that is not there by its by-id name: ``ata-WDC_WD20EARS_WD-1`` is ``WDC WD20EARS (WD-1)``."""
    model, serial = model_and_serial(link)
    return f"{model} ({serial})" if model else link
