"""What one case is measured on, by its names: the pool or dataset that is made, where it is seen, whose counters tell."""

from __future__ import annotations

from dataclasses import dataclass

from appliance.benchmarks import loopback_mount, scratch, scratch_claim
from appliance.benchmarks.case import Case
from appliance.benchmarks.scratch_claim import Claim
from appliance.zfs import status


@dataclass(frozen=True)
class BenchmarkTarget:
    """Of one case; ``token`` names what is made for it."""

    token: str
    case: Case

    @property
    def name(self) -> str:
        """Of the scratch pool or dataset."""
        return scratch_claim.scratch_name(self.token)

    @property
    def pool(self) -> str:
        """The name of the pool in which it happens."""
        return self.case.pool or self.name

    @property
    def place(self) -> str:
        """The scratch folder in the box itself, or the device of the scratch volume."""
        if self.case.volblocksize:
            return scratch.volume_device(self.case, self.token)
        return str(scratch.scratch_folder(self.token))

    @property
    def folder(self) -> str:
        """Where a run writes and reads: what a client sees, where it mounts it; a volume's device."""
        return (
            str(loopback_mount.client_mountpoint(self.token))
            if self.case.protocol in loopback_mount.MOUNTED
            else self.place
        )

    @property
    def claim(self) -> Claim:
        """What is noted before any of it is made."""
        return Claim(token=self.token, disks=self.case.all_disks, pool=self.case.pool, protocol=self.case.protocol)

    @property
    def sync_command(self) -> list[str]:
        """The command that ends when everything written is on the pool's disks."""
        return ["zpool", "sync", "--", self.pool]

    def device_paths(self) -> list[str]:
        """Paths of those whose counters tell what is really moved; of a pool that is in use, what it lies on now."""
        if self.case.where != "dataset":
            return list(self.case.all_disks)
        return scratch.device_paths(next((one for one in status.read_pools() if one.guid == self.case.guid), None))
