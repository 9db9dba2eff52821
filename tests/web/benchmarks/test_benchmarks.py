"""The pages of benchmarks: preset, review, start, progress and results."""

from __future__ import annotations

import json
import uuid
from typing import Any
from urllib.parse import urlencode

import msgspec
import pytest
from django.db import connections
from django.test.utils import CaptureQueriesContext

from appliance.benchmarks.cleanup import CleanUpBenchmark
from appliance.benchmarks.environment import DiskIo
from appliance.benchmarks.presets import PRESETS
from appliance.benchmarks.run_case import RunBenchmarkCase
from appliance.errors import Failed
from appliance.facts.box import Use
from appliance.layout.geometry import GIB, MIB
from tests.reasons import codes_on_page
from tests.unit.made import dataset, disk, path_of
from tests.web import rows
from tests.web.benchmarks import sweeps_made
from tests.web.reading import text_of
from tests.web.routes import SWEEP
from web.benchmarks import create
from web.benchmarks.models import CaseRow, ResultRow, SweepRow
from web.benchmarks.questions import list_questions
from web.inventory.models import Progress
from web.jobs.models import Job
from workers import benchmarks as worker
from workers import io_rate

State = SweepRow.State
WAITS = "It waits until another benchmark no longer uses its disks."


@pytest.fixture
def empty(calm):
    rows.empty_box(4)
    return calm


def answers(**changes: object) -> str:
    made = {
        "answered": 1,
        "title": "Sectors in May",
        "disks": [path_of(1), path_of(2), path_of(3)],
        "layouts": ["raidz1"],
        "ashifts": [9, 12],
        "workloads": ["seq-write"],
        "partitions": ["whole"],
        "recordsizes": [131072],
        "compressions": ["off"],
        "dedups": ["False"],
        "syncs": ["standard"],
        "compressible": 0,
        "size": "8 GiB",
        "repeats": 3,
        "seconds": 30,
        "warmups": 0,
        "writers": 1,
    }
    return urlencode({**made, **changes}, doseq=True)


def form_of(response) -> dict[str, str]:
    """The form data that the review page sends."""
    return {
        key: response.context[name]
        for key, name in (("sweep", "pk"), ("spec", "spec"), ("title", "title"), ("preset", "preset"), ("back", "back"))
    }


def typed(numbers=(1, 2, 3)) -> dict[str, str]:
    return {f"typed-{at}": disk(number).serial for at, number in enumerate(numbers)}


@pytest.mark.parametrize("preset", PRESETS, ids=lambda preset: preset.name)
def test_every_preset_leads_to_its_review(web, empty, preset):
    rows.put(pools=[rows.pool_of("attic", 900, disk(5), disk(6))], datasets=[dataset("attic", available=10**12)])
    page = web.get(f"/benchmarks/new/{preset.name}/")
    assert page.status_code == 200
    form = page.context["form"]
    sent: dict[str, Any] = {"answered": 1}
    for field in form:
        value = field.value()
        if value is not None and value is not False and value != "":
            sent[field.name] = value
    if "peer" in form.fields:
        sent["peer"] = "imac.local"
    sent.setdefault("pool", form.fields["pool"].choices[0][0] if "pool" in form.fields else "")
    review = web.get(f"/benchmarks/new/{preset.name}/", sent)
    assert review.status_code == 200, text_of(review)
    assert "Start the benchmark" in text_of(review)


def test_review_shows_disks_and_duration(web, empty):
    said = text_of(web.get(f"/benchmarks/new/ashift/?{answers()}"))
    assert "2 cases, each 3 times: about" in said
    assert "These disks are written to" in said
    assert "zpool create" in said
    assert SweepRow.objects.count() == 0


def test_every_disk_name_has_to_be_typed(web, empty):
    form = form_of(web.get(f"/benchmarks/new/ashift/?{answers()}"))
    wrong = web.post("/benchmarks/start/", {**form, **typed(), "typed-1": "WD"})
    assert wrong.status_code == 400
    assert "Type WD-WCAZA0000002 exactly." in text_of(wrong)
    assert SweepRow.objects.count() == 0
    begun = web.post("/benchmarks/start/", {**form, **typed()})
    assert begun["Location"] == f"/benchmarks/{form['sweep']}/"
    again = web.post("/benchmarks/start/", {**form, **typed()})
    assert again["Location"] == begun["Location"]
    assert SweepRow.objects.count() == 1
    assert CaseRow.objects.count() == 2
    assert ("workers.tick",) in empty


