"""A copy that its destination has no room for is refused before anything is sent."""

from __future__ import annotations

import pytest

from appliance.backups import copies, match, transfer
from appliance.backups.copy_dataset import DatasetCopy
from appliance.backups.tasks import BackupTask
from appliance.errors import Refused
from tests.reasons import expect_refusal
from tests.unit.made import dataset
from tests.unit.pools.test_create import Working

GB = 10**9
FULL, MORE = match.Decision("full"), match.Decision("increment", base="tank/photos#mark")


class Destination:
    """Stands in for ZFS: how much is free where, and what was sent."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **free: int) -> None:
        self.free, self.sent = {name.replace("_", "/"): size for name, size in free.items()}, 0
        monkeypatch.setattr(copies, "read_values", self.read_values)
        monkeypatch.setattr(transfer, "estimate", lambda _argv: 5 * GB)
        monkeypatch.setattr(transfer, "send_stream", self.send)

    def read_values(self, name: str, _wanted: list[str]) -> dict[str, str]:
        return {"available": str(self.free[name])} if name in self.free else {}

    def send(self, *_how: object, may_end: bool, foreign: bool) -> int:
        self.sent += 1
        return 0


def copy(*flags: str) -> DatasetCopy:
    task = BackupTask(key="0123abcd", pool=1, path="backups/photos")
    return DatasetCopy(dataset("tank/photos", guid=5), "safe/backups/photos", "larder-backup-x", flags, task)


@pytest.mark.parametrize("flags", [("-L", "-e", "-c"), ("-w",)])
def test_what_does_not_fit_is_refused_with_both_numbers(monkeypatch, flags):
    there = Destination(monkeypatch, safe_backups_photos=4 * GB)
    with pytest.raises(Refused) as refused:
        transfer.run_stream(Working(), copy(*flags), MORE)
    assert there.sent == 0
    (reason,) = refused.value.reasons
    assert reason.code == "backup-no-room" and "5 GB" in str(reason) and "4 GB" in str(reason)


def test_first_copy_is_measured_against_what_it_is_made_in(monkeypatch):
    there = Destination(monkeypatch, safe_backups=4 * GB, safe=9 * GB)  # a quota on the folder of copies
    with expect_refusal("backup-no-room"):
        transfer.run_stream(Working(), copy("-c"), FULL)
    there.free = {"safe": 9 * GB}
    transfer.run_stream(Working(), copy("-c"), FULL)
    assert there.sent == 1


def test_what_fits_is_sent(monkeypatch):
    there = Destination(monkeypatch, safe_backups_photos=5 * GB)
    transfer.run_stream(Working(), copy("-c"), MORE)
    assert there.sent == 1


def test_what_is_compressed_anew_there_is_tried(monkeypatch):
    there = Destination(monkeypatch, safe_backups_photos=4 * GB)
    transfer.run_stream(Working(), copy(), MORE)
    assert there.sent == 1


def test_destination_that_does_not_say_how_much_is_free_is_tried(monkeypatch):
    there = Destination(monkeypatch)
    transfer.run_stream(Working(), copy("-w"), MORE)
    assert there.sent == 1
