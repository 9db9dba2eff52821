"""The reconciler of targets with the kernel's tree, and what a volume's setting may say."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.errors import Failed, Refused
from appliance.facts.sharing import Share
from appliance.shares import settings
from appliance.shares.iscsi import chap, configfs, part, reconcile, serve, sessions, targets
from appliance.shares.iscsi.chap import Secrets
from appliance.shares.iscsi.configfs import Tree, TreeAct
from appliance.shares.iscsi.part import PREFIX, Iscsi
from appliance.shares.iscsi.targets import Target
from tests.unit.made import box, dataset, recorded_text

DESK = "iqn.2007-10.com.github:sahlberg:libiscsi:me"
RECORDED = "lio-configfs-6.12.117.txt"
ONE = Target(
    f"{PREFIX}vm", "larder-00000000deadbeef", "/dev/zvol/scratch/vm", "00000000deadbeef", portals=("[::0]:3260",)
)
NAMED = replace(
    ONE,
    iqn=f"{PREFIX}named",
    store="larder-0000000000000002",
    device="/dev/zvol/scratch/two",
    serial="0000000000000002",
    initiators=(DESK,),
    user="anna",
    secret="secretsecret1",
)


def plant(root: Path) -> None:
    """The recorded tree as real folders, links and files."""
    for line in recorded_text(RECORDED).splitlines():
        kind, _space, rest = line.partition(" ")
        if kind == "D":
            (root / rest).mkdir(parents=True, exist_ok=True)
        elif kind == "L":
            path, _arrow, to = rest.partition(" -> ")
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).symlink_to(root / to.partition("target/")[2])
        elif kind == "F":
            path, _equals, value = rest.partition(" = ")
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(value.replace("~", "\n"))


@pytest.fixture
def kernel(tmp_path, monkeypatch) -> Path:
    plant(tmp_path)
    monkeypatch.setattr(configfs, "ROOT", tmp_path)
    cache = tmp_path / "block/zd0/queue/write_cache"
    cache.parent.mkdir(parents=True)
    cache.write_text("write back\n")
    monkeypatch.setattr(configfs, "BLOCK", tmp_path / "block")
    return tmp_path


def carried_out(changes: list[reconcile.TreeChange], tree: Tree) -> Tree:
    """What the kernel's tree is after the acts, which it refuses in a wrong order as the kernel would."""
    folders, values, links = set(tree.folders) | {"core", "iscsi"}, dict(tree.values), dict(tree.links)
    for act in (act for change in changes for act in change.acts):
        parent = act.path.rpartition("/")[0]
        grown = {"lun", "np", "acls", "attrib", "auth", "wwn"}  # made by the kernel itself
        known = {""} | folders | {f"{one}/{name}" for one in folders for name in grown}
        assert parent in known, f"{act} before its folder"
        if act.kind == "mkdir":
            folders.add(act.path)
        elif act.kind in {"write", "cache"}:
            values[act.path] = act.value
            if act.path.endswith("/control"):
                values[act.path.replace("/control", "/info")] = f"readonly: {act.value[-1]}"
        elif act.kind == "link":
            assert act.value in folders, f"{act} to nothing"
            assert not (act.path.startswith("core/"))
            links[act.path] = act.value
        elif act.kind == "unlink":
            del links[act.path]
        else:
            inside = [one for one in (*folders, *links) if one.startswith(f"{act.path}/")]
            assert inside == [], f"{act} with {inside} in it"
            assert act.path not in links.values(), f"{act} while it is used"
            folders.remove(act.path)
            values = {path: value for path, value in values.items() if not path.startswith(f"{act.path}/")}
    return Tree(frozenset(folders - {"core", "iscsi"}), values, links)


def kinds(changes: list[reconcile.TreeChange]) -> list[tuple[str, str]]:
    return [(act.kind, act.path) for change in changes for act in change.acts]


def test_nothing_wanted_and_nothing_there_is_nothing_to_do():
    assert reconcile.plan_changes([], Tree()) == []


