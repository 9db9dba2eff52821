"""Sweeps: matrix and cases, parsed output, validity, tables and conclusions. Nothing is run here."""

from __future__ import annotations

import csv
import io
import json
import re
import statistics
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from appliance.benchmarks import conclusions, estimate, export, validity
from appliance.benchmarks.case import Case
from appliance.benchmarks.fio_command import escape_colons
from appliance.benchmarks.matrix import Sweep, axes_of
from appliance.benchmarks.parse_results import Figures, from_bonnie, from_dd, from_fio, from_iperf
from appliance.benchmarks.presets import BY_NAME, PRESETS
from appliance.benchmarks.results import RESULT, BenchmarkRun, Block, MeasuredCase, build_blocks, encode_run, value_text
from appliance.benchmarks.statistics import change_text, find_difference, find_outlier, percent_change, summarize_values
from appliance.benchmarks.validity import Circumstances
from appliance.benchmarks.workload_command import workload_command
from appliance.benchmarks.workloads import KINDS, SYNCED
from appliance.errors import Failed, Refused
from appliance.layout.geometry import GIB, MIB
from tests.reasons import expect_refusal
from tests.unit.made import path_of, recorded_text

FIVE = tuple(map(path_of, range(1, 6)))


def sweep(**changes: object) -> Sweep:
    made = {"where": "scratch", "workloads": ["seq-write", "seq-read"], "disks": FIVE, "layouts": ["raidz1"]}
    return msgspec.convert({**made, **changes}, Sweep)


def case(**changes: object) -> Case:
    made = {"where": "scratch", "workload": "seq-write", "disks": FIVE, "layout": "raidz1", "size": 4 * GIB}
    return msgspec.convert({**made, **changes}, Case)


def run(value: float, number: int = 1, **changes: Any) -> BenchmarkRun:
    return BenchmarkRun(number=number, figures=Figures(rate=value, operations=value), around=Circumstances(), **changes)


def measured(number: int, of: Case, *values: float) -> MeasuredCase:
    return MeasuredCase(number, of, tuple(run(value, at) for at, value in enumerate(values, 1)))


# --- the matrix -----------------------------------------------------------------------------------------------
def test_matrix_lists_its_cases_with_workloads_changing_fastest():
    cases = list(sweep(layouts=["raidz1", "raidz2"], ashifts=[9, 12]).build_cases())
    assert [(one.layout, one.ashift, one.workload) for one in cases] == [
        (layout, ashift, workload)
        for layout in ("raidz1", "raidz2")
        for ashift in (9, 12)
        for workload in ("seq-write", "seq-read")
    ]
    assert axes_of(cases) == ["Layout", "Sectors"]


def test_layouts_that_need_more_disks_are_left_out():
    found = sweep(layouts=["mirror", "raidz2"], counts=[2, 3, 4, 6], workloads=["seq-write"]).build_cases()
    assert [(one.layout, len(one.disks)) for one in found] == [
        ("mirror", 2),
        ("mirror", 3),
        ("mirror", 4),
        ("raidz2", 4),
    ]


def test_four_mirrored_disks_are_two_pairs_and_three_are_one_mirror():
    assert case(layout="mirror", disks=FIVE[:4]).vdev_disks == [FIVE[:2], FIVE[2:4]]
    assert case(layout="mirror", disks=FIVE[:3]).vdev_disks == [FIVE[:3]]


