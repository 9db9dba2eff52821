"""Which pools lie on the disks of this box without being in use:
``zpool import``, which speaks only text, and ``zdb -l``.

Looking opens every disk, so it is done when somebody asks, never by the clock. All texts come from the labels of disks,
which anyone may have written: what is read here is shown, and every later act names the pool by its guid alone.
The texts are those of ``show_import`` in OpenZFS 2.3 (``cmd/zpool/zpool_main.c``).
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from appliance import command
from appliance.disks.inventory import walk_nodes
from appliance.errors import Cancelled, Failed
from appliance.facts import vdev_state
from appliance.facts.box import Facts
from appliance.facts.importable import Importable, ImportablePart, Rewind
from appliance.message import Message
from appliance.request import Request
from appliance.system import disk_links, locks
from appliance.zfs import vdev_tree

BY_ID = "/dev/disk/by-id"
SPL_HOSTID = Path("/sys/module/spl/parameters/spl_hostid")
SECONDS_TO_LOOK = 300
MOST_POOLS = 64
LONGEST_TEXT = 2000
SECTIONS = {"logs": "log", "special": "special", "dedup": "dedup"}
STATES = r"ONLINE|DEGRADED|FAULTED|OFFLINE|REMOVED|UNAVAIL|AVAIL|INUSE|SPLIT"
NO_POOLS = "no pools available to import"
HEADING = re.compile(r"\s*(pool|id|state|status|action|comment|see|config): ?(.*)")


def split_pools(text: str) -> Iterator[list[str]]:
    """The lines of each pool: a block begins with a line ``pool:`` that is followed by one ``id:`` with digits."""
    lines = text.split("\n")
    starts = [
        at
        for at, line in enumerate(lines)
        if re.match(r"\s*pool: ", line) and at + 1 < len(lines) and re.fullmatch(r"\s*id: \d{1,20}", lines[at + 1])
    ]
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=False):
        yield lines[start:end]


def parse_part(line: str, role: str) -> ImportablePart | None:
    """A line of the make-up: name, state, and what is wrong; None where it is none."""
    found = re.fullmatch(rf"\t( *)(\S(?:.*?\S)?) +({STATES})(?: +(\S.*))?", line.rstrip())
    if not found:
        return None
    return ImportablePart(found[2][:300], found[3], (found[4] or "")[:300], len(found[1]) // 2, role)


def parse_pool(lines: list[str]) -> Importable:
    """One pool from its block."""
    texts: dict[str, str] = {}
    parts: list[ImportablePart] = []
    heading, role = "", "normal"
    for line in lines:
        if heading == "config":
            word = line.strip()
            if line.startswith("\t") and word in {*SECTIONS, "cache", "spares"}:
                # Cache and spare devices come as bare names: they hold nothing of the pool.
                role = SECTIONS.get(word, "")
            elif role and (part := parse_part(line, role)):
                parts.append(part)
            continue
        known = HEADING.fullmatch(line)
        if known and known[1] not in texts:
            heading = known[1]
            texts[heading] = known[2].strip()
        elif heading and line.strip():
            texts[heading] += f" {line.strip()}"
    state, _, rest = texts.get("state", "").partition(" ")
    status, action = texts.get("status", ""), texts.get("action", "")
    return Importable(
        name=texts.get("pool", "")[:300],
        guid=int(texts["id"]),
        state=state or "UNKNOWN",
        destroyed="DESTROYED" in rest,
        status=status[:LONGEST_TEXT],
        action=action[:LONGEST_TEXT],
        comment=texts.get("comment", "")[:LONGEST_TEXT],
        parts=tuple(parts),
        other_host="last accessed by another system" in status,
        active_elsewhere="currently imported by another system" in status,
        read_only_only="can only be accessed in read-only mode" in status,
        log_missing=any(part.role == "log" and part.depth and part.state not in vdev_state.WORKING for part in parts),
    )


def parse_pools(text: str) -> tuple[Importable, ...]:
    """The pools of what ``zpool import`` printed; of one guid only the first, for a name may hold line breaks."""
    found: dict[int, Importable] = {}
    for block in split_pools(text):
        pool = parse_pool(block)
        found.setdefault(pool.guid, pool)
    return tuple(found.values())[:MOST_POOLS]


def list_importable(*flags: str) -> tuple[Importable, ...]:
    """What ``zpool import`` lists. Raises Failed; that there is none is no failure."""
    result = command.run(["zpool", "import", *flags, "-d", BY_ID], timeout=SECONDS_TO_LOOK, accept=(0, 1))
    if result.status and result.stderr.strip() and NO_POOLS not in result.stderr:
        raise Failed(Message("The disks could not be searched for pools"), result.stderr)
    return parse_pools(result.stdout)


def rewind_from(text: str) -> Rewind | None:
    """What a dry run of the recovery promised (``zpool_rewind_exclaim`` in ``libzfs_pool.c``)."""
    promised = re.search(r"Would be able to return .* to its state as of (.+)\.\n", text)
    if not promised:
        return None
    lost = re.search(r"Would discard approximately (\d+) (seconds|minutes) of transactions", text)
    return Rewind(promised[1][:60], f"{lost[1]} {lost[2]}" if lost else "")


def try_rewind(pool: Importable) -> Rewind | None:
    """Ask ZFS whether an earlier moment of a damaged pool is whole, and what would be lost; nothing is written.

    A dry run imports the pool after all where nothing is wrong with it (``spa_load_best``), hence read-only, without
    mounting anything, and let go at once.
    """
    scratch = f"larder-look-{pool.guid}"
    argv = ["zpool", "import", *(["-D"] if pool.destroyed else []), "-f", "-F", "-n", "-N"]
    argv += ["-o", "readonly=on", "-o", "cachefile=none", "-d", BY_ID, str(pool.guid), scratch]
    result = command.run(argv, timeout=SECONDS_TO_LOOK, accept=range(256))
    if result.status == 0:
        command.run(["zpool", "export", scratch], timeout=SECONDS_TO_LOOK, accept=range(256))
    return rewind_from(result.stdout)


def moments_from(text: str) -> list[int]:
    """The seconds of the states (uberblocks) that ``zdb -lu`` found on a device, oldest first."""
    found = re.findall(r"^\ttxg = (\d{1,20})\n\tguid_sum = \d{1,20}\n\ttimestamp = (\d{1,12}) ", text, re.MULTILINE)
    return [at for _txg, at in sorted({(int(txg), int(at)) for txg, at in found})]


def last_resort(pool: Importable, device: str) -> Rewind | None:
    """Between which moments a search of all earlier states (``zpool import -F -X``) ends; which, only the search knows.

    It reads the whole pool for each state that it tries (``spa_load_verify``), so it is not tried by looking.
    """
    groups = [part for part in pool.parts if part.depth == 1]
    if not device or any(part.state not in vdev_state.WORKING for part in groups):
        return None
    try:
        said = command.run(["zdb", "-lu", device], timeout=60, accept=range(256)).stdout
    except Failed:
        return None
    if label_from(said).get("pool_guid") != str(pool.guid):
        return None
    earlier = moments_from(said)[:-1]
    return Rewind(time.ctime(earlier[-1]), at_worst=time.ctime(earlier[0])) if earlier else None


def label_from(text: str) -> dict[str, str]:
    """The outermost values of the first label that ``zdb -l`` prints."""
    first = text.partition("LABEL 1")[0]
    return {key: value.strip("'") for key, value in re.findall(r"^    (\w+): (.*)$", first, re.MULTILINE)}


def labelled_devices(listing: Mapping[str, Any]) -> dict[int, str]:
    """Pool guid → one device that carries its label, from ``lsblk`` with the columns below."""
    found: dict[int, str] = {}
    for disk in listing.get("blockdevices") or ():
        for node in walk_nodes(disk):
            uuid = str(node.get("uuid") or "")
            if node.get("fstype") == "zfs_member" and uuid.isdigit() and node.get("path"):
                found.setdefault(int(uuid), str(node["path"]))
    return found


def pool_disks(guid: int, facts: Facts) -> tuple[str, ...]:
    """By-id paths of the disks that a pool lies on or is brought in from: those that it uses, those that carry its
    label, and those that ``zpool import`` named."""
    pool, found = facts.pool_of(guid), facts.found(guid)
    named = {vdev_tree.link_of(device) for device in pool.devices()} if pool else set()
    named |= {part.name.rsplit("-part", 1)[0] for part in found.parts} if found else set()
    links = disk_links.read_links()
    kernel = {links[link] for link in named if link in links}  # a disk has several names
    return tuple(
        disk.path
        for disk in facts.disks
        if disk.path
        and (
            disk.name in kernel or Path(disk.path).name in named or any(use.identity == str(guid) for use in disk.uses)
        )
    )


def own_hostid() -> int:
    """This system's host id as ZFS sees it: the module's own where set, else the C library's."""
    try:
        own = int(SPL_HOSTID.read_text())
    except (OSError, ValueError):
        own = 0
    return own or int(command.run(["hostid"], timeout=10).stdout.strip() or "0", 16)


