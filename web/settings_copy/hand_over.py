"""Hand the settings to the agent, which puts them into each record of this box, and read those of a record."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from appliance import agent_client
from appliance.errors import Failed, Reason, Refused, explain_error
from appliance.facts import box_record
from appliance.recovery import box_settings
from appliance.recovery.box_settings import FoundSettings, LeftOut
from appliance.recovery.kept_settings import KeptSettings
from web import agent
from web.settings_copy import current

SECONDS = 60


def keep_request(former: int = 0) -> dict[str, Any]:
    settings = current.read_settings()
    return {"verb": "keep-box-settings", "settings": msgspec.to_builtins(settings), "former": former}


def hand_over(former: int = 0) -> KeptSettings:
    """Hand over the settings as they are now. For the worker: it takes no turn of a page. Raises Refused, Failed."""
    answer = agent_client.send_request(keep_request(former), silence=SECONDS)
    return msgspec.convert(answer["facts"], KeptSettings)


def take_over(former: int) -> KeptSettings:
    """The settings of today take the place of those of a former database, as somebody decided.
    Raises Refused, Failed."""
    answer = agent.last(keep_request(former), silence=SECONDS)
    return msgspec.convert(answer["facts"], KeptSettings)


def read_recorded(pool: str, box: str) -> FoundSettings:
    """The settings in the record of a box on a pool. Raises Refused where they cannot be read."""
    try:
        facts = agent.last({"verb": "read-box-settings", "pool": pool, "box": box}, silence=SECONDS)["facts"]
        left_out = msgspec.convert(facts["left_out"], tuple[LeftOut, ...])
        found = box_settings.read_settings(json.dumps(facts["settings"]).encode())
    except Failed as failure:
        raise Refused(
            Reason("record-unreadable", "The record could not be read: {error}", error=explain_error(failure))
        ) from failure
    except (msgspec.MsgspecError, KeyError, TypeError) as error:
        raise Refused(box_record.malformed()) from error
    return FoundSettings(found.settings, (*left_out, *found.left_out))