def test_each_disk_is_read_at_each_position():
    found = list(sweep(where="disk", workloads=["disk-start", "disk-end"], layouts=["stripe"]).build_cases())
    assert [(one.disks, one.workload) for one in found] == [
        ((path,), work) for path in FIVE for work in ("disk-start", "disk-end")
    ]
    assert axes_of(found) == ["Disk"]


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"workloads": []}, "workload-not-chosen"),
        ({"disks": []}, "disk-not-chosen"),
        ({"disks": FIVE[:2], "layouts": ["raidz2"]}, "disks-too-few-for-layouts"),
        (
            {
                "ashifts": [9, 12, 13],
                "compressions": ["off", "lz4", "zstd"],
                "recordsizes": [2**power for power in range(12, 24)],
            },
            "cases-too-many",
        ),
        ({"ashifts": [10]}, "case-invalid"),
        ({"recordsizes": [5000]}, "record-size-invalid"),
        ({"logs": [FIVE[0]]}, "disk-twice"),
        ({"zeros": True}, "zeros-without-dd"),
        ({"workloads": ["disk-start"]}, "workload-not-for-disk"),
        ({"size": 5}, "case-value-out-of-range"),
        ({"repeats": 0}, "case-value-out-of-range"),
    ],
)
def test_impossible_sweep_is_refused_with_a_reason(changes, code):
    with expect_refusal(code):
        sweep(**changes)


def test_disks_are_named_by_their_stable_paths():
    with pytest.raises(Refused) as refused:
        sweep(disks=["/dev/sda", "/dev/sdb", "/dev/sdc"])
    assert [reason.field for reason in refused.value.reasons] == ["disks"]


@given(
    st.sets(st.sampled_from(["stripe", "mirror", "raidz1", "raidz2", "raidz3"]), min_size=1),
    st.sets(st.sampled_from([9, 12, 13]), min_size=1),
    st.integers(1, 5),
)
def test_cases_of_a_sweep_differ_and_survive_encoding(layouts, ashifts, count):
    try:
        made = sweep(layouts=sorted(layouts), ashifts=sorted(ashifts), disks=FIVE[:count])
    except Refused:
        return
    cases = list(made.build_cases())
    assert len(set(cases)) == len(cases)
    assert msgspec.json.decode(msgspec.json.encode(cases), type=list[Case]) == cases
    assert msgspec.json.decode(msgspec.json.encode(made), type=Sweep) == made


@pytest.mark.parametrize("preset", PRESETS, ids=lambda preset: preset.name)
@pytest.mark.parametrize("count", [1, 2, 4, 5])
def test_every_preset_makes_a_sweep_of_the_disks_it_needs(preset, count):
    if count < preset.least:
        return
    where = {"disks": "scratch", "any disks": "disk", "pool": "dataset", "network": "network"}[preset.needs]
    disks = () if where in {"dataset", "network"} else FIVE[:count]
    common = {"where": where, "disks": disks, "pool": "tank" if where == "dataset" else "", "layouts": ["stripe"]}
    extra = {f"{preset.extra}s": ["", path_of(6)]} if preset.extra else {}
    peer = {"peer": "imac.local"} if where == "network" else {}
    made = msgspec.convert({**common, **preset.fill(2 * 10**12, count), **extra, **peer}, Sweep)
    found = list(made.build_cases())
    assert found
    assert len(found) == 1 or axes_of(found) or len(made.workloads) > 1
    assert 0 < estimate.total_seconds(found, 2 * 10**12) < 30 * 24 * 3600


@pytest.mark.parametrize("peer", ["", "-x", "192.168.1.0/24", "a b", "x;reboot", "../etc", "*"])
def test_the_other_computer_is_one_computer(peer):
    with pytest.raises(Refused):
        sweep(where="network", disks=(), layouts=["stripe"], workloads=["net-send"], peer=peer)


def test_network_is_tested_in_both_directions():
    made = sweep(
        where="network", disks=(), layouts=["stripe"], workloads=["net-send", "net-receive"], peer="imac.local"
    )
    to, back = (workload_command(one, "/x") for one in made.build_cases())
    assert to[-1] == "--client=imac.local"
    assert "--reverse" in back
    assert "--reverse" not in to
    assert not made.destroys


# --- output of the programs -----------------------------------------------------------------------------------
def test_figures_of_fio_writing():
    found = from_fio(recorded_text("fio-write-3.39.json"))
    assert found.rate == 883011368
    assert found.written == 64 * MIB
    assert found.read == 0
    assert found.tool == "fio-3.39"
    assert found.latency == pytest.approx(45.181e-6, rel=1e-3)
    assert found.latency99 == pytest.approx(181.248e-6)


