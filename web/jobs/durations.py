"""How long each operation takes, as its review says: one table by the tags of operations.

Where it follows from sizes or from earlier work it is an estimate with its basis; where it cannot be known the sentence
says what it depends on. ``tests/web/jobs/test_durations.py`` sees that no operation is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec
from django.utils.translation import gettext

from appliance.backups.remote.drill_remote import DrillRemote
from appliance.backups.remote.restore_remote import RestoreRemote
from appliance.backups.remote.send_backup import SendBackup
from appliance.backups.restore_folder import RestoreFolder
from appliance.backups.run_backup import RunBackup
from appliance.benchmarks import estimate
from appliance.benchmarks.run_case import RunBenchmarkCase
from appliance.burn_in.burn_in_disk import BurnInDisk
from appliance.disks.erase import EraseDisk
from appliance.disks.selftest import StartSelfTest
from appliance.errors import Refused
from appliance.facts.box import Facts, Pool
from appliance.facts.datasets import Dataset
from appliance.formatting import duration_text, rate_text, round_time_left, size_text
from appliance.operation import Operation, kind_of
from appliance.pools.import_pool import ImportPool
from appliance.pools.rebuild_estimate import (
    HARD_DISK,
    SOLID_STATE,
    PastWork,
    RebuildEstimate,
    estimate_expansion,
    estimate_rebuild,
    estimate_scrub,
)
from appliance.pools.vdevs.remove import RemoveVdev
from appliance.rehearsal.rehearse import RehearseRebuild
from appliance.rehearsal.result import expected_seconds
from appliance.snapshots.destroy import DestroySnapshots
from appliance.zfs import vdev_tree
from web.translation import lazy_text, text_of

SHORTEST = 90  # seconds: nothing that is estimated is said to take less


class EstimateFacts(msgspec.Struct, frozen=True):
    """What an estimate may use. ``past``: the earlier work on a pool, given the datasets for its rehearsal."""

    facts: Facts
    past: Callable[[Pool, Iterable[Dataset]], Sequence[PastWork]]


Estimate = Callable[[Any, EstimateFacts], str]

SECONDS = lazy_text("A few seconds.")
MINUTE = lazy_text("Usually less than a minute.")
ANY_SIZE = lazy_text("Usually less than a minute, however much is stored.")
ANSWER = lazy_text("A few seconds, once the other computer answers.")
FREES = lazy_text("A few seconds. ZFS then frees the space in the background, which takes longer the more it is.")
FILES = lazy_text("It depends on how many files there are: seconds for some hundred, hours for millions.")
PER_TB = lazy_text("It depends on how much there is: about 3 h for each TB, an estimate for hard disks.")


def about(seconds: float) -> str:
    """``3 h 10 min``, as exact as an estimate can be meant."""
    return text_of(duration_text(round_time_left(max(round(seconds), SHORTEST))))


def at_speed(size: int, speed: int) -> str:
    """Going through so many bytes at a usual speed."""
    return gettext("About {duration}, an estimate: {size} at {rate}.").format(
        duration=about(size / speed), size=text_of(size_text(size)), rate=text_of(rate_text(speed))
    )


def usual_speed(path: str, known: EstimateFacts) -> int:
    disk = known.facts.disk(path)
    return HARD_DISK if disk is None or disk.rotational else SOLID_STATE


def disk_bytes(path: str, known: EstimateFacts) -> int:
    disk = known.facts.disk(path)
    return disk.size if disk else 0


def pool_of(name: str, known: EstimateFacts) -> Pool | None:
    return known.facts.pool(name)


def on_pool(work: Callable[..., RebuildEstimate]) -> Estimate:
    """How long work on a whole pool takes, by what was measured on it."""

    def told(operation: Any, known: EstimateFacts) -> str:
        pool = pool_of(operation.pool, known)
        if pool is None:
            return gettext("It depends on how much is in the pool.")
        found = work(
            pool, known.past(pool, known.facts.datasets), rotational=vdev_tree.is_rotational(pool, known.facts.disks)
        )
        return gettext("About {duration} ({basis}).").format(duration=about(found.seconds), basis=text_of(found.basis))

    return told


def rehearsal(operation: RehearseRebuild, known: EstimateFacts) -> str:
    pool = pool_of(operation.pool, known)
    rotational = usual_speed(operation.disk, known) == HARD_DISK
    seconds = sum(expected_seconds(pool, operation.share, rotational=rotational)) if pool else 0
    return gettext("About {duration}, an estimate: first filling, then rebuilding.").format(duration=about(seconds))


def vdev_removal(operation: RemoveVdev, known: EstimateFacts) -> str:
    pool = pool_of(operation.pool, known)
    place = vdev_tree.find_vdev(pool, operation.vdev)
    if pool is None or place is None:
        return gettext("It depends on how much is on it.")
    if place.vdev.role in {"log", "cache", "spare"}:
        return SECONDS
    return at_speed(place.vdev.used, HARD_DISK if vdev_tree.is_rotational(pool, known.facts.disks) else SOLID_STATE)


def pool_import(operation: ImportPool, known: EstimateFacts) -> str:  # noqa: ARG001
    if operation.last_resort:
        return gettext("It can take many hours: all of the pool is read for each earlier state that is tried.")
    return gettext("Usually less than a minute. Some minutes where disks are slow or much has to be replayed.")


def erasing(operation: EraseDisk, known: EstimateFacts) -> str:
    size, speed = disk_bytes(operation.disk, known), usual_speed(operation.disk, known)
    return at_speed(size, speed) if operation.lasts() else SECONDS


def self_test(operation: StartSelfTest, known: EstimateFacts) -> str:
    if operation.test == "short":
        return gettext("About two minutes, in the disk itself.")
    return at_speed(disk_bytes(operation.disk, known), usual_speed(operation.disk, known))


def burn_in(operation: BurnInDisk, known: EstimateFacts) -> str:
    size = sum(region.size for region in operation.regions)
    return at_speed(2 * size, operation.rate or usual_speed(operation.disk, known))


def benchmark(operation: RunBenchmarkCase, known: EstimateFacts) -> str:
    disks = [disk_bytes(path, known) for path in operation.case.all_disks]
    seconds = estimate.case_seconds(operation.case, min(disks, default=0))
    return gettext("About {duration}, an estimate.").format(duration=about(seconds))


def backup(operation: RunBackup, known: EstimateFacts) -> str:
    dataset = known.facts.dataset(operation.dataset)
    return gettext(
        "It depends on how much changed since the last copy. The first one copies everything: {size}, about "
        "{duration} at {rate}."
    ).format(
        size=text_of(size_text(dataset.used if dataset else 0)),
        duration=about((dataset.used if dataset else 0) / HARD_DISK),
        rate=text_of(rate_text(HARD_DISK)),
    )


def sent_backup(operation: SendBackup, known: EstimateFacts) -> str:
    remote = known.facts.remote(operation.remote)
    if remote is None or not remote.pace:
        return gettext("It depends on how much changed since the last copy, and on the line to the other computer.")
    return gettext(
        "It depends on how much changed since the last copy: about {duration} for each 100 GB, at the pace "
        "of the last transfer."
    ).format(duration=about(100 * 10**9 / remote.pace))


def restored_folder(operation: RestoreFolder, known: EstimateFacts) -> str:
    return at_speed(operation.size(known.facts), HARD_DISK)


def restored_remote(operation: RestoreRemote, known: EstimateFacts) -> str:
    remote = known.facts.remote(operation.remote)
    return text_of(operation.time_text(remote)) if remote else gettext("It depends on the line to the other computer.")


def remote_drill(operation: DrillRemote, known: EstimateFacts) -> str:
    try:
        fetched = text_of(operation.time_text(known.facts))
    except Refused:
        fetched = gettext("It depends on the line to the other computer.")
    return gettext("{fetched} Then everything is compared: about 3 h for each TB, an estimate for hard disks.").format(
        fetched=fetched
    )


def snapshots(operation: DestroySnapshots, known: EstimateFacts) -> str:  # noqa: ARG001
    if not operation.lasts():
        return FREES
    return gettext("Some minutes, because there are {count} snapshots. ZFS frees the space in the background.").format(
        count=len(operation.snapshots)
    )


def files_if_many(operation: Operation, known: EstimateFacts) -> str:  # noqa: ARG001
    return FILES if operation.lasts() else SECONDS


DURATIONS: dict[str, str | Estimate] = {
    # What is only noted or switched.
    **dict.fromkeys(
        (
            "add-cache",
            "add-log",
            "add-spare",
            "add-vdev",
            "adopt-drift",
            "approve-shares",
            "autoexpand-vdev",
            "bookmark-snapshot",
            "change-key",
            "clear-errors",
            "clone-snapshot",
            "create-account",
            "create-dataset",
            "create-group",
            "create-volume",
            "delete-key",
            "destroy-bookmark",
            "detach-disk",
            "discard-received",
            "enable-account",
            "end-connection",
            "forget-port",
            "grow-volume",
            "hold-snapshot",
            "inherit-dataset-property",
            "keep-mtu",
            "keep-setting",
            "mount-dataset",
            "offline-disk",
            "open-top-folder",
            "overwrite-drift",
            "overwrite-target",
            "pause-scrub",
            "promote-dataset",
            "put-setting-back",
            "receive-copies",
            "release-snapshot",
            "remove-group",
            "remove-import",
            "remove-receiver",
            "remove-remote",
            "rename-account",
            "rename-snapshot",
            "republish-share",
            "run-snapshot-policies",
            "set-backup",
            "set-copy-aside",
            "set-dataset-property",
            "set-host-name",
            "set-import-password",
            "set-members",
            "set-password",
            "set-pool-property",
            "set-share",
            "set-received-retention",
            "set-smb-security",
            "set-snapshot-policy",
            "set-target",
            "set-time-servers",
            "set-time-zone",
            "set-user-quota",
            "stop-scrub",
            "stop-trim",
            "store-key",
            "take-checkpoint",
            "take-snapshot",
            "try-mtu",
            "upgrade-pool",
            "write-record",
        ),
        SECONDS,
    ),
    **dict.fromkeys(("create-pool", "destroy-pool", "clean-up-benchmark", "take-place"), MINUTE),
    **dict.fromkeys(("export-pool", "lock-dataset", "rename-dataset", "roll-back", "unmount-dataset"), ANY_SIZE),
    **dict.fromkeys(
        ("add-import", "add-remote", "confirm-host-key", "confirm-import-key", "pair-box", "test-remote"), ANSWER
    ),
    **dict.fromkeys(("destroy-dataset", "discard-checkpoint", "remove-drill"), FREES),
    **dict.fromkeys(("unlock-dataset", "unlock-all", "check-backup-keys"), lazy_text("A few seconds for each folder.")),
    "rewind-checkpoint": lazy_text("Some minutes: the pool is exported, and imported as it was then."),
    "restart-box": lazy_text("Usually less than three minutes until the box is back."),
    "shut-down-box": lazy_text("Up to two minutes until the box is off."),
    # What goes through files or disks.
    "set-access": FILES,
    "remove-account": files_if_many,
    "share-folder": files_if_many,
    "destroy-snapshots": snapshots,
    "prune-snapshots": snapshots,
    "prune-received": snapshots,
    "restore-from-snapshot": PER_TB,
    "verify-backup": lazy_text(
        "It depends on how much is compared: about 3 h for each TB, which is read on both sides, an estimate "
        "for hard disks."
    ),
    "drill-backup": lazy_text(
        "It depends on how much there is: about 6 h for each TB, which is restored and then compared, an "
        "estimate for hard disks."
    ),
    "drill-remote": remote_drill,
    "test-import": lazy_text("It depends on how many files there are: the other computer lists all of them."),
    "run-import": lazy_text(
        "It depends on how much there is, and on the network: about 3 h for each TB over one of 1 Gbit/s. "
        "Comparing takes as long again."
    ),
    "run-backup": backup,
    "send-backup": sent_backup,
    "restore-folder": restored_folder,
    "restore-remote": restored_remote,
    "run-benchmark-case": benchmark,
    "erase-disk": erasing,
    "start-self-test": self_test,
    "burn-in-disk": burn_in,
    # What ZFS does to a whole pool.
    "import-pool": pool_import,
    "start-scrub": on_pool(estimate_scrub),
    **dict.fromkeys(("replace-disk", "attach-disk"), on_pool(estimate_rebuild)),
    "expand-raidz": on_pool(estimate_expansion),
    "remove-vdev": vdev_removal,
    "online-disk": lazy_text(
        "A few seconds. The disk then catches up with what was written meanwhile, which takes longer the more it is."
    ),
    "start-trim": lazy_text(
        "It runs in the background. It depends on the disks: minutes for most solid-state disks, hours for large pools."
    ),
    "rehearse-rebuild": rehearsal,
    "clean-up-rehearsal": lazy_text(
        "It depends on how much test data there is: the disk is rebuilt before the job ends."
    ),
}


def duration_of(operation: Operation, known: EstimateFacts) -> str:
    """The sentence for one operation."""
    told = DURATIONS[kind_of(operation)]
    return told(operation, known) if callable(told) else told