def test_target_is_made_in_an_order_that_the_kernel_takes():
    (change,) = reconcile.plan_changes([ONE], Tree())
    paths = [(act.kind, act.path.removeprefix(f"iscsi/{ONE.iqn}/")) for act in change.acts]
    store = f"{configfs.STORES}/{ONE.store}"
    assert paths[:2] == [("mkdir", configfs.STORES), ("mkdir", store)]
    assert paths.index(("write", f"{store}/enable")) < paths.index(("write", f"{store}/attrib/emulate_tpu"))
    assert paths.index(("write", f"{store}/wwn/vpd_unit_serial")) < paths.index(
        ("link", f"tpgt_1/lun/lun_0/{ONE.store}")
    )
    # It takes connections only when everything else is in its place.
    assert paths[-2:] == [("mkdir", "tpgt_1/np/[::0]:3260"), ("write", "tpgt_1/enable")]
    assert all("\n" not in act.value for act in change.acts), "a newline would become a part of a secret"


@pytest.mark.parametrize("wanted", [[ONE], [NAMED], [ONE, NAMED], [replace(ONE, read_only=True, block=4096)]])
def test_what_was_made_needs_nothing_more_and_is_taken_down_without_a_trace(wanted):
    made = carried_out(reconcile.plan_changes(wanted, Tree()), Tree())
    assert reconcile.plan_changes(wanted, made) == []
    gone = carried_out(reconcile.plan_changes([], made), made)
    assert (gone.folders, gone.links) == (frozenset(), {})


@pytest.mark.parametrize(
    "changed",
    [
        {"device": "/dev/zvol/scratch/renamed"},
        {"serial": "0000000000000003"},
        {"block": 4096},
        {"read_only": True},
        {"initiators": ()},
        {"initiators": (DESK, f"{DESK}2")},
        {"user": "ben"},
        {"secret": "anothersecret"},
        {"back_user": "box", "back_secret": "backwardsecret"},
        {"user": "", "secret": ""},
    ],
)
def test_a_target_that_differs_is_made_anew_and_its_neighbour_is_left_alone(changed):
    made = carried_out(reconcile.plan_changes([ONE, NAMED], Tree()), Tree())
    wanted = [ONE, replace(NAMED, **changed)]
    changes = reconcile.plan_changes(wanted, made)
    assert ("write", f"iscsi/{NAMED.iqn}/tpgt_1/enable") in kinds(changes), "nobody stays connected"
    assert not [path for _kind, path in kinds(changes) if ONE.iqn in path or ONE.store in path]
    assert reconcile.plan_changes(wanted, carried_out(changes, made)) == []


def test_portals_come_and_go_without_ending_sessions():
    made = carried_out(reconcile.plan_changes([ONE], Tree()), Tree())
    moved = replace(ONE, portals=("192.168.1.10:3260", "[fd00::1]:3260"))
    changes = reconcile.plan_changes([moved], made)
    group = f"iscsi/{ONE.iqn}/tpgt_1/np"
    assert kinds(changes) == [
        ("rmdir", f"{group}/[::0]:3260"),
        ("mkdir", f"{group}/192.168.1.10:3260"),
        ("mkdir", f"{group}/[fd00::1]:3260"),
    ]


@given(st.integers(min_value=0, max_value=60), st.booleans())
def test_work_that_was_cut_off_anywhere_is_finished_later(step, taking_down):
    """Power or a signal ends it between two acts: the next run makes the tree what it should be."""
    wanted = [] if taking_down else [ONE, NAMED]
    begun = carried_out(reconcile.plan_changes([ONE, NAMED], Tree()), Tree()) if taking_down else Tree()
    acts = [act for change in reconcile.plan_changes(wanted, begun) for act in change.acts][:step]
    half = carried_out([reconcile.TreeChange("", tuple(acts))], begun)
    whole = carried_out(reconcile.plan_changes(wanted, half), half)
    assert reconcile.plan_changes(wanted, whole) == []
    if taking_down:
        assert whole.folders == frozenset()


