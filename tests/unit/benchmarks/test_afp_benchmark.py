"""The AFP benchmark program: what it starts, writes and prints."""

from __future__ import annotations

import os
import pwd
import zlib
from pathlib import Path
from typing import Any

import pytest

from appliance import command
from appliance.benchmarks import afp_benchmark, loopback_mount, scratch
from appliance.benchmarks.matrix import Sweep
from appliance.benchmarks.parse_results import Figures, from_afp
from appliance.errors import Failed
from appliance.shares import afp
from tests.reasons import expect_refusal
from tests.unit.benchmarks.test_run_case import TOKEN, in_pool
from tests.unit.made import recorded, recorded_text
from tests.unit.pools import shapes

INFORMATION = bytes.fromhex(recorded("afp-session-netatalk-4.2.3.json")["information"])


@pytest.fixture
def state(tmp_path: Path, monkeypatch) -> Path:
    """A box with netatalk, whose guest is the user that runs the test."""
    found = tmp_path / "netatalk"
    found.mkdir()
    monkeypatch.setattr(afp_benchmark, "STATE", found)
    monkeypatch.setattr(afp_benchmark, "raise_loopback", lambda: None)
    monkeypatch.setattr(afp_benchmark, "ACCOUNT", pwd.getpwuid(os.getuid()).pw_name)
    monkeypatch.setattr(afp, "server_information", lambda _host: INFORMATION)
    return found


def test_separate_servers_serve_the_folder_to_guests_on_the_loopback_only(state, commands, tmp_path):
    assert afp_benchmark.serve_folder(tmp_path) == "Netatalk4.2.3"
    assert commands.tools == ["mount", "mount", "cnid_metad", "afpd"]
    assert commands.ran[0][-1] == str(state)  # the tmpfs covers it before anything is written there
    assert commands.ran[1] == ["mount", "--bind", str(tmp_path), str(state / "sweep")]
    said = afp.parse_config((state / "sweep.conf").read_text())
    assert said["Global"]["afp listen"] == "127.0.0.1"
    assert said["Global"]["cnid listen"].startswith("127.0.0.1:")
    assert said["Global"]["uam list"] == "uams_guest.so"
    assert said["Global"]["zeroconf"] == "no"
    assert said["sweep"]["path"] == str(state / "sweep")


def test_missing_netatalk_or_answer_fails(state, commands, tmp_path, monkeypatch):
    monkeypatch.setattr(afp, "server_information", lambda _host: b"")
    monkeypatch.setattr(afp_benchmark, "SECONDS_TO_START", -1)
    with pytest.raises(Failed, match="started and does not answer"):
        afp_benchmark.serve_folder(tmp_path)
    monkeypatch.setattr(afp_benchmark, "STATE", tmp_path / "nothing")
    with pytest.raises(Failed, match="not installed"):
        afp_benchmark.serve_folder(tmp_path)


def test_error_is_printed_as_json_and_parsed(state, tmp_path, monkeypatch, capsys):
    def missing(argv: list[str], **_more: object) -> None:
        raise command.CommandMissing(f"{argv[0]} is not installed on this system")

    monkeypatch.setattr(command, "run", missing)
    assert afp_benchmark.main(["seq-write", str(tmp_path), "--size=1048576"]) == 1
    with pytest.raises(Failed, match="AFP could not be measured: mount is not installed"):
        from_afp(capsys.readouterr().out, "")


def test_figures_have_the_same_form_as_those_of_other_protocols():
    found = from_afp(recorded_text("over-afp-netatalk-4.2.3.json"), "")
    assert found.written == 64 * 2**20
    assert found.rate == pytest.approx(found.written / found.seconds)
    assert (found.tool, found.read) == ("Netatalk4.2.3", 0)


@pytest.mark.parametrize("text", ["", "[]", "nonsense", '{"rate": "fast"}'])
def test_other_output_is_refused(text):
    with pytest.raises(Failed, match="AFP could not be measured: unshare: Operation not permitted"):
        from_afp(text, "unshare: Operation not permitted")


def test_data_does_not_repeat_or_compress_unless_asked_for(monkeypatch):
    monkeypatch.setattr(afp_benchmark, "POOL", 2**20)
    pool = afp_benchmark.random_bytes(0)
    blocks = [bytes(afp_benchmark.data_at(pool, at, 2**17)) for at in range(0, 2**23, 2**17)]
    assert all(len(block) == 2**17 for block in blocks)
    assert len({block[at : at + 512] for block in blocks for at in range(0, 2**17, 512)}) == 2**23 // 512
    assert len(zlib.compress(blocks[-1])) >= 2**17
    shrunk = afp_benchmark.random_bytes(50)
    assert len(zlib.compress(bytes(shrunk[: 2**17]))) < 0.6 * 2**17


def test_requests_cover_a_file_to_its_last_byte():
    assert list(afp_benchmark.request_ranges(2500, 1000)) == [(0, 1000), (1000, 1000), (2000, 500)]


def test_sessions_of_several_writers_are_added():
    one, other = afp_benchmark.Tally(512, [0.1]), afp_benchmark.Tally(512, [0.3])
    found = afp_benchmark.summarize_tallies([one, other], 2.0, reads=False)
    assert found == Figures(rate=512, operations=1, seconds=2, latency=0.2, latency99=0.3, written=1024)


# --- as a case --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("workload", ["seq-write", "small-files"])
def test_plan_shows_one_command_with_a_separate_loopback(workload):
    steps = in_pool(protocol="afp", workload=workload).build_steps(shapes.facts(shapes.single()))
    shown = next(step.command_text for step in steps if step.name == "run-1")
    assert shown.startswith("unshare --mount --propagation=slave --net --pid --fork --kill-child ")
    assert f"appliance.benchmarks.afp_benchmark {workload} {scratch.scratch_folder(TOKEN)} " in shown
    words = shown.splitlines()[0].split()
    assert (
        afp_benchmark.argument_parser()
        .parse_args(words[words.index("appliance.benchmarks.afp_benchmark") + 1 :])
        .workload
        == workload
    )


def test_afp_mounts_and_serves_nothing_beforehand(commands, folders):
    loopback_mount.mount_folder("afp", scratch.scratch_folder(TOKEN), TOKEN)
    loopback_mount.unmount_folder(scratch.scratch_folder(TOKEN), TOKEN)
    assert [argv for argv in commands.ran if argv[0] != "systemctl"] == []
    assert not loopback_mount.client_mountpoint(TOKEN).exists()


def test_workloads_that_afp_cannot_run_are_left_out_or_refused():
    with expect_refusal("workload-not-over-afp"):
        in_pool(protocol="afp", workload="random-read")
    both: dict[str, Any] = {"where": "dataset", "pool": "tank", "guid": 7, "workloads": ("seq-read", "random-read")}
    found = [(case.protocol, case.workload) for case in Sweep(**both, protocols=("nfs", "afp")).build_cases()]
    assert found == [("nfs", "seq-read"), ("nfs", "random-read"), ("afp", "seq-read")]
    with expect_refusal("afp-without-cases"):
        Sweep(**both | {"workloads": ("mixed",)}, protocols=("afp",))
