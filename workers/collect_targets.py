"""iSCSI targets that were changed by hand. Every reading looks at what anybody may read of the kernel's targets; the
agent is asked when that or a volume's setting changed, every half minute while there is a manual change, and every five
minutes for what only root may read: the secrets of CHAP. A box that serves no volume never asks."""

from __future__ import annotations

import time

import msgspec

from appliance import agent_client
from appliance.message import Message
from appliance.shares.iscsi import configfs
from appliance.shares.iscsi.divergence import TargetEdit
from web.inventory import store
from web.inventory.dataset_models import DatasetRow
from web.inventory.fact_row import readable_facts
from web.inventory.models import TargetEditRow

SECONDS_WHILE_CHANGED = 30.0
SECONDS_BETWEEN = 300.0
SOURCE = "targets-by-hand"  # names the changed target on every page
VARYING = ("/dynamic_sessions", "/info")  # who is connected


class LastAsked(msgspec.Struct):
    """When the agent was last asked, and what anybody could read then."""

    at: float = float("-inf")
    seen: object = None


_asked = LastAsked()


def store_targets() -> bool:
    """Store the manual changes; whether they differ from before. Raises LarderError where the agent fails."""
    tree = configfs.read_tree()
    settings = sorted(DatasetRow.objects.filter(type="volume").exclude(share_source="none").values_list("key", "facts"))
    rows = list(TargetEditRow.objects.all())
    known: list[TargetEdit] = readable_facts(rows)
    if len(known) < len(rows):
        _asked.seen = None  # one cannot be decoded: only the agent knows what it said
    seen = (tree.folders, tree.links, {path: one for path, one in tree.values.items() if not path.endswith(VARYING)})
    found = known
    if not (tree.folders or settings or rows):
        found, _asked.seen = [], None
    elif is_due((*seen, settings), SECONDS_WHILE_CHANGED if known else SECONDS_BETWEEN):
        answer = agent_client.send_request({"verb": "read-target-edits"}, silence=120).get("facts", [])
        found = msgspec.convert(answer, list[TargetEdit])
        _asked.at, _asked.seen = time.monotonic(), (*seen, settings)
    names = ", ".join(one.name for one in found)
    store.checked(SOURCE, changed=False, error=Message("{names} was changed by hand.", names=names) if names else "")
    return store.replace(TargetEditRow, found, lambda one: one.key)


def is_due(seen: object, seconds: float) -> bool:
    return seen != _asked.seen or time.monotonic() - _asked.at > seconds
