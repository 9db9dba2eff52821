from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from appliance import command
from appliance.agent import __main__ as server
from appliance.agent.registry import decode_operation
from appliance.errors import Failed, Refused
from appliance.facts.box import Facts
from appliance.facts.importable import Importable
from appliance.operation import as_json, checked_plan
from appliance.pools import discover
from appliance.pools.import_pool import LONGEST_SEARCH, ImportPool
from appliance.shares import approved
from appliance.zfs import kstat, mount, status
from appliance.zfs.foreign_settings import Unsafe
from appliance.zfs.mount import Carried
from tests.reasons import expect_refusal
from tests.unit.made import box, dataset, recorded_pool
from tests.unit.pools.import_samples import GUID, REWIND, SEARCH, found
from tests.unit.pools.test_create import Working
from tests.unit.zfs.test_mount import carried


def bring_in(**changes: Any) -> ImportPool:
    return ImportPool(**{"guid": GUID, "name": "attic", **changes})


def facts(pool: Importable | None = None, **changes: Any) -> Facts:
    return box(importable=(pool or found(),), **changes)


def reasons(operation: ImportPool, known: Facts) -> str:
    """Field and code of each reason against it."""
    return " ".join(f"[{reason.field}] {reason.code}" for reason in operation.check(known))


def steps(operation: ImportPool, known: Facts) -> list[str]:
    return [step.name for step in operation.plan(known).steps]


def test_a_whole_pool_is_brought_in_by_its_number_with_nothing_mounted_and_in_no_cache():
    plan = checked_plan(bring_in(), facts())
    assert [step.name for step in plan.steps] == ["import", "tame", "mount", "keep"]
    assert plan.steps[0].command_text == f"zpool import -N -o cachefile=none -d /dev/disk/by-id {GUID} attic"
    assert plan.type_to_confirm == ""
    assert plan.losses == ()
    assert any("None is switched on by itself" in warning for warning in plan.warnings)


def test_read_only_it_gets_a_root_of_its_own_and_is_not_kept_for_the_next_start():
    plan = checked_plan(bring_in(read_only=True), facts())
    assert [step.name for step in plan.steps] == ["import", "mount"]
    assert "-o readonly=on -R /attic" in plan.steps[0].command_text


@pytest.mark.parametrize("name", ["", "a/b", "-f", "a\nb", "a\0b", "9lives", "a@b", "../x"])
def test_a_name_that_is_none_is_refused(name):
    with pytest.raises(Refused):
        bring_in(name=name)


@pytest.mark.parametrize("guid", [0, -1, 2**64])
def test_a_number_that_is_none_is_refused(guid):
    with pytest.raises(Refused):
        bring_in(guid=guid)


def test_the_largest_number_survives_the_way_to_the_agent():
    operation = bring_in(guid=2**64 - 1)
    assert decode_operation(as_json(operation)) == operation


@pytest.mark.parametrize("name", ["etc", "home", "usr", "var", "srv"])
def test_a_pool_called_like_a_folder_of_the_system_needs_another_name(name):
    known = facts(found(name=name))
    assert "[name] name-of-system-folder" in reasons(bring_in(name=name), known)
    assert reasons(bring_in(name="attic"), known) == ""


def test_a_name_in_use_is_refused_and_another_is_taken():
    known = facts(found(name="tank"), pools=(recorded_pool(),))
    assert "[name] pool-name-taken" in reasons(bring_in(name="tank"), known)
    assert reasons(bring_in(name="tank2"), known) == ""


def test_a_new_name_follows_larders_grammar_and_an_old_one_is_kept_as_it_is():
    assert reasons(bring_in(name="a b"), facts(found(name="a b"))) == ""
    assert "[name]" in reasons(bring_in(name="a b"), facts())
    assert "[name] pool-name-reserved" in reasons(bring_in(name="mirrors"), facts())


def test_a_pool_that_is_not_there_or_in_use_already_is_refused():
    assert "pool-not-found" in reasons(bring_in(), box())
    here = replace(recorded_pool(), guid=GUID)
    assert "pool-in-use-already" in reasons(bring_in(), facts(pools=(here,)))
    assert "zfs-not-loaded" in reasons(bring_in(), facts(zfs="missing"))