def test_recorded_tree_is_read_as_it_is(kernel):
    tree = configfs.read_tree()
    store = f"{configfs.STORES}/larder-00000000deadbeef"
    assert tree.values[f"{store}/wwn/vpd_unit_serial"] == "00000000deadbeef"
    assert tree.values[f"{store}/udev_path"] == "/dev/zvol/scratch/vm"
    assert not reconcile.says_read_only(tree.values[f"{store}/info"])
    assert tree.links[f"iscsi/{PREFIX}vm/tpgt_1/lun/lun_0/disk"] == store
    entry = f"iscsi/{PREFIX}named/tpgt_1/acls/{DESK}"
    assert (tree.values[f"{entry}/auth/userid"], tree.values[f"{entry}/auth/password"]) == ("anna", "secretsecret1")
    assert f"iscsi/{PREFIX}named/tpgt_1/auth/userid" in tree.values
    # The disk of a target by hand is called otherwise, so that the target is made anew; everything else agrees.
    assert [act for act in reconcile.target_acts(ONE) if not reconcile.is_done(act, tree)] == [
        TreeAct("link", f"iscsi/{ONE.iqn}/tpgt_1/lun/lun_0/{ONE.store}", store)
    ]
    assert reconcile.has_all(reconcile.store_acts(ONE), tree)


def test_recorded_targets_that_are_as_they_should_be_are_left_alone(kernel):
    """With the link of the disk as Larder makes it, and named targets told to nobody else, every value that the kernel
    tells agrees: nobody is disconnected."""
    named = replace(NAMED, store=ONE.store, device=ONE.device, serial=ONE.serial)
    for one in (ONE, named):
        lun = kernel / f"iscsi/{one.iqn}/tpgt_1/lun/lun_0"
        (lun / "disk").rename(lun / one.store)
    (kernel / f"iscsi/{named.iqn}/tpgt_1/attrib/demo_mode_discovery").write_text("0\n")
    assert reconcile.plan_changes([ONE, named], configfs.read_tree()) == []


def test_secrets_are_in_no_text_about_the_tree(kernel):
    tree = configfs.read_tree()
    acts = [act for change in reconcile.plan_changes([NAMED], tree) for act in change.acts]
    assert "secretsecret1" not in f"{tree!r} {acts!r} {NAMED!r} {Secrets('secretsecret1', 'other')!r}"


def test_recorded_tree_is_taken_down_and_nothing_of_others_is_touched(kernel):
    for path in (
        "iscsi/iqn.2003-01.org.linux-iscsi.box:theirs/tpgt_1/lun",
        "core/iblock_0/theirs",
        "core/iblock_5276/x",
    ):
        (kernel / path).mkdir(parents=True)
    changes = reconcile.plan_changes([], configfs.read_tree())
    assert changes
    assert not [path for _kind, path in kinds(changes) if "theirs" in path or path.endswith("/x")]


def test_what_the_kernel_serves_is_told_with_who_is_connected(kernel):
    group = kernel / f"iscsi/{PREFIX}vm/tpgt_1"
    # Recorded with iscsi-perf connected.
    (group / "dynamic_sessions").write_bytes(b"iqn.2010-11.libiscsi:iscsi-perf\n\0")
    assert (
        Share("iscsi", f"{PREFIX}vm", "/dev/zvol/scratch/vm", ("iqn.2010-11.libiscsi:iscsi-perf",))
        in sessions.read_served()
    )
    named = next(one for one in sessions.read_served() if one.name == f"{PREFIX}named")
    assert named.open_by == ()
    (group / "enable").write_text("0\n")
    assert [one.name for one in sessions.read_served()] == [f"{PREFIX}named"]


@pytest.mark.parametrize(
    ("told", "shown"),
    [
        ("10.0.2.2", "10.0.2.2"),
        ("10.0.2.2:5000", "10.0.2.2"),
        ("[fd00::1]:5000", "fd00::1"),
        ("fd00::1", "fd00::1"),
        ("[::ffff:10.0.2.2]:36406", "10.0.2.2"),
    ],
)
def test_address_of_a_computer_is_shown_without_its_port(told, shown):
    assert sessions.plain_address(told) == shown


def test_folder_for_reservations_is_made_where_the_kernel_says(tmp_path, monkeypatch):
    """Without it the kernel refuses every persistent reservation."""
    monkeypatch.setattr(configfs, "ROOT", tmp_path)
    notes: list[str] = []
    serve.make_reservation_folder(notes.append)
    assert len(notes) == 1  # the kernel does not say where, and volumes are served all the same
    (tmp_path / "dbroot").write_text(f"{tmp_path}/var/target\n")
    for _again in range(2):
        serve.make_reservation_folder(notes.append)
    assert (tmp_path / "var/target/pr").stat().st_mode & 0o777 == 0o700
    assert len(notes) == 1


