"""A scratch folder over SMB and NFS: its server and client, and that nothing of them is left."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from appliance.benchmarks import loopback_mount, scratch, scratch_claim
from appliance.benchmarks.prefill import Prefill
from appliance.benchmarks.run_program import CaseRunner
from appliance.benchmarks.scratch_claim import Claim
from appliance.errors import Failed
from appliance.shares import nfs
from tests.reasons import expect_refusal
from tests.unit.benchmarks.test_run_case import TOKEN, in_pool
from tests.unit.pools import shapes
from tests.unit.pools.test_create import Working

EXPORTED = "{path}  127.0.0.1(sync,wdelay,hide,no_subtree_check,sec=sys,rw,secure,no_root_squash,no_all_squash)\n"


@pytest.fixture
def folder(folders) -> Path:
    found = scratch.scratch_folder(TOKEN)
    found.mkdir(parents=True)
    return found


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    monkeypatch.setattr(loopback_mount, "SECONDS_BETWEEN_LOOKS", 0)


def test_nfs_export_is_for_the_box_only_and_in_no_file(commands, folder):
    loopback_mount.mount_folder("nfs", folder, TOKEN)
    serve, mount = commands.ran
    assert serve[:2] == ["exportfs", "-o"]
    assert {"no_root_squash", "secure"} <= set(serve[2].split(","))
    assert serve[-1] == f"127.0.0.1:{folder}"
    assert mount[-2:] == [f"127.0.0.1:{folder}", str(loopback_mount.client_mountpoint(TOKEN))]


def test_separate_samba_serves_with_a_password_that_is_in_no_argument(commands, folder, monkeypatch):
    monkeypatch.setattr(loopback_mount, "is_port_open", lambda _port: True)
    loopback_mount.mount_folder("smb", folder, TOKEN)
    assert commands.tools == ["smbpasswd", "smbd", "mount"]
    own = loopback_mount.samba_folder(TOKEN)
    password = (own / "credentials").read_text().split("password=")[1].strip()
    assert commands.given[0] == f"{password}\n{password}\n"
    assert not any(password in word for argv in commands.ran for word in argv)
    assert (own / "credentials").stat().st_mode & 0o077 == 0
    said = (own / "smb.conf").read_text()
    assert "hosts allow = 127.0.0.1" in said
    assert f"path = {folder}" in said
    assert f"port={said.split('smb ports = ')[1].split()[0]}," in commands.ran[2][4]


def test_samba_that_does_not_answer_fails(commands, folder, monkeypatch):
    monkeypatch.setattr(loopback_mount, "is_port_open", lambda _port: False)
    with pytest.raises(Failed, match="did not begin to serve"):
        loopback_mount.mount_folder("smb", folder, TOKEN)


def test_unmounting_nfs_removes_only_its_own_export(commands, folder, monkeypatch):
    released: list[str] = []
    commands.answers |= {
        "systemctl": "active\n",
        "exportfs": EXPORTED.format(path=folder) + EXPORTED.format(path="/tank/photos"),
    }
    monkeypatch.setattr(nfs, "release_files", released.append)
    loopback_mount.client_mountpoint(TOKEN).mkdir()
    monkeypatch.setattr(os.path, "ismount", lambda _path: False)
    loopback_mount.unmount_folder(folder, TOKEN)
    assert ["exportfs", "-u", f"127.0.0.1:{folder}"] in commands.ran
    assert not any("/tank/photos" in word for argv in commands.ran for word in argv)
    assert released == [str(folder)]
    assert not loopback_mount.client_mountpoint(TOKEN).exists()


def process(folders: Path, number: int, exe: str, cgroup: str) -> None:
    place = folders / "proc" / str(number)
    place.mkdir(parents=True)
    (place / "exe").symlink_to(exe)
    (place / "cgroup").write_text(f"0::/system.slice/{cgroup}\n")


def test_only_a_samba_of_the_agent_is_stopped(commands, folders, folder, monkeypatch):
    monkeypatch.setattr(loopback_mount, "PROC", folders / "proc")
    process(folders, 11, "/usr/sbin/smbd", "system-larder.slice/larder-agent.service/4711")
    process(folders, 12, "/usr/sbin/smbd", "smbd.service")
    process(folders, 13, "/usr/bin/python3", "system-larder.slice/larder-agent.service/4711")
    killed: list[tuple[int, int]] = []

    def kill(pid: int, what: int) -> None:
        killed.append((pid, what))
        (folders / "proc" / str(pid) / "exe").unlink()

    monkeypatch.setattr(os, "kill", kill)
    own = loopback_mount.samba_folder(TOKEN)
    own.mkdir(parents=True)
    for pid in (11, 12, 13):
        (own / f"{pid}.pid").write_text(f"{pid}\n")
    loopback_mount.stop_samba(own.with_name("nothing"))
    assert killed == []
    (own / "12.pid").unlink()
    loopback_mount.unmount_folder(folder, TOKEN)
    assert killed == [(11, signal.SIGTERM)]
    assert not own.exists()


@pytest.mark.parametrize(("listed", "stopped"), [("", True), (EXPORTED.format(path="/tank/photos"), False)])
def test_a_server_that_was_started_for_it_stops_unless_somebody_shares_something(
    commands, folders, monkeypatch, listed, stopped
):
    commands.answers |= {"systemctl": "active\n", "exportfs": listed, "zfs": "\n"}
    scratch_claim.write_claim(Claim(token=TOKEN, pool="tank", protocol="nfs", units=loopback_mount.UNITS))
    monkeypatch.setattr("appliance.zfs.status.read_pools", lambda: (shapes.single(),))
    scratch.clear_case(TOKEN, Working())
    assert (["systemctl", "stop", *loopback_mount.UNITS] in commands.ran) is stopped
    assert scratch_claim.read_claim(TOKEN) is None


def test_run_restarts_server_and_client_around_the_remount(commands, folder, monkeypatch):
    done: list[str] = []
    monkeypatch.setattr(loopback_mount, "unmount_folder", lambda *_which: done.append("end"))
    monkeypatch.setattr(loopback_mount, "mount_folder", lambda *which: done.append(f"begin {which[0]}"))
    monkeypatch.setattr(nfs, "is_running", lambda unit=nfs.UNIT: unit == "rpcbind.socket")
    commands.on_run = lambda argv: done.append(" ".join(argv[:2]))
    CaseRunner(in_pool(protocol="nfs").target, (), Prefill()).prepare_run(Working())
    assert done == ["end", "udevadm settle", "zfs unmount", "zfs mount", "systemctl start", "begin nfs"]
    kept = scratch_claim.read_claim(TOKEN)
    assert kept is not None
    assert (kept.protocol, kept.units) == ("nfs", (nfs.UNIT, "rpc-statd.service", "rpcbind.service"))


def test_shown_commands_write_to_the_mounted_folder():
    steps = in_pool(protocol="smb").build_steps(shapes.facts(shapes.single()))
    shown = next(step.command_text for step in steps if step.name == "run-1")
    assert "mount -t cifs" in shown
    assert f"--directory={loopback_mount.client_mountpoint(TOKEN)}" in shown
    assert "--end_fsync=1" in shown
    assert "password" not in shown


@pytest.mark.parametrize(
    ("changes", "code"),
    [({"warmups": 1}, "protocol-with-warm-up"), ({"workload": "resilver"}, "rebuild-without-redundancy")],
)
def test_case_that_cannot_use_a_protocol_is_refused(changes, code):
    with expect_refusal(code):
        in_pool(protocol="nfs", **changes)
