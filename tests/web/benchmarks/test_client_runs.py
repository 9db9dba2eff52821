"""Benchmarks from another computer: the code, what the script may ask with it, and the result."""

from __future__ import annotations

import json
import re
import uuid
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from django.core.cache import cache
from django.utils import timezone

from appliance.errors import Failed
from appliance.facts.sharing import Share
from appliance.layout.geometry import GIB, KIB, MIB
from tests.unit.made import dataset
from tests.web.benchmarks import client_runs_made, sweeps_made
from tests.web.reading import text_of
from tests.web.routes import PHOTOS
from web import agent
from web.benchmarks import client_views, create
from web.benchmarks.client_models import LONGEST_RUN, MOST_KEPT, VALID, ClientRunRow, make_run
from web.benchmarks.client_results import find_loopback
from web.benchmarks.models import CaseRow, ResultRow, SweepRow
from web.inventory import store
from web.inventory.dataset_models import DatasetRow
from web.inventory.models import ShareRow

FORM = "/benchmarks/client/"
State = ClientRunRow.State


def ask(client, what: str, **message: Any):
    return client.post(f"/benchmarks/client/{what}/", json.dumps(message), content_type="application/json")


def new_run(**more: Any) -> tuple[ClientRunRow, str]:
    fields = {
        "dataset": "tank/photos",
        "dataset_key": "1",
        "pool": "tank",
        "protocol": "smb",
        "share": "photos",
        "size": GIB,
        "runs": 2,
        "created_by": "admin",
    }
    return make_run(**{**fields, **more})


@pytest.fixture
def shared(box) -> str:
    """The choice of tank/photos, which is served over SMB."""
    store.replace(ShareRow, [Share("smb", "photos", "/tank/photos")], lambda share: share.key)
    return f"smb-{PHOTOS}"


@pytest.fixture
def begun(anonymous, admin, calm) -> tuple[ClientRunRow, str]:
    """A run whose code was used, and its token."""
    row, code = new_run()
    return row, ask(anonymous, "begin", code=code).json()["token"]


def test_form_offers_what_is_shared_and_the_page_shows_the_code_once(web, shared):
    page = web.get(FORM)
    assert page.context["form"].fields["share"].choices == [(shared, "tank/photos over SMB")]
    answer = web.post(FORM, {"share": shared, "size": "64 MiB", "runs": 2})
    assert answer.status_code == 200
    assert answer["Cache-Control"] == "no-store"
    code = answer.context["code"]
    assert re.fullmatch(r"[A-Z2-9]{5}-[A-Z2-9]{5}", code)
    row = ClientRunRow.objects.get(state=State.WAITING)
    assert (row.size, row.runs, row.created_by) == (64 * MIB, 2, "admin")
    stored = json.dumps({name: str(value) for name, value in vars(row).items()})
    assert code not in stored
    assert code.replace("-", "") not in stored
    assert code not in web.get(f"/benchmarks/client/{row.pk}/").content.decode()


def test_folders_are_offered_in_the_order_of_their_names(web, box):
    store.replace(
        DatasetRow,
        [dataset("tank"), *(dataset(f"tank/{name}", guid=n) for n, name in enumerate("abc", 50))],
        lambda one: str(one.guid),
    )
    shares = [Share(protocol, f"{protocol} {name}", f"/tank/{name}") for protocol in ("nfs", "smb") for name in "abc"]
    store.replace(ShareRow, shares[::-1], lambda share: share.key)
    offered = [str(label) for _key, label in web.get(FORM).context["form"].fields["share"].choices]
    assert [label.partition(" over ")[0] for label in offered] == [f"tank/{name}" for name in "aabbcc"]


def test_folder_over_afp_is_measured_where_a_mac_has_connected_it(web, box):
    store.replace(ShareRow, [Share("afp", "Old photos", "/tank/photos")], lambda share: share.key)
    answer = web.post(FORM, {"share": f"afp-{PHOTOS}", "size": "64 MiB", "runs": 2})
    assert "for tank/photos over AFP" in text_of(answer)
    assert answer.context["mounted"].endswith("--folder '/Volumes/Old photos'")
    page = answer.content.decode()
    assert 'id="mounted"' in page and 'id="run"' not in page
    assert ClientRunRow.objects.get(state=State.WAITING).share == "Old photos"


