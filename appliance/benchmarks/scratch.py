"""What is measured on: making a scratch pool or dataset, keeping reads from memory between runs, and clearing it away.

Clearing is the same after a good end, a failure, ``kill -9`` and a power cut. It touches only what the claim names
(``scratch_claim.py``): a pool or dataset by its random name and its property, a disk that still carries that pool's traces.
A scratch pool is in no cache file, so it is not brought in at the next start.
"""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

from appliance import command
from appliance.benchmarks import arc_limit, loopback_mount, scratch_claim
from appliance.benchmarks.case import Case
from appliance.benchmarks.scratch_claim import Claim
from appliance.disks import inventory, udev
from appliance.disks.clear_labels import erase_step, zero_ends
from appliance.disks.partitions import size_of
from appliance.errors import Failed
from appliance.facts.box import Disk, Pool
from appliance.formatting import disk_label
from appliance.operation import Work
from appliance.pools.vdevs import retry
from appliance.pools.vdevs.aux_rules import FUZZ
from appliance.shares import settings as share_settings
from appliance.snapshots import set_policy
from appliance.system import paths
from appliance.zfs import status

PROPERTY = "larder:sweep"
NOTHING = "none"  # neither a share nor a policy, and not what would be inherited either
LONG = 900  # seconds for what ZFS does with a whole pool
TIMES = 3
# What ``zpool import`` says where it does not see all of a pool's disks (zpool_main.c, zpool_import_status).
MISSING = (retry.AWAY, "no such pool", "insufficient replicas", "missing device", "no such device")


def scratch_folder(token: str) -> Path:
    """Where the scratch dataset is mounted: nobody but root gets in."""
    return paths.RUN / "sweeps" / token


def sample_part_path(token: str) -> Path:
    """The part of a sample that is in memory, in a folder that only root may enter (``sampling.py``)."""
    return paths.RUN / "sweeps" / f"{token}.sample"


def dataset_properties(case: Case, token: str) -> dict[str, str]:
    """Of the scratch dataset, whether it is a pool's own or one in a pool that is there.

    What the folders above it hand down is not for it: nobody is to see it, and snapshots would keep what is measured.
    """
    return {
        "compression": case.compression,
        "dedup": "on" if case.dedup else "off",
        "sync": case.sync,
        "recordsize": str(case.recordsize),
        "primarycache": "metadata" if case.aside else "all",
        "atime": "off",
        "mountpoint": str(scratch_folder(token)),
        PROPERTY: token,
        share_settings.PROPERTY: NOTHING,
        set_policy.PROPERTY: NOTHING,
    }


def data_device(case: Case, path: str) -> str:
    """What of a data disk is given to the pool."""
    return f"{path}-part1" if case.partition and path in case.disks else path


def create_pool_command(case: Case, token: str, unequal: bool) -> list[str]:
    """``unequal``: the disks of a group differ in size, which zpool wants to be told is meant."""
    words = [
        word
        for group in case.vdev_disks
        for word in (*(() if case.layout == "stripe" else (case.layout,)), *(data_device(case, path) for path in group))
    ]
    beside = [word for role, path in (("log", case.log), ("cache", case.cache)) if path for word in (role, path)]
    return [
        "zpool", "create", *(["-f"] if unequal else []), "-o", f"ashift={case.ashift}", "-o", "cachefile=none", "-o", "failmode=continue",
        *(word for key, value in dataset_properties(case, token).items() for word in ("-O", f"{key}={value}")),
        "--", scratch_claim.scratch_name(token), *words, *beside,
    ]  # fmt: skip


def create_dataset_command(case: Case, token: str, quota: int) -> list[str]:
    settings = {**dataset_properties(case, token), "quota": str(quota)}
    return ["zfs", "create", *(word for key, value in settings.items() for word in ("-o", f"{key}={value}")), "--", f"{case.pool}/{scratch_claim.scratch_name(token)}"]  # fmt: skip


VOLUME = "volume"


def volume_name(case: Case, token: str) -> str:
    """The name of the scratch volume; it goes with the scratch dataset that it lies in."""
    return f"{f'{case.pool}/' if case.pool else ''}{scratch_claim.scratch_name(token)}/{VOLUME}"


def volume_device(case: Case, token: str) -> str:
    return f"/dev/zvol/{volume_name(case, token)}"


def create_volume_command(case: Case, token: str) -> list[str]:
    """Sparse: what it holds is what is measured, and a reservation for it would have to be waited for."""
    return ["zfs", "create", "-s", "-V", str(case.size), "-b", str(case.volblocksize), "--", volume_name(case, token)]


