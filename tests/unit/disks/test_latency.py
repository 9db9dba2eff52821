from __future__ import annotations

import pytest

from appliance.disks import latency
from appliance.disks.latency import DiskCounters

# As Linux 6.12 writes it: 20 columns, a loop device, a partition.
TEXT = """   8       0 sda 1200 30 96000 2400 800 10 64000 3600 0 5000 6000 0 0 0 0 12 40
   8       1 sda1 10 0 80 5 0 0 0 0 0 5 5 0 0 0 0 0 0
   7       0 loop0 0 0 0 0
"""


def test_reads_and_writes_are_counted_together():
    assert latency.read_counters(TEXT) == {"sda": DiskCounters(2000, 6000), "sda1": DiskCounters(10, 5)}


def test_only_what_happened_since_counts_and_only_where_it_is_enough():
    before = {"sda": DiskCounters(1000, 1000), "sdb": DiskCounters(1000, 1000), "sdc": DiskCounters(9000, 9000)}
    now = {
        "sda": DiskCounters(1100, 3600),
        "sdb": DiskCounters(1010, 9000),
        "sdc": DiskCounters(100, 50),
        "sdd": DiskCounters(500, 500),
    }
    assert latency.mean_latencies(before, now) == {"sda": 26.0}


@pytest.mark.parametrize(
    ("own", "others", "slow"),
    [
        (26.0, [1.2, 1.1, 1.3], True),
        (3500.0, [0.7], True),
        (26.0, [24.0, 30.0, 25.0], False),  # all are busy
        (6.0, [0.7, 0.8], False),  # slower, and quick all the same
        (26.0, [], False),
        (None, [1.0], False),
    ],
)
def test_the_outlier_is_the_one_that_is_slow_beside_quick_ones(own, others, slow):
    assert bool(latency.outlier_text(own, others)) is slow