def test_reads_and_writes_of_a_mix_are_added_with_the_slower_latency():
    found = from_fio(recorded_text("fio-mixed-3.39.json"))
    assert found.operations == pytest.approx(3509.496834 + 1485.838054)
    assert (found.read, found.written) == (43139072, 18264064)
    assert found.seconds == pytest.approx(3.001)
    assert found.latency == pytest.approx(265.265e-6, rel=1e-3)


def test_small_files_of_four_writers_are_one_figure():
    found = from_fio(recorded_text("fio-small-3.39.json"))
    assert found.operations == pytest.approx(503.2, abs=0.1)
    assert found.written == 4 * 1000 * 512


def test_note_before_the_json_is_skipped():
    said = "note: both iodepth >= 1 and synchronous I/O engine are selected, queue depth will be capped at 1\n"
    assert from_fio(said + recorded_text("fio-sync-3.39.json")).operations == pytest.approx(529.646902)


@pytest.mark.parametrize("text", ["", "{", "{}", '{"jobs": []}', '{"jobs": [{"error": 5}]}', '{"jobs": {}}', "fio: no"])
def test_fio_output_without_figures_fails(text):
    with pytest.raises(Failed):
        from_fio(text)


@given(
    st.recursive(
        st.none() | st.integers() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["jobs", "read", "write", "lat_ns", "clat_ns", "mean", "error"]), inner, max_size=4
            )
        ),
        max_leaves=12,
    )
)
def test_any_fio_output_gives_figures_or_fails(answer):
    try:
        assert from_fio(json.dumps(answer)).rate >= 0
    except Failed:
        pass


def test_rate_of_dd_is_computed_and_not_its_rounded_one():
    found = from_dd(recorded_text("dd-coreutils-9.1.txt"), reading=False)
    assert found.written == 32 * MIB
    assert found.rate == pytest.approx(32 * MIB / 0.0310859)
    assert from_dd(recorded_text("dd-coreutils-9.1.txt"), reading=True).read == 32 * MIB
    with pytest.raises(Failed):
        from_dd("dd: failed to open", reading=False)


# --- commands -------------------------------------------------------------------------------------------------
def test_single_disk_is_only_read_at_the_right_position():
    one = case(where="disk", disks=FIVE[:1], layout="stripe", workload="disk-end", size=GIB)
    words = workload_command(one, "", 2 * 10**12)
    assert "--readonly" in words
    assert "--rw=read" in words
    start, size = (
        int(next(word for word in words if word.startswith(f"--{key}=")).split("=")[1]) for key in ("offset", "size")
    )
    assert 0 <= 2 * 10**12 - (start + size) < MIB


def test_colon_in_a_disk_name_is_escaped():
    assert escape_colons("/dev/disk/by-id/ata-a:b") == "/dev/disk/by-id/ata-a\\:b"


@pytest.mark.parametrize(
    "workload", [name for name in KINDS if not name.startswith(("disk-", "net-")) and name != "resilver"]
)
def test_every_workload_stays_in_its_folder_and_waits_until_data_is_on_disk(workload):
    words = workload_command(case(workload=workload), "/run/larder/sweeps/x")
    assert any("/run/larder/sweeps/x" in word for word in words)
    assert not any(word.startswith("/dev/disk") for word in words)
    if KINDS[workload].writes and workload not in {*SYNCED, "bonnie"}:
        assert {"--end_fsync=1", "--sync=1", "--fsync_on_close=1"} & set(words)


def test_gentle_case_runs_with_low_priority():
    assert workload_command(case(gentle=True), "/x")[:3] == ["nice", "-n", "19"]


# --- validity -------------------------------------------------------------------------------------------------
def moved(read: int = 0, written: int = 0, **more: Any) -> Circumstances:
    return Circumstances(read=read, written=written, memory=GIB, **more)


WRITTEN = Figures(rate=1e8, written=4 * GIB)


