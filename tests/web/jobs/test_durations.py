"""The review of every operation says how long it takes and whether it can be undone."""

from __future__ import annotations

import ast
from datetime import timedelta
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest
from django.utils import timezone
from msgspec.structs import replace

from appliance.agent.registry import Registered, decode_operation
from appliance.facts.box import Facts
from appliance.facts.remote import Remote
from appliance.operation import Operation, kind_of
from tests.unit.agent.test_exclusion import SAMPLES
from tests.unit.made import dataset, disk
from tests.unit.pools import shapes
from tests.web import rows
from tests.web.reading import Page, text_of
from web.jobs.durations import DURATIONS, EstimateFacts, duration_of
from web.pools.models import WorkReport
from web.pools.rebuild_time import past_work

ROOT = Path(__file__).parents[3]
GB = 10**9
POOL = replace(shapes.raidz2(), name="tank", allocated=400 * GB)
FACTS = Facts(
    pools=(POOL,),
    disks=(replace(disk(1), size=2000 * GB, rotational=True),),
    datasets=(dataset("tank/a", used=50 * GB),),
)


def operation(kind: str, **changes: Any) -> Operation:
    fields = {"kind": kind, **SAMPLES[kind][0], **changes}
    return decode_operation(msgspec.json.encode(fields))


def told(kind: str, facts: Facts = FACTS, **changes: Any) -> str:
    return str(duration_of(operation(kind, **changes), EstimateFacts(facts, lambda _pool, _datasets: [])))


def test_table_has_every_operation_and_no_other():
    assert set(DURATIONS) == {kind_of(one) for one in get_args(Registered)}


@pytest.mark.parametrize("facts", [FACTS, Facts()], ids=["known", "nothing known"])
@pytest.mark.parametrize("kind", DURATIONS)
def test_every_operation_has_a_sentence_on_how_long_it_takes(kind, facts):
    sentence = told(kind, facts)
    assert sentence.endswith(".")
    assert sentence[0].isupper()
    assert "{" not in sentence


def test_what_may_take_hours_is_never_called_seconds():
    for kind in DURATIONS:
        if operation(kind).lasts():
            assert not told(kind).startswith("A few seconds.") or "ZFS then frees" in told(kind), kind
            assert told(kind) != "Usually less than a minute.", kind


def test_work_on_a_disk_is_estimated_by_its_size_and_says_so():
    assert told("erase-disk", how="quick") == "A few seconds."
    assert told("erase-disk", how="full") == "About 5 h 35 min, an estimate: 2 TB at 100 MB/s."
    assert told("start-self-test", test="short") == "About two minutes, in the disk itself."
    solid = replace(FACTS, disks=(replace(FACTS.disks[0], rotational=False),))
    assert told("start-self-test", solid, test="long").startswith("About 1 h 55 min, an estimate:")


def test_backup_to_another_computer_goes_by_the_pace_of_its_last_transfer():
    remote = operation("send-backup").remote  # type: ignore[attr-defined]
    known = replace(FACTS, remotes=(Remote(id=remote, host="attic", port=22, user="larder", root="tank", pace=10**7),))
    assert "the line to the other computer" in told("send-backup")
    assert "about 2 h 50 min for each 100 GB, at the pace of the last transfer" in told("send-backup", known)


@pytest.mark.django_db(databases=["default", "inventory"])
def test_scrub_and_replacement_go_by_what_was_measured_on_the_pool():
    now = timezone.now()
    WorkReport.objects.create(
        key="s",
        pool_key=str(POOL.guid),
        pool="tank",
        kind="scrub",
        outcome="finished",
        looked=200 * GB,
        started=now - timedelta(hours=3),
        ended=now,
    )
    known = EstimateFacts(FACTS, past_work)
    assert duration_of(operation("start-scrub"), known) == "About 6 h (as long as its last scrub took for each byte)."
    assert duration_of(operation("replace-disk"), known) == (
        "About 6 h (an estimate: as long as its last scrub, which reads the same blocks)."
    )


def test_without_anything_measured_the_estimate_says_what_it_is_taken_from():
    assert "no rebuild or scrub of this pool was measured yet" in told("replace-disk")
    assert "twice the work of a rebuild" in told("expand-raidz")


def test_review_says_first_what_happens_then_how_long_then_whether_it_can_be_undone(web, calm):
    rows.put(pools=[rows.pool_of("tank", 1000)], datasets=[dataset("tank"), dataset("tank/photos")], disks=[])
    response = web.get(f"/folders/{dataset('tank/photos').guid}/do/unmount/")
    text = text_of(response)
    order = ["How long Usually less than a minute", "Can it be undone?", "What will happen"]
    assert [text.index(words) for words in order] == sorted(text.index(words) for words in order)
    assert text.index(response.context["plan"].summary[:30]) < text.index(order[0])


def test_review_that_erases_says_how_long_and_what_cannot_be_brought_back(web, calm):
    disks = rows.empty_box(4, disk(7))
    asked = {"step": "review", "name": "tank", "layout": "raidz2-1", "disks": [one.path for one in disks[:4]]}
    page = Page(web.get("/pools/new/", asked))
    assert "How long Usually less than a minute." in page.text


def plans_without(name: str) -> list[str]:
    """The places in the appliance that make a plan without this."""
    found = []
    for path in sorted((ROOT / "appliance").glob("**/*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            called = getattr(node.func, "id", getattr(node.func, "attr", "")) if isinstance(node, ast.Call) else ""
            if isinstance(node, ast.Call) and called in {"Plan", "plan_with_disks"}:
                given = {keyword.arg: keyword.value for keyword in node.keywords}
                value = given.get(name)
                empty = value is None or any(
                    isinstance(one, ast.Constant) and one.value == "" for one in ast.walk(value)
                )
                found += [f"{path.relative_to(ROOT)}:{node.lineno}"] if empty else []
    return found


def test_every_plan_says_whether_it_can_be_undone():
    assert plans_without("undo") == []
    assert plans_without("no such argument")
