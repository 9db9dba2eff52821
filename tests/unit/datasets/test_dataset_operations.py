"""Operations on an existing dataset: settings, limits, renaming, mounting, destroying."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, get_args

import pytest
from msgspec.structs import replace

from appliance import command
from appliance.command import CommandFailed, Result
from appliance.datasets import dataset_detail, property_words
from appliance.datasets.destroy import DestroyDataset
from appliance.datasets.mount import MountDataset, UnmountDataset
from appliance.datasets.promote import PromoteDataset
from appliance.datasets.properties import InheritDatasetProperty, SetDatasetProperty
from appliance.datasets.rename import RenameDataset
from appliance.datasets.user_quotas import SetUserQuota
from appliance.datasets.volumes import CreateVolume, GrowVolume
from appliance.errors import Failed, Refused
from appliance.facts.box import Facts
from appliance.facts.copy_mark import CopyMark
from appliance.facts.datasets import Dataset, DatasetDetail, Property, SpaceUse
from appliance.facts.sharing import Share
from appliance.formatting import size_text
from appliance.operation import Operation, checked_plan
from appliance.shares import approved, discovery, publish, teardown
from appliance.zfs import mountpoints
from tests.reasons import codes
from tests.unit.made import box, dataset, recorded_text, shared
from tests.unit.pools.test_create import Working

TANK, PHOTOS, DEEP = dataset("tank"), dataset("tank/photos", used=5 * 2**20), dataset("tank/photos/deep")
ALL = (TANK, PHOTOS, DEEP)
GUID = PHOTOS.guid


def of(kind: type, **fields: Any) -> Any:
    return kind(**{"dataset": "tank/photos", "guid": GUID, **fields})


def facts(*datasets: Any, **more: Any) -> Facts:
    return box(datasets=datasets or ALL, **more)


def refusals(operation: Operation, found: Facts) -> list[str]:
    return codes(operation.check(found))


def run(operation: Operation, found: Facts) -> None:
    for step in checked_plan(operation, found).steps:
        step.run(Working())


EVERY = [
    of(SetDatasetProperty, name="atime", value="on"),
    of(InheritDatasetProperty, name="atime"),
    of(PromoteDataset),
    of(RenameDataset, parent="tank", name="pictures"),
    of(MountDataset),
    of(UnmountDataset),
    of(DestroyDataset),
    of(SetUserQuota, of="user", who="anna", size=1),
    of(GrowVolume, size=2**30),
]


@pytest.mark.parametrize("operation", EVERY, ids=lambda one: type(one).__name__)
def test_operations_refuse_renamed_replaced_or_destroyed_dataset(operation):
    assert refusals(operation, facts(TANK)) == ["folder-missing"]
    assert refusals(operation, facts(TANK, replace(PHOTOS, name="tank/new"))) == ["dataset-renamed"]
    assert refusals(operation, facts(TANK, replace(PHOTOS, guid=7))) == ["dataset-replaced"]


# --- settings ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("compression", "zstd", "compression=zstd"),
        ("quota", "10485760", "quota=10485760"),
        ("quota", "0", "quota=none"),
        ("recordsize", "1048576", "recordsize=1048576"),
    ],
)
def test_set_property_is_one_command(commands, name, value, shown):
    run(of(SetDatasetProperty, name=name, value=value), facts())
    assert commands.ran == [["zfs", "set", "--", shown, "tank/photos"]]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("compression", "zstd\n"),
        ("compression", ""),
        ("compression", "gzip-99"),
        ("quota", "-1"),
        ("quota", "10G"),
        ("quota", "9" * 19),
        ("quota", "²"),
        ("dedup", "on"),
        ("mountpoint", "/etc"),
        ("exec", "on"),
        ("larder:share", "{}"),
    ],
)
def test_set_property_refuses_unknown_properties_and_values(name, value):
    from appliance.agent.registry import decode_operation

    text = (
        f'{{"kind":"set-dataset-property","dataset":"tank/photos","guid":{GUID},"name":"{name}","value":{value!r}}}'
    ).replace("'", '"')
    with pytest.raises(Refused):
        decode_operation(text)


def test_set_property_refuses_limit_below_used_and_reservation_above_free():
    assert refusals(of(SetDatasetProperty, name="quota", value="1048576"), facts()) == ["limit-below-used"]
    too_much = of(SetDatasetProperty, name="reservation", value=str(2**50))
    assert refusals(too_much, facts()) == ["reservation-above-free"]


def test_disabling_sync_needs_review():
    assert of(SetDatasetProperty, name="sync", value="disabled").needs_review
    assert not of(SetDatasetProperty, name="sync", value="standard").needs_review


def test_inherit_refuses_property_without_own_value(commands):
    operation = of(InheritDatasetProperty, name="atime")
    own = replace(PHOTOS, properties={"atime": Property("on", "local")})
    above = replace(TANK, properties={"atime": Property("off", "local")})
    run(operation, facts(above, own))
    assert commands.ran == [["zfs", "inherit", "--", "atime", "tank/photos"]]
    assert "as in tank" in operation.plan(facts(above, own)).summary
    assert refusals(operation, facts()) == ["setting-inherited-already"]
    assert operation.probe("inherit", facts())
    assert not operation.probe("inherit", facts(above, own))
    with pytest.raises(Refused):
        of(InheritDatasetProperty, name="quota")


def test_inherit_leaves_a_source_that_pages_cannot_know_to_the_agent():
    unknown = replace(PHOTOS, properties={"readonly": Property("off", "unknown")})
    assert refusals(of(InheritDatasetProperty, name="readonly"), facts(TANK, unknown)) == []
    assert property_words.describe_source(unknown.properties["readonly"]) == "not known"


def test_every_property_that_can_be_set_has_words():
    assert set(property_words.KNOWN) == set(get_args(property_words.Name))


# --- who takes up space -------------------------------------------------------------------------------------------
def test_parse_space_use_reads_recorded_output():
    uses = list(dataset_detail.parse_space_use(recorded_text("zfs-userspace-2.3.9.txt").splitlines(), "user"))
    assert uses == [SpaceUse("user", "games", 3148288, 50 * 2**20), SpaceUse("user", "root", 1024)]


@pytest.mark.parametrize("who", ["", "-x", "a@b", "a=b", "Anna", "a\n", "a b", "9" * 11])
def test_quota_refuses_anything_but_user_group_or_number(who):
    with pytest.raises(Refused):
        of(SetUserQuota, of="user", who=who, size=1)


def test_quota_is_probed_by_what_zfs_reports(commands):
    operation = of(SetUserQuota, of="user", who="anna", size=5)
    run(operation, facts())
    assert commands.ran == [["zfs", "set", "--", "userquota@anna=5", "tank/photos"]]
    assert not operation.probe("set", facts())
    detail = DatasetDetail("tank/photos", GUID, uses=(SpaceUse("user", "anna", 1, 5),))
    assert operation.probe("set", facts(dataset_details=(detail,)))


# --- names and places -----------------------------------------------------------------------------------------------
RENAMED = [
    ["zfs", "unmount", "--", "tank/photos/deep"],
    ["zfs", "unmount", "--", "tank/photos"],
    ["zfs", "rename", "-u", "--", "tank/photos", "tank/pictures"],
    ["mount", "tank/pictures", "new"],
    ["mount", "tank/pictures/deep"],
]


def test_rename_moves_datasets_below(commands, mounts):
    operation = of(RenameDataset, parent="tank", name="pictures")
    run(operation, facts())
    assert commands.ran == RENAMED
    assert operation.probe("rename", facts(TANK, replace(PHOTOS, name="tank/pictures")))
    assert not operation.probe("rename", facts())


def test_rename_is_done_only_when_served_from_new_mountpoint(monkeypatch):
    operation = of(RenameDataset, parent="tank", name="pictures")
    setting = '{"smb":{"name":"photos","write":["anna"]}}'
    moved = replace(PHOTOS, name="tank/pictures", mountpoint="/tank/pictures", share=setting, share_source="local")
    monkeypatch.setattr(approved, "read_approved", lambda: frozenset({moved.guid}))
    before, after = (
        facts(TANK, moved, shares=(Share("smb", "photos", place),)) for place in ("/tank/photos", "/tank/pictures")
    )
    assert operation.probe("rename", before)
    assert not operation.probe("serve", before)
    assert operation.probe("serve", after)


MEDIA = shared(
    "tank/media",
    share='{"smb":{"name":"media","write":["anna"],"read":["ben"],"guest":"read"},'
    '"nfs":{"hosts":["10.0.0.0/8"],"write":false}}',
)
PLAIN = dataset("tank/plain")
OVER_SMB, OVER_NFS = Share("smb", "media", "/tank/media"), Share("nfs", "/tank/media", "/tank/media")


def below_media(name: str) -> Dataset:
    return replace(
        MEDIA, name=name, guid=GUID, share_source="inherited", share_from="tank/media", mountpoint=f"/{name}"
    )


def move_to(parent: str, name: str, dataset: str = "tank/photos") -> RenameDataset:
    return RenameDataset(dataset=dataset, guid=GUID, parent=parent, name=name)


def test_review_says_that_a_folder_is_shared_with_whom_at_its_new_place():
    found = facts(*ALL, MEDIA, shares=(OVER_SMB, OVER_NFS))
    plan = checked_plan(move_to("tank/media", "photos"), found)
    said = " ".join(plan.warnings)
    assert (
        "In its new place tank/photos is shared like tank/media: "
        "SMB as media-photos for anna, ben (read only), guests (read only); NFS for 10.0.0.0/8 (read only)."
    ) in said
    assert "Everybody in your network may read it, without a password." in said
    assert "The same goes for the folders below it" in said
    assert [step.name for step in plan.steps] == ["rename", "serve"]
    assert "keep their names" not in said


def test_review_of_a_move_is_another_one_where_the_share_of_the_new_place_has_changed():
    changed = replace(MEDIA, share='{"smb":{"name":"media","write":["ben"]}}')
    digests = {
        checked_plan(move_to("tank/media", "photos"), facts(*ALL, one, shares=(OVER_SMB,))).digest()
        for one in (MEDIA, changed)
    }
    assert len(digests) == 2


def test_move_below_a_share_that_nobody_uses_now_says_what_it_may_become():
    said = " ".join(checked_plan(move_to("tank/media", "photos"), facts(*ALL, MEDIA)).warnings)
    assert (
        "tank/media has share settings that are not in use now. Once they are, tank/photos is shared like it." in said
    )
    assert "is shared like tank/media:" not in said


def test_review_says_that_a_folder_is_no_longer_shared_at_its_new_place():
    inner = below_media("tank/media/inner")
    mine = Share("smb", "media-inner", inner.mountpoint)
    found = facts(TANK, MEDIA, inner, PLAIN, shares=(OVER_SMB, OVER_NFS, mine))
    plan = checked_plan(move_to("tank/plain", "inner", inner.name), found)
    said = " ".join(plan.warnings)
    assert "tank/media/inner is no longer shared over SMB and NFS: it inherits that from tank/media." in said
    assert "keep their names" not in said
    assert "folders below it" not in said
    assert plan.steps[-1].title == "Stop sharing it"


def test_review_of_another_name_below_the_same_share_says_what_its_share_is_called_then():
    inner = below_media("tank/media/inner")
    mine = Share("smb", "media-inner", inner.mountpoint)
    found = facts(TANK, MEDIA, inner, shares=(OVER_SMB, mine))
    said = " ".join(checked_plan(move_to("tank/media", "outer", inner.name), found).warnings)
    assert "The SMB share of tank/media/inner gets the name media-outer." in said
    assert "keep their names" not in said
    assert "is shared like" not in said


def test_review_of_a_folder_with_its_own_setting_says_nothing_about_shares_of_its_new_place():
    own = shared(guid=GUID)
    found = facts(TANK, own, MEDIA, shares=(OVER_SMB, Share("smb", "photos", "/tank/photos")))
    said = " ".join(checked_plan(move_to("tank/media", "photos"), found).warnings)
    assert "The shares keep their names." in said
    assert "shared like" not in said


def test_review_says_that_an_export_is_mounted_from_another_place_then():
    own = shared(guid=GUID, share='{"nfs":{"hosts":["10.0.0.7"]}}')
    found = facts(TANK, own, shares=(Share("nfs", "/tank/photos", "/tank/photos"),))
    said = " ".join(checked_plan(move_to("tank", "pictures"), found).warnings)
    assert "Its NFS path becomes /tank/pictures." in said
    assert "keep their names" not in said


def test_move_below_a_share_that_lets_root_in_needs_the_password():
    for root in (True, False):
        media = replace(MEDIA, share=f'{{"nfs":{{"hosts":["10.0.0.7"],"root":{str(root).lower()}}}}}')
        found = facts(*ALL, media, shares=(OVER_NFS,))
        operation = move_to("tank/media", "photos")
        assert operation.needs_proof(found, operation.plan(found)) is root


def test_moved_folder_that_inherits_is_done_only_when_served(monkeypatch):
    moved = below_media("tank/media/photos")
    monkeypatch.setattr(approved, "read_approved", lambda: frozenset({MEDIA.guid}))
    shares = (OVER_SMB, OVER_NFS)
    assert not move_to("tank/media", "photos").probe("serve", facts(TANK, MEDIA, moved, shares=shares))
    mine = tuple(Share(kind, "x", moved.mountpoint) for kind in ("smb", "nfs"))
    assert move_to("tank/media", "photos").probe("serve", facts(TANK, MEDIA, moved, shares=(*shares, *mine)))


def test_rename_disconnects_clients_before_and_serves_shares_after(commands, mounts, monkeypatch):
    served: list[object] = []
    monkeypatch.setattr(teardown, "serve_datasets", lambda datasets, _note: served.append(datasets))
    monkeypatch.setattr("appliance.zfs.status.read_datasets", lambda: ALL)
    run(of(RenameDataset, parent="tank", name="pictures"), facts(shares=(Share("smb", "photos", "/tank/photos"),)))
    assert commands.ran[0][0] == "smbcontrol"
    assert commands.ran[1:] == RENAMED
    assert served == [ALL]


@pytest.mark.parametrize("place", ["tank/pictures", "tank/pictures/deep"])
def test_rename_is_undone_if_new_mountpoint_is_blocked(commands, mounts, monkeypatch, place):
    """Somebody creates a link at the new mountpoint between the check and the mount."""

    def blocked(argv: list[str]) -> None:
        if argv[:2] == ["mount", place]:
            raise mountpoints.Blocked("A symbolic link is there")

    monkeypatch.setattr(teardown, "serve_datasets", lambda _datasets, _note: None)
    monkeypatch.setattr("appliance.zfs.status.read_datasets", lambda: ALL)
    commands.on_run = blocked
    with pytest.raises(Failed, match="symbolic link"):
        run(of(RenameDataset, parent="tank", name="pictures"), facts())
    assert commands.ran[-3:] == [
        ["zfs", "rename", "-u", "--", "tank/pictures", "tank/photos"],
        ["mount", "tank/photos"],
        ["mount", "tank/photos/deep"],
    ]


def test_rename_of_busy_folder_leaves_everything_mounted(commands, mounts, monkeypatch):
    def busy(argv: list[str]) -> None:
        if argv == ["zfs", "unmount", "--", "tank/photos"]:
            raise CommandFailed(Result(tuple(argv), 1, "", "cannot unmount: pool or dataset is busy", 0))

    monkeypatch.setattr(teardown, "serve_datasets", lambda _datasets, _note: None)
    monkeypatch.setattr(teardown, "programs_using", lambda _places: ["cp"])
    monkeypatch.setattr("appliance.zfs.status.read_datasets", lambda: ALL)
    commands.on_run = busy
    with pytest.raises(Failed, match="still in use"):
        run(of(RenameDataset, parent="tank", name="pictures"), facts())
    assert not any(argv[:2] == ["zfs", "rename"] for argv in commands.ran)
    assert commands.ran[-2:] == [["mount", "tank/photos"], ["mount", "tank/photos/deep"]]


def test_rename_of_a_volume_mounts_nothing(commands, mounts):
    volume = replace(PHOTOS, kind="volume", mounted=False, mountpoint="")
    run(of(RenameDataset, parent="tank", name="pictures"), facts(TANK, volume))
    assert commands.ran == [["zfs", "rename", "--", "tank/photos", "tank/pictures"]]


@pytest.mark.parametrize(
    ("parent", "name", "found", "code"),
    [
        ("tank", "photos", ALL, "dataset-name-unchanged"),
        ("tank", "FILMS", (*ALL, dataset("tank/films")), "dataset-exists"),
        ("tank/photos/deep", "x", ALL, "dataset-into-itself"),
        ("attic", "x", (*ALL, dataset("attic")), "parent-in-other-pool"),
        ("tank/gone", "x", ALL, "folder-missing"),
        ("tank/v", "x", (*ALL, dataset("tank/v", key_status="unavailable")), "dataset-locked"),
        (
            "tank/v",
            "x",
            (*ALL, dataset("tank/v", encryption="aes-256-gcm", encryption_root="tank/v")),
            "parent-encrypted",
        ),
    ],
)
def test_rename_refuses_an_unsuitable_name_or_parent(parent, name, found, code):
    assert code in refusals(of(RenameDataset, parent=parent, name=name), facts(*found))


@pytest.mark.parametrize("name", ["", "a/b", "a\n", "a\0", "..", "-r", "a@b", "рhotos", 'a"b', "a'b"])
def test_rename_refuses_invalid_name(name):
    with pytest.raises(Refused):
        of(RenameDataset, parent="tank", name=name)


@pytest.mark.parametrize("copied", ["tank/photos", "tank/photos/deep"])
@pytest.mark.parametrize("guid", [0, 7])
def test_rename_refuses_copies_and_what_holds_them(copied, guid):
    """At another place, a backup with other numbers could take a copy for its own and prune it."""
    mark = CopyMark(guid, raw=False).text
    found = (replace(one, copy_of=mark) if one.name == copied else one for one in ALL)
    assert refusals(of(RenameDataset, parent="tank", name="pictures"), facts(*found)) == ["copy-not-renamed"]


def test_rename_refuses_to_leave_encryption_root():
    inside = replace(PHOTOS, encryption="aes-256-gcm", encryption_root="tank")
    moved = of(RenameDataset, parent="tank/x", name="y")
    assert refusals(moved, facts(TANK, inside, dataset("tank/x"))) == ["key-of-other-parent"]


def test_unmount_of_busy_folder_names_its_user(commands, monkeypatch):
    from appliance import command

    def busy(argv: list[str]) -> None:
        raise command.CommandFailed(
            command.Result(tuple(argv), 1, "", "cannot unmount '/tank/photos': pool or dataset is busy", 0)
        )

    commands.on_run = busy
    monkeypatch.setattr(teardown, "programs_using", lambda _folders: ["rsync (process 811): /tank/photos"])
    with pytest.raises(Failed, match="rsync"):
        run(of(UnmountDataset), facts())


def test_unmount_stops_announcing_share(commands, monkeypatch):
    told: list[object] = []
    here = facts(TANK, replace(PHOTOS, mounted=False))
    monkeypatch.setattr(publish, "agreed_facts", lambda: here)
    monkeypatch.setattr(discovery, "announce_shares", told.append)
    monkeypatch.setattr("appliance.shares.teardown.close_shares", lambda _shares: None)
    run(of(UnmountDataset), facts(shares=(Share("smb", "photos", "/tank/photos"),)))
    assert told == [here.datasets]
    assert commands.ran == [["zfs", "unmount", "--", "tank/photos"]]


def test_promote_refuses_anything_but_clone(commands):
    assert refusals(of(PromoteDataset), facts()) == ["dataset-not-clone"]
    run(of(PromoteDataset), facts(TANK, replace(PHOTOS, origin="tank/old@monday")))
    assert commands.ran == [["zfs", "promote", "tank/photos"]]


def test_mount_refuses_place_outside_pool_and_links(commands, mounts):
    unmounted = replace(PHOTOS, mounted=False)
    outside, locked = replace(unmounted, mountpoint="/etc"), replace(unmounted, key_status="unavailable")
    assert refusals(of(MountDataset), facts(TANK, outside)) == ["mountpoint-outside-pool"]
    assert refusals(of(MountDataset), facts(TANK, locked)) == ["dataset-locked"]
    commands.on_run = lambda _argv: (_ for _ in ()).throw(mountpoints.Blocked("A symbolic link is there"))
    with pytest.raises(Failed, match="symbolic link"):
        run(of(MountDataset), facts(TANK, unmounted))
    assert commands.ran == [["mount", "tank/photos"]]


def test_mount_sets_canmount_on(commands, mounts, monkeypatch):
    monkeypatch.setattr(publish, "republish_quietly", lambda _work: None)
    run(of(MountDataset), facts(TANK, replace(PHOTOS, mounted=False, canmount="noauto")))
    assert commands.ran == [["mount", "tank/photos"], ["zfs", "set", "-u", "canmount=on", "tank/photos"]]


# --- its end --------------------------------------------------------------------------------------------------------
def detail(**changes: Any) -> tuple[DatasetDetail]:
    return (
        DatasetDetail(**{"name": "tank/photos", "guid": GUID, "snapshots": 2, "named": ("tank/photos@a",), **changes}),
    )


def test_parse_clones_reads_recorded_dry_run():
    lines = recorded_text("zfs-destroy-dry-2.3.9.txt").splitlines()
    assert dataset_detail.parse_clones(lines, "datasetsp/films") == ("datasetsp/copy",)
    text = recorded_text("zfs-snapshot-holds-2.3.9.txt")
    listed = dataset_detail.parse_snapshots(text.encode().splitlines())
    every, held = list(listed.newest), listed.held
    assert (len(every), held) == (2, ["datasetsp/films@monday"])


# ``zfs list -H -t snapshot -o name,userrefs,guid,larder:run -s creation``, of all that is in the pool.
SNAPSHOTS = """\
tank/photos@x	0	11	3f1a
tank/copy@keep	1	12	-
tank/copy@mine	0	13	-
tank/copy/sub@mine	0	14	-
tank/copyright@mine	0	15	-
"""
CLONES = ("tank/copy/sub", "tank/copy")


@pytest.fixture
def zfs(monkeypatch):
    """Answers as ZFS does: ``destroy -nvp -R`` with everything that goes, ``list -r`` with what
    the datasets named contain."""
    told = Zfs()
    monkeypatch.setattr(command, "run", told.run)
    monkeypatch.setattr(command, "read_lines", lambda argv, **_more: iter(told.list_snapshots(argv)))
    return told


class Zfs:
    clones: tuple[str, ...] = CLONES
    dry_fails = False

    def run(self, argv: list[str], *, accept: Collection[int] = (0,), **_more: Any) -> Result:
        if argv[1] != "destroy":
            return Result(tuple(argv), 0, "", "", 0.0)
        assert argv[2:] == ["-n", "-v", "-p", "-R", "--", "tank/photos"]
        going = [*self.clones, "tank/photos@x", "tank/photos"]
        result = Result(tuple(argv), int(self.dry_fails), "".join(f"destroy\t{name}\n" for name in going), "", 0.0)
        if result.status not in accept:
            raise CommandFailed(result)
        return result

    def list_snapshots(self, argv: list[str]) -> list[bytes]:
        named = argv[argv.index("--") + 1 :]
        assert argv[: argv.index("--")] == [
            *("zfs", "list", "-H", "-t", "snapshot", "-r", "-o", "name,userrefs,guid,larder:run", "-s", "creation")
        ]
        lines = SNAPSHOTS.splitlines()
        return [line.encode() for line in lines if any(line.startswith((f"{one}@", f"{one}/")) for one in named)]


def test_detail_covers_snapshots_of_clones(zfs):
    found = dataset_detail.read_detail(PHOTOS)
    assert found.clones == ("tank/copy", "tank/copy/sub")
    assert found.snapshots == 4
    assert found.named == ("tank/copy/sub@mine", "tank/copy@mine", "tank/copy@keep", "tank/photos@x")
    assert found.held == ("tank/copy@keep",)
    assert found.chosen == f"3 {12 + 13 + 14:x}"
    assert "snapshots-protected" in refusals(of(DestroyDataset, clones=True), facts(dataset_details=(found,)))


def test_detail_without_clones_lists_only_own_snapshots(zfs):
    zfs.clones = ()
    found = dataset_detail.read_detail(PHOTOS)
    assert (found.clones, found.named, found.held, found.chosen) == ((), ("tank/photos@x",), (), "")


def test_detail_is_not_read_if_dry_run_fails(zfs):
    zfs.dry_fails = True
    with pytest.raises(Failed):
        dataset_detail.read_detail(PHOTOS)


def test_destroy_lists_losses_and_asks_for_name(commands):
    found = facts(dataset_details=detail())
    plan = checked_plan(of(DestroyDataset), found)
    assert [loss.what for loss in plan.losses] == ["the folder tank/photos", "the folder tank/photos/deep"]
    assert plan.type_to_confirm == "tank/photos"
    assert plan.details["Space freed"] == size_text(5 * 2**20)
    run(of(DestroyDataset), found)
    assert commands.ran == [["zfs", "destroy", "-r", "--", "tank/photos"]]


@pytest.mark.parametrize(
    ("details", "code"),
    [
        ((), "destroy-preview-missing"),
        (detail(held=("tank/photos@a",)), "snapshots-protected"),
        (detail(clones=("tank/copy",)), "clones-depend-on-dataset"),
    ],
)
def test_destroy_refuses_unread_details_holds_and_clones(details, code):
    assert refusals(of(DestroyDataset), facts(dataset_details=details)) == [code]


def test_destroy_does_not_give_the_end_of_a_listing_as_the_number_of_protected_snapshots():
    held = tuple(f"tank/photos@s{number}" for number in range(dataset_detail.MOST_NAMED))
    for count, said in ((3, "3 of its snapshots"), (len(held), "at least 40 of its snapshots")):
        reasons = of(DestroyDataset).check(facts(dataset_details=detail(held=held[:count])))
        assert [said in reason.text for reason in reasons] == [True]


@pytest.mark.parametrize(("count", "said"), [(5, "tank/c3, tank/c4."), (8, "tank/c3, tank/c4 and 3 more.")])
def test_destroy_says_how_many_clones_it_does_not_name(count, said):
    found = facts(dataset_details=detail(clones=tuple(f"tank/c{number}" for number in range(count))))
    (reason,) = of(DestroyDataset).check(found)
    assert said in reason.text


def test_destroy_includes_clones_only_if_agreed(commands):
    found = facts(*ALL, dataset("tank/copy", used=2**20), dataset_details=detail(clones=("tank/copy",)))
    plan = checked_plan(of(DestroyDataset, clones=True), found)
    assert "the folder tank/copy" in [loss.what for loss in plan.losses]
    assert plan.details["Space freed"] == size_text(6 * 2**20)
    run(of(DestroyDataset, clones=True), found)
    assert commands.ran == [["zfs", "destroy", "-R", "--", "tank/photos"]]


def test_new_folder_changes_destroy_digest():
    before = of(DestroyDataset).plan(facts(dataset_details=detail())).digest()
    assert of(DestroyDataset).plan(facts(*ALL, dataset("tank/photos/new"), dataset_details=detail())).digest() != before
    assert of(DestroyDataset).plan(facts(dataset_details=detail(snapshots=3))).digest() == before
    # A snapshot taken by hand after the review counts, one taken by a schedule does not.
    assert of(DestroyDataset).plan(facts(dataset_details=detail(snapshots=3, chosen="1 5f"))).digest() != before


def test_parse_snapshots_separates_manual_snapshots():
    def listed(*lines: str) -> dataset_detail.SnapshotListing:
        return dataset_detail.parse_snapshots(line.encode() for line in lines)

    by_hand, policy = "tank/a@mine\t0\t18446744073709551615\t-", "tank/a@larder-hourly\t0\t5\t3f1a"
    assert listed(policy).manual_digest == ""
    assert listed(by_hand).manual_digest == listed(policy, by_hand, policy).manual_digest == "1 ffffffffffffffff"
    assert listed(by_hand, "tank/a@other\t1\t7\t-").manual_digest == "2 6"
    assert listed(by_hand, "tank/a@other\t1\t7\t-").held == ["tank/a@other"]


def test_parse_snapshots_keeps_only_newest_names():
    found = dataset_detail.parse_snapshots(f"tank/a@{number}\t1\t{number}\t-".encode() for number in range(100_000))
    assert (found.count, len(found.newest), len(found.held)) == (100_000, 40, 40)
    assert found.newest[-1] == "tank/a@99999"


def test_destroy_stops_shares_first_and_lists_them(commands, monkeypatch):
    left: list[list[str]] = []
    monkeypatch.setattr(teardown, "serve_datasets", lambda datasets, _note: left.append([one.name for one in datasets]))
    monkeypatch.setattr("appliance.zfs.status.read_datasets", lambda: ALL)
    found = facts(
        shares=(Share("smb", "deep", "/tank/photos/deep"), Share("smb", "other", "/tank/photosque")),
        dataset_details=detail(),
    )
    plan = checked_plan(of(DestroyDataset), found)
    assert plan.details["Shares"] == "deep"
    for step in plan.steps:
        step.run(Working())
    assert left == [["tank"]]
    assert [argv[0] for argv in commands.ran] == ["smbcontrol", "zfs"]


def test_destroy_refuses_pool():
    operation = DestroyDataset(dataset="tank", guid=TANK.guid)
    assert refusals(operation, facts()) == ["dataset-is-pool"]


# --- volumes --------------------------------------------------------------------------------------------------------
def volume(**changes: Any) -> CreateVolume:
    return CreateVolume(**{"parent": "tank", "name": "disk1", "size": 2**30, **changes})


@pytest.mark.parametrize(("thin", "more"), [(True, ["-s"]), (False, [])])
def test_create_volume_is_thin_or_thick(commands, thin, more):
    run(volume(thin=thin), facts())
    assert commands.ran == [
        ["zfs", "create", *more, "-o", "volblocksize=16384", "-V", "1073741824", "--", "tank/disk1"]
    ]


@pytest.mark.parametrize(
    "changes", [{"size": 5}, {"size": 2**30 + 1}, {"block": 3}, {"name": "a b"}, {"name": "a/b"}, {"size": 2**63 - 1}]
)
def test_create_volume_refuses_invalid_fields(changes):
    with pytest.raises(Refused):
        volume(**changes)


def test_create_volume_refuses_thick_and_warns_thin_without_room():
    small = facts(replace(TANK, available=2**29))
    assert refusals(volume(thin=False), small) == ["volume-without-room"]
    assert "disk fail" in volume().plan(small).warnings[0]


def test_grow_volume_refuses_smaller_size(commands):
    disk = dataset("tank/photos", kind="volume", volsize=2**30, properties={"volblocksize": Property("16384")})
    assert refusals(of(GrowVolume, size=2**29), facts(TANK, disk)) == ["volume-not-shrunk"]
    assert refusals(of(GrowVolume, size=2**30 + 5), facts(TANK, disk)) == ["volume-size-not-multiple"]
    run(of(GrowVolume, size=2**31), facts(TANK, disk))
    assert commands.ran == [["zfs", "set", "--", "volsize=2147483648", "tank/photos"]]
    assert of(GrowVolume, size=2**31).plan(facts(TANK, disk)).warnings == ()


def test_growing_a_disk_of_another_computer_says_how_that_sees_it():
    shared = dataset("tank/photos", kind="volume", volsize=2**30, share='{"iscsi":{"name":"vm"}}', share_source="local")
    (warning,) = of(GrowVolume, size=2**31).plan(facts(TANK, shared)).warnings
    assert "iscsiadm -m session --rescan" in warning