def test_disk_in_use_is_not_offered_and_refused_if_sent(web, empty):
    form = form_of(web.get(f"/benchmarks/new/ashift/?{answers()}"))
    held = disk(2, uses=(Use("old", "holds ext4 data called photos", "1"),))
    rows.put(disks=[disk(1), held, disk(3)])
    page = web.get("/benchmarks/new/ashift/")
    assert path_of(2) not in [path for path, _label in page.context["form"].fields["disks"].choices]
    assert "holds ext4 data called photos" in text_of(page)
    refused = web.post("/benchmarks/start/", {**form, **typed()})
    assert refused.status_code == 409
    assert set(codes_on_page(refused)) == {"benchmark-disk-in-use"}
    assert "holds ext4 data called photos" in text_of(refused)
    assert SweepRow.objects.count() == 0


@pytest.mark.parametrize(
    ("changes", "field", "code"),
    [
        ({"disks": []}, "disks", "required"),
        ({"size": "much"}, "size", "size-without-unit"),
        ({"size": "10 TiB"}, "size", "scratch-pool-too-small"),
        ({"layouts": ["raidz3"]}, "layouts", "disks-too-few-for-layouts"),
        ({"repeats": 99}, "repeats", "max_value"),
        ({"log": path_of(1)}, "__all__", "disk-twice"),
        (
            {
                "recordsizes": [16384, 65536, 131072, 524288, 1048576, 4194304],
                "compressions": ["off", "lz4", "zstd"],
                "ashifts": [9, 12, 13],
                "dedups": ["False", "True"],
                "syncs": ["standard", "always"],
            },
            "workloads",
            "cases-too-many",
        ),
        ({"workloads": ["disk-start"]}, "workloads", "invalid_choice"),
    ],
)
def test_answer_that_cannot_be_tested_is_marked_at_its_field(web, empty, changes, field, code):
    response = web.get(f"/benchmarks/new/ashift/?{answers(**changes)}")
    assert response.status_code == 400
    errors = response.context["form"].errors
    assert {name: {error.code for error in errors.as_data()[name]} for name in errors} == {field: {code}}
    assert errors[field][0] in text_of(response)


# --- samples --------------------------------------------------------------------------------------------------
def kept() -> dict[str, object]:
    """A pool with folders of which only one can be a sample. Returns form data with that one."""
    photos = dataset("attic/photos")
    others = [
        dataset("attic/diary", encryption="aes-256-gcm", key_status="available"),
        dataset("attic/away", mounted=False),
        dataset("attic/disk", kind="volume"),
        dataset("attic/system", mountpoint="/var/log"),
    ]
    rows.put(pools=[rows.pool_of("attic", 900, disk(5), disk(6))], datasets=[photos, *others])
    return {
        "sample": str(photos.guid),
        "compressions": ["off", "zstd"],
        "dedups": ["False", "True"],
        "workloads": ["seq-write", "seq-read"],
        "compressible": 33,
    }


def test_only_safe_folders_are_offered_as_a_sample(web, empty):
    kept()
    form = web.get("/benchmarks/new/compression/").context["form"]
    assert [words for _guid, words in form.fields["sample"].choices] == [
        "generated, as stated below",
        "files of attic/photos",
    ]
    assert "sample" not in web.get("/benchmarks/new/ashift/").context["form"].fields


def test_review_of_a_sample_says_where_it_goes_and_leaves_out_dedup_writes(web, empty):
    response = web.get(f"/benchmarks/new/compression/?{answers(**kept(), ashifts=[12])}")
    said = text_of(response)
    assert "Parts of the files in attic/photos are written to them, without their names." in said
    assert "erase the disks before you give them away" in said
    assert "6 cases, each 3 times" in said
    assert "Read files of attic/photos as a sample, without their names" in said
    begun = web.post("/benchmarks/start/", {**form_of(response), **typed()})
    assert begun.status_code == 302
    found = SweepRow.objects.get()
    assert (found.sweep.sample, found.sweep.compressible) == ("attic/photos", 0)
    assert "attic" in found.claimed_resources()


