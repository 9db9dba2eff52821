"""What recorded boxes are made of: recorded output where there is some, the rest made up in the same shapes."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable
from datetime import datetime, timedelta
from functools import cache
from typing import Any

import msgspec
from msgspec.structs import replace

from appliance.datasets import presets
from appliance.facts import user_properties
from appliance.facts.box import Disk, Facts, LongWork, Pool, Scan, Use, Vdev
from appliance.facts.datasets import Dataset, Property, SpaceUse
from appliance.facts.file_import import FileImport
from appliance.facts.importable import Importable
from appliance.facts.receiver import Receiver
from appliance.facts.remote import Remote
from appliance.facts.sharing import Account, Group, Share
from appliance.message import Message
from appliance.shares.connections import Connection
from appliance.shares.settings import PROTOCOLS, wanted_shares
from appliance.snapshots.policy import USUAL, Policy
from appliance.zfs import status, vdev_tree
from tests.unit.made import dataset, disk, recorded
from tests.web import rows

GB, TB = 10**9, 10**12
SYSTEM_DISK = replace(rows.SYSTEM_DISK, bus="usb")
POLICY: dict[str, Any] = {"policy": msgspec.json.encode(USUAL).decode(), "policy_source": "local"}


class Box(msgspec.Struct, frozen=True):
    """All that is recorded of a box. ``smart``: what disks answered to smartctl by their by-id path; the others answer
    as a healthy one. ``uses``: who takes up space, by the dataset's name. ``growth``: per cent of each pool a day."""

    pools: tuple[Pool, ...] = ()
    datasets: tuple[Dataset, ...] = ()
    disks: tuple[Disk, ...] = ()
    smart: dict[str, dict[str, Any]] = msgspec.field(default_factory=dict)
    accounts: tuple[Account, ...] = ()
    groups: tuple[Group, ...] = ()
    importable: tuple[Importable, ...] = ()
    connections: tuple[Connection, ...] = ()
    remotes: tuple[Remote, ...] = ()
    receivers: tuple[Receiver, ...] = ()
    imports: tuple[FileImport, ...] = ()
    uses: dict[str, tuple[SpaceUse, ...]] = msgspec.field(default_factory=dict)
    kept: Policy = USUAL  # the snapshots that there are of each dataset with a policy
    growth: float = 0.05
    failed_services: tuple[str, ...] = ()
    in_use: bool = True  # has jobs, reports, a benchmark; somebody has set it up
    set_up: bool = True

    @property
    def shares(self) -> tuple[Share, ...]:
        """What the daemons serve: all that its folders ask for."""
        facts = Facts(datasets=tuple(one for one in self.datasets if one.mounted))
        return tuple(
            Share(protocol, getattr(part, "name", one.mountpoint), one.mountpoint)
            for protocol in PROTOCOLS
            for one, part in wanted_shares(facts, protocol)
        )


# --- disks -----------------------------------------------------------------------------------------------------------
def recorded_disks() -> list[Disk]:
    """The six disks of the recorded lsblk, in the bays that zpool told of them, and the system's own."""
    found = [
        replace(one, slot=f"pci-0000:00:{at + 5:02x}.0-ata-1.0", uses=())
        for at, one in enumerate(rows.recorded_disks([]), 1)
        if one.path
    ]
    return [*found, SYSTEM_DISK]


def made_disk(number: int, model: str, size: int, **changes: Any) -> Disk:
    """Made up: an empty disk of that model."""
    serial = f"ZR5{number:03d}{number * 7919 % 9973:04d}"
    made = disk(
        1,
        path=f"/dev/disk/by-id/ata-{model.replace(' ', '_')}_{serial}",
        name=f"sd{chr(96 + number)}",
        serial=serial,
        model=model,
        size=size,
        slot=f"pci-0000:02:00.0-ata-{number}",
    )
    return replace(made, **changes)


def in_use(disks: Iterable[Disk], pools: Iterable[Pool]) -> tuple[Disk, ...]:
    """The disks, those in pools with that as their use."""
    owner = {vdev_tree.link_of(device): pool for pool in pools for device in pool.devices()}
    return tuple(
        replace(
            one,
            uses=(Use("pool", Message("is part of the pool {pool}", pool=pool.name), str(pool.guid), pool.name),),
            content=(f"{one.name}1", one.name),
        )
        if (pool := owner.get(one.path.rsplit("/", 1)[-1]))
        else one
        for one in disks
    )


@cache
def answer_of_a_healthy_disk() -> dict[str, Any]:
    return recorded("smartctl-qemu-ata-7.4.json")


def smart(
    *counts: tuple[int, int], celsius: int = 34, hours: int = 21_340, failed_test: bool = False, model: str = ""
) -> dict[str, Any]:
    """The recorded answer of an ATA disk, changed: (attribute, raw value), warmth, age, how
    its last long test ended."""
    answer = copy.deepcopy(answer_of_a_healthy_disk())
    table = answer["ata_smart_attributes"]["table"]
    for number, raw in counts:
        table[:] = [row for row in table if row["id"] != number]
        table.append(
            {
                "id": number,
                "name": f"Attribute_{number}",
                "value": 100,
                "worst": 100,
                "thresh": 0,
                "when_failed": "",
                "raw": {"value": raw, "string": str(raw)},
            }
        )
    tests = [(2, failed_test, hours - 200), (1, False, hours - 260), (1, False, hours - 430)]
    log = [
        {
            "type": {"value": kind},
            "status": {
                "value": 0x79 if bad else 0,
                "string": "Completed: read failure" if bad else "Completed",
                "passed": not bad,
            },
            "lifetime_hours": at % 65536,
        }
        for kind, bad, at in tests
    ]
    return answer | {
        "model_name": model or "WDC WD20EARS-00MVWB0",
        "temperature": {"current": celsius},
        "power_on_time": {"hours": hours},
        "ata_smart_self_test_log": {"standard": {"table": log}},
    }


