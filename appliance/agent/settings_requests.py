"""Requests about the settings in records: handing over those of this box, and reading those of a record."""

from __future__ import annotations

import msgspec

from appliance.errors import Reason, Refused
from appliance.names import existing_pool
from appliance.recovery import kept_settings, records, settings_entries
from appliance.recovery.box_settings import BoxSettings
from appliance.request import Request


class KeepBoxSettings(Request, tag="keep-box-settings"):
    """Keep the settings of this box for its records.
    ``former``: the database that it takes the place of, as decided."""

    settings: BoxSettings
    former: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.former < settings_entries.LAST:
            raise Refused(settings_entries.out_of_range())

    def read(self) -> object:
        try:
            return kept_settings.keep_settings(self.settings, former=self.former)
        except OSError as error:
            raise Refused(
                Reason("settings-not-kept", "The settings could not be stored: {error}", error=error.strerror)
            ) from error


class ReadBoxSettings(Request, tag="read-box-settings"):
    """The settings in the record that a box has left on a pool."""

    pool: str
    box: str

    def __post_init__(self) -> None:
        existing_pool(self.pool)
        records.check_box(self.box)

    def read(self) -> object:
        found = records.read_settings(self.pool, self.box)
        return {"settings": msgspec.to_builtins(found.settings), "left_out": msgspec.to_builtins(found.left_out)}
