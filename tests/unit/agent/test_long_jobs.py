"""Jobs that can go on for long say so, and leave room for others."""

from __future__ import annotations

import pytest

from appliance.datasets.encryption.unlock import UnlockAll
from appliance.datasets.permissions import SetAccess
from appliance.datasets.rename import RenameDataset
from appliance.operation import Operation
from appliance.pools.import_pool import ImportPool
from appliance.snapshots.destroy import QUICK, DestroySnapshots, PruneSnapshots
from appliance.users.remove import RemoveAccount


def many(count: int) -> list[tuple[str, int]]:
    return [(f"tank/photos@{number}", number + 1) for number in range(count)]


@pytest.mark.parametrize(
    "operation",
    [
        SetAccess(dataset="tank/photos"),
        RemoveAccount(name="anna", heir="ben"),
        DestroySnapshots.for_pairs(many(QUICK + 1)),
        PruneSnapshots.for_pairs(many(QUICK + 1)),
        ImportPool(name="attic", guid=7),
        RenameDataset(dataset="tank/photos", guid=7, parent="tank", name="films"),
        UnlockAll(datasets=("tank/photos",)),
    ],
    ids=lambda operation: type(operation).__name__,
)
def test_job_that_may_take_long_says_so(operation: Operation):
    assert operation.lasts()


@pytest.mark.parametrize(
    "operation",
    [RemoveAccount(name="anna"), DestroySnapshots.for_pairs(many(QUICK))],
    ids=lambda operation: type(operation).__name__,
)
def test_quick_job_of_the_same_kind_does_not(operation: Operation):
    assert not operation.lasts()