# --- pools -----------------------------------------------------------------------------------------------------------
def scrubbed(pool: Pool, ended: datetime, *, hours: float = 5.5, repaired: int = 0) -> Pool:
    """With a scrub that found nothing, or put right so many bytes."""
    started, done = ended - timedelta(hours=hours), pool.allocated
    scan = Scan("scrub", "finished", started, ended, done, done, done, 0, repaired)
    return replace(
        pool, scan=scan, work=(LongWork("scrub", "finished", started, ended, done, done, repaired=repaired),)
    )


def resilvering(pool: Pool, started: datetime, percent: int) -> Pool:
    """With a rebuilding that has got so far."""
    total = pool.allocated
    done, seen = total * percent // 100, total * min(percent + 15, 100) // 100
    scan = Scan("resilver", "scanning", started, None, total, seen, done, 0, repaired=done // 4)
    work = LongWork("resilver", "running", started, None, done, total, looked=seen, repaired=done // 4)
    return replace(pool, scan=scan, work=(work,))


def filled(pool: Pool, percent: int) -> Pool:
    """With so much of its raw space in use."""
    used = pool.size * percent // 100
    groups = [replace(group, used=used // len(pool.vdevs), space=pool.size // len(pool.vdevs)) for group in pool.vdevs]
    return replace(pool, vdevs=tuple(groups), allocated=used, free=pool.size - used)


def device(one: Disk, guid: int, **changes: Any) -> Vdev:
    """A disk as a pool has it."""
    link = one.path.rsplit("/", 1)[-1]
    made = Vdev(link, "disk", guid, "ONLINE", path=f"{one.path}-part1", size=one.size, slot=one.slot)
    return replace(made, replace_size=one.size - 3 * GB, **changes)


def pool_of(name: str, guid: int, *groups: tuple[str, tuple[Vdev, ...]], size: int, **changes: Any) -> Pool:
    """Of groups such as ``("mirror", (…))``; a group of kind ``disk`` is one disk by itself."""
    vdevs: list[Vdev] = []
    for at, (kind, members) in enumerate(groups):
        made = Vdev(f"{kind}-{at}", kind.rstrip("123"), guid + 1000 + at, "ONLINE", children=members)
        vdevs += members if kind == "disk" else [made]
    return replace(Pool(name, guid, "ONLINE", tuple(vdevs), size=size), **changes)


# --- datasets --------------------------------------------------------------------------------------------------------
@cache
def usual_properties() -> dict[str, Property]:
    """Those of the recorded listing that nobody has changed."""
    listed = {found.name: found for found in status.parse_datasets(recorded("zfs-list-properties-2.3.9.json"))}
    return listed["datasetsp"].properties


def folder(
    name: str, data: int = 0, *, snapshots: int = 0, preset: str = "", quota: int = 0, **changes: Any
) -> Dataset:
    """A dataset that holds so many bytes of its own."""
    set_here = {"quota": str(quota)} if quota else {}
    if preset:
        set_here |= {one.name: one.value for one in presets.PRESETS[preset].choices} | {user_properties.PRESET: preset}
    said = {key: Property(value, "local") for key, value in set_here.items()}
    own = {"referenced": data, "used_by_data": data, "used_by_snapshots": snapshots, "used": data + snapshots}
    return dataset(name, properties={**usual_properties(), **said}, **{**own, **changes})


def folders(total: int, *found: Dataset) -> tuple[Dataset, ...]:
    """The datasets of one pool, the topmost first: what those below take is counted above, what is left is free for
    all, and policy and shares are inherited."""
    used = {one.name: sum(each.used for each in found if f"{each.name}/".startswith(f"{one.name}/")) for one in found}
    free = max(total - used[found[0].name], 0)
    told: dict[str, Dataset] = {}
    for one in found:
        quota = int(one.properties["quota"].value) if "quota" in one.properties else 0
        above = told.get(one.name.rpartition("/")[0])
        inherited: dict[str, Any] = {}
        if above and above.policy and not one.policy:
            inherited |= {
                "policy": above.policy,
                "policy_source": "inherited",
                "policy_from": above.policy_from or above.name,
            }
        if above and above.share and not one.share:
            inherited |= {
                "share": above.share,
                "share_source": "inherited",
                "share_from": above.share_from or above.name,
            }
        told[one.name] = replace(
            one,
            used=used[one.name],
            used_by_children=used[one.name] - one.used,
            available=min(free, max(quota - used[one.name], 0)) if quota else free,
            **inherited,
        )
    return tuple(told.values())


def shared(smb: dict[str, Any] | None = None, **others: dict[str, Any]) -> dict[str, Any]:
    """The part of a dataset that asks for shares."""
    parts = {"smb": smb, **others}
    said = {protocol: part for protocol, part in parts.items() if part}
    return {"share": json.dumps(said), "share_source": "local"}


def locked(name: str) -> dict[str, Any]:
    """The part of a dataset that is encrypted and locked."""
    return {**encrypted(name), "key_status": "unavailable", "mounted": False}


def encrypted(name: str) -> dict[str, Any]:
    """The part of a dataset that is encrypted with a passphrase and unlocked."""
    return {"encryption": "aes-256-gcm", "key_status": "available", "key_format": "passphrase", "encryption_root": name}
