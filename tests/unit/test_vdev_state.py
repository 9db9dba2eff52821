"""One table holds the states of vdevs: no other module lists them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from appliance.facts import vdev_state
from appliance.pools import health
from tests.unit.pools import shapes

ROOT = Path(__file__).parents[2]
HOME = ROOT / "appliance/facts/vdev_state.py"


def listed_states(source: str) -> Iterator[set[str]]:
    """The states in each set, list, tuple or dict that is written out, where there are two or more."""
    for node in ast.walk(ast.parse(source)):
        parts = (
            node.elts
            if isinstance(node, ast.Set | ast.List | ast.Tuple)
            else node.keys
            if isinstance(node, ast.Dict)
            else ()
        )
        words = {part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str)}
        if len(found := words & set(vdev_state.STATES)) >= 2:
            yield found


def test_no_other_module_lists_states():
    assert list(listed_states('x in {"ONLINE", "DEGRADED"}')) == [{"ONLINE", "DEGRADED"}]
    assert list(listed_states('x = {"ONLINE": 1, "REMOVED": 2}')) == [{"ONLINE", "REMOVED"}]
    paths = [path for folder in ("appliance", "web", "workers") for path in (ROOT / folder).rglob("*.py")]
    assert {path for path in paths if path != HOME and list(listed_states(path.read_text(encoding="utf-8")))} == set()


@pytest.mark.parametrize("state", sorted(set(vdev_state.STATES) - {"SUSPENDED", "SPLIT"}))
def test_every_state_has_a_word_level_and_one_place_in_the_sets(state):
    found = vdev_state.describe(state)
    assert found.word
    assert found.phrase
    assert (state in vdev_state.LOST) is (found.level == "failed")
    assert not (vdev_state.LOST & vdev_state.WORKING)
    assert vdev_state.ABSENT < vdev_state.LOST
    assert health.of_device(shapes.leaf(1, state)) == found.level


def test_unknown_state_keeps_its_own_name():
    found = vdev_state.describe("BROKEN_NEWLY")
    assert (found.word, found.level, found.working, found.lost) == ("broken_newly", "unknown", False, False)


def test_events_spell_states_by_their_enum():
    assert vdev_state.describe("CANT_OPEN") == vdev_state.describe("UNAVAIL")
    assert vdev_state.describe("HEALTHY") == vdev_state.describe("ONLINE")


@pytest.mark.parametrize(
    ("raw", "name"),
    [
        ({"state": "CANT_OPEN"}, "UNAVAIL"),
        ({"state": "CANT_OPEN", "aux": "OPEN_FAILED"}, "UNAVAIL"),
        ({"state": "CANT_OPEN", "aux": "CORRUPT_DATA"}, "FAULTED"),
        ({"state": "CANT_OPEN", "aux": "BAD_LOG"}, "FAULTED"),
        ({"state": "CANT_OPEN", "aux": "SPLIT_POOL"}, "SPLIT"),
        ({"state": "DEGRADED", "aux": "EXTERNAL"}, "DEGRADED"),
        ({"state": "HEALTHY"}, "ONLINE"),
        ({"state": "CLOSED"}, "OFFLINE"),
        ({"state": "BROKEN_NEWLY"}, "BROKEN_NEWLY"),
        ({}, "UNKNOWN"),
    ],
)
def test_json_names_states_by_their_enum_and_the_reason(raw, name):
    """After ``zpool_state_to_name()``, which the text of ``zpool status`` goes through and its JSON does not."""
    assert vdev_state.read_state(raw) == name