def test_sample_folder_that_changed_since_the_review_is_refused(web, empty):
    form = form_of(web.get(f"/benchmarks/new/compression/?{answers(**kept(), ashifts=[12])}"))
    for changed, code in (({"encryption": "aes-256-gcm"}, "sample-encrypted"), ({"guid": 5}, "folder-missing")):
        rows.put(datasets=[dataset("attic/photos", **changed)])
        response = web.post("/benchmarks/start/", {**form, **typed()})
        assert response.status_code == 409
        assert set(codes_on_page(response)) == {code}
    assert SweepRow.objects.count() == 0


def test_workload_that_cannot_use_a_sample_is_an_error(web, empty):
    response = web.get(
        f"/benchmarks/new/compression/?{answers(**{**kept(), 'workloads': ['small-files']}, ashifts=[12])}"
    )
    assert response.status_code == 400
    assert [error.code for error in response.context["form"].errors.as_data()["__all__"]] == ["workload-not-for-sample"]
    response = web.get(f"/benchmarks/new/compression/?{answers(**{**kept(), 'sample': '12'}, ashifts=[12])}")
    assert response.context["form"].has_error("sample", "invalid_choice")


@pytest.mark.parametrize("spec", ["", "{", "[]", '{"where": "scratch"}', "[" * 5000])
def test_a_sweep_that_cannot_be_read_is_refused(web, empty, spec):
    response = web.post("/benchmarks/start/", {"sweep": SWEEP, "spec": spec})
    assert response.status_code == 409
    assert codes_on_page(response) == ["benchmark-unreadable"]
    assert SweepRow.objects.count() == 0


def test_a_sweep_of_a_disk_without_stable_path_is_refused(web, empty):
    spec = '{"where":"scratch","workloads":["seq-write"],"disks":["/dev/sda"]}'
    response = web.post("/benchmarks/start/", {"sweep": SWEEP, "spec": spec})
    assert response.status_code == 409
    assert SweepRow.objects.count() == 0


def test_box_without_empty_disks_says_what_to_do(web, calm):
    rows.recorded_box()
    rows.put(disks=[disk(1, uses=(Use("pool", "is part of the pool tank", "1", "tank"),))])
    assert "No empty disks" in text_of(web.get("/benchmarks/new/layouts/"))
    rows.put(pools=[])
    assert "No pool to benchmark" in text_of(web.get("/benchmarks/new/pool/"))


def lacking(page) -> dict[str, str]:
    return {question.preset.name: question.lacking for question in page.context["questions"]()}


def test_list_says_which_questions_this_box_cannot_be_asked_as_their_pages_do(web, calm):
    rows.put(pools=[], datasets=[], disks=[], accounts=[], shares=[])
    page = web.get("/benchmarks/")
    for name, reason in lacking(page).items():
        assert (reason in text_of(web.get(f"/benchmarks/new/{name}/"))) if reason else name == "network"
    assert (
        text_of(page).count("No empty disks")
        == sum(reason == "No empty disks" for reason in lacking(page).values())
        > 3
    )
    assert "No shared folder to measure" in text_of(page)
    assert "No shared folder to measure" in text_of(web.get("/benchmarks/client/"))


def test_list_counts_the_disks_that_a_question_needs(web, calm):
    rows.empty_box(1)
    found = lacking(web.get("/benchmarks/"))
    assert found["disks"] == found["compression"] == ""
    assert found["log"] == found["resilver"] == "Only 1 empty disk"
    assert "Only 1 empty disk" in text_of(web.get("/benchmarks/new/resilver/"))
    assert "Review" not in text_of(web.get("/benchmarks/new/resilver/"))


def test_what_is_missing_is_asked_once_for_all_questions(web, empty):
    with CaptureQueriesContext(connections["inventory"]) as captured:
        assert len(list(list_questions())) == len(PRESETS)
    assert len(captured) == 2


def test_small_disks_propose_less_data_with_limited_memory(web, calm):
    rows.put(pools=[], datasets=[], disks=[disk(number, size=2 * GIB) for number in (1, 2, 3)], accounts=[], shares=[])
    form = web.get("/benchmarks/new/parity/").context["form"]
    assert (form["limited"].value(), form["aside"].value()) == (True, False)
    assert form["size"].value() == "614 MiB"
    rows.put(disks=[disk(number, size=400 * 2**20) for number in (1, 2, 3)])
    form = web.get("/benchmarks/new/parity/").context["form"]
    assert (form["limited"].value(), form["aside"].value()) == (False, True)
    assert form["size"].value() == "120 MiB"


