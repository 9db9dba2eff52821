"""Targets that somebody changed by hand: found with a sentence for each difference, left alone, and put back."""

from __future__ import annotations

import json
from dataclasses import replace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.agent.registry import decode_operation
from appliance.errors import Failed, Refused
from appliance.facts.datasets import Dataset
from appliance.operation import as_json, checked_plan
from appliance.shares import approved, publish, teardown
from appliance.shares.drift.targets import OverwriteTarget, ReadTargetEdits
from appliance.shares.iscsi import chap, configfs, divergence, fingerprints, reconcile, serve, sessions
from appliance.shares.iscsi.configfs import Tree, TreeAct
from appliance.shares.iscsi.differences import (
    SENTENCES,
    TargetDifference,
    explain_difference,
    find_differences,
    is_as_made,
)
from appliance.shares.iscsi.divergence import TargetEdit
from appliance.shares.iscsi.part import PREFIX, Iscsi
from appliance.system import paths
from tests.reasons import codes, expect_refusal
from tests.unit.datasets.test_set_target import PLAIN, Kernel, of, run, stand_in
from tests.unit.made import box
from tests.unit.pools.test_create import Working
from tests.unit.shares.test_iscsi import DESK, NAMED, ONE, carried_out, volume

VM, CANARY = f"{PREFIX}vm", "zq7canaryzq7"
BOTH_WAYS = replace(NAMED, back_user="box", back_secret="backwardsecret")
ANYBODY = replace(ONE, user="anna", secret="secretsecret1")
GROUP, STORE = "iscsi/{name}/tpgt_1", f"{configfs.STORES}/{{store}}"
ENTRY = f"{GROUP}/acls/{DESK}"
OTHER = "iqn.1991-05.com.microsoft:other"


@pytest.fixture
def kernel(commands, monkeypatch, tmp_path, folders) -> Kernel:
    return stand_in(commands, monkeypatch, tmp_path)


def made(*targets) -> Tree:
    return carried_out(reconcile.plan_changes(targets, Tree()), Tree())


def by_hand(tree: Tree, kind: str, path: str, value: str = "") -> Tree:
    """The tree after somebody took something away with all below it, made a folder, set a value or made a link."""
    folders, values, links = set(tree.folders), dict(tree.values), dict(tree.links)
    if kind == "take":
        folders = {one for one in folders if not reconcile.is_inside(one, [path])}
        values = {one: found for one, found in values.items() if not reconcile.is_inside(one, [path])}
        links = {one: to for one, to in links.items() if not reconcile.is_inside(one, [path])}
    elif kind == "make":
        folders.add(path)
    else:
        {"set": values, "link": links}[kind][path] = value
    return Tree(frozenset(folders), values, links)


def of_target(text: str, target) -> str:
    return text.replace("{name}", target.iqn).replace("{store}", target.store)


