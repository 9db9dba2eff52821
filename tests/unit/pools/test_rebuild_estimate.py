from __future__ import annotations

from msgspec.structs import replace

from appliance.pools.rebuild_estimate import PastWork, estimate_expansion, estimate_rebuild
from tests.unit.pools import shapes

GB = 10**9
POOL = replace(shapes.raidz2(), allocated=400 * GB)
RAIDZ = replace(POOL, vdevs=(replace(POOL.vdevs[0], used=400 * GB),))


def test_a_rebuild_that_was_measured_counts_by_what_is_in_the_pool_now():
    past = [PastWork("scrub", 300 * GB, 100.0), PastWork("resilver", 200 * GB, 1000.0)]
    found = estimate_rebuild(RAIDZ, past)
    assert (found.seconds, found.measured) == (2000, True)  # twice as much as 200 GB in 1000 s


def test_a_rebuild_that_only_caught_up_or_was_too_short_says_nothing():
    past = [
        PastWork("resilver", 5 * GB, 100.0),
        PastWork("resilver", 400 * GB, 30.0),
        PastWork("scrub", 400 * GB, 900.0),
    ]
    found = estimate_rebuild(RAIDZ, past)
    assert (found.seconds, found.measured) == (900, False)
    assert "an estimate: as long as its last scrub" in found.basis


def test_without_any_it_is_the_bytes_of_a_disk_at_a_usual_speed():
    assert estimate_rebuild(RAIDZ, []).seconds == 1000  # 400 GB on four disks at 100 MB/s
    solid = estimate_rebuild(RAIDZ, [], rotational=False)
    assert solid.seconds == 333
    assert "300 MB/s" in solid.basis
    mirror = replace(shapes.mirror(), allocated=300 * GB)
    mirror = replace(mirror, vdevs=(replace(mirror.vdevs[0], used=300 * GB),))
    assert estimate_rebuild(mirror, []).seconds == 3000  # each disk holds all of it


def test_an_expansion_is_as_long_as_the_last_or_twice_a_rebuild():
    assert estimate_expansion(RAIDZ, [PastWork("expand", 100 * GB, 500.0)]).seconds == 2000
    found = estimate_expansion(RAIDZ, [PastWork("scrub", 400 * GB, 900.0)])
    assert (found.seconds, found.measured) == (1800, False)
    assert "twice the work of a rebuild; for that, as long as its last scrub" in found.basis
