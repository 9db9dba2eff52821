"""The record of a setting that a benchmark from another computer tries (``benchmarks/box_settings/switch.py``)."""

from __future__ import annotations

from pathlib import Path

import msgspec

from appliance.system import paths


class SettingTrial(msgspec.Struct, frozen=True, kw_only=True):
    """A setting that is switched. ``until``: seconds of the clock that counts from the start of the box."""

    setting: str
    former: str
    tried: str
    until: float


def trial_file() -> Path:
    """In a folder of root's in memory, so that it goes with a restart, as the setting does."""
    return paths.RUN / "setting-trial"


def read_record() -> SettingTrial | None:
    """What was begun last and not ended by us, whatever has become of it; None where there is none."""
    try:
        return msgspec.json.decode(trial_file().read_bytes(), type=SettingTrial)
    except (OSError, msgspec.MsgspecError):
        return None
