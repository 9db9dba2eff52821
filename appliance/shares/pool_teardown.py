"""What stops being served when a pool leaves: its shares, and whoever has them open."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from appliance.facts.box import Facts
from appliance.facts.datasets import Dataset
from appliance.facts.sharing import Session, Share
from appliance.operation import Step, Work
from appliance.shares import approved, connections, publish
from appliance.zfs import status

MOST_NAMED = 10


def shares_of(facts: Facts, pool: str) -> list[Share]:
    """The shares that serve a folder of the pool."""
    places = {dataset.mountpoint for dataset in facts.datasets if dataset.pool == pool and dataset.mountpoint != "/"}
    return [
        share
        for share in facts.shares
        if any(share.path == place or share.path.startswith(f"{place}/") for place in places if place.startswith("/"))
    ]


def said(sessions: Iterable[Session], shares: Iterable[Share]) -> str:
    """Who is connected to these shares, for a review page; empty where nobody is."""
    names = {share.name.lower() for share in shares}
    people = [f"{one.user} from {one.machine} ({one.share})" for one in sessions if one.share.lower() in names]
    more = f" and {len(people) - MOST_NAMED} more" if len(people) > MOST_NAMED else ""
    return ", ".join(people[:MOST_NAMED]) + more


def serve(datasets: Iterable[Dataset], note: Callable[[str], None]) -> None:
    """Have every daemon serve what these datasets ask for and the owner agreed to. Raises Failed, Refused on a hand edit."""
    publish.publish(publish.agreed_facts(datasets), insist=False, note=note)


def stop_step(pool: str, shares: Iterable[Share], *, forget: bool) -> Step:
    """Stop serving a pool's shares and end the sessions on them.

    ``forget``: what is brought in again later, here or elsewhere, is offered and not switched on by itself.
    """
    closing = sorted({share.name for share in shares})

    def act(work: Work) -> None:
        every = status.read_datasets()
        for session in connections.sessions():
            if session.share.lower() in {name.lower() for name in closing}:
                work.note(f"{session.user} at {session.machine} had {session.share} open and was disconnected")
        serve((one for one in every if one.pool != pool), work.note)
        if forget:
            known = approved.read_approved()
            for one in every:
                if one.pool == pool and one.guid in known:
                    approved.set_approved(one.guid, share=False)

    shown = "\n".join(
        [f"write {one.owned.path}, reload {' '.join(one.units)}" for one in publish.SERVING.values()]
        + [f"close {name}" for name in closing]
    )
    return Step("shares", "Stop its shares and disconnect who uses them", shown, act, tuple(closing))


def who_uses(folders: Iterable[str], proc: Path = Path("/proc")) -> list[str]:
    """Programs that hold something open below these folders: ``rsync (process 811): /tank/photos``."""
    wanted = tuple(folder.rstrip("/") for folder in folders if folder not in {"", "/"})
    found = []
    for process in sorted((one for one in proc.iterdir() if one.name.isdigit()), key=lambda one: int(one.name)):
        try:
            links = [process / "cwd", process / "root", *(process / "fd").iterdir()]
            name = (process / "comm").read_text().strip()
        except OSError:
            continue
        for link in links:
            try:
                target = str(link.readlink())
            except OSError:
                continue
            if any(target == folder or target.startswith(f"{folder}/") for folder in wanted):
                found.append(f"{name} (process {process.name}): {target[:200]}")
                break
    return found
