"""What a rehearsal of a rebuild does in the pool, each part after another look at it. Runs in the agent."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from appliance import command
from appliance.benchmarks import workload_command, workloads
from appliance.disks.clear_labels import zero_ends
from appliance.disks.exclusive_disk import progress_text
from appliance.errors import Failed, explain_error
from appliance.facts import user_properties, vdev_state
from appliance.facts.box import LongWork, Pool
from appliance.facts.datasets import Dataset
from appliance.formatting import size_text
from appliance.message import Message
from appliance.operation import Work
from appliance.pools import progress
from appliance.pools.progress import RateSample, WorkRate
from appliance.pools.vdevs import retry
from appliance.pools.vdevs.base import ashift_option, read_back
from appliance.pools.vdevs.online_offline import can_do_without
from appliance.rehearsal import disk_content
from appliance.rehearsal.result import LONGEST_NAME, DiskOut, RehearsalResult, member_names, rehearsal_folder
from appliance.zfs import kstat, list_snapshots, mountpoints, private_mount, status, vdev_tree
from appliance.zfs.vdev_tree import Place

LONG = 900  # seconds for a command on a whole pool
LONGEST = 30 * 86400  # seconds: a rebuild of a full pool of slow disks
SLOWEST = 2 * 2**20  # bytes a second
SECONDS_BETWEEN_READINGS = 3.0
LOOKS, SECONDS_BETWEEN_LOOKS = 60, 0.5
MOST_NAMED = 3
MODULE_VERSION = Path("/sys/module/zfs/version")


# --- what is in the pool ----------------------------------------------------------------------------------------
def read_content(pool: str) -> tuple[str, ...]:
    """The first names of what is in a pool besides the test data: folders, snapshots, files. Raises Failed, Refused."""
    listed = command.run(["zfs", "list", "-H", "-r", "-t", "all", "-o", "name", "--", pool], timeout=120).stdout
    own = {pool, rehearsal_folder(pool)}
    found = [name for name in listed.splitlines() if name not in own]
    return tuple((found or read_files(pool))[:MOST_NAMED])


def read_files(pool: str) -> list[str]:
    """The first names in the top folder of a pool, mounted or not. Raises Failed where that cannot be seen, Refused."""
    root = next((one for one in status.read_datasets() if one.name == pool), None)
    if root is None:
        raise Failed(Message("{pool} cannot be found", pool=pool))
    opened = mountpoints.top_of(pool, root.mountpoint) if root.mounted else private_mount.root_of(pool)
    with opened as handle:
        reading = private_mount.reopen_for_reading(handle, os.O_RDONLY | os.O_DIRECTORY)
        try:
            with os.scandir(reading) as entries:
                return [f"{pool}/{entry.name}" for entry in entries if entry.name != ".zfs"][:MOST_NAMED]
        finally:
            os.close(reading)


def refuse_content(pool: str) -> None:
    """Raise Failed where anything but the test data is in the pool."""
    if found := read_content(pool):
        raise Failed(
            Message(
                "{pool} is not empty any more: {names} is there. Nothing more was changed",
                pool=pool,
                names=", ".join(found),
            )
        )


def find_healthy(pool: str, out: DiskOut) -> Place:
    """The disk in its pool, which is healthy and can do without it. Raises Failed."""
    found = read_back(pool)
    place = vdev_tree.find_vdev(found, out.vdev)
    if found.state != "ONLINE" or found.rebuilding or place is None or not can_do_without(found, place):
        raise Failed(Message("{pool} is not healthy any more, so no disk was taken out of it", pool=pool))
    return place


# --- the parts --------------------------------------------------------------------------------------------------
def folder_argv(pool: str, out: DiskOut) -> list[str]:
    """The command that makes the dataset of the test data.
    It is mounted for nobody, and inherits no share or schedule."""
    settings = {
        "mountpoint": "none",
        "compression": "off",
        "dedup": "off",
        "sync": "standard",
        "atime": "off",
        user_properties.SHARE: "none",
        user_properties.POLICY: "none",
        user_properties.BENCHMARK: "rehearsal",
        user_properties.REHEARSAL: msgspec.json.encode(out).decode(),
    }
    return [
        "zfs",
        "create",
        *(word for key, value in settings.items() for word in ("-o", f"{key}={value}")),
        "--",
        rehearsal_folder(pool),
    ]


def make_folder(pool: str, out: DiskOut) -> None:
    refuse_content(pool)
    find_healthy(pool, out)
    command.run(folder_argv(pool, out), timeout=LONG)


def fill_pool(pool: str, size: int, work: Work) -> None:
    """Write so many bytes of random data. Raises Failed, Cancelled."""
    refuse_content(pool)
    with private_mount.root_of(rehearsal_folder(pool), private_mount.WRITABLE) as handle:
        # With the dot: fio looks at the link itself, which is no folder (lstat in its options.c).
        argv = workload_command.fill_command(f"/proc/self/fd/{handle}/.", size)
        look = fill_reporter(pool, handle, size, work)
        command.run(argv, timeout=3600 + size / SLOWEST, meanwhile=look, holding=handle)
    command.run(["zpool", "sync", "--", pool], timeout=LONG)
    work.note(Message("{size} of test data are in {pool}", size=size_text(size), pool=pool))


def fill_reporter(pool: str, handle: int, size: int, work: Work) -> Callable[[], None]:
    """A function to call every second while the data is written.
    It raises Cancelled, and Failed if the pool has stopped."""
    began = time.monotonic()

    def look() -> None:
        work.stop_if_asked()
        refuse_suspended(pool)
        try:
            done = min(os.stat(workloads.DATA, dir_fd=handle, follow_symlinks=False).st_blocks * 512, size)
        except FileNotFoundError:
            done = 0
        work.progress(min(99, done * 100 // max(size, 1)), progress_text(done, size, time.monotonic() - began))

    return look


def take_offline(pool: str, out: DiskOut, work: Work) -> None:
    """Take the disk offline, as if it had failed. Raises Failed."""
    refuse_content(pool)
    find_healthy(pool, out)
    command.run(["zpool", "offline", "--", pool, str(out.vdev)], timeout=LONG)
    work.note(Message("The disk is offline"))


def clear_disk(pool: str, out: DiskOut, work: Work) -> None:
    """Clear ZFS's labels from the disk that is offline, so that it is rebuilt from nothing. Raises Failed."""
    refuse_content(pool)
    found = read_back(pool)
    place = vdev_tree.find_vdev(found, out.vdev)
    if place is None or place.vdev.state in vdev_state.WORKING or place.vdev.path != f"{out.disk}-part1":
        raise Failed(Message("The disk is not offline in {pool}, so it was not cleared", pool=pool))
    disk_content.refuse_other_uses(found, out)
    zero_ends(place.vdev.path)
    work.note(Message("The labels of the disk are cleared"))