def test_reservations_go_with_the_disk_that_nobody_wants_any_more(tmp_path, monkeypatch):
    monkeypatch.setattr(configfs, "ROOT", tmp_path)
    (tmp_path / "dbroot").write_text(f"{tmp_path}/target\n")
    folder = tmp_path / "target/pr"
    folder.mkdir(parents=True)
    names = [f"aptpl_{number:016x}" for number in (5, 6)] + ["aptpl_of-somebody-else"]
    for name in names:
        (folder / name).touch()
    stores = [f"core/iblock_5276/larder-{number:016x}" for number in (5, 6, 7)]
    tree = Tree(frozenset({"core/iblock_5276", *stores, f"{stores[0]}/attrib"}))
    kept = Target(iqn=f"{PREFIX}vm", store=f"larder-{5:016x}", device="/dev/zvol/tank/vm", serial=f"{5:016x}")
    serve.forget_reservations(tree, [kept])
    assert sorted(one.name for one in folder.iterdir()) == [names[0], names[2]]


def test_acts_are_carried_out_and_an_error_says_which(tmp_path, monkeypatch):
    monkeypatch.setattr(configfs, "ROOT", tmp_path)
    (tmp_path / "file").write_text("")
    configfs.carry_out(
        [
            TreeAct("mkdir", "a"),
            TreeAct("mkdir", "a"),
            TreeAct("write", "file", "1"),
            TreeAct("link", "a/l", "file"),
            TreeAct("link", "a/l", "file"),
        ]
    )
    assert (tmp_path / "file").read_bytes() == b"1"
    assert os.readlink(tmp_path / "a/l") == str(tmp_path / "file")  # noqa: PTH115
    configfs.carry_out(
        [TreeAct("unlink", "a/l"), TreeAct("unlink", "a/l"), TreeAct("rmdir", "a"), TreeAct("rmdir", "a")]
    )
    assert not (tmp_path / "a").exists()
    with pytest.raises(Failed, match="mkdir x/y"):
        configfs.carry_out([TreeAct("mkdir", "x/y")])
    with pytest.raises(Failed) as failed:
        configfs.carry_out([TreeAct("write", "missing", "secretsecret1")])
    assert "secretsecret1" not in str(failed.value)


# --- what may be in a setting -------------------------------------------------------------------------------------
BAD_NAMES = ["", "A", "-a", "a-", "a/b", "a..b", "../a", "a b", "a\n", "ä", "a:b", "a" * 64, "a_b", "%s"]
BAD_INITIATORS = [
    "",
    "pc",
    "iqn.2007-13.com:x",
    "iqn.2007-10.com/../x",
    "iqn.2007-10.com:a b",
    "iqn.2007-10.com:a\n",
    "iqn.2007-10.com:",
    "eui.12",
    "naa.1",
    "iqn.2007-10.com:" + "a" * 223,
    "iqn.2007-10.com:a,b",
    "..",
    "iqn.2007-10.com:ä",
]
BAD_ADDRESSES = [
    "",
    "box",
    "0.0.0.0",
    "::",
    "192.168.1.0/24",
    "192.168.1.10:3260",
    "fe80::1%eth0",
    "224.0.0.1",
    "1.2.3.4\n",
]


@pytest.mark.parametrize("name", BAD_NAMES)
def test_hostile_target_names_are_refused(name):
    with pytest.raises(Refused):
        Iscsi(name=name)


@pytest.mark.parametrize("name", BAD_INITIATORS)
def test_hostile_initiators_are_refused(name):
    with pytest.raises(Refused):
        Iscsi(name="disk", initiators=(name,))


@pytest.mark.parametrize("address", BAD_ADDRESSES)
def test_hostile_addresses_are_refused(address):
    with pytest.raises(Refused):
        Iscsi(name="disk", addresses=(address,))


@pytest.mark.parametrize(
    "fields",
    [
        {"user": "a b"},
        {"user": "a\n"},
        {"user": "../a"},
        {"back_user": "box"},
        {"user": "a", "back_user": "a"},
        {"user": "a", "back_user": "b\n"},
        {"initiators": (DESK, DESK)},
        {"initiators": (DESK.upper(),)},
        {"addresses": ("192.168.1.1", "192.168.1.1")},
        {"initiators": tuple(f"{DESK}{number}" for number in range(17))},
    ],
)
def test_settings_that_do_not_go_together_are_refused(fields):
    with pytest.raises(Refused):
        Iscsi(name="disk", **fields)


