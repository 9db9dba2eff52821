"""The folders and volumes that an operation destroys, as its review lists them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from appliance.facts.datasets import Dataset
from appliance.formatting import count_below, more_folders, more_volumes
from appliance.message import Message
from appliance.operation import Loss

MOST_LISTED = 40


def split_kinds(datasets: Sequence[Dataset]) -> tuple[list[Dataset], list[Dataset]]:
    """The folders and the volumes among them."""
    volumes = [one for one in datasets if one.kind == "volume"]
    return [one for one in datasets if one.kind != "volume"], volumes


def name_with_below(dataset: str, found: Iterable[Dataset]) -> str:
    """The name, and how many others there are among ``found``: ``tank/photos and 3 folders below it``."""
    folders, volumes = split_kinds([one for one in found if one.name != dataset])
    return count_below(dataset, len(folders), len(volumes))


def list_dataset_losses(datasets: Sequence[Dataset]) -> Iterator[Loss]:
    """One loss for each of the first, then one for all other folders and one for all other volumes."""
    for one in datasets[:MOST_LISTED]:
        what = Message("the volume") if one.kind == "volume" else Message("the folder")
        yield Loss(Message("{what} {dataset}", what=what, dataset=one.name), one.referenced)
    for rest, counted in zip(split_kinds(datasets[MOST_LISTED:]), (more_folders, more_volumes), strict=True):
        if rest:
            yield Loss(counted(len(rest)), sum(one.referenced for one in rest))
