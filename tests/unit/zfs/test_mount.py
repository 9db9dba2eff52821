from __future__ import annotations

import errno
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from appliance.command import CommandFailed, CommandTimedOut, Result
from appliance.datasets.create import CreateDataset
from appliance.datasets.encryption.unlock import UnlockAll, UnlockDataset
from appliance.datasets.mount import MountDataset
from appliance.datasets.rename import RenameDataset
from appliance.errors import Failed
from appliance.facts.box import Facts
from appliance.facts.datasets import Dataset, Snapshot
from appliance.files import traversal
from appliance.operation import checked_plan
from appliance.shares import publish
from appliance.shares.troubleshoot.fixes import RepublishShare
from appliance.snapshots.hold_clone import CloneSnapshot
from appliance.system import paths
from appliance.users.accounts import CreateAccount
from appliance.zfs import kstat, mount, mountpoints
from appliance.zfs.mount import Carried
from tests.unit.conftest import Commands
from tests.unit.made import box, dataset
from tests.unit.pools.test_create import Working

PLAIN = {
    "type": "filesystem",
    "mountpoint": "/tank",
    "canmount": "on",
    "mounted": "no",
    "keystatus": "-",
    "sharenfs": "off",
    "sharesmb": "off",
    "setuid": "off",
    "devices": "off",
}


def carried(name: str = "tank", *own: str, **values: str) -> Carried:
    """Made up: a dataset as it came, with what is set on itself."""
    merged = {**PLAIN, "mountpoint": f"/{name}", **values}
    return Carried(name, merged["type"], merged, frozenset(own or values))


@pytest.mark.parametrize("place", ["/tank", "/tank/photos", "/tank/a b"])
def test_below_its_own_folder_a_pool_may_be_mounted(place):
    assert mount.is_inside(place, "/tank")


@pytest.mark.parametrize(
    "place",
    [
        "/",
        "/etc",
        "/tankard",
        "/tank/../etc",
        "/tank/./x",
        "/tank//x",
        "/tank/\n",
        "/tank/\u202e",
        "tank",
        "",
        "none",
        "legacy",
        "/tank/a\\b",
        "/usr/tank",
        "/tank/$(id)",
    ],
)
def test_anywhere_else_it_may_not(place):
    assert not mount.is_inside(place, "/tank")


def test_a_plain_pool_needs_nothing():
    assert list(mount.neutralise_properties([carried(), carried("tank/photos")], "tank")) == []


def test_a_folder_that_wants_to_be_etc_is_no_longer_mounted_by_itself():
    commands = list(mount.neutralise_properties([carried(), carried("tank/x", mountpoint="/etc")], "tank"))
    assert commands == [["zfs", "set", "-u", "canmount=noauto", "tank/x"]]


@pytest.mark.parametrize(
    ("key", "value"),
    [("sharenfs", "on"), ("sharenfs", "rw=*"), ("sharesmb", "on"), ("setuid", "on"), ("devices", "on")],
)
def test_what_lends_rights_or_shares_itself_is_switched_off_at_the_top_and_where_it_is_set(key, value):
    found = [
        carried("tank", **{key: value}),
        carried("tank/own", key, **{key: value}),
        carried("tank/heir", "x", **{key: value}),
    ]
    assert list(mount.neutralise_properties(found, "tank")) == [
        ["zfs", "set", "-u", f"{key}=off", "tank"],
        ["zfs", "set", "-u", f"{key}=off", "tank/own"],
    ]


def test_a_volume_is_left_as_it_is():
    assert (
        list(
            mount.neutralise_properties(
                [carried("tank/v", type="volume", mountpoint="-", sharenfs="-", setuid="-")], "tank"
            )
        )
        == []
    )


@pytest.mark.parametrize("name", ["tank/-x\n", "tank/a;b", "tank/\u202e", "tank/../x"])
def test_a_dataset_whose_name_no_command_should_see_is_left_out(name):
    hostile = carried(name, mountpoint="/etc", sharenfs="on")
    assert list(mount.neutralise_properties([hostile], "tank")) == []
    assert list(mount.move_commands([hostile], "tank", former="tank", everything=True)) == []