def test_number_of_disks_is_a_setting(web, empty):
    page = web.get("/benchmarks/new/layouts/").content.decode()
    assert page.index('name="counts"') < page.index("More settings")
    response = web.get(
        f"/benchmarks/new/layouts/?{answers(counts=[2, 3], layouts=['mirror', 'raidz1', 'raidz2'], ashifts=[12])}"
    )
    assert [found[0] for found, _workload in response.context["cases"]] == [
        "mirror of 2 disks",
        "mirror of 3 disks",
        "raidz1 of 3 disks",
    ]


# --- a sweep under way ----------------------------------------------------------------------------------------
def test_page_shows_the_progress_of_a_sweep(web, empty):
    row = sweeps_made.made()
    worker.advance_benchmarks()
    said = text_of(web.get(f"/benchmarks/{row.pk}/"))
    assert "0 of 2 cases" in said
    assert "left" in said
    assert "Pause after this case" in said
    assert "measuring" in said


@pytest.mark.parametrize(
    ("what", "before", "now"),
    [
        ("pause", "running", "pausing"),
        ("resume", "paused", "running"),
        ("resume", "pausing", "running"),
        ("cancel", "running", "cancelling"),
        ("pause-now", "running", "pausing"),
        ("pause-now", "pausing", "pausing"),
        ("pause-now", "paused", "paused"),
        ("pause", "queued", "queued"),
        ("cancel", "paused", "cancelling"),
        ("cancel", "queued", "cancelled"),
        ("pause", "done", "done"),
        ("resume", "cancelled", "cancelled"),
        ("cancel", "done", "done"),
    ],
)
def test_sweep_can_be_paused_resumed_and_cancelled(web, empty, what, before, now):
    row = sweeps_made.made(state=before)
    for _ in range(2):
        assert web.post(f"/benchmarks/{row.pk}/act/{what}/").status_code == 302
        row.refresh_from_db()
        assert row.state == now


def test_only_pausing_now_stops_the_running_case(web, empty, monkeypatch):
    asked = []
    monkeypatch.setattr("web.jobs.confirm.request_stop", lambda job: asked.append(job.pk))
    row = sweeps_made.made()
    worker.advance_benchmarks()
    assert "Pause now" in text_of(web.get(f"/benchmarks/{row.pk}/"))
    web.post(f"/benchmarks/{row.pk}/act/pause/")
    assert asked == []
    web.post(f"/benchmarks/{row.pk}/act/pause-now/")
    assert asked == [Job.objects.get().pk]


def test_pausing_now_without_the_agent_pauses_after_the_case(web, empty, monkeypatch):
    def unreachable(_job: Job) -> None:
        raise Failed("The agent does not answer")

    monkeypatch.setattr("web.jobs.confirm.request_stop", unreachable)
    row = sweeps_made.made()
    worker.advance_benchmarks()
    assert web.post(f"/benchmarks/{row.pk}/act/pause-now/").status_code == 302
    row.refresh_from_db()
    assert row.state == State.PAUSING


def test_late_request_is_not_reported_as_done(web, empty):
    row = sweeps_made.finished()
    assert "pauses" not in text_of(web.post(f"/benchmarks/{row.pk}/act/pause/", follow=True))


def test_unknown_request_is_not_found(web, empty):
    row = sweeps_made.made()
    assert web.post(f"/benchmarks/{row.pk}/act/destroy/").status_code == 404


def test_paused_sweep_says_why(web, empty):
    row = sweeps_made.made(state=State.PAUSED, text="WDC WD20EARS holds ext4 data called photos.")
    said = text_of(web.get(f"/benchmarks/{row.pk}/"))
    assert "Paused. WDC WD20EARS holds ext4 data called photos." in said
    assert "Resume" in said


# --- results --------------------------------------------------------------------------------------------------
def test_results_have_a_table_with_changes_bars_and_sentences(web, empty):
    row = sweeps_made.finished()
    response = web.get(f"/benchmarks/{row.pk}/")
    said = text_of(response)
    assert "ashift 12 is best, with 140 MB/s" in said
    assert "+68.2 %" in said
    assert "82.9 to 83.2 MB/s" in said
    assert response.content.count(b'class="measured"') == 2
    assert b"style=" not in response.content
    assert "2.3.9" in said


