"""Make what datasets bring along safe, one by one: one that ZFS does not change keeps no other from being made safe.

What stays as it was is not mounted, and its pool is not imported at the next start:
``zfs mount -a`` would follow it then.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from appliance import command
from appliance.errors import Failed
from appliance.formatting import names_text
from appliance.message import Message
from appliance.operation import Work
from appliance.zfs import kstat
from appliance.zfs import mount as zfs_mount
from appliance.zfs.mount import Carried

NAMED = 5


class Unsafe(msgspec.Struct):
    """What the steps of an operation tell each other: the datasets that could not be changed, and why;
    ``left`` are those of them, and others, that are found to be unsafe afterwards."""

    failures: dict[str, str] = msgspec.field(default_factory=dict)
    left: list[str] = msgspec.field(default_factory=list)

    def run_each(self, commands: Iterable[list[str]], work: Work) -> None:
        """Run commands that end with the name of a dataset, and note each.
        Raises Failed where the pool has stopped or ZFS does not answer."""
        for argv in commands:
            name = argv[-1]
            try:
                command.run(argv, timeout=zfs_mount.SECONDS)
            except Failed as failed:
                if kstat.fails_for_all(failed, name):
                    raise
                self.failures[name] = failed.said or failed.what
                work.note(Message("{name} could not be changed: {why}", name=name, why=self.failures[name]))
            else:
                work.note(" ".join(argv))

    def make_safe(self, pool: str, work: Work, *, former: str, everything: bool) -> None:
        """Keep the folders of an imported pool below its own, and let nothing of it share itself or run as root.

        ``former``: what the pool was called; ``everything``: move what lies elsewhere too.
        Raises Failed as ``run_each``.
        """
        # First what would share itself: ZFS mounts such a folder as soon as its place is changed (libzfs_changelist.c).
        self.run_each(zfs_mount.safety_commands(zfs_mount.foreign_properties(pool), pool), work)
        found = zfs_mount.foreign_properties(pool)
        moves = zfs_mount.move_commands(found, pool, former=former, everything=everything)
        # Where one shares itself still, neither its own place nor that of one above it is
        # changed in a way that mounts it.
        loud = [f"{one.name}/" for one in found if lends_rights(one)]
        self.run_each(
            [argv for argv in moves if "-u" in argv or not any(name.startswith(f"{argv[-1]}/") for name in loud)], work
        )
        self.run_each(zfs_mount.neutralise_properties(zfs_mount.foreign_properties(pool), pool), work)

    def leave_out(
        self, found: Sequence[Carried], pool: str, work: Work, also: frozenset[str] = frozenset()
    ) -> list[Carried]:
        """Those of ``found`` that may be mounted; the others are noted, and in ``left`` where they are the cause."""
        self.left += [argv[-1] for argv in zfs_mount.neutralise_properties(found, pool, also)]
        for one in found:
            if lends_rights(one) and one.mounts_itself and zfs_mount.is_nameable(one.name):
                work.note(Message("{name} was left unmounted: it could not be made safe", name=one.name))
        return [one for one in found if not lends_rights(one)]

    def unmoved(self, found: Iterable[Carried]) -> list[str]:
        """Those of ``found`` that could not be moved below the pool's own folder: they are safe, and stay unmounted."""
        return [one.name for one in found if one.name in self.failures.keys() - self.left and not one.mounts_itself]

    def refuse_left(self, pool: str) -> None:
        """Raise Failed with the names of what is unsafe still, if anything is."""
        if not self.left:
            return
        why = next((self.failures[name] for name in self.left if name in self.failures), "")
        raise Failed(
            Message(
                "Not everything in {pool} could be made safe, so it is not imported at the next start ({names})",
                pool=pool,
                names=names_text(self.left, NAMED),
            ),
            why,
        )


def lends_rights(one: Carried) -> bool:
    """Whether a folder would export itself or lend root's rights, by its own settings or those that it inherits."""
    return one.kind == "filesystem" and any(
        one.values.get(key, "") not in {value, "", "-"} for key, value in zfs_mount.SAFE.items()
    )
