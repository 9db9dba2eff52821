"""Facts for tests: recorded output as it is, and variants derived from it or made up, which say so."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Collection
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from appliance.facts.box import Disk, Facts, Pool, Use
from appliance.facts.datasets import Dataset
from appliance.facts.sharing import Account
from appliance.zfs import status

RECORDED = Path(__file__).parent / "recorded"
JOB = "6b1f6a5e-3f0c-4c2e-9a53-0d5b8f9f6a11"
OTHER_JOB = "0f8fad5b-d9cb-469f-a165-70867728950e"


def recorded(name: str) -> dict[str, Any]:
    """A recorded JSON output; the file's name says the tool's version."""
    found = json.loads((RECORDED / name).read_text())
    assert isinstance(found, dict)
    return found


def recorded_text(name: str) -> str:
    """A recorded output that is no JSON."""
    return (RECORDED / name).read_text()


def samba_knows(known: Collection[str], argv: list[str]) -> str:
    """What smbclient 4.22 answers to these ``tcon`` commands where Samba has the shares of ``known``
    and gives none to a guest."""
    if argv[0] != "smbclient":
        return ""
    asked = re.findall(r'tcon "([^"]*)"', argv[-1])
    return "".join(
        f"tcon failed: NT_STATUS_{'ACCESS_DENIED' if name in known else 'BAD_NETWORK_NAME'}\n" for name in asked
    )


def recorded_pool(name: str = "zpool-status-raidz2-2.3.9.json") -> Pool:
    return next(status.parse_pools(recorded(name)))


def path_of(number: int) -> str:
    return f"/dev/disk/by-id/ata-WDC_WD20EARS-00MVWB0_WD-WCAZA000000{number}"


def disk(number: int = 1, **changes: Any) -> Disk:
    """Made up: an empty disk of 2 TB."""
    made = Disk(
        path=path_of(number),
        name=f"sd{'abcdefghi'[number - 1]}",
        serial=f"WD-WCAZA000000{number}",
        model="WDC WD20EARS-00MVWB0",
        size=2 * 10**12,
        logical_sector=512,
        physical_sector=4096,
        rotational=True,
        bus="sata",
    )
    return replace(made, **changes)


def dataset(name: str = "tank/photos", **changes: Any) -> Dataset:
    """Made up: a mounted file system in its usual place."""
    made = Dataset(
        name=name,
        guid=zlib.crc32(name.encode()),
        kind="filesystem",
        created=datetime(2026, 11, 20, tzinfo=UTC),
        used=2**20,
        available=2**40,
        referenced=2**20,
        mounted=True,
        mountpoint=f"/{name}",
    )
    return replace(made, **changes)


def shared(name: str = "tank/photos", **changes: Any) -> Dataset:
    """Made up: a dataset that asks to be served as ``photos`` to anna."""
    setting = {"smb": {"name": name.rsplit("/", 1)[-1], "write": ["anna"]}}
    return dataset(name, **{"share": json.dumps(setting), "share_source": "local", **changes})


OLD = Use("old", "holds ext4 data called photos", "796f9e2a-d931-42ae-a860-4a7cf67bfe06")
BUSY = Use("pool", "is part of the pool tank", "1443772876214735903", "tank")
ANNA = Account("anna", 1001)


def box(*disks: Disk, **changes: Any) -> Facts:
    """Made up: a box with these disks, or with six empty ones."""
    return replace(Facts(disks=disks or tuple(disk(number) for number in range(1, 7))), **changes)
