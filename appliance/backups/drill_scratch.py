"""Where a drill restores to: a folder at the top of a pool, known by ``larder:drill``, and
removed when the drill has ended.

Everything in it carries that property too, from the first byte on.
So after any interruption it is known what a drill has made, and nothing else is ever removed with it.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from appliance import command, names
from appliance.backups import copies, staging, unchanged
from appliance.backups.staging import Restored
from appliance.errors import Failed, Reason, Refused
from appliance.facts import user_properties
from appliance.facts.box import Facts
from appliance.facts.datasets import Dataset
from appliance.facts.pool_reasons import stopped_pool
from appliance.formatting import size_text
from appliance.message import Message
from appliance.operation import Operation, Plan, Step, Work, never
from appliance.snapshots.take import dataset_missing
from appliance.zfs import list_snapshots

SPARE = 2**20  # bytes that even an empty folder needs
KEPT_FREE = 10  # percent of a pool, so that nobody who writes meanwhile finds it full


class Rehearsed(Restored, frozen=True):
    """A dataset that a drill restores. ``key``: of the backup."""

    key: str

    @property
    def properties(self) -> dict[str, str]:
        return {**super().properties, **made_by(self.key)}


def made_by(key: str) -> dict[str, str]:
    """What is set on each dataset that a drill of the backup ``key`` restores: nobody is to write there."""
    return {"readonly": "on", user_properties.DRILL: key}


def scratch_of(pool: str, key: str) -> str:
    return f"{pool}/drill-{key}"


def key_of(name: str) -> str:
    """The key of the backup whose drill restores to this dataset; empty where it has another name."""
    found = names.DRILL_FOLDER.fullmatch(name.partition("/")[2])
    return found[1] if found else ""


def is_scratch(dataset: Dataset) -> bool:
    """Whether a drill has made it to restore to."""
    noted = dataset.properties.get(user_properties.DRILL)
    return noted is not None and noted.source == "local" and bool(noted.value) and noted.value == key_of(dataset.name)


def create_argv(name: str, limit: int) -> list[str]:
    """The command that makes it, with room for ``limit`` bytes: what another box sends may be more than it said."""
    return staging.create_argv(name, {user_properties.DRILL: key_of(name), "quota": str(limit)})


def room(pool: Dataset | None, scratch: Dataset | None) -> int:
    """The bytes that a drill may use in a pool, given its top folder; what an earlier drill
    left there is free again."""
    if pool is None:
        return 0
    return max(0, pool.available + (scratch.used if scratch else 0) - (pool.used + pool.available) * KEPT_FREE // 100)


def remove_scratch(name: str, work: Work) -> None:
    """Destroy what a drill has restored, if it is there. Raises Failed where anything else lies in it."""
    found = unchanged.read_below(name, ("guid", user_properties.DRILL, copies.RESUME))
    if not found:
        return
    key = key_of(name)
    for one, values in found.items():
        # An interrupted first receive may not have its properties yet, and has no snapshot.
        is_half_made = one != name and copies.RESUME in values and not any(list_snapshots.list_snapshots([one]))
        if not key or (values.get(user_properties.DRILL) != key and not is_half_made):
            raise Failed(
                Message("{name} was not removed", name=name),
                Message("No drill of this backup has made {one}.", one=one),
            )
    command.run(["zfs", "destroy", "-r", "--", name], timeout=staging.SECONDS_TO_DESTROY)
    work.note(Message("{name} was removed", name=name))


def discard_part(name: str, work: Work) -> None:
    """Destroy what a drill was receiving, with whatever the other box has sent along below it, which no drill has
    marked. The caller has begun to receive it in a scratch of its own, so it is nobody else's."""
    with staging.noted_if_it_stays(name, work):
        if copies.read_values(name, ("guid",)):
            command.run(["zfs", "destroy", "-r", "--", name], timeout=staging.SECONDS_TO_DESTROY)


class RemoveDrill(Operation, tag="remove-drill"):
    """Remove what an interrupted drill has left."""

    needs_proof = never  # it is a second copy of a copy, and nothing else can be named

    scratch: str
    guid: int

    def __post_init__(self) -> None:
        names.existing_dataset(self.scratch, field="scratch")
        if not key_of(self.scratch):
            raise Refused(not_of_drill(self.scratch))

    @property
    def title(self) -> str:
        return Message("Remove the drill's folder {scratch}", scratch=self.scratch)

    @property
    def subject(self) -> str:
        return self.scratch

    def locks(self) -> tuple[str, ...]:
        return (f"the backup {key_of(self.scratch)}", self.scratch.partition("/")[0])

    def files_taken(self) -> tuple[str, ...]:
        return (self.scratch,)

    def lasts(self) -> bool:
        return True

    def check(self, facts: Facts) -> Iterator[Reason]:
        dataset = facts.dataset(self.scratch)
        if dataset is None or dataset.guid != self.guid:
            yield dataset_missing(self.scratch)
        elif not is_scratch(dataset):
            yield not_of_drill(self.scratch)
        elif (pool := facts.pool(dataset.pool)) and pool.state == "SUSPENDED":
            yield stopped_pool(pool.name)

    def plan(self, facts: Facts) -> Plan:
        dataset = facts.dataset(self.scratch)
        size = dataset.used if dataset else 0

        def remove(work: Work) -> None:
            remove_scratch(self.scratch, work)

        return Plan(
            summary=Message(
                "{scratch}, which a drill made and did not remove, is destroyed. That frees {size}. The "
                "copies and the originals stay.",
                scratch=self.scratch,
                size=size_text(size),
            ),
            steps=(Step("remove", self.title, f"zfs destroy -r -- {self.scratch}", remove, (self.scratch,)),),
            identity={"operation": msgspec.to_builtins(self)},
            undo=Message("Nothing is lost: a drill restores what the copy still has."),
        )

    def probe(self, step: str, facts: Facts) -> bool:
        return facts.dataset(self.scratch) is None

    def recovery_hint(self, step: str, facts: Facts) -> str:
        return Message("{scratch} is still there. Larder tries again.", scratch=self.scratch)


def not_of_drill(name: str) -> Reason:
    return Reason("not-a-drill", "{dataset} is no folder that a drill has made.", dataset=name)
