"""Sample data from a user's files: what is read, where it goes, and what results say about it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance import command, names
from appliance.agent.registry import decode_operation
from appliance.benchmarks import conclusions, environment, prefill, sample_data, scratch, validity
from appliance.benchmarks.matrix import Sweep, axes_of
from appliance.benchmarks.parse_results import Figures
from appliance.benchmarks.prefill import Prefill
from appliance.benchmarks.results import BenchmarkRun, MeasuredCase, build_blocks
from appliance.benchmarks.run_case import RunBenchmarkCase
from appliance.benchmarks.run_program import CaseRunner
from appliance.benchmarks.validity import Circumstances
from appliance.errors import Cancelled, Failed, Refused
from appliance.files import traversal
from appliance.layout.geometry import GIB, KIB, MIB
from appliance.operation import checked_plan
from appliance.system import paths
from appliance.zfs import status
from tests.reasons import expect_refusal
from tests.unit.benchmarks.test_run_case import TOKEN, operation
from tests.unit.made import box, dataset, path_of, recorded_text
from tests.unit.pools.test_create import Working

PHOTOS = dataset("tank/photos")
DD = "{size} bytes (1 MB, 1 MiB) copied, 0.5 s, 1 MB/s\n"


def sampled(**changes: Any) -> RunBenchmarkCase:
    made = {"workload": "seq-read", "sample": PHOTOS.name, "sample_guid": PHOTOS.guid, "size": 40 * MIB}
    return operation(**{**made, **changes})


@pytest.fixture
def tree(folders: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of files, one much larger, with ways out of it that must never be taken."""
    top, outside = folders / "photos", folders / "outside"
    (top / "may").mkdir(parents=True)
    outside.mkdir()
    (outside / "secret").write_bytes(b"S" * MIB)
    (top / "film.mkv").write_bytes(b"F" * 30 * MIB)
    (top / "may" / "a").write_bytes(b"A" * MIB)
    (top / "may" / "b").write_bytes(b"B" * 100)
    (top / "way-out").symlink_to(outside)
    (top / "file-out").symlink_to(outside / "secret")
    os.mkfifo(top / "pipe")
    found = dataset(PHOTOS.name, mountpoint=str(top))
    monkeypatch.setattr(status, "read_datasets", lambda: (found,))
    monkeypatch.setattr(traversal, "dataset_of", lambda _handle: PHOTOS.name)
    monkeypatch.setattr(names, "served_path", lambda path: path)
    monkeypatch.setattr(paths, "POOLS", folders)
    monkeypatch.setattr(environment, "read_io", lambda _paths: {})
    scratch.scratch_folder(TOKEN).mkdir(parents=True)
    return top


def taken(top: Path, most: int, wanted: int) -> tuple[bytes, sample_data.SampleData]:
    with traversal.open_dir_nofollow(str(top)) as root:
        sample = sample_data.SampleData(root, most, 128 * KIB, lambda: None)
        found, left = [], wanted
        while left:
            found.append(sample.read_chunk(left))
            left -= len(found[-1])
        sample.close()
        return b"".join(found), sample


# --- what is read ---------------------------------------------------------------------------------------------
def test_sample_has_no_links_pipes_names_or_outside_files(tree):
    found, sample = taken(tree, 40 * MIB, 31 * MIB + 100)
    assert {letter: found.count(letter) for letter in (b"F", b"A", b"B", b"S")} == {
        b"F": 30 * MIB,
        b"A": MIB,
        b"B": 100,
        b"S": 0,
    }
    assert sample.unique_bytes == 31 * MIB + 100


def test_sample_pass_is_limited_and_not_one_large_file(tree):
    found, sample = taken(tree, 16 * MIB, 16 * MIB)
    assert sample.unique_bytes == 16 * MIB
    assert found.count(b"A") == MIB


def test_sample_starts_again_and_counts_its_unique_bytes(tree):
    found, sample = taken(tree, 100 * MIB, 70 * MIB)
    assert sample.unique_bytes == 31 * MIB + 100
    assert found[: MIB * 8] == found[sample.unique_bytes :][: MIB * 8]


