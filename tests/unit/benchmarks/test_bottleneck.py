"""The part that limits a shared folder, by recorded figures."""

from __future__ import annotations

import pytest

from appliance.benchmarks.bottleneck import Ceilings, Part, judge, judge_direction
from appliance.benchmarks.client_report import ClientFigures, LoopbackFigures

MB = 1e6


def limit(
    reached: float, *, pool=None, protocol=None, network=None, client=2000.0, busy=0.2, direction="write", cached=False
):
    def scaled(value):
        return None if value is None else value * MB

    ceilings = Ceilings(scaled(pool), scaled(protocol), scaled(network), scaled(client))
    return judge_direction(direction, reached * MB, ceilings, busy, cached=cached)


# Figures that owners of Microservers have published, in MB/s: pool, network and what a computer reached.
@pytest.mark.parametrize(
    ("name", "reached", "parts", "expected"),
    [
        ("Gen8, four disks in raidz, over NFS", 116, {"pool": 309, "network": 117}, ("network",)),
        ("Gen8, the same read over CIFS", 99, {"pool": 323, "network": 117}, ("network",)),
        ("AFP, reading at an MTU of 1500", 64, {"network": 114}, ()),
        ("NFS writing synchronously", 25, {"network": 114}, ()),
        ("SMB writing", 36.7, {"network": 114, "protocol": 40, "pool": 90}, ("protocol",)),
        ("an old pool that is slower than a gigabit", 58, {"network": 114, "protocol": 60, "pool": 61}, ("pool",)),
        ("100 Mbit/s by a bad cable", 11, {"network": 11.7, "protocol": 90, "pool": 200}, ("network",)),
    ],
)
def test_known_figures_are_named(name, reached, parts, expected):
    assert limit(reached, **parts).parts == expected, name


def test_program_that_keeps_a_processor_busy_is_the_limit():
    assert limit(40, pool=300, protocol=200, network=110, busy=0.97).limit == "client"


def test_computer_that_cannot_move_more_than_the_network_carried_is_the_limit():
    assert limit(5, pool=300, protocol=200, network=5.1, client=5.2).limit == "client"


def test_computer_is_not_blamed_for_a_folder_far_slower_than_it():
    found = limit(40, network=290, client=400)
    assert found.parts == ()
    assert "Pool and protocol were not measured and may be the limit" in found.sentence


def test_no_answer_where_every_part_alone_is_far_faster():
    found = limit(40, pool=500, protocol=450, network=290, client=400)
    assert found.parts == ()
    assert "less than each measured part alone can do (at least 290 MB/s)" in found.sentence


def test_slow_pool_is_named_also_where_the_network_was_not_measured_to_its_end():
    assert limit(4, pool=4, protocol=4, network=19, client=20).limit == "pool"


def test_equal_parts_are_both_named():
    found = limit(105, pool=300, protocol=118, network=112)
    assert found.parts == ("network", "protocol")
    assert "together" in found.sentence


def test_nothing_is_named_where_no_part_alone_is_so_slow():
    found = limit(20, pool=300, protocol=200, network=110)
    assert found.parts == ()
    assert "less than each measured part alone" in found.sentence


def test_parts_that_were_not_measured_are_said():
    found = limit(20, client=1000)
    assert found.limit == "unknown"
    assert "The network and pool and protocol were not measured" in found.sentence


def test_read_that_is_faster_than_the_network_came_from_memory():
    found = limit(900, network=110, direction="read")
    assert found.limit == "unknown"
    assert "own memory" in found.sentence


def test_pool_is_not_named_for_what_the_box_has_in_memory():
    assert limit(100, pool=90, protocol=89, network=110, direction="read", cached=True).limit == "network"


def test_both_directions_are_judged_by_their_own_figures():
    mb = (MB,)
    figures = ClientFigures(
        system="Linux",
        way="smbclient",
        own=(2000 * MB,),
        hashing=mb,
        wire_up=(112 * MB,),
        wire_down=(11 * MB,),
        write=(60 * MB,),
        read=(10.5 * MB,),
        small=(100.0,),
        busy_write=0.1,
        busy_read=0.1,
    )
    loopback = LoopbackFigures(pool_write=62 * MB, pool_read=300 * MB, protocol_write=61 * MB, protocol_read=200 * MB)
    limits: list[Part] = [one.limit for one in judge(figures, loopback)]
    assert limits == ["pool", "network"]