def with_host(pool: Importable, device: str, own: int) -> Importable:
    """The pool with what its label says of the system that used it last."""
    try:
        label = label_from(command.run(["zdb", "-l", device], timeout=60, accept=range(256)).stdout)
    except Failed:
        # It may crash on what a disk holds. ZFS itself still refuses a pool that another system has not let go of.
        return pool
    if label.get("pool_guid") != str(pool.guid):
        return pool
    hostid = int(label["hostid"]) if label.get("hostid", "").isdigit() else 0
    held = label.get("state") == "0" and bool(hostid) and hostid != own  # 0: active, neither exported nor destroyed
    return replace(pool, other_host=pool.other_host or held, host=label.get("hostname", "")[:100])


def discover_pools(only: int = 0) -> tuple[Importable, ...]:
    """Every pool on this box's disks that could be imported, destroyed ones last. Raises Failed.

    ``only``: the guid of the pool that is meant, by a job that holds its lock; no other pool's recovery is then tried.
    """
    found = (*list_importable(), *list_importable("-D"))
    if not found:
        return ()
    try:
        listing = json.loads(command.run(["lsblk", "-J", "-o", "NAME,PATH,FSTYPE,UUID"], timeout=20).stdout)
    except ValueError:
        listing = {}
    devices, own = labelled_devices(listing), own_hostid()
    seen = [with_host(pool, devices[pool.guid], own) if pool.guid in devices else pool for pool in found]
    return tuple(with_rewind(pool, devices.get(pool.guid, ""), only) if is_damaged(pool) else pool for pool in seen)


def with_rewind(pool: Importable, device: str, only: int) -> Importable:
    """The damaged pool with the way back that it has; without, where it is another's turn."""
    if only and pool.guid != only:
        return pool
    if only:
        return replace(pool, rewind=try_rewind(pool) or last_resort(pool, device))

    def busy(_name: str) -> None:
        raise Cancelled

    try:
        with locks.hold_locks([str(pool.guid)], busy):
            return replace(pool, rewind=try_rewind(pool) or last_resort(pool, device))
    except Cancelled:
        return pool


def is_damaged(pool: Importable) -> bool:
    """Whether going back to an earlier moment could help: its disks are there, what they say does not fit together."""
    missing = "missing" in pool.status or "feature" in pool.status or pool.active_elsewhere
    return not pool.usable and not missing and not pool.log_missing


class LookForPools(Request, tag="look-for-pools"):
    """Which pools lie on the disks without being in use here. It opens every disk: somebody asked."""

    def read(self) -> object:
        return discover_pools()
