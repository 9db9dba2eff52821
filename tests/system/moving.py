"""Pools that come and go, by the pages, for the system tests of them."""

from __future__ import annotations

import re
import urllib.parse
from pathlib import Path

from deploy.image.machine import Machine, wait_for
from tests.system import shapes
from tests.visitor import Answer, Visitor, blank

BRING_IN = "/pools/import/"


def guid_of(appliance: Machine, pool: str) -> str:
    return appliance.run("zpool", "get", "-H", "-o", "value", "guid", pool).strip()


def pools(appliance: Machine) -> list[str]:
    return appliance.run("zpool", "list", "-H", "-o", "name").split()


def prop(appliance: Machine, name: str, dataset: str) -> str:
    return appliance.run("zfs", "get", "-H", "-o", "value", name, dataset).strip()


def clear(appliance: Machine, *disks: str) -> None:
    """No pool in use, and nothing left on these disks."""
    for pool in pools(appliance):
        appliance.run("zpool", "destroy", "-f", pool)
    blank(appliance, *disks)


def look(visitor: Visitor, *words: str, timeout: float = 240) -> Answer:
    """Have the disks searched, again where need be; the list once it says these words."""

    def found() -> Answer | None:
        answer = visitor.send(f"{BRING_IN}look/", {**visitor.get(BRING_IN).hidden()})
        assert answer.status == 200, answer.words
        page = visitor.wait_until(BRING_IN, "Last searched", without=("Searching all disks",), timeout=180)
        return page if all(word in page.words for word in words) else None

    # Two looks within seconds are one.
    return wait_for(f"the list of pools to say {words}", found, timeout=timeout, every=6)


def plug_in_again(appliance: Machine, pool: str, disks: dict[str, str], size: int) -> None:
    """After a power cut, plug the inserted disks of a pool in again, by their serial numbers, and import it."""
    for name, serial in disks.items():
        appliance.insert(name, size, serial=serial)
    shapes.import_pool(appliance, pool)


def review_import(visitor: Visitor, guid: str, **answers: str) -> Answer:
    """The review page of bringing in, or the form again where something speaks against it."""
    return visitor.get(f"{BRING_IN}{guid}/?" + urllib.parse.urlencode({"answered": "yes", **answers}))


def bring_in(visitor: Visitor, guid: str, typed: str = "", **answers: str) -> str:
    """Bring a pool in by the pages; what its job said at the end."""
    job = visitor.confirm(review_import(visitor, guid, **answers), typed=typed)
    return visitor.ended(job, timeout=300)


def end_review(visitor: Visitor, guid: str, act: str, *words: str) -> Answer:
    """The review page of an act on a whole pool, once the facts behind it have been read."""

    def ready() -> Answer | None:
        visitor.get(f"/pools/{guid}/")
        page = visitor.get(f"/pools/{guid}/end/{act}/")
        return page if page.status == 200 and all(word in page.words for word in words) else None

    return wait_for(f"the review of {act} to say {words}", ready, timeout=120, every=1)


def done(visitor: Visitor, review: Answer, **typed: object) -> str:
    """Confirm, and see that the job ended well; the words of its page."""
    job = visitor.confirm(review, **typed)
    said = visitor.ended(job, timeout=300)
    assert said.startswith("Done."), said
    return visitor.get(f"/jobs/{job}/").words


def disk_key(visitor: Visitor, serial: str) -> str:
    """The key of a disk's page, once the disk is known."""
    link = re.compile(rf'/disks/([^/"]*{re.escape(serial)}[^/"]*)/')
    # Right after it was plugged in, the kernel knows its serial number and udev has not yet
    # made the link that names it.
    found = wait_for(f"the page of {serial}", lambda: link.search(visitor.get("/disks/").text), timeout=60)
    return str(found[1])


def hurt_latest_state(appliance: Machine, pool: str, partition: str) -> None:
    """Overwrite every copy of the newest root block of an exported pool on one disk, as a lying write cache would.

    ``zdb -uuu`` tells where they are; the data area begins 4 MiB into the partition.
    """
    told = appliance.run("zdb", "-e", "-uuu", "-p", str(Path(partition).parent), pool, timeout=300)
    line = next(line for line in told.splitlines() if "bp = DVA" in line)
    copies = re.findall(r"DVA\[\d\]=<0:([0-9a-f]+):([0-9a-f]+)>", line)
    assert copies, line
    for offset, size in copies:
        at, length = int(offset, 16) + 4 * 2**20, int(size, 16)
        appliance.shell(
            f"head -c {length} /dev/urandom | dd of={partition} bs=512 seek={at // 512} conv=notrunc,fsync status=none"
        )
    appliance.shell(f"blockdev --flushbufs {partition}; sync; echo 3 > /proc/sys/vm/drop_caches")