@pytest.mark.parametrize("name", [DESK, "iqn.1991-05.com.microsoft:my-pc", "eui.0123456789abcdef", "naa." + "0" * 16])
def test_usual_initiators_are_taken(name):
    assert Iscsi(name="disk", initiators=(name,)).initiators == (name,)
    assert part.check_initiator(name.upper()) == name


@pytest.mark.parametrize(
    "secret", ["", "short", "x" * 17, "twelve signs", "twelvesigns1\n", "zwölfzeichen1", "tab\ttabtabtab"]
)
def test_secrets_that_other_computers_do_not_take_are_refused(secret):
    with pytest.raises(Refused):
        part.check_chap_secret(secret)


def test_secrets_of_both_ways_are_kept_and_differ(tmp_path, monkeypatch):
    monkeypatch.setattr(chap, "FOLDER", tmp_path / "chap")
    assert chap.read_secrets(5) is None
    chap.store_secrets(5, chap.parse_secrets("secretsecret1 othersecret12"))
    assert chap.read_secrets(5) == Secrets("secretsecret1", "othersecret12")
    assert (tmp_path / "chap/5").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "chap").stat().st_mode & 0o777 == 0o700
    chap.delete_secrets(5)
    assert chap.read_secrets(5) is None
    for text in ("secretsecret1 secretsecret1", "a b", "secretsecret1 othersecret12 thirdsecret12", ""):
        with pytest.raises(Refused):
            chap.parse_secrets(text)


# --- which volumes are served -------------------------------------------------------------------------------------
def volume(name: str = "tank/vm", **changes):
    setting = changes.pop("iscsi", {"name": "vm"})
    return dataset(
        name,
        **{
            "kind": "volume",
            "mounted": False,
            "mountpoint": "",
            "volsize": 2**30,
            "share_source": "local",
            "share": json.dumps({"iscsi": setting}),
            **changes,
        },
    )


def test_a_volume_is_served_under_its_own_serial_number():
    (found,), left = targets.wanted_targets(box(datasets=(volume(guid=0xABC), dataset())), lambda _guid: None)
    assert left == {}
    assert (found.iqn, found.store, found.serial) == (f"{PREFIX}vm", "larder-0000000000000abc", "0000000000000abc")
    assert (found.device, found.portals[0].endswith(":3260")) == ("/dev/zvol/tank/vm", True)


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"key_status": "unavailable"}, "locked"),
        ({"name": "tank/my vm"}, "space"),
        ({"iscsi": {"name": "vm", "user": "anna"}}, "secret"),
        ({"iscsi": {"name": "vm", "user": "anna", "back_user": "box"}}, "secret"),
    ],
)
def test_a_volume_that_cannot_be_served_says_why(changes, word):
    known = (lambda _guid: Secrets("secretsecret1")) if "back_user" in str(changes) else (lambda _guid: None)
    found, left = targets.wanted_targets(box(datasets=(volume(**changes),)), known)
    assert found == []
    assert word in next(iter(left.values()))


def test_of_two_volumes_with_one_name_the_first_is_served():
    found, _left = targets.wanted_targets(box(datasets=(volume(), volume("tank/other"))), lambda _guid: None)
    assert [one.device for one in found] == ["/dev/zvol/tank/vm"]


@pytest.mark.parametrize(
    "changes",
    [
        {"kind": "filesystem"},
        {"share_source": "inherited", "share_from": "tank"},
        {"share": '{"iscsi": {"name": "../x"}}'},
        {"share": '{"iscsi": {"name": "vm", "block": 1}}'},
        {"share": "[" * 5000},
    ],
)
def test_settings_that_larder_could_not_have_written_serve_nothing(changes):
    assert targets.wanted_targets(box(datasets=(volume(**changes),)), lambda _guid: None) == ([], {})


def test_part_of_iscsi_stays_when_a_user_goes():
    setting = settings.ShareSetting(iscsi=Iscsi(name="vm"))
    assert setting.anything
    assert setting.without("anna") == setting