# Of which target, what is done to its tree, and how that is told.
CASES = [
    (ONE, ("take", "iscsi/{name}"), TargetDifference("gone")),
    (ONE, ("take", GROUP), TargetDifference("gone")),
    (ONE, ("set", f"{GROUP}/enable", "0"), TargetDifference("off")),
    (ONE, ("make", "iscsi/{name}/tpgt_2"), TargetDifference("group", "tpgt_2")),
    (ONE, ("take", f"{GROUP}/lun/lun_0"), TargetDifference("disk-gone")),
    (ONE, ("make", f"{GROUP}/lun/lun_1"), TargetDifference("disk-added", "lun_1")),
    (ONE, ("link", f"{GROUP}/lun/lun_0/{{store}}", "core/iblock_0/theirs"), TargetDifference("disk-other")),
    (ONE, ("set", f"{STORE}/udev_path", "/dev/sda"), TargetDifference("device", "/dev/sda", ONE.device)),
    (ONE, ("set", f"{STORE}/wwn/vpd_unit_serial", "1"), TargetDifference("serial")),
    (ONE, ("set", f"{STORE}/attrib/block_size", "4096"), TargetDifference("block", "4096", "512")),
    (ONE, ("set", f"{STORE}/attrib/emulate_tpu", "0"), TargetDifference("trim")),
    (ONE, ("set", f"{STORE}/info", "readonly: 1"), TargetDifference("read-only")),
    (ONE, ("set", f"{STORE}/enable", "0"), TargetDifference("disk-off")),
    (ONE, ("set", f"{STORE}/write_cache", "write through"), TargetDifference("cache")),
    (replace(ONE, read_only=True), ("set", f"{STORE}/info", "readonly: 0"), TargetDifference("writable")),
    (ONE, ("set", f"{GROUP}/attrib/authentication", "1"), TargetDifference("chap-on")),
    (NAMED, ("set", f"{GROUP}/attrib/authentication", "0"), TargetDifference("chap-off")),
    (NAMED, ("set", f"{ENTRY}/attrib/authentication", "0"), TargetDifference("initiator-chap", DESK)),
    (NAMED, ("set", f"{ENTRY}/auth/userid", "ben"), TargetDifference("user", "ben", "anna")),
    (NAMED, ("set", f"{ENTRY}/auth/userid", ""), TargetDifference("user-gone", wanted="anna")),
    (NAMED, ("set", f"{ENTRY}/auth/password", CANARY), TargetDifference("user-secret")),
    (NAMED, ("set", f"{ENTRY}/auth/userid_mutual", "box"), TargetDifference("back-added", "box")),
    (BOTH_WAYS, ("set", f"{ENTRY}/auth/password_mutual", ""), TargetDifference("back-gone", wanted="box")),
    (BOTH_WAYS, ("set", f"{ENTRY}/auth/password_mutual", CANARY), TargetDifference("back-secret")),
    (BOTH_WAYS, ("set", f"{ENTRY}/auth/userid_mutual", "nas"), TargetDifference("back", "nas", "box")),
    (ANYBODY, ("set", f"{GROUP}/auth/password", CANARY), TargetDifference("user-secret")),
    (NAMED, ("set", f"{GROUP}/auth/password", CANARY), TargetDifference("user-added")),
    (NAMED, ("set", f"{GROUP}/attrib/generate_node_acls", "1"), TargetDifference("all")),
    (ONE, ("set", f"{GROUP}/attrib/generate_node_acls", "0"), TargetDifference("nobody")),
    (NAMED, ("set", f"{GROUP}/attrib/demo_mode_discovery", "1"), TargetDifference("shown")),
    (ONE, ("set", f"{GROUP}/attrib/demo_mode_discovery", "0"), TargetDifference("hidden")),
    (ONE, ("set", f"{GROUP}/attrib/demo_mode_write_protect", "1"), TargetDifference("read-only")),
    (ONE, ("set", f"{GROUP}/attrib/cache_dynamic_acls", "0"), TargetDifference("other")),
    (NAMED, ("make", f"{GROUP}/acls/{OTHER}"), TargetDifference("initiator-added", OTHER)),
    (NAMED, ("take", ENTRY), TargetDifference("initiator-gone", DESK)),
    (NAMED, ("take", f"{ENTRY}/lun_0/lun_0"), TargetDifference("initiator-disk", DESK)),
    (NAMED, ("set", f"{ENTRY}/lun_0/write_protect", "1"), TargetDifference("initiator-reads", DESK)),
    (ONE, ("make", f"{GROUP}/np/10.0.0.1:3261"), TargetDifference("portal-added", "10.0.0.1:3261")),
    (ONE, ("take", f"{GROUP}/np/[::0]:3260"), TargetDifference("portal-gone", "[::0]:3260")),
]


@pytest.mark.parametrize(("target", "edit", "told"), CASES, ids=lambda one: getattr(one, "kind", None))
def test_each_manual_change_is_told_by_its_own_sentence_and_put_back(target, edit, told):
    tree = made(target)
    assert find_differences(target.iqn, target, tree) == ()
    kind, path, *value = (of_target(one, target) for one in edit)
    edited = by_hand(tree, kind, path, *value)
    assert find_differences(target.iqn, target, edited) == (told,)
    assert told.kind == "other" or explain_difference(told) != SENTENCES["other"]
    key = "00" * 32
    now = fingerprints.take_fingerprint(target.iqn, edited, key)
    assert now != fingerprints.take_fingerprint(target.iqn, tree, key)
    assert CANARY not in f"{msgspec.json.encode(told).decode()} {explain_difference(told)}"
    again = carried_out(reconcile.plan_changes([target], edited), edited)
    assert find_differences(target.iqn, target, again) == ()