def replace_argv(pool: str, place: Place, out: DiskOut) -> list[str]:
    """The command that puts the disk into its own place.

    ``-f``: its partition table is still the one of this pool.
    It overwrites whatever is there, so look at the content before.
    """
    return ["zpool", "replace", "-f", *ashift_option(place.group.ashift), "--", pool, str(place.vdev.guid), out.disk]


def rebuild_disk(pool: str, out: DiskOut, share: int, work: Work) -> None:
    """Put the disk back as if it were new, wait until it is rebuilt, and store the time on the pool.
    Raises Failed, Cancelled."""
    refuse_content(pool)
    found = read_back(pool)
    place = vdev_tree.find_vdev(found, out.vdev)
    if place is None or place.vdev.state in vdev_state.WORKING:
        raise Failed(Message("The disk is not offline in {pool}, so it was not rebuilt", pool=pool))
    disk = disk_content.refuse_other_uses(found, out)
    began = time.monotonic()
    retry.run_with_udev_retry(replace_argv(pool, place, out), timeout=LONG)
    wait_for_rebuild(pool, work)
    passed = time.monotonic() - began
    scan = check_rebuilt(pool, out)
    seconds = rebuild_seconds(scan, passed)
    result = RehearsalResult(
        ended=int(time.time()),
        seconds=seconds,
        looked=scan.done,
        written=scan.repaired,
        share=share,
        vdev=out.vdev,
        size=disk.size,
        disk=Path(out.disk).name[:LONGEST_NAME],
        disks=member_names(read_back(pool)),
        zfs=read_version()[:LONGEST_NAME],
    )
    command.run(
        ["zfs", "set", f"{user_properties.REHEARSAL}={msgspec.json.encode(result).decode()}", pool], timeout=LONG
    )
    work.note(
        Message(
            "Rebuilding took {seconds} s; ZFS went through {done} bytes and wrote {repaired}",
            seconds=seconds,
            done=scan.done,
            repaired=scan.repaired,
        )
    )