def wait_for_volume(case: Case, token: str) -> None:
    """Return when the volume's device is there: udev makes it a moment after its pool came. Raises Failed."""
    for _ in range(udev.LOOKS):
        udev.settle()
        if Path(volume_device(case, token)).exists():
            return
        time.sleep(udev.SECONDS_BETWEEN_LOOKS)
    raise Failed("The scratch volume did not appear among the devices")


def has_unequal_disks(sizes: list[list[int]]) -> bool:
    return any(max(group) - min(group) > FUZZ for group in sizes if group)


def remount_commands(case: Case, token: str) -> tuple[list[str], list[str]]:
    """The two commands after which reads come from the disks: the pool leaves and comes back, or the dataset does."""
    name = scratch_claim.scratch_name(token)
    if case.where == "dataset":
        return ["zfs", "unmount", "--", f"{case.pool}/{name}"], ["zfs", "mount", "--", f"{case.pool}/{name}"]
    where = [word for path in partition_paths(case) for word in ("-d", path)]
    return ["zpool", "export", "--", name], ["zpool", "import", *where, "-o", "cachefile=none", "--", name]


def run_when_idle(argv: list[str]) -> None:
    """Run a command that has something leave, again where it was still open: udev looks at a volume that was written to,
    a server lets go of a folder a moment after its client, and what an agent had started outlives it by a moment.
    Raises what ``command.run`` raises."""
    for _again in range(udev.LOOKS):
        udev.settle()
        try:
            command.run(argv, timeout=LONG)
            return
        except command.CommandFailed as failed:
            if "busy" not in failed.said:
                raise
            time.sleep(udev.SECONDS_BETWEEN_LOOKS)
    command.run(argv, timeout=LONG)


def run_when_disks_return(case: Case, argv: list[str]) -> None:
    """Run the second of ``forgetting``, again where a disk of the pool was away for a moment. Raises Failed."""
    for _again in range(TIMES):
        if case.where == "scratch":
            wait_for_partitions(case)
        try:
            command.run(argv, timeout=LONG)
            return
        except command.CommandFailed as failed:
            if not any(words in failed.said for words in MISSING):
                raise
            time.sleep(udev.SECONDS_BETWEEN_LOOKS)
    command.run(argv, timeout=LONG)


def partition_paths(case: Case) -> list[str]:
    """What the pool lies on: a whole disk that is given to a pool gets a partition for it, the first."""
    return [f"{path}-part1" for path in case.all_disks]


def wait_for_partitions(case: Case) -> None:
    """Return when the partitions of an exported pool are there, and still are once udev is idle. Raises Failed.

    When a pool lets go of its disks, udev has their tables read anew, and for a moment the partitions are away: a pool
    that comes back then misses a disk, or is not found at all.
    """
    seen = 0
    for _ in range(udev.LOOKS):
        udev.settle()
        seen = seen + 1 if all(size_of(path) for path in partition_paths(case)) else 0
        if seen == 2:
            return
        time.sleep(udev.SECONDS_BETWEEN_LOOKS)
    raise Failed("A disk of the scratch pool did not come back after the pool had let go of it")


def clear_device(path: str) -> None:
    """Take ZFS's labels from a device that its pool has let go of: they lie within this of either end. Raises Failed.

    ``zpool labelclear`` refuses while the pool still knows the device; the kernel refuses this while the pool has it open.
    """
    zero_ends(path)


# --- clearing -------------------------------------------------------------------------------------------------
def clear_case(token: str, work: Work) -> None:
    """Leave nothing of a case, and touch nothing else. Raises Failed where something of it cannot be cleared now."""
    # What of somebody's files is in memory goes first, whatever becomes of the rest.
    sample_part_path(token).unlink(missing_ok=True)
    arc_limit.release_limit(token)
    claim = scratch_claim.read_claim(token)
    if claim is None:
        work.note("There is nothing to clear away")
        return
    if claim.protocol:
        loopback_mount.unmount_folder(scratch_folder(token), token)
    if claim.units:
        loopback_mount.stop_nfs(claim.units)
    if claim.dataset:
        clear_dataset(claim, work)
        scratch_claim.forget_claim(token)
        return
    clear_pool(claim, work)
    if away := clear_disks(claim, work):
        # What is away cannot be cleared; the note stays, so that it is when the disk is back.
        scratch_claim.write_claim(Claim(token=token, disks=tuple(away)))
    else:
        scratch_claim.forget_claim(token)
    remove_folder(token)