def test_what_another_system_has_not_let_go_of_needs_a_further_word_and_the_name_typed():
    known = facts(found(other_host=True, host="cellar"))
    assert "[force] pool-used-by-other-system" in reasons(bring_in(), known)
    plan = checked_plan(bring_in(force=True), known)
    assert plan.type_to_confirm == "attic"
    assert any("destroy it beyond repair" in warning for warning in plan.warnings)
    assert plan.details["Last used by"] == "cellar"
    assert "-N -f " in plan.steps[0].command_text


def test_what_another_system_uses_at_this_moment_is_refused_whatever_is_said():
    known = facts(found(state="UNAVAIL", active_elsewhere=True))
    assert "pool-active-elsewhere" in reasons(bring_in(force=True, rewind=True, read_only=True), known)


def test_force_is_used_only_where_it_was_said():
    assert "-f" not in bring_in().argv()
    assert "-f" in bring_in(destroyed=True).argv(), "zpool import -D needs it"


def test_a_damaged_pool_is_brought_in_at_an_earlier_moment_with_what_that_loses():
    known = facts(found(state="FAULTED", rewind=REWIND))
    assert "[rewind] pool-needs-rewind" in reasons(bring_in(), known)
    plan = checked_plan(bring_in(rewind=True), known)
    assert [loss.what for loss in plan.losses] == [
        f"everything written to the pool after {REWIND.as_of}, about 12 seconds"
    ]
    assert plan.type_to_confirm == "attic"
    assert "-F" in bring_in(rewind=True).argv()
    looked = checked_plan(bring_in(rewind=True, read_only=True), known)
    assert (looked.losses, looked.type_to_confirm) == ((), "")


def test_where_no_recent_moment_helps_the_last_resort_is_asked_for_by_itself():
    known = facts(found(state="FAULTED", rewind=SEARCH))
    for asked in (bring_in(), bring_in(rewind=True)):
        assert "[last_resort] pool-needs-last-resort" in reasons(asked, known)
    assert (bring_in(last_resort=True).lasts(), bring_in(rewind=True).lasts()) == (True, True)
    plan = checked_plan(bring_in(last_resort=True), known)
    (loss,) = plan.losses
    assert loss.what.endswith(f"at best {SEARCH.as_of}, at worst {SEARCH.at_worst}")
    assert any("many hours" in warning and "read-only first" in warning for warning in plan.warnings)
    assert plan.type_to_confirm == "attic"
    assert " -F -X " in plan.steps[0].command_text
    looked = checked_plan(bring_in(last_resort=True, read_only=True), known)
    assert (looked.losses, looked.type_to_confirm) == ((), "")
    assert any("many hours" in warning for warning in looked.warnings)


def test_the_last_resort_is_refused_where_less_will_do():
    assert "[last_resort] pool-needs-no-last-resort" in reasons(
        bring_in(rewind=True, last_resort=True), facts(found(state="FAULTED", rewind=REWIND))
    )
    assert "[rewind] pool-needs-rewind" in reasons(
        bring_in(last_resort=True), facts(found(state="FAULTED", rewind=REWIND))
    )
    assert "[rewind] pool-needs-no-rewind" in reasons(bring_in(last_resort=True), facts())


def test_a_search_for_hours_holds_no_lock_that_others_need_and_is_not_given_up(monkeypatch):
    waits = []

    def run(argv: list[str], *, timeout: float, **_more: Any) -> command.Result:
        waits.append(timeout)
        return command.Result(tuple(argv), 0, "", "", 0.0)

    monkeypatch.setattr(command, "run", run)
    monkeypatch.setattr(status, "read_datasets", lambda: ())
    for operation in (bring_in(), bring_in(last_resort=True)):
        assert set(operation.locks()) == {"attic", str(GUID)}
        operation.bring_in(Working())
    assert waits[0] < 3600
    assert waits[1] > 7 * 24 * 3600


def test_a_whole_pool_is_not_taken_back():
    assert "[rewind] pool-needs-no-rewind" in reasons(bring_in(rewind=True), facts())


def test_another_moment_to_go_back_to_is_another_plan():
    plans = [
        checked_plan(bring_in(rewind=True), facts(found(state="FAULTED", rewind=replace(REWIND, as_of=moment))))
        for moment in ("Monday", "Tuesday")
    ]
    assert plans[0].digest() != plans[1].digest()


def test_too_few_disks_are_refused_and_a_missing_log_can_be_given_up():
    assert "pool-disks-missing" in reasons(bring_in(rewind=True), facts(found(state="UNAVAIL")))
    known = facts(found(state="UNAVAIL", log_missing=True))
    assert "[without_log]" in reasons(bring_in(), known)
    plan = checked_plan(bring_in(without_log=True), known)
    assert "-m" in bring_in(without_log=True).argv()
    assert plan.losses
    assert plan.type_to_confirm == "attic"