def rebuild_seconds(scan: LongWork, passed: float) -> int:
    """How long ZFS rebuilt, as the report of a replacement says it; ``passed`` where the clock was set meanwhile."""
    told = (scan.ended - scan.started).total_seconds() if scan.started and scan.ended else 0.0
    return max(round(told if 0 < told <= passed + 1 else passed), 1)


def wait_for_rebuild(pool: str, work: Work) -> None:
    """Wait until nothing of the pool is being rebuilt. Raises Failed, Cancelled."""
    command.run(wait_argv(pool), timeout=LONGEST, meanwhile=rebuild_reporter(pool, work))


def wait_argv(pool: str) -> list[str]:
    # For ``replace`` too: ZFS detaches the old device a moment after the last block is written.
    return ["zpool", "wait", "-t", "resilver,replace", "--", pool]


def refuse_suspended(pool: str) -> None:
    if kstat.is_stopped(pool):
        raise Failed(Message("The pool has stopped, because a disk of it does not answer"))


def rebuild_reporter(pool: str, work: Work) -> Callable[[], None]:
    """A function to call every second during a rebuild: the words are those of the page of a replacement."""
    pace, last = WorkRate(), 0.0

    def look() -> None:
        nonlocal pace, last
        work.stop_if_asked()
        refuse_suspended(pool)
        if time.monotonic() - last < SECONDS_BETWEEN_READINGS:
            return
        last = time.monotonic()
        scan = find_scan(read_back(pool))
        if scan is None or not scan.under_way:
            return
        pace = pace.add_sample(RateSample(last, scan.done, scan.looked), running=scan.state == "running")
        left = pace.seconds_left(scan.done, scan.total)
        words = progress.describe_progress(scan, left=left, standing=pace.stalled_seconds)
        work.progress(
            scan.percent,
            Message(
                "{title}: {percent} %, {words}",
                title=progress.work_title("resilver", pool),
                percent=scan.percent,
                words=words,
            ),
        )

    return look


def find_scan(pool: Pool) -> LongWork | None:
    """The rebuild of the whole pool that runs or was the last."""
    return next((work for work in pool.work if work.kind == "resilver" and not work.subject), None)


def check_rebuilt(pool: str, out: DiskOut) -> LongWork:
    """The rebuild that has just ended well. Raises Failed."""
    for _ in range(LOOKS):
        found = read_back(pool)
        place, scan = vdev_tree.find_disk(found, out.disk), find_scan(found)
        whole = place is not None and place.vdev.state == "ONLINE" and place.vdev.guid != out.vdev
        if whole and found.state == "ONLINE" and scan and scan.state == "finished" and scan.done:
            return scan
        time.sleep(SECONDS_BETWEEN_LOOKS)
    raise Failed(
        Message("The rebuild has ended, but {pool} is not healthy", pool=pool),
        Message("its state is {state}", state=found.state),
    )