@pytest.mark.parametrize(
    ("changed", "word"),
    [
        ({"size": "1 MiB"}, "from 16 MiB"),
        ({"size": "much"}, "like 1 GiB"),
        ({"size": "64 GiB", "runs": 5}, "half of that"),
        ({"share": "smb-1"}, "valid choice"),
        ({"runs": 6}, "5"),
    ],
)
def test_form_refuses_with_a_sentence(web, shared, changed, word):
    for row in DatasetRow.objects.all():
        row.facts = re.sub(r'"available":\d+', f'"available":{100 * GIB}', row.facts)
        row.save()
    answer = web.post(FORM, {"share": shared, "size": "64 MiB", "runs": 2, **changed})
    assert answer.status_code == 400
    assert word in text_of(answer)
    assert not ClientRunRow.objects.filter(state=State.WAITING).exists()


def test_script_is_text_that_anybody_can_read(anonymous, admin):
    answer = anonymous.get("/larder-client.py")
    assert answer["Content-Type"] == "text/plain; charset=utf-8"
    assert answer.content.startswith(b"#!/usr/bin/env python3")


def test_code_works_once(anonymous, admin, calm):
    row, code = new_run()
    answer = ask(anonymous, "begin", code=code.lower())
    assert answer.status_code == 200
    told = answer.json()
    assert {name: told[name] for name in ("protocol", "share", "size", "runs")} == {
        "protocol": "smb",
        "share": "photos",
        "size": GIB,
        "runs": 2,
    }
    row.refresh_from_db()
    assert (row.state, row.address) == (State.RUNNING, "192.168.1.50")
    assert told["token"] not in row.token_hash
    again = ask(anonymous, "begin", code=code)
    assert (again.status_code, "token" in again.json()) == (403, False)


def test_code_is_old_after_half_an_hour(anonymous, admin, calm):
    row, code = new_run()
    ClientRunRow.objects.filter(pk=row.pk).update(created=timezone.now() - VALID)
    assert ask(anonymous, "begin", code=code).status_code == 403


@pytest.mark.parametrize("code", ["", "-", "AAAAA-AAAAA", "'; drop", "\u0000"])
def test_wrong_code_is_refused_and_leaves_the_right_one(anonymous, admin, calm, code):
    row, _right = new_run()
    assert ask(anonymous, "begin", code=code).status_code == 403
    row.refresh_from_db()
    assert row.state == State.WAITING