def test_large_files_start_at_records_so_that_dedup_works_as_in_the_folder(tree):
    one = os.urandom(300 * KIB)
    for name in ("c", "d", "e"):
        (tree / "may" / name).write_bytes(one)
        (tree / "may" / f"small-{name}").write_bytes(os.urandom(50 * KIB))
    found, sample = taken(tree, 40 * MIB, 32 * MIB)
    records = [found[at : at + 128 * KIB] for at in range(0, sample.unique_bytes, 128 * KIB)]
    assert [records.count(one[: 128 * KIB]), records.count(one[128 * KIB : 256 * KIB])] == [3, 3]
    assert sample.unique_bytes == 31 * MIB + 3 * 256 * KIB + 3 * 50 * KIB + 100


def test_file_with_several_names_is_read_once(tree):
    for number in range(5):
        os.link(tree / "may" / "a", tree / f"again-{number}")
    assert taken(tree, 100 * MIB, MIB)[1].most == 100 * MIB
    found, sample = taken(tree, 100 * MIB, 32 * MIB)
    assert sample.unique_bytes == 31 * MIB + 100
    assert found[: sample.unique_bytes].count(b"A") == MIB


def test_folder_with_too_little_data_is_no_sample(tree):
    (tree / "film.mkv").unlink()
    with pytest.raises(Failed, match="too small for a sample"):
        taken(tree, 100 * MIB, 2 * MIB)


def test_unreadable_file_yields_less_and_is_no_error(tree, monkeypatch):
    real = os.pread

    def damaged(handle: int, size: int, at: int) -> bytes:
        if os.fstat(handle).st_size == MIB:
            raise OSError(5, "Input/output error")
        return real(handle, size, at)

    monkeypatch.setattr("os.pread", damaged)
    found, _sample = taken(tree, 40 * MIB, 30 * MIB + 100)
    assert b"A" not in found
    assert found.count(b"F") == 30 * MIB


def test_reading_a_sample_keeps_access_times(tree):
    os.utime(tree / "film.mkv", ns=(1, 1))
    taken(tree, 40 * MIB, 31 * MIB)
    assert (tree / "film.mkv").stat().st_atime_ns == 1


def test_unreadable_folder_fails_without_naming_a_file(tree, commands, monkeypatch):
    def damaged(_root: int) -> Any:
        raise OSError(5, "Input/output error", "letter to anna.odt")

    monkeypatch.setattr(traversal, "open_listing", damaged)
    with pytest.raises(Failed) as failed:
        sample_data.write_sample(sampled().target, Working())
    assert "anna" not in str(failed.value)


def test_sample_fails_if_its_files_disappear(tree, commands):
    def away(_argv: list[str]) -> None:
        for path in (tree / "film.mkv", tree / "may" / "a", tree / "may" / "b"):
            path.unlink(missing_ok=True)

    commands.on_run = away
    with pytest.MonkeyPatch.context() as patch, pytest.raises(Failed, match="went away"):
        patch.setattr(sample_data, "PART", 32 * MIB)
        sample_data.write_sample(sampled(size=200 * MIB).target, Working())


@given(st.integers(1, 40), st.lists(st.integers(1, 3 * MIB), min_size=1, max_size=6))
def test_sample_never_returns_more_than_wanted(most, wishes):
    sample = sample_data.SampleData(-1, most * MIB, 128 * KIB, lambda: None)
    sample.endless = (b"x" * (at + 1) for at in range(10**9))
    for wanted in wishes:
        assert 0 < len(sample.read_chunk(wanted)) <= wanted


# --- the folder is checked again ------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"guid": 5}, "folder-missing"),
        ({"kind": "volume"}, "folder-missing"),
        ({"mounted": False}, "sample-not-mounted"),
        ({"encryption": "aes-256-gcm", "key_status": "available"}, "sample-encrypted"),
        ({"mountpoint": "/var/lib"}, "sample-in-system-folder"),
        ({"mountpoint": "/"}, "sample-in-system-folder"),
        ({"mountpoint": "legacy"}, "sample-in-system-folder"),
    ],
)
def test_changed_or_unsafe_sample_folder_is_refused(changes, code):
    facts = box(datasets=(dataset(PHOTOS.name, **changes),))
    with expect_refusal(code):
        checked_plan(sampled(), facts)
    with expect_refusal("folder-missing"):
        checked_plan(sampled(), box())


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"guid": 5}, "folder-missing"),
        ({"encryption": "aes-256-gcm"}, "sample-encrypted"),
    ],
)
def test_agent_checks_the_sample_folder_again(tree, monkeypatch, changed, code):
    found = dataset(PHOTOS.name, **{"mountpoint": str(tree), **changed})
    monkeypatch.setattr(status, "read_datasets", lambda: (found,))
    with expect_refusal(code), sample_data.open_sample_folder(sampled().case):
        pass


