"""Pools: making one. Each change is an operation; see ``appliance/operation.py`` for the contract."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from appliance import names, passphrases
from appliance.disks.clear_labels import erase_step, lost_use
from appliance.disks.partitions import Cut, has_partitions, is_uneven, mirrors_of, partition_step
from appliance.errors import Failed, Reason, Refused
from appliance.facts.box import Disk, Facts, Pool
from appliance.formatting import disk_label, list_with_and, size_text
from appliance.layout.choices import LAYOUT_NAMES, LayoutChoice, rest_size
from appliance.layout.descriptions import describe_survival, explain_layout
from appliance.layout.geometry import LEAST_DISKS, MIB, PARTITION_MARGIN, parity_of, usable_bytes
from appliance.message import Message, join_messages
from appliance.operation import Operation, Plan, Step, Work, if_lost
from appliance.pools import create_checks
from appliance.pools.create_warnings import pool_warnings
from appliance.pools.vdevs import aux_rules, retry
from appliance.pools.vdevs.aux_rules import FUZZ
from appliance.system import paths as system_paths
from appliance.zfs import status

Layout = Literal["stripe", "mirror", "raidz1", "raidz2", "raidz3"]
MOST_DISKS = 64
LEAST_PARTITION = 64 * MIB


class CreatePool(Operation, tag="create-pool"):
    """Make a pool. ``groups`` are vdevs of by-id paths of whole disks, all of one layout and one number of disks.

    With ``partition`` (bytes, whole MiB) each data disk gives one partition of that size, and what is left of the
    larger ones can become a second pool, ``rest``, unprotected or with ``rest_mirror``. Both have the same settings.
    """

    needs_proof = if_lost

    name: str
    layout: Layout
    groups: tuple[tuple[str, ...], ...]
    ashift: Literal[9, 12, 13] = 12
    compression: Literal["lz4", "zstd", "off"] = "lz4"
    atime: bool = False
    autotrim: bool = False
    encrypted: bool = False
    key_file: bool = False  # encrypted by a key in a file instead of a passphrase
    logs: tuple[str, ...] = ()
    cache: tuple[str, ...] = ()
    spares: tuple[str, ...] = ()
    partition: int = 0
    rest: str = ""
    rest_mirror: bool = False

    def __post_init__(self) -> None:
        names.check_pool_name(self.name)
        for field, paths in self.disks_by_field():
            for path in paths:
                names.by_id(path, field=field)
        if self.rest:
            names.check_pool_name(self.rest, field="rest")
        if self.partition and (self.partition < LEAST_PARTITION or self.partition % MIB):
            raise Refused(
                Reason(
                    "partition-size-invalid", "The size of a partition must be whole MiB, at least 64.", field="layout"
                )
            )
        if (self.rest and not self.partition) or (self.rest_mirror and not self.rest):
            raise Refused(
                Reason(
                    "rest-without-partitions",
                    "A second pool is possible only where the disks are partitioned.",
                    field="rest",
                )
            )
        if self.key_file and not self.encrypted:
            raise Refused(
                Reason("key-file-without-encryption", "A key file belongs to an encrypted pool.", field="encryption")
            )

    @property
    def disks(self) -> list[str]:
        """The disks that hold data."""
        return [path for group in self.groups for path in group]

    def disks_by_field(self) -> list[tuple[str, Sequence[str]]]:
        """Every disk, by the field that it was chosen in."""
        return [("disks", self.disks), ("logs", self.logs), ("cache", self.cache), ("spares", self.spares)]

    @property
    def all_disks(self) -> list[str]:
        return [path for _field, paths in self.disks_by_field() for path in paths]

    @property
    def title(self) -> str:
        if self.rest:
            return Message("Create the pool {name} and the pool {rest}", name=self.name, rest=self.rest)
        return Message("Create the pool {name}", name=self.name)

    @property
    def subject(self) -> str:
        return self.name

    def wants_secret(self) -> bool:
        return self.encrypted

    def locks(self) -> tuple[str, ...]:
        return tuple(filter(None, (self.name, self.rest, *self.all_disks)))

    def disks_taken(self) -> tuple[str, ...]:
        return tuple(self.all_disks)

    def check(self, facts: Facts) -> Iterator[Reason]:
        if facts.zfs == "missing":
            yield Reason("zfs-not-loaded", "The ZFS module is not loaded on this system, so pools cannot be used.")
            return
        yield from create_checks.check_name(self, self.name, facts, "name")
        if self.rest:
            yield from create_checks.check_name(self, self.rest, facts, "rest")
            if self.rest == self.name:
                yield Reason("pool-names-equal", "The two pools need different names.", field="rest")
        if not self.groups or not self.disks:
            yield Reason("disk-not-chosen", "Choose at least one disk.", field="disks")
            return
        if len(self.all_disks) > MOST_DISKS:
            yield Reason("disks-too-many", "Choose at most {count} disks.", field="disks", count=MOST_DISKS)
        yield from create_checks.check_chosen_once(self, facts)
        least = LEAST_DISKS[self.layout]
        if min(len(group) for group in self.groups) < least:
            yield Reason(
                "disks-too-few-for-vdevs",
                "{layout} needs at least {count} disks in each group.",
                field="layout",
                layout=LAYOUT_NAMES[self.layout],
                count=least,
            )
        if len({len(group) for group in self.groups}) > 1:
            yield Reason(
                "vdevs-unequal",
                "Every group of a pool should have the same number of disks. Choose a number that divides evenly.",
                field="layout",
            )
        for field, paths in self.disks_by_field():
            for path in paths:
                yield from create_checks.check_disk(self, path, facts, field)
        yield from create_checks.check_extras(self, facts)
        if self.partition:
            yield from create_checks.check_partitions(self, facts)

    def disk_sizes(self, facts: Facts) -> list[list[int]]:
        """Bytes that each disk of each group gives."""
        found = [[disk.size for path in group if (disk := facts.disk(path))] for group in self.groups]
        return [[self.partition for _size in group] for group in found] if self.partition else found

    def plan_cuts(self, facts: Facts) -> list[Cut]:
        """How each data disk is partitioned; none where whole disks are used."""
        if not self.partition:
            return []
        disks = [disk for path in self.disks if (disk := facts.disk(path))]
        return [Cut(disk, self.partition, rest_size(disk.size, self.partition) if self.rest else 0) for disk in disks]

    def plan(self, facts: Facts) -> Plan:
        disks = [disk for path in self.all_disks if (disk := facts.disk(path))]
        shape, cuts = self.disk_sizes(facts), self.plan_cuts(facts)
        full = [disk for disk in disks if disk.uses]
        holds = usable_bytes(self.layout, shape, self.ashift, margin=0 if self.partition else PARTITION_MARGIN)
        made = (
            Message(
                "{layout_names} of {count} disks", layout_names=LAYOUT_NAMES[self.layout].lower(), count=len(self.disks)
            )
            if self.disks[1:]
            else Message("one disk alone")
        )
        summary: str = Message(
            "The pool {name}: {made}, about {holds} for files.", name=self.name, made=made, holds=size_text(holds)
        )
        rests = [cut.rest for cut in cuts if cut.rest]
        if rests:
            pairs = [[cut.rest for cut in group] for group in mirrors_of(cuts)] if self.rest_mirror else []
            second = usable_bytes("mirror" if pairs else "stripe", pairs or [rests], self.ashift, margin=0)
            more = Message(
                "The pool {rest}: what is left of the larger disks, about {second}, {what}.",
                rest=self.rest,
                second=size_text(second),
                what=Message("mirrored") if pairs else Message("not protected"),
            )
            summary = join_messages([summary, more])
        return Plan(
            summary=summary,
            steps=tuple(self.steps(full, shape, cuts)),
            identity={"operation": msgspec.to_builtins(self), "disks": [disk.identity for disk in disks]},
            losses=tuple(lost_use(disk, use) for disk in full for use in disk.uses),
            warnings=tuple(pool_warnings(self, facts, shape)),
            undo=Message("What was on the disks before cannot be recovered.")
            if full
            else Message("The pool can be destroyed again; the disks are empty now."),
            type_to_confirm=self.name if full else "",
            details=self.plan_details(facts),
            key_file=self.key_file,
        )

    def plan_details(self, facts: Facts) -> dict[str, str]:
        layout = LayoutChoice(self.layout, len(self.groups))
        disks = [disk_label(disk) for path in self.disks if (disk := facts.disk(path))]
        found = {
            Message("Disks") if disks[1:] else Message("Disk"): join_messages(disks, ", "),
            LAYOUT_NAMES[self.layout] if self.disks[1:] else Message("One disk alone"): explain_layout(
                layout, len(self.groups[0])
            ),
            Message("Survives"): describe_survival(parity_of(self.layout, len(self.groups[0]))),
        }
        if self.rest:
            found[Message("Survives in {rest}", rest=self.rest)] = describe_survival(1 if self.rest_mirror else 0)
        for word, paths in (
            (Message("Log"), self.logs),
            (Message("Cache"), self.cache),
            (Message("Spare"), self.spares),
        ):
            labels = [disk_label(disk) for path in paths if (disk := facts.disk(path))]
            if labels:
                listed = list_with_and(labels)
                found[word] = Message("mirror of {disks}", disks=listed) if word == "Log" and labels[1:] else listed
        if self.encrypted:
            found[Message("Encrypted")] = Message("by a key file") if self.key_file else Message("by a passphrase")
        return found

    def steps(self, full: list[Disk], shape: list[list[int]], cuts: list[Cut]) -> Iterator[Step]:
        secret = asked_once()
        if full:
            yield erase_step(full)
        if cuts:
            yield partition_step(cuts, [self.name, self.rest] if self.rest else [self.name])
        force = self.layout != "stripe" and any(max(group) - min(group) > FUZZ for group in shape)
        part = "-part1" if self.partition else ""
        vdevs = [
            word
            for group in self.groups
            for word in [*([] if self.layout == "stripe" else [self.layout]), *(f"{path}{part}" for path in group)]
        ]
        vdevs += aux_rules.aux_vdev_args(self.logs, self.cache, self.spares)
        yield self.create_step("create", self.name, vdevs, secret, ["-f"] if force else [])
        if self.rest:
            yield self.rest_step(cuts, secret)
        both = Message("{name} and {rest}", name=self.name, rest=self.rest) if self.rest else self.name
        shown = shlex.join(status.READ_POOLS)
        yield Step(
            "verify", Message("Read {both} back and see that every disk is in it", both=both), shown, self.verify_pools
        )

    def rest_step(self, cuts: list[Cut], secret: Callable[[Work], str]) -> Step:
        if not self.rest_mirror:
            return self.create_step("create-rest", self.rest, [cut.paths[1] for cut in cuts if cut.rest], secret)
        mirrors = mirrors_of(cuts)
        vdevs = [word for group in mirrors for word in ("mirror", *(cut.paths[1] for cut in group))]
        return self.create_step("create-rest", self.rest, vdevs, secret, ["-f"] if is_uneven(mirrors, FUZZ) else [])

    def create_step(
        self, step: str, name: str, vdevs: Sequence[str], secret: Callable[[Work], str], force: Sequence[str] = ()
    ) -> Step:
        settings = {
            "compression": self.compression,
            "atime": on_off(self.atime),
            "xattr": "sa",
            "acltype": "posix",
            "dnodesize": "auto",
            # Nothing of it is ever mounted over a folder that holds something.
            "overlay": "off",
        }
        if self.encrypted:
            kind = "hex" if self.key_file else "passphrase"
            settings |= {"encryption": "aes-256-gcm", "keyformat": kind, "keylocation": "prompt"}
        argv = [
            "zpool",
            "create",
            *force,
            "-o",
            f"ashift={self.ashift}",
            "-o",
            f"autotrim={on_off(self.autotrim)}",
            *(word for key, value in settings.items() for word in ("-O", f"{key}={value}")),
            "-m",
            str(system_paths.POOLS / name),
            "--",
            name,
            *vdevs,
        ]

        def act(work: Work) -> None:
            # Both formats are read as one line of standard input (libzfs_crypto.c, get_key_material_raw).
            given = f"{secret(work)}\n" if self.encrypted else None
            if self.key_file and given:
                passphrases.key_digits(given.removesuffix("\n"))
            result = retry.run_with_udev_retry(argv, timeout=600, given=given)
            for line in (result.stdout + result.stderr).splitlines():
                work.note(line)

        return Step(
            step,
            Message("Create {name}", name=name),
            shlex.join(argv),
            act,
            tuple(vdevs),
            Message("Destroy {name}", name=name),
        )

    def verify_pools(self, work: Work) -> None:
        found = {pool.name: pool for pool in status.read_pools()}
        for name in filter(None, (self.name, self.rest)):
            pool = found.get(name)
            if pool is None or not self.made_of_our_disks(pool):
                raise Failed(Message("{name} does not consist of the disks that were chosen", name=name))
            if pool.state != "ONLINE":
                raise Failed(Message("{name} was made but is {state}", name=name, state=pool.state), pool.status)
            disks = (
                Message("{count} disks", count=count) if (count := len(list(pool.devices()))) > 1 else Message("1 disk")
            )
            work.note(Message("{name} is online with {disks}", name=name, disks=disks))

    def made_of_our_disks(self, pool: Pool) -> bool:
        """Whether the pool has the disks that this operation gives it: all, or second partitions of some."""
        found = {Path(device.path or device.name).name for device in pool.devices()}
        if pool.name == self.rest:
            return bool(found) and found <= {f"{Path(path).name}-part2" for path in self.disks}
        return {name.removesuffix("-part1") for name in found} == {Path(path).name for path in self.all_disks}

    def probe(self, step: str, facts: Facts) -> bool:
        def made(name: str) -> bool:
            pool = facts.pool(name)
            return pool is not None and self.made_of_our_disks(pool)

        cuts = self.plan_cuts(facts)
        cut = bool(cuts) and len(cuts) == len(self.disks) and all(map(has_partitions, cuts))
        if step == "erase":
            free = all(disk is not None and disk.free for disk in map(facts.disk, self.all_disks))
            return made(self.name) or cut or free
        if step == "partition":
            return made(self.name) or cut
        if step in {"create", "create-rest"}:
            return made(self.name if step == "create" else self.rest)
        pools = [facts.pool(name) for name in filter(None, (self.name, self.rest))]
        return all(pool is not None and self.made_of_our_disks(pool) and pool.state == "ONLINE" for pool in pools)

    def recovery_hint(self, step: str, facts: Facts) -> str:
        pool = facts.pool(self.name)
        if pool is not None and self.made_of_our_disks(pool):
            said: str = Message(
                "{name} is there and its state is {state}. Look at its page.", name=self.name, state=pool.state.lower()
            )
            if self.rest and facts.pool(self.rest) is None:
                more = Message(
                    "{rest} is not there: the second partitions of the larger disks are still empty.", rest=self.rest
                )
                said = join_messages([said, more])
            return said
        gone = [path.rsplit("/", 1)[-1] for path in self.all_disks if facts.disk(path) is None]
        if gone:
            return Message(
                "{name} was not created, and {gone} does not answer. Put the disk back or choose others, "
                "then create the pool again.",
                name=self.name,
                gone=", ".join(gone),
            )
        if any(use.pool == self.name for disk in facts.disks if disk.path in self.all_disks for use in disk.uses):
            return Message(
                "{name} is not in use. Its disks carry traces of it, but none of your files. Create it again "
                "on the same disks: Larder will show the traces and erase them.",
                name=self.name,
            )
        if step != "partition" and any(map(has_partitions, self.plan_cuts(facts))):
            return Message(
                "{name} was not created. Its disks are partitioned, but hold none of your files. Create it "
                "again on the same disks: Larder will show the partitions and erase them.",
                name=self.name,
            )
        return Message(
            "{name} was not created, and nothing of it is left on the disks. Create it again when you like.",
            name=self.name,
        )


def asked_once() -> Callable[[Work], str]:
    """The job's secret, which can be had once, for more than one step of the same run."""
    kept: list[str] = []

    def secret(work: Work) -> str:
        if not kept:
            kept.append(work.secret())
        return kept[0]

    return secret


def on_off(value: bool) -> str:  # a property's value, not a switch of behaviour
    return "on" if value else "off"