def test_two_settings_make_a_heat_map(web, empty):
    row = sweeps_made.finished(sweeps_made.spec(compressions=["off", "lz4"]), rates=(10.0, 20.0, 30.0, 40.0))
    page = web.get(f"/benchmarks/{row.pk}/").content.decode()
    assert "Sectors downwards, Compression across" in page
    assert page.count('class="heat-5"') == page.count('class="heat-1"') == 1


def test_one_setting_makes_no_heat_map(web, empty):
    assert b'class="heat"' not in web.get(f"/benchmarks/{sweeps_made.finished().pk}/").content


def test_another_case_can_be_the_baseline(web, empty):
    row = sweeps_made.finished()
    assert "−40.5 %" in text_of(web.get(f"/benchmarks/{row.pk}/?baseline=1"))
    for odd in ("x", "-1", "9" * 500, "²"):
        assert web.get(f"/benchmarks/{row.pk}/", {"baseline": odd}).status_code == 200


def test_invalid_case_is_shown_with_its_reason(web, empty):
    row = sweeps_made.finished()
    case = row.cases.get(number=1)
    ResultRow.objects.filter(case=case).delete()
    found = sweeps_made.run(
        1, 9e9, invalid=("8 GiB were read, but only 1 GiB of it from the disks. Memory did the rest.",)
    )
    ResultRow.objects.create(case=case, number=1, told=sweeps_made.told(found)[1].removeprefix("Result: "))
    said = text_of(web.get(f"/benchmarks/{row.pk}/"))
    assert "does not count" in said
    assert "Memory did the rest." in said


@pytest.mark.parametrize(("form", "holds"), [("csv", "bytes per second"), ("json", '"sweep"'), ("md", "| --- |")])
def test_results_can_be_exported(web, empty, form, holds):
    row = sweeps_made.finished()
    response = web.get(f"/benchmarks/{row.pk}/export/{form}/")
    assert holds in response.content.decode()
    assert response["Content-Disposition"] == f'attachment; filename="sectors.{form}"'
    assert web.get(f"/benchmarks/{row.pk}/export/exe/").status_code == 404


def test_json_export_has_the_commands(web, empty):
    row = sweeps_made.finished()
    Job.objects.create(pk=(job := uuid.uuid4()), plan={"steps": [{"name": "run-1", "shown": "fio --rw=write"}]})
    CaseRow.objects.filter(sweep=row, number=1).update(job=job)
    cases = json.loads(web.get(f"/benchmarks/{row.pk}/export/json/").content)["cases"]
    assert [one["commands"] for one in cases] == [[], ["fio --rw=write"]]


def test_export_uses_the_baseline_of_the_page(web, empty):
    row = sweeps_made.finished()
    assert (
        f'/benchmarks/{row.pk}/export/md/?baseline=1"' in web.get(f"/benchmarks/{row.pk}/?baseline=1").content.decode()
    )


@pytest.mark.parametrize("form", ["page", "md"])
def test_results_name_the_layout_that_all_cases_share(web, empty, form):
    row = sweeps_made.finished()
    response = web.get(f"/benchmarks/{row.pk}/" if form == "page" else f"/benchmarks/{row.pk}/export/md/")
    said = text_of(response) if form == "page" else response.content.decode()
    assert "mirror of 2 disks" in said
    assert "2 of each case" in said


def test_sweep_can_be_repeated(web, empty):
    row = sweeps_made.finished()
    assert f"/benchmarks/{row.pk}/again/" in web.get(f"/benchmarks/{row.pk}/").content.decode()
    review = web.get(f"/benchmarks/{row.pk}/again/")
    answer = web.post("/benchmarks/start/", {**form_of(review), **typed((1, 2))})
    made = SweepRow.objects.exclude(pk=row.pk).get()
    assert answer["Location"] == f"/benchmarks/{made.pk}/"
    assert (made.spec, made.preset) == (row.spec, row.preset)
    rows.put(disks=[disk(1, uses=(Use("old", "holds ext4 data", "1"),)), disk(2)])
    refused = web.get(f"/benchmarks/{row.pk}/again/")
    assert refused.status_code == 409
    assert set(codes_on_page(refused)) == {"benchmark-disk-in-use"}