def test_every_sentence_is_told_of_some_manual_change():
    told = {one.kind for _target, _edit, one in CASES} | {"unasked"}
    assert set(SENTENCES) == told


SOME_PATHS = sorted(
    {of_target(one[1], target) for target, one, _told in CASES} | {"core/iblock_0/x\udcff", f"iscsi/{VM}/tpgt_\udcff"}
)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["take", "make", "set", "link"]),
            st.sampled_from(SOME_PATHS),
            st.sampled_from(["", "0", "1", "core/iblock_0/theirs", "\udcff"]),
        ),
        max_size=6,
    )
)
def test_whatever_would_be_changed_is_told_and_nothing_else(edits):
    """No tree, however odd, keeps the others from being compared."""
    tree = made(ONE, NAMED)
    for edit in edits:
        tree = by_hand(tree, *edit)
    for target in (ONE, NAMED):
        found = find_differences(target.iqn, target, tree)
        json.dumps([explain_difference(one) for one in found]).encode()
        assert bool(found) != is_as_made(target, tree)


def test_who_is_connected_is_no_manual_change():
    tree = made(NAMED)
    busy = tree
    for path, value in ((f"{ENTRY}/info", "InitiatorName: x"), (f"{GROUP}/dynamic_sessions", "x")):
        busy = by_hand(busy, "set", of_target(path, NAMED), value)
    key = "00" * 32
    assert fingerprints.take_fingerprint(NAMED.iqn, busy, key) == fingerprints.take_fingerprint(NAMED.iqn, tree, key)


# --- the write cache ---------------------------------------------------------------------------------------------
def test_a_disk_says_that_it_has_a_write_cache_as_its_device_does():
    """LIO tells other computers what the device says (iblock_get_write_cache) and takes no other word for it.
    A zvol keeps writes in memory until it is told to flush."""
    acts = list(reconcile.store_acts(ONE))
    assert TreeAct("cache", of_target(f"{STORE}/write_cache", ONE), "write back") in acts
    assert not [act.path for act in acts if "emulate_write_cache" in act.path]


def test_the_device_is_told_where_it_denies_its_write_cache(tmp_path, monkeypatch):
    monkeypatch.setattr(configfs, "ROOT", tmp_path / "target")
    monkeypatch.setattr(configfs, "BLOCK", tmp_path / "block")
    store = f"{configfs.STORES}/larder-0000000000000005"
    file = tmp_path / "block/zd16/queue/write_cache"
    for path in (file.parent, tmp_path / "target" / store):
        path.mkdir(parents=True)
    file.write_text("write through\n")
    (tmp_path / "target" / store / "info").write_text(
        "Status: ACTIVATED\n        iBlock device: zd16  UDEV PATH: /dev/x"
    )
    assert configfs.read_tree().values[f"{store}/write_cache"] == "write through"
    file.write_text("")  # sysfs takes a value whole, where a file would keep the end of the former one
    configfs.carry_out([TreeAct("cache", f"{store}/write_cache", "write back")])
    assert configfs.read_tree().values[f"{store}/write_cache"] == "write back"
    (tmp_path / "target" / store / "info").write_text("Status: DEACTIVATED")
    with pytest.raises(Failed, match="write_cache"):
        configfs.carry_out([TreeAct("cache", f"{store}/write_cache", "write back")])


# --- what Larder does about it -----------------------------------------------------------------------------------
def add_other(kernel: Kernel) -> Dataset:
    other = volume("tank/other", iscsi={"name": "other"})
    kernel.volumes[other.name] = other
    approved.set_approved(other.guid, share=True)
    return other


def edit(kernel: Kernel, kind: str, path: str, value: str = "") -> None:
    kernel.tree = by_hand(kernel.tree, kind, path, value)


