"""Limits and commands that the threat model names are those of the code."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from appliance.agent import __main__ as agent
from appliance.request import LONGEST_REQUEST

TEXT = " ".join((Path(__file__).parents[2] / "THREAT_MODEL.md").read_text().split())
SIZES = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


def number(text: str) -> int:
    """A count or a size in bytes, as a person writes it."""
    figure, _space, unit = text.partition(" ")
    return int(figure.replace(",", "")) * SIZES.get(unit, 1)


@pytest.mark.parametrize(
    ("sentence", "limit"),
    [
        (r"a request is at most ([\d,]+ [KMG]iB) of JSON", LONGEST_REQUEST),
        (r"own control group \(at most ([\d,]+ [KMG]iB) and", int(agent.LIMITS["memory.max"])),
        (r"own control group \(at most [\d,]+ [KMG]iB and ([\d,]+) tasks\)", int(agent.LIMITS["pids.max"])),
        (r"At most ([\d,]+) requests run at once", agent.MOST_AT_ONCE),
    ],
)
def test_limit_in_the_threat_model_is_that_of_the_code(sentence, limit):
    assert [number(found) for found in re.findall(sentence, TEXT)] == [limit]


def test_modules_that_the_threat_model_has_people_run_are_there():
    commands = re.findall(r"(\S+) -I -m ([\w.]+)", TEXT)
    assert commands
    for python, module in commands:
        assert python.lstrip("`") == "/opt/larder/venv/bin/python"  # Debian has none of that name
        assert find_spec(module)
