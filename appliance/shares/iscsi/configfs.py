"""The kernel's iSCSI target (LIO) as a tree of folders, links and values in configfs: read
it, and carry out acts on it.

A value is written in one write without a newline: the kernel would take the newline for a part of a CHAP secret. A disk
says that it has a write cache where its device does (iblock_get_write_cache): ``write_cache`` of a disk, which is no
value of configfs, stands for that of the device. Only Larder's own objects are read. Values that only root may read are
left out where somebody else reads.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from appliance.errors import Failed
from appliance.message import Message
from appliance.shares.iscsi.part import PREFIX

BLOCK = Path("/sys/class/block")
ROOT = Path("/sys/kernel/config/target")
STORES = "core/iblock_5276"  # Larder's own group of disks; the number means nothing
STORE = re.compile(r"larder-[0-9a-f]{16}")
STORE_VALUES = (
    "enable",
    "udev_path",
    "info",
    "wwn/vpd_unit_serial",
    "attrib/block_size",
    "attrib/emulate_tpu",
    "attrib/emulate_tpws",
)
GROUP_VALUES = (
    "enable",
    "attrib/authentication",
    "attrib/generate_node_acls",
    "attrib/demo_mode_write_protect",
    "attrib/demo_mode_discovery",
    "attrib/cache_dynamic_acls",
    "dynamic_sessions",
)
CHAP_VALUES = ("userid", "password", "userid_mutual", "password_mutual")
ENTRY_VALUES = ("info", "attrib/authentication")
UNSET = {"", "NULL", "(null)"}
BACKED_BY = re.compile(r"iBlock device: (?P<name>[\w.-]+)")


@dataclass(frozen=True)
class Tree:
    """What is there, by paths below ``ROOT``. ``links`` are read as paths below it too."""

    folders: frozenset[str] = frozenset()
    values: Mapping[str, str] = field(default_factory=dict, repr=False)
    links: Mapping[str, str] = field(default_factory=dict)

    def below(self, path: str) -> list[str]:
        """The folders and links directly in a folder."""
        inside = f"{path}/"
        found = (one for one in (*self.folders, *self.links) if one.startswith(inside))
        return sorted(one for one in found if "/" not in one[len(inside) :])


@dataclass(frozen=True)
class TreeAct:
    """One change of the tree. ``kind``: mkdir, write, cache (write that of the device), link, unlink or rmdir;
    ``value`` is what is written or linked to."""

    kind: str
    path: str
    value: str = field(default="", repr=False)


def tidy_value(path: str, raw: str) -> str:
    """A value as it was written: the kernel shows some with words before them."""
    text = raw.strip("\n\0 ")
    if path.endswith("/vpd_unit_serial"):
        text = text.rpartition(": ")[2]
    return "" if text in UNSET else text


class Reader:
    """Collects parts of the tree. What disappears meanwhile is not there."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folders: set[str] = set()
        self.values: dict[str, str] = {}
        self.links: dict[str, str] = {}

    def names(self, path: str) -> list[str]:
        try:
            return sorted(os.listdir(self.root / path))  # noqa: PTH208  # names alone
        except OSError:
            return []

    def add_folder(self, path: str) -> None:
        self.folders.add(path)

    def add_values(self, path: str, names: Iterable[str]) -> None:
        for name in names:
            try:
                raw = (self.root / path / name).read_bytes().decode("ascii", errors="replace")
            except OSError:
                continue
            self.values[f"{path}/{name}"] = tidy_value(f"{path}/{name}", raw)

    def add_cache(self, store: str) -> None:
        """What the device of a disk says of its write cache."""
        if place := cache_file(self.values.get(f"{store}/info", "")):
            try:
                self.values[f"{store}/write_cache"] = place.read_text().strip()
            except OSError:
                return

    def add_links(self, path: str) -> None:
        for name in self.names(path):
            place = self.root / path / name
            if place.is_symlink():
                self.links[f"{path}/{name}"] = os.path.relpath(place.resolve(), self.root.resolve())

    def read_stores(self) -> None:
        for group in self.names("core"):
            own = [name for name in self.names(f"core/{group}") if STORE.fullmatch(name)]
            for name in own:
                self.add_folder(f"core/{group}/{name}")
                self.add_values(f"core/{group}/{name}", STORE_VALUES)
                self.add_cache(f"core/{group}/{name}")
            if own or f"core/{group}" == STORES:
                self.add_folder(f"core/{group}")

    def read_target(self, target: str) -> None:
        self.add_folder(target)
        for name in self.names(target):
            if not name.startswith("tpgt_"):
                continue
            group = f"{target}/{name}"
            self.add_folder(group)
            self.add_values(group, GROUP_VALUES)
            self.add_values(f"{group}/auth", CHAP_VALUES)
            for portal in self.names(f"{group}/np"):
                self.add_folder(f"{group}/np/{portal}")
            for lun in self.names(f"{group}/lun"):
                self.add_folder(f"{group}/lun/{lun}")
                self.add_links(f"{group}/lun/{lun}")
            for initiator in self.names(f"{group}/acls"):
                self.read_initiator(f"{group}/acls/{initiator}")

    def read_initiator(self, path: str) -> None:
        self.add_folder(path)
        self.add_values(path, ENTRY_VALUES)
        self.add_values(f"{path}/auth", CHAP_VALUES)
        for name in self.names(path):
            if name.startswith("lun_"):
                self.add_folder(f"{path}/{name}")
                self.add_values(f"{path}/{name}", ("write_protect",))
                self.add_links(f"{path}/{name}")


def cache_file(info: str) -> Path | None:
    """Where the device of a disk says whether it has a write cache; None where the disk has no device."""
    found = BACKED_BY.search(info)
    return BLOCK / found["name"] / "queue/write_cache" if found else None


def read_tree() -> Tree:
    """Larder's part of the tree, now; empty where the kernel's target is not loaded."""
    reader = Reader(ROOT)
    reader.read_stores()
    for name in reader.names("iscsi"):
        if name.startswith(PREFIX):
            reader.read_target(f"iscsi/{name}")
    return Tree(frozenset(reader.folders), reader.values, reader.links)


def carry_out(acts: Iterable[TreeAct]) -> None:
    """Carry out acts in order. What is there already, or gone already, is as it should be. Raises Failed."""
    for act in acts:
        try:
            apply_act(act, ROOT)
        except OSError as error:
            raise Failed(
                Message("The kernel refused {kind} {act_path}", kind=act.kind, act_path=act.path),
                os.strerror(error.errno or 0),
            ) from error


def apply_act(act: TreeAct, root: Path) -> None:
    place = root / act.path
    match act.kind:
        case "mkdir":
            place.mkdir(exist_ok=True)
        case "write":
            write_value(place, act.value)
        case "cache":
            device = cache_file((place.parent / "info").read_text())
            if device is None:
                raise OSError(errno.ENODEV, "the disk has no device")
            write_value(device, act.value)
        case "link":
            if not place.is_symlink():
                place.symlink_to(root / act.value)
        case "unlink":
            place.unlink(missing_ok=True)
        case "rmdir":
            if place.exists():
                place.rmdir()


def write_value(place: Path, value: str) -> None:
    handle = os.open(place, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(handle, value.encode("ascii"))
    finally:
        os.close(handle)