def edits() -> dict[str, TargetEdit]:
    found = msgspec.convert(msgspec.to_builtins(ReadTargetEdits().read()), list[TargetEdit])
    return {one.name: one for one in found}


def overwrite(name: str = VM, seen: str = "") -> Working:
    work = Working()
    asked = OverwriteTarget(target=name, seen=seen or edits()[name].seen)
    known = box(datasets=tuple(publish.agreed_facts().datasets))
    again = decode_operation(as_json(asked))
    assert checked_plan(again, known).digest() == checked_plan(asked, known).digest()
    for step in checked_plan(asked, known).steps:
        step.run(work)
        assert asked.probe(step.name, known)
    return work


def differences_of(name: str) -> list[str]:
    return [one.kind for one in edits()[name].differences]


PORTAL = f"iscsi/{VM}/tpgt_1/np/10.0.0.1:3261"


def test_what_larder_does_itself_is_no_manual_change(kernel):
    assert edits() == {}
    run(of())
    add_other(kernel)
    serve.serve_volumes(publish.agreed_facts())
    assert edits() == {}
    run(of(iscsi=Iscsi(name="renamed")), kernel.volumes["tank/vm"])
    assert edits() == {}
    teardown.close_shares([one for one in sessions.read_served() if one.name.endswith("renamed")])
    assert edits() == {}
    serve.serve_volumes(publish.agreed_facts())
    run(of(iscsi=None), kernel.volumes["tank/vm"])
    serve.stop_all(lambda _text: None)
    assert (edits(), kernel.served) == ({}, [])


def test_a_changed_target_is_left_alone_until_it_is_put_back(kernel):
    run(of())
    edit(kernel, "make", PORTAL)
    assert differences_of(VM) == ["portal-added"]
    assert edits()[VM].volume == "tank/vm"
    # Others go on: they are served, changed and stopped.
    other = add_other(kernel)
    notes: list[str] = []
    serve.serve_volumes(publish.agreed_facts(), insist=False, note=notes.append)
    assert sorted(kernel.served) == ["other", "vm"]
    assert PORTAL in kernel.tree.folders
    assert f"{VM} was changed by hand" in " ".join(notes)
    serve.serve_volumes(publish.agreed_facts(), changed={"/dev/zvol/tank/other"})
    with pytest.raises(Failed, match="was changed by hand"):
        serve.serve_volumes(publish.agreed_facts(), changed={"/dev/zvol/tank/vm"})
    # The settings of the changed one are not.
    before = kernel.volumes["tank/vm"].share
    for asked in (of(iscsi=None), of(iscsi=Iscsi(name="vm", block=4096)), of(iscsi=Iscsi(name="renamed"))):
        with expect_refusal("target-changed-by-hand"):
            run(asked, kernel.volumes["tank/vm"])
    assert kernel.volumes["tank/vm"].share == before
    run(of(iscsi=None, dataset="tank/other", guid=other.guid), kernel.volumes["tank/other"])
    assert kernel.served == ["vm"]
    assert PORTAL in kernel.tree.folders
    work = overwrite()
    assert work.notes == [explain_difference(TargetDifference("portal-added", "10.0.0.1:3261"))]
    assert PORTAL not in kernel.tree.folders
    assert (edits(), kernel.served) == ({}, ["vm"])
    run(of(iscsi=None), kernel.volumes["tank/vm"])
    assert kernel.tree.folders == frozenset()


def test_a_new_secret_is_not_stored_while_the_target_is_changed(kernel):
    asked = of(iscsi=Iscsi(name="vm", user="desk"), new_secret=True)
    run(asked, secret="secretsecret1")
    edit(kernel, "set", f"iscsi/{VM}/tpgt_1/attrib/authentication", "0")
    with expect_refusal("target-changed-by-hand"):
        run(asked, kernel.volumes["tank/vm"], secret="secretsecret2")
    assert chap.read_secrets(PLAIN.guid) == chap.Secrets("secretsecret1")
    overwrite()
    assert kernel.tree.values[f"iscsi/{VM}/tpgt_1/attrib/authentication"] == "1"


