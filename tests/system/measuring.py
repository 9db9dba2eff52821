"""Sweeps by the pages, for the system tests of them: small amounts of data, with memory kept out of the way."""

from __future__ import annotations

import html
import re
import urllib.parse
from typing import Any

from appliance.benchmarks.box_settings.switch import UNITS
from deploy.image.machine import Machine, MachineError, wait_for
from tests.visitor import Answer, Visitor

SMALL: dict[str, Any] = {
    "answered": 1,
    "title": "Measured",
    "layouts": ["stripe"],
    "ashifts": [12],
    "workloads": ["seq-write"],
    "partitions": ["whole"],
    "recordsizes": [131072],
    "compressions": ["off"],
    "dedups": ["False"],
    "syncs": ["standard"],
    "compressible": 0,
    "size": "96 MiB",
    "repeats": 2,
    "seconds": 2,
    "warmups": 0,
    "writers": 1,
    "aside": "on",
    "fills": [25],
}
ENDS = (">done<", ">stopped<", ">paused<")


def review(visitor: Visitor, preset: str, disks: list[str], **changes: Any) -> Answer:
    """The review page of a sweep on these disks, or the form again where something speaks against it.

    Once they can be chosen: what held a disk just before is known to be gone after some seconds.
    """
    asked = {**SMALL, "disks": disks, **changes}
    wanted = [*disks, *(asked[beside] for beside in ("log", "cache") if beside in asked)]

    def offered(form: Answer) -> bool:
        return all(f'value="{disk}"' in form.text for disk in wanted)

    visitor.watch(f"/benchmarks/new/{preset}/", offered, timeout=120)
    return visitor.get(f"/benchmarks/new/{preset}/?" + urllib.parse.urlencode(asked, doseq=True))


def typed(page: Answer) -> dict[str, str]:
    """What the review asks to be typed, as the fields of its form."""
    words = re.findall(r'class="to-type">([^<]*)<', page.text)
    return {f"typed-{at}": html.unescape(word) for at, word in enumerate(words)}


def begin(visitor: Visitor, page: Answer) -> str:
    """Type what the review asks for; the sweep's address."""
    assert page.status == 200, page.words
    answer = visitor.send("/benchmarks/start/", {**page.hidden(), **typed(page)})
    assert re.search(r"/benchmarks/[0-9a-f-]{36}/$", answer.url), answer.words
    return urllib.parse.urlsplit(answer.url).path


def ended(visitor: Visitor, path: str, *, timeout: float = 1800) -> Answer:
    """The sweep's page once it has ended or waits for a person."""

    def look(page: Answer) -> Answer | None:
        return page if any(word in page.text for word in ENDS) else None

    try:
        return visitor.watch(path, look, timeout=timeout, every=1, part=True)
    except MachineError as late:
        raise AssertionError(f"{late}: {everything_told(visitor, path)}") from late


def everything_told(visitor: Visitor, path: str) -> str:
    """For whoever looks at a test that failed: the sweep's page, the jobs of its cases, and what the agent said."""
    page = visitor.get(path)
    jobs = dict.fromkeys(re.findall(r"/jobs/([0-9a-f-]{36})/", page.text))
    said = [page.words, *(visitor.get(f"/jobs/{job}/").words for job in list(jobs)[-2:])]
    journal = visitor.appliance.run("journalctl", "-q", "-o", "cat", "-t", "larder-agent", "-n", "60", check=False)
    return "\n\n".join([*(text[-3000:] for text in said), journal[-4000:]])


def complete(visitor: Visitor, page: Answer, *, timeout: float = 1800) -> Answer:
    """Begin what the review shows, wait for its end, and see that every case has a figure that counts."""
    path = begin(visitor, page)
    said = ended(visitor, path, timeout=timeout)
    good = ">done<" in said.text and "does not count" not in said.words
    assert good, everything_told(visitor, path)
    return said


def nothing_left(appliance: Machine, *disks: str) -> None:
    """No scratch pool or folder, nothing on these disks, no note of anything that is still to be cleared away."""

    def clean() -> bool:
        made = appliance.run("zfs", "list", "-H", "-o", "name", check=False) + appliance.run(
            "zpool", "list", "-H", "-o", "name"
        )
        notes = appliance.shell("ls /var/lib/larder-agent/sweeps 2>/dev/null || true").split()
        signs = "".join(appliance.run("wipefs", "-n", disk) for disk in disks)
        found = [*re.findall("larder-sweep-[0-9a-f]+", made), *notes, *signs.split()]
        if found:
            raise MachineError(f"still there: {' '.join(found)}")
        return True

    # What is left is looked for once a minute, in facts that are some seconds old.
    wait_for("everything to be cleared away", clean, timeout=300, every=1)


def armed_timers(appliance: Machine) -> list[str]:
    """Which of the two units stand that put a setting back, in turns."""
    said = appliance.run("systemctl", "is-active", *(f"{unit}.timer" for unit in UNITS), check=False)
    return [unit for unit, state in zip(UNITS, said.split(), strict=True) if state == "active"]