def test_run_whose_bytes_reached_the_disks_counts():
    assert list(validity.invalid_reasons(case(), WRITTEN, moved(written=5 * GIB))) == []


def test_zeros_on_a_compressed_pool_do_not_count():
    zeros = case(workload="dd-write", zeros=True, compression="lz4")
    assert any("write zeros" in reason for reason in validity.invalid_reasons(zeros, WRITTEN, moved(written=MIB)))
    plain = case(workload="dd-write", zeros=True)
    assert list(validity.invalid_reasons(plain, WRITTEN, moved(written=4 * GIB))) == []
    assert list(validity.invalid_reasons(plain, WRITTEN, moved(written=MIB)))


def test_read_that_fits_into_memory_counts_only_without_the_arc():
    small = case(workload="seq-read", size=GIB)
    figures = Figures(rate=1e9, read=GIB)
    assert "fit into memory" in " ".join(validity.invalid_reasons(small, figures, moved(read=GIB)))
    assert list(validity.invalid_reasons(msgspec.structs.replace(small, aside=True), figures, moved(read=GIB))) == []


def test_read_from_memory_does_not_count_whatever_its_size():
    said = list(validity.invalid_reasons(case(workload="seq-read"), Figures(read=4 * GIB), moved(read=GIB)))
    assert said == ["4 GiB were read, but only 1 GiB of it from the disks. Memory did the rest."]


def test_compressible_data_may_shrink_as_much_as_asked_for():
    half = case(compression="lz4", compressible=50)
    assert list(validity.invalid_reasons(half, WRITTEN, moved(written=2 * GIB))) == []
    assert list(validity.invalid_reasons(half, WRITTEN, moved(written=GIB)))


def test_lost_disk_makes_a_run_invalid_and_a_scrub_disturbs_it():
    around = moved(written=5 * GIB, lost=("sda",), busy=("tank is being scrubbed",), throttled=2)
    assert any("stopped answering" in reason for reason in validity.invalid_reasons(case(), WRITTEN, around))
    assert len(list(validity.find_disturbances(around))) == 2


# --- statistics -----------------------------------------------------------------------------------------------
def test_changes_are_rounded_to_three_digits():
    assert change_text(percent_change(132.74, 79.04)) == "+67.9 %"
    assert change_text(percent_change(92.40, 12.03)) == "+668 %"
    assert change_text(percent_change(118.70, 120.43)) == "−1.4 %"
    assert change_text(percent_change(1, 0)) == ""
    assert change_text(0.0) == "±0.0 %"


@given(st.lists(st.floats(1, 1e12), min_size=1, max_size=9))
def test_a_median_lies_between_the_least_and_the_most(values):
    found = summarize_values(values)
    assert found is not None
    assert found.least <= found.median <= found.most
    assert find_difference(found, found) == ("single" if len(values) == 1 else "overlap")


def test_outlier_needs_at_least_two_others():
    assert find_outlier({"a": 100, "b": 101, "c": 50}) == "c"
    assert find_outlier({"a": 100, "b": 101, "c": 95}) == ""
    assert find_outlier({"a": 100, "b": 50}) == ""


# --- table and meaning ----------------------------------------------------------------------------------------
def ashifts(nine: tuple[float, ...], twelve: tuple[float, ...]) -> tuple:
    first, second = sweep(ashifts=[9, 12], workloads=["seq-write"]).build_cases()
    return build_blocks([measured(0, first, *nine), measured(1, second, *twelve)])


def test_table_has_the_change_from_the_baseline_and_the_sentence_the_winner():
    (block,) = ashifts((79.0 * MIB, 79.1 * MIB, 78.9 * MIB), (132.7 * MIB, 132.0 * MIB, 133.0 * MIB))
    first, second = block.rows
    assert first.is_baseline
    assert second.change_text == "+68.0 %"
    assert second.value == "139 MB/s"
    assert (
        conclusions.summarize_results([block])[0]
        == "Large files, writing: ashift 12 is best, with 139 MB/s: +68.0 % against ashift 9 (82.8 MB/s)."
    )


