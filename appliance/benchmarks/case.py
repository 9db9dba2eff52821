"""One case of a sweep: what is measured on what, with which settings. Pure values; ``run_case.py`` carries it out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from appliance import names
from appliance.formatting import link_label, size_text
from appliance.layout.geometry import KIB, LEAST_DISKS, MIB
from appliance.shares import nfs_clients
from appliance.strict_struct import StrictStruct

Layout = Literal["stripe", "mirror", "raidz1", "raidz2", "raidz3"]
Workload = Literal[
    "seq-write", "seq-read", "dd-write", "dd-read", "random-read", "random-write", "mixed", "sync-write", "small-files",
    "resilver", "disk-start", "disk-middle", "disk-end", "disk-latency", "bonnie", "net-send", "net-receive",
]  # fmt: skip
Protocol = Literal["", "smb", "nfs", "afp"]
Where = Literal["scratch", "dataset", "disk", "network"]
LARGEST, LEAST = 16 * 2**40, MIB
RECORDS = tuple(2**power for power in range(9, 25))  # recordsize, zfsprops(7): a power of two from 512 bytes to 16 MiB
LEAST_MEMORY, MOST_MEMORY = 64 * MIB, 512 * MIB  # zfs_arc_max is not taken below; above, writes have room enough
LEAST_LIMITED = 2 * LEAST_MEMORY  # of data, for which memory can be limited
NETWORK = ("net-send", "net-receive")
VOLUME_BLOCKS = tuple(2**power for power in range(9, 18))  # volblocksize, zfsprops(7): 512 bytes to 128 KiB
SAMPLED = ("seq-write", "seq-read", "dd-read", "random-read")  # what a sample of files can be measured with
FROM_MEMORY = ("seq-write",)  # of these, what is written while it is measured: a part of the sample, again and again
ON_VOLUMES = ("seq-write", "seq-read", "random-read", "random-write", "mixed", "sync-write")
OVER_AFP = ("seq-write", "seq-read", "small-files")  # what Larder's own client of AFP does
PER_DISK = ("disk-start", "disk-middle", "disk-end", "disk-latency")
WAYS = {"": "in the box itself", "smb": "over SMB", "nfs": "over NFS", "afp": "over AFP"}
FILLED = (25, 50)  # what a pool is filled to before a disk of it is rebuilt; per cent


class Common(StrictStruct):
    """What every case of a sweep has alike.

    ``size`` is what one run writes or reads, in bytes; ``seconds`` is how long a run of random access lasts. Data can be
    made smaller by ``compressible`` per cent; ``zeros`` (dd alone) is data that holds nothing. ``aside`` keeps ZFS's
    memory out of the way of reads (primarycache=metadata), ``limited`` holds it small while the case lasts
    (``memory.py``). ``warmups`` are runs before those that count. ``sample`` is a dataset, with its guid, whose files'
    contents take the place of made-up data. ``peer`` is a computer on which ``iperf3 -s`` runs.
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