def remove_folder(token: str) -> None:
    try:
        scratch_folder(token).rmdir()
    except OSError:
        pass  # never made, or something is still mounted there: the next clearing tries again


def clear_dataset(claim: Claim, work: Work) -> None:
    pool = next((pool for pool in status.read_pools() if pool.name == claim.pool), None)
    if pool is None or pool.state == "SUSPENDED":
        raise Failed(
            f"The scratch folder {claim.dataset} cannot be removed while the pool {claim.pool} is not in use here. Bring the pool back; Larder then removes the folder"
        )
    if read_token(claim.dataset) == claim.token:
        run_when_idle(["zfs", "destroy", "-r", "-f", "--", claim.dataset])
        work.note(f"{claim.dataset} is gone")
    remove_folder(claim.token)


def read_token(dataset: str) -> str:
    """The token that a dataset carries itself; empty where it is not there or carries none of its own."""
    result = command.run(["zfs", "get", "-H", "-p", "-s", "local", "-o", "value", PROPERTY, "--", dataset], timeout=60, accept=(0, 1))  # fmt: skip
    return result.stdout.strip() if result.status == 0 else ""


def find_pool(claim: Claim) -> Pool | None:
    return next((pool for pool in status.read_pools() if pool.name == claim.name), None)


def clear_pool(claim: Claim, work: Work) -> None:
    pool = find_pool(claim)
    if pool is not None and pool.state == "SUSPENDED" and all(map(size_of, claim.disks)):
        # Its disks are back, but it goes on only when it is told to. Without them this could wait for ever.
        command.run(["zpool", "clear", "--", claim.name], timeout=120, accept=range(256))
        pool = find_pool(claim)
    if pool is None:
        return
    if pool.state == "SUSPENDED":
        raise Failed(
            f"The scratch pool {claim.name} has stopped because a disk of it does not answer. Put the disk back, or restart the box; Larder then clears the rest away"
        )
    if read_token(claim.name) != claim.token:
        raise Failed(f"The pool {claim.name} does not carry Larder's sign, so it is left alone")
    run_when_idle(["zpool", "destroy", "-f", "--", claim.name])
    work.note(f"The scratch pool {claim.name} is gone")


def clear_disks(claim: Claim, work: Work) -> list[str]:
    """Take the scratch pool's traces from its disks; those that are not there."""
    udev.settle()
    there = {disk.path: disk for disk in inventory.read_disks(status.read_pools())}
    for path in claim.disks:
        disk = there.get(path)
        if disk is None or disk.free:
            continue
        if is_leftover(disk, claim, partition_labels(disk)):
            erase_step([disk]).act(work)
        else:
            work.note(
                f"{disk_label(disk)} {disk.uses[0].text}. That is nothing of this measurement, so it is left alone"
            )
    return [path for path in claim.disks if path not in there]


def is_leftover(disk: Disk, claim: Claim, labels: list[str]) -> bool:
    """Whether all that a disk carries is of the scratch pool: its label, or partitions made for it that hold nothing yet.

    ``labels`` are the names of its partitions: the pool's own, or the ones that zpool gives (``zfs-`` and digits, and
    none for its small ninth; libefi's ``rdwr_efi.c``, libzfs' ``zpool_label_disk``). A table without any such name may be
    anybody's.
    """
    if disk.blocked:
        return False
    pools = [use for use in disk.uses if use.pool]
    if any(use.pool != claim.name for use in pools):
        return False
    if len(pools) == len(disk.uses):
        return True
    # A cache device's label tells no pool's name (vdev_label_init), and nobody's data lies on one.
    bare = all(use.kind == "exported" or "partition table" in use.text for use in disk.uses if not use.pool)
    return (
        bare
        and any(labels)
        and all(label in {claim.name, ""} or re.fullmatch(r"zfs-[0-9a-f]{16}", label) for label in labels)
    )


def partition_labels(disk: Disk) -> list[str]:
    """The names of a disk's partitions in its table. Raises Failed."""
    result = command.run(["lsblk", "-J", "-o", "TYPE,PARTLABEL", disk.path], timeout=20)
    try:
        listing = json.loads(result.stdout)
    except ValueError as error:
        raise Failed("lsblk printed something that is not JSON", result.stdout[:200]) from error
    rows = [child for row in listing.get("blockdevices") or () for child in row.get("children") or ()]
    return [str(row.get("partlabel") or "") for row in rows]


def device_paths(pool: Pool | None) -> list[str]:
    """Paths of what a pool lies on."""
    return [one.path for one in pool.devices() if one.path] if pool else []
