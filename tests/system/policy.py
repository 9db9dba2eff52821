"""Policies in the appliance: set on a page, seen in what is there, with the clock moved on by the test."""

from __future__ import annotations

from deploy.image.machine import Machine, wait_for
from tests.system import sharing
from tests.visitor import Visitor

NUMBERS = {"frequent": 0, "hourly": 2, "daily": 0, "weekly": 0, "monthly": 0, "first": 0, "last": 0, "below": "on"}


def there(appliance: Machine, dataset: str = "tank/photos") -> list[str]:
    """The short names of its snapshots, oldest first by transaction group."""
    said = appliance.run("zfs", "list", "-H", "-t", "snapshot", "-d", "1", "-o", "name", "-s", "createtxg", dataset)
    return [line.partition("@")[2] for line in said.splitlines()]


def known(visitor: Visitor, appliance: Machine, snapshot: str) -> str:
    """Wait until the pages know this snapshot; the address of its page. A list says many a word that is also a name."""
    key, guid = sharing.key_of(appliance, snapshot.partition("@")[0]), sharing.key_of(appliance, snapshot)
    address = f"/snapshots/of/{key}/{guid}/"

    def is_shown() -> bool:
        visitor.get(f"/snapshots/of/{key}/")  # looking at a list has it read again; looking at one snapshot does not
        return snapshot in visitor.get(address).words

    wait_for(f"the pages to know {snapshot}", is_shown, timeout=120, every=0.5)
    return address


def job_of(visitor: Visitor, path: str, **fields: object) -> str:
    """Send a page's form; the job that it begins, ended."""
    answer = visitor.post(path, **fields)
    # What may destroy something is reviewed first, and asks for the password.
    job = sharing.job_in(answer) if "/jobs/" in answer.url else visitor.confirm(answer)
    said = visitor.ended(job)
    assert said.startswith("Done."), said
    return job


def set_policy(visitor: Visitor, photos: str, **numbers: object) -> str:
    """Look at what the numbers do, then set them; what the page said before."""
    shown = visitor.post(f"{photos}policy/", **{**NUMBERS, **numbers}, look="")
    assert shown.status == 200, shown.words[:1500]
    job_of(visitor, f"{photos}policy/", **{**NUMBERS, **numbers}, set="", shown=shown.hidden()["shown"])
    return shown.words


def made(appliance: Machine, dataset: str = "tank/photos") -> list[str]:
    """Those whose names are a policy's, oldest first."""
    return [name for name in there(appliance, dataset) if name.startswith("larder-")]
