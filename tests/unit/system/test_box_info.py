"""What the box tells of itself, from files as a MicroServer and the appliance have them (Debian 13, ZFS 2.3.9)."""

from __future__ import annotations

from pathlib import Path

import pytest

from appliance.system.box_info import Memory, Port, Sensor, read_box_info
from appliance.system.network_port import Counters

FILES = {
    "proc/sys/kernel/random/boot_id": "1f0b6c1e-52a7-4a5d-9a43-f1f6b8d2c011\n",
    "proc/cpuinfo": (
        "processor\t: 0\nmodel name\t: AMD Turion(tm) II Neo N54L  Dual-Core Processor\n\nprocessor\t: 1\nmodel "
        "name\t: AMD Turion(tm) II Neo N54L  Dual-Core Processor\n"
    ),
    "etc/os-release": 'PRETTY_NAME="Debian GNU/Linux 13 (trixie)"\nNAME="Debian GNU/Linux"\n',
    "proc/loadavg": "0.52 0.40 0.31 2/312 4711\n",
    "proc/uptime": "93784.21 180000.00\n",
    "proc/meminfo": "MemTotal:        4028176 kB\nMemFree:          391280 kB\nMemAvailable:    1048576 kB\n",
    "proc/spl/kstat/zfs/arcstats": (
        "9 1 0x01 147 39984 1 2\nname                            type data\nhits                            4    "
        "77\nsize                            4    1073741824\n"
    ),
    "proc/sys/kernel/osrelease": "6.12.48+deb13-amd64\n",
    "sys/module/zfs/version": "2.3.9-1\n",
    "sys/class/dmi/id/sys_vendor": "HP\n",
    "sys/class/dmi/id/product_name": "ProLiant MicroServer\n",
    "sys/class/net/lo/operstate": "unknown\n",
    "sys/class/net/eth0/operstate": "up\n",
    "sys/class/net/eth0/speed": "1000\n",
    "sys/class/net/eth0/duplex": "full\n",
    "sys/class/net/eth0/statistics/rx_bytes": "5000\n",
    "sys/class/net/eth0/statistics/tx_bytes": "7000\n",
    "sys/class/net/eth0/statistics/rx_errors": "2\n",
    "sys/class/net/eth0/statistics/tx_dropped": "1\n",
    "sys/class/net/eth1/operstate": "down\n",
    "sys/class/net/eth1/speed": "-1\n",
    "sys/block/sda/stat": "  100   0   8   9   50   0  16   9   0  0  0\n",
    "sys/block/sda/device/type": "0\n",
    "sys/block/nvme0n1/stat": "  100   0   2   9   50   0  4   9   0  0  0\n",
    "sys/block/nvme0n1/device/model": "x\n",
    "sys/block/zd0/stat": "  100   0   800   9   50   0  1600   9   0  0  0\n",
    "sys/block/sr0/stat": "",
    "sys/block/sr0/device/type": "5\n",
    "sys/class/hwmon/hwmon0/name": "k10temp\n",
    "sys/class/hwmon/hwmon0/temp1_input": "41250\n",
    "sys/class/hwmon/hwmon1/name": "drivetemp\n",
    "sys/class/hwmon/hwmon1/temp1_input": "33000\n",
    "sys/class/hwmon/hwmon2/name": "w83795g\n",
    "sys/class/hwmon/hwmon2/fan1_input": "812\n",
    "sys/class/hwmon/hwmon2/fan1_label": "chassis\n",
    "sys/class/hwmon/hwmon2/fan2_input": "0\n",
    "sys/class/hwmon/hwmon2/fan3_input": "",
}


@pytest.fixture
def root(tmp_path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def read(root: Path, **addresses: tuple[str, ...]):
    return read_box_info(addresses, "2.3.9-1", root)


def test_box_is_read_from_its_files(root):
    found = read(root, eth0=("192.168.1.5/24",))
    assert (found.model, found.cores) == ("HP ProLiant MicroServer", 2)
    assert found.processor == "AMD Turion(tm) II Neo N54L Dual-Core Processor"
    assert (found.system, found.kernel) == ("Debian GNU/Linux 13 (trixie)", "6.12.48+deb13-amd64")
    assert (found.uptime, found.load) == (93784.21, (0.52, 0.4, 0.31))
    assert found.boot == "1f0b6c1e-52a7-4a5d-9a43-f1f6b8d2c011"


def test_memory_tells_programs_arc_and_free_apart(root):
    found = read(root).memory
    assert found == Memory(4028176 * 1024, 2**30, 2**30)
    assert found.programs + found.arc + found.free == found.total


def test_ports_that_are_up_are_told_with_their_counters(root):
    assert read(root, eth0=("192.168.1.5/24",)).ports == (
        Port("eth0", ("192.168.1.5/24",), 1000, True, 5000, 7000, Counters(0, 2, 1)),
    )


def test_port_without_a_speed_says_so(root):
    (root / "sys/class/net/eth1/operstate").write_text("up\n")
    assert [port.speed for port in read(root).ports] == [1000, 0]


def test_traffic_is_that_of_all_disks_and_not_of_volumes_on_them(root):
    found = read(root)
    assert (found.disks_read, found.disks_written) == (10 * 512, 20 * 512)


def test_sensors_leave_out_disks_and_what_cannot_be_read_and_show_a_fan_that_stands_still(root):
    found = read(root)
    assert found.temperatures == (Sensor("k10temp temp1", 41),)
    assert found.fans == (Sensor("w83795g chassis", 812), Sensor("w83795g fan2", 0))


@pytest.mark.parametrize(
    ("module", "tools", "differ"),
    [
        ("2.3.9-1", "2.3.9-1", False),
        ("2.3.9-1", "2.3.9-2", False),
        ("2.3.8-1", "2.3.9-1", True),
        ("", "2.3.9-1", False),
    ],
)
def test_versions_differ_by_their_first_three_numbers(root, module, tools, differ):
    (root / "sys/module/zfs/version").write_text(module)
    assert read_box_info({}, tools, root).versions_differ is differ


def test_empty_box_tells_nothing_and_fails_nothing(tmp_path):
    found = read_box_info({}, "", tmp_path)
    assert (found.model, found.memory.total, found.ports, found.temperatures) == ("", 0, (), ())


@pytest.mark.parametrize("said", ["To Be Filled By O.E.M.", "Default string", ""])
def test_a_model_that_the_maker_did_not_fill_in_is_left_out(root, said):
    (root / "sys/class/dmi/id/product_name").write_text(said)
    assert read(root).model == "HP"
