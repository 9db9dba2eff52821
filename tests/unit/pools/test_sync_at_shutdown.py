"""The box restarts or is switched off while a pool has stopped."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest

from appliance import command
from appliance.command import CommandTimedOut
from appliance.pools import sync_at_shutdown
from appliance.zfs import kstat

# /proc/self/mounts of Debian 13 with OpenZFS 2.3.9, in part.
MOUNTS = """\
proc /proc proc rw,nosuid,nodev,noexec,relatime 0 0
/dev/vda1 / ext4 rw,relatime 0 0
tank /tank zfs rw,xattr,posixacl,casesensitive 0 0
usb/photos /usb/photos zfs rw,xattr,posixacl,casesensitive 0 0
/dev/sdf1 /media/stick\\040of\\040Ann vfat rw,relatime 0 0
"""


@pytest.fixture(autouse=True)
def the_box(monkeypatch, tmp_path):
    for pool, state in {"tank": "ONLINE", "usb": "SUSPENDED", "safe": "ONLINE"}.items():
        (tmp_path / "zfs" / pool).mkdir(parents=True)
        (tmp_path / "zfs" / pool / "state").write_text(f"{state}\n")
    (tmp_path / "mounts").write_text(MOUNTS)
    monkeypatch.setattr(kstat, "KSTAT", tmp_path / "zfs")
    monkeypatch.setattr(sync_at_shutdown, "MOUNTS", tmp_path / "mounts")
    monkeypatch.setattr(sync_at_shutdown, "SYSRQ", tmp_path / "sysrq")
    monkeypatch.setattr(sync_at_shutdown, "SECONDS_TO_END", 0.01)


def test_each_way_to_end_is_installed():
    install = (Path(__file__).parents[3] / "deploy" / "install").read_text()
    assert f"larder-shutdown@{{{','.join(sync_at_shutdown.ENDS)}}}.service" in install


class Kernel:
    """Notes what it is asked for. Its own end never comes here, as where a driver hangs."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    def reboot(self, number: ctypes.c_int) -> None:
        self.asked.append(number.value & 0xFFFFFFFF)


@pytest.fixture
def kernel(monkeypatch) -> Kernel:
    found = Kernel()
    monkeypatch.setattr(ctypes, "CDLL", lambda _name: found)
    return found


def test_without_a_stopped_pool_nothing_is_done(commands, kernel, tmp_path):
    (tmp_path / "zfs" / "usb" / "state").write_text("ONLINE\n")
    sync_at_shutdown.main("reboot")
    assert (commands.ran, kernel.asked) == ([], [])
    assert not sync_at_shutdown.SYSRQ.exists()


def test_all_but_the_stopped_pool_is_written_after_the_services_ended(commands, kernel):
    sync_at_shutdown.main("reboot")
    assert commands.ran == [
        ["systemctl", "stop", *sync_at_shutdown.SERVICES],
        ["zpool", "sync", "safe"],
        ["zpool", "sync", "tank"],
        ["journalctl", "--sync"],
        ["sync", "--file-system", "/"],
        ["sync", "--file-system", "/media/stick of Ann"],
    ]
    assert kernel.asked == [0x01234567]


@pytest.mark.parametrize(("kind", "number", "key"), [("poweroff", 0x4321FEDC, "o"), ("halt", 0xCDEF0123, "o")])
def test_each_way_to_end_asks_for_its_own_and_is_made_to_where_the_kernel_hangs(commands, kernel, kind, number, key):
    sync_at_shutdown.main(kind)
    assert kernel.asked == [number]
    assert sync_at_shutdown.SYSRQ.read_text() == key


def test_one_that_hangs_keeps_nothing_after_it_from_its_turn(monkeypatch, kernel):
    ran = list[tuple[str, ...]]()

    def hang(argv, timeout):
        ran.append(tuple(argv))
        raise CommandTimedOut(argv, timeout, pid=7)

    monkeypatch.setattr(command, "run", hang)
    sync_at_shutdown.main("reboot")
    assert len(ran) == 6
    assert kernel.asked == [0x01234567]