def test_rows_are_named_by_their_settings():
    found = list(sweep(workloads=["sync-write"], logs=["", path_of(6)], syncs=["standard", "always"]).build_cases())
    (block,) = build_blocks([measured(at, one, 100.0 + at) for at, one in enumerate(found)])
    assert block.rows[0].name == "without log device, sync standard"
    assert block.rows[1].name == "with log device WDC WD20EARS-00MVWB0 (serial WD-WCAZA0000006), sync standard"


def test_overlapping_runs_have_no_winner():
    (block,) = ashifts((100.0 * MIB, 120.0 * MIB), (110.0 * MIB, 125.0 * MIB))
    said = conclusions.summarize_results([block])[0]
    assert (
        said
        == "Large files, writing: no clear difference. All are between 115 MB/s and 123 MB/s, and their runs overlap."
    )


def test_d37_single_case_has_a_conclusion_too():
    one = next(sweep(workloads=["seq-write"]).build_cases())
    (block,) = build_blocks([measured(0, one, 100.0 * MIB)])
    (said,) = conclusions.summarize_results([block])
    assert said == "Large files, writing: 105 MB/s. There is no other result to compare it with."


def test_close_medians_have_no_winner_even_without_overlap():
    (block,) = ashifts((79.0 * MIB, 79.1 * MIB), (81.0 * MIB, 81.1 * MIB))
    assert conclusions.summarize_results([block])[0].endswith(
        "no clear difference. All are between 82.9 MB/s and 85 MB/s, which is too close to choose between them."
    )


def test_invalid_run_is_left_out_of_the_median():
    one = MeasuredCase(0, case(), (run(100), run(9000, invalid=("Memory did the rest.",))))
    assert one.summary is not None
    assert one.summary.median == 100
    assert one.reasons == ("Memory did the rest.",)
    assert MeasuredCase(0, case(), (run(9000, invalid=("x",)),)).summary is None


def test_slow_disk_is_named():
    disks = list(sweep(where="disk", workloads=["disk-start"], layouts=["stripe"]).build_cases())
    speeds = [150.0, 151, 149, 40, 152]
    found = build_blocks(
        [measured(at, one, speed * MIB) for at, (one, speed) in enumerate(zip(disks, speeds, strict=True))]
    )
    said = conclusions.summarize_results(found)[0]
    assert "WD-WCAZA0000004" in said
    assert "odd one out" in said


def test_disk_that_slows_a_pool_is_named():
    one = next(sweep(workloads=["seq-write"]).build_cases())
    links = [path.rsplit("/", 1)[-1] for path in FIVE]

    def said(waits: dict[str, float]) -> str:
        around = Circumstances(per_disk=waits)
        runs = (BenchmarkRun(number=1, figures=Figures(rate=1.0), around=around),)
        return " ".join(conclusions.summarize_results(build_blocks([MeasuredCase(0, one, runs)])))

    slow = said(dict.fromkeys(links, 0.0007) | {links[2]: 3.5})
    assert "WD-WCAZA0000003) held the others up: a request took it 3500.0 ms, and them 0.7 ms." in slow
    assert "held" not in said(dict.fromkeys(links, 0.0007) | {links[2]: 0.001})


@pytest.mark.parametrize(
    ("changes", "said"),
    [({"aside": True}, "nothing was read ahead"), ({"limited": True}, "limited to 512 MiB"), ({}, "")],
)
def test_conclusions_say_how_memory_was_kept_out_of_reads(changes, said):
    found = " ".join(
        conclusions.summarize_results(
            build_blocks([measured(0, case(workload="seq-read", size=4 * GIB, **changes), 100.0)])
        )
    )
    assert said in found
    assert said or ("read ahead" not in found and "limited to" not in found)


def test_another_case_can_be_the_baseline():
    cases = list(sweep(ashifts=[9, 12]).build_cases())
    found = build_blocks([measured(at, one, 100.0 + at) for at, one in enumerate(cases)], baseline=3)
    assert [[row.is_baseline for row in block.rows] for block in found] == [[False, True], [False, True]]


