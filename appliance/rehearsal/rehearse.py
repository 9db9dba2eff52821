"""Rehearse a rebuild on an empty pool: fill it, take a disk offline, rebuild it, store the time;
and clean up after a stop."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from functools import partial

from msgspec.structs import replace

from appliance import names
from appliance.benchmarks import workload_command
from appliance.errors import Reason, Refused
from appliance.facts import user_properties, vdev_state
from appliance.facts.box import Facts, Pool, PoolDetail
from appliance.formatting import duration_text, size_text
from appliance.message import Message, join_messages
from appliance.operation import Operation, Plan, Step, Work, if_lost, never
from appliance.pools.base import PoolOperation
from appliance.rehearsal import checks, disk_content, result, steps
from appliance.rehearsal.result import DiskOut, rehearsal_folder
from appliance.zfs import vdev_tree
from appliance.zfs.vdev_tree import Place


class RehearseRebuild(PoolOperation, tag="rehearse-rebuild"):
    """Fill an empty pool to ``share`` per cent, and rebuild one of its disks, ``vdev`` by its guid
    and ``disk`` by its path."""

    needs_proof = if_lost  # the pool is empty, and only its own disk is cleared, so nothing is lost

    vdev: int
    disk: str
    share: int = result.USUAL_SHARE

    def __post_init__(self) -> None:
        super().__post_init__()
        names.by_id(self.disk, field="vdev")
        if not 0 < self.vdev < result.LARGEST:
            raise Refused(Reason("rehearsal-disk-invalid", "Choose a disk of the pool.", field="vdev"))
        if self.share not in result.SHARES:
            raise Refused(Reason("rehearsal-share-invalid", "Choose how full the pool should be.", field="share"))

    @property
    def title(self) -> str:
        return Message("Rehearse a rebuild of {pool}", pool=self.pool)

    @property
    def out(self) -> DiskOut:
        return DiskOut(vdev=self.vdev, disk=self.disk)

    def locks(self) -> tuple[str, ...]:
        return (*super().locks(), self.disk)

    def files_taken(self) -> tuple[str, ...]:
        return (self.pool,)

    def lasts(self) -> bool:
        return True

    def load_extra_facts(self, facts: Facts) -> Facts:
        pool = self.find_pool(facts)
        if pool is None or pool.state == "SUSPENDED":
            return facts
        return replace(facts, details=(PoolDetail(pool.guid, content=steps.read_content(pool.name)),))

    def check(self, facts: Facts) -> Iterator[Reason]:
        refused = list(super().check(facts))
        yield from refused
        pool = self.find_pool(facts)
        if pool and not refused:
            yield from checks.check_pool(pool, facts)
            yield from checks.check_disk(vdev_tree.find_vdev(pool, self.vdev), self.disk, facts, pool)

    def plan(self, facts: Facts) -> Plan:
        pool, place, disk = self.find_pool(facts), self.find_place(facts), facts.disk(self.disk)
        assert pool and place and disk  # noqa: S101  # check said so
        label = vdev_tree.vdev_label(place.vdev, facts)
        size = result.fill_bytes(facts, self.pool, self.share)
        filling, rebuilding = result.expected_seconds(pool, self.share, rotational=disk.rotational)
        left = pool.failures_left - 1
        return Plan(
            summary=Message(
                "{pool} is filled to {share} % with test data. Then {label} is taken offline, cleared, and "
                "rebuilt as if it were new. At the end the test data is deleted. How long the rebuild took "
                "is the basis of every later estimate for {pool}.",
                pool=self.pool,
                share=self.share,
                label=label,
            ),
            steps=self.build_steps(place, label, size),
            identity={
                **self.identity(),
                "shape": [[one.vdev.guid, one.role] for one in vdev_tree.list_places(pool)],
                "disk": disk.identity,
            },
            warnings=tuple(self.warnings(left)),
            undo=Message("It can be stopped at any moment. The test data is then deleted, and the disk is put back."),
            type_to_confirm=self.pool,
            details={
                Message("Disk"): label,
                Message("Test data"): size_text(size),
                Message("Filling"): Message("about {duration}", duration=duration_text(filling)),
                Message("Rebuilding"): Message(
                    "about {duration} (an estimate: what is measured here replaces it)",
                    duration=duration_text(rebuilding),
                ),
            },
        )

    def warnings(self, left: int) -> Iterator[str]:
        if left > 0:
            yield (
                Message("While the disk is out, {pool} survives 1 more failed disk only.", pool=self.pool)
                if left == 1
                else Message(
                    "While the disk is out, {pool} survives {left} more failed disks only.", pool=self.pool, left=left
                )
            )
        else:
            yield Message(
                "While the disk is out, {pool} has no redundancy: if another disk fails, the pool is lost. "
                "It is empty, so no files would be.",
                pool=self.pool,
            )
        yield Message("Larder sends the alerts of a degraded pool meanwhile, as it will on the day a disk fails.")
        yield Message("Store nothing in {pool} before the rehearsal has ended.", pool=self.pool)
        yield Message("The test data is one large file. A pool with many small files takes longer to rebuild.")

    def find_place(self, facts: Facts) -> Place | None:
        return vdev_tree.find_vdev(self.find_pool(facts), self.vdev)

    def build_steps(self, place: Place, label: str, size: int) -> tuple[Step, ...]:
        pool, out = self.pool, self.out
        offline = shlex.join(["zpool", "offline", "--", pool, str(self.vdev)])
        rebuild = "\n".join(map(shlex.join, (steps.replace_argv(pool, place, out), steps.wait_argv(pool))))
        noted = shlex.join(["zfs", "set", f"{user_properties.REHEARSAL}=…", pool])

        def step(name: str, title: str, shown: str, run: Callable[[Work], None]) -> Step:
            return Step(name, title, shown, run, (self.disk,) if name in {"offline", "clear", "rebuild"} else (pool,))

        return (
            step(
                "folder",
                Message("Make a folder for the test data"),
                shlex.join(steps.folder_argv(pool, out)),
                lambda _work: steps.make_folder(pool, out),
            ),
            step(
                "fill",
                Message("Fill the pool to {share} %", share=self.share),
                shlex.join(workload_command.fill_command(rehearsal_folder(pool), size)),
                partial(steps.fill_pool, pool, size),
            ),
            step(
                "offline", Message("Take {label} offline", label=label), offline, partial(steps.take_offline, pool, out)
            ),
            step(
                "clear",
                Message("Clear {label}", label=label),
                Message("zeros over the first and last MiB of {disk}-part1", disk=self.disk),
                partial(steps.clear_disk, pool, out),
            ),
            step(
                "rebuild",
                Message("Rebuild {label}", label=label),
                f"{rebuild}\n{noted}",
                partial(steps.rebuild_disk, pool, out, self.share),
            ),
            step(
                "remove",
                Message("Delete the test data"),
                shlex.join(["zfs", "destroy", "--", rehearsal_folder(pool)]),
                partial(steps.remove_folder, pool),
            ),
        )

    def clean_up(self, work: Work) -> None:
        work.progress(0, Message("Deleting the test data and putting the disk back"))
        steps.clear_up(self.pool, self.out, work)

    def probe(self, step: str, facts: Facts) -> bool:
        # The guid of the disk is a new one after each rebuild, so a result that names it is of this very rehearsal.
        pool, folder = self.find_pool(facts), facts.dataset(rehearsal_folder(self.pool))
        measured = result.read_result(pool, facts.datasets) if pool else None
        if measured is not None and measured.vdev == self.vdev:
            return step != "remove" or folder is None
        if pool is None or folder is None or result.read_disk_out(self.pool, facts.datasets) != self.out:
            return False
        place = vdev_tree.find_vdev(pool, self.vdev)
        away = pool.rebuilding or place is None or place.vdev.state not in vdev_state.WORKING
        # Whether an offline disk was cleared nothing shows, so that counts once it is being rebuilt.
        return step == "folder" or (step in {"fill", "offline"} and away) or (step == "clear" and pool.rebuilding)

    def recovery_hint(self, step: str, facts: Facts) -> str:
        pool = self.find_pool(facts)
        if pool is None:
            return Message(
                "{pool} is not in use here any more. Import it again, then look at its page.", pool=self.pool
            )
        return join_messages([state_text(pool, self.out, facts), way_forward(pool, facts)])

    def again(self, facts: Facts) -> Operation:
        if result.read_disk_out(self.pool, facts.datasets):
            return CleanUpRehearsal(pool=self.pool, guid=self.guid)
        return self


def state_text(pool: Pool, out: DiskOut, facts: Facts) -> str:
    """What the disk of a rehearsal is doing now."""
    place = vdev_tree.find_vdev(pool, out.vdev) or vdev_tree.find_disk(pool, out.disk)
    if pool.rebuilding:
        return Message("ZFS goes on rebuilding the disk, and {name} has less redundancy until then.", name=pool.name)
    if place is None or place.vdev.state not in vdev_state.WORKING:
        where = Message("It is in the box.") if facts.disk(out.disk) else Message("It does not answer.")
        return Message(
            "The disk is out of {name}, which has less redundancy until it is back. {where}",
            name=pool.name,
            where=where,
        )
    return (
        Message("All disks of {name} are in use.", name=pool.name)
        if pool.state == "ONLINE"
        else Message("{name} is not healthy.", name=pool.name)
    )


def way_forward(pool: Pool, facts: Facts) -> str:
    """What to do after a rehearsal that did not end well."""
    if facts.dataset(rehearsal_folder(pool.name)):
        return Message(
            "Clean up on the page of {name}: the disk is put back, and the test data is deleted.", name=pool.name
        )
    if pool.state == "ONLINE":
        return Message("The test data is deleted. Start the rehearsal again to get a result.")
    return Message("The test data is deleted. The page of {name} says what to do with its disks.", name=pool.name)


class CleanUpRehearsal(PoolOperation, tag="clean-up-rehearsal"):
    """Put the disk of an interrupted rehearsal back, and delete the test data."""

    needs_proof = never  # only test data is deleted: a disk with anything else on it is not overwritten

    @property
    def title(self) -> str:
        return Message("Clean up the rehearsal of {pool}", pool=self.pool)

    def disks_found(self, facts: Facts) -> tuple[str, ...]:
        out = result.read_disk_out(self.pool, facts.datasets)
        return (out.disk,) if out else ()

    def lasts(self) -> bool:
        return True

    def check(self, facts: Facts) -> Iterator[Reason]:
        refused = list(super().check(facts))
        yield from refused
        if not refused and result.read_disk_out(self.pool, facts.datasets) is None:
            yield Reason("rehearsal-missing", "No test data of a rehearsal is in {pool}.", pool=self.pool)

    def plan(self, facts: Facts) -> Plan:
        out = result.read_disk_out(self.pool, facts.datasets)
        pool = self.find_pool(facts)
        assert out and pool  # noqa: S101  # check said so
        place, disk = disk_content.find_place(pool, out), facts.disk(out.disk)
        identity = {
            **self.identity(),
            "disk": [out.vdev, out.disk],
            "place": [place.vdev.guid, place.vdev.path] if place else [],
            "content": disk.identity if disk else {},
        }
        state = state_text(pool, out, facts)
        if place and (why := disk_content.reason_not_replaced(pool, place, out, facts)):
            return self.plan_without_disk(state, why, identity)
        shown = (
            []
            if place is None
            else [
                ["zpool", "online", "--", self.pool, vdev_tree.online_operand(place.vdev)],
                steps.replace_argv(self.pool, place, out),
            ]
        )
        commands = "\n# or, if the disk was cleared already:\n".join(map(shlex.join, shown))
        rest = [["zfs", "destroy", "--", rehearsal_folder(self.pool)], steps.wait_argv(self.pool)]
        return Plan(
            summary=Message(
                "{state} The disk is put back, and the test data of the rehearsal is deleted.",
                state=state,
            ),
            steps=(
                Step(
                    "clean",
                    Message("Put the disk back, delete the test data, wait until the pool is redundant again"),
                    "\n".join([commands, *map(shlex.join, rest)]).strip(),
                    partial(steps.clear_up, self.pool, out),
                    (out.disk,),
                ),
            ),
            identity=identity,
            undo=Message("Start another rehearsal to get a result."),
        )

    def plan_without_disk(self, state: str, why: str, identity: dict[str, object]) -> Plan:
        """Only the test data goes: what is on the disk may be needed."""
        return Plan(
            summary=Message(
                "{state} The test data of the rehearsal is deleted. The disk is not put back, because that "
                "would overwrite it.",
                state=state,
            ),
            steps=(
                Step(
                    "delete",
                    Message("Delete the test data"),
                    shlex.join(["zfs", "destroy", "--", rehearsal_folder(self.pool)]),
                    partial(steps.remove_folder, self.pool),
                    (rehearsal_folder(self.pool),),
                ),
            ),
            identity=identity,
            warnings=(
                Message(
                    "{why} If you do not need what is on the disk, replace it on the page of {pool}. "
                    "Otherwise take it out, and replace it with another.",
                    why=why,
                    pool=self.pool,
                ),
            ),
            undo=Message("Start another rehearsal to get a result."),
        )

    def probe(self, step: str, facts: Facts) -> bool:
        pool = self.find_pool(facts)
        whole = pool is not None and (step == "delete" or pool.state == "ONLINE")
        return whole and facts.dataset(rehearsal_folder(self.pool)) is None

    def recovery_hint(self, step: str, facts: Facts) -> str:
        pool = self.find_pool(facts)
        return (
            way_forward(pool, facts)
            if pool
            else Message("{pool} is not in use here any more. Import it again.", pool=self.pool)
        )