def test_newer_features_can_only_be_read():
    known = facts(found(state="UNAVAIL", read_only_only=True))
    assert "[read_only]" in reasons(bring_in(), known)
    assert reasons(bring_in(read_only=True), known) == ""


def test_a_destroyed_pool_is_brought_back_only_as_such():
    assert "pool-destroyed" in reasons(bring_in(), facts(found(destroyed=True)))
    assert "pool-not-destroyed" in reasons(bring_in(destroyed=True), facts())
    plan = checked_plan(bring_in(destroyed=True), facts(found(destroyed=True)))
    assert plan.steps[0].command_text.startswith("zpool import -N -D -f ")


def test_the_agent_looks_for_itself(monkeypatch):
    monkeypatch.setattr(discover, "discover_pools", lambda _guid: (found(),))
    assert bring_in().load_extra_facts(box()).importable == (found(),)


def test_a_refusal_of_zfs_because_of_another_system_is_said_as_what_it_means(monkeypatch):
    def run(argv: list[str], **_more: Any) -> command.Result:
        said = (
            "cannot import 'attic': pool was previously in use from another system.\nLast accessed by cellar (hostid=1)"
        )
        raise command.CommandFailed(command.Result(tuple(argv), 1, "", said, 0.0))

    monkeypatch.setattr(command, "run", run)
    with expect_refusal("pool-used-by-other-system"):
        bring_in().bring_in(Working())


def test_another_refusal_is_told_in_zfss_words(monkeypatch):
    def run(argv: list[str], **_more: Any) -> command.Result:
        raise command.CommandFailed(command.Result(tuple(argv), 1, "", "cannot import 'attic': I/O error", 0.0))

    monkeypatch.setattr(command, "run", run)
    with pytest.raises(Failed, match="attic could not be imported: cannot import 'attic': I/O error"):
        bring_in().bring_in(Working())


@pytest.mark.parametrize("read_only", [False, True])
def test_an_agreement_to_share_that_was_about_another_disk_is_forgotten(read_only, folders, commands, monkeypatch):
    """A disk made by somebody else may carry the guid of a folder that was agreed to here."""
    monkeypatch.setattr(approved, "FILE", folders / "agreed")
    monkeypatch.setattr(
        status, "read_datasets", lambda: (dataset("attic/photos", guid=7), dataset("tank/photos", guid=8))
    )
    for guid in (7, 8):
        approved.set_approved(guid, share=True)
    bring_in(read_only=read_only).bring_in(Working())
    assert approved.read_approved() == {8}


def test_a_new_name_moves_its_own_folder_and_what_belongs_elsewhere_stays_unmounted(commands, monkeypatch):
    found = (carried("attic", mountpoint="/old"), carried("attic/x", mountpoint="/etc"))
    monkeypatch.setattr(mount, "foreign_properties", lambda _pool: found)
    Unsafe().make_safe("attic", Working(), former="old", everything=False)
    assert ["zfs", "set", "-u", "mountpoint=/attic", "attic"] in commands.ran
    assert ["zfs", "set", "-u", "canmount=noauto", "attic/x"] in commands.ran


def test_the_probes_tell_how_far_it_came(commands, monkeypatch):
    here = replace(recorded_pool(), guid=GUID, name="attic")
    known = box(pools=(here,))
    monkeypatch.setattr(
        mount, "foreign_properties", lambda _pool: (carried("attic"), carried("attic/x", mountpoint="/etc"))
    )
    operation = bring_in()
    assert not operation.probe("import", box())
    assert operation.probe("import", known)
    assert not operation.probe("tame", known)
    assert not operation.probe("mount", known)
    commands.answers["zpool"] = "none\n"
    assert not operation.probe("keep", known)
    commands.answers["zpool"] = "-\n"
    assert operation.probe("keep", known)
    monkeypatch.setattr(
        mount,
        "foreign_properties",
        lambda _pool: (carried("attic", mounted="yes"), carried("attic/x", mountpoint="/etc", canmount="noauto")),
    )
    assert operation.probe("tame", known)
    assert operation.probe("mount", known)
    assert "Export it, then import it again" in operation.recovery_hint("tame", known)
    assert "as they were" in operation.recovery_hint("import", box())
    assert "as they were" in bring_in(rewind=True, read_only=True).recovery_hint("import", box())
    for back in (bring_in(rewind=True), bring_in(last_resort=True)):
        assert "may have gone back" in back.recovery_hint("import", box())


