"""Read pools and datasets from the JSON of ``zpool status`` and ``zfs list`` (OpenZFS 2.3).

``output_version`` of that JSON is 0.1, so it is read tolerantly: what is missing gets its plain default, what is
unknown is passed over.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec.structs import replace

from appliance import command
from appliance.errors import Failed, explain_error
from appliance.facts import user_properties, vdev_state
from appliance.facts.box import Checkpoint, Pool, Scan, Vdev
from appliance.facts.datasets import Dataset, Property
from appliance.system import disk_links
from appliance.system.disk_links import DiskLinks
from appliance.zfs import ashift, json_output, kstat, scan_status, system_datasets
from appliance.zfs.scan_status import parse_number, parse_time

NO_LINKS = DiskLinks({}, {})
OPENED = vdev_state.WORKING | vdev_state.HEALTHY
ROLES = {"logs": "log", "l2cache": "cache", "spares": "spare", "special": "special", "dedup": "dedup"}
# -t and -i: how far trimming and initializing are, which it leaves out otherwise.
READ_POOLS = ("zpool", "status", "-j", "--json-int", "-t", "-i")
# They say nothing of the folders below, which inherit them.
OF_ITSELF = {user_properties.BOX, user_properties.REHEARSAL}
# What a removed vdev leaves in the tree: it has no disk, and nobody can do anything with it.
NOTHING = {"hole", "indirect", "missing"}
OPPOSITE = {"on": "off", "off": "on"}
COLUMNS = (
    "type,guid,creation,used,available,referenced,usedbysnapshots,mounted,mountpoint,canmount,"
    "encryption,keystatus,keyformat,encryptionroot,readonly,"
    f"{user_properties.SHARE},{user_properties.ACCESS},{user_properties.POLICY},"
    f"{user_properties.BACKUP},{user_properties.COPY_OF},{user_properties.BENCHMARK},"
    "written,snapshots_changed,"
    "usedbydataset,usedbychildren,usedbyrefreservation,origin,volsize"
)
# Kept with their source: ``datasets/property_words.py`` says what each means.
KEPT = (
    "recordsize",
    "volblocksize",
    "compression",
    "atime",
    "sync",
    "snapdir",
    "copies",
    "dedup",
    "logbias",
    "primarycache",
    "quota",
    "refquota",
    "reservation",
    "refreservation",
    "casesensitivity",
    "acltype",
    user_properties.PRESET,
    user_properties.UNLOCK,
    user_properties.ORIGIN,
    user_properties.COPIED,
    user_properties.DRILL,
    user_properties.BOX,
    user_properties.RECEIVES,
    user_properties.REHEARSAL,
    "receive_resume_token",
    "volmode",
)


def is_module_loaded() -> bool:
    """Whether the running kernel has its ZFS module."""
    try:
        with open("/proc/misc", encoding="ascii") as devices:  # noqa: PTH123  # one read, no path handling
            return any(line.split()[-1:] == ["zfs"] for line in devices)
    except OSError:
        return False


def parse_vdev(raw: Mapping[str, Any], role: str = "normal", links: DiskLinks = NO_LINKS) -> Vdev:
    """A vdev and all below it. A spare that stands in calls itself one (``class``), but works
    as what its group is for."""
    children, path, state = raw.get("vdevs") or {}, str(raw.get("path", "")), vdev_state.read_state(raw)
    return Vdev(
        name=str(raw.get("name", "")),
        kind=str(raw.get("vdev_type", "")),
        guid=parse_number(raw.get("guid")),
        state=state,
        role=role,
        path=path,
        disk=links.find_disk(path, str(raw.get("devid", "")), opened=state in OPENED),
        read_errors=parse_number(raw.get("read_errors")),
        write_errors=parse_number(raw.get("write_errors")),
        checksum_errors=parse_number(raw.get("checksum_errors")),
        slow_ios=parse_number(raw.get("slow_ios")),
        size=parse_number(raw.get("phys_space") or raw.get("total_space")),
        slot=str(raw.get("phys_path", "")),
        replace_size=parse_number(raw.get("rep_dev_size")) if not children else 0,
        expandable=parse_number(raw.get("ex_dev_size")),
        processed=parse_number(raw.get("scan_processed")),
        deferred=bool(raw.get("resilver_deferred")),
        removing=bool(raw.get("removing")),
        space=parse_number(raw.get("total_space")),
        used=parse_number(raw.get("alloc_space")),
        deflated=parse_number(raw.get("def_space")),
        children=tuple(parse_vdev(child, role, links) for child in children.values()),
    )


def parse_scan(raw: Mapping[str, Any] | None) -> Scan | None:
    if not raw or not (started := parse_time(raw.get("start_time"))):
        return None
    paused = bool(raw.get("scrub_pause")) and raw.get("state") == "SCANNING"
    return Scan(
        kind=str(raw.get("function", "")).lower(),
        state="paused" if paused else str(raw.get("state", "")).lower(),
        started=started,
        ended=parse_time(raw.get("end_time")) if raw.get("state") != "SCANNING" else None,
        to_examine=parse_number(raw.get("to_examine")),
        examined=parse_number(raw.get("examined")),
        issued=parse_number(raw.get("issued")),
        errors=parse_number(raw.get("errors")),
        repaired=parse_number(raw.get("processed")),
        skipped=parse_number(raw.get("skipped")),
    )


def parse_checkpoint(raw: Mapping[str, Any] | None) -> Checkpoint | None:
    """The checkpoint of ``checkpoint_stats``; None where there is none."""
    state = str((raw or {}).get("state", "")).lower()
    if raw is None or state not in {"exists", "discarding"}:
        return None
    return Checkpoint(state, parse_time(raw.get("start_time")), parse_number(raw.get("space")))


def parse_pools(status: Mapping[str, Any], links: DiskLinks = NO_LINKS) -> Iterator[Pool]:
    """The pools of a ``zpool status -j --json-int`` object; ``links`` tell which disks their devices are on."""
    for raw in (status.get("pools") or {}).values():
        root: dict[str, Any] = next(iter((raw.get("vdevs") or {}).values()), {})
        tops = [child for child in (root.get("vdevs") or {}).values() if child.get("vdev_type") not in NOTHING]
        groups = [parse_vdev(child, str(child.get("class") or "normal"), links) for child in tops]
        for key, role in ROLES.items():
            groups += [parse_vdev(child, role, links) for child in (raw.get(key) or {}).values()]
        size, used = parse_number(root.get("total_space")), parse_number(root.get("alloc_space"))
        yield Pool(
            name=str(raw["name"]),
            guid=parse_number(raw.get("pool_guid")),
            state=str(raw.get("state", "UNKNOWN")),
            vdevs=tuple(groups),
            scan=parse_scan(raw.get("scan_stats")),
            errors=parse_number(raw.get("error_count")),
            status=str(raw.get("status", "")),
            action=str(raw.get("action", "")),
            size=size,
            allocated=used,
            free=max(size - used, 0),
            checkpoint=parse_checkpoint(raw.get("checkpoint_stats")),
            work=scan_status.parse_long_work(raw),
            can_trim=scan_status.can_trim(raw),
            had_removal=scan_status.had_removal(raw),
        )


def parse_whole(value: object) -> int:
    """A number that is written as one, or as text; 0 for anything else."""
    return int(value) if isinstance(value, str) and re.fullmatch(r"[0-9]{1,30}", value) else parse_number(value)


def kept_properties(properties: Mapping[str, Any], above: Mapping[str, Property]) -> Iterator[tuple[str, Property]]:
    """The properties of KEPT that a dataset has; ``above``: those of the dataset that it inherits from."""
    for key in (*KEPT, "readonly"):
        raw = properties.get(key) or {}
        value, source = str(raw.get("value", "-")), raw.get("source") or {}
        inherited = str(source.get("type", "")).lower() != "local"
        if value != "-" and not (key in OF_ITSELF and inherited):
            of, kind = str(source.get("data", "-")), str(source.get("type", "NONE")).lower()
            if kind == "temporary" and value in OPPOSITE:  # of the mount: see ListedProperties.is_set
                value, kind = OPPOSITE[value], "unknown"
                if key in above and above[key].value != value:  # not inherited, then
                    kind = "local"
            yield key, Property(value, kind, "" if of == "-" else of)


class ListedProperties(msgspec.Struct, frozen=True):
    """The properties of one dataset in the JSON of ``zfs list``."""

    raw: Mapping[str, Any]

    def value(self, key: str) -> str:
        found = (self.raw.get(key) or {}).get("value", "")
        return "" if found in ("-", None) else str(found)

    def is_set(self, key: str) -> bool:
        """Whether a switch is on as it is set. Where ``zfs`` tells it of the mount instead (source ``TEMPORARY``), it
        is set the other way: a worker that starts after the pools were mounted has all of them read-only
        (``ProtectSystem=strict``)."""
        return (self.value(key) == "on") != (self.source(key) == "temporary")

    def count(self, key: str) -> int:
        found = (self.raw.get(key) or {}).get("value", "")
        return parse_whole(found)

    def find_origin(self, key: str) -> Mapping[str, Any]:
        """The JSON object that says where a property's value comes from.

        For a property that is not set, ZFS 2.3.9 prints the source of the property before it in the list.
        """
        found = self.raw.get(key) or {}
        return {} if found.get("value", "-") == "-" else found.get("source") or {}

    def source(self, key: str) -> str:
        return str(self.find_origin(key).get("type", "NONE")).lower()

    def inherited_from(self, key: str) -> str:
        """The dataset that an inherited property comes from; empty for one that is not inherited."""
        origin = self.find_origin(key)
        return str(origin.get("data", "")) if str(origin.get("type")).lower() == "inherited" else ""


def parse_datasets(listing: Mapping[str, Any]) -> Iterator[Dataset]:
    """The datasets of a ``zfs list -j -p`` object with at least COLUMNS, in its order: parents before children."""
    received: set[str] = set()  # datasets with a policy that came with the disks
    kept: dict[str, Mapping[str, Property]] = {}
    for name, raw in (listing.get("datasets") or {}).items():
        if system_datasets.is_record(str(name)):
            continue
        properties = ListedProperties(raw.get("properties") or {})
        policy_source = properties.source(user_properties.POLICY)
        if policy_source == "received":
            received.add(str(name))
        elif properties.inherited_from(user_properties.POLICY) in received:
            policy_source = "waiting"
        above = kept.get(str(name).rpartition("/")[0], {})
        found = parse_dataset(str(name), str(raw.get("type", "")).lower(), properties, policy_source, above)
        kept[found.name] = found.properties
        yield found


def parse_dataset(
    name: str, kind: str, properties: ListedProperties, policy_source: str, above: Mapping[str, Property]
) -> Dataset:
    """One dataset from its properties; ``policy_source`` depends on the datasets above it too.
    ``above``: what its parent keeps."""
    value, count = properties.value, properties.count
    encryption = value("encryption") or "off"
    return Dataset(
        name=name,
        guid=count("guid"),
        kind=kind,
        created=parse_time(count("creation")) or datetime.fromtimestamp(0, UTC),
        used=count("used"),
        available=count("available"),
        referenced=count("referenced"),
        used_by_snapshots=count("usedbysnapshots"),
        mounted=value("mounted") == "yes",
        mountpoint=value("mountpoint"),
        canmount=value("canmount") or "on",
        encryption=encryption,
        key_status=value("keystatus") if encryption != "off" else "",
        key_format=value("keyformat") if encryption != "off" else "",
        encryption_root=value("encryptionroot"),
        readonly=properties.is_set("readonly"),
        share=value(user_properties.SHARE),
        share_source=properties.source(user_properties.SHARE),
        policy=value(user_properties.POLICY),
        policy_source=policy_source,
        policy_from=properties.inherited_from(user_properties.POLICY),
        written=count("written"),
        snapshots_changed=count("snapshots_changed"),
        share_from=properties.inherited_from(user_properties.SHARE),
        backup=value(user_properties.BACKUP),
        backup_source=properties.source(user_properties.BACKUP),
        copy_of=value(user_properties.COPY_OF) if properties.source(user_properties.COPY_OF) == "local" else "",
        scratch=bool(value(user_properties.BENCHMARK)),
        access=value(user_properties.ACCESS),
        access_source=properties.source(user_properties.ACCESS),
        used_by_data=count("usedbydataset"),
        used_by_children=count("usedbychildren"),
        used_by_reservation=count("usedbyrefreservation"),
        origin=value("origin"),
        volsize=count("volsize"),
        properties=dict(kept_properties(properties.raw, above)),
    )


def with_kernel_state(pool: Pool) -> Pool:
    """The pool, SUSPENDED where the kernel says that it has stopped.

    ``zpool status`` 2.3.9 prints the state of the devices instead (DEGRADED, UNAVAIL or even ONLINE) while a
    pool rebuilds or was last used by another computer: it looks for these first (check_status), and only then
    whether the pool has stopped.
    """
    return replace(pool, state="SUSPENDED") if kstat.is_stopped(pool.name) else pool


def read_pools() -> tuple[Pool, ...]:
    """Every imported pool, now. Raises Failed (also when the module is missing)."""
    found = json_output.read_json(READ_POOLS, timeout=20, may_be_empty=True)
    return ashift.fill_ashift(map(with_kernel_state, parse_pools(found, disk_links.read_disk_links()))) if found else ()


def read_datasets(*of: str) -> tuple[Dataset, ...]:
    """Every file system and volume, now, parents before children; only those of the pools ``of`` where some are named.
    Raises Failed."""
    # Not --json-int: it cuts numbers at 2^63 - 1, and half of all guids are larger (2.3.9); two datasets would be one.
    argv = ["zfs", "list", "-j", "-p", "-t", "filesystem,volume", "-o", f"name,{COLUMNS},{','.join(KEPT)}"]
    argv += ["-r", "--", *of] if of else []
    return tuple(parse_datasets(json_output.read_json(argv, timeout=120, may_be_empty=True)))


def read_each_pool(report: Callable[[str], None]) -> tuple[Dataset, ...]:
    """Every dataset that can be listed: where they cannot all be, those of each pool. What fails goes to ``report``.

    For the start of the box, when nobody can look: one pool must not keep the others from being mounted and served.
    """
    try:
        return read_datasets()
    except Failed as failed:
        report(explain_error(failed))
        if isinstance(failed, command.CommandTimedOut):
            return ()  # it would hang for each
    found: list[Dataset] = []
    try:
        pools = command.run(["zpool", "list", "-H", "-o", "name"], timeout=20).stdout.splitlines()
    except Failed as failed:
        report(explain_error(failed))
        return ()
    for pool in pools:
        try:
            found += read_datasets(pool)
        except Failed as failed:
            report(f"{pool}: {explain_error(failed)}")
    return tuple(found)