def test_values_have_readable_units():
    assert value_text(6000.4, "per second") == "6,000 a second"
    assert value_text(4.2, "seconds") == "4.2 s"
    assert value_text(11400, "seconds") == "3 h 10 min"


def test_csv_has_every_run_and_escapes_formulas():
    disks = ["/dev/disk/by-id/ata-=cmd_x_1", *FIVE[1:3]]
    made = list(sweep(where="disk", workloads=["disk-start"], layouts=["stripe"], disks=disks).build_cases())
    found = build_blocks([measured(at, one, 1.0, 2.0) for at, one in enumerate(made)])
    lines = list(csv.reader(io.StringIO(export.as_csv(found))))
    assert len(lines) == 1 + 3 * 2
    assert lines[1][2].startswith("'=cmd")
    assert json.loads(export.as_json("x", found))["cases"][0]["runs"][1]["figures"]["rate"] == 2.0
    assert "| =cmd x (serial 1) |" in export.as_markdown("x", found, conclusions.summarize_results(found))
    assert export.escape_cell("a|b\n[c](d)") == "a\\|b \\[c\\](d)"


@pytest.mark.parametrize("long", ["", "x" * 700])
def test_run_always_fits_into_one_log_line(long):
    """A line of a job's log is cut at 2,000 characters, and half a run cannot be read."""
    waits = {f"ata-{'M' * 40}_{at}": 0.123456 for at in range(8)}
    around = Circumstances(
        read=1, per_disk=waits, busy=(f"{'p' * 255} was being scrubbed.",) * (3 if long else 0), lost=("d" * 100,)
    )
    figures = Figures(rate=1e9, told=long, tool="bonnie++ 1.98")
    run = BenchmarkRun(
        number=1, figures=figures, around=around, invalid=("y" * 200, long), disturbed=around.busy, remarks=(long,)
    )
    text = encode_run(run)
    assert len(text) <= 2000
    kept = msgspec.json.decode(text.removeprefix(RESULT), type=BenchmarkRun)
    assert (kept.number, kept.figures.rate, bool(kept.invalid), kept.around.read) == (1, 1e9, True, 1)
    assert bool(kept.around.per_disk) is not bool(long)


def test_time_left_is_corrected_by_finished_cases():
    cases = list(sweep(ashifts=[9, 12]).build_cases())
    whole = estimate.total_seconds(cases)
    first = estimate.case_seconds(cases[0])
    assert estimate.remaining_seconds(cases, {}) == whole
    assert estimate.remaining_seconds(cases, {0: 2 * first}) == pytest.approx(2 * (whole - first), abs=2)
    assert estimate.remaining_seconds(cases, dict.fromkeys(range(4), 1.0)) == 0


def test_presets_are_found_by_name():
    assert set(BY_NAME) == {preset.name for preset in PRESETS}


def test_conclusions_say_what_limits_each_protocol():
    def one(number: int, protocol: str, rate: float) -> MeasuredCase:
        found = case(where="dataset", disks=(), layout="stripe", pool="tank", guid=7, protocol=protocol)
        return MeasuredCase(
            number, found, (BenchmarkRun(number=1, figures=Figures(rate=rate * MIB), around=Circumstances()),)
        )

    said = " ".join(
        conclusions.describe_protocols(build_blocks([one(0, "", 100), one(1, "smb", 40), one(2, "nfs", 95)]))
    )
    assert "over SMB: the protocol is the limit, with 41.9 MB/s where the folder itself gives 105 MB/s." in said
    assert "over NFS: the pool is the limit" in said
    assert "the wire is the limit" in " ".join(
        conclusions.describe_protocols(build_blocks([one(0, "", 400), one(1, "nfs", 200)]))
    )
    # AFP has another client: the best protocol is named without it, with a note.
    said = " ".join(conclusions.summarize_results(build_blocks([one(0, "", 50), one(1, "smb", 40), one(2, "afp", 90)])))
    assert "over AFP is best" not in said
    assert "not how fast a Mac is" in said
    assert "a Mac" not in " ".join(conclusions.summarize_results(build_blocks([one(0, "", 50), one(1, "smb", 40)])))