def test_under_a_new_name_its_own_folder_follows():
    found = [carried("attic", mountpoint="/tank"), carried("attic/photos", "x", mountpoint="/tank/photos")]
    assert list(mount.move_commands(found, "attic", former="tank", everything=False)) == [
        ["zfs", "set", "-u", "mountpoint=/attic", "attic"]
    ]


def test_folders_elsewhere_are_brought_below_it_only_when_asked_for():
    found = [
        carried("tank", mountpoint="/srv"),
        carried("tank/etc", mountpoint="/etc"),
        carried("tank/in", mountpoint="/tank/in"),
    ]
    assert list(mount.move_commands(found, "tank", former="tank", everything=False)) == []
    assert list(mount.move_commands(found, "tank", former="tank", everything=True)) == [
        ["zfs", "set", "-u", "mountpoint=/tank", "tank"],
        ["zfs", "inherit", "mountpoint", "tank/etc"],
    ]


@pytest.fixture
def home(tmp_path, monkeypatch):
    """Pools are mounted below a folder of this test's own."""
    top = tmp_path.resolve()
    monkeypatch.setattr(paths, "POOLS", top)
    return top / "tank"


class Kernel:
    """Stands in for ZFS and the kernel: tells what datasets are, and notes where each was
    really mounted, links followed."""

    def __init__(self, commands: Commands, monkeypatch: pytest.MonkeyPatch) -> None:
        self.commands, self.datasets, self.at = commands, dict[str, Carried](), dict[str, str]()
        self.before_mount = lambda: None
        commands.on_run = self.run
        monkeypatch.setattr(
            traversal, "dataset_of", lambda handle: {at: name for name, at in self.at.items()}.get(link(handle), "")
        )
        monkeypatch.setattr(mountpoints, "begins_mount", lambda handle, _above: link(handle) in self.at.values())
        monkeypatch.setattr(mountpoints, "mounted_places", lambda: list(self.at.items()))
        monkeypatch.setattr(mount, "unmount_dataset", self.at.pop)

    def has(self, *datasets: Carried) -> tuple[Carried, ...]:
        self.datasets = {one.name: one for one in datasets}
        return datasets

    def run(self, argv: list[str]) -> None:
        if argv[:2] == ["zfs", "list"]:
            found = {one.name: one.values for name, one in self.datasets.items() if name in argv}
            said = {
                name: {"properties": {key: {"value": value} for key, value in values.items()}}
                for name, values in found.items()
            }
            self.commands.answers["zfs"] = json.dumps({"datasets": said})
        if argv[0] == "mount":
            self.before_mount()
            self.at[argv[-2]] = str(Path(argv[-1]).resolve())

    @property
    def mounted(self) -> list[str]:
        return [argv[-2] for argv in self.commands.ran if argv[0] == "mount"]


def link(handle: int) -> str:
    return str(Path(f"/proc/self/fd/{handle}").readlink())


@pytest.fixture
def kernel(commands, monkeypatch) -> Kernel:
    return Kernel(commands, monkeypatch)


def test_it_mounts_from_the_top_down_and_only_what_belongs_there(home, kernel):
    found = kernel.has(
        carried("tank/a/b", mountpoint=f"{home}/a/b"),
        carried("tank", mountpoint=f"{home}"),
        carried("tank/etc", mountpoint="/etc"),
        carried("tank/vault", mountpoint=f"{home}/vault", keystatus="unavailable"),
        carried("tank/off", mountpoint=f"{home}/off", canmount="off"),
        carried("tank/there", mountpoint=f"{home}/there", mounted="yes"),
        carried("tank/a", mountpoint=f"{home}/a"),
    )
    work = Working()
    mount.mount_all(found, "tank", read_only=False, work=work)
    assert kernel.mounted == ["tank", "tank/a", "tank/a/b"]
    assert kernel.at == {"tank": f"{home}", "tank/a": f"{home}/a", "tank/a/b": f"{home}/a/b"}
    assert any("tank/etc wants to be at /etc" in note for note in work.notes)
    assert any("tank/vault is encrypted" in note for note in work.notes)


