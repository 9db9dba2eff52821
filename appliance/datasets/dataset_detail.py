"""Details of one dataset that are read on demand only: snapshots, holds, clones, and space used by user and group."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

import msgspec
from msgspec.structs import replace

from appliance import command, names
from appliance.facts import user_properties
from appliance.facts.box import Facts
from appliance.facts.datasets import Dataset, DatasetDetail, SpaceUse, names_above
from appliance.request import Request
from appliance.zfs import status

MOST_NAMED = 40
MOST_USES = 1000
SPACES = {"user": "userspace", "group": "groupspace"}


def parse_clones(lines: Iterable[str], name: str) -> tuple[str, ...]:
    """Parse ``zfs destroy -nvp -R``: the dependent clones, which are neither this dataset nor below it."""
    going = [line.partition("\t")[2] for line in lines if line.startswith("destroy\t")]
    return tuple(
        sorted(other for other in going if "@" not in other and other != name and not other.startswith(f"{name}/"))
    )


def parse_space_use(lines: Iterable[str], kind: str) -> Iterator[SpaceUse]:
    """Parse ``zfs userspace -H -p -o name,used,quota``. A name is that of a user or group of the box, or a number."""
    for line in lines:
        who, used, quota = [*line.split("\t"), "", ""][:3]
        if used.isdigit():
            yield SpaceUse(kind, who[:100], int(used), int(quota) if quota.isdigit() else 0)


class SnapshotListing(msgspec.Struct):
    """Summary of a listing of snapshots, of bounded size."""

    count: int = 0
    by_hand: int = 0
    guid_sum: int = 0
    newest: deque[str] = msgspec.field(default_factory=lambda: deque(maxlen=MOST_NAMED))
    held: list[str] = msgspec.field(default_factory=list)

    @property
    def manual_digest(self) -> str:
        """Identifies the snapshots that no schedule of Larder took: their count and the sum of
        their guids; empty for none."""
        return f"{self.by_hand} {self.guid_sum:x}" if self.by_hand else ""


def parse_snapshots(lines: Iterable[bytes]) -> SnapshotListing:
    """Parse ``zfs list -H -t snapshot -o name,userrefs,guid,larder:run``, oldest first."""
    found = SnapshotListing()
    for line in lines:
        name, holds, guid, run = [*line.decode(errors="replace").split("\t"), "", "", ""][:4]
        if not holds:
            continue
        found.count += 1
        found.newest.append(name)
        if holds not in {"0", "-"} and len(found.held) < MOST_NAMED:
            found.held.append(name)
        if run in {"", "-"} and guid.isdigit():
            found.by_hand += 1
            found.guid_sum = (found.guid_sum + int(guid)) % 2**64
    return found


def find_topmost(datasets: Iterable[str]) -> Iterator[str]:
    """Those of these datasets that are below no other of them."""
    every = set(datasets)
    return (name for name in sorted(every) if every.isdisjoint(names_above(name)))


def read_detail(dataset: Dataset) -> DatasetDetail:
    """Read the details of one dataset. Only root may read the space used by users. Raises Failed."""
    dry = ["zfs", "destroy", "-n", "-v", "-p", "-R", "--", dataset.name]
    clones: tuple[str, ...] = ()
    if "/" in dataset.name:  # a pool's top dataset cannot be destroyed as a dataset
        clones = parse_clones(command.run(dry, timeout=300).stdout.splitlines(), dataset.name)
    listing = [
        "zfs",
        "list",
        "-H",
        "-t",
        "snapshot",
        "-r",
        "-o",
        f"name,userrefs,guid,{user_properties.RUN}",
        "-s",
        "creation",
        "--",
        dataset.name,
        *find_topmost(clones),  # destroying the clones too takes snapshots of their own
    ]
    snapshots = parse_snapshots(command.read_lines(listing, silence=300))
    uses: list[SpaceUse] = []
    if dataset.kind == "filesystem" and not dataset.locked:
        for kind, verb in SPACES.items():
            argv = ["zfs", verb, "-H", "-p", "-o", "name,used,quota", "--", dataset.name]
            uses += parse_space_use(command.run(argv, timeout=120, accept=range(256)).stdout.splitlines(), kind)
    return DatasetDetail(
        dataset.name,
        dataset.guid,
        snapshots.count,
        tuple(reversed(snapshots.newest)),
        tuple(snapshots.held),
        clones,
        tuple(sorted(uses, key=lambda use: (use.kind != "user", -use.used, use.who))[:MOST_USES]),
        snapshots.manual_digest,
    )


def add_detail(facts: Facts, dataset: Dataset | None) -> Facts:
    """Return the facts with the current details of one dataset."""
    return replace(facts, dataset_details=(read_detail(dataset),)) if dataset else facts


class ReadDataset(Request, tag="read-dataset"):
    """What would go with a dataset, and who takes up its space; None where it is not there."""

    dataset: str

    def __post_init__(self) -> None:
        names.existing_dataset(self.dataset)

    def read(self) -> object:
        found = next((one for one in status.read_datasets() if one.name == self.dataset), None)
        return read_detail(found) if found else None