def test_comparison_lists_differences_in_setup(web, empty):
    first = sweeps_made.finished()
    second = sweeps_made.again(first, 1.5)
    SweepRow.objects.filter(pk=second.pk).update(versions='{"ZFS": "2.4.0", "Linux": "6.12"}')
    said = text_of(web.get(f"/benchmarks/{second.pk}/with/{first.pk}/"))
    assert "ZFS 2.3.9 2.4.0" in said
    assert "Linux" not in said
    SweepRow.objects.filter(pk=second.pk).update(versions=first.versions)
    assert "were the same both times" in text_of(web.get(f"/benchmarks/{second.pk}/with/{first.pk}/"))


def test_comparable_sweeps_are_offered_with_the_same_preset_first(web, empty):
    first = sweeps_made.finished()
    for title, preset in (("Parity", "parity"), ("Wire", "network"), ("Earlier", "ashift")):
        SweepRow.objects.create(title=title, preset=preset, spec=first.spec, state=State.DONE, created_by="admin")
    assert [one.title for one in web.get(f"/benchmarks/{first.pk}/").context["others"]] == ["Earlier", "Parity"]


def test_two_sweeps_are_compared_case_by_case(web, empty):
    first = sweeps_made.finished()
    second = sweeps_made.again(first, 1.5)
    said = text_of(web.get(f"/benchmarks/{second.pk}/with/{first.pk}/"))
    assert "+50.0 %" in said
    assert web.get(f"/benchmarks/{second.pk}/with/{uuid.uuid4()}/").status_code == 404


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ((79.1,), (119.0,), "one run of each tells nothing"),
        ((79.0, 80.0), (79.5, 119.0), "the runs overlap"),
        ((79.0, 79.1), (80.0, 80.1), "too little to matter"),
        ((79.0, 79.1), (119.0, 120.0), ""),
    ],
)
def test_comparison_of_sweeps_uses_the_same_rule(web, empty, before, after, said):
    first = sweeps_made.finished()
    second = sweeps_made.again(first, 1.0)
    for row, values in ((first, before), (second, after)):
        for case in row.cases.all():
            case.results.all().delete()
            for number, value in enumerate(values, 1):
                told = msgspec.json.encode(sweeps_made.run(number, value * MIB)).decode()
                ResultRow.objects.create(case=case, number=number, told=told)
    text = text_of(web.get(f"/benchmarks/{second.pk}/with/{first.pk}/"))
    for words in ("one run of each tells nothing", "the runs overlap", "too little to matter"):
        assert (words in text) == (words == said)


def test_queries_do_not_grow_with_the_number_of_cases(web, empty):
    def cost(row: SweepRow) -> int:
        with (
            CaptureQueriesContext(connections["default"]) as default,
            CaptureQueriesContext(connections["inventory"]) as inventory,
        ):
            response = web.get(f"/benchmarks/{row.pk}/")
        assert len(response.content) < 400_000
        return len(default.captured_queries) + len(inventory.captured_queries)

    web.get("/benchmarks/")  # fill the caches
    small = cost(sweeps_made.finished())
    SweepRow.objects.all().delete()
    axes = {
        "recordsizes": [2**power for power in range(12, 17)],
        "compressions": ["off", "lz4", "zstd"],
        "ashifts": [9, 12],
        "syncs": ["standard", "always"],
        "workloads": ["seq-write", "seq-read"],
    }
    large = sweeps_made.finished(sweeps_made.spec(**axes))
    assert large.cases.count() == 120
    assert cost(large) == small
    assert small < 25


def test_list_shows_sweeps_or_that_there_are_none(web, empty):
    assert "No benchmarks yet" in text_of(web.get("/benchmarks/"))
    sweeps_made.finished(title="<b>Sectors</b>")
    response = web.get("/benchmarks/")
    assert "2 of 2" in text_of(response)
    assert b"<b>Sectors" not in response.content


@pytest.mark.parametrize("page", ["/pools/", "/disks/"])
def test_pools_and_disks_link_to_benchmarks(web, empty, page):
    assert b'href="/benchmarks/"' in web.get(page).content


def test_only_a_finished_sweep_can_be_removed(web, empty):
    row = sweeps_made.finished()
    SweepRow.objects.update(state=State.RUNNING)
    web.post(f"/benchmarks/{row.pk}/forget/")
    assert ResultRow.objects.count() == 6
    SweepRow.objects.update(state=State.DONE)
    for _ in range(2):
        assert web.post(f"/benchmarks/{row.pk}/forget/")["Location"] == "/benchmarks/"
        assert not SweepRow.objects.exists()
    assert ResultRow.objects.count() == 0


