"""Manual changes to Larder's files. Every reading notices them; the agent alone knows the difference, so it is asked
when something changed, and every half minute after that, because settings change as well."""

from __future__ import annotations

import time

import msgspec

from appliance import agent_client
from appliance.message import Message
from appliance.shares.drift import detect
from web.inventory import store
from web.inventory.fact_row import readable_rows
from web.inventory.models import EditRow

SECONDS_BETWEEN = 30.0
SOURCE = "by-hand"  # names the changed file on every page
_asked = [float("-inf")]


def store_drift() -> bool:
    """Store the manual changes; whether they differ from before. Raises LarderError where the agent fails."""
    found = detect.on_disk()
    edited = {key: one for key, one in found.items() if one.seen}
    names = ", ".join(one.path for one in edited.values())
    store.checked(SOURCE, changed=False, error=Message("{names} was changed by hand.", names=names) if names else "")
    known: dict[str, detect.Edit] = {row.key: fact for row, fact in readable_rows(EditRow.objects.all())}
    same = all(key in known and one.seen in {known[key].seen, detect.UNREADABLE} for key, one in edited.items())
    told = {key: known[key] for key in edited if key in known}
    if edited and (not same or time.monotonic() - _asked[0] > SECONDS_BETWEEN):
        answer = agent_client.send_request({"verb": "read-edits"}, silence=120).get("facts", [])
        told = {one.key: one for one in msgspec.convert(answer, list[detect.Edit])}
        _asked[0] = time.monotonic()
    # A change that was just undone is in neither answer.
    rows = [told.get(key) or detect.Edit(key, one.path, copies=one.copies) for key, one in found.items()]
    return store.replace(EditRow, rows, lambda edit: edit.key)