def test_a_deleted_target_stays_deleted_until_it_is_put_back(kernel):
    run(of())
    edit(kernel, "take", f"iscsi/{VM}")
    assert differences_of(VM) == ["gone"]
    serve.serve_volumes(publish.agreed_facts(), insist=False)
    assert kernel.served == []
    overwrite()
    assert (edits(), kernel.served) == ({}, ["vm"])


def test_a_changed_target_keeps_its_volume_from_being_taken_away(kernel):
    run(of())
    edit(kernel, "make", PORTAL)
    with expect_refusal("target-changed-by-hand"):
        teardown.close_shares(sessions.read_served())
    with expect_refusal("target-changed-by-hand"):
        teardown.serve_datasets([], lambda _text: None)
    assert kernel.served == ["vm"]
    overwrite()
    teardown.serve_datasets([], lambda _text: None)
    assert kernel.tree.folders == frozenset()


def test_a_target_under_larders_name_is_told_and_removed_only_when_asked(kernel):
    run(of())
    odd, plain = f"{PREFIX}Wei\udcffrd name", f"{PREFIX}by-hand"
    for name in (odd, plain):
        edit(kernel, "make", f"iscsi/{name}")
    serve.serve_volumes(publish.agreed_facts())
    assert {name: differences_of(name) for name in edits()} == {
        plain: ["unasked"],
        odd.replace("\udcff", "\ufffd"): ["unasked"],
    }
    assert [one.writable for one in edits().values()] == [False, True]
    assert len({one.key for one in edits().values()}) == 2
    # Another change is told all the same.
    edit(kernel, "make", PORTAL)
    assert differences_of(VM) == ["portal-added"]
    overwrite(plain)
    assert f"iscsi/{plain}" not in kernel.tree.folders
    assert {f"iscsi/{odd}", PORTAL} <= kernel.tree.folders


def test_a_target_that_took_the_disk_of_another_keeps_it_from_nothing(kernel):
    other = add_other(kernel)
    run(of())
    store = next(one for one in kernel.tree.folders if one.endswith(f"larder-{other.guid:016x}"))
    edit(kernel, "make", f"iscsi/{VM}/tpgt_1/lun/lun_1")
    edit(kernel, "link", f"iscsi/{VM}/tpgt_1/lun/lun_1/it", store)
    notes: list[str] = []
    serve.serve_volumes(publish.agreed_facts(), changed={"/dev/zvol/tank/other"}, note=notes.append)
    assert len(notes) == 1
    assert f"{VM} was changed by hand" in notes[0]


def test_who_reads_does_not_wait_for_a_kernel_that_hangs(kernel, monkeypatch):
    run(of())
    monkeypatch.setattr("appliance.shares.drift.targets.SECONDS_TO_WAIT", 0.0)
    with fingerprints.hold_targets(), pytest.raises(Failed, match="being changed now"):
        edits()


def test_a_change_after_the_look_is_not_written_over(kernel):
    run(of())
    edit(kernel, "make", PORTAL)
    seen = edits()[VM].seen
    edit(kernel, "set", f"iscsi/{VM}/tpgt_1/attrib/generate_node_acls", "0")
    with expect_refusal("target-changed-again"):
        overwrite(seen=seen)
    with expect_refusal("target-changed-again"):
        serve.serve_volumes(publish.agreed_facts(), over=seen)
    assert PORTAL in kernel.tree.folders


def test_a_change_that_somebody_took_back_is_none(kernel):
    run(of())
    before = kernel.tree
    edit(kernel, "make", PORTAL)
    assert edits()
    kernel.tree = before
    assert edits() == {}


def test_a_change_that_was_interrupted_is_larders_own(kernel):
    run(of())
    fingerprints.begin_changes([VM])
    edit(kernel, "set", f"iscsi/{VM}/tpgt_1/enable", "0")
    assert edits() == {}
    serve.serve_volumes(publish.agreed_facts())
    assert kernel.served == ["vm"]