def test_volume_in_place_of_the_sample_is_refused(tree, monkeypatch):
    volume = dataset(PHOTOS.name, mountpoint=str(tree), kind="volume")
    monkeypatch.setattr(status, "read_datasets", lambda: (volume,))
    with pytest.raises(Refused), sample_data.open_sample_folder(sampled().case):
        pass


def test_other_dataset_at_the_mountpoint_is_not_read(tree, monkeypatch, commands):
    monkeypatch.setattr(traversal, "dataset_of", lambda _handle: "tank")
    with expect_refusal("dataset-not-at-mountpoint"):
        sample_data.write_sample(sampled().target, Working())
    assert commands.ran == []


# --- where it goes --------------------------------------------------------------------------------------------
def test_sample_goes_through_roots_memory_to_the_scratch_pool_only(tree, commands, monkeypatch):
    monkeypatch.setattr(sample_data, "PART", 16 * MIB)
    part, modes, sizes = scratch.sample_part_path(TOKEN), [], []

    def look(_argv: list[str]) -> None:
        modes.append(part.stat().st_mode & 0o777)
        sizes.append(part.stat().st_size)

    commands.on_run = look
    prefilled, work = Prefill(), Working()
    prefill.prepare_sample(sampled().target, work, prefilled)
    assert prefilled.unique_bytes == 31 * MIB + 100
    assert [argv[0] for argv in commands.ran] == ["dd", "dd", "dd"]
    assert {argv[2] for argv in commands.ran} == {f"of={scratch.scratch_folder(TOKEN)}/data"}
    assert [argv[4:6] for argv in commands.ran] == [
        ["count=16", "seek=0"],
        ["count=16", "seek=16"],
        ["count=8", "seek=32"],
    ]
    assert (modes, sizes) == ([0o600] * 3, [16 * MIB, 16 * MIB, 8 * MIB])
    assert not part.exists()
    assert not any(name in " ".join(work.notes) for name in ("film", "may"))


def test_run_writes_the_part_in_memory_repeatedly(tree, commands, monkeypatch):
    monkeypatch.setattr(sample_data, "PART", 16 * MIB)
    target, prefilled = sampled(workload="seq-write").target, Prefill()
    prefill.prepare_sample(target, Working(), prefilled)
    assert commands.ran == []
    assert prefilled.unique_bytes == 16 * MIB
    result = Figures(rate=40 * MIB / 1.5, seconds=1.5, written=40 * MIB, tool="dd")

    def run(argv: Any, **more: Any) -> Any:
        answer = commands.run(argv, **more)
        return type(answer)(answer.argv, 0, "", DD.format(size=MIB), 0.0)

    monkeypatch.setattr("appliance.command.run", run)
    assert sample_data.write_measured(target, Working(), "Run 1 of 3") == result
    assert [argv[4:6] for argv in commands.ran] == [
        ["count=16", "seek=0"],
        ["count=16", "seek=16"],
        ["count=8", "seek=32"],
    ]
    assert scratch.sample_part_path(TOKEN).stat().st_size == 16 * MIB


def test_cleanup_removes_the_part_in_memory_even_without_a_claim(tree, commands):
    scratch.sample_part_path(TOKEN).write_bytes(b"photos")
    scratch.clear_case(TOKEN, Working())
    assert not scratch.sample_part_path(TOKEN).exists()


def test_link_in_place_of_the_part_is_not_followed(tree, commands):
    target = tree / "may" / "a"
    scratch.sample_part_path(TOKEN).symlink_to(target)
    with pytest.raises(Failed, match=r"into memory: Too many levels of symbolic links$"):
        sample_data.write_sample(sampled().target, Working())
    assert target.read_bytes() == b"A" * MIB


def test_full_memory_fails(tree, monkeypatch):
    full = os.statvfs_result((4096, 4096, 100, 10, 10, 0, 0, 0, 0, 255))
    monkeypatch.setattr("os.statvfs", lambda _path: full)
    with pytest.raises(Failed, match="no room in memory"):
        sample_data.part_size(TOKEN, sampled().case)


def test_reading_a_sample_stops_on_request(tree, commands):
    class Stopped(Working):
        def stop_if_asked(self) -> None:
            raise Cancelled

    with pytest.raises(Cancelled):
        sample_data.write_sample(sampled().target, Stopped())
    assert commands.ran == []


