"""Presets run on real pools, their figures are valid, and nothing is left afterwards."""

from __future__ import annotations

import base64
import json
import re
import subprocess
from pathlib import Path

import pytest

from appliance.zfs import kstat
from deploy.image.machine import wait_for
from tests.system.measuring import begin, complete, ended, everything_told, nothing_left, review, typed
from tests.visitor import blank, create_pool, disk_paths


def test_ashift_preset_gives_a_complete_table(visitor, appliance):
    disks = disk_paths(appliance, 1, 2, 3)
    page = review(visitor, "ashift", disks, layouts=["raidz1"], ashifts=[9, 12], workloads=["seq-write", "seq-read"])
    assert "4 cases, each 2 times" in page.words
    said = complete(visitor, page)
    assert "4 of 4" in visitor.get("/benchmarks/").words
    assert said.text.count('class="measured"') == 4
    assert "ZFS" in said.words
    nothing_left(appliance, *disks)


def test_partitions_and_data_settings_give_figures(visitor, appliance):
    disks = disk_paths(appliance, 1, 2)
    said = complete(
        visitor, review(visitor, "partition", disks, layouts=["mirror"], partitions=["whole", "part"], repeats=1)
    )
    assert "whole disks" in said.words
    assert "partitions of" in said.words
    said = complete(
        visitor,
        review(
            visitor,
            "compression",
            disks,
            layouts=["mirror"],
            compressions=["off", "lz4"],
            dedups=["False", "True"],
            compressible=33,
            repeats=1,
        ),
    )
    assert said.text.count('class="measured"') == 4
    nothing_left(appliance, *disks)


def test_sample_shows_compression_and_dedup_and_keeps_the_files(visitor, appliance):
    *disks, own = disk_paths(appliance, 1, 2, 3)
    create_pool(appliance, "-f", "tank", own)
    appliance.shell(
        "for at in $(seq 120); do (head -c 512K /dev/urandom; head -c 512K /dev/zero) > /tank/$at; done; "
        "zpool sync tank"
    )
    appliance.shell("cd /tank && sha256sum * > /root/sum")
    visitor.wait_until("/pools/", "tank")
    guid = appliance.run("zfs", "get", "-H", "-p", "-o", "value", "guid", "tank").strip()
    visitor.watch("/benchmarks/new/compression/", lambda form: f'value="{guid}"' in form.text, timeout=60)
    axes = {"compressions": ["off", "lz4"], "dedups": ["False", "True"], "workloads": ["seq-write", "seq-read"]}
    page = review(visitor, "compression", disks, layouts=["mirror"], sample=guid, repeats=1, **axes)
    assert "Parts of the files in tank are written to them" in page.words
    said = complete(visitor, page)
    assert said.text.count('class="measured"') == 6
    left = re.search(r"Your files: lz4 leaves ([0-9]+) % of them", said.words)
    assert left, said.words
    assert 40 <= int(left[1]) <= 60
    assert appliance.run("ls", "/run/larder/sweeps").split() == []
    appliance.shell("cd /tank && sha256sum --quiet -c /root/sum")
    nothing_left(appliance, *disks)
    appliance.run("zpool", "destroy", "tank")
    blank(appliance, own)


def test_raidz_against_raidz2_and_small_accesses_give_figures(visitor, appliance):
    disks = disk_paths(appliance, 1, 2, 3, 4)
    work = ["seq-write", "random-read", "mixed", "sync-write", "small-files"]
    said = complete(visitor, review(visitor, "parity", disks, layouts=["raidz1", "raidz2"], workloads=work, repeats=1))
    assert said.text.count('class="measured"') == 10
    nothing_left(appliance, *disks)