def test_iperf_figures_are_what_arrived():
    sent = from_iperf(recorded_text("iperf3-send-3.12.json"))
    assert sent.rate == pytest.approx(459_414_664, rel=1e-6)
    assert sent.tool == "iperf 3.12"
    assert sent.told == "7 packets were sent again."
    assert from_iperf(recorded_text("iperf3-receive-3.12.json")).rate == pytest.approx(230_423_806, rel=1e-6)
    with pytest.raises(Failed, match="Connection refused"):
        from_iperf('{"start": {}, "end": {}, "error": "unable to connect to server: Connection refused"}')


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"end": 1}', '{"end": {"sum_received": {"seconds": "x"}}}'])
def test_iperf_output_without_figures_fails(text):
    with pytest.raises(Failed):
        from_iperf(text)


def test_bonnie_figures_are_its_blocks_and_the_rest_in_words():
    found = from_bonnie(recorded_text("bonnie-2.00a.csv"))
    assert found.rate == 59984 * 1024
    assert found.told.startswith(
        "197 MB/s rewritten, 196 MB/s read, 2,100 seeks a second. As bonnie++ says it: 1.98,2.00a,"
    )
    for text in ("", "1.98,2.00a", recorded_text("bonnie-2.00a.csv").replace("59984", "+++++")):
        with pytest.raises(Failed):
            from_bonnie(text)


@pytest.mark.parametrize(
    ("rate", "said"),
    [
        (11.0, "Look at cable"),
        (60.0, "holds it up"),
        (112.0, "all that a gigabit network carries"),
        (1000.0, "more than a gigabit"),
    ],
)
def test_conclusions_name_the_kind_of_network(rate, said):
    found = case(where="network", disks=(), layout="stripe", workload="net-send", peer="imac.local")
    one = MeasuredCase(0, found, (BenchmarkRun(number=1, figures=Figures(rate=rate * MIB), around=Circumstances()),))
    assert said in " ".join(conclusions.summarize_results(build_blocks([one])))


# --- one rule for every conclusion -----------------------------------------------------------------------------
SIZES = [2**power for power in range(12, 20)]


def compared(*rows: tuple[float, ...]) -> Block:
    """One workload with a case for each record size; the first is the baseline."""
    cases = sweep(workloads=["seq-write"], recordsizes=SIZES[: len(rows)]).build_cases()
    made = [
        measured(at, one, *(value * MIB for value in values))
        for at, (one, values) in enumerate(zip(cases, rows, strict=True))
    ]
    return build_blocks(made)[0]


def said_of(*rows: tuple[float, ...]) -> str:
    return " ".join(conclusions.describe_block(compared(*rows)))