def test_a_symbolic_link_in_the_way_is_not_followed(home, kernel, commands, tmp_path):
    """The parent's own files come into view when it is mounted; one of them may be a link to /etc."""
    outside = tmp_path / "outside"
    outside.mkdir()
    home.mkdir()
    (home / "a").symlink_to(outside)
    found = kernel.has(
        carried("tank", mountpoint=f"{home}"),
        carried("tank/a", mountpoint=f"{home}/a"),
        carried("tank/a/b", mountpoint=f"{home}/a/b"),
    )
    work = Working()
    mount.mount_all(found, "tank", read_only=False, work=work)
    assert kernel.mounted == ["tank"]
    assert ["zfs", "set", "-u", "canmount=noauto", "tank/a"] in commands.ran
    assert sum("symbolic link" in note for note in work.notes) == 2
    assert list(outside.iterdir()) == []


def test_read_only_it_lends_no_rights_and_changes_nothing(home, kernel, commands):
    found = kernel.has(carried("tank", mountpoint=f"{home}"))
    mount.mount_all(found, "tank", read_only=True, work=Working())
    (argv,) = [argv for argv in commands.ran if argv[0] == "mount"]
    assert {"ro", "nosuid", "nodev"} <= set(argv[argv.index("-o") + 1].split(","))
    assert not any(argv[:2] == ["zfs", "set"] for argv in commands.ran)


def fails_at(kernel: Kernel, name: str, error: Failed) -> None:
    """Have the mount of one dataset fail with that error."""

    def fail() -> None:
        if kernel.mounted[-1] == name:
            raise error

    kernel.before_mount = fail


def io_error() -> Failed:
    said = "mount: /tank/a: can't read superblock on tank/a."  # made up for ZFS; the words are those of mount(8)
    return CommandFailed(Result(("mount",), 32, "", said, 0))


@pytest.mark.parametrize("read_only", [False, True])
def test_one_folder_that_cannot_be_mounted_leaves_out_no_other(home, kernel, commands, read_only):
    found = kernel.has(*(carried(f"tank/{name}", mountpoint=f"{home}/{name}") for name in ("a", "b", "c")))
    fails_at(kernel, "tank/b", io_error())
    work = Working()
    assert mount.mount_all(found, "tank", read_only=read_only, work=work) == ("tank/b",)
    assert list(kernel.at) == ["tank/a", "tank/c"]
    assert any("tank/b could not be mounted: mount: /tank/a: can't read superblock" in note for note in work.notes)
    # It is tried again at the next start: what failed may be a disk that comes back.
    assert not any(argv[:2] == ["zfs", "set"] for argv in commands.ran)


@pytest.mark.parametrize("read_only", [False, True])
def test_folder_below_one_that_can_only_be_read_leaves_out_no_other(home, kernel, monkeypatch, read_only):
    """No place can be made in the parent (EROFS)."""
    make = os.mkdir

    def mkdir(name: str, *arguments: Any, **more: Any) -> None:
        if name == "a":
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        make(name, *arguments, **more)

    monkeypatch.setattr("os.mkdir", mkdir)
    found = kernel.has(*(carried(f"tank/{name}", mountpoint=f"{home}/{name}") for name in ("a", "b")))
    work = Working()
    assert mount.mount_all(found, "tank", read_only=read_only, work=work) == ("tank/a",)
    assert list(kernel.at) == ["tank/b"]
    assert "tank/a could not be mounted: Read-only file system" in work.notes


