"""Sweeps by the pages, for the system tests of them: small amounts of data, with memory kept out of the way."""

from __future__ import annotations

import html
import re
import urllib.parse
from typing import Any

from deploy.image.machine import Machine, wait_for
from tests.visitor import Answer, Visitor

SMALL: dict[str, Any] = {
    "answered": 1, "title": "Measured", "layouts": ["stripe"], "ashifts": [12], "workloads": ["seq-write"], "partitions": ["whole"],
    "recordsizes": [131072], "compressions": ["off"], "dedups": ["False"], "syncs": ["standard"], "compressible": 0,
    "size": "96 MiB", "repeats": 2, "seconds": 2, "warmups": 0, "writers": 1, "aside": "on", "fills": [25],
}  # fmt: skip
ENDS = (">done<", ">stopped<", ">paused<")


def review(visitor: Visitor, preset: str, disks: list[str], **changes: Any) -> Answer:
    """The review page of a sweep on these disks, or the form again where something speaks against it."""
    query = {**SMALL, "disks": disks, **changes}
    return visitor.get(f"/sweeps/new/{preset}/?" + urllib.parse.urlencode(query, doseq=True))


def typed(page: Answer) -> dict[str, str]:
    """What the review asks to be typed, as the fields of its form."""
    words = re.findall(r'class="to-type">([^<]*)<', page.text)
    return {f"typed-{at}": html.unescape(word) for at, word in enumerate(words)}


def begin(visitor: Visitor, page: Answer) -> str:
    """Type what the review asks for; the sweep's address."""
    assert page.status == 200, page.words
    answer = visitor.send("/sweeps/start/", {**page.hidden(), **typed(page)})
    assert re.search(r"/sweeps/[0-9a-f-]{36}/$", answer.url), answer.words
    return urllib.parse.urlsplit(answer.url).path


def ended(visitor: Visitor, path: str, *, timeout: float = 600) -> Answer:
    """The sweep's page once it has ended or waits for a person."""

    def look() -> Answer | None:
        page = visitor.get(f"{path}?part=live")
        return page if any(word in page.text for word in ENDS) else None

    return wait_for(f"{path} to end", look, timeout=timeout, every=1)


def complete(visitor: Visitor, page: Answer, *, timeout: float = 600) -> Answer:
    """Begin what the review shows, wait for its end, and see that every case has a figure that counts."""
    said = ended(visitor, begin(visitor, page), timeout=timeout)
    assert ">done<" in said.text, said.words
    assert "does not count" not in said.words, said.words
    return said


def nothing_left(appliance: Machine, *disks: str) -> None:
    """No scratch pool or folder, nothing on these disks, no note of anything that is still to be cleared away."""

    def clean() -> bool:
        made = appliance.run("zfs", "list", "-H", "-o", "name", check=False) + appliance.run(
            "zpool", "list", "-H", "-o", "name"
        )
        notes = appliance.shell("ls /var/lib/larder-agent/sweeps 2>/dev/null | wc -l").strip()
        signs = "".join(appliance.run("wipefs", "-n", disk) for disk in disks)
        return "larder-sweep" not in made and notes == "0" and not signs.strip()

    wait_for("everything to be cleared away", clean, timeout=120)
