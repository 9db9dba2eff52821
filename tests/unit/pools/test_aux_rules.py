"""Log, cache and spare devices, and what ZFS's own counters say about the need for them."""

from __future__ import annotations

import pytest

from appliance.facts.box import Caching
from appliance.formatting import size_text
from appliance.layout import aux_devices
from appliance.layout.geometry import GIB, MIB
from appliance.pools.vdevs import aux_rules as devices
from appliance.zfs import kstat
from tests.unit.made import disk, path_of, recorded_text

# Made up, in the form of the recorded ones: two lines of heading, then name, type, data.
ARC = """9 1 0x01 147 39984 3310293126 2164513183478
name                            type data
hits                            4    900
demand_data_hits                4    80000
demand_data_iohits              4    1000
demand_data_misses              4    15000
demand_metadata_hits            4    4000
demand_metadata_misses          4    0
prefetch_data_misses            4    999999
c_max                           4    2147483999
memory_available_bytes          3    -5
"""
ZIL = """10 1 0x01 21 5712 3310293301 2164513300000
name                            type data
zil_commit_count                4    2824
zil_itx_indirect_bytes          4    1073741824
zil_itx_copied_bytes            4    0
zil_itx_needcopy_bytes          4    536870912
zil_itx_metaslab_normal_bytes   4    35507144
"""


def objset(written: int) -> str:
    return f"29 1 0x01 21 5712 1 2\nname type data\ndataset_name 7 tank/photos\nwrites 4 5\nnwritten 4 {written}\n"


def test_recorded_counters_of_a_box_that_has_done_little(tmp_path, monkeypatch):
    monkeypatch.setattr(kstat, "KSTAT", tmp_path)
    (tmp_path / "hexed").mkdir()
    for name, place in (("arcstats", "arcstats"), ("zil", "zil"), ("objset", "hexed/objset-0x36")):
        (tmp_path / place).write_text(recorded_text(f"kstat-{name}-2.3.9.txt"))
    # 44787 of 44978 reads that somebody waited for were answered by memory.
    assert kstat.read_kstat() == Caching(hit_percent=99, sync_percent=None, memory=3036520448 // MIB * MIB)
    assert kstat.parse_counters(recorded_text("kstat-zil-2.3.9.txt"))["zil_commit_count"] == 24
    assert kstat.parse_counters(recorded_text("kstat-objset-2.3.9.txt"))["nwritten"] == 0


@pytest.fixture
def counted(tmp_path, monkeypatch):
    monkeypatch.setattr(kstat, "KSTAT", tmp_path)
    (tmp_path / "tank").mkdir()
    (tmp_path / "arcstats").write_text(ARC)
    (tmp_path / "zil").write_text(ZIL)
    (tmp_path / "tank" / "objset-0x36").write_text(objset(4 * GIB))
    (tmp_path / "tank" / "objset-0x81").write_text(objset(2 * GIB))
    (tmp_path / "tank" / "txgs").write_text("nwritten 4 99999999999999\n")
    return tmp_path


def test_it_reads_how_often_memory_answered_and_how_much_was_waited_for(counted):
    assert kstat.read_kstat() == Caching(hit_percent=85, sync_percent=25, memory=2**31)


def test_too_little_is_told_as_unknown(counted):
    (counted / "arcstats").write_text(ARC.replace("80000", "80").replace("15000", "15"))
    for name in ("objset-0x36", "objset-0x81"):
        (counted / "tank" / name).write_text(objset(1000))
    assert kstat.read_kstat() == Caching(None, None, 2**31)


def test_without_the_module_nothing_is_known(tmp_path, monkeypatch):
    monkeypatch.setattr(kstat, "KSTAT", tmp_path / "away")
    assert kstat.read_kstat() == Caching()


def test_a_dataset_that_is_gone_meanwhile_is_passed_over(counted):
    (counted / "tank" / "objset-0x99").symlink_to(counted / "nowhere")
    assert kstat.read_kstat().sync_percent == 25


@pytest.mark.parametrize("text", ["", "\n\n", "name type data\n", "hits 4\n", "hits 4 x\n", "hits 4 -1\n", "a b c d\n"])
def test_odd_counters_are_none(text):
    assert kstat.parse_counters(text) == {}


def test_the_index_of_a_cache_device_costs_memory_by_the_block():
    assert aux_devices.index_memory(128 * GIB) == 128 * GIB // (128 * 1024) * 96
    assert aux_devices.index_memory(GIB, 8 * 1024) == 16 * aux_devices.index_memory(GIB)


@pytest.mark.parametrize(("share", "worth"), [(None, None), (3, False), (60, True)])
def test_a_log_is_advised_by_what_was_measured(share, worth):
    told = aux_devices.log_advice(Caching(sync_percent=share))
    assert told.worth is worth
    assert ("Too little" in told.measured) is (share is None)
    assert share is None or f"{share} %" in told.measured


@pytest.mark.parametrize(("hits", "worth"), [(None, None), (99, False), (60, True)])
def test_a_cache_is_advised_by_what_was_measured(hits, worth):
    told = aux_devices.cache_advice(Caching(hit_percent=hits), 512 * GIB)
    assert told.worth is worth
    assert "550 GB of cache take about 384 MiB with blocks of 128 KiB, 3 GiB with blocks of 16 KiB" in told.costs


def test_an_index_that_would_crowd_out_the_cache_is_known():
    assert aux_devices.is_index_heavy(4000 * GIB, 4 * GIB)
    assert not aux_devices.is_index_heavy(100 * GIB, 4 * GIB)
    assert not aux_devices.is_index_heavy(4000 * GIB, 0)
    assert "More than a quarter" in aux_devices.cache_advice(Caching(memory=4 * GIB), 4000 * GIB).costs
    assert "More than a quarter" not in aux_devices.cache_advice(Caching(memory=4 * GIB), 100 * GIB).costs


def test_zpool_gets_a_word_for_each_kind_and_several_logs_are_a_mirror():
    one, two, three, four = map(path_of, (1, 2, 3, 4))
    assert devices.aux_vdev_args([one], [two], [three]) == ["log", one, "cache", two, "spare", three]
    assert devices.aux_vdev_args([one, two], [], [three, four]) == ["log", "mirror", one, two, "spare", three, four]
    assert devices.aux_vdev_args([], [], []) == []


def test_a_spare_too_small_is_refused_by_how_much_and_one_of_nearly_the_size_is_not():
    (reason,) = devices.check_spare(disk(1), 3 * 10**12)
    assert (reason.code, reason.message.arguments["size"]) == ("spare-too-small", size_text(10**12))
    assert not list(devices.check_spare(disk(1), 2 * 10**12 + devices.FUZZ))


def test_warnings_name_a_single_log_a_turning_disk_and_the_memory_for_a_cache():
    fast = disk(1, rotational=False)
    assert any("single disk" in text for text in devices.aux_warnings([fast], []))
    assert not list(devices.aux_warnings([fast, fast], []))
    assert any("hard disk as log" in text for text in devices.aux_warnings([disk(1), disk(2)], []))
    assert any("hard disk as cache" in text for text in devices.aux_warnings([], [disk(1)]))
    assert any("takes memory" in text for text in devices.aux_warnings([], [fast]))


def test_the_memory_of_a_cache_device_is_said_to_depend_on_the_size_of_blocks():
    told = aux_devices.cache_advice(Caching(50, None, 8 * GIB), 1_000_000_000 * 1365).costs
    assert "96 bytes for each block" in told
    assert "and more with smaller ones" in told
    assert "up to" not in told
    assert aux_devices.index_memory(1365 * 10**9) == pytest.approx(10**9, rel=0.001)
