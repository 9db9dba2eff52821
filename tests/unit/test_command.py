from __future__ import annotations

import ast
import json
import logging
import os
import select
import signal
import subprocess
import sys

import pytest

from appliance import command
from appliance.command import CommandFailed, CommandMissing, CommandTimedOut
from appliance.errors import Bug, Failed

PYTHON = sys.executable


def test_it_gives_both_outputs_and_the_status():
    result = command.run(
        [PYTHON, "-c", "import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)"], accept=(3,)
    )
    assert (result.stdout, result.stderr, result.status) == ("out\n", "err\n", 3)


def test_it_raises_for_a_status_that_is_not_accepted_with_what_the_tool_said():
    with pytest.raises(CommandFailed) as caught:
        command.run([PYTHON, "-c", "import sys; print('no such pool', file=sys.stderr); sys.exit(1)"])
    assert caught.value.said == "no such pool"
    assert caught.value.result.status == 1


def test_it_passes_words_as_they_are_with_no_shell_between():
    words = ["$(id)", "`id`", "a;b", "*", "\n", "'", '"', " "]
    result = command.run([PYTHON, "-c", "import sys, json; print(json.dumps(sys.argv[1:]))", *words])
    assert result.stdout.strip() == json.dumps(words)


def test_its_surroundings_are_fixed_and_hold_nothing_of_the_callers(monkeypatch):
    monkeypatch.setenv("LD_PRELOAD_CANARY", "1")
    result = command.run([PYTHON, "-I", "-c", "import os; print(sorted(os.environ))"])
    seen = set(ast.literal_eval(result.stdout))
    assert "LD_PRELOAD_CANARY" not in seen
    assert {"PATH", "LC_ALL", "TZ"} <= seen


def test_what_is_given_goes_by_standard_input_and_not_into_the_log(caplog):
    with caplog.at_level(logging.DEBUG):
        result = command.run([PYTHON, "-c", "import sys; print(len(sys.stdin.read()))"], given="canary-secret\n")
    assert result.stdout == "14\n"
    assert PYTHON in caplog.text
    assert "canary" not in caplog.text


def test_a_process_that_is_given_nothing_reads_nothing():
    assert command.run([PYTHON, "-c", "import sys; print(repr(sys.stdin.read()))"]).stdout == "''\n"


def test_a_tool_that_is_not_installed_is_a_fact_and_not_a_crash():
    with pytest.raises(CommandMissing, match="is not installed"):
        command.run(["larder-has-no-such-tool"])


def test_a_tool_that_may_not_be_run_is_a_fact_and_not_a_crash(tmp_path):
    tool = tmp_path / "tool"
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o600)
    with pytest.raises(CommandMissing, match="may not be run"):
        command.run([str(tool)])


def test_an_argument_too_long_for_the_system_is_an_error_with_words():
    with pytest.raises(Failed, match="could not be started"):
        command.run([PYTHON, "x" * 3_000_000])


@pytest.mark.parametrize("argv", [[], ["true", "a\0b"]])
def test_it_starts_nothing_for_words_that_are_none(argv, monkeypatch):
    monkeypatch.setattr("subprocess.Popen", lambda *_args, **_kwargs: pytest.fail("a process was started"))
    with pytest.raises(Bug):
        command.run(argv)


def test_it_kills_what_does_not_end_in_its_time_together_with_its_children(tmp_path, monkeypatch):
    told = tmp_path / "pids"
    os.mkfifo(told)
    script = (
        "import os, signal\n"
        "child = os.fork()\n"
        "if not child: signal.pause()\n"
        f"open({str(told)!r}, 'w').write(f'{{os.getpid()}} {{child}}')\n"
        "signal.pause()"
    )
    seen: list[int] = []

    def time_is_up(_process, _given=None, timeout=None):
        seen.extend(os.pidfd_open(int(pid)) for pid in told.read_text().split())
        raise subprocess.TimeoutExpired("python", timeout)

    monkeypatch.setattr(subprocess.Popen, "communicate", time_is_up)
    with pytest.raises(CommandTimedOut) as caught:
        command.run([PYTHON, "-c", script], timeout=1)
    assert caught.value.pid is None
    assert len(seen) == 2
    for process in seen:
        # Readable once the process has ended; the time is a bound for a failing test, not a measure.
        assert select.select([process], [], [], 30)[0] == [process]
        os.close(process)


def test_it_says_when_even_the_kernel_does_not_let_a_process_go(monkeypatch):
    def stuck(_process, timeout=None):
        raise subprocess.TimeoutExpired("python", timeout)

    process = subprocess.Popen([PYTHON, "-c", "import signal; signal.pause()"], start_new_session=True)
    with monkeypatch.context() as patch:
        patch.setattr(subprocess.Popen, "wait", stuck)
        assert command.kill_process(process) == process.pid
    assert process.wait() == -signal.SIGKILL


def test_output_that_is_not_text_does_not_break_it():
    result = command.run([PYTHON, "-c", "import sys; sys.stdout.buffer.write(bytes([0x66, 0xff, 0x6f]))"])
    assert result.stdout == "f\ufffdo"