def test_jobs_of_a_sweep_link_to_benchmarks(web, empty):
    sweeps_made.made()
    worker.advance_benchmarks()
    job = Job.objects.get()
    Job.objects.filter(pk=job.pk).update(state="done")
    assert b'href="/benchmarks/"' in web.get(f"/jobs/{job.pk}/").content
    assert json.loads(job.operation)["kind"] == "run-benchmark-case"


# --- live graphs ------------------------------------------------------------------------------------------------
def test_page_draws_the_io_of_the_running_case(web, empty):
    row = sweeps_made.made()
    worker.advance_benchmarks()
    Progress.objects.create(job=Job.objects.get().pk, speeds=[[0, 10 * MIB], [5 * MIB, 20 * MIB]])
    page = web.get(f"/benchmarks/{row.pk}/")
    assert b'class="line-2" points="0.0,40.0 600.0,1.0"' in page.content
    assert "at most 21 MB/s" in text_of(page)
    Progress.objects.update(speeds=[])
    assert b"live-graph" not in web.get(f"/benchmarks/{row.pk}/").content


def test_meter_reads_bytes_a_second_and_drops_old_readings(monkeypatch):
    clock, read = iter(range(0, 10_000, 2)), iter(range(0, 10_000_000, 1000))
    monkeypatch.setattr("workers.io_rate.time.monotonic", lambda: next(clock))
    monkeypatch.setattr("workers.io_rate.environment.read_io", lambda _paths: {"a": DiskIo(1, next(read), 0, 0.0)})
    found = io_rate.Meter(["a"])
    for _ in range(io_rate.KEPT + 5):
        speeds = found.measure_speeds()
    assert speeds == [[500, 0]] * io_rate.KEPT


def test_only_a_case_has_a_meter(empty):
    assert io_rate.meter_of(RunBenchmarkCase(token="0" * 12, case=next(sweeps_made.spec().build_cases()))) is not None
    assert io_rate.meter_of(CleanUpBenchmark(token="0" * 12)) is None


def test_repeated_sweep_has_a_line_for_each_case(web, empty):
    first = sweeps_made.finished()
    assert "Results over time" not in text_of(web.get(f"/benchmarks/{first.pk}/"))
    second = sweeps_made.again(first, 0.5)
    SweepRow.objects.update(state=State.DONE)
    assert "Results over time" in text_of(web.get(f"/benchmarks/{second.pk}/"))
    page = web.get(f"/benchmarks/{second.pk}/over-time/")
    assert "run 2 times" in text_of(page)
    assert page.content.count(b"<polyline") == 2
    assert "ashift 12" in text_of(page)
    SweepRow.objects.filter(pk=first.pk).delete()
    alone = web.get(f"/benchmarks/{second.pk}/over-time/")
    assert "After the next run" in text_of(alone)
    assert b"<svg viewBox" not in alone.content
    SweepRow.objects.update(state=State.RUNNING)
    assert "No complete results yet" in text_of(web.get(f"/benchmarks/{second.pk}/over-time/"))


@pytest.mark.parametrize(("disks", "held"), [([2, 3], True), ([3, 4], False)])
def test_benchmark_waits_only_for_one_that_uses_its_disks(web, empty, disks, held):
    sweeps_made.made(sweeps_made.spec(disks=[path_of(1), path_of(2)]), state=State.RUNNING)
    spec = sweeps_made.spec(disks=[path_of(number) for number in disks])
    row = create.store_sweep(spec, title="x", preset="", pk=str(uuid.uuid4()), user="admin")
    assert (WAITS in text_of(web.get(f"/benchmarks/{row.pk}/"))) is held


def test_benchmark_that_just_began_waits_for_no_other(web, empty):
    row = sweeps_made.made()
    assert row.state == State.QUEUED
    assert WAITS not in text_of(web.get(f"/benchmarks/{row.pk}/"))


def test_system_disk_can_be_measured_but_is_not_ticked_at_first(web, calm):
    system = disk(3, uses=(Use("system", "holds the system"),))
    rows.put(disks=[disk(1), disk(2), system])
    (field,) = (one for one in web.get("/benchmarks/new/disks/").context["form"] if one.name == "disks")
    assert system.path in {value for value, _label in field.field.choices}
    assert field.initial == [path_of(1), path_of(2)]