def read_version() -> str:
    try:
        return MODULE_VERSION.read_text().strip()
    except OSError:
        return ""


# --- putting everything back ------------------------------------------------------------------------------------
def remove_folder(pool: str, work: Work) -> None:
    """Destroy the test data, which nobody else's files or snapshots may lie in. Raises Failed."""
    folder = rehearsal_folder(pool)
    own = [one for one in status.read_datasets() if one.name == folder or one.name.startswith(f"{folder}/")]
    if not own:
        return
    if len(own) > 1 or not is_ours(own[0]) or any(list_snapshots.list_snapshots([folder])):
        raise Failed(
            Message("{folder} was not deleted, because something that no rehearsal has made is in it", folder=folder)
        )
    for _ in range(LOOKS):
        try:
            command.run(["zfs", "destroy", "--", folder], timeout=LONG)
            break
        except command.CommandFailed as failed:  # the last process of an ended fio lives a moment longer
            if "busy" not in failed.said:
                raise
            time.sleep(SECONDS_BETWEEN_LOOKS)
    else:
        command.run(["zfs", "destroy", "--", folder], timeout=LONG)
    work.note(Message("The test data in {pool} is deleted", pool=pool))


def is_ours(folder: Dataset) -> bool:
    noted = folder.properties.get(user_properties.REHEARSAL)
    return noted is not None and noted.source == "local"


def put_back(pool: str, out: DiskOut, work: Work) -> None:
    """Bring the disk online where it is still as it was, else begin to rebuild it.

    Raises Failed where it is another disk, or somebody has stored something on it meanwhile.
    """
    found = read_back(pool)
    place = disk_content.find_place(found, out)
    if place is None or place.vdev.state in vdev_state.WORKING or is_being_replaced(place):
        return
    if place.vdev.state == "OFFLINE":
        # One that was cleared already stays out, which the status says.
        argv = ["zpool", "online", "--", pool, vdev_tree.online_operand(place.vdev)]
        command.run(argv, timeout=LONG, accept=range(256))
        found = read_back(pool)
        place = vdev_tree.find_vdev(found, place.vdev.guid) or place
        if place.vdev.state in vdev_state.WORKING:
            work.note(Message("The disk is online again"))
            return
    disk_content.refuse_other_content(found, place, out)
    retry.run_with_udev_retry(replace_argv(pool, place, out), timeout=LONG)
    work.note(Message("The disk is being rebuilt"))


def is_being_replaced(place: Place) -> bool:
    """Whether a new disk, or the same one anew, is on its way into that place."""
    parent = place.parent
    return parent is not None and parent.kind == "replacing" and parent.children[-1].state in vdev_state.WORKING


def clear_up(pool: str, out: DiskOut, work: Work) -> None:
    """Put the disk back, delete the test data, and wait until the pool is redundant again. Raises Failed.

    The data goes although the disk cannot come back: then there is less to rebuild, and the
    pool's page says what is missing.
    """
    problem: Failed | None = None
    try:
        put_back(pool, out, work)
    except Failed as error:
        problem = error
        work.note(explain_error(error))
    remove_folder(pool, work)
    if problem:
        raise Failed(
            Message(
                "The test data is deleted, but the disk is not back in {pool}. Replace it on the pool's page", pool=pool
            ),
            explain_error(problem),
        ) from problem
    command.run(wait_argv(pool), timeout=LONGEST, meanwhile=lambda: refuse_suspended(pool))
    found = read_back(pool)
    place = vdev_tree.find_disk(found, out.disk) or vdev_tree.find_vdev(found, out.vdev)
    # Another disk may have been put into its place meanwhile, and the pool is complete without it.
    if place.vdev.state not in vdev_state.WORKING if place else found.state != "ONLINE":
        raise Failed(
            Message(
                "The test data is deleted, but the disk is not back in {pool}. Replace it on the pool's page", pool=pool
            )
        )
