"""What the box is and how it is doing: model, memory, versions, load, network ports, temperatures and fans.

Everything is read from /proc, /sys and /etc, as proc(5), sysfs(5) and the kernel's hwmon documentation describe them
(Documentation/hwmon/sysfs-interface). What a box does not tell is left empty.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import msgspec

from appliance import command
from appliance.system import network_port
from appliance.system.host_name import read_host_name
from appliance.system.mtu import MtuStatus, read_status
from appliance.system.network_port import Counters, Link
from appliance.system.time_sync import TimeSync
from appliance.system.time_zone import read_zone_name

NOT_SAID = {"", "To Be Filled By O.E.M.", "System Product Name", "System manufacturer", "Default string", "None"}
MODULE_VERSION = Path("/sys/module/zfs/version")
VERSION = re.compile(r"(\d+\.\d+\.\d+)")


class Memory(msgspec.Struct, frozen=True):
    """Bytes. ``arc``: what ZFS keeps of files for reading again and gives back when programs need it; it is part of
    ``used`` for the kernel, and told separately here: ``programs`` + ``arc`` + ``free`` = ``total``."""

    total: int
    arc: int
    free: int

    @property
    def programs(self) -> int:
        return max(self.total - self.arc - self.free, 0)


class Port(msgspec.Struct, frozen=True):
    """A network port. ``speed`` in Mbit/s, 0 where unknown; ``received`` and ``sent`` in bytes since the
    start; ``frames``: how many passed and were lost since then; ``link``: what both ends of the cable offer,
    of a wired port that tells."""

    name: str
    addresses: tuple[str, ...]
    speed: int
    full_duplex: bool
    received: int
    sent: int
    frames: Counters = Counters(0, 0, 0)  # rows of an older Larder have none
    link: Link | None = None
    mtu: MtuStatus | None = None

    @property
    def link_text(self) -> str:
        """Why the link is not as fast as the port can be; empty where it is, or where that is not known."""
        if self.link is None or not 0 < self.link.speed < self.link.supported:
            return ""
        return network_port.describe_slow(self.link)


class Sensor(msgspec.Struct, frozen=True):
    """A temperature in °C, or a fan in turns a minute."""

    name: str
    value: int


class BoxInfo(msgspec.Struct, frozen=True):
    """All of it at one moment. ``boot``: the id of this start; ``uptime`` in seconds;
    ``has_systemd``: no container, so that name and clock can be set."""

    boot: str
    model: str
    processor: str
    cores: int
    system: str
    kernel: str
    zfs_module: str
    zfs_tools: str
    uptime: float
    load: tuple[float, float, float]
    memory: Memory
    ports: tuple[Port, ...] = ()
    temperatures: tuple[Sensor, ...] = ()
    fans: tuple[Sensor, ...] = ()
    host_name: str = ""
    time_zone: str = ""
    has_systemd: bool = False
    time_sync: TimeSync | None = None
    disks_read: int = 0  # bytes since the start, of all disks together
    disks_written: int = 0

    @property
    def versions_differ(self) -> bool:
        """Whether the ZFS module that runs is of another version than its tools: after an update, until a restart."""
        module, tools = VERSION.match(self.zfs_module), VERSION.match(self.zfs_tools)
        return bool(module and tools and module[1] != tools[1])


def read_box_info(addresses: dict[str, tuple[str, ...]], tools: str, root: Path = Path("/")) -> BoxInfo:
    """The box as it is now; ``addresses`` by port and ``tools``, the version of ZFS's commands, come from commands."""
    processors = re.findall(r"^model name\s*:\s*(.+)$", read_text(root / "proc/cpuinfo"), re.MULTILINE)
    system = re.search(r'^PRETTY_NAME="?([^"\n]*)', read_text(root / "etc/os-release"), re.MULTILINE)
    disks_read, disks_written = read_disk_traffic(root / "sys/block")
    load = [float(word) for word in read_text(root / "proc/loadavg").split()[:3]] or [0.0, 0.0, 0.0]
    return BoxInfo(
        boot=read_text(root / "proc/sys/kernel/random/boot_id"),
        model=read_model(root / "sys/class/dmi/id"),
        processor=" ".join(processors[0].split()) if processors else "",
        cores=len(processors) or os.cpu_count() or 1,
        system=system[1] if system else "",
        kernel=read_text(root / "proc/sys/kernel/osrelease"),
        zfs_module=read_text(root / "sys/module/zfs/version"),
        zfs_tools=tools,
        uptime=float((read_text(root / "proc/uptime") or "0").split()[0]),
        load=(load[0], load[1], load[2]),
        memory=read_memory(root),
        ports=tuple(read_ports(root / "sys/class/net", addresses)),
        temperatures=tuple(read_sensors(root / "sys/class/hwmon", "temp", 1000)),
        fans=tuple(read_sensors(root / "sys/class/hwmon", "fan", 1)),
        host_name=read_host_name(root / "etc/hostname"),
        time_zone=read_zone_name(root / "etc/localtime"),
        has_systemd=(root / "run/systemd/system").is_dir(),
        disks_read=disks_read,
        disks_written=disks_written,
    )


