"""What one case runs on: the scratch pool or dataset, where it is mounted, and its devices."""

from __future__ import annotations

import msgspec

from appliance.benchmarks import loopback_mount, scratch, scratch_claim
from appliance.benchmarks.case import Case
from appliance.benchmarks.scratch_claim import Claim
from appliance.zfs import status


class BenchmarkTarget(msgspec.Struct, frozen=True):
    """The target of one case; ``token`` is part of the names of what is made for it."""

    token: str
    case: Case

    @property
    def name(self) -> str:
        """Name of the scratch pool or dataset."""
        return scratch_claim.scratch_name(self.token)

    @property
    def pool(self) -> str:
        """Name of the pool that the case writes to."""
        return self.case.pool or self.name

    @property
    def place(self) -> str:
        """Path of the scratch folder, or of the device of the scratch volume."""
        if self.case.volblocksize:
            return scratch.volume_device(self.case, self.token)
        return str(scratch.scratch_folder(self.token))

    @property
    def folder(self) -> str:
        """Path where a run reads and writes: where a client mounted the folder, otherwise ``place``."""
        return (
            str(loopback_mount.client_mountpoint(self.token))
            if self.case.protocol in loopback_mount.MOUNTED
            else self.place
        )

    @property
    def claim(self) -> Claim:
        """The claim that is stored before anything is made."""
        return Claim(token=self.token, disks=self.case.all_disks, pool=self.case.pool, protocol=self.case.protocol)

    @property
    def sync_command(self) -> list[str]:
        """The command that returns once all written data is on the disks."""
        return ["zpool", "sync", "--", self.pool]

    def device_paths(self) -> list[str]:
        """Paths of the devices whose I/O counts: the case's disks, or those of the pool in use."""
        if self.case.where != "dataset":
            return list(self.case.all_disks)
        return scratch.device_paths(next((one for one in status.read_pools() if one.guid == self.case.guid), None))