def test_writing_a_sample_stops_on_request_even_if_parts_are_fast(tree, commands, monkeypatch):
    target = sampled(workload="seq-write").target
    scratch.sample_part_path(TOKEN).write_bytes(b"x" * MIB)
    monkeypatch.setattr(sample_data, "SECONDS_BETWEEN_LOOKS", 0)
    answer = type(command.run(["true"]))(("dd",), 0, "", DD.format(size=MIB), 0.0)

    class Later(Working):
        asked = 0

        def stop_if_asked(self) -> None:
            self.asked += 1
            if self.asked == 3:
                raise Cancelled

    ran: list[Any] = []
    monkeypatch.setattr(command, "run", lambda argv, **_more: (ran.append(argv), answer)[1])
    with pytest.raises(Cancelled):
        sample_data.write_measured(target, Later(), "Run 1 of 3")
    assert len(ran) == 2


# --- the case and the sweep -----------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"workload": "small-files"}, "workload-not-for-sample"),
        ({"workload": "mixed"}, "workload-not-for-sample"),
        ({"compressible": 33}, "sample-and-compressible"),
        ({"volblocksize": 16384}, "sample-outside-scratch-pool"),
        ({"protocol": "nfs"}, "sample-outside-scratch-pool"),
        (
            {"where": "dataset", "disks": (), "layout": "stripe", "pool": "tank", "guid": 7},
            "sample-outside-scratch-pool",
        ),
        ({"workload": "seq-write", "dedup": True}, "sample-repeats-with-dedup"),
        ({"sample_guid": 2**64}, "case-value-out-of-range"),
    ],
)
def test_case_that_cannot_use_a_sample_is_refused(changes, code):
    with expect_refusal(code):
        sampled(**changes)


@pytest.mark.parametrize("name", ["../etc", "-o", "tank/photos@monday"])
def test_sample_is_an_existing_dataset(name):
    with pytest.raises(Refused):
        sampled(sample=name)


def test_steps_of_a_sample_say_that_it_is_read():
    found = sampled()
    plan = checked_plan(found, box(datasets=(PHOTOS,)))
    assert [step.name for step in plan.steps] == ["claim", "create", "lay", "run-1", "run-2", "run-3", "clear"]
    assert plan.steps[2].title == "Read files of tank/photos as a sample, without their names"
    assert plan.steps[3].command_text.startswith("fio ")
    written = checked_plan(sampled(workload="seq-write", size=GIB), box(datasets=(PHOTOS,)))
    assert written.steps[3].command_text.splitlines()[0].startswith(f"dd if={scratch.sample_part_path(TOKEN)} ")
    assert written.steps[3].command_text.endswith("zpool sync -- larder-sweep-0123456789ab")
    assert decode_operation(msgspec.json.encode(found).decode()) == found


def test_sweep_with_a_sample_leaves_out_writes_with_dedup():
    common = {
        "where": "scratch",
        "disks": (path_of(1),),
        "workloads": ["seq-write", "seq-read"],
        "sample": PHOTOS.name,
        "sample_guid": PHOTOS.guid,
    }
    made = msgspec.convert({**common, "dedups": [False, True]}, Sweep)
    assert [(one.dedup, one.workload) for one in made.build_cases()] == [
        (False, "seq-write"),
        (False, "seq-read"),
        (True, "seq-read"),
    ]
    assert axes_of(list(made.build_cases())) == ["Dedup"]
    with expect_refusal("sample-without-cases"):
        msgspec.convert({**common, "dedups": [True], "workloads": ["seq-write"]}, Sweep)


# --- conclusions ----------------------------------------------------------------------------------------------
def told(around: Circumstances, **changes: Any) -> tuple[str, str]:
    case = sampled(size=GIB, aside=True, **changes).case
    figures = Figures(rate=1.0, seconds=1.0, read=GIB)
    return " ".join(validity.invalid_reasons(case, figures, around)), " ".join(validity.run_remarks(case, around))


