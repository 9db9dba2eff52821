"""Made-up benchmarks from another computer."""

from __future__ import annotations

from typing import Any

import msgspec
from django.utils import timezone

from appliance.layout.geometry import GIB, MIB
from tests.web.routes import CLIENT_RUN
from web.benchmarks.client_models import ClientRunRow

SETTING = "tcp-buffers"
FORMER, TRIED = "4096 131072 6291456, 4096 16384 4194304", "4096 131072 16777216, 4096 16384 16777216"
FIGURES: dict[str, Any] = {
    "system": "Linux x86_64, Python 3.12.3",
    "way": "Version 4.19.5-Debian",
    "own": [1900.0 * MIB, 2000.0 * MIB, 2100.0 * MIB],
    "hashing": [410.0 * MIB],
    "wire_up": [110.0 * MIB, 111.0 * MIB, 111.0 * MIB],
    "wire_down": [111.0 * MIB, 111.0 * MIB, 112.0 * MIB],
    "write": [99.0 * MIB, 101.0 * MIB, 102.0 * MIB],
    "read": [104.0 * MIB, 105.0 * MIB, 105.0 * MIB],
    "small": [180.0],
    "busy_write": 0.2,
    "busy_read": 0.3,
    "notes": [],
}


# With the setting: written faster, read as before.
CHANGED = {
    "changed_write": [131.0 * MIB, 132.0 * MIB, 132.0 * MIB],
    "changed_read": [104.0 * MIB, 105.0 * MIB, 106.0 * MIB],
    "changed_small": [182.0],
}


def figures(**changes: Any) -> dict[str, Any]:
    return {**FIGURES, **changes}


def made(**changes: Any) -> ClientRunRow:
    fields = {
        "dataset": "tank/photos",
        "dataset_key": "6683942667665662560",
        "pool": "tank",
        "protocol": "smb",
        "share": "photos",
        "size": 4 * GIB,
        "runs": 3,
        "code_hash": "0" * 64,
        "created_by": "admin",
    }
    return ClientRunRow.objects.create(**{**fields, **changes})


def tried(**changes: Any) -> ClientRunRow:
    """A finished run with a setting that helped."""
    told = msgspec.json.encode(figures(**CHANGED)).decode()
    return finished(**{"told": told, "setting": SETTING, "former": FORMER, "tried": TRIED, **changes})


def finished(**changes: Any) -> ClientRunRow:
    now, told = timezone.now(), msgspec.json.encode(figures()).decode()
    fields = {
        "pk": CLIENT_RUN,
        "state": "done",
        "told": told,
        "address": "192.168.1.20",
        "begun": now,
        "finished": now,
        "cached": True,
    }
    return made(**{**fields, **changes})
