"""The shares of a dataset and of all below it, when the dataset goes, moves or is locked."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import replace

from appliance import command
from appliance.errors import Failed, LarderError
from appliance.facts.box import Facts
from appliance.facts.datasets import Dataset
from appliance.facts.sharing import Share
from appliance.operation import Step, Work
from appliance.shares import approved, pool_teardown, publish
from appliance.shares.settings import SPOKEN
from appliance.zfs import status

BUSY = ("busy", "could not unmount", "cannot unmount")


def shares_at(facts: Facts, datasets: Iterable[Dataset]) -> list[Share]:
    """The shares that serve one of these datasets or a folder in it."""
    places = {one.mountpoint for one in datasets if one.mountpoint.startswith("/") and one.mountpoint != "/"}
    return [share for share in facts.shares if any(f"{share.path}/".startswith(f"{place}/") for place in places)]


def told(facts: Facts, shares: Collection[Share]) -> dict[str, str]:
    """For a review page: the shares that stop, and who is connected to them now."""
    found = {
        "Shares": ", ".join(share.name for share in shares),
        "Connected now": pool_teardown.said(facts.sessions, shares),
    }
    return {key: value for key, value in found.items() if value}


def close(shares: Collection[Share]) -> None:
    """End what clients have open of these shares. Raises Failed."""
    for protocol, one in publish.SERVING.items():
        one.close([share for share in shares if share.protocol == protocol])


def shown(shares: Collection[Share]) -> str:
    return "\n".join(f"close {share.name} ({SPOKEN[share.protocol]})" for share in shares)


def close_step(shares: Collection[Share]) -> list[Step]:
    """End what clients have open, where there is a share. They may come back while the folder is there."""
    names = sorted({share.name for share in shares})

    def act(work: Work) -> None:
        close(shares)
        work.note(f"Whoever had {', '.join(names)} open was disconnected")

    return [Step("close", "End what clients have open", shown(shares), act, tuple(names))] if names else []


def stop_step(shares: Collection[Share], guids: frozenset[int]) -> list[Step]:
    """Stop serving these datasets for good, where there is a share."""
    names = sorted({share.name for share in shares})

    def act(work: Work) -> None:
        pool_teardown.serve((one for one in status.read_datasets() if one.guid not in guids), work.note)
        close(shares)
        for guid in guids & approved.read_approved():
            approved.set_approved(guid, share=False)

    return [Step("shares", f"Stop the shares {', '.join(names)}", shown(shares), act, tuple(names))] if names else []


def serve_step(shares: Collection[Share]) -> list[Step]:
    """Serve the folders where they are now, where there was a share."""

    def act(work: Work) -> None:
        pool_teardown.serve(status.read_datasets(), work.note)

    files = "\n".join(f"write {one.owned.path}, reload {' '.join(one.units)}" for one in publish.SERVING.values())
    return [Step("serve", "Share it from its new place", files, act)] if shares else []


def all_served(facts: Facts, datasets: Iterable[Dataset]) -> bool:
    """Whether each of these datasets that somebody agreed to share has its shares at its place."""
    here = {(share.protocol, share.path) for share in facts.shares}
    wanted = publish.only_agreed(replace(facts, datasets=tuple(datasets)), approved.read_approved())
    return all(
        (protocol, share.path) in here for protocol, one in publish.SERVING.items() for share in one.shares(wanted)
    )


def let_go(argv: list[str], name: str, folders: Iterable[str]) -> None:
    """Run a command that needs these folders unmounted; where one is busy, say by whom. Raises Failed."""
    places = list(folders)
    try:
        command.run(argv, timeout=600)
    except command.CommandFailed as failed:
        if not any(word in failed.said for word in BUSY):
            raise
        users = pool_teardown.who_uses(places)
        # What was ended before is served again, since the folder stays where it is; what is told is who holds it.
        with suppress(LarderError):
            pool_teardown.serve(status.read_datasets(), lambda _text: None)
        who = f"Still using it: {'; '.join(users[:5])}." if users else "Another computer or a backup may be using it."
        raise Failed(f"{name} is still in use. {who} Stop that, then try again", failed.said) from failed