def test_the_plan_is_json_that_the_agent_takes():
    text = json.dumps({"kind": "import-pool", "guid": GUID, "name": "attic", "read_only": True})
    assert decode_operation(text) == bring_in(read_only=True)


def test_import_switches_off_sharing_before_any_place_is_changed(commands, monkeypatch):
    """ZFS mounts a folder that shares itself as soon as its place is changed, wherever a link there leads."""
    found = (carried("attic", sharenfs="on"), carried("attic/x", mountpoint="/etc"))
    monkeypatch.setattr(mount, "foreign_properties", lambda _pool: found)
    Unsafe().make_safe("attic", Working(), former="attic", everything=True)
    assert commands.ran[0] == ["zfs", "set", "-u", "sharenfs=off", "attic"]
    assert ["zfs", "inherit", "mountpoint", "attic/x"] in commands.ran[1:]


def test_import_keeps_its_folders_from_being_mounted_over_files():
    found = (carried("attic", overlay="on"), carried("attic/x"))
    assert list(mount.neutralise_properties(found, "attic")) == [["zfs", "set", "-u", "overlay=off", "attic"]]


@pytest.mark.parametrize("read_only", [False, True])
def test_import_with_a_folder_that_cannot_be_mounted_is_kept_and_names_it_last(commands, monkeypatch, read_only):
    found = tuple(carried(f"attic/{name}") for name in ("a", "b"))

    def mount_dataset(name: str, _work: Any, **_more: Any) -> None:
        if name == "attic/a":
            raise Failed("/attic/a cannot be reached", "Read-only file system")
        commands.run(["mount", name])

    monkeypatch.setattr(mount, "foreign_properties", lambda _pool: found)
    monkeypatch.setattr(mount, "mount_dataset", mount_dataset)
    steps = {step.name: step for step in checked_plan(bring_in(read_only=read_only), facts()).steps}
    work = Working()
    for name in ("mount", *([] if read_only else ["keep"])):
        steps[name].run(work)
    assert ["mount", "attic/b"] in commands.ran
    assert (["zpool", "set", "cachefile=/etc/zfs/zpool.cache", "attic"] in commands.ran) is not read_only
    assert work.notes[-1] == "Left unmounted: attic/a. The reasons are above."


# libzfs_dataset.c, zfs_valid_proplist: of a dataset that belongs to a container or a jail
ZONED = "cannot set property for 'attic/a': 'sharenfs' cannot be set on dataset in a non-global zone"


