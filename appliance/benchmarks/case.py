"""One case of a sweep: the workload, what it runs on, and the settings. Pure values; ``run_case.py`` runs it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from appliance import names
from appliance.errors import Reason, Refused
from appliance.formatting import binary_text, link_label, size_text
from appliance.layout.geometry import KIB, LEAST_DISKS, MIB
from appliance.message import Message
from appliance.shares import nfs_export_rules
from appliance.strict_struct import StrictStruct

Layout = Literal["stripe", "mirror", "raidz1", "raidz2", "raidz3"]
Workload = Literal[
    "seq-write",
    "seq-read",
    "dd-write",
    "dd-read",
    "random-read",
    "random-write",
    "mixed",
    "sync-write",
    "small-files",
    "resilver",
    "disk-start",
    "disk-middle",
    "disk-end",
    "disk-latency",
    "bonnie",
    "net-send",
    "net-receive",
]
Protocol = Literal["", "smb", "nfs", "afp"]
Where = Literal["scratch", "dataset", "disk", "network"]
LARGEST, LEAST = 16 * 2**40, MIB
RECORDS = tuple(2**power for power in range(9, 25))  # recordsize, zfsprops(7): a power of two from 512 bytes to 16 MiB
LEAST_MEMORY, MOST_MEMORY = 64 * MIB, 512 * MIB  # below, ZFS ignores zfs_arc_max; above, writes have enough room
LEAST_LIMITED = 2 * LEAST_MEMORY  # bytes of data, from which on memory can be limited
NETWORK = ("net-send", "net-receive")
VOLUME_BLOCKS = tuple(2**power for power in range(9, 18))  # volblocksize, zfsprops(7): 512 bytes to 128 KiB
SAMPLED = ("seq-write", "seq-read", "dd-read", "random-read")  # workloads that can use a sample of files
FROM_MEMORY = ("seq-write",)  # of these, the ones that write a part of the sample repeatedly from memory
ON_VOLUMES = ("seq-write", "seq-read", "random-read", "random-write", "mixed", "sync-write")
OVER_AFP = ("seq-write", "seq-read", "small-files")  # workloads that Larder's own AFP client can run
PER_DISK = ("disk-start", "disk-middle", "disk-end", "disk-latency")
WAYS: dict[str, str] = {
    "": Message("in the box itself"),
    "smb": Message("over SMB"),
    "nfs": Message("over NFS"),
    "afp": Message("over AFP"),
}
FILLED = (25, 50)  # per cent of the pool in use before a disk is rebuilt


class SharedSettings(StrictStruct):
    """The settings that all cases of a sweep share.

    ``size`` is the data of one run in bytes, ``seconds`` the length of a run with random access. Generated data shrinks
    by ``compressible`` per cent; with ``zeros`` dd writes zeros. ``aside`` keeps reads out of the ARC
    (primarycache=metadata), ``limited`` limits the ARC during the case (``arc_limit.py``). ``warmups`` are runs before
    those that count. ``sample`` is a dataset whose files replace generated data, ``sample_guid`` its guid. ``peer`` is
    a computer that runs ``iperf3 -s``.
    """

    where: Where
    repeats: int = 3
    warmups: int = 0
    size: int = 1024 * MIB
    seconds: int = 30
    writers: int = 1
    compressible: int = 0
    zeros: bool = False
    aside: bool = False
    limited: bool = False
    gentle: bool = False
    peer: str = ""
    sample: str = ""
    sample_guid: int = 0


class Case(SharedSettings):
    """One benchmark case.

    ``where``: on a scratch pool made of ``disks``, in a scratch dataset of ``pool``, reading one raw disk, or over the
    network to ``peer``. With a ``volblocksize`` in bytes, a zvol replaces the file. ``protocol`` is the share protocol
    that reaches the folder over the loopback; empty for none.
    """

    workload: Workload
    disks: tuple[str, ...] = ()
    pool: str = ""
    guid: int = 0
    layout: Layout = "stripe"
    ashift: Literal[9, 12, 13] = 12
    partition: int = 0
    recordsize: int = 128 * KIB
    compression: Literal["off", "lz4", "zstd"] = "off"
    dedup: bool = False
    sync: Literal["standard", "always", "disabled"] = "standard"
    log: str = ""
    cache: str = ""
    fill: int = 0
    protocol: Protocol = ""
    volblocksize: int = 0

    def __post_init__(self) -> None:
        for path in self.all_disks:
            names.by_id(path, field="disks")
        if self.where == "dataset":
            names.existing_pool(self.pool)
        if self.sample:
            names.existing_dataset(self.sample, field="sample")
        if self.where == "network" and "/" in nfs_export_rules.check_client(self.peer, field="peer"):
            raise Refused(Reason("peer-is-network", "Enter one computer, not a network.", field="peer"))
        whole = {
            "repeats": (self.repeats, 1, 9),
            "warmups": (self.warmups, 0, 9),
            "size": (self.size, LEAST, LARGEST),
            "seconds": (self.seconds, 1, 3600),
            "writers": (self.writers, 1, 64),
            "compressible": (self.compressible, 0, 95),
            "fill": (self.fill, 0, 80),
            "partition": (self.partition, 0, LARGEST),
            "guid": (self.guid, 0, 2**64 - 1),
            "sample_guid": (self.sample_guid, 0, 2**64 - 1),
        }
        for field, (value, least, most) in whole.items():
            if not least <= value <= most:
                low, high = (binary_text(least), binary_text(most)) if most == LARGEST else (str(least), str(most))
                raise Refused(
                    Reason(
                        "case-value-out-of-range",
                        "The {setting} of a benchmark case must be between {least} and {most}.",
                        field=field,
                        setting=field,
                        least=low,
                        most=high,
                    )
                )
        if self.recordsize not in RECORDS:
            raise Refused(
                Reason(
                    "record-size-invalid",
                    "A record size must be a power of two from 512 bytes to 16 MiB.",
                    field="recordsize",
                )
            )
        if self.volblocksize and self.volblocksize not in VOLUME_BLOCKS:
            raise Refused(
                Reason(
                    "volume-block-size-invalid",
                    "The block size of a volume must be a power of two from 512 bytes to 128 KiB.",
                    field="volblocksizes",
                )
            )
        if self.size % MIB or self.partition % MIB:
            raise Refused(Reason("size-not-whole-mib", "Sizes must be whole MiB.", field="size"))
        for reason in self.contradictions():
            raise Refused(reason.with_field("workload"))

    def contradictions(self) -> Iterator[Reason]:
        """Reasons why these settings cannot be tested together on any box."""
        if (self.where == "disk") != (self.workload in PER_DISK):
            yield Reason("workload-not-for-disk", "A single disk is only read. Every other workload needs a pool.")
        if (self.where == "network") != (self.workload in NETWORK):
            yield Reason("network-apart", "The network is tested on its own, to another computer.")
        if self.where == "disk" and len(self.disks) != 1:
            yield Reason("disk-not-single", "Choose one disk: each disk is tested on its own.")
        if self.where in {"dataset", "network"} and (self.disks or self.log or self.cache):
            yield Reason(
                "disks-not-needed", "A test of an existing pool or of the network takes no disks. Choose none."
            )
        if self.where == "scratch" and len(self.disks) < LEAST_DISKS[self.layout]:
            yield Reason(
                "disks-too-few-for-layout",
                "{layout} needs at least {count} disks.",
                layout=self.layout,
                count=LEAST_DISKS[self.layout],
            )
        if len(set(self.all_disks)) < len(self.all_disks):
            yield Reason("disk-twice", "A disk was chosen twice.")
        if self.workload == "resilver" and (self.where != "scratch" or self.layout == "stripe" or not self.fill):
            yield Reason(
                "rebuild-without-redundancy", "A rebuild needs a scratch pool with redundancy that is partly filled."
            )
        if self.cache and self.aside:
            yield Reason(
                "cache-without-memory", "A cache device is filled from memory. Do not keep reads out of memory."
            )
        if self.limited and (not self.makes_folder or self.aside or self.size < LEAST_LIMITED):
            yield Reason(
                "memory-limit-useless",
                "Memory can be limited only for a pool or a folder, with at least {size} of data, and only "
                "if reads use memory.",
                size=binary_text(LEAST_LIMITED),
            )
        if self.protocol and (not self.makes_folder or self.workload == "resilver"):
            yield Reason(
                "protocol-without-folder", "Only files in a folder can be written and read over a share protocol."
            )
        if self.protocol == "afp" and self.workload not in OVER_AFP:
            yield Reason(
                "workload-not-over-afp",
                "Over AFP, only large files and many small files can be tested. Leave out the other workloads.",
            )
        if self.protocol and self.warmups:
            yield Reason(
                "protocol-with-warm-up",
                "Over a share protocol every run starts with empty caches. Set the warm-up runs to 0.",
            )
        if self.volblocksize and (not self.makes_folder or self.protocol or self.workload not in ON_VOLUMES):
            yield Reason(
                "workload-not-for-volume",
                "A volume is read and written like a disk. Leave out the workloads and protocols that need files.",
            )
        if self.zeros and not self.workload.startswith("dd-"):
            yield Reason("zeros-without-dd", "Only dd can write zeros.")
        if self.sample:
            yield from self.against_sample()

    def against_sample(self) -> Iterator[Reason]:
        """Reasons why a sample of files cannot be used with these settings."""
        if self.where != "scratch" or self.protocol or self.volblocksize:
            yield Reason(
                "sample-outside-scratch-pool",
                "A sample of your files can be written to a scratch pool only, not to a volume or over a protocol.",
            )
        if self.workload not in SAMPLED:
            yield Reason(
                "workload-not-for-sample",
                "With a sample of your files, only large files and small reads can be tested. Leave out the "
                "other workloads.",
            )
        if self.compressible:
            yield Reason("sample-and-compressible", "Use either a sample of your files or generated data.")
        if self.dedup and self.workload in FROM_MEMORY:
            yield Reason(
                "sample-repeats-with-dedup", "A written sample repeats, so with dedup only reads can be tested."
            )

    @property
    def makes_folder(self) -> bool:
        """Whether a scratch pool or folder is made for the case."""
        return self.where in {"scratch", "dataset"}

    @property
    def all_disks(self) -> tuple[str, ...]:
        """Every disk that the case takes or reads."""
        return (*self.disks, *filter(None, (self.log, self.cache)))

    @property
    def vdev_disks(self) -> list[tuple[str, ...]]:
        """The disks of each vdev. Four or more mirrored disks, if even in number, make pairs."""
        count = len(self.disks)
        if self.layout == "mirror" and count >= 4 and count % 2 == 0:
            return [self.disks[at : at + 2] for at in range(0, count, 2)]
        return [self.disks]

    @property
    def settings(self) -> dict[str, str]:
        """The settings in words, by name. Two cases of a sweep differ in one of these or in their workload."""
        if self.where == "disk":
            return {Message("Disk"): link_label(self.disks[0].rsplit("/", 1)[-1])}
        if self.where == "network":
            return {Message("Other computer"): self.peer}
        found: dict[str, str] = {}
        none = Message("none")
        if self.where == "scratch":
            parts = Message("partitions of {size}", size=size_text(self.partition))
            found[Message("Layout")] = layout_text(self.layout, len(self.disks))
            found[Message("Sectors")] = f"ashift {self.ashift}"
            found[Message("Uses")] = parts if self.partition else Message("whole disks")
            found[Message("Log device")] = link_label(self.log.rsplit("/", 1)[-1]) if self.log else none
            found[Message("Cache device")] = link_label(self.cache.rsplit("/", 1)[-1]) if self.cache else none
        else:
            found[Message("Pool")] = self.pool
        found[Message("Record size")] = none if self.volblocksize else binary_text(self.recordsize)
        found[Message("Volume blocks")] = binary_text(self.volblocksize) if self.volblocksize else none
        found[Message("Compression")] = self.compression
        if self.sample:
            found[Message("Data")] = Message("files of {folder}", folder=self.sample)
        found[Message("Dedup")] = Message("on") if self.dedup else Message("off")
        found[Message("Sync")] = self.sync
        found[Message("Way in")] = WAYS[self.protocol]
        if self.fill:
            found[Message("Filled to")] = f"{self.fill} %"
        return found


def memory_for(size: int) -> int:
    """The ARC limit in bytes for ``size`` bytes of data: half of it, within sensible bounds."""
    return min(max(size // 2, LEAST_MEMORY), MOST_MEMORY)


def layout_text(layout: str, disks: int) -> str:
    """The layout in words: ``raidz2 of 5 disks``. Four or more mirrored disks are pairs."""
    if layout == "mirror" and disks >= 4 and disks % 2 == 0:
        return Message("{count} mirrors of 2 disks", count=disks // 2)
    if disks == 1:
        return Message("{layout} of 1 disk", layout=layout)
    return Message("{layout} of {count} disks", layout=layout, count=disks)
