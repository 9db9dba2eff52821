"""Serving a volume over iSCSI as an operation, and what takes the disk away again, with a kernel that is made up."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from appliance import operation as contract
from appliance.datasets.destroy import DestroyDataset
from appliance.datasets.encryption.keys import LockDataset
from appliance.datasets.rename import RenameDataset
from appliance.datasets.set_target import SetTarget
from appliance.errors import Failed
from appliance.facts.datasets import Dataset, DatasetDetail
from appliance.facts.sharing import Share
from appliance.pools.export_destroy import DestroyPool, ExportPool
from appliance.shares import approve, approved, publish, teardown
from appliance.shares.iscsi import chap, configfs, reconcile, serve, sessions, targets
from appliance.shares.iscsi.chap import Secrets
from appliance.shares.iscsi.part import PREFIX, Iscsi
from appliance.zfs import status
from tests.reasons import codes
from tests.unit.made import box, dataset, recorded_pool
from tests.unit.pools.test_create import Working
from tests.unit.shares.test_iscsi import DESK, carried_out, volume

PART = Iscsi(name="vm")
PLAIN = volume(share="", share_source="none")


def of(**changes: Any) -> SetTarget:
    return SetTarget(**{"dataset": "tank/vm", "guid": PLAIN.guid, "iscsi": PART, **changes})


class Kernel:
    """The kernel's tree in memory, and the volumes with their settings. ``refuses``: words of paths that it refuses."""

    def __init__(self) -> None:
        self.tree = configfs.Tree()
        self.volumes: dict[str, Dataset] = {PLAIN.name: PLAIN}
        self.refuses = ""

    def carry_out(self, acts: Any) -> None:
        wanted = list(acts)
        if self.refuses and any(self.refuses in act.path for act in wanted if act.kind == "mkdir"):
            raise Failed("The kernel refused mkdir")
        self.tree = carried_out([reconcile.TreeChange("", tuple(wanted))], self.tree)

    def on_run(self, argv: list[str]) -> None:
        name = argv[-1]
        if argv[:2] == ["zfs", "set"] and "larder:share=" in " ".join(argv):
            text = next(word for word in argv if word.startswith("larder:share=")).partition("=")[2]
            self.volumes[name] = replace(self.volumes[name], share=text, share_source="local")
        elif argv[:2] == ["zfs", "inherit"]:
            self.volumes[name] = replace(self.volumes[name], share="", share_source="none")

    @property
    def served(self) -> list[str]:
        return [one.name.removeprefix(PREFIX) for one in sessions.read_served()]


@pytest.fixture
def kernel(commands, monkeypatch, tmp_path) -> Kernel:
    return stand_in(commands, monkeypatch, tmp_path)


