"""Scratch pools and datasets: make them, remount them between runs to drop caches, and clean them up.

Cleaning up is the same after success, failure, ``kill -9`` and a power cut. It touches only what the claim names
(``scratch_claim.py``): a pool or dataset with its random name and property, and disks that still carry that pool's
traces. A scratch pool has no cache file, so it is not imported at the next start.
"""

from __future__ import annotations

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
from appliance.facts import user_properties
from appliance.facts.box import Disk, Pool
from appliance.formatting import disk_label
from appliance.message import Message
from appliance.operation import Work
from appliance.pools.vdevs import retry
from appliance.pools.vdevs.aux_rules import FUZZ
from appliance.system import paths
from appliance.zfs import status

NOTHING = "none"  # no share and no snapshot schedule, not even inherited ones
LONG = 900  # seconds for a command on a whole pool
TIMES = 3
# Errors of ``zpool import`` if disks of the pool are missing (zpool_main.c, zpool_import_status).
MISSING = (retry.AWAY, "no such pool", "insufficient replicas", "missing device", "no such device")


def scratch_folder(token: str) -> Path:
    """Mountpoint of the scratch dataset, which only root can enter."""
    return paths.RUN / "sweeps" / token


def sample_part_path(token: str) -> Path:
    """File in memory for a part of a sample, in a folder that only root can enter (``sample_data.py``)."""
    return paths.RUN / "sweeps" / f"{token}.sample"


def dataset_properties(case: Case, token: str) -> dict[str, str]:
    """Properties of the scratch dataset, in a scratch pool or in a pool in use.

    It must not inherit a share or a snapshot schedule: nobody should see it, and snapshots would keep its data.
    """
    return {
        "compression": case.compression,
        "dedup": "on" if case.dedup else "off",
        "sync": case.sync,
        "recordsize": str(case.recordsize),
        "primarycache": "metadata" if case.aside else "all",
        "atime": "off",
        "mountpoint": str(scratch_folder(token)),
        user_properties.BENCHMARK: token,
        user_properties.SHARE: NOTHING,
        user_properties.POLICY: NOTHING,
    }


def data_device(case: Case, path: str) -> str:
    """Path of the disk or partition that the pool gets."""
    return f"{path}-part1" if case.partition and path in case.disks else path


def create_pool_command(case: Case, token: str, unequal: bool) -> list[str]:
    """The command that creates the scratch pool. ``unequal``: disks of a vdev differ in size, which needs ``-f``."""
    words = [
        word
        for group in case.vdev_disks
        for word in (*(() if case.layout == "stripe" else (case.layout,)), *(data_device(case, path) for path in group))
    ]
    beside = [word for role, path in (("log", case.log), ("cache", case.cache)) if path for word in (role, path)]
    return [
        "zpool",
        "create",
        *(["-f"] if unequal else []),
        "-o",
        f"ashift={case.ashift}",
        "-o",
        "cachefile=none",
        "-o",
        "failmode=continue",
        *(word for key, value in dataset_properties(case, token).items() for word in ("-O", f"{key}={value}")),
        "--",
        scratch_claim.scratch_name(token),
        *words,
        *beside,
    ]


def create_dataset_command(case: Case, token: str, quota: int) -> list[str]:
    settings = {**dataset_properties(case, token), "quota": str(quota)}
    return [
        "zfs",
        "create",
        *(word for key, value in settings.items() for word in ("-o", f"{key}={value}")),
        "--",
        f"{case.pool}/{scratch_claim.scratch_name(token)}",
    ]


VOLUME = "volume"


def volume_name(case: Case, token: str) -> str:
    """Name of the scratch volume, which is destroyed with its scratch dataset."""
    return f"{f'{case.pool}/' if case.pool else ''}{scratch_claim.scratch_name(token)}/{VOLUME}"


def volume_device(case: Case, token: str) -> str:
    return f"/dev/zvol/{volume_name(case, token)}"