@pytest.mark.parametrize("text", [None, "", "{}", '{"key": 1, "targets": {}}', "[" * 100_000])
def test_without_a_record_of_what_was_left_nothing_counts_as_changed(kernel, text):
    """As after an update, and as at each start, when the kernel has nothing either."""
    run(of())
    file = paths.TARGETS / fingerprints.FILE
    file.unlink() if text is None else file.write_text(text)
    edit(kernel, "make", PORTAL)
    assert edits() == {}
    serve.serve_volumes(publish.agreed_facts())
    assert PORTAL not in kernel.tree.folders
    edit(kernel, "make", PORTAL)
    assert differences_of(VM) == ["portal-added"]


def test_fingerprints_are_keyed_and_only_root_has_the_key(kernel):
    run(of(iscsi=Iscsi(name="vm", user="desk"), new_secret=True), secret=CANARY)
    file = paths.TARGETS / fingerprints.FILE
    assert [one.stat().st_mode & 0o777 for one in (file, file.parent)] == [0o600, 0o700]
    assert CANARY not in file.read_text()
    taken = {fingerprints.take_fingerprint(VM, kernel.tree, key * 32) for key in ("00", "01")}
    assert len(taken) == 2
    edit(kernel, "set", f"iscsi/{VM}/tpgt_1/auth/password", "another-one-22")
    assert differences_of(VM) == ["user-secret"]
    told = msgspec.json.encode(list(edits().values())).decode()
    assert CANARY not in told
    assert "another-one-22" not in told
    assert CANARY not in str(overwrite().notes)


def test_putting_back_warns_who_uses_the_disk_and_is_agreed_to_only_with_them(kernel):
    run(of())
    edit(kernel, "make", PORTAL)
    asked = OverwriteTarget(target=VM, seen=edits()[VM].seen)
    (share,) = sessions.read_served()
    known = box(datasets=tuple(kernel.volumes.values()), shares=(share,))
    used = box(datasets=known.datasets, shares=(msgspec.structs.replace(share, open_by=(DESK,)),))
    assert "sees its disk fail" in str(asked.plan(used).warnings)
    assert asked.plan(known).warnings == ()
    assert asked.plan(known).digest() != asked.plan(used).digest()
    assert "tank/vm is served again" in asked.plan(known).summary
    assert "No volume asks for" in asked.plan(box()).summary


@pytest.mark.parametrize(
    ("target", "seen", "code"),
    [
        ("iqn.2003-01.org.linux-iscsi:theirs", "0" * 64, "target-not-larders"),
        (f"{PREFIX}../../core", "0" * 64, "target-not-larders"),
        (f"{PREFIX}a b", "0" * 64, "target-not-larders"),
        (PREFIX, "0" * 64, "target-not-larders"),
        (f"{PREFIX}{'a' * 230}", "0" * 64, "target-not-larders"),
        (VM, "", "manual-change-not-named"),
        (VM, "Z" * 64, "manual-change-not-named"),
    ],
)
def test_only_a_manual_change_of_larders_own_can_be_written_over(target, seen, code):
    with pytest.raises(Refused) as refused:
        OverwriteTarget(target=target, seen=seen)
    assert codes(refused.value.reasons) == [code]


def test_nobody_elses_target_is_looked_at(tmp_path, monkeypatch):
    monkeypatch.setattr(configfs, "ROOT", tmp_path)
    (tmp_path / "iscsi/iqn.2003-01.org.linux-iscsi:theirs/tpgt_1").mkdir(parents=True)
    assert fingerprints.served_names(configfs.read_tree()) == set()


def test_the_tree_without_a_target_has_none_of_its_disks():
    tree = made(ONE, NAMED)
    left = reconcile.leave_out(tree, [NAMED.iqn], [])
    assert reconcile.plan_changes([ONE], left) == []
    assert not [path for path in (*left.folders, *left.links) if NAMED.iqn in path or NAMED.store in path]


def test_names_that_look_the_same_have_keys_of_their_own():
    first, second = f"{PREFIX}a\u200b", f"{PREFIX}a\ufffd"
    assert divergence.key_of(first) != divergence.key_of(second)
    assert not divergence.is_plain(first)