def test_rebuild_is_timed(visitor, appliance):
    # A quarter of a disk of terabytes takes too long, so the test uses small disks.
    for name in ("small1", "small2"):
        appliance.insert(name, 768 * 2**20, serial=f"{name.upper()}0001")
    visitor.wait_until("/disks/", "SMALL10001", "SMALL20001", timeout=120)
    form = visitor.get("/benchmarks/new/resilver/").text
    disks = [path for path in re.findall(r'value="(/dev/disk/by-id/[^"]*)"', form) if "SMALL" in path]
    assert len(set(disks)) == 2
    said = complete(visitor, review(visitor, "resilver", sorted(set(disks)), layouts=["mirror"], fills=[25], repeats=1))
    assert "Rebuilding a disk" in said.words
    nothing_left(appliance, *sorted(set(disks)))


def test_slow_disk_is_named_and_disks_of_a_pool_are_unharmed(visitor, appliance):
    disks = disk_paths(appliance, 1, 2, 3, 4)
    create_pool(appliance, "-f", "tank", disks[0])
    appliance.shell("head -c 8M /dev/urandom > /tank/photo; sha256sum /tank/photo > /root/sum; zpool sync tank")
    visitor.wait_until("/pools/", "tank")
    appliance.slow(3, 20)
    try:
        said = ended(
            visitor,
            begin(visitor, review(visitor, "disks", disks, workloads=["disk-start", "disk-latency"], size="64 MiB")),
        )
    finally:
        appliance.slow(3, 0)
    assert ">done<" in said.text, said.words
    named = re.search(r"Reading at the start: (.*?) is the odd one out", said.words)
    assert named, said.words
    assert appliance.disks[2].serial in named[1]
    appliance.run("sha256sum", "-c", "/root/sum")
    appliance.run("zpool", "destroy", "tank")
    blank(appliance, disks[0])


def test_log_device_helps_only_sync_writes(visitor, appliance):
    *data, log = disk_paths(appliance, 1, 2, 3)
    for bay in (1, 2):
        # So few operations a second that the disks are the limit and not the emulated processor.
        appliance.slow(bay, 25)
    try:
        work = ["sync-write", "seq-write"]
        # The first write of a new file waits for the slow disks, with any log device. Run long enough to get past it.
        page = review(visitor, "log", data, layouts=["mirror"], log=log, workloads=work, size="16 MiB", seconds=15)
        said = complete(visitor, page)
    finally:
        for bay in (1, 2):
            appliance.slow(bay, 0)
    assert re.search(r"Small writes that are waited for: .* is best", said.words), said.words
    assert appliance.disks[2].serial in said.words
    assert 'class="better"' in said.text
    told = json.loads(visitor.get(f"{said.url.split('?')[0]}export/json/").text)["cases"]
    found = {(one["case"]["workload"], bool(one["case"].get("log"))): one["median"] for one in told}
    assert found["sync-write", True] > 2 * found["sync-write", False], found
    assert found["seq-write", True] < 1.5 * found["seq-write", False], found
    nothing_left(appliance, *data, log)


def test_cache_device_is_tested_and_cleared(visitor, appliance):
    *data, cache = disk_paths(appliance, 1, 2, 3)
    small = {"layouts": ["mirror"], "cache": cache, "workloads": ["random-read"], "warmups": 1, "repeats": 1}
    assert "filled from memory" in review(visitor, "cache", data, **small).words
    limited = {**small, "aside": [], "limited": "on", "size": "256 MiB"}
    said = complete(visitor, review(visitor, "cache", data, **limited))
    assert said.text.count('class="measured"') == 2
    with_it = json.loads(visitor.get(f"{said.url.split('?')[0]}export/json/").text)["cases"][1]
    assert with_it["case"]["cache"] == cache
    jobs = re.findall(r"/jobs/([0-9a-f-]{36})/", said.text)
    assert "went to the cache device in" in visitor.get(f"/jobs/{jobs[-1]}/").words
    nothing_left(appliance, *data, cache)


