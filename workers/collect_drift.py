"""Files of Larder's that somebody changed by hand. Whether one was is seen at every reading; how it differs only the agent
can tell, which is asked when there is something to tell, and then now and again, for settings change as well."""

from __future__ import annotations

import time

import msgspec

from appliance import agent_client
from appliance.shares.drift import detect
from web.inventory import store
from web.inventory.models import EditRow

SECONDS_BETWEEN = 30.0
SOURCE = "by-hand"  # says which file was changed, for every page
_asked = [float("-inf")]


def store_drift() -> bool:
    """Keep what is on the disk in rows; whether they changed. Raises LarderError where the agent cannot tell."""
    found = detect.on_disk()
    edited = {key: one for key, one in found.items() if one.seen}
    names = ", ".join(one.path for one in edited.values())
    store.checked(SOURCE, changed=False, error=f"{names} was changed by hand." if names else "")
    known: dict[str, detect.Edit] = {row.key: row.fact for row in EditRow.objects.all()}
    same = all(key in known and one.seen in {known[key].seen, detect.UNREADABLE} for key, one in edited.items())
    told = {key: known[key] for key in edited if key in known}
    if edited and (not same or time.monotonic() - _asked[0] > SECONDS_BETWEEN):
        answer = agent_client.request({"verb": "read-edits"}, silence=120).get("facts", [])
        told = {one.key: one for one in msgspec.convert(answer, list[detect.Edit])}
        _asked[0] = time.monotonic()
    # One that was just undone by hand is in neither answer.
    rows = [told.get(key) or detect.Edit(key, one.path, copies=one.copies) for key, one in found.items()]
    return store.replace(EditRow, rows, lambda edit: edit.key)
