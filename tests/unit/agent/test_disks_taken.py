"""Every operation that writes to whole disks names them, so that the agent reads each one directly before."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any, get_args

import msgspec
import pytest

from appliance.agent import run_operation
from appliance.agent.registry import Registered, decode_operation
from appliance.disks import probe
from appliance.errors import Refused
from appliance.facts.box import Facts
from appliance.operation import Operation, kind_of
from tests.unit.agent.test_exclusion import SAMPLES, TOKEN
from tests.unit.made import JOB, box, path_of
from tests.unit.pools import shapes

# Operations with a field for a disk that they do not write to as if it were empty.
NOT_TAKEN = {
    "erase-disk": "It destroys what the disk holds, and the serial number is typed for it.",
    "start-self-test": "The drive reads itself.",
    "rehearse-rebuild": "It writes to a disk of its own pool, whose label says so.",
    "clean-up-benchmark": "What it clears stands in the claim file; the field is for its locks.",
}
# Every way in which a field can hold the paths of disks.
SHAPES: tuple[Any, ...] = ("{}", ["{}"], [["{}"]])
KINDS = {kind_of(kind): kind for kind in get_args(Registered)}


def filled(shape: Any, text: str) -> Any:
    return json.loads(json.dumps(shape).replace("{}", text))


def with_value(fields: Any, place: tuple[str, ...], value: Any) -> Any:
    key, *below = place
    return {**fields, key: with_value(fields[key], tuple(below), value) if below else value}


def decoded(kind: str, fields: dict[str, Any]) -> Operation:
    return decode_operation(json.dumps({"kind": kind, **fields}))


def places(
    kind: type[msgspec.Struct], fields: dict[str, Any], above: tuple[str, ...] = ()
) -> Iterator[tuple[str, ...]]:
    """Where every field of an operation stands, with those of the records in it."""
    for field in msgspec.structs.fields(kind):
        inner = fields.get(field.name)
        if isinstance(field.type, type) and issubclass(field.type, msgspec.Struct) and isinstance(inner, dict):
            yield from places(field.type, inner, (*above, field.name))
        else:
            yield (*above, field.name)


def takes_disks(kind: str, place: tuple[str, ...], shape: Any) -> bool:
    """Whether the field refuses what is not the path of a disk, or is called one."""
    fields = SAMPLES[kind][0]
    try:
        decoded(kind, with_value(fields, place, filled(shape, path_of(9))))
    except Refused:
        return False
    try:
        decoded(kind, with_value(fields, place, filled(shape, "/dev/sda")))
    except Refused as refusal:
        return "disk-path-malformed" in [reason.code for reason in refusal.reasons]
    return place[-1] in {"disk", "disks"}


def disk_fields(kind: str) -> list[tuple[tuple[str, ...], Any]]:
    """The fields of an operation that name disks, and their shapes."""
    every = itertools.product(places(KINDS[kind], SAMPLES[kind][0]), SHAPES)
    return [(place, shape) for place, shape in every if takes_disks(kind, place, shape)]


WITH_DISKS = {kind: found for kind in SAMPLES if (found := disk_fields(kind))}
TAKING = sorted(set(WITH_DISKS) - set(NOT_TAKEN))


def test_fields_of_disks_are_found_in_every_shape_and_depth():
    assert {place for place, _shape in WITH_DISKS["create-pool"]} == {("groups",), ("logs",), ("cache",), ("spares",)}
    assert {place for place, _shape in WITH_DISKS["run-benchmark-case"]} == {
        ("case", name) for name in ("disks", "log", "cache")
    }
    assert WITH_DISKS["replace-disk"] == [(("disk",), "{}")]


@pytest.mark.parametrize("kind", NOT_TAKEN)
def test_operation_with_a_reason_has_a_field_for_disks_and_takes_none(kind):
    assert kind in WITH_DISKS
    assert decoded(kind, SAMPLES[kind][0]).disks_taken() == ()


@pytest.mark.parametrize("kind", TAKING)
def test_operation_names_every_disk_that_it_writes_to(kind):
    fields = SAMPLES[kind][0]
    for number, (place, shape) in enumerate(WITH_DISKS[kind], 2):
        fields = with_value(fields, place, filled(shape, path_of(number)))
    named = [path_of(number) for number in range(2, 2 + len(WITH_DISKS[kind]))]
    assert sorted(decoded(kind, fields).disks_taken()) == named


def test_benchmark_of_a_raw_disk_only_reads_and_takes_none():
    case = {"where": "disk", "workload": "disk-start", "disks": [path_of(1)]}
    operation = decoded("run-benchmark-case", {"token": TOKEN, "case": case})
    assert operation.disks_taken() == ()
    assert all("--readonly" in step.command_text for step in operation.plan(box()).steps)


# What follows from it: the disk seems empty in the inventory and is not.

ON_MIRROR: dict[str, dict[str, Any]] = {
    "add-vdev": {"layout": "mirror", "disks": [path_of(5), path_of(6)]},
    "add-spare": {"disks": [path_of(5)]},
    "add-log": {"disks": [path_of(5)]},
    "add-cache": {"disks": [path_of(5)]},
    "attach-disk": {"vdev": 101, "disk": path_of(5)},
    "replace-disk": {"vdev": 101, "disk": path_of(5)},
}
READY: dict[str, tuple[dict[str, Any], Facts]] = {
    "create-pool": ({"name": "tank", "layout": "mirror", "groups": [[path_of(4), path_of(5)]]}, box()),
    "burn-in-disk": ({"disk": path_of(5), "size": shapes.SIZE}, box()),
    "run-benchmark-case": (
        {"token": TOKEN, "case": {"where": "scratch", "workload": "seq-write", "disks": [path_of(5)]}},
        box(),
    ),
    **{kind: ({"pool": "tank", **fields}, shapes.facts(shapes.mirror())) for kind, fields in ON_MIRROR.items()},
    "expand-raidz": ({"pool": "tank", "vdev": 50, "disk": path_of(5)}, shapes.facts(shapes.raidz2())),
}


def started(kind: str, held: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The steps that the agent begins, where the disk ``held`` holds something that the inventory does not know."""
    steps: list[str] = []
    monkeypatch.setattr(run_operation, "run_steps", lambda plan, *_rest: steps.extend(item.name for item in plan.steps))
    monkeypatch.setattr(probe, "inspect_disk", lambda disk: probe.UNKNOWN if disk.path == held else None)
    fields, facts = READY[kind]
    operation = decoded(kind, fields)
    run_operation.execute(JOB, operation, operation.plan(facts).digest(), lambda: facts, lambda _message: None)
    return steps


def test_every_operation_that_takes_disks_is_tried():
    assert sorted(READY) == TAKING


@pytest.mark.parametrize("kind", TAKING)
def test_agent_writes_nothing_to_a_disk_that_holds_something(kind, folders, commands, monkeypatch):
    assert started(kind, path_of(5), monkeypatch) == []


@pytest.mark.parametrize("kind", TAKING)
def test_agent_begins_where_the_disk_is_empty(kind, folders, commands, monkeypatch):
    assert started(kind, path_of(9), monkeypatch)
