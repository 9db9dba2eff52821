"""What deleting snapshots and old copies would free in a pool, as a plain frozen value."""

from __future__ import annotations

import msgspec


class Cleanup(msgspec.Struct, frozen=True):
    """Bytes. ``freed``: what the topmost dataset uses less once all of it is done, which is less than the sum of the
    others where a reservation keeps some of it."""

    freed: int = 0
    snapshots: int = 0  # held only by snapshots that can be destroyed, without those of old copies
    copies: int = 0  # of copies that no backup uses any more, with their snapshots
    reserved: int = 0  # reserved once more because of the snapshots
    reserving: tuple[str, ...] = ()  # the datasets that this is reserved for
    staying: int = 0  # snapshots that are protected or have a clone
    least: bool = False  # ZFS did not measure everything: more may be freed

    @property
    def withheld(self) -> int:
        """Bytes that are freed in datasets but stay reserved for them."""
        return max(self.snapshots + self.copies + self.reserved - self.freed, 0)
