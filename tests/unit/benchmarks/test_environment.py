"""Other activity of the box during a benchmark, and cache devices that have to be warm first."""

from __future__ import annotations

import msgspec
import pytest

from appliance.benchmarks import environment, estimate, run_program, scratch, validity, workload_command
from appliance.benchmarks.prefill import Prefill
from appliance.benchmarks.results import RESULT, BenchmarkRun
from appliance.benchmarks.target import BenchmarkTarget
from appliance.benchmarks.validity import Circumstances
from appliance.layout.geometry import GIB, MIB
from appliance.operation import checked_plan
from appliance.zfs import kstat
from tests.unit.benchmarks.test_run_case import NAME, TOKEN, in_pool, operation, quiet  # noqa: F401 - a fixture
from tests.unit.made import box, path_of, recorded_text
from tests.unit.pools import shapes
from tests.unit.pools.test_create import Working

PHOTOS = (
    "12 1 0x01 7 2160 5 9\nname type data\ndataset_name 7 tank/my photos\nwrites 4 1\nnwritten 4 "
    "{written}\nreads 4 1\nnread 4 {read}\n"
)


@pytest.fixture
def kstats(monkeypatch, tmp_path):
    monkeypatch.setattr(kstat, "KSTAT", tmp_path)
    (tmp_path / "tank").mkdir()
    return tmp_path / "tank"


def test_other_folders_of_the_measured_pool_are_looked_at_and_the_scratch_folder_is_not(kstats):
    (kstats / "objset-0x36").write_text(PHOTOS.format(written=5, read=7))
    (kstats / "objset-0x99").write_text(PHOTOS.replace("tank/my photos", f"tank/{NAME}").format(written=50, read=70))
    assert environment.read_other_io([shapes.pool(shapes.leaf(1), name="tank")], "tank", NAME, ()) == {
        "tank/my photos": 12
    }


def test_another_pool_is_looked_at_by_its_disks_but_not_by_the_one_that_is_measured(kstats, monkeypatch):
    monkeypatch.setattr(
        environment, "read_io", lambda paths: {path: environment.DiskIo(1, 10, 20, 0.1) for path in paths}
    )
    tank = shapes.pool(shapes.leaf(1), name="tank")
    beside = shapes.pool(shapes.leaf(2), name="larder-sweep-" + "f" * 12)
    assert environment.read_other_io([tank, beside], NAME, NAME, ()) == {"tank": 30}
    assert environment.read_other_io([tank], NAME, NAME, [one.path for one in tank.devices()]) == {}
    assert environment.has_other_scratch_pool([tank, beside], NAME)
    assert not environment.has_other_scratch_pool([tank, shapes.pool(shapes.leaf(2), name=NAME)], NAME)


def test_only_who_moved_much_for_as_long_as_it_took_is_told():
    before = {"tank": 5 * GIB, "tank/photos": GIB}
    after = {"tank": 5 * GIB + 300 * MIB, "tank/photos": GIB + 8 * MIB, "attic": 400 * MIB}
    assert environment.describe_other_io(before, after, 30) == (
        "attic was in use: 400 MiB were read or written.",
        "tank was in use: 300 MiB were read or written.",
    )
    assert environment.describe_other_io(before, before, 0) == ()


def test_a_run_beside_a_copy_of_files_is_repeated_and_says_so(commands, folders, quiet, kstats, monkeypatch):  # noqa: F811
    monkeypatch.setattr(environment, "read_io", lambda _paths: {})
    monkeypatch.setattr(scratch, "device_paths", lambda _pool: [])
    commands.answers["fio"] = recorded_text("fio-sync-3.39.json")
    scratch.scratch_folder(TOKEN).mkdir(parents=True)
    written = iter(range(0, 100 * GIB, GIB))

    def copied(_argv: list[str]) -> None:
        (kstats / "objset-0x36").write_text(PHOTOS.format(written=next(written), read=0))

    commands.on_run = copied
    work, case = Working(), msgspec.structs.replace(in_pool().case, workload="sync-write", repeats=1)
    run_program.CaseRunner(BenchmarkTarget(TOKEN, case), ("fio",), Prefill()).run_and_record(work, 1)
    assert commands.tools.count("fio") == 2
    (line,) = [note for note in work.notes if note.startswith(RESULT)]
    run = msgspec.json.decode(line.removeprefix(RESULT), type=BenchmarkRun)
    assert "tank/my photos was in use" in run.disturbed[0]


@pytest.mark.parametrize(
    ("fills", "runs"),
    [([900, 500, 200, 50, 50], 4), ([50] * 9, 2), ([900] * 99, 6)],
    ids=["until it is warm", "as often as asked for at least", "until it is full"],
)
def test_a_cache_device_is_filled_until_it_tells_something(commands, folders, quiet, monkeypatch, fills, runs):  # noqa: F811
    data, cache = path_of(1), path_of(4)
    filled, read = [0], [0]
    more = iter(fills)
    monkeypatch.setattr(run_program, "size_of", lambda _path: 5000 * MIB)
    monkeypatch.setattr(
        environment,
        "read_io",
        lambda _paths: {data: environment.DiskIo(1, read[0], 0, 0.0), cache: environment.DiskIo(1, 0, filled[0], 0.0)},
    )
    commands.answers["fio"] = recorded_text("fio-small-3.39.json")

    def moved(argv: list[str]) -> None:
        if "fio" in argv:
            filled[0] += next(more) * MIB
            read[0] += 1000 * MIB

    commands.on_run = moved
    found = operation(workload="random-read", cache=cache, warmups=2, size=4 * GIB)
    plan = checked_plan(found, box())
    step = next(step for step in plan.steps if step.name == "warm")
    assert "until the cache device is warm" in step.title
    step.run(Working())
    assert commands.tools.count("fio") == runs


def test_a_cache_device_that_is_not_warm_yet_is_said():
    case = operation(workload="random-read", cache=path_of(4), warmups=1).case
    assert "not warm yet" in " ".join(validity.run_remarks(case, Circumstances(read=GIB, filling=300 * MIB)))
    assert list(validity.run_remarks(case, Circumstances(read=GIB, filling=30 * MIB))) == []
    bare = msgspec.structs.replace(case, cache="")
    assert estimate.case_seconds(case) > estimate.case_seconds(bare) + 60


def test_what_lies_there_before_is_written_as_gently_as_what_is_measured():
    gentle = operation(workload="seq-read", gentle=True).case
    for words in (
        workload_command.prefill_command(gentle, "/x"),
        workload_command.fill_command("/x", MIB, gentle=True),
    ):
        assert words[: len(workload_command.GENTLY)] == list(workload_command.GENTLY)
    assert workload_command.prefill_command(msgspec.structs.replace(gentle, gentle=False), "/x")[0] == "fio"