def create_volume_command(case: Case, token: str) -> list[str]:
    """The command that creates the scratch volume; sparse, because a reservation would only take time."""
    return ["zfs", "create", "-s", "-V", str(case.size), "-b", str(case.volblocksize), "--", volume_name(case, token)]


def wait_for_volume(case: Case, token: str) -> None:
    """Wait for the volume's device, which udev makes a moment after the pool is imported. Raises Failed."""
    for _ in range(udev.LOOKS):
        udev.settle_udev()
        if Path(volume_device(case, token)).exists():
            return
        time.sleep(udev.SECONDS_BETWEEN_LOOKS)
    raise Failed(Message("The scratch volume did not appear among the devices"))


def has_unequal_disks(sizes: list[list[int]]) -> bool:
    return any(max(group) - min(group) > FUZZ for group in sizes if group)


def remount_commands(case: Case, token: str) -> tuple[list[str], list[str]]:
    """Two commands that drop caches: export and import the pool, or unmount and mount the dataset."""
    name = scratch_claim.scratch_name(token)
    if case.where == "dataset":
        return ["zfs", "unmount", "--", f"{case.pool}/{name}"], ["zfs", "mount", "--", f"{case.pool}/{name}"]
    where = [word for path in partition_paths(case) for word in ("-d", path)]
    return ["zpool", "export", "--", name], ["zpool", "import", *where, "-o", "cachefile=none", "--", name]


def run_when_idle(argv: list[str]) -> None:
    """Run a command that fails while its target is busy, and retry it for a moment.

    Udev reads a volume after writes, a server closes a folder a moment after its client, and children of a stopped
    agent live a moment longer. Raises what ``command.run`` raises.
    """
    for _again in range(udev.LOOKS):
        udev.settle_udev()
        try:
            command.run(argv, timeout=LONG)
            return
        except command.CommandFailed as failed:
            if "busy" not in failed.said:
                raise
            time.sleep(udev.SECONDS_BETWEEN_LOOKS)
    command.run(argv, timeout=LONG)


def run_when_disks_return(case: Case, argv: list[str]) -> None:
    """Run the second of ``remount_commands``; retry if a disk of the pool disappeared briefly. Raises Failed."""
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
    """The partitions of the pool. ZFS uses the first partition of a whole disk."""
    return [f"{path}-part1" for path in case.all_disks]


def wait_for_partitions(case: Case) -> None:
    """Wait until the partitions of an exported pool exist and udev is idle. Raises Failed.

    After an export, udev reads the partition tables again, and the partitions disappear for a moment. An import at that
    moment finds a disk missing, or no pool at all.
    """
    seen = 0
    for _ in range(udev.LOOKS):
        udev.settle_udev()
        seen = seen + 1 if all(size_of(path) for path in partition_paths(case)) else 0
        if seen == 2:
            return
        time.sleep(udev.SECONDS_BETWEEN_LOOKS)
    raise Failed(Message("A disk of the scratch pool did not come back after the pool had let go of it"))


def clear_device(path: str) -> None:
    """Clear ZFS's labels, which are at both ends, from a device that its pool no longer uses. Raises Failed.

    ``zpool labelclear`` refuses while the pool still lists the device. This fails only while the pool has it open.
    """
    zero_ends(path)


# --- cleaning up ------------------------------------------------------------------------------------------------
def destroy_command(claim: Claim) -> list[str]:
    """The command that destroys the scratch dataset or the scratch pool."""
    if claim.dataset:
        return ["zfs", "destroy", "-r", "-f", "--", claim.dataset]
    return ["zpool", "destroy", "-f", "--", claim.name]


def clear_case(token: str, work: Work) -> None:
    """Remove everything that a case made, and nothing else. Raises Failed if something cannot be removed now."""
    # Files of users go first, in case something below fails.
    sample_part_path(token).unlink(missing_ok=True)
    arc_limit.release_limit(token)
    claim = scratch_claim.read_claim(token)
    if claim is None:
        work.note(Message("There is nothing to clear away"))
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
        # Missing disks cannot be cleared. Their claim stays until they are back.
        scratch_claim.write_claim(Claim(token=token, disks=tuple(away)))
    else:
        scratch_claim.forget_claim(token)
    remove_folder(token)


