from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from appliance.agent.registry import decode_operation
from appliance.disks.clear_labels import partition_path
from appliance.errors import Failed, Refused
from appliance.facts.box import Pool, Use, Vdev
from appliance.operation import checked_plan
from appliance.pools.create import CreatePool
from tests.unit.made import BUSY, OLD, box, disk, path_of, recorded_pool

CANARY = "canary passphrase"


def create(*numbers: int, **changes: Any) -> CreatePool:
    group = tuple(path_of(number) for number in numbers or (1, 2, 3, 4))
    return CreatePool(**{"name": "tank", "layout": "raidz2", "groups": (group,), **changes})


def reasons(operation: CreatePool, facts) -> str:
    """Field and code of each reason against it."""
    return " ".join(f"[{reason.field}] {reason.code}" for reason in operation.check(facts))


def made(operation: CreatePool, state: str = "ONLINE") -> Pool:
    """The pool that the operation makes, as it would be read back."""
    leaves = tuple(Vdev("x", "disk", 1, state, path=f"{path}-part1") for path in operation.disks)
    return Pool(operation.name, 5, state, (Vdev("raidz2-0", "raidz", 2, state, children=leaves),))


class Working:
    """A Work that has a secret and remembers the notes."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def progress(self, percent: int, phrase: str) -> None: ...

    def note(self, text: str) -> None:
        self.notes.append(text)

    def secret(self) -> str:
        return CANARY

    def stop_if_asked(self) -> None: ...


def test_nothing_speaks_against_a_pool_of_empty_disks():
    assert reasons(create(), box()) == ""


@pytest.mark.parametrize("kind", ["system", "pool", "mounted", "swap", "raid"])
def test_it_refuses_a_pool_on_a_disk_in_use(kind):
    facts = box(disk(1, uses=(Use(kind, "is taken"),)), disk(2), disk(3), disk(4))
    assert "disk-in-use" in reasons(create(), facts)
    assert "[disks]" in reasons(create(), facts)


def test_it_refuses_a_pool_on_a_disk_that_is_gone():
    assert "disk-missing" in reasons(create(), box(disk(1), disk(2), disk(3)))


def test_it_tells_every_reason_at_once():
    facts = box(disk(1, uses=(BUSY,)), disk(2), pools=(Pool("tank", 5, "ONLINE"),))
    with pytest.raises(Refused) as caught:
        checked_plan(create(1, 2), facts)
    assert {reason.field for reason in caught.value.reasons} == {"name", "layout", "disks"}


def test_it_refuses_a_name_that_a_pool_here_has():
    assert "[name]" in reasons(create(), box(pools=(Pool("tank", 5, "ONLINE"),)))


@pytest.mark.parametrize("name", ["home", "srv", "etc", "var", "mnt"])
def test_it_refuses_a_name_whose_folder_the_system_has(name):
    assert "name-of-system-folder" in reasons(create(name=name), box())


def test_it_refuses_the_name_of_a_pool_that_sleeps_on_another_disk():
    exported = Use("exported", "holds the pool tank", "77", "tank")
    facts = box(*(disk(number) for number in range(1, 5)), disk(5, uses=(exported,)))
    assert "[name]" in reasons(create(), facts)
    assert reasons(create(1, 2, 3, 5), facts) == ""


def test_it_refuses_where_the_module_is_missing_and_says_only_that():
    assert reasons(create(name="etc"), box(zfs="missing")).count("[") == 1


@pytest.mark.parametrize(
    ("layout", "groups", "field"),
    [
        ("raidz2", ((1, 2, 3),), "layout"),
        ("raidz1", ((1, 2),), "layout"),
        ("raidz3", ((1, 2, 3, 4),), "layout"),
        ("mirror", ((1,),), "layout"),
        ("mirror", ((1, 2), (3, 4, 5)), "layout"),
        ("mirror", ((1, 2), (2, 3)), "disks"),
        ("mirror", ((1, 1),), "disks"),
        ("stripe", (), "disks"),
        ("stripe", ((),), "disks"),
        ("mirror", ((1, 2), ()), "layout"),
    ],
)
def test_it_refuses_disks_that_do_not_fit_the_layout(layout, groups, field):
    operation = create(layout=layout, groups=tuple(tuple(map(path_of, group)) for group in groups))
    assert f"[{field}]" in reasons(operation, box())


def test_it_refuses_more_disks_than_anyone_has():
    many = tuple(f"/dev/disk/by-id/ata-{number}" for number in range(65))
    assert "disks-too-many" in reasons(create(layout="stripe", groups=(many,)), box())


def test_the_plan_is_the_command_that_is_shown_and_run(commands):
    plan = checked_plan(create(), box())
    assert [step.name for step in plan.steps] == ["create", "verify"]
    plan.steps[0].run(Working())
    assert commands.ran == [plan.steps[0].command_text.split()]
    (argv,) = commands.ran
    assert argv[:2] == ["zpool", "create"]
    assert argv[argv.index("--") + 1 :] == ["tank", "raidz2", *map(path_of, (1, 2, 3, 4))]
    assert "-f" not in argv


def test_every_group_gets_the_word_for_its_layout():
    plan = create(layout="mirror", groups=((path_of(1), path_of(2)), (path_of(3), path_of(4)))).plan(box())
    assert plan.steps[0].command_text.endswith(
        f"-- tank mirror {path_of(1)} {path_of(2)} mirror {path_of(3)} {path_of(4)}"
    )


def test_a_stripe_has_no_word_for_its_layout():
    assert (
        create(1, 2, layout="stripe").plan(box()).steps[0].command_text.endswith(f"-- tank {path_of(1)} {path_of(2)}")
    )


def test_settings_reach_the_command():
    shown = create(ashift=13, compression="zstd", atime=True, autotrim=True).plan(box()).steps[0].command_text
    for setting in ("ashift=13", "autotrim=on", "compression=zstd", "atime=on"):
        assert setting in shown


def test_it_overrides_zpool_only_where_sizes_differ_as_it_has_warned():
    plan = create().plan(box(disk(1), disk(2), disk(3), disk(4, size=3 * 10**12)))
    assert " -f " in plan.steps[0].command_text
    assert any("differ in size" in warning for warning in plan.warnings)


def test_disks_of_nearly_one_size_are_not_warned_about():
    plan = create().plan(box(disk(1), disk(2), disk(3), disk(4, size=2 * 10**12 + 2**20)))
    assert " -f " not in plan.steps[0].command_text
    assert plan.warnings == ()


def test_it_warns_of_a_stripe_of_large_raidz1_and_of_small_sectors():
    assert any("One failed disk loses everything" in text for text in create(layout="stripe").plan(box()).warnings)
    large = box(*(disk(number, size=8 * 10**12) for number in range(1, 5)))
    assert any("raidz2 survives" in text for text in create(layout="raidz1").plan(large).warnings)
    assert any("ashift 9" in text for text in create(ashift=9).plan(box()).warnings)


def test_the_passphrase_goes_by_standard_input_and_stands_nowhere_else(commands):
    operation = create(encrypted=True)
    assert operation.wants_secret()
    plan = operation.plan(box())
    work = Working()
    plan.steps[0].run(work)
    assert commands.given == [f"{CANARY}\n"]
    assert CANARY not in " ".join(commands.ran[0]) + plan.steps[0].command_text + plan.summary + str(
        plan.identity
    ) + str(work.notes)
    assert "keylocation=prompt" in commands.ran[0]


def test_a_pool_that_is_not_encrypted_is_given_nothing(commands):
    create().plan(box()).steps[0].run(Working())
    assert commands.given == [None]


def holding() -> Any:
    return box(disk(1, uses=(OLD,), content=("sda1", "sda")), disk(2), disk(3), disk(4))


def test_a_disk_that_holds_data_is_erased_first_and_the_name_must_be_typed():
    plan = create().plan(holding())
    assert [step.name for step in plan.steps] == ["erase", "create", "verify"]
    assert plan.type_to_confirm == "tank"
    assert [loss.what for loss in plan.losses] == [
        "WDC WD20EARS-00MVWB0 (serial WD-WCAZA0000001) holds ext4 data called photos"
    ]
    assert plan.steps[0].affects == (f"{path_of(1)}-part1", path_of(1))


def test_empty_disks_lose_nothing_and_need_no_typing():
    plan = create().plan(box())
    assert (plan.losses, plan.type_to_confirm) == ((), "")


def test_erasing_touches_only_the_disks_that_hold_something(commands, monkeypatch):
    monkeypatch.setattr("pathlib.Path.exists", lambda _path: True)
    zeroed: list[str] = []
    monkeypatch.setattr("appliance.disks.clear_labels.zero_ends", zeroed.append)
    create().plan(holding()).steps[0].run(Working())
    assert zeroed == [f"{path_of(1)}-part1", path_of(1)]
    touched = {word for argv in commands.ran for word in argv if word.startswith("/dev")}
    assert touched == {path_of(1), f"{path_of(1)}-part1"}
    assert [argv for argv in commands.ran if argv[0] == "wipefs"] == [
        ["wipefs", "--all", "--", f"{path_of(1)}-part1"],
        ["wipefs", "--all", "--", path_of(1)],
    ]  # without --force, so the kernel refuses a disk in use (O_EXCL)
    assert "zpool" not in commands.tools


def test_erasing_stops_where_the_disk_has_vanished(commands):
    with pytest.raises(Failed, match="vanished"):
        create().plan(holding()).steps[0].run(Working())
    assert set(commands.tools) <= {"udevadm"}


@pytest.mark.parametrize(
    ("name", "kernel", "path"),
    [
        ("sda", "sda", "/x"),
        ("sda", "sda1", "/x-part1"),
        ("sda", "sda12", "/x-part12"),
        ("nvme0n1", "nvme0n1p2", "/x-part2"),
        ("nvme0n1", "nvme0n1", "/x"),
    ],
)
def test_it_finds_a_partitions_stable_path(name, kernel, path):
    assert partition_path(disk(1, path="/x", name=name), kernel) == path


def test_the_digest_holds_while_nothing_that_matters_changes():
    facts = holding()
    before = create().plan(facts).digest()
    renamed = box(*(replace(found, name=f"sd{letter}") for found, letter in zip(facts.disks, "wxyz", strict=True)))
    assert create().plan(renamed).digest() == before
    assert create().plan(replace(facts, disks=facts.disks[::-1])).digest() == before


def test_the_digest_changes_with_everything_that_matters():
    facts = holding()
    digests = [
        create().plan(facts).digest(),
        create().plan(box()).digest(),
        create().plan(box(replace(facts.disks[0], serial="swapped"), *facts.disks[1:])).digest(),
        create()
        .plan(box(replace(facts.disks[0], uses=(replace(OLD, identity="another"),)), *facts.disks[1:]))
        .digest(),
        create().plan(box(replace(facts.disks[0], size=10**12), *facts.disks[1:])).digest(),
        create(name="pond").plan(facts).digest(),
        create(4, 3, 2, 1).plan(facts).digest(),
        create(layout="raidz1").plan(facts).digest(),
        create(encrypted=True).plan(facts).digest(),
        create(ashift=13).plan(facts).digest(),
    ]
    assert len(set(digests)) == len(digests)


def test_both_sides_of_the_socket_make_the_same_digest():
    operation = create()
    assert decode_operation(msgspec.json.encode(operation)).plan(box()).digest() == operation.plan(box()).digest()


def test_probes_see_nothing_before_and_everything_after():
    operation = create()
    before, after = holding(), box(*(disk(number, uses=(BUSY,)) for number in range(1, 5)), pools=(made(operation),))
    for step in ("erase", "create", "verify"):
        assert operation.probe(step, before) is False
        assert operation.probe(step, after) is True


def test_probes_see_disks_erased_and_no_pool_yet():
    assert [create().probe(step, box()) for step in ("erase", "create", "verify")] == [True, False, False]


def test_a_pool_of_that_name_on_other_disks_is_not_taken_for_it():
    facts = box(pools=(made(create(1, 2, 3, 5)),))
    assert not create().probe("create", facts)
    assert "was not created" in create().recovery_hint("create", facts)


def test_a_pool_that_is_there_and_not_well_is_not_verified():
    facts = box(pools=(made(create(), "DEGRADED"),))
    assert create().probe("create", facts)
    assert not create().probe("verify", facts)
    assert "degraded" in create().recovery_hint("verify", facts)


def test_the_way_on_names_the_disk_that_does_not_answer():
    assert "WD-WCAZA0000004 does not answer" in create().recovery_hint("create", box(disk(1), disk(2), disk(3)))


def test_the_way_on_knows_traces_of_a_pool_half_made():
    trace = Use("exported", "holds the pool tank", "77", "tank")
    facts = box(disk(1, uses=(trace,)), disk(2), disk(3), disk(4))
    assert "traces" in create().recovery_hint("create", facts)
    assert reasons(create(), facts) == ""


def test_every_situation_has_another_way_on():
    facts = [
        box(pools=(made(create()),)),
        box(disk(1)),
        box(disk(1, uses=(BUSY,)), *(disk(n) for n in (2, 3, 4))),
        box(),
    ]
    said = sorted(create().recovery_hint("create", found) for found in facts)
    assert all(one != other for one, other in pairwise(said))


def test_verifying_reads_the_pool_back(monkeypatch):
    operation = create(name="pond")
    monkeypatch.setattr("appliance.zfs.status.read_pools", lambda: (recorded_pool(), made(operation)))
    work = Working()
    operation.verify_pools(work)
    assert work.notes == ["pond is online with 4 disks"]


@pytest.mark.parametrize("pools", [(), (made(create(1, 2, 3, 5)),), (made(create(), "DEGRADED"),)])
def test_verifying_fails_where_the_pool_is_not_what_was_asked(monkeypatch, pools):
    monkeypatch.setattr("appliance.zfs.status.read_pools", lambda: pools)
    with pytest.raises(Failed):
        create().verify_pools(Working())


@pytest.mark.parametrize(
    "spoil",
    [
        {"name": "tank\n"},
        {"name": "-f"},
        {"groups": [["/dev/sda"]]},
        {"groups": [["/dev/disk/by-id/x", "raidz"]]},
        {"layout": "raidz4"},
        {"ashift": 16},
        {"compression": "gzip -9"},
        {"force": True},
        {"encrypted": "yes"},
        {"groups": "tank"},
        {"kind": "destroy-pool"},
    ],
)
def test_json_that_is_not_quite_this_operation_is_refused(spoil):
    good = {"kind": "create-pool", "name": "tank", "layout": "mirror", "groups": [[path_of(1), path_of(2)]]}
    assert isinstance(decode_operation(json.dumps(good)), CreatePool)
    with pytest.raises(Refused):
        decode_operation(json.dumps(good | spoil))


def test_it_locks_its_name_and_its_disks():
    assert set(create().locks()) == {"tank", *map(path_of, (1, 2, 3, 4))}


# --- log, cache, spares -------------------------------------------------------------------------------------
def test_every_device_stands_in_the_command_and_in_the_plan():
    fast = {number: disk(number, rotational=False) for number in (4, 5, 6)}
    facts = box(*(disk(number) for number in (1, 2, 3)), *fast.values())
    operation = create(1, 2, layout="mirror", logs=(path_of(4), path_of(5)), cache=(path_of(6),), spares=(path_of(3),))
    assert reasons(operation, facts) == ""
    plan = operation.plan(facts)
    assert plan.steps[0].command_text.endswith(
        f"-- tank mirror {path_of(1)} {path_of(2)} log mirror {path_of(4)} {path_of(5)} cache {path_of(6)} "
        f"spare {path_of(3)}"
    )
    assert plan.details["Log"].startswith("mirror of WDC")
    assert set(operation.locks()) == {"tank", *map(path_of, range(1, 7))}


@pytest.mark.parametrize(
    ("changes", "field", "code"),
    [
        ({"logs": (path_of(1),)}, "logs", "disk-in-two-roles"),
        ({"cache": (path_of(5), path_of(5))}, "cache", "disk-twice"),
        ({"logs": (path_of(5),), "spares": (path_of(5),)}, "spares", "disk-in-two-roles"),
        ({"logs": tuple(path_of(number) for number in (5, 6, 7, 8))}, "logs", "log-too-wide"),
        ({"spares": (path_of(9),)}, "spares", "disk-missing"),
        ({"spares": (path_of(7),)}, "spares", "spare-too-small"),
        ({"cache": (path_of(8),)}, "cache", "disk-in-use"),
        ({"layout": "stripe", "spares": (path_of(5),)}, "spares", "spare-without-redundancy"),
    ],
)
def test_a_device_that_cannot_be_used_is_refused_at_its_field(changes, field, code):
    facts = box(
        *(disk(number) for number in range(1, 7)),
        disk(7, size=10**12),
        disk(8, uses=(Use("system", "holds the system"),)),
    )
    assert f"[{field}] {code}" in reasons(create(**changes), facts)


def test_a_device_with_old_data_is_erased_and_its_loss_is_told():
    facts = box(*(disk(number) for number in range(1, 5)), disk(5, uses=(OLD,), content=("sde",)))
    plan = create(logs=(path_of(5),)).plan(facts)
    assert [step.name for step in plan.steps] == ["erase", "create", "verify"]
    assert plan.type_to_confirm == "tank"


def test_the_digest_covers_every_device():
    digests = {
        create(**changes).plan(box()).digest()
        for changes in (
            {},
            {"logs": (path_of(5),)},
            {"cache": (path_of(5),)},
            {"spares": (path_of(5),)},
            {"logs": (path_of(6),)},
        )
    }
    assert len(digests) == 5


def test_a_pool_read_back_without_its_log_is_not_what_was_asked(monkeypatch):
    operation = create(logs=(path_of(5),))
    assert not operation.made_of_our_disks(made(create()))
    log = Vdev("x", "disk", 1, "ONLINE", "log", path=f"{path_of(5)}-part1")
    spare = Vdev(path_of(6).rsplit("/", 1)[-1], "disk", 1, "AVAIL", "spare")
    whole = replace(made(create()), vdevs=(*made(create()).vdevs, log))
    assert operation.made_of_our_disks(whole)
    with_spare = create(logs=(path_of(5),), spares=(path_of(6),))
    assert with_spare.made_of_our_disks(replace(whole, vdevs=(*whole.vdevs, spare)))


# --- equal partitions ---------------------------------------------------------------------------------------
SLICE = 1_900_000 * 2**20
UNEQUAL = [disk(1), disk(2), disk(3, size=3 * 10**12)]


def cut_up(**changes: Any) -> CreatePool:
    return create(1, 2, 3, **{"layout": "raidz1", "partition": SLICE, "rest": "spill", **changes})


def test_equal_partitions_make_two_pools_and_say_which_protects_nothing(commands):
    facts = box(*UNEQUAL)
    assert reasons(cut_up(), facts) == ""
    plan = cut_up().plan(facts)
    assert [step.name for step in plan.steps] == ["partition", "create", "create-rest", "verify"]
    assert plan.steps[1].command_text.endswith(
        f"-- tank raidz1 {path_of(1)}-part1 {path_of(2)}-part1 {path_of(3)}-part1"
    )
    assert plan.steps[2].command_text.endswith(f"-m /spill -- spill {path_of(3)}-part2")
    assert "-f" not in plan.steps[1].command_text.split()
    assert "not protected" in plan.summary
    assert any("loses everything in spill" in text for text in plan.warnings)
    assert not any("differ in size" in text for text in plan.warnings)
    assert set(cut_up().locks()) >= {"tank", "spill"}


def test_the_remainder_can_be_left_unused():
    plan = cut_up(rest="").plan(box(*UNEQUAL))
    assert [step.name for step in plan.steps] == ["partition", "create", "verify"]
    assert "--new=2" not in plan.steps[0].command_text


@pytest.mark.parametrize(
    ("changes", "field", "code"),
    [
        ({"partition": 2 * SLICE}, "disks", "disk-too-small-for-partition"),
        ({"rest": "tank"}, "rest", "pool-names-equal"),
        ({"rest": "home"}, "rest", "name-of-system-folder"),
        ({"layout": "stripe"}, "layout", "partitions-in-stripe"),
        ({"groups": ((path_of(1), path_of(2)),), "layout": "mirror"}, "rest", "rest-empty"),
    ],
)
def test_partitions_that_do_not_work_are_refused(changes, field, code):
    assert f"[{field}] {code}" in reasons(cut_up(**changes), box(*UNEQUAL))


def test_the_second_pools_name_may_not_be_taken():
    facts = box(*UNEQUAL, pools=(Pool("spill", 5, "ONLINE"),))
    assert "[rest]" in reasons(cut_up(), facts)


def test_what_is_left_can_be_mirrored():
    disks = [disk(1), *(disk(number, size=3 * 10**12) for number in (2, 3))]
    operation = cut_up(rest_mirror=True)
    plan = operation.plan(box(*disks))
    shown = next(step.command_text for step in plan.steps if step.name == "create-rest")
    assert f"-- spill mirror {path_of(2)}-part2 {path_of(3)}-part2" in shown
    assert " -f " not in shown
    assert plan.details["Survives in spill"] == "one failed disk"
    assert "mirrored" in plan.summary
    assert not any("loses everything in spill" in text for text in plan.warnings)
    assert "rest-not-mirrored-by-one" in reasons(operation, box(*UNEQUAL))
    larger = [disk(1), disk(2, size=3 * 10**12), disk(3, size=4 * 10**12)]
    assert "zpool create -f " in operation.plan(box(*larger)).steps[2].command_text


@pytest.mark.parametrize(
    "changes",
    [
        {"partition": SLICE + 1},
        {"partition": -(2**20)},
        {"partition": 2**20},
        {"partition": 0},
        {"rest": "mirror"},
        {"rest": "-f"},
    ],
)
def test_partitions_outside_the_grammar_are_refused(changes):
    with pytest.raises(Refused):
        cut_up(**changes)


def both(operation: CreatePool, state: str = "ONLINE") -> tuple[Pool, Pool]:
    first = Vdev(
        "raidz1-0",
        "raidz",
        2,
        state,
        children=tuple(Vdev("x", "disk", 1, state, path=f"{path}-part1") for path in operation.disks),
    )
    return (
        Pool("tank", 5, state, (first,)),
        Pool("spill", 6, state, (Vdev("x", "disk", 1, state, path=f"{path_of(3)}-part2"),)),
    )


def test_probes_see_each_of_the_two_pools():
    operation = cut_up()
    first, second = both(operation)
    steps = ("partition", "create", "create-rest", "verify")
    assert [operation.probe(step, box(*UNEQUAL)) for step in steps] == [False, False, False, False]
    assert [operation.probe(step, box(*UNEQUAL, pools=(first,))) for step in steps] == [True, True, False, False]
    assert [operation.probe(step, box(*UNEQUAL, pools=(first, second))) for step in steps] == [True] * 4
    assert "spill is not there" in operation.recovery_hint("create-rest", box(*UNEQUAL, pools=(first,)))


def test_probes_see_disks_that_are_partitioned_and_hold_no_pool_yet(monkeypatch):
    monkeypatch.setattr("appliance.pools.create.has_partitions", lambda _cut: True)
    table = Use("old", "has a partition table (gpt)")
    facts = box(*(replace(one, uses=(table,)) for one in UNEQUAL))
    assert [cut_up().probe(step, facts) for step in ("erase", "partition", "create")] == [True, True, False]
    assert "partitioned" in cut_up().recovery_hint("create", facts)
    assert reasons(cut_up(), facts) == ""


def test_verifying_reads_both_pools_back(monkeypatch):
    operation = cut_up()
    monkeypatch.setattr("appliance.zfs.status.read_pools", lambda: both(operation))
    work = Working()
    operation.verify_pools(work)
    assert work.notes == ["tank is online with 3 disks", "spill is online with 1 disk"]
    monkeypatch.setattr("appliance.zfs.status.read_pools", lambda: both(operation)[:1])
    with pytest.raises(Failed, match="spill"):
        operation.verify_pools(Working())


# --- keys ---------------------------------------------------------------------------------------------------
KEY = "0123456789abcdef" * 4


class Keyed(Working):
    """A Work whose secret can be had once, as in life."""

    def __init__(self, secret: str) -> None:
        super().__init__()
        self.left = [secret]

    def secret(self) -> str:
        return self.left.pop()


def test_a_key_goes_by_standard_input_to_both_pools_and_stands_nowhere_else(commands):
    operation = cut_up(encrypted=True, key_file=True)
    plan = operation.plan(box(*UNEQUAL))
    assert plan.key_file
    work = Keyed(KEY)
    for step in plan.steps[1:3]:
        step.run(work)
    assert commands.given == [f"{KEY}\n"] * 2
    assert all("keyformat=hex" in argv and "keylocation=prompt" in argv for argv in commands.ran)
    assert KEY not in repr(plan) + json.dumps(plan.identity, default=str) + repr(commands.ran)


@pytest.mark.parametrize("secret", ["not a key at all", KEY[:-1], KEY + "0", KEY + "\n"])
def test_a_secret_that_is_no_key_reaches_no_command(commands, secret):
    with pytest.raises(Refused):
        create(encrypted=True, key_file=True).plan(box()).steps[0].run(Keyed(secret))
    assert commands.ran == []


def test_a_key_file_without_encryption_is_refused():
    with pytest.raises(Refused, match="encrypted"):
        create(key_file=True)


def test_created_pool_is_never_mounted_over_files():
    (step,) = [step for step in create().plan(box()).steps if step.name == "create"]
    assert "-O overlay=off" in step.command_text