@pytest.mark.parametrize("read_only", [False, True])
def test_mounting_stops_where_zfs_does_not_answer_or_the_pool_has_stopped(home, kernel, monkeypatch, read_only):
    found = kernel.has(*(carried(f"tank/{name}", mountpoint=f"{home}/{name}") for name in ("a", "b")))
    fails_at(kernel, "tank/a", CommandTimedOut(["mount"], 120, None))
    with pytest.raises(CommandTimedOut):
        mount.mount_all(found, "tank", read_only=read_only, work=Working())
    fails_at(kernel, "tank/a", io_error())
    monkeypatch.setattr(kstat, "is_stopped", lambda pool: pool == "tank")
    with pytest.raises(CommandFailed):
        mount.mount_all(found, "tank", read_only=read_only, work=Working())
    assert kernel.mounted == ["tank/a", "tank/a"]


# --- the one mount ----------------------------------------------------------------------------------------------
def options_of(**values: str) -> str:
    return mount.mount_options({**PLAIN, **dict.fromkeys(mount.OPTIONS, "off"), **values}, read_only=False)


def test_mount_gives_the_options_that_zfs_mount_would():
    """Recorded with ZFS 2.3.9: what the kernel shows after ``zfs mount`` comes from these."""
    usual = options_of(atime="on", relatime="on", devices="on", exec="on", setuid="on")
    assert usual == "atime,relatime,dev,exec,rw,suid,nomand,zfsutil,mntpoint=/tank"
    strict = options_of(atime="on", readonly="on")
    assert strict == "atime,strictatime,nodev,noexec,ro,nosuid,nomand,zfsutil,mntpoint=/tank"
    # strictatime would switch atime on again
    assert options_of(relatime="on").startswith("noatime,nodev")
    assert options_of(mountpoint="/tank/a,suid").endswith("zfsutil")


def test_mount_goes_to_the_folder_by_descriptor(home, kernel, commands):
    kernel.has(carried("tank", mountpoint=f"{home}"))
    mount.mount_dataset("tank", Working())
    assert commands.ran[-1][:6] == ["mount", "-i", "-c", "-n", "-t", "zfs"]
    assert re.fullmatch(r"/proc/self/fd/[0-9]+/\.", commands.ran[-1][-1])


@pytest.mark.parametrize("target", ["../outside", "file", "gone"])
def test_mount_at_a_link_or_file_is_refused_and_leaves_nothing(home, kernel, tmp_path, target):
    (tmp_path / "outside").mkdir()
    home.mkdir()
    (home / "file").touch()
    (home / "a").symlink_to(target)
    kernel.has(carried("tank/a/b", mountpoint=f"{home}/a/b"), carried("tank/a", mountpoint=f"{home}/a"))
    for name in ("tank/a", "tank/a/b"):
        with pytest.raises(mountpoints.Blocked, match="symbolic link"):
            mount.mount_dataset(name, Working())
    assert kernel.mounted == []
    assert list((tmp_path / "outside").iterdir()) == []


def test_mount_whose_folder_is_swapped_for_a_link_meanwhile_is_undone(home, kernel, tmp_path):
    (tmp_path / "outside").mkdir()
    (home / "a").mkdir(parents=True)
    kernel.has(carried("tank/a", mountpoint=f"{home}/a"))

    def swap() -> None:
        (home / "a").rename(home / "moved")
        (home / "a").symlink_to(tmp_path / "outside")

    kernel.before_mount = swap
    with pytest.raises(mountpoints.Blocked, match="unmounted again"):
        mount.mount_dataset("tank/a", Working())
    assert kernel.at == {}


def test_mount_whose_folder_is_removed_as_soon_as_it_is_made_is_refused(home, kernel, monkeypatch):
    home.mkdir()
    kernel.has(carried("tank/a", mountpoint=f"{home}/a"))
    monkeypatch.setattr("os.mkdir", lambda *_arguments, **_more: None)
    with pytest.raises(mountpoints.Blocked, match="removed while"):
        mount.mount_dataset("tank/a", Working())


def test_mount_where_the_folder_of_all_pools_is_missing_says_so(home, kernel, monkeypatch):
    monkeypatch.setattr(paths, "POOLS", home / "gone")
    kernel.has(carried("tank", mountpoint=f"{home}/gone/tank"))
    with pytest.raises(Failed, match="where pools are mounted"):
        mount.mount_dataset("tank", Working())