def test_pool_in_use_is_tested_in_a_scratch_folder(visitor, appliance):
    disks = disk_paths(appliance, 1, 2)
    create_pool(appliance, "-f", "tank", "mirror", *disks)
    appliance.shell("head -c 8M /dev/urandom > /tank/photo; sha256sum /tank/photo > /root/sum; zpool sync tank")
    visitor.wait_until("/pools/", "tank")
    guid = appliance.run("zpool", "get", "-H", "-o", "value", "guid", "tank").strip()
    visitor.watch("/benchmarks/new/pool/", lambda form: guid in form.text, timeout=60)
    complete(visitor, review(visitor, "pool", [], pool=guid, workloads=["seq-write", "seq-read"], repeats=1))
    appliance.run("sha256sum", "-c", "/root/sum")
    assert appliance.run("zfs", "list", "-H", "-o", "name", "-r", "tank").split() == ["tank"]
    nothing_left(appliance)
    appliance.run("zpool", "destroy", "tank")
    blank(appliance, *disks)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        (
            {"workloads": ["dd-write"], "zeros": "on", "compressions": ["lz4"]},
            "A pool that compresses does not write zeros",
        ),
        ({"workloads": ["seq-read"], "aside": []}, "fit into memory"),
    ],
    ids=["zeros", "memory"],
)
def test_results_that_only_look_fast_do_not_count(visitor, appliance, changes, reason):
    (disk,) = disk_paths(appliance, 1)
    said = ended(visitor, begin(visitor, review(visitor, "ashift", [disk], repeats=1, **changes)))
    assert ">done<" in said.text, said.words
    assert "does not count" in said.words
    assert reason in said.words
    nothing_left(appliance, disk)


def test_limited_memory_lets_little_data_count_and_is_restored(visitor, appliance):
    def memory() -> dict[str, int]:
        return kstat.parse_counters(appliance.run("cat", "/proc/spl/kstat/zfs/arcstats"))

    (disk,) = disk_paths(appliance, 1)
    before = memory()
    asked = {"workloads": ["seq-read"], "aside": [], "limited": "on", "size": "256 MiB", "repeats": 1}
    path = begin(visitor, review(visitor, "ashift", [disk], **asked))
    wait_for("the limit", lambda: memory()["c_max"] == 128 * 2**20, timeout=180)
    said = ended(visitor, path)
    assert ">done<" in said.text, everything_told(visitor, path)
    assert "does not count" not in said.words, everything_told(visitor, path)
    assert "limited to 128 MiB" in said.words
    after = memory()
    assert (after["c_max"], after["c_min"]) == (before["c_max"], before["c_min"])
    assert appliance.run("cat", "/sys/module/zfs/parameters/zfs_arc_max").strip() == "0"
    nothing_left(appliance, disk)


def beginning_of_ext4(image: Path) -> str:
    """The first 4 KiB of a file system in base64, made on the host, because the appliance has no mkfs."""
    with image.open("wb") as file:
        file.truncate(64 * 2**20)
    subprocess.run(["/usr/sbin/mkfs.ext4", "-q", image], check=True)
    with image.open("rb") as file:
        return base64.b64encode(file.read(4096)).decode()


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        ("echo {ext4} | base64 -d | dd of={disk} conv=notrunc,fsync status=none", "ext4"),
        ("sgdisk -n 1:0:+64M {disk}", "partition table"),
        ("zpool create -f attic {disk}", "part of the pool attic"),
        ("zpool create -f attic {disk} && zpool export attic", "the pool attic"),
        ("zpool create -f attic {disk} && zpool destroy attic", ""),
        ("mkswap -f {disk}", "swap"),
    ],
    ids=["ext4", "partitions", "member", "exported", "destroyed", "swap"],
)
def test_disk_in_use_is_refused_with_its_use(visitor, appliance, tmp_path, make, reason):
    disks = disk_paths(appliance, 1, 2)
    good = review(visitor, "ashift", disks, layouts=["mirror"])
    assert good.status == 200
    appliance.shell(make.format(disk=disks[0], ext4=beginning_of_ext4(tmp_path / "image")))
    visitor.watch("/benchmarks/new/ashift/", lambda form: f'value="{disks[0]}"' not in form.text, timeout=120)
    late = visitor.send("/benchmarks/start/", {**good.hidden(), **typed(good)})
    assert late.status == 409, late.words
    assert 'data-code="benchmark-disk-in-use"' in late.text
    assert reason in late.words
    appliance.run("zpool", "destroy", "attic", check=False)
    blank(appliance, disks[0])
    visitor.watch("/benchmarks/new/ashift/", lambda form: f'value="{disks[0]}"' in form.text, timeout=120)