def test_codes_cannot_be_tried_without_end(anonymous, admin, calm):
    _row, code = new_run()
    answers = [ask(anonymous, "begin", code="AAAAA-AAAAA").status_code for _ in range(31)]
    assert answers == [403] * 30 + [429]
    assert ask(anonymous, "begin", code=code).status_code == 429
    cache.clear()
    assert ask(anonymous, "begin", code=code).status_code == 200


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{", b'{"code": 5}', b'{"code": "A", "more": 1}', b"[" * 30000, b"x" * 40000]
)
def test_messages_that_are_none_are_refused(anonymous, admin, calm, body):
    for what in ("begin", "wire", "setting", "finish"):
        answer = anonymous.post(f"/benchmarks/client/{what}/", body, content_type="application/json")
        assert answer.status_code == 403, what
        assert "Nothing was changed" in answer.json()["error"]


def test_run_has_a_port_opened_twice_at_most(anonymous, begun, monkeypatch):
    asked = []

    def last(request, *, silence):
        asked.append(request)
        return {"facts": {"port": 5208, "key": "ab" * 32, "seconds": 2.0}}

    monkeypatch.setattr(agent, "last", last)
    _row, token = begun
    answers = [ask(anonymous, "wire", token=token) for _ in range(3)]
    assert [one.status_code for one in answers] == [200, 200, 403]
    assert answers[0].json() == {"port": 5208, "key": "ab" * 32, "seconds": 2.0}
    assert asked == [{"verb": "open-wire"}] * 2
    assert ask(anonymous, "wire", token="x" * 43).status_code == 403


def test_port_that_cannot_be_opened_is_said_to_the_script(anonymous, begun, monkeypatch):
    def last(_request, *, silence):
        raise Failed("Port 5208 could not be opened for the measurement", "it is in use")

    monkeypatch.setattr(agent, "last", last)
    answer = ask(anonymous, "wire", token=begun[1])
    assert answer.status_code == 409
    assert "Port 5208 could not be opened" in answer.json()["error"]


def test_figures_are_stored_once_and_shown_beside_the_parts(anonymous, web, begun):
    row, token = begun
    answer = ask(anonymous, "finish", token=token, figures=client_runs_made.figures())
    assert answer.status_code == 200
    assert "the network is the limit" in answer.json()["sentences"][0]
    page = text_of(web.get(f"/benchmarks/client/{row.pk}/"))
    assert "Writing: the network is the limit" in page
    assert "Pool and protocol have not been measured in the box" in page
    assert ask(anonymous, "finish", token=token, figures=client_runs_made.figures()).status_code == 403


def test_result_uses_the_newest_benchmark_of_pool_and_protocol(web, box):
    slow = sweeps_made.spec(
        where="dataset",
        pool="tank",
        guid=1,
        disks=[],
        layouts=["stripe"],
        ashifts=[12],
        protocols=["", "smb"],
        workloads=["seq-write", "seq-read"],
    )
    SweepRow.objects.all().delete()
    sweeps_made.finished(slow, rates=(100.0, 100.0))
    page = text_of(web.get(f"/benchmarks/client/{ClientRunRow.objects.get(state=State.DONE).pk}/"))
    assert "the pool and the network are the limit together" in page
    assert "Pool and protocol have not been measured" not in page


def measure_in_the_box(rate: float, days: float = 0, **changes: Any) -> None:
    """A sweep of tank in the box, with and without SMB, that ended so many days from now."""
    cases = {
        "where": "dataset",
        "pool": "tank",
        "guid": 1,
        "disks": [],
        "layouts": ["stripe"],
        "ashifts": [12],
        "protocols": ["", "smb"],
        "workloads": ["seq-write"],
    }
    sweep = create.store_sweep(
        sweeps_made.spec(**{**cases, **changes}), title="Pool", preset="protocols", pk=str(uuid.uuid4()), user="admin"
    )
    for case in sweep.cases.all():
        told = msgspec.json.encode(sweeps_made.run(1, rate * MIB)).decode()
        ResultRow.objects.create(case=case, number=1, told=told)
    sweep.cases.update(state=CaseRow.State.DONE, finished=timezone.now() + timedelta(days=days))


def ceilings(**changes: Any) -> tuple[int, int]:
    """What the pool and the protocol give by themselves, in MiB/s, as a run is judged by; 0 where not measured."""
    ClientRunRow.objects.all().delete()
    found = find_loopback(client_runs_made.finished(**changes))
    return round((found.pool_write or 0) / MIB), round((found.protocol_write or 0) / MIB)


@pytest.fixture
def no_sweeps(box) -> None:
    SweepRow.objects.all().delete()


@pytest.mark.parametrize(
    "unusual",
    [
        {"syncs": ["always"]},
        {"recordsizes": [16 * KIB]},
        {"compressions": ["zstd"]},
        {"dedups": [True]},
        {"writers": 8},
        {"compressible": 50},
        {"gentle": True},
        {"volblocksizes": [16 * KIB], "protocols": [""]},
    ],
)
def test_benchmark_with_unusual_settings_is_no_ceiling_of_a_share(no_sweeps, unusual):
    measure_in_the_box(30.0, **unusual)
    assert ceilings() == (0, 0)
    measure_in_the_box(200.0, -1)
    assert ceilings() == (200, 200)


def test_reads_without_the_memory_cache_are_no_ceiling_and_writes_are(no_sweeps):
    """They miss the read-ahead of daily use."""
    measure_in_the_box(200.0, aside=True, workloads=["seq-write", "seq-read"])
    ClientRunRow.objects.all().delete()
    found = find_loopback(client_runs_made.finished())
    assert (found.pool_write, found.protocol_write) == (200 * MIB, 200 * MIB)
    assert (found.pool_read, found.protocol_read) == (None, None)


def test_last_case_of_a_sweep_over_settings_is_no_ceiling(no_sweeps):
    measure_in_the_box(200.0)
    slow = CaseRow.objects.filter(spec__contains='"protocol":""').get()
    always = msgspec.structs.replace(slow.case, sync="always")
    later = CaseRow.objects.create(
        sweep=slow.sweep, number=9, spec=msgspec.json.encode(always).decode(), state="done", finished=timezone.now()
    )
    ResultRow.objects.create(case=later, number=1, told=msgspec.json.encode(sweeps_made.run(1, 30.0 * MIB)).decode())
    assert ceilings() == (200, 200)


def test_stored_result_keeps_the_benchmarks_of_its_time(no_sweeps):
    ended = timezone.now() - timedelta(days=100)
    measure_in_the_box(300.0)
    measure_in_the_box(290.0, -98)
    assert ceilings(finished=ended) == (0, 0)
    measure_in_the_box(200.0, -110)
    measure_in_the_box(150.0, -150)
    measure_in_the_box(90.0, -161)
    assert ceilings(finished=ended) == (200, 200)
    measure_in_the_box(220.0, -99.5)
    assert ceilings(finished=ended) == (220, 220)
    assert ceilings(state="running", finished=None) == (300, 300)


def test_nearest_benchmark_counts_among_many(no_sweeps):
    ended = timezone.now() - timedelta(days=10)
    for hour in range(31):
        measure_in_the_box(50.0, -10 + (12 + hour / 4) / 24)
    measure_in_the_box(200.0, -10.1)
    assert ceilings(finished=ended) == (200, 200)


def test_old_result_is_not_completed_by_a_new_benchmark(web, no_sweeps):
    row = ClientRunRow.objects.get(state=State.DONE)
    page = f"/benchmarks/client/{row.pk}/"
    assert "then open this page again" in text_of(web.get(page))
    ClientRunRow.objects.filter(pk=row.pk).update(finished=timezone.now() - timedelta(days=2))
    said = text_of(web.get(page))
    assert "in the 60 days before this benchmark" in said
    assert "then run this benchmark again" in said
    assert "open this page again" not in said


@pytest.mark.parametrize(
    "changes",
    [
        {"write": [-1.0]},
        {"write": [0]},
        {"write": ["fast"]},
        {"write": [1e13]},
        {"write": [1.0] * 10},
        {"busy_write": 1.1},
        {"system": "x" * 101},
        {"way": "a\nb"},
        {"notes": ["x"] * 11},
        {"notes": ["x" * 301]},
        {"notes": ["\u202e"]},
        {"more": 1},
    ],
)
def test_hostile_figures_are_refused_and_the_run_goes_on(anonymous, begun, changes):
    row, token = begun
    assert ask(anonymous, "finish", token=token, figures=client_runs_made.figures(**changes)).status_code == 403
    row.refresh_from_db()
    assert (row.state, row.told) == (State.RUNNING, "")


def test_text_of_the_other_computer_is_escaped(anonymous, web, begun):
    row, token = begun
    ask(anonymous, "finish", token=token, figures=client_runs_made.figures(system="<script>alert(1)</script>"))
    assert b"<script>alert" not in web.get(f"/benchmarks/client/{row.pk}/").content


def test_failure_of_the_script_is_shown(anonymous, web, begun):
    row, token = begun
    assert ask(anonymous, "finish", token=token, failed="There is no folder /mnt here.").status_code == 200
    assert "There is no folder /mnt here." in text_of(web.get(f"/benchmarks/client/{row.pk}/"))
    assert ask(anonymous, "finish", token=token, failed="again").status_code == 403


def test_token_ends_after_hours(anonymous, begun):
    row, token = begun
    ClientRunRow.objects.filter(pk=row.pk).update(begun=timezone.now() - LONGEST_RUN - timedelta(seconds=1))
    assert ask(anonymous, "finish", token=token, failed="late").status_code == 403


def test_runs_are_pruned(admin):
    for _ in range(MOST_KEPT + 3):
        new_run()
    assert ClientRunRow.objects.count() == MOST_KEPT


def test_deleted_run_takes_no_code(anonymous, web, calm):
    row, code = new_run()
    assert web.post(f"/benchmarks/client/{row.pk}/forget/").status_code == 302
    assert ask(anonymous, "begin", code=code).status_code == 403


def test_fingerprint_is_that_of_the_certificate(tmp_path):
    assert client_views.certificate_fingerprint(tmp_path / "none") == ""
    (tmp_path / "crt").write_text("-----BEGIN CERTIFICATE-----\nYWJj\n-----END CERTIFICATE-----\n")
    known = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"  # of "abc", FIPS 180-2
    assert client_views.certificate_fingerprint(tmp_path / "crt") == known
