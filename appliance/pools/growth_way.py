"""A way to more room in a pool, and the facts that it depends on, as plain frozen values."""

from __future__ import annotations

from fractions import Fraction

import msgspec

from appliance.facts.box import Pool
from appliance.facts.cleanup import Cleanup
from appliance.pools.rebuild_estimate import PastWork, RebuildEstimate


class GrowthFacts(msgspec.Struct, frozen=True):
    """What the ways of one pool depend on. ``free``: the sizes of free disks in the box.
    ``places``: how many more disks it has room for, free ones counted, as far as is known."""

    pool: Pool
    used: int
    total: int
    free: tuple[int, ...] = ()
    places: int = 0
    new_disk: int = 0  # the size of a disk to be bought; 0: the usual one
    held: int = 0  # bytes that only snapshots hold
    cleanup: Cleanup = Cleanup()
    features_off: tuple[str, ...] = ()
    lacks_expansion: bool = False  # also where an upgrade would leave that feature off
    rewrites: bool = False  # whether ZFS here has ``zfs rewrite``
    rotational: bool = True
    past: tuple[PastWork, ...] = ()


class Way(msgspec.Struct, frozen=True):
    """One way. ``reason``: why this pool cannot take it, empty where it can.
    ``hindrance``: what has to be seen to first."""

    key: str  # clean, expand, group, replace, pool
    title: str
    text: str
    reason: str = ""
    hindrance: str = ""
    gain: int = 0  # bytes for files that it adds
    total: int = 0  # bytes for files then, of this pool and a second one together
    freed: int = 0  # bytes that are in use now and would not be
    least: bool = False  # more may be freed than could be measured
    share: Fraction = Fraction(1)  # what files written afterwards take, compared with now
    rewritten: int = 0  # bytes at most that rewriting old files gives back
    disks: int = 0  # that it needs
    bought: tuple[int, ...] = ()  # sizes of those that are not in the box
    rebuilds: int = 0
    estimate: RebuildEstimate | None = None  # of each rebuild, or of the expansion
    meanwhile: str = ""
    protection: str = ""
    undo: str = ""
    targets: tuple[int, ...] = ()  # the guids of the group or of the disks that it changes
    notes: tuple[str, ...] = ()

    @property
    def is_possible(self) -> bool:
        return not self.reason

    @property
    def more(self) -> int:
        """Bytes of room that it gives at once: added or freed."""
        return self.gain + self.freed

    @property
    def seconds(self) -> int:
        """How long its rebuilds take one after the other."""
        return self.rebuilds * self.estimate.seconds if self.estimate else 0


class OldBlocks(msgspec.Struct, frozen=True):
    """Blocks that a raidz has from before it was expanded. ``gives``: bytes at most that rewriting them gives back."""

    gives: int
    text: str
