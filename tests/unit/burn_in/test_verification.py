from __future__ import annotations

import pytest

from appliance.burn_in.regions import Region, split_disk
from appliance.burn_in.verification import parse_answer, read_command, write_command
from appliance.command import Result
from appliance.errors import Failed
from appliance.layout.geometry import MIB
from tests.unit.made import path_of, recorded_text

REGION = Region(1, 16 * MIB, 48 * MIB)
WELL = recorded_text("fio-verify-3.39.json")


def answer(stdout: str = "", stderr: str = "", status: int = 0) -> Result:
    return Result(("fio",), status, stdout, stderr, 1.0)


def test_region_that_came_back_as_written_has_a_speed():
    rate, problem, at = parse_answer(REGION, answer(WELL))
    assert (problem, at) == ("", 0)
    assert rate > 60 * 10**6


@pytest.mark.parametrize(
    ("name", "problem", "at"),
    [("fio-verify-corrupt-3.39.txt", "changed", 22028288), ("fio-verify-unreadable-3.39.txt", "read", 41943040)],
)
def test_first_bad_place_is_named(name, problem, at):
    assert parse_answer(REGION, answer(stderr=recorded_text(name), status=1)) == (0, problem, at)


@pytest.mark.parametrize(
    "line",
    [
        "bad header offset 16818176, wanted 16777216",
        "bad header rand_seed 7, wanted 8",
        "bad magic header 0, wanted acca",
    ],
)
def test_misplaced_old_and_missing_writes_count_as_changed(line):
    # Recorded of fio 3.39 (the first two), the third from its source.
    said = (
        f"verify: {line} at file /proc/self/fd/9 offset 16822272, length 4096 (requested block: offset=16777216, "
        "length=1048576)"
    )
    assert parse_answer(REGION, answer(stderr=said, status=1)) == (0, "changed", 16822272)


def test_refused_write_is_a_bad_place_too():
    said = "fio: io_u error on file /proc/self/fd/9: Input/output error: write offset=33554432, buflen=1048576"
    assert parse_answer(REGION, answer(stderr=said, status=1)) == (0, "write", 33554432)


def test_fio_that_did_not_do_its_work_says_nothing_about_the_disk():
    with pytest.raises(Failed, match="could not test"):
        parse_answer(REGION, answer(stderr="fio: file creation disallowed by allow_file_create=0", status=1))
    with pytest.raises(Failed, match="before the end"):
        parse_answer(Region(1, 16 * MIB, 64 * MIB), answer(WELL))
    with pytest.raises(Failed):
        parse_answer(REGION, answer("{}"))


def test_inner_regions_are_compared_by_header_and_seed_and_ends_stay_zeros():
    head, inner, *_rest, tail = split_disk(400 * MIB)
    write, read = (build(inner, path_of(1), seed=7, rate=10**7) for build in (write_command, read_command))
    for words in (write, read):
        assert {
            "--verify=crc32c",
            "--verify_interval=4096",
            "--verify_header_seed=1",
            "--randseed=7",
            "--rate=10000000",
        } <= set(words)
        assert {"--direct=1", "--allow_file_create=0", f"--offset={inner.start}", f"--size={inner.size}"} <= set(words)
    assert "--do_verify=0" in write
    assert "--rw=read" in read
    for end in (head, tail):
        assert "--zero_buffers" in write_command(end, path_of(1), seed=7)
        assert "--verify_pattern=0x00" in read_command(end, path_of(1), seed=7)
        assert not any(word.startswith("--rate") for word in write_command(end, path_of(1), seed=7))


def test_end_of_an_odd_length_is_written_in_single_sectors():
    assert "--bs=512" in write_command(split_disk(400 * MIB + 512)[-1], path_of(1), seed=1)
    assert "--bs=4096" in write_command(split_disk(400 * MIB + 4096)[-1], path_of(1), seed=1)