def stand_in(commands: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Kernel:
    """A kernel in place of this computer's, for volumes that are served."""
    found = Kernel()
    commands.on_run = found.on_run
    monkeypatch.setattr(configfs, "carry_out", found.carry_out)
    for module in (configfs, sessions):
        monkeypatch.setattr(module, "read_tree", lambda: found.tree)
    # The device of before and, once its mode has been set, the one after.
    monkeypatch.setattr(
        serve, "device_number", lambda _device: f"zd0 {sum('volmode=dev' in argv for argv in commands.ran)}"
    )
    monkeypatch.setattr(status, "read_datasets", lambda: tuple(found.volumes.values()))
    monkeypatch.setattr(publish, "tell_network", lambda *_more: None)
    monkeypatch.setattr(
        publish,
        "agreed_facts",
        lambda every=None: publish.only_agreed(
            box(datasets=tuple(every if every is not None else found.volumes.values())), approved.read_approved()
        ),
    )
    (tmp_path / "dbroot").write_text(f"{tmp_path}/target\n")
    monkeypatch.setattr(configfs, "ROOT", tmp_path)
    monkeypatch.setattr(approved, "FILE", tmp_path / "agreed-shares")
    monkeypatch.setattr(chap, "FOLDER", tmp_path / "chap")
    return found


def run(asked: SetTarget, *found: Dataset, secret: str = "") -> Working:
    work = Working()
    work.secret = lambda: secret  # type: ignore[method-assign]
    for step in contract.checked_plan(asked, box(datasets=found or (PLAIN,))).steps:
        step.run(work)
    return work


def test_volume_is_served_and_stopped_without_a_trace(kernel, commands, folders):
    work = run(of())
    assert kernel.served == ["vm"]
    assert ["modprobe", "-a", *serve.MODULES] in commands.ran
    assert ["zfs", "set", "volmode=dev", "tank/vm"] in commands.ran
    assert work.notes == ["tank/vm is served over iSCSI"]
    facts = box(datasets=(kernel.volumes["tank/vm"],), shares=sessions.read_served())
    assert of().probe("serve", facts)
    run(of(iscsi=None), kernel.volumes["tank/vm"])
    assert (kernel.tree.folders, kernel.served) == (frozenset(), [])
    assert approved.read_approved() == frozenset()
    assert not of().probe("serve", box(datasets=(kernel.volumes["tank/vm"],)))


def test_what_the_kernel_refuses_is_all_put_back(kernel, folders):
    kernel.refuses = "tpgt_1"
    with pytest.raises(Failed, match="is not served"):
        run(of())
    assert kernel.volumes["tank/vm"].share == ""
    assert approved.read_approved() == frozenset()
    assert kernel.served == []


@pytest.mark.parametrize(
    ("former", "argv"),
    [
        ("default\tdefault", ["zfs", "inherit", "volmode", "tank/vm"]),
        ("full\tinherited from tank", ["zfs", "inherit", "volmode", "tank/vm"]),
        ("full\treceived", ["zfs", "inherit", "-S", "volmode", "tank/vm"]),
        ("full\tlocal", ["zfs", "set", "volmode=full", "tank/vm"]),
        ("dev\tlocal", None),
    ],
)
def test_mode_of_a_volume_that_could_not_be_served_is_put_back(kernel, commands, folders, former, argv):
    kernel.refuses, mode = "tpgt_1", [former]

    def on_run(ran: list[str]) -> None:
        if "volmode=dev" in ran:
            mode[0] = "dev\tlocal"
        elif "volmode" not in ran:
            kernel.on_run(ran)
        commands.answers["zfs"] = f"{mode[0]}\n" if ran[:2] == ["zfs", "get"] else ""

    commands.on_run = on_run
    with pytest.raises(Failed, match="is not served"):
        run(of())
    changes = [ran for ran in commands.ran if ran[:2] in (["zfs", "set"], ["zfs", "inherit"]) and "volmode" in str(ran)]
    assert changes == ([["zfs", "set", "volmode=dev", "tank/vm"], argv] if argv else [])


def test_plan_shows_that_this_box_stops_looking_for_partitions():
    plan = of().plan(box(datasets=(PLAIN,)))
    assert plan.steps[-1].command_text.startswith("zfs set volmode=dev tank/vm\nwrite ")
    assert "no longer shows the partitions" in str(plan.warnings)
    stopped = of(iscsi=None).plan(box(datasets=(volume(),)))
    assert "volmode" not in stopped.steps[-1].command_text
    assert "does not read them" in str(stopped.warnings)
    assert "run as root: zfs inherit volmode tank/vm" in str(stopped.warnings)
    assert "volmode" not in str(of(iscsi=None).plan(box(datasets=(PLAIN,))).warnings)


def test_other_sectors_for_a_volume_in_use_are_warned_of():
    changed = of(iscsi=Iscsi(name="vm", block=4096))
    said = "cannot be read until you set 512 bytes again"
    assert said in str(changed.plan(box(datasets=(volume(),))).warnings)
    assert "sector size changes" not in str(of().plan(box(datasets=(volume(),))).warnings)
    assert "sector size changes" not in str(changed.plan(box(datasets=(PLAIN,))).warnings)


def test_secrets_are_kept_by_root_alone_and_put_back_after_a_failure(kernel, commands, folders):
    asked = of(iscsi=Iscsi(name="vm", user="desk"), new_secret=True)
    assert asked.wants_secret()
    run(asked, secret="secretsecret1")
    assert chap.read_secrets(PLAIN.guid) == Secrets("secretsecret1")
    assert "secretsecret1" not in str(commands.ran)
    assert "secretsecret1" not in kernel.volumes["tank/vm"].share
    kernel.refuses = "tpgt_1"
    with pytest.raises(Failed):
        run(asked, kernel.volumes["tank/vm"], secret="secretsecret2")
    assert chap.read_secrets(PLAIN.guid) == Secrets("secretsecret1")
    kernel.refuses = ""
    run(of(iscsi=None), kernel.volumes["tank/vm"])
    assert chap.read_secrets(PLAIN.guid) is None


def test_a_secret_for_each_way_has_to_come_along(kernel, folders):
    with pytest.raises(Failed, match="missing for one of the two ways"):
        run(of(iscsi=Iscsi(name="vm", user="desk", back_user="box"), new_secret=True), secret="secretsecret1")
    with pytest.raises(Failed, match="does not have the secret"):
        run(of(iscsi=Iscsi(name="vm", user="desk")))
    assert kernel.served == []


def test_one_volume_that_cannot_be_served_keeps_no_other_from_it(kernel, folders):
    run(of())
    other = volume("tank/other", iscsi={"name": "other"})
    kernel.volumes[other.name] = other
    approved.set_approved(other.guid, share=True)
    kernel.refuses = "larder:other/tpgt_1"
    notes: list[str] = []
    serve.serve_volumes(publish.agreed_facts(), insist=False, note=notes.append)
    assert kernel.served == ["vm"]
    assert "other is not served" in notes[0]
    with pytest.raises(Failed):
        serve.serve_volumes(publish.agreed_facts(), note=notes.append)
    serve.serve_volumes(publish.agreed_facts(), changed={"/dev/zvol/tank/vm"}, note=notes.append)
    kernel.refuses = ""
    serve.serve_volumes(publish.agreed_facts())
    assert sorted(kernel.served) == ["other", "vm"]


def test_a_volume_that_nobody_agreed_to_is_not_served(kernel, folders):
    kernel.volumes["tank/vm"] = volume()
    serve.serve_volumes(publish.agreed_facts())
    assert kernel.served == []
    assert kernel.tree.folders == frozenset()


def test_box_that_serves_no_volume_never_loads_the_kernels_target(kernel, commands, folders):
    serve.serve_volumes(box())
    assert commands.ran == []


def test_a_device_that_does_not_appear_is_waited_for_and_told(kernel, monkeypatch, folders):
    monkeypatch.setattr(serve, "device_number", lambda _device: "")
    monkeypatch.setattr(serve, "SECONDS_FOR_DEVICE", 0.3)
    with pytest.raises(Failed, match="did not appear"):
        run(of())
    assert kernel.tree.folders == frozenset()


@pytest.mark.parametrize(
    ("found", "code"),
    [
        ([dataset("tank/vm", guid=PLAIN.guid)], "iscsi-needs-volume"),
        ([replace(PLAIN, key_status="unavailable")], "dataset-locked"),
        ([PLAIN, volume("tank/other")], "target-name-taken"),
        ([PLAIN, volume("tank/other", iscsi={"name": "o", "addresses": ["192.168.1.1"]})], "portals-mixed"),
        ([replace(PLAIN, guid=7)], "dataset-replaced"),
        ([], "folder-missing"),
    ],
)
def test_it_refuses_what_could_not_be_served(found, code):
    assert code in codes(of().check(box(datasets=tuple(found))))


def test_sector_size_has_to_fit_the_volume():
    odd = replace(PLAIN, volsize=2**20 + 512)
    assert codes(of(iscsi=Iscsi(name="vm", block=4096)).check(box(datasets=(odd,)))) == [
        "volume-size-not-whole-sectors"
    ]


def test_without_chap_the_administrators_password_is_needed():
    facts = box(datasets=(PLAIN,))
    assert of().needs_proof(facts, of().plan(facts))
    closed = of(iscsi=Iscsi(name="vm", user="desk"))
    assert not closed.needs_proof(facts, closed.plan(facts))
    off = of(iscsi=None)
    assert not off.needs_proof(facts, off.plan(facts))


# --- who loses the disk ------------------------------------------------------------------------------------------
TANK = replace(recorded_pool(), name="tank")
SHARED = volume(encryption="on", encryption_root="tank/vm", key_status="available")
DETAIL = DatasetDetail("tank/vm", SHARED.guid)
CHANGES = [
    of(iscsi=None),
    DestroyDataset(dataset="tank/vm", guid=SHARED.guid),
    RenameDataset(dataset="tank/vm", guid=SHARED.guid, parent="tank", name="other"),
    LockDataset(dataset="tank/vm", guid=SHARED.guid),
    ExportPool(pool="tank", guid=TANK.guid),
    DestroyPool(pool="tank", guid=TANK.guid),
]


@pytest.mark.parametrize("asked", CHANGES, ids=lambda asked: type(asked).__name__)
def test_what_takes_a_disk_away_names_who_uses_it_and_is_agreed_to_only_with_them(asked):
    def plan(*open_by: str) -> contract.Plan:
        share = Share("iscsi", f"{PREFIX}vm", "/dev/zvol/tank/vm", open_by)
        known = box(pools=(TANK,), datasets=(dataset("tank"), SHARED), shares=(share,), dataset_details=(DETAIL,))
        return asked.plan(known)

    quiet, loud = plan(), plan(f"{DESK} (192.168.1.20)")
    assert DESK not in str(quiet.warnings)
    assert "sees its disk fail" in str(loud.warnings)
    assert DESK in str(loud.warnings)
    assert quiet.digest() != loud.digest()
    assert loud.digest() == plan(f"{DESK} (192.168.1.21)").digest(), "an address may change between two looks"


def test_a_closed_target_leaves_its_neighbour_alone(kernel, folders):
    run(of())
    other = volume("tank/other", iscsi={"name": "other"})
    kernel.volumes[other.name] = other
    approved.set_approved(other.guid, share=True)
    serve.serve_volumes(publish.agreed_facts())
    teardown.close_shares([share for share in sessions.read_served() if share.name.endswith(":vm")])
    assert kernel.served == ["other"]
    known = box(datasets=tuple(kernel.volumes.values()), shares=sessions.read_served())
    assert teardown.all_served(known, [other])
    assert not teardown.all_served(known, [kernel.volumes["tank/vm"]])


def brought_along(kernel: Kernel) -> contract.Step:
    """What serves two volumes that came with a pool."""
    kernel.volumes = {one.name: one for one in (volume(), volume("tank/other", iscsi={"name": "other"}))}
    known = box(pools=(TANK,), datasets=(dataset("tank"), *kernel.volumes.values()))
    (step,) = contract.checked_plan(approve.ApproveShares(pool="tank", guid=TANK.guid), known).steps
    return step


def test_volumes_that_a_pool_brought_along_are_served_all_or_none(kernel, folders):
    step, work = brought_along(kernel), Working()
    kernel.refuses = "other/tpgt_1"
    with pytest.raises(Failed, match=f"{PREFIX}other is not served"):
        step.run(work)
    assert (kernel.served, kernel.tree.folders) == ([], frozenset())
    assert approved.read_approved() == frozenset()
    assert not any("is served" in note for note in work.notes)
    kernel.refuses = ""
    step.run(work)
    assert kernel.served == ["other", "vm"]


def test_volume_that_was_served_before_stays_served_where_those_brought_along_are_put_back(kernel, folders):
    step, before = brought_along(kernel), volume("tank/before", iscsi={"name": "before"})
    kernel.volumes[before.name] = before
    approved.set_approved(before.guid, share=True)
    serve.serve_volumes(publish.agreed_facts())
    kernel.refuses = "other/tpgt_1"
    with pytest.raises(Failed, match=f"{PREFIX}other is not served"):
        step.run(Working())
    assert kernel.served == ["before"]


@pytest.mark.parametrize("asked", ["offers", "own"])
def test_trouble_of_putting_back_does_not_hide_why_serving_failed(kernel, folders, monkeypatch, asked):
    step = brought_along(kernel) if asked == "offers" else None
    real, work = serve.serve_volumes, Working()

    def fails_again(facts: Any, **more: Any) -> None:
        if more.get("insist") is False:
            raise Failed("What is no longer shared is still served")
        real(facts, **more)

    monkeypatch.setattr(serve, "serve_volumes", fails_again)
    kernel.refuses = "tpgt_1"
    with pytest.raises(Failed, match="is not served"):
        step.run(work) if step else run(of())
    assert approved.read_approved() == frozenset()
    assert step is None or "What is no longer shared is still served" in work.notes


def test_modes_of_volumes_brought_along_are_put_back_where_serving_them_failed(kernel, folders, monkeypatch):
    step, put_back = brought_along(kernel), list[tuple[str, object]]()
    monkeypatch.setattr(serve, "read_mode", lambda _volume: ("full", "local"))
    monkeypatch.setattr(serve, "put_mode_back", lambda name, mode: put_back.append((name, mode)))
    kernel.refuses = "other/tpgt_1"
    with pytest.raises(Failed, match=f"{PREFIX}other is not served"):
        step.run(Working())
    assert sorted(put_back) == [("tank/other", ("full", "local")), ("tank/vm", ("full", "local"))]


def test_volume_whose_device_cannot_be_opened_is_named(kernel, folders, monkeypatch):
    def refuses(volume: str, _device: str) -> None:
        if volume == "tank/other":
            raise Failed("The command zfs failed")

    step = brought_along(kernel)
    monkeypatch.setattr(serve, "open_device", refuses)
    with pytest.raises(Failed, match=f"{PREFIX}other is not served: The command zfs failed"):
        step.run(Working())


def test_volumes_that_came_with_a_pool_are_offered_unless_their_secret_stayed_behind():
    plain, with_chap = volume(), volume("tank/chap", iscsi={"name": "chap", "user": "desk"})
    known = box(pools=(TANK,), datasets=(dataset("tank"), plain, with_chap))
    assert [one.name for one, _setting in approve.offered_shares(known, "tank")] == ["tank/vm"]
    asked = approve.ApproveShares(pool="tank", guid=TANK.guid)
    assert asked.needs_proof(known, asked.plan(known))
    assert "erase tank/vm" in str(asked.plan(known).warnings)
    assert "partitions on tank/vm" in str(asked.plan(known).warnings)
    assert asked.plan(known).steps[0].command_text.startswith("zfs set volmode=dev tank/vm\n")
    served = Share("iscsi", f"{PREFIX}vm", "/dev/zvol/tank/vm")
    assert approve.offered_shares(replace(known, shares=(served,)), "tank") == []
    assert json.loads(plain.share)["iscsi"] == {"name": "vm"}
    assert targets.volume_part(plain) == PART