class Brought:
    """Stands in for ZFS with an imported pool: settings and mounts take effect, but for the commands that fail."""

    def __init__(self, commands: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        self.commands, self.found = commands, dict[str, Carried]()
        self.failing: dict[tuple[str, str], Failed] = {}  # by dataset and property
        self.mounted: list[str] = []
        commands.on_run = self.run
        monkeypatch.setattr(mount, "foreign_properties", lambda _pool: tuple(self.found.values()))
        monkeypatch.setattr(mount, "mount_dataset", lambda name, _work, **_more: self.mounted.append(name))

    def has(self, *datasets: Carried) -> None:
        self.found = {one.name: one for one in datasets}

    def run(self, argv: list[str]) -> None:
        if argv[:2] == ["zfs", "inherit"] and (error := self.failing.get((argv[-1], argv[2]))):
            raise error
        if argv[:3] != ["zfs", "set", "-u"]:
            return
        wanted = dict(word.split("=", 1) for word in argv[3:-1])
        if error := next((self.failing[argv[-1], key] for key in wanted if (argv[-1], key) in self.failing), None):
            raise error
        top = self.found[argv[-1]]
        self.found[top.name] = replace(top, values={**top.values, **wanted}, own=top.own | wanted.keys())
        for one in self.found.values():
            heirs = {key: value for key, value in wanted.items() if self.source(one.name, key) == top.name}
            self.found[one.name] = replace(one, values={**one.values, **heirs})

    def source(self, name: str, key: str) -> str:
        """The dataset whose setting this one has; its own for canmount, which is not inherited."""
        while name and key not in self.found[name].own and key != "canmount":
            name = name.rpartition("/")[0]
        return name

    def import_it(self, work: Working, **changes: Any) -> None:
        for step in checked_plan(bring_in(**changes), facts()).steps[1:]:
            step.run(work)

    @property
    def is_kept(self) -> bool:
        return ["zpool", "set", "cachefile=/etc/zfs/zpool.cache", "attic"] in self.commands.ran


@pytest.fixture
def brought(commands, monkeypatch) -> Brought:
    return Brought(commands, monkeypatch)


def failed(said: str) -> Failed:
    return command.CommandFailed(command.Result(("zfs",), 1, "", said, 0.0))


def test_folder_that_cannot_be_made_safe_leaves_the_others_safe_and_mounted_and_is_named_in_the_failure(brought):
    brought.has(
        carried("attic", sharenfs="on"),
        carried("attic/a", "sharenfs", sharenfs="on"),
        carried("attic/a/heir", "x", sharenfs="on"),
        carried("attic/b", "setuid", setuid="on"),
        carried("attic/c", mountpoint="/etc"),
    )
    brought.failing["attic/a", "sharenfs"] = failed(ZONED)
    work = Working()
    with pytest.raises(Failed, match=r"Not everything in attic could be made safe.*\(attic/a\): cannot set property"):
        brought.import_it(work)
    assert brought.found["attic/b"].values["setuid"] == "off"
    assert brought.found["attic/c"].values["canmount"] == "noauto"
    # Mounted, it would be exported; and so would be what inherits from it.
    assert brought.mounted == ["attic", "attic/b"]
    assert "attic/a/heir was left unmounted: it could not be made safe" in work.notes
    # The next start would mount it by zfs mount -a, and share it.
    assert not brought.is_kept


def test_folder_that_would_be_mounted_over_the_system_and_cannot_be_changed_keeps_its_pool_from_the_next_start(brought):
    brought.has(carried("attic"), carried("attic/x", mountpoint="/etc"))
    brought.failing["attic/x", "canmount"] = failed("cannot set property for 'attic/x': out of space")
    with pytest.raises(Failed, match=r"\(attic/x\): .*out of space"):
        brought.import_it(Working())
    assert brought.mounted == ["attic"]
    assert not brought.is_kept


def test_place_of_a_folder_that_shares_itself_still_is_not_changed_nor_that_of_one_above_it(brought):
    """ZFS mounts a folder that shares itself as soon as its place is changed, wherever a link there leads."""
    brought.has(
        carried("attic"),
        carried("attic/a", mountpoint="/srv/a"),
        carried("attic/a/loud", "sharenfs", sharenfs="on", mountpoint="/srv/a/loud"),
        carried("attic/b", mountpoint="/srv/b"),
    )
    brought.failing["attic/a/loud", "sharenfs"] = failed(ZONED)
    with pytest.raises(Failed, match="attic/a/loud"):
        brought.import_it(Working(), move_folders=True)
    assert [argv[-1] for argv in brought.commands.ran if argv[:2] == ["zfs", "inherit"]] == ["attic/b"]
    assert brought.found["attic/a"].values["canmount"] == "noauto"


def test_folder_that_cannot_be_moved_is_left_unmounted_and_named_last(brought):
    brought.has(carried("attic"), carried("attic/a", mountpoint="/srv/a"), carried("attic/b"))
    brought.failing["attic/a", "mountpoint"] = failed(ZONED)
    work = Working()
    brought.import_it(work, move_folders=True)
    assert brought.mounted == ["attic", "attic/b"]
    assert brought.is_kept
    assert work.notes[-1] == "Left unmounted: attic/a. The reasons are above."


@pytest.mark.parametrize("stopped", [True, False])
def test_import_ends_at_once_where_zfs_no_longer_answers(brought, monkeypatch, stopped):
    brought.has(*(carried(f"attic/{name}", "setuid", setuid="on") for name in ("a", "b")))
    late = command.CommandTimedOut(["zfs"], 120, None)
    brought.failing["attic/a", "setuid"] = failed("I/O error") if stopped else late
    monkeypatch.setattr(kstat, "is_stopped", lambda pool: stopped and pool == "attic")
    with pytest.raises(Failed, match="I/O error" if stopped else "did not answer"):
        brought.import_it(Working())
    assert len(brought.commands.ran) == 1


def test_read_only_import_mounts_without_rights_what_it_cannot_change(brought):
    brought.has(carried("attic", setuid="on"))
    brought.import_it(Working(), read_only=True)
    assert brought.mounted == ["attic"]
    assert not any(argv[:2] == ["zfs", "set"] for argv in brought.commands.ran)


def test_the_agent_may_run_longer_than_the_longest_search():
    assert server.LONGEST > LONGEST_SEARCH
