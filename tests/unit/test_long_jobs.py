"""Jobs that can go on for long say so, and leave room for others."""

from __future__ import annotations

import pytest

from appliance.operation import Operation
from appliance.shares.permissions import SetAccess
from appliance.shares.removal import RemoveAccount
from appliance.zfs.clearing import QUICK, DestroySnapshots, PruneSnapshots
from appliance.zfs.importing import ImportPool
from appliance.zfs.placing import RenameDataset
from appliance.zfs.unlocking import UnlockAll


def many(count: int) -> list[tuple[str, int]]:
    return [(f"tank/photos@{number}", number + 1) for number in range(count)]


@pytest.mark.parametrize(
    "operation",
    [
        SetAccess(dataset="tank/photos"),
        RemoveAccount(name="anna", heir="ben"),
        DestroySnapshots.of(many(QUICK + 1)),
        PruneSnapshots.of(many(QUICK + 1)),
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
    [RemoveAccount(name="anna"), DestroySnapshots.of(many(QUICK))],
    ids=lambda operation: type(operation).__name__,
)
def test_quick_job_of_the_same_kind_does_not(operation: Operation):
    assert not operation.lasts()