def read_text(path: Path) -> str:
    """A short file without its line end; empty where it cannot be read."""
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return ""


def read_number(path: Path) -> int:
    """A file with one number; 0 where it holds something else."""
    text = read_text(path)
    return int(text) if text.lstrip("-").isdigit() else 0


def read_model(folder: Path) -> str:
    """What the maker calls the box: ``HP ProLiant MicroServer``."""
    maker, product = (read_text(folder / name) for name in ("sys_vendor", "product_name"))
    words = [word for word in (maker, product) if word not in NOT_SAID]
    if len(words) == 2 and words[1].startswith(words[0]):
        return words[1]
    return " ".join(words)


def read_memory(root: Path) -> Memory:
    """From meminfo and ZFS's arcstats."""
    found = dict(re.findall(r"^(\w+):\s+(\d+) kB$", read_text(root / "proc/meminfo"), re.MULTILINE))
    arc = re.search(r"^size\s+\d+\s+(\d+)$", read_text(root / "proc/spl/kstat/zfs/arcstats"), re.MULTILINE)
    return Memory(
        int(found.get("MemTotal", 0)) * 1024,
        int(arc[1]) if arc else 0,
        int(found.get("MemAvailable", 0)) * 1024,
    )


def read_ports(folder: Path, addresses: dict[str, tuple[str, ...]]) -> list[Port]:
    """Every port but the loopback that is up or has an address."""
    found = []
    for place in sorted(folder.iterdir()) if folder.is_dir() else ():
        if place.name == "lo" or not (read_text(place / "operstate") == "up" or addresses.get(place.name)):
            continue
        counters = place / "statistics"
        found.append(
            Port(
                place.name,
                addresses.get(place.name, ()),
                max(read_number(place / "speed"), 0),
                read_text(place / "duplex") != "half",
                read_number(counters / "rx_bytes"),
                read_number(counters / "tx_bytes"),
                network_port.read_counters(place),
                network_port.read_link(place.name) if network_port.is_watched(place) else None,
                read_status(place.name) if network_port.is_watched(place) else None,
            )
        )
    return found


def read_disk_traffic(folder: Path) -> tuple[int, int]:
    """Bytes read from and written to all disks since the start; counters in memory, so no disk wakes.

    In ``stat`` (Documentation/block/stat.rst) the third and seventh number are sectors of 512 bytes. Volumes and loops,
    which lie on disks themselves, have no ``device``.
    """
    counted = [
        read_text(place / "stat").split()
        for place in (folder.iterdir() if folder.is_dir() else ())
        if (place / "device").exists()
    ]
    known = [words for words in counted if len(words) >= 7]
    return sum(int(words[2]) * 512 for words in known), sum(int(words[6]) * 512 for words in known)


def read_sensors(folder: Path, kind: str, divisor: int) -> list[Sensor]:
    """The sensors of a kind (``temp``, ``fan``) with what their chips call them.
    Disks are left out: they have a page."""
    found = []
    for chip in sorted(folder.iterdir()) if folder.is_dir() else ():
        name = read_text(chip / "name")
        if name in {"drivetemp", "nvme"}:
            continue
        for file in sorted(chip.glob(f"{kind}*_input")):
            label = read_text(chip / file.name.replace("_input", "_label")) or file.name.removesuffix("_input")
            if read_text(file).lstrip("-").isdigit():  # a sensor with nothing connected gives an error
                found.append(Sensor(f"{name} {label}".strip(), round(read_number(file) / divisor)))
    return found


def read_tools_version() -> str:
    """The version of ZFS's commands: the first line of ``zfs version``, ``zfs-2.3.9-1``. Raises CommandFailed."""
    first = command.run(["zfs", "version"], timeout=20).stdout.partition("\n")[0]
    return first.removeprefix("zfs-").strip()