class Case(Common):
    """``where``: on a scratch pool made of ``disks``, in a scratch dataset of ``pool``, reading one disk as it is, or over
    the network to ``peer``. With a ``volblocksize`` in bytes a volume (zvol) takes the place of the file. ``protocol`` is
    the way to the folder, over the box's own loopback; empty for none.
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
        for path in self.every:
            names.by_id(path, field="disks")
        if self.where == "dataset":
            names.existing_pool(self.pool)
        if self.sample:
            names.existing_dataset(self.sample, field="sample")
        if self.where == "network" and "/" in nfs_clients.client(self.peer, field="peer"):
            raise names.refuse("Name one computer, not a network.", "peer")
        whole = {
            "repeats": (self.repeats, 1, 9), "warmups": (self.warmups, 0, 9), "size": (self.size, LEAST, LARGEST),
            "seconds": (self.seconds, 1, 3600), "writers": (self.writers, 1, 64), "compressible": (self.compressible, 0, 95),
            "fill": (self.fill, 0, 80), "partition": (self.partition, 0, LARGEST), "guid": (self.guid, 0, 2**64 - 1),
            "sample_guid": (self.sample_guid, 0, 2**64 - 1),
        }  # fmt: skip
        for field, (value, least, most) in whole.items():
            if not least <= value <= most:
                said = f"{size_text(least)} and {size_text(most)}" if most == LARGEST else f"{least} and {most}"
                raise names.refuse(f"The {field} of a case lies between {said}.", field)
        if self.recordsize not in RECORDS:
            raise names.refuse("A record size is a power of two from 512 bytes to 16 MiB.", "recordsize")
        if self.volblocksize and self.volblocksize not in VOLUME_BLOCKS:
            raise names.refuse("A volume's block size is a power of two from 512 bytes to 128 KiB.", "volblocksizes")
        if self.size % MIB or self.partition % MIB:
            raise names.refuse("Sizes are whole MiB.", "size")
        for reason in self.contradictions():
            raise names.refuse(reason, "workload")

    def contradictions(self) -> Iterator[str]:
        """What cannot be measured at all, whatever the box is like."""
        if (self.where == "disk") != (self.workload in PER_DISK):
            yield "A single disk is read as it is; everything else is measured in a pool."
        if (self.where == "network") != (self.workload in NETWORK):
            yield "The network is measured by itself, to another computer."
        if self.where == "disk" and len(self.disks) != 1:
            yield "A single disk is one disk."
        if self.where in {"dataset", "network"} and (self.disks or self.log or self.cache):
            yield "What is measured in an existing pool or over the network takes no disks of its own."
        if self.where == "scratch" and len(self.disks) < LEAST_DISKS[self.layout]:
            yield f"{self.layout} needs at least {LEAST_DISKS[self.layout]} disks."
        if len(set(self.every)) < len(self.every):
            yield "A disk was chosen twice."
        if self.workload == "resilver" and (self.where != "scratch" or self.layout == "stripe" or not self.fill):
            yield "Rebuilding is measured on a scratch pool with redundancy, filled to some part."
        if self.cache and self.aside:
            yield "A cache device is filled from memory. Do not keep memory out of reads."
        if self.limited and (not self.makes or self.aside or self.size < LEAST_LIMITED):
            yield f"Memory is limited for a pool or a folder, from {size_text(LEAST_LIMITED)} of data on, and not where it is kept out of reads anyway."
        if self.protocol and (not self.makes or self.workload == "resilver"):
            yield "Only what is written and read in a folder can go through a protocol."
        if self.protocol == "afp" and self.workload not in OVER_AFP:
            yield "Over AFP large files are written and read, and many small ones written. Leave out the rest."
        if self.protocol and self.warmups:
            yield "Through a protocol every run begins anew. Nothing can be warmed up."
        if self.volblocksize and (not self.makes or self.protocol or self.workload not in ON_VOLUMES):
            yield "A volume is written and read as a disk, not as a folder of files."
        if self.zeros and not self.workload.startswith("dd-"):
            yield "Only dd writes zeros."
        if self.sample:
            yield from self.against_sample()

    def against_sample(self) -> Iterator[str]:
        """What cannot be measured with files of one's own."""
        if self.where != "scratch" or self.protocol or self.volblocksize:
            yield "A sample of your files is written to a scratch pool only, as a file there."
        if self.workload not in SAMPLED:
            yield "With a sample of your files, large files are written and read, and small pieces of them read. Leave out the rest."
        if self.compressible:
            yield "Data is either a sample of your files or made up."
        if self.dedup and self.workload in FROM_MEMORY:
            yield "What is written of a sample repeats, so with dedup only reading can be measured."

    @property
    def makes(self) -> bool:
        """Whether a pool or a folder is made for it."""
        return self.where in {"scratch", "dataset"}

    @property
    def every(self) -> tuple[str, ...]:
        """Every disk it takes or reads."""
        return (*self.disks, *filter(None, (self.log, self.cache)))

    @property
    def groups(self) -> list[tuple[str, ...]]:
        """The disks by vdev: an even number of mirrored disks from four on makes pairs, as one would build it."""
        count = len(self.disks)
        if self.layout == "mirror" and count >= 4 and count % 2 == 0:
            return [self.disks[at : at + 2] for at in range(0, count, 2)]
        return [self.disks]

    @property
    def settings(self) -> dict[str, str]:
        """What sets it apart, in words; two cases of one sweep differ in some of these or in their workload."""
        if self.where == "disk":
            return {"Disk": link_label(self.disks[0].rsplit("/", 1)[-1])}
        if self.where == "network":
            return {"Other computer": self.peer}
        found = {}
        if self.where == "scratch":
            found["Layout"] = layout_text(self.layout, len(self.disks))
            found["Sectors"] = f"ashift {self.ashift}"
            found["Uses"] = f"partitions of {size_text(self.partition)}" if self.partition else "whole disks"
            found["Log device"] = link_label(self.log.rsplit("/", 1)[-1]) if self.log else "none"
            found["Cache device"] = link_label(self.cache.rsplit("/", 1)[-1]) if self.cache else "none"
        else:
            found["Pool"] = self.pool
        found["Record size"] = "none" if self.volblocksize else size_text(self.recordsize)
        found["Volume blocks"] = size_text(self.volblocksize) if self.volblocksize else "none"
        found["Compression"] = self.compression
        if self.sample:
            found["Data"] = f"files of {self.sample}"
        found["Dedup"] = "on" if self.dedup else "off"
        found["Sync"] = self.sync
        found["Way in"] = WAYS[self.protocol]
        if self.fill:
            found["Filled to"] = f"{self.fill} %"
        return found


def memory_for(size: int) -> int:
    """Bytes that ZFS's memory is limited to for so much data: half of it, within what is sensible."""
    return min(max(size // 2, LEAST_MEMORY), MOST_MEMORY)


def layout_text(layout: str, disks: int) -> str:
    """``raidz2 of 5 disks``; mirrors of four and more are pairs."""
    if layout == "mirror" and disks >= 4 and disks % 2 == 0:
        return f"{disks // 2} mirrors of 2 disks"
    return f"{layout} of {disks} disk{'s' if disks != 1 else ''}"