def test_mount_that_fails_removes_the_folders_that_it_made(home, kernel, commands):
    home.mkdir()
    kernel.has(carried("tank/a", mountpoint=f"{home}/b/a"))

    def fail() -> None:
        raise CommandFailed(Result(("mount",), 32, "", "busy", 0))

    kernel.before_mount = fail
    with pytest.raises(Failed):
        mount.mount_dataset("tank/a", Working())
    assert list(home.iterdir()) == []


def test_new_folder_is_not_mounted_over_files_and_an_old_one_says_so(home, kernel):
    (home / "a").mkdir(parents=True)
    (home / "a/precious").touch()
    kernel.has(carried("tank/a", mountpoint=f"{home}/a"))
    with pytest.raises(mountpoints.Blocked, match="something at"):
        mount.mount_dataset("tank/a", Working(), new=True)
    with pytest.raises(mountpoints.Blocked, match="something at"):
        mountpoints.refuse_taken(f"{home}/a")
    work = Working()
    mount.mount_dataset("tank/a", work)
    assert any("hidden" in note for note in work.notes)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"mountpoint": "/etc"}, "outside the folder"),
        ({"mountpoint": "/srv/elsewhere"}, "outside the folder"),
        ({"mountpoint": "legacy"}, "no place"),
        ({"canmount": "off"}, "no place"),
        ({"keystatus": "unavailable"}, "locked"),
    ],
)
def test_mount_looks_itself_where_it_would_be(home, kernel, values, said):
    kernel.has(carried("tank", mountpoint=f"{home}"), carried("tank/a", **{"mountpoint": f"{home}/a", **values}))
    with pytest.raises(Failed, match=said):
        mount.mount_dataset("tank/a", Working())
    assert kernel.mounted == []


def test_mount_of_what_is_mounted_already_does_nothing(home, kernel):
    kernel.has(carried("tank", mountpoint=f"{home}", mounted="yes"))
    mount.mount_dataset("tank", Working())
    assert kernel.mounted == []


# --- where a pool's folders may be ----------------------------------------------------------------------------
def box_of(*datasets: Dataset) -> Facts:
    return box(datasets=(dataset("tank"), *datasets))


@pytest.mark.parametrize("place", ["/tank/x", "/mnt/pool/x", "/srv/films/x"])
def test_folders_may_be_where_root_has_put_the_pool_or_a_folder_of_it(place):
    known = (dataset("tank", mountpoint="/mnt/pool", mounted=False), dataset("tank/films", mountpoint="/srv/films"))
    assert mount.reason_against("tank/x", place, known) is None


@pytest.mark.parametrize("place", ["/etc", "/home/anna", "/srv/other", "/mnt", "/", "none", "/tank/../etc"])
def test_no_folder_may_be_anywhere_else(place):
    known = (dataset("tank", mountpoint="/mnt/pool"), dataset("tank/films", mountpoint="/srv/films"))
    reason = mount.reason_against("tank/x", place, known)
    assert reason
    assert reason.code == "mountpoint-outside-pool"


def test_pool_that_carries_the_system_gives_no_leave_among_its_folders():
    known = (dataset("rpool", mountpoint="/"), dataset("rpool/home", mountpoint="/home"))
    assert mount.reason_against("rpool/x", "/etc/x", known)
    assert mount.reason_against("rpool/x", "/home/x", known)
    assert mount.reason_against("rpool/x", "/rpool/x", known) is None


LOCKED: dict[str, Any] = {
    "encryption": "aes-256-gcm",
    "key_status": "unavailable",
    "encryption_root": "tank/vault",
    "mounted": False,
}
VAULT = dataset("tank/vault", **LOCKED)
OUTSIDE = dataset("tank/vault/laptop", **LOCKED | {"mountpoint": "/etc"})
ELSEWHERE = dataset("tank/backup", mountpoint="/etc", mounted=False)
SHARED: dict[str, Any] = {"share": '{"nfs":{"hosts":["192.168.1.0/24"]}}', "share_source": "local"}
SNAPSHOT = Snapshot("tank/backup/x@s", 7, 1, dataset().created)


