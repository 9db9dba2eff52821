"""Bring the files of the shares to what the folders say, where a power cut has left the two apart."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from appliance.errors import LarderError, explain_error
from appliance.facts.box import Facts
from appliance.facts.datasets import Dataset
from appliance.message import Message, join_messages
from appliance.shares import publish
from appliance.shares.publish import Serving
from appliance.shares.settings import CALLED


def reconcile_files(facts: Facts, datasets: Iterable[Dataset], note: Callable[[str], None]) -> None:
    """Publish each protocol whose file says something else than its folders; one that fails stops no other.

    ``facts`` has the datasets that somebody agreed to share, ``datasets`` are all that are here.
    """
    here = [one.mountpoint for one in datasets if one.mountpoint.startswith("/") and one.mountpoint != "/"]
    for protocol, one in publish.SERVING.items():
        try:
            if is_stale(one, facts, here):
                publish.publish_shares(facts, [protocol], insist=False, note=note)
                note(Message("{protocol} was not as the folders say, and is now", protocol=CALLED[protocol]))
        except LarderError as error:
            note(join_messages([CALLED[protocol], explain_error(error)], ": "))


def is_stale(one: Serving, facts: Facts, here: Collection[str]) -> bool:
    """Whether a file has to be written anew. One that was changed by hand waits for a person to decide.
    So does one with a share of a pool that is away: the pool may be back soon, and its shares with it."""
    before = one.configured()
    if one.owned.drifted() or not (before or one.shares(facts)):
        return False
    away = [share for share in before if not any(f"{share.path}/".startswith(f"{place}/") for place in here)]
    return not away and not one.owned.says(one.render(facts))