def remove_folder(token: str) -> None:
    try:
        scratch_folder(token).rmdir()
    except OSError:
        pass  # never made, or still a mountpoint: the next cleanup tries again


def clear_dataset(claim: Claim, work: Work) -> None:
    pool = next((pool for pool in status.read_pools() if pool.name == claim.pool), None)
    if pool is None or pool.state == "SUSPENDED":
        raise Failed(
            Message(
                "The scratch folder {dataset} cannot be removed while the pool {pool} is not in use here. "
                "Bring the pool back; Larder then removes the folder",
                dataset=claim.dataset,
                pool=claim.pool,
            )
        )
    if read_token(claim.dataset) == claim.token:
        run_when_idle(destroy_command(claim))
        work.note(Message("{dataset} is gone", dataset=claim.dataset))
    remove_folder(claim.token)


def read_token(dataset: str) -> str:
    """The token in a dataset's own properties; empty if there is no dataset or token."""
    result = command.run(
        ["zfs", "get", "-H", "-p", "-s", "local", "-o", "value", user_properties.BENCHMARK, "--", dataset],
        timeout=60,
        accept=(0, 1),
    )
    return result.stdout.strip() if result.status == 0 else ""


def find_pool(claim: Claim) -> Pool | None:
    return next((pool for pool in status.read_pools() if pool.name == claim.name), None)


def clear_pool(claim: Claim, work: Work) -> None:
    pool = find_pool(claim)
    if pool is not None and pool.state == "SUSPENDED" and all(map(size_of, claim.disks)):
        # A suspended pool continues only after ``zpool clear``, which could hang without the disks.
        command.run(["zpool", "clear", "--", claim.name], timeout=120, accept=range(256))
        pool = find_pool(claim)
    if pool is None:
        return
    if pool.state == "SUSPENDED":
        raise Failed(
            Message(
                "The scratch pool {claim} has stopped because a disk of it does not answer. Put the disk "
                "back, or restart the box; Larder then clears the rest away",
                claim=claim.name,
            )
        )
    if read_token(claim.name) != claim.token:
        raise Failed(Message("The pool {claim} does not carry Larder's mark, so it is left alone", claim=claim.name))
    run_when_idle(destroy_command(claim))
    work.note(Message("The scratch pool {claim} is gone", claim=claim.name))


def clear_disks(claim: Claim, work: Work) -> list[str]:
    """Clear the scratch pool's traces from its disks. Returns the disks that are missing."""
    udev.settle_udev()
    there = {disk.path: disk for disk in inventory.read_disks(status.read_pools())}
    for path in claim.disks:
        disk = there.get(path)
        if disk is None or disk.free:
            continue
        if is_leftover(disk, claim, inventory.read_partition_labels(disk.path)):
            erase_step([disk]).run(work)
        else:
            work.note(
                Message(
                    "{disk_label} {text}. That is not part of this measurement, so it is left alone",
                    disk_label=disk_label(disk),
                    text=disk.uses[0].text,
                )
            )
    return [path for path in claim.disks if path not in there]


def is_leftover(disk: Disk, claim: Claim, labels: list[str]) -> bool:
    """Whether a disk carries only traces of the scratch pool: its label, or its partitions that are still empty.

    ``labels`` are the names of its partitions: the pool's own, or those that zpool gives.
    """
    if disk.blocked:
        return False
    pools = [use for use in disk.uses if use.pool]
    if any(use.pool != claim.name for use in pools):
        return False
    if len(pools) == len(disk.uses):
        return True
    # The label of a cache device has no pool name (vdev_label_init), and a cache device holds no data of its own.
    bare = all(use.kind == "exported" or use.is_bare_table for use in disk.uses if not use.pool)
    return bare and inventory.is_table_of_zfs(labels, claim.name)


def device_paths(pool: Pool | None) -> list[str]:
    """Paths of the devices of a pool."""
    return [one.path for one in pool.devices() if one.path] if pool else []