@pytest.mark.parametrize(
    ("operation", "known"),
    [
        (CreateDataset(parent="tank/backup", name="x"), (ELSEWHERE,)),
        (CloneSnapshot(snapshot="tank/backup/x@s", guid=7, name="y"), (ELSEWHERE, dataset("tank/backup/x"))),
        (
            RenameDataset(dataset="tank/photos", guid=dataset().guid, parent="tank/backup", name="photos"),
            (ELSEWHERE, dataset()),
        ),
        (MountDataset(dataset="tank/backup", guid=ELSEWHERE.guid), (ELSEWHERE,)),
        (RepublishShare(dataset="tank/backup", protocol="nfs"), (replace(ELSEWHERE, **SHARED),)),
        (CreateAccount(name="anna", home="tank/backup"), (ELSEWHERE,)),
    ],
    ids=lambda one: type(one).__name__ if not isinstance(one, tuple) else "",
)
def test_operation_that_would_mount_outside_the_pools_folder_is_refused(operation, known):
    facts = replace(box_of(*known), snapshots=(SNAPSHOT,))
    said = " ".join(reason.text for reason in operation.check(facts))
    assert "outside the folder of its pool" in said


def test_unlock_leaves_out_what_wants_to_be_outside_and_says_so(mounts, monkeypatch):
    monkeypatch.setattr(publish, "republish_quietly", lambda _work: None)
    facts = box_of(VAULT, OUTSIDE)
    for operation in (UnlockDataset(dataset="tank/vault"), UnlockAll(datasets=("tank/vault",))):
        mounts.ran.clear()
        plan, work = checked_plan(operation, facts), Working()
        assert any("The mountpoint of tank/vault/laptop is /etc" in text for text in plan.warnings)
        for step in plan.steps:
            step.run(work)
        assert [argv for argv in mounts.ran if argv[0] == "mount"] == [["mount", "tank/vault"]]
        assert any("The mountpoint of tank/vault/laptop is /etc" in note for note in work.notes)
    done = box_of(replace(VAULT, key_status="available", mounted=True), replace(OUTSIDE, key_status="available"))
    assert UnlockDataset(dataset="tank/vault").probe("mount", done)


def test_unlock_mounts_what_it_can_where_one_folder_is_blocked(mounts, monkeypatch):
    def blocked(argv: list[str]) -> None:
        if argv == ["mount", "tank/vault/a"]:
            raise mountpoints.Blocked("A symbolic link is there")

    monkeypatch.setattr(publish, "republish_quietly", lambda _work: None)
    mounts.on_run = blocked
    facts = box_of(VAULT, *(dataset(f"tank/vault/{name}", **LOCKED) for name in ("a", "a/deep", "b")))
    plan = checked_plan(UnlockDataset(dataset="tank/vault"), facts)
    with pytest.raises(Failed, match="tank/vault/a was not mounted: A symbolic link"):
        plan.steps[1].run(Working())
    assert mounts.ran == [["mount", "tank/vault"], ["mount", "tank/vault/a"], ["mount", "tank/vault/b"]]


def test_what_it_carries_is_read_with_what_is_its_own(commands):
    def prop(value: str, source: str) -> dict[str, Any]:
        return {"value": value, "source": {"type": source, "data": "-"}}

    listing = {
        "datasets": {
            "tank": {
                "properties": {
                    "type": prop("filesystem", "NONE"),
                    "mountpoint": prop("/etc", "RECEIVED"),
                    "canmount": prop("on", "DEFAULT"),
                    "sharenfs": prop("on", "INHERITED"),
                }
            }
        }
    }
    commands.answers["zfs"] = json.dumps(listing)
    (found,) = mount.foreign_properties("tank")
    assert found.mounts_itself
    assert found.own == {"mountpoint"}
    assert mount.mounted_elsewhere([found], "tank") == [found]
