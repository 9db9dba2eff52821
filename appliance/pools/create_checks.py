"""What speaks against making a pool: its name, its disks, what goes with it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from appliance import names
from appliance.disks.partitions import mirrors_of
from appliance.errors import Reason
from appliance.facts.box import Facts
from appliance.formatting import disk_label, size_text
from appliance.layout.choices import SLACK
from appliance.message import Message
from appliance.pools.vdevs import aux_rules
from appliance.pools.vdevs.aux_rules import MOST_LOGS

if TYPE_CHECKING:
    from appliance.pools.create import CreatePool

ROLE_WORDS = {
    "disks": Message("for the data"),
    "logs": Message("as log"),
    "cache": Message("as cache"),
    "spares": Message("as spare"),
}


def check_name(operation: CreatePool, name: str, facts: Facts, field: str) -> Iterator[Reason]:
    if facts.pool(name):
        yield Reason(
            "pool-name-taken",
            "The name {name} is taken by a pool of this box. Choose another.",
            field=field,
            name=name,
        )
    elif names.is_top_folder(name):
        yield Reason(
            "name-of-system-folder",
            "The system has a folder /{name} of its own. Choose another name.",
            field=field,
            name=name,
        )
    for disk in facts.disks:
        for use in disk.uses:
            if use.kind == "exported" and use.pool == name and disk.path not in operation.all_disks:
                yield Reason(
                    "pool-name-exported-on-disk",
                    "The name {name} belongs to a pool on {disk} that is not in use at the moment. Choose "
                    "another name, so that both can be used, or erase that disk first.",
                    field=field,
                    name=name,
                    disk=disk_label(disk),
                )
                return


def check_chosen_once(operation: CreatePool, facts: Facts) -> Iterator[Reason]:
    seen: dict[str, str] = {}
    for field, paths in operation.disks_by_field():
        for path in paths:
            if path not in seen:
                seen[path] = field
            elif seen[path] == field:
                yield Reason("disk-twice", "A disk was chosen twice.", field=field)
            else:
                disk = facts.disk(path)
                label = disk_label(disk) if disk else path.rsplit("/", 1)[-1]
                yield Reason(
                    "disk-in-two-roles",
                    "{disk} was chosen twice: {first} and {second}.",
                    field=field,
                    disk=label,
                    first=ROLE_WORDS[seen[path]],
                    second=ROLE_WORDS[field],
                )


def check_disk(operation: CreatePool, path: str, facts: Facts, field: str) -> Iterator[Reason]:
    disk = facts.disk(path)
    if disk is None:
        yield Reason("disk-missing", "The disk {disk} is no longer there.", field=field, disk=path.rsplit("/", 1)[-1])
    elif disk.logical_sector > 1 << operation.ashift:
        yield Reason(
            "sector-size-too-small",
            "{disk} has sectors of {sector} bytes. Choose a larger sector size.",
            field="ashift",
            disk=disk_label(disk),
            sector=disk.logical_sector,
        )
    elif disk.blocked:
        yield Reason(
            "disk-in-use",
            "{disk} {use}, so it cannot be used.",
            field=field,
            disk=disk_label(disk),
            use=disk.blocked.text,
        )


def check_extras(operation: CreatePool, facts: Facts) -> Iterator[Reason]:
    if len(operation.logs) > MOST_LOGS:
        yield Reason(
            "log-too-wide",
            "A log has at most {count} disks. Two disks are a mirror already.",
            field="logs",
            count=MOST_LOGS,
        )
    if operation.spares and operation.layout == "stripe":
        yield Reason(
            "spare-without-redundancy",
            "Without redundancy a spare has nothing to rebuild from. Choose another layout.",
            field="spares",
        )
        return
    shape = operation.disk_sizes(facts)
    needed = operation.partition or max((min(group) for group in shape if group), default=0)
    for path in operation.spares:
        if disk := facts.disk(path):
            yield from aux_rules.check_spare(disk, needed)


def check_partitions(operation: CreatePool, facts: Facts) -> Iterator[Reason]:
    if operation.layout == "stripe":
        yield Reason(
            "partitions-in-stripe",
            "A stripe already uses every byte of unequal disks. Choose whole disks.",
            field="layout",
        )
    for path in operation.disks:
        disk = facts.disk(path)
        if disk and disk.size < operation.partition + SLACK:
            yield Reason(
                "disk-too-small-for-partition",
                "{disk} has no room for a partition of {size}. Choose the whole disk.",
                field="disks",
                disk=disk_label(disk),
                size=size_text(operation.partition),
            )
    if operation.rest and not any(cut.rest for cut in operation.plan_cuts(facts)):
        yield Reason("rest-empty", "The disks are of one size, so nothing is left for a second pool.", field="rest")
    elif operation.rest_mirror and not mirrors_of(operation.plan_cuts(facts)):
        yield Reason("rest-not-mirrored-by-one", "A mirror needs two disks that have something left.", field="rest")