def test_protocols_preset_gives_a_complete_table_and_leaves_no_server(visitor, appliance):
    disks = disk_paths(appliance, 1, 2)
    create_pool(appliance, "-f", "tank", "mirror", *disks)
    visitor.wait_until("/pools/", "tank")
    guid = appliance.run("zpool", "get", "-H", "-o", "value", "guid", "tank").strip()
    visitor.watch("/benchmarks/new/protocols/", lambda form: guid in form.text, timeout=60)
    running = appliance.run("systemctl", "is-active", "nfs-server", check=False)
    netatalk = appliance.run("systemctl", "is-active", "netatalk", check=False)
    kept = appliance.run("ls", "/var/lib/netatalk")
    ways = {"protocols": ["none", "smb", "nfs", "afp"], "workloads": ["seq-write", "seq-read", "small-files"]}
    said = complete(visitor, review(visitor, "protocols", [], pool=guid, repeats=1, **ways))
    assert said.text.count('class="measured"') == 12
    assert "over SMB" in said.words
    assert "over AFP" in said.words
    assert "not how fast a Mac is" in said.words
    nothing_left(appliance)
    assert "larder/sweeps" not in appliance.run("cat", "/proc/mounts") + appliance.run("exportfs", "-s", check=False)
    assert appliance.run("systemctl", "is-active", "nfs-server", check=False) == running
    assert appliance.run("systemctl", "is-active", "netatalk", check=False) == netatalk
    assert appliance.run("ls", "/var/lib/netatalk") == kept
    assert netatalk.strip() == "active" or appliance.run("pgrep", "-x", "afpd", check=False) == ""
    assert appliance.run("ls", "/run/larder/sweeps").split() == []
    appliance.run("zpool", "destroy", "tank")
    blank(appliance, *disks)


def test_network_is_tested_to_a_computer_with_iperf3(visitor, appliance):
    appliance.run("systemd-run", "--unit=peer", "iperf3", "-s", "-B", "127.0.0.1")
    try:
        work = ["net-send", "net-receive"]
        said = complete(visitor, review(visitor, "network", [], peer="127.0.0.1", workloads=work, repeats=1))
    finally:
        appliance.run("systemctl", "stop", "peer")
    assert "Sending over the network" in said.words
    # Nobody listens any more: the case fails and says why.
    page = ended(
        visitor, begin(visitor, review(visitor, "network", [], peer="127.0.0.1", workloads=["net-send"], repeats=1))
    )
    assert "Does iperf3 -s run on the other computer" in page.words


def test_volumes_and_bonnie_give_figures(visitor, appliance):
    disks = disk_paths(appliance, 1, 2)
    blocks = {"volblocksizes": [8192, 65536], "workloads": ["seq-write", "seq-read", "random-write"]}
    said = complete(visitor, review(visitor, "volumes", disks, layouts=["mirror"], repeats=1, **blocks))
    assert said.text.count('class="measured"') == 6
    assert re.search(r"Volume blocks .* 64 KiB [0-9.]+ MB/s", said.words), said.words
    nothing_left(appliance, *disks)
    said = complete(
        visitor, review(visitor, "ashift", disks, layouts=["mirror"], workloads=["bonnie"], size="128 MiB", repeats=1)
    )
    assert "As bonnie++ says it" in said.words
    nothing_left(appliance, *disks)
