"""Bringing in a pool that lies on the disks: by its guid, under any name, without trusting what it says of itself."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

import msgspec
from msgspec.structs import replace

from appliance import command, names
from appliance.errors import Failed, Reason, Refused
from appliance.facts.box import Facts
from appliance.facts.importable import Importable
from appliance.message import Message, join_messages
from appliance.operation import Loss, Operation, Plan, Step, Work, if_lost
from appliance.pools import discover
from appliance.pools.import_reasons import pool_guid, used_by_other_system
from appliance.shares import approved
from appliance.zfs import mount as zfs_mount
from appliance.zfs import status
from appliance.zfs.foreign_settings import Unsafe

CACHE = "/etc/zfs/zpool.cache"
LONGEST_SEARCH = 14 * 24 * 3600
SEARCH_MEANS = Message(
    "For each earlier state that is tried, everything in the pool is read. With a large pool that takes many "
    "hours, and it cannot be stopped."
)
READ_FIRST = Message(
    "Import it read-only first: that changes nothing on its disks, shows what is left, and lets you copy it. "
    "Without read-only everything newer is given up for good."
)


class ImportPool(Operation, tag="import-pool"):
    """Use a pool that is on the disks of this box. ``guid`` says which, ``name`` how it shall be called here."""

    needs_proof = if_lost

    guid: int
    name: str
    read_only: bool = False
    force: bool = False  # though another system has not let go of it
    rewind: bool = False  # to an earlier moment, where the latest is damaged
    last_resort: bool = False  # to whichever earlier moment is whole, where none of the last ones is
    destroyed: bool = False  # bring back what was destroyed
    without_log: bool = False
    move_folders: bool = False  # bring mountpoints outside the pool's own folder below it

    def __post_init__(self) -> None:
        pool_guid(self.guid)
        names.existing_pool(self.name, field="name")

    @property
    def title(self) -> str:
        return Message("Recover {name}", name=self.name) if self.destroyed else Message("Import {name}", name=self.name)

    @property
    def subject(self) -> str:
        return self.name

    def locks(self) -> tuple[str, ...]:
        return (self.name, str(self.guid))

    def disks_found(self, facts: Facts) -> tuple[str, ...]:
        return discover.pool_disks(self.guid, facts)

    def lasts(self) -> bool:
        # Minutes where disks are slow or much has to be replayed; hours as a last resort.
        return True

    @property
    def goes_back(self) -> bool:
        return self.rewind or self.last_resort

    def load_extra_facts(self, facts: Facts) -> Facts:
        if facts.zfs == "missing" or facts.pool_of(self.guid):
            return facts
        return replace(facts, importable=discover.discover_pools(self.guid))

    def check(self, facts: Facts) -> Iterator[Reason]:
        if facts.zfs == "missing":
            yield Reason("zfs-not-loaded", "The ZFS module is not loaded on this system, so pools cannot be used.")
            return
        if pool := facts.pool_of(self.guid):
            yield Reason("pool-in-use-already", "This pool is already in use here, as {pool}.", pool=pool.name)
            return
        found = facts.found(self.guid)
        if found is None:
            yield Reason("pool-not-found", "That pool is on no disk of this box now. Search for pools again.")
            return
        yield from self.check_name(found, facts)
        yield from self.check_state(found)

    def check_name(self, found: Importable, facts: Facts) -> Iterator[Reason]:
        if facts.pool(self.name):
            yield Reason(
                "pool-name-taken",
                "The name {name} is taken by a pool of this box. Choose another.",
                field="name",
                name=self.name,
            )
        if names.is_top_folder(self.name):
            yield Reason(
                "name-of-system-folder",
                "The system has a folder /{name} of its own. Choose another name.",
                field="name",
                name=self.name,
            )
        if self.name != found.name:
            try:
                names.check_pool_name(self.name)
            except Refused as refusal:
                yield from refusal.reasons

    def check_state(self, found: Importable) -> Iterator[Reason]:
        if found.destroyed != self.destroyed:
            yield (
                Reason("pool-destroyed", "This pool was destroyed. Choose to recover it.")
                if found.destroyed
                else Reason("pool-not-destroyed", "This pool was not destroyed. Search for pools again.")
            )
        if found.active_elsewhere:
            yield Reason("pool-active-elsewhere", "Another system is using this pool right now. Export it there first.")
        elif found.other_host and not self.force:
            yield used_by_other_system()
        if self.goes_back and found.usable:
            yield Reason(
                "pool-needs-no-rewind",
                "This pool is intact. It does not have to go back to an earlier state.",
                field="rewind",
            )
        if not found.usable and not found.active_elsewhere:
            yield from self.check_damage(found)

    def check_damage(self, found: Importable) -> Iterator[Reason]:
        """What has to be agreed to before a pool that is not intact can be imported."""
        if found.read_only_only:
            if not self.read_only:
                yield Reason(
                    "pool-read-only-here",
                    "This system can only read this pool: it uses features that are newer. Choose read-only.",
                    field="read_only",
                )
        elif found.log_missing:
            if not self.without_log:
                yield Reason(
                    "log-device-missing",
                    "Its log device is missing. Put it back, or agree to lose what only the log holds.",
                    field="without_log",
                )
        elif found.rewind and found.rewind.last_resort:
            if not self.last_resort:
                yield Reason(
                    "pool-needs-last-resort",
                    "The pool's latest state is damaged, and those right before it do not help. As a last "
                    "resort, have all its earlier states searched for an intact one.",
                    field="last_resort",
                )
        elif found.rewind:
            if not self.rewind:
                yield Reason(
                    "pool-needs-rewind",
                    "The pool's latest state is damaged. It can be imported as it was on {moment}.",
                    field="rewind",
                    moment=found.rewind.as_of,
                )
            elif self.last_resort:
                yield Reason(
                    "pool-needs-no-last-resort",
                    "An earlier state is known to be intact. The last resort is not needed.",
                    field="last_resort",
                )
        else:
            yield Reason(
                "pool-disks-missing",
                "Too few of its disks are here, or their contents do not fit together. Put in the missing "
                "disks and search again.",
            )

    def argv(self) -> list[str]:
        flags = ["-N", *(["-D"] if self.destroyed else []), *(["-f"] if self.force or self.destroyed else [])]
        flags += [*(["-F"] if self.goes_back else []), *(["-X"] if self.last_resort else [])]
        flags += ["-m"] if self.without_log else []
        settings = ["-o", "cachefile=none"]
        if self.read_only:
            # Below a root of its own nothing that it wants to mount can reach a folder of the system.
            settings += ["-o", "readonly=on", "-R", zfs_mount.home_of(self.name)]
        return ["zpool", "import", *flags, *settings, "-d", discover.BY_ID, str(self.guid), self.name]

    def remember_argv(self) -> list[str]:
        return ["zpool", "set", f"cachefile={CACHE}", self.name]

    @property
    def place_text(self) -> str:
        return "zfs inherit mountpoint DATASET" if self.move_folders else "zfs set -u canmount=noauto DATASET"

    def plan(self, facts: Facts) -> Plan:
        found = facts.found(self.guid)
        assert found is not None  # noqa: S101  # check said so
        home = zfs_mount.home_of(self.name)
        return Plan(
            summary=Message(
                "The pool {name}{what}{what_2}. Its folders appear below {home}.",
                name=self.name,
                what=Message(" comes back") if self.destroyed else Message(" is used on this box"),
                what_2=Message(", read-only") if self.read_only else "",
                home=home,
            ),
            steps=tuple(self.plan_steps(found, home)),
            identity={
                "operation": msgspec.to_builtins(self),
                "found": [found.name, found.guid, found.state, found.destroyed, found.other_host],
                "rewind": [found.rewind.as_of, found.rewind.at_worst] if self.goes_back and found.rewind else [],
            },
            losses=tuple(self.losses(found)),
            warnings=tuple(self.warnings(found)),
            undo=Message("What you give up by going back cannot be recovered.")
            if self.goes_back and (not self.read_only)
            else Message("Export {name} again at any time.", name=self.name),
            type_to_confirm=self.name
            if self.force or (self.goes_back and not self.read_only) or self.without_log
            else "",
            details={
                key: value
                for key, value in {
                    Message("Was called"): found.name if found.name != self.name else "",
                    Message("Last used by"): found.host if found.other_host else "",
                }.items()
                if value
            },
        )

    def plan_steps(self, found: Importable, home: str) -> list[Step]:
        """Import, mount, and unless it is read-only make its settings safe and import it at each start of the box."""
        left, unsafe = list[str](), Unsafe()  # left: what could not be mounted
        steps = [
            Step(
                "import",
                Message("Take {name} into use, with nothing mounted yet", name=self.name),
                shlex.join(self.argv()),
                self.bring_in,
                (self.name,),
                Message("Export {name}", name=self.name),
            ),
        ]
        if not self.read_only:
            steps.append(
                Step(
                    "tame",
                    Message(
                        "Keep its folders below {home}, and let nothing of it share itself or run as root", home=home
                    ),
                    f"{zfs_mount.QUIET_TEXT}, for each folder that says otherwise\n{self.place_text}, for "
                    f"each folder that wants to be mounted outside {home}",
                    lambda work: unsafe.make_safe(self.name, work, former=found.name, everything=self.move_folders),
                    (self.name,),
                )
            )
        steps.append(
            Step(
                "mount",
                Message("Mount its folders"),
                f"{zfs_mount.mount_text('DATASET')}, for each folder below {home}",
                lambda work: self.mount(work, left, unsafe),
                (home,),
            )
        )
        if not self.read_only:
            steps.append(
                Step(
                    "keep",
                    Message("Import it again at each start of the box"),
                    shlex.join(self.remember_argv()),
                    lambda work: self.import_at_start(work, left, unsafe),
                )
            )
        return steps

    def losses(self, found: Importable) -> Iterator[Loss]:
        if self.last_resort and found.rewind and not self.read_only:
            yield Loss(
                Message(
                    "everything written to the pool after the newest intact state: at best {as_of}, at worst "
                    "{at_worst}",
                    as_of=found.rewind.as_of,
                    at_worst=found.rewind.at_worst,
                )
            )
        elif self.rewind and found.rewind and not self.read_only:
            lost = Message(", about {lost}", lost=found.rewind.lost) if found.rewind.lost else ""
            yield Loss(
                Message("everything written to the pool after {as_of}{lost}", as_of=found.rewind.as_of, lost=lost)
            )
        if self.without_log:
            yield Loss(Message("what programs wrote last and only the missing log device holds, usually a few seconds"))

    def warnings(self, found: Importable) -> Iterator[str]:
        if self.force:
            yield used_by_other_system().text
        if self.last_resort:
            yield SEARCH_MEANS if self.read_only else join_messages([SEARCH_MEANS, READ_FIRST])
        if found.state == "DEGRADED":
            yield Message(
                "Some of its disks are missing or damaged. It can be used, but it may not survive another failure."
            )
        if self.read_only:
            yield Message(
                "Read-only: nothing on its disks is changed, and it is not imported again at the next start. "
                "Folders appear below the pool's own folder under the whole path that they had."
            )
        elif self.move_folders:
            yield Message(
                "Folders that belong outside {home} are moved below it. That is written to the pool: a "
                "system that starts from it may no longer start.",
                home=zfs_mount.home_of(self.name),
            )
        else:
            yield Message(
                "Folders that belong outside {home} stay unmounted, and are marked so (canmount=noauto).",
                home=zfs_mount.home_of(self.name),
            )
        yield Message(
            "Shares that its folders bring along are offered afterwards. None is switched on by itself. "
            "Encrypted folders ask for their passphrase afterwards."
        )

    def bring_in(self, work: Work) -> None:
        try:
            result = command.run(self.argv(), timeout=LONGEST_SEARCH if self.last_resort else 900)
        except command.CommandFailed as failed:
            if "previously in use from another system" in failed.said or "may be in use" in failed.said:
                raise Refused(used_by_other_system()) from failed
            raise Failed(Message("{name} could not be imported", name=self.name), failed.said) from failed
        for line in (result.stdout + result.stderr).splitlines():
            work.note(line)
        # It may carry the guid of a folder that was agreed to here: the agreement was not about this disk.
        known = approved.read_approved()
        for dataset in status.read_datasets():
            if dataset.pool == self.name and dataset.guid in known:
                approved.set_approved(dataset.guid, share=False)

    def mount(self, work: Work, left: list[str], unsafe: Unsafe) -> None:
        """Mount its folders; ``left`` gets those that could not be."""
        folders: Sequence[zfs_mount.Carried] = zfs_mount.foreign_properties(self.name)
        if not self.read_only:  # then every mount is without rights
            folders = unsafe.leave_out(folders, self.name, work)
            left += unsafe.unmoved(folders)
        left += zfs_mount.mount_all(folders, self.name, read_only=self.read_only, work=work)
        if self.read_only:  # no step follows
            zfs_mount.note_left(left, work)

    def import_at_start(self, work: Work, left: list[str], unsafe: Unsafe) -> None:
        zfs_mount.note_left(left, work)
        unsafe.refuse_left(self.name)
        command.run(self.remember_argv(), timeout=120)

    def probe(self, step: str, facts: Facts) -> bool:
        pool = facts.pool_of(self.guid)
        if pool is None:
            return False
        if step == "import":
            return True
        if step == "keep":
            argv = ["zpool", "get", "-H", "-o", "value", "cachefile", pool.name]
            return command.run(argv, timeout=60).stdout.strip() != "none"
        try:
            found = zfs_mount.foreign_properties(pool.name)
        except Failed:
            return False
        if step == "tame":
            return not list(zfs_mount.neutralise_properties(found, pool.name))
        return all(
            one.values["mounted"] == "yes" or one.locked
            for one in found
            if one.mounts_itself and one not in zfs_mount.mounted_elsewhere(found, pool.name)
        )

    def recovery_hint(self, step: str, facts: Facts) -> str:
        if pool := facts.pool_of(self.guid):
            return Message(
                "{pool} is in use, but not all of its folders are where they belong, or it is not imported "
                "again at the next start. Export it, then import it again.",
                pool=pool.name,
            )
        if self.goes_back and not self.read_only:
            return Message(
                "{name} is not in use, but it may have gone back already. Search for pools again, then import it.",
                name=self.name,
            )
        return Message(
            "{name} is not in use, and its disks are as they were. Search for pools again, then import it.",
            name=self.name,
        )