def by_the_rule(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    """The rule of appliance/README.md: runs do not overlap, and medians differ by 3 % or more."""
    if len(one) < 2 or len(other) < 2:
        return False
    apart = all(a > b for a in one for b in other) or all(a < b for a in one for b in other)
    middle = statistics.median(other)
    return apart and abs(statistics.median(one) - middle) * 100 >= 3 * middle


def test_worst_case_that_overlaps_the_baseline_is_not_quoted():
    said = said_of((100, 101), (80, 101), (120, 121))
    assert "−" not in said
    assert "record size 16 KiB is best" in said


def test_case_that_overlaps_another_is_not_called_best():
    said = said_of((100, 101), (120, 124), (121, 126))
    assert "best" not in said
    assert "record size 16 KiB is better than record size 4 KiB, with 129 MB/s: +22.9 % against 105 MB/s." in said
    assert "No clear difference between it and record size 8 KiB." in said


def test_clear_gain_is_named_even_if_the_highest_median_overlaps_the_baseline():
    said = said_of((100, 101), (120, 121), (99, 150))
    assert "record size 8 KiB is better than record size 4 KiB" in said
    assert "+19.9 %" in said
    assert "No clear difference between it and record size 16 KiB." in said


def test_baseline_is_best_only_if_it_beats_every_other_case():
    assert "record size 4 KiB is best, with 126 MB/s. Record size 16 KiB gives −50.2 %." in said_of(
        (120, 121), (100, 101), (60, 60.1)
    )
    said = said_of((120, 121), (100, 122), (60, 60.1))
    assert "best" not in said
    assert "record size 16 KiB costs, with 63 MB/s" in said
    assert "no clear difference between record size 4 KiB and record size 8 KiB" in said


def test_clear_difference_between_two_other_cases_is_named():
    said = said_of((100, 110), (98, 102), (104, 112))
    assert "record size 16 KiB is better than record size 8 KiB" in said
    assert "Neither differs clearly from record size 4 KiB" in said


def test_table_marks_only_clear_differences():
    rows = compared((100, 101), (102, 102.5), (99, 120), (110, 111), (90,)).rows
    assert [row.clear for row in rows] == [False, False, False, True, False]
    assert [row.difference for row in rows] == [None, "near", "overlap", "clear", "single"]


def test_single_runs_show_no_difference_and_no_overlap():
    assert said_of((79.1,), (119,)).endswith("and with one run each, the difference may be chance.")


def test_disks_whose_runs_overlap_have_no_outlier():
    disks = list(sweep(where="disk", workloads=["disk-start"], layouts=["stripe"]).build_cases())

    def said(third: tuple[float, ...]) -> str:
        runs = [third if at == 2 else (150.0, 150.5, 151.0) for at in range(len(disks))]
        found = [measured(at, one, *(run * MIB for run in runs[at])) for at, one in enumerate(disks)]
        return " ".join(conclusions.describe_disks(build_blocks(found)[0]))

    assert "odd one out" in said((60.0, 60.5, 61.0))
    assert "no clear difference between the disks; their runs overlap" in said((60.0, 60.5, 151.0))


ROUGHLY = st.integers(95, 130).map(float)
OF_RUNS = st.one_of(
    st.tuples(ROUGHLY),
    st.tuples(ROUGHLY, ROUGHLY, ROUGHLY),
    st.integers(80, 140).map(lambda at: (at - 0.5, float(at), at + 0.5)),
)


@given(rows=st.lists(OF_RUNS, min_size=2, max_size=6))
@settings(max_examples=400)
def test_every_conclusion_follows_the_rule(rows):
    block = compared(*rows)
    base, found = rows[0], dict(zip((row.name for row in block.rows), rows, strict=True))
    for row, values in zip(block.rows[1:], rows[1:], strict=True):
        assert row.clear == by_the_rule(values, base)
    sentences = list(conclusions.describe_block(block))
    for text in sentences:
        text = text.removeprefix("Large files, writing: ")
        for claim, whole in re.findall(
            r"((record size \d+ KiB) (?:is best|is better than|costs))", text, re.IGNORECASE
        ):
            values = found[whole]
            if claim.endswith("is best"):
                assert all(by_the_rule(values, other) for name, other in found.items() if name != whole), text
            elif claim.endswith("costs"):
                assert by_the_rule(values, base), text
        for one, other in re.findall(r"(record size \d+ KiB) is better than (record size \d+ KiB)", text):
            assert by_the_rule(found[one], found[other]), text
            assert statistics.median(found[one]) > statistics.median(found[other])
        for worst in re.findall(r"\. (Record size \d+ KiB) gives", text):
            assert by_the_rule(found[worst[0].lower() + worst[1:]], base), text
        for one, other in re.findall(
            r"o clear difference between (record size \d+ KiB) and (record size \d+ KiB)\.", text
        ):
            assert not by_the_rule(found[one], found[other]), text
        if "no clear difference. All" in text:
            assert not any(row.clear for row in block.rows)
            assert ("one run" in text) == any(len(values) < 2 for values in rows)
    if any(row.clear for row in block.rows):
        assert any("%" in text for text in sentences)
