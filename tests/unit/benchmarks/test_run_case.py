"""Running one case: refusals, exact commands, and that cleaning up touches only what was made for the case."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from appliance import command
from appliance.agent.registry import decode_operation
from appliance.benchmarks import environment, run_program, scratch, scratch_claim
from appliance.benchmarks.case import Case
from appliance.benchmarks.cleanup import CleanUpBenchmark
from appliance.benchmarks.prefill import Prefill
from appliance.benchmarks.progress import progress_reporter
from appliance.benchmarks.results import RESULT, BenchmarkRun
from appliance.benchmarks.run_case import RunBenchmarkCase
from appliance.benchmarks.run_program import CaseRunner
from appliance.benchmarks.scratch_claim import Claim
from appliance.disks import clear_labels, inventory, udev
from appliance.errors import Cancelled, Failed
from appliance.facts.box import Facts, Use
from appliance.layout.geometry import GIB, MIB
from appliance.operation import as_json, checked_plan
from appliance.shares.settings import setting_of
from appliance.snapshots import policy
from appliance.system import paths
from appliance.zfs import kstat, status
from tests.reasons import codes, expect_refusal
from tests.unit.made import box, dataset, disk, path_of, recorded_text
from tests.unit.pools import shapes
from tests.unit.pools.test_create import Working

TOKEN = "0123456789ab"
NAME = f"larder-sweep-{TOKEN}"
TRACES = Use("exported", f"holds the pool {NAME}, which is not in use here", "42", NAME)
NAMELESS = Use("exported", "holds the pool without a name, which is not in use here")
TABLE = Use("old", "has a partition table (gpt)")


def operation(**changes: Any) -> RunBenchmarkCase:
    made = {"where": "scratch", "workload": "seq-write", "disks": tuple(map(path_of, (1, 2, 3))), "layout": "raidz1"}
    return RunBenchmarkCase(token=TOKEN, case=msgspec.convert({**made, **changes}, Case))


def refused_codes(found: RunBenchmarkCase, facts: Facts) -> list[str]:
    return codes(found.check(facts))


# --- what is refused ------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "use",
    [
        Use("old", "holds ext4 data called photos", "1"),
        Use("old", "has a partition table (dos)"),
        Use("exported", "holds the pool attic, which is not in use here", "7", "attic"),
        Use("pool", "is part of the pool tank", "8", "tank"),
        Use("old", "was part of the pool tank, which has no place for it any more", "8", "tank"),
        Use("swap", "is used as swap"),
        Use("raid", "is part of a set of disks (LVM2_member)"),
        Use("mounted", "is in use at /mnt"),
        Use("system", "holds the system"),
    ],
    ids=lambda use: use.text,
)
@pytest.mark.parametrize("role", ["disks", "log", "cache"])
def test_disk_in_use_is_refused_with_its_use_in_every_role(use, role):
    changes = {} if role == "disks" else {role: path_of(4)}
    number = 2 if role == "disks" else 4
    facts = box(*(disk(at, uses=(use,) if at == number else ()) for at in range(1, 7)))
    (reason,) = operation(**changes).check(facts)
    assert (reason.code, reason.message.arguments["use"]) == ("benchmark-disk-in-use", use.text)
    assert f"WD-WCAZA000000{number}" in reason.message.arguments["disk"]
    with expect_refusal("benchmark-disk-in-use"):
        checked_plan(operation(**changes), facts)


def test_digest_covers_the_identity_of_the_disks():
    empty = checked_plan(operation(), box()).digest()
    other = checked_plan(operation(), box(*(disk(at, serial="OTHER" if at == 1 else f"{at}") for at in range(1, 4))))
    assert empty != other.digest()


def test_missing_disk_and_too_small_pool_are_refused():
    assert refused_codes(operation(), box(disk(1), disk(2))) == ["disk-missing"]
    small = box(*(disk(at, size=GIB) for at in range(1, 4)))
    assert refused_codes(operation(size=4 * GIB), small) == ["scratch-pool-too-small"]
    assert set(refused_codes(operation(partition=2 * GIB), small)) == {"disk-too-small-for-partition"}
    large_sectors = box(*(disk(at, logical_sector=4096) for at in range(1, 4)))
    assert set(refused_codes(operation(ashift=9), large_sectors)) == {"ashift-too-small"}


def in_pool(**changes: Any) -> RunBenchmarkCase:
    return operation(where="dataset", disks=(), layout="stripe", pool="tank", guid=7, **changes)


def test_pool_in_use_needs_space_and_has_to_be_unlocked():
    pool = shapes.single()
    facts = Facts((pool,), (dataset("tank", available=100 * GIB),))
    assert refused_codes(in_pool(), facts) == []
    assert refused_codes(in_pool(size=100 * GIB), facts) == ["benchmark-needs-space"]
    locked = Facts((pool,), (dataset("tank", available=100 * GIB, key_status="unavailable"),))
    assert refused_codes(in_pool(), locked) == ["pool-not-writable"]
    assert refused_codes(in_pool(), Facts()) == ["pool-missing"]


def test_raw_disk_of_a_pool_may_be_read():
    single = operation(where="disk", disks=(path_of(1),), layout="stripe", workload="disk-start")
    plan = checked_plan(single, box(disk(1, uses=(Use("pool", "is part of the pool tank", "7", "tank"),))))
    assert [step.name for step in plan.steps] == ["run-1", "run-2", "run-3"]
    assert all("--readonly" in step.command_text for step in plan.steps)


@pytest.mark.parametrize("token", ["", "0123456789AB", "../../../etc", "0123456789abc", "0123456789a\n"])
def test_token_is_twelve_hexadecimal_digits(token):
    for kind in ("run-benchmark-case", "clean-up-benchmark"):
        raw = json.loads(as_json(operation())) | {"kind": kind, "token": token}
        if kind == "clean-up-benchmark":
            raw.pop("case")
        with expect_refusal("case-token-invalid"):
            decode_operation(json.dumps(raw))


def test_case_survives_encoding_as_a_job():
    assert decode_operation(as_json(operation(log=path_of(4)))) == operation(log=path_of(4))


# --- the commands ---------------------------------------------------------------------------------------------
def test_scratch_pool_has_no_cache_file_and_carries_its_token():
    argv = scratch.create_pool_command(operation(log=path_of(4), ashift=9).case, TOKEN, unequal=False)
    assert "cachefile=none" in argv
    assert f"larder:sweep={TOKEN}" in argv
    assert "ashift=9" in argv
    assert "-f" not in argv
    assert argv[argv.index("--") :] == ["--", NAME, "raidz1", path_of(1), path_of(2), path_of(3), "log", path_of(4)]


def test_four_mirrored_disks_make_pairs_of_partitions():
    case = operation(layout="mirror", disks=tuple(map(path_of, (1, 2, 3, 4))), partition=GIB).case
    words = scratch.create_pool_command(case, TOKEN, unequal=False)
    assert words[words.index(NAME) + 1 :] == [
        "mirror",
        f"{path_of(1)}-part1",
        f"{path_of(2)}-part1",
        "mirror",
        f"{path_of(3)}-part1",
        f"{path_of(4)}-part1",
    ]


def test_scratch_folder_has_a_quota_in_its_pool():
    argv = scratch.create_dataset_command(in_pool().case, TOKEN, 2 * GIB)
    assert f"quota={2 * GIB}" in argv
    assert argv[-1] == f"tank/{NAME}"


def test_steps_of_a_reading_case():
    plan = checked_plan(operation(workload="seq-read", partition=GIB * 100, warmups=2, repeats=2), box())
    assert [step.name for step in plan.steps] == [
        "claim",
        "partition",
        "create",
        "lay",
        "warm",
        "run-1",
        "run-2",
        "clear",
    ]
    assert plan.losses == ()


# --- a run ----------------------------------------------------------------------------------------------------
@pytest.fixture
def quiet(monkeypatch: pytest.MonkeyPatch) -> dict[str, list]:
    """Reads no pool or disk of this computer. Tests set what lsblk and zpool would report."""
    world: dict[str, list] = {"pools": [], "disks": []}
    monkeypatch.setattr(status, "read_pools", lambda: tuple(world["pools"]))
    monkeypatch.setattr(status, "is_module_loaded", lambda: True)
    monkeypatch.setattr(inventory, "read_disks", lambda _pools: tuple(world["disks"]))
    monkeypatch.setattr(udev, "settle_udev", lambda: None)
    monkeypatch.setattr(udev, "reread_disks", lambda _disks: None)
    monkeypatch.setattr(scratch, "size_of", lambda _path: GIB)
    monkeypatch.setattr(udev, "SECONDS_BETWEEN_LOOKS", 0)
    monkeypatch.setattr(Path, "exists", lambda _path: True)
    monkeypatch.setattr(clear_labels, "zero_ends", lambda _path: None)
    monkeypatch.setattr(environment, "read_memory_limit", lambda: GIB)
    return world


def test_run_writes_its_figures_to_the_log(commands, folders, quiet, monkeypatch):
    readings = iter(
        [{path_of(1): environment.DiskIo()}] * 2 + [{path_of(1): environment.DiskIo(10, 0, 200 * MIB, 0.5)}] * 9
    )
    monkeypatch.setattr(environment, "read_io", lambda _paths: next(readings))
    clock = itertools.count(1000.0, 0.001)
    monkeypatch.setattr(run_program, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    commands.answers["fio"] = recorded_text("fio-write-3.39.json")
    found, work = operation(size=64 * MIB, repeats=1), Working()
    scratch.scratch_folder(TOKEN).mkdir(parents=True)
    (scratch.scratch_folder(TOKEN) / "data").touch()
    plan = checked_plan(found, box())
    next(step for step in plan.steps if step.name == "run-1").run(work)
    (line,) = [note for note in work.notes if note.startswith(RESULT)]
    run = msgspec.json.decode(line.removeprefix(RESULT), type=BenchmarkRun)
    assert run.figures.rate == pytest.approx(883011368, rel=0.02)  # with the time that waiting for the pool took
    assert run.around.written == 200 * MIB
    assert run.invalid == ()
    assert run.around.per_disk == {path_of(1).rsplit("/", 1)[-1]: 0.05}
    assert not list(scratch.scratch_folder(TOKEN).iterdir())
    assert [argv[:2] for argv in commands.ran if argv[0] == "zpool"] == [
        ["zpool", "export"],
        ["zpool", "import"],
        ["zpool", "sync"],
        ["zpool", "sync"],
    ]
    assert len(line) < 2000


def test_pool_is_imported_only_when_all_partitions_exist(commands, quiet, monkeypatch):
    sizes = iter([GIB, GIB, 0, GIB, GIB, GIB, GIB, GIB, GIB, GIB])
    settled: list[int] = []
    monkeypatch.setattr(scratch, "size_of", lambda _path: next(sizes))
    monkeypatch.setattr(udev, "settle_udev", lambda: settled.append(1))
    scratch.wait_for_partitions(operation().case)
    assert len(settled) == 3
    monkeypatch.setattr(scratch, "size_of", lambda _path: 0)
    with pytest.raises(Failed, match="did not come back"):
        scratch.wait_for_partitions(operation().case)


def test_scratch_folder_inherits_no_share_and_no_schedule():
    argv = scratch.create_dataset_command(in_pool().case, TOKEN, GIB)
    assert {"larder:share=none", "larder:policy=none"} <= set(argv)
    scratched = dataset("tank/x", share="none", share_source="local", policy="none", policy_source="local")
    assert setting_of(scratched) is None
    assert policy.policy_of(scratched) is None


def test_suspended_pool_ends_the_run_at_once(folders, quiet, monkeypatch, tmp_path):
    monkeypatch.setattr(command, "SECONDS_BETWEEN_LOOKS", 0.05)
    monkeypatch.setattr(environment, "read_io", lambda _paths: {})
    monkeypatch.setattr(kstat, "KSTAT", tmp_path)
    (tmp_path / NAME).mkdir()
    (tmp_path / NAME / "state").write_text("SUSPENDED\n")
    look = progress_reporter(operation().target, Working(), "Run 1 of 3", 10)
    with pytest.raises(Failed, match="does not answer"):
        command.run(["sleep", "60"], meanwhile=look)
    (tmp_path / NAME / "state").write_text("ONLINE\n")
    look()


def test_run_during_a_scrub_of_another_pool_is_repeated(commands, folders, quiet, monkeypatch):
    monkeypatch.setattr(environment, "read_io", lambda _paths: {})
    monkeypatch.setattr(environment, "running_pool_work", lambda _pools, _but: ("tank was being scrubbed.",))
    commands.answers["fio"] = recorded_text("fio-sync-3.39.json")
    scratch.scratch_folder(TOKEN).mkdir(parents=True)
    work = Working()
    found = operation(workload="sync-write", repeats=1)
    next(step for step in checked_plan(found, box()).steps if step.name == "run-1").run(work)
    assert commands.tools.count("fio") == 2
    assert "tank was being scrubbed." in " ".join(work.notes)


def test_run_during_a_self_test_is_repeated(commands, folders, quiet, monkeypatch):
    monkeypatch.setattr(environment, "read_io", lambda _paths: {})
    running = {"ata_smart_data": {"self_test": {"status": {"value": 249, "remaining_percent": 90}}}}
    commands.answers |= {"fio": recorded_text("fio-sync-3.39.json"), "smartctl": json.dumps(running)}
    scratch.scratch_folder(TOKEN).mkdir(parents=True)
    work = Working()
    found = operation(workload="sync-write", repeats=1)
    next(step for step in checked_plan(found, box()).steps if step.name == "run-1").run(work)
    assert commands.tools.count("fio") == 2
    said = "The disk WDC WD20EARS-00MVWB0 (serial WD-WCAZA0000001) was testing itself."
    assert said in " ".join(work.notes)
    (line,) = [note for note in work.notes if note.startswith(RESULT)]
    assert said in msgspec.json.decode(line.removeprefix(RESULT), type=BenchmarkRun).disturbed


def test_disk_is_asked_for_its_self_test_once_and_not_woken(commands):
    assert environment.running_selftests([f"{path_of(1)}-part1", f"{path_of(1)}-part2", path_of(2)]) == ()
    assert [argv[-1] for argv in commands.ran] == [path_of(1), path_of(2)]
    assert all("standby" in argv for argv in commands.ran)


def test_io_is_read_from_the_kernels_counters():
    text = "  100  5  2048  300  50  2  4096  200  0  600  500 0 0 0 0 0 0"
    assert environment.parse_block_stat(text) == environment.DiskIo(150, 2048 * 512, 4096 * 512, 0.5)
    assert environment.parse_block_stat("nonsense") == environment.DiskIo()
    done = environment.io_between(
        {"a": environment.DiskIo(100, 0, 0, 1.0)},
        {"a": environment.DiskIo(200, 512, 1024, 3.0), "b": environment.DiskIo()},
    )
    assert (done.read, done.written, done.per_disk) == (512, 1024, {"a": 0.02})


# --- cleaning up ----------------------------------------------------------------------------------------------
def claimed(*numbers: int, pool: str = "") -> None:
    scratch_claim.write_claim(Claim(token=TOKEN, disks=tuple(map(path_of, numbers)), pool=pool))


def scratch_pool(state: str = "ONLINE") -> Any:
    return shapes.pool(shapes.leaf(1), name=NAME, state=state)


def test_cleanup_removes_the_pool_its_traces_and_the_claim(commands, folders, quiet):
    claimed(1, 2)
    quiet["pools"] = [scratch_pool()]
    quiet["disks"] = [disk(1, uses=(TRACES,), content=("sda1", "sda")), disk(2)]
    commands.answers |= {"zfs": f"{TOKEN}\n", "lsblk": '{"blockdevices": []}'}
    scratch.clear_case(TOKEN, Working())
    assert ["zpool", "destroy", "-f", "--", NAME] in commands.ran
    assert [argv[-1] for argv in commands.ran if argv[0] == "wipefs"] == [f"{path_of(1)}-part1", path_of(1)]
    assert scratch_claim.read_claim(TOKEN) is None


def test_cleanup_is_harmless_to_repeat(commands, folders, quiet):
    scratch.clear_case(TOKEN, Working())
    assert commands.ran == []


def test_cleanup_leaves_a_pool_without_the_token(commands, folders, quiet):
    claimed(1)
    quiet["pools"] = [scratch_pool()]
    commands.answers["zfs"] = "\n"
    with pytest.raises(Failed, match="left alone"):
        scratch.clear_case(TOKEN, Working())
    assert not any("destroy" in argv for argv in commands.ran)
    assert scratch_claim.read_claim(TOKEN) is not None


def test_cleanup_fails_at_a_suspended_pool_and_keeps_the_claim(commands, folders, quiet, monkeypatch):
    monkeypatch.setattr(scratch, "size_of", lambda _path: 0)
    claimed(1)
    quiet["pools"] = [scratch_pool("SUSPENDED")]
    with pytest.raises(Failed, match="Put the disk back"):
        scratch.clear_case(TOKEN, Working())
    assert scratch_claim.read_claim(TOKEN) is not None
    assert commands.ran == []  # with its disk away it could wait for ever


def test_cleanup_resumes_a_suspended_pool_once_its_disks_are_back(commands, folders, quiet):
    claimed(1)
    quiet["pools"], quiet["disks"] = [scratch_pool("SUSPENDED")], [disk(1)]
    commands.answers["zfs"] = f"{TOKEN}\n"

    def told(argv: list[str]) -> None:
        if argv[:2] == ["zpool", "clear"]:
            quiet["pools"] = [scratch_pool()]

    commands.on_run = told
    scratch.clear_case(TOKEN, Working())
    assert ["zpool", "destroy", "-f", "--", NAME] in commands.ran
    assert scratch_claim.read_claim(TOKEN) is None


@pytest.mark.parametrize(
    ("found", "labels", "mine"),
    [
        (disk(1, uses=(TRACES,)), [], True),
        (disk(1, uses=(TABLE,)), [NAME], True),
        (disk(1, uses=(TABLE,)), ["zfs-0123456789abcdef", ""], True),
        (disk(1, uses=(TABLE,)), ["photos"], False),
        (disk(1, uses=(TABLE,)), [], False),  # a table of somebody's, with partitions that have no name
        (disk(1, uses=(TABLE,)), [""], False),
        (disk(1, uses=(TABLE,)), ["", ""], False),
        (disk(1, uses=(NAMELESS,)), ["zfs-0123456789abcdef", ""], True),
        (disk(1, uses=(NAMELESS,)), ["photos"], False),
        (disk(1, uses=(Use("old", "holds ext4 data", "1"),)), [], False),
        (disk(1, uses=(TRACES, Use("old", "holds ext4 data", "1"))), [NAME], False),
        (disk(1, uses=(Use("exported", "holds the pool attic", "9", "attic"),)), [NAME], False),
        (disk(1, uses=(Use("pool", f"is part of the pool {NAME}", "9", NAME),)), [NAME], False),
    ],
)
def test_cleanup_erases_only_disks_with_nothing_but_the_scratch_pool(found, labels, mine):
    assert scratch.is_leftover(found, Claim(token=TOKEN, disks=(path_of(1),)), labels) is mine


def test_cleanup_leaves_a_disk_with_other_data(commands, folders, quiet):
    claimed(1)
    quiet["disks"] = [disk(1, uses=(Use("old", "holds ext4 data called photos", "1"),), content=("sda",))]
    commands.answers["lsblk"] = '{"blockdevices": [{"children": [{"partlabel": "photos"}]}]}'
    work = Working()
    scratch.clear_case(TOKEN, work)
    assert "wipefs" not in commands.tools
    assert "left alone" in " ".join(work.notes)


def test_missing_disk_stays_claimed_until_it_is_back(commands, folders, quiet):
    claimed(1, 2)
    quiet["disks"] = [disk(1)]
    scratch.clear_case(TOKEN, Working())
    left = scratch_claim.read_claim(TOKEN)
    assert left is not None
    assert left.disks == (path_of(2),)
    quiet["disks"] = [disk(1), disk(2, uses=(TRACES,), content=("sdb1", "sdb"))]
    commands.answers["lsblk"] = '{"blockdevices": []}'
    scratch.clear_case(TOKEN, Working())
    assert {argv[-1] for argv in commands.ran if argv[0] == "wipefs"} == {f"{path_of(2)}-part1", path_of(2)}
    assert scratch_claim.read_claim(TOKEN) is None


@pytest.mark.parametrize(("sign", "gone"), [(TOKEN, True), ("", False), ("ba9876543210", False)])
def test_cleanup_removes_a_folder_only_with_the_token(commands, folders, quiet, sign, gone):
    claimed(pool="tank")
    quiet["pools"] = [shapes.single()]
    commands.answers["zfs"] = f"{sign}\n"
    scratch.clear_case(TOKEN, Working())
    destroyed = ["zfs", "destroy", "-r", "-f", "--", f"tank/{NAME}"] in commands.ran
    assert destroyed is gone


@pytest.mark.parametrize("pools", [[], [shapes.pool(shapes.leaf(1), state="SUSPENDED")]], ids=["away", "stopped"])
def test_cleanup_keeps_the_claim_of_a_folder_in_a_missing_pool(commands, folders, quiet, pools):
    claimed(pool="tank")
    quiet["pools"] = pools
    with pytest.raises(Failed, match="Bring the pool back"):
        scratch.clear_case(TOKEN, Working())
    assert scratch_claim.read_claim(TOKEN) is not None
    assert commands.ran == []


def test_damaged_claim_erases_nothing(commands, folders, quiet):
    claimed(1)
    (paths.AGENT_STATE / "sweeps" / TOKEN).write_bytes(b"{")
    with pytest.raises(Failed):
        scratch.clear_case(TOKEN, Working())
    assert commands.ran == []


def test_cleanup_probe_looks_for_leftovers(folders):
    clear = CleanUpBenchmark(token=TOKEN)
    assert clear.probe("clear", box())
    assert not clear.probe("clear", box(disk(1, uses=(TRACES,))))
    assert not clear.probe("clear", Facts((scratch_pool(),)))
    claimed(pool="tank")
    assert not clear.probe("clear", box())


def test_an_interrupted_case_never_counts_as_measured():
    assert not any(operation().probe(step.name, box()) for step in checked_plan(operation(), box()).steps)


# --- stopping -------------------------------------------------------------------------------------------------
def test_running_program_is_stopped_on_request(monkeypatch):
    monkeypatch.setattr(command, "SECONDS_BETWEEN_LOOKS", 0.05)
    looks = []

    def look() -> None:
        looks.append(1)
        if len(looks) == 3:
            raise Cancelled

    with pytest.raises(Cancelled):
        command.run(["sleep", "60"], meanwhile=look)
    assert len(looks) == 3


def test_watched_program_returns_all_its_output(monkeypatch):
    monkeypatch.setattr(command, "SECONDS_BETWEEN_LOOKS", 0.05)
    result = command.run(["sh", "-c", "cat; sleep 0.3; echo done"], given="begun\n", meanwhile=lambda: None)
    assert result.stdout == "begun\ndone\n"


def test_watched_program_has_a_timeout(monkeypatch):
    monkeypatch.setattr(command, "SECONDS_BETWEEN_LOOKS", 0.05)
    with pytest.raises(command.CommandTimedOut):
        command.run(["sleep", "60"], timeout=0.3, meanwhile=lambda: None)


@pytest.mark.parametrize(
    "said", ["cannot import 'x': no such pool available", "one or more devices is currently unavailable"]
)
def test_import_is_retried_after_a_disk_disappeared_briefly(commands, quiet, said):
    texts = iter([said, ""])

    def refuse(argv: list[str]) -> None:
        if text := next(texts):
            raise command.CommandFailed(command.Result(tuple(argv), 1, "", text, 0.0))

    commands.on_run = refuse
    out_and_back = scratch.remount_commands(operation().case, TOKEN)
    scratch.run_when_disks_return(operation().case, out_and_back[1])
    assert commands.tools == ["zpool", "zpool"]
    texts = iter(["cannot import 'x': pool is formatted using an unsupported version"])
    with pytest.raises(command.CommandFailed):
        scratch.run_when_disks_return(operation().case, out_and_back[1])


def test_cleanup_retries_while_the_target_is_busy(commands, folders, quiet):
    """What the killed agent had started outlives it by a moment."""
    claimed(pool="tank")
    quiet["pools"] = [shapes.single()]
    commands.answers["zfs"] = f"{TOKEN}\n"
    busy = iter(["cannot unmount '/run/larder/sweeps/x': pool or dataset is busy", ""])

    def refuse(argv: list[str]) -> None:
        if argv[:2] == ["zfs", "destroy"] and (text := next(busy)):
            raise command.CommandFailed(command.Result(tuple(argv), 1, "", text, 0.0))

    commands.on_run = refuse
    scratch.clear_case(TOKEN, Working())
    assert [argv[:2] for argv in commands.ran].count(["zfs", "destroy"]) == 2
    assert scratch_claim.read_claim(TOKEN) is None


# --- volumes --------------------------------------------------------------------------------------------------
def test_volume_replaces_the_file_and_bypasses_the_page_cache():
    found = operation(workload="random-write", volblocksize=16384, size=64 * MIB)
    plan = checked_plan(found, box())
    assert [step.name for step in plan.steps[:4]] == ["claim", "create", "volume", "lay"]
    assert plan.steps[2].command_text.endswith(f"zfs create -s -V {64 * MIB} -b 16384 -- {NAME}/volume")
    device = f"--filename=/dev/zvol/{NAME}/volume"
    assert all(device in step.command_text and "--direct=1" in step.command_text for step in plan.steps[3:5])
    assert found.case.settings["Volume blocks"] == "16 KiB"


def test_run_waits_for_the_device_of_a_volume(commands, folders, quiet, monkeypatch):
    done: list[str] = []
    monkeypatch.setattr(scratch, "wait_for_volume", lambda *_which: done.append("waited"))
    scratch.scratch_folder(TOKEN).mkdir(parents=True)
    commands.on_run = lambda argv: done.append(argv[0])
    CaseRunner(operation(volblocksize=16384).target, (), Prefill()).prepare_run(Working())
    assert done == ["waited", "blkdiscard", "zpool", "zpool", "waited"]


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"workload": "small-files"}, "workload-not-for-volume"),
        ({"volblocksize": 12345}, "volume-block-size-invalid"),
        ({"volblocksize": 2**18}, "volume-block-size-invalid"),
        ({"workload": "dd-write"}, "workload-not-for-volume"),
    ],
)
def test_workload_that_cannot_use_a_volume_is_refused(changes, code):
    with expect_refusal(code):
        operation(**{"volblocksize": 16384, **changes})


def test_export_is_retried_while_the_pool_is_busy(monkeypatch):
    said = iter(["cannot export 'x': pool is busy", "cannot export 'x': pool is busy", ""])

    def run(argv: Any, **_more: Any) -> command.Result:
        text = next(said)
        result = command.Result(tuple(argv), 1 if text else 0, "", text, 0.0)
        if text:
            raise command.CommandFailed(result)
        return result

    monkeypatch.setattr(command, "run", run)
    monkeypatch.setattr(udev, "settle_udev", lambda: None)
    monkeypatch.setattr(udev, "SECONDS_BETWEEN_LOOKS", 0)
    scratch.run_when_idle(["zpool", "export", "--", NAME])
    said = iter(["cannot export 'x': no such pool"])
    with pytest.raises(command.CommandFailed):
        scratch.run_when_idle(["zpool", "export", "--", NAME])