def test_compression_of_a_sample_is_reported_and_expected_of_the_disks():
    invalid, remarks = told(Circumstances(read=GIB // 4, sample=GIB, kept=0.25), compression="zstd")
    assert invalid == ""
    assert remarks == "Compression left 25 % of the sample."
    invalid, _remarks = told(Circumstances(read=GIB // 10, sample=GIB, kept=0.25), compression="zstd")
    assert "Memory did the rest" in invalid


def test_repeated_sample_is_marked_and_invalid_for_dedup():
    invalid, remarks = told(Circumstances(read=GIB, sample=GIB // 4))
    assert invalid == ""
    assert remarks == "256 MiB of the sample were repeated until it was 1 GiB."
    invalid, remarks = told(Circumstances(read=GIB // 4, sample=GIB // 4, deduped=4.0), dedup=True)
    assert "dedup looks better than it would on your files" in invalid
    assert "Each block of the sample occurred 4.00 times (dedup)." in remarks
    assert told(Circumstances(read=GIB // 2, sample=GIB, deduped=2.0), dedup=True)[0] == ""


def test_compressed_share_and_dedup_ratio_are_read_from_file_and_pool(tree, commands):
    data = scratch.scratch_folder(TOKEN) / "data"
    data.touch()
    assert sample_data.compressed_share(sampled().target) == 1.0
    with data.open("r+b") as out:
        out.truncate(100 * MIB)
    assert sample_data.compressed_share(sampled().target) < 0.01
    assert sample_data.read_dedup_ratio(sampled().target) == 1.0
    commands.answers["zpool"] = "1.43\n"
    assert sample_data.read_dedup_ratio(sampled(dedup=True).target) == 1.43
    commands.answers["zpool"] = "-\n"
    with pytest.raises(Failed):
        sample_data.read_dedup_ratio(sampled(dedup=True).target)


def test_run_with_a_sample_records_its_unique_bytes(tree, commands, monkeypatch):
    data = scratch.scratch_folder(TOKEN) / "data"
    data.write_bytes(b"x" * 4096)
    commands.answers |= {"fio": recorded_text("fio-sync-3.39.json"), "zpool": "1.00\n"}
    monkeypatch.setattr(environment, "read_pools", lambda: ())
    monkeypatch.setattr(environment, "read_memory_limit", lambda: 0)
    monkeypatch.setattr(CaseRunner, "prepare_run", lambda _self, _work: None)
    run = CaseRunner(sampled(dedup=True).target, ("fio",), Prefill(10 * MIB)).measure_run(Working(), 1)
    assert run.around.sample == 10 * MIB
    assert "dedup looks better than it would" in " ".join(run.invalid)


def test_conclusions_say_what_compression_and_dedup_save():
    def measured(number: int, around: Circumstances, **changes: Any) -> MeasuredCase:
        run = BenchmarkRun(number=1, figures=Figures(rate=1.0), around=around)
        return MeasuredCase(number, sampled(**changes).case, (run,))

    every = [
        measured(0, Circumstances(sample=GIB)),
        measured(1, Circumstances(sample=GIB, kept=0.8), compression="lz4"),
        measured(2, Circumstances(sample=GIB, kept=0.62), compression="zstd"),
    ]
    assert "Your files: lz4 leaves 80 % of them, zstd 62 %." in conclusions.summarize_results(build_blocks(every))
    seldom = measured(3, Circumstances(sample=GIB, deduped=1.02), dedup=True)
    assert "each block occurs 1.02 times, too seldom" in " ".join(conclusions.summarize_results(build_blocks([seldom])))
    often = measured(3, Circumstances(sample=GIB, deduped=3.5), dedup=True)
    assert "Your files: each block occurs 3.50 times, so dedup saves space." in conclusions.summarize_results(
        build_blocks([often])
    )
    assert "Your files" not in " ".join(conclusions.summarize_results(build_blocks(every[:1])))


def test_prefilled_file_holds_the_files_and_a_write_repeats_the_part(tree, monkeypatch):
    monkeypatch.setattr(sample_data, "PART", 16 * MIB)
    data, read = scratch.scratch_folder(TOKEN) / "data", sampled(size=24 * MIB)
    sample_data.write_sample(read.target, Working())
    found = data.read_bytes()
    assert len(found) == 24 * MIB
    assert (found.count(b"F"), found.count(b"A")) == (23 * MIB, MIB)
    data.unlink()
    write = sampled(workload="seq-write", size=24 * MIB).target
    sample_data.write_sample(write, Working())
    figures = sample_data.write_measured(write, Working(), "Run 1 of 3")
    assert figures.written == data.stat().st_size == 24 * MIB
    assert figures.rate == pytest.approx(24 * MIB / figures.seconds)
    assert data.read_bytes()[16 * MIB :] == scratch.sample_part_path(TOKEN).read_bytes()[: 8 * MIB]
