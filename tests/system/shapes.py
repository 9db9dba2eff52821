"""Pools in the appliance, for tests that change their shape through the pages."""

from __future__ import annotations

import html
import json
import re
from typing import Any
from urllib.parse import quote

from deploy.image.machine import Machine, wait_for
from tests.visitor import Answer, Visitor

# A rebuilding of an almost empty pool takes seconds, each command and job some more under emulation.
LONG = 180


def status(appliance: Machine, pool: str) -> dict[str, Any]:
    """The pool as ``zpool status -j`` tells it."""
    found: dict[str, Any] = json.loads(appliance.run("zpool", "status", "-j", "--json-int", pool))["pools"][pool]
    return found


def nodes(found: dict[str, Any]) -> list[dict[str, Any]]:
    """Every vdev below, groups before what is in them; spares, logs and caches last."""
    seen = []
    for key in ("vdevs", "logs", "l2cache", "spares"):
        for child in (found.get(key) or {}).values():
            seen += [child, *nodes(child)]
    return seen


def guid_of(appliance: Machine, pool: str, name: str) -> int:
    """The guid of the vdev whose name holds this text: a serial number, ``raidz1-0``."""
    return next(int(node["guid"]) for node in nodes(status(appliance, pool)) if name in node["name"])


def names(appliance: Machine, pool: str) -> str:
    """All names in the pool's tree, in one line."""
    return " ".join(node["name"] for node in nodes(status(appliance, pool)))


def page_of(appliance: Machine, pool: str) -> str:
    """The address of the pool's page."""
    return f"/pools/{appliance.run('zpool', 'get', '-H', '-o', 'value', 'guid', pool).strip()}/"


def by_id(appliance: Machine, serial: str) -> str:
    """The stable path by which Larder knows the disk with this serial number."""
    code = (
        "import json,sys; from appliance.disks import inventory; print(json.dumps([[d.serial, d.path] for d in "
        "inventory.read_disks(())]))"
    )
    found = dict(json.loads(appliance.run("/opt/larder/venv/bin/python", "-I", "-c", code)))
    return str(found[serial])


def disk_link(machine: Machine, serial: str) -> str:
    """The path under ``/dev/disk/by-id`` of the disk with this serial number, once it is there."""
    look = f"ls /dev/disk/by-id/ | grep -F {serial} | grep -v part | head -1 || true"
    return f"/dev/disk/by-id/{wait_for(f'{serial} to be there', lambda: machine.shell(look).strip(), timeout=60)}"


def import_pool(machine: Machine, pool: str, *options: str) -> None:
    """Import a pool by hand, once its disks have been found; the link of a disk is there
    before that of its partition."""
    found = ("zpool", "import", "-d", "/dev/disk/by-id")
    wait_for(f"{pool} to be found", lambda: f"pool: {pool}\n" in machine.run(*found, check=False), timeout=60)
    machine.run(*found, *options, pool)


def chosen(path: str, *disks: str, **answers: str) -> str:
    """The address of the review after these disks were chosen on a page of ``add``."""
    query = "&".join(
        [*(f"disks={quote(disk)}" for disk in disks), *(f"{key}={value}" for key, value in answers.items())]
    )
    return f"{path}?answered=yes&{query}"


def change(visitor: Visitor, review: Answer) -> str:
    """Confirm a review, typing the name where it asks for that, and wait for the job; what it says at its end."""
    asked = re.search(r'data-confirm-name="([^"]*)"', review.text)
    more: dict[str, object] = {"typed": html.unescape(asked[1])} if asked else {}
    return visitor.ended(visitor.confirm(review, **more), timeout=LONG)


def done(visitor: Visitor, address: str) -> None:
    """Confirm the review at this address; its job ends well."""
    said = change(visitor, visitor.get(address))
    assert said.startswith("Done."), said


def press(visitor: Visitor, page: Answer, action: str, **fields: object) -> Answer:
    """Send the form of a page that has this action."""
    return visitor.send(action, {"csrfmiddlewaretoken": page.hidden()["csrfmiddlewaretoken"], **fields})


def link(page: Answer, part: str) -> str:
    """The first link of a page whose address holds this text."""
    found = [html.unescape(href) for href in re.findall(r'href="([^"]+)"', page.text)]
    return next(href for href in found if part in href)
