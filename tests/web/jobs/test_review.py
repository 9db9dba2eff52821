"""From the review page to the job: what is asked again, what is refused, and where a secret goes."""

from __future__ import annotations

import json
import uuid
from typing import Any

import pytest
from django.contrib.sessions.models import Session
from django.core.files.uploadedfile import SimpleUploadedFile
from msgspec.structs import replace

from appliance import agent_client
from appliance.errors import Refused
from appliance.facts.box import Disk
from appliance.system import paths
from tests.reasons import codes_on_page
from tests.unit.made import OLD, dataset, disk
from tests.web import rows
from tests.web.reading import Page, text_of
from tests.web.routes import ELSEWHERE
from web.jobs.models import Job

CONFIRM = "/jobs/confirm/"
CANARY = "canary-passphrase-77"


@pytest.fixture
def disks(calm) -> list[Disk]:
    return rows.empty_box(4, disk(7, uses=(OLD,)))


def review(web, disks: list[Disk], **answers: Any) -> Page:
    asked = {"step": "review", "name": "tank", "layout": "raidz2-1", "disks": [one.path for one in disks], **answers}
    response = web.get("/pools/new/", asked)
    assert response.status_code == 200
    return Page(response)


def confirm(web, page: Page, **changes: Any):
    return web.post(CONFIRM, {**page.form(CONFIRM).data, **changes})


def assert_asked_again(response, field: str, code: str) -> None:
    page = Page(response)
    assert response.status_code == 400
    assert codes_on_page(response) == [code]
    assert page.field_error(field)
    assert page.form(CONFIRM)
    assert not Job.objects.exists()
    assert not list(paths.SECRETS.iterdir())


def test_confirming_makes_the_job_that_was_shown_and_sends_only_its_id(web, disks, calm):
    page = review(web, disks[:4])
    response = confirm(web, page)
    job = Job.objects.get()
    assert (response.status_code, response["Location"]) == (302, f"/jobs/{job.pk}/")
    assert (job.state, job.kind, job.subject, job.created_by) == ("queued", "create-pool", "tank", "admin")
    assert (str(job.pk), job.digest, job.operation) == tuple(
        page.form(CONFIRM).data[name] for name in ("job", "digest", "operation")
    )
    assert [step["name"] for step in job.plan["steps"]] == ["create", "verify"]
    assert ("workers.run_job", str(job.pk)) in calm


def test_the_same_form_sent_twice_is_one_job(web, disks, calm):
    page = review(web, disks[:4], encrypted="on")
    answers = [confirm(web, page, secret=CANARY, again=CANARY) for _ in range(2)]
    assert [answer["Location"] for answer in answers] == [f"/jobs/{Job.objects.get().pk}/"] * 2
    assert calm.count(("workers.run_job", str(Job.objects.get().pk))) == 1


def test_the_same_form_sent_again_after_its_job_ended_begins_nothing(web, disks, calm):
    page = review(web, disks[:4])
    confirm(web, page)
    Job.objects.update(state=Job.State.DONE)
    rows.put(pools=[rows.pool_of("tank", 1000, *disks[:4])])
    assert confirm(web, page).status_code == 302
    assert Job.objects.get().state == Job.State.DONE


def test_two_forms_at_the_same_moment_are_one_job(web, disks, calm, monkeypatch):
    """As if the first row were stored between this request's look and its own row."""
    from web.jobs import confirm as confirming

    page = review(web, disks[:4], encrypted="on")
    make = confirming.make_job

    def make_twice(*args: Any, **more: Any) -> Job:
        first = make(*args, **more)
        assert make(*args, **{**more, "secret": "another passphrase"}) == first
        return first

    monkeypatch.setattr(confirming, "make_job", make_twice)
    confirm(web, page, secret=CANARY, again=CANARY)
    assert Job.objects.count() == 1
    assert [path.read_text() for path in paths.SECRETS.iterdir()] == [CANARY]
    assert len([words for words in calm if words[0] == "workers.run_job"]) == 1


def test_without_redis_the_job_waits_in_its_row(web, disks, monkeypatch):
    from web.jobs import queue

    monkeypatch.setattr(queue, "send", lambda *_words: False)
    assert confirm(web, review(web, disks[:4])).status_code == 302
    assert Job.objects.get().state == Job.State.QUEUED


# --- what changed meanwhile -----------------------------------------------------------------------------------
def test_a_disk_that_is_gone_since_the_review_is_said_and_nothing_begins(web, disks):
    page = review(web, disks[:4])
    rows.put(disks=disks[1:])
    response = confirm(web, page)
    assert response.status_code == 409
    assert "WD-WCAZA0000001 is no longer there." in text_of(response)
    assert "Nothing was changed" in text_of(response)
    assert not Job.objects.exists()


def test_a_disk_that_came_to_hold_data_since_the_review_gives_a_new_review(web, disks):
    page = review(web, disks[:4])
    rows.put(disks=[replace(disks[0], uses=(OLD,), content=("sda1",)), *disks[1:]])
    response = confirm(web, page)
    again = Page(response)
    assert response.status_code == 409
    assert "Something changed since you looked" in again.text
    assert "holds ext4 data called photos" in again.text
    assert not Job.objects.exists()
    assert again.form(CONFIRM).data["job"] == page.form(CONFIRM).data["job"]
    assert confirm(web, again).status_code == 400
    assert confirm(web, again, typed="tank").status_code == 302


def test_another_disk_in_the_same_place_is_not_the_disk_that_was_shown(web, disks):
    page = review(web, disks[:4])
    rows.put(disks=[replace(disks[0], serial="ANOTHER"), *disks[1:]])
    assert confirm(web, page).status_code == 409
    assert not Job.objects.exists()


def test_what_does_not_matter_may_change_meanwhile(web, disks):
    page = review(web, disks[:4])
    rows.put(disks=[replace(disks[0], name="sdz"), *disks[1:]])
    assert confirm(web, page).status_code == 302


def test_a_pool_of_that_name_made_meanwhile_is_said(web, disks):
    page = review(web, disks[:4])
    rows.put(pools=[rows.pool_of("tank", 1000)])
    response = confirm(web, page)
    assert response.status_code == 409
    assert "The name tank is taken by a pool of this box." in text_of(response)
    assert not Job.objects.exists()


# --- what is typed --------------------------------------------------------------------------------------------
@pytest.mark.parametrize("typed", ["", "Tank", "tank ", "tank\x00", "tank\n", "yes"])
def test_old_data_is_erased_only_when_the_name_was_typed_exactly(web, disks, typed):
    page = review(web, [disks[4]], layout="stripe-1")
    assert_asked_again(confirm(web, page, typed=typed), "typed", "name-not-typed")
    assert confirm(web, page, typed="tank").status_code == 302


@pytest.mark.parametrize(
    ("secret", "again", "field", "code"),
    [
        ("", "", "secret", "passphrase-too-short"),
        ("seven77", "seven77", "secret", "passphrase-too-short"),
        ("x" * 513, "x" * 513, "secret", "passphrase-too-long"),
        (CANARY, "", "again", "secrets-differ"),
        (CANARY, CANARY + " ", "again", "secrets-differ"),
        (f"{CANARY}\nx", f"{CANARY}\nx", "secret", "invisible-characters"),
        (f"{CANARY}\r", f"{CANARY}\r", "secret", "invisible-characters"),
        (f"{CANARY}\x00", f"{CANARY}\x00", "secret", "invisible-characters"),
    ],
)
def test_wrong_passphrase_is_refused_at_its_field(web, disks, secret, again, field, code):
    page = review(web, disks[:4], encrypted="on")
    response = confirm(web, page, secret=secret, again=again)
    assert_asked_again(response, field, code)
    assert not secret or secret.encode() not in response.content


@pytest.mark.parametrize("secret", ["-f passphrase", "--help me", "$(reboot)'\"", "schlüssel 🔑", " spaces around "])
def test_a_passphrase_may_hold_anything_that_fits_on_a_line(web, disks, secret):
    confirm(web, review(web, disks[:4], encrypted="on"), secret=secret, again=secret)
    assert (paths.SECRETS / str(Job.objects.get().pk)).read_text() == secret


def test_a_passphrase_lies_in_a_file_of_its_own_and_nowhere_else(web, disks, calm, tmp_path):
    page = review(web, disks[:4], encrypted="on")
    wrong = confirm(web, page, secret=CANARY, again="different")
    right = confirm(web, page, secret=CANARY, again=CANARY)
    job = Job.objects.get()
    secret = paths.SECRETS / str(job.pk)
    assert (secret.read_text(), secret.stat().st_mode & 0o777) == (CANARY, 0o600)
    answers = [wrong, right, *(web.get(url) for url in ("/", "/jobs/", f"/jobs/{job.pk}/", f"/jobs/{job.pk}/again/"))]
    assert all(CANARY.encode() not in answer.content + str(answer.headers).encode() for answer in answers)
    stored = [*Job.objects.values(), *(session.get_decoded() for session in Session.objects.all()), calm]
    assert CANARY not in json.dumps(stored, default=str)
    assert [path for path in tmp_path.rglob("*") if path.is_file() and CANARY.encode() in path.read_bytes()] == [secret]


def test_without_encryption_nothing_secret_is_asked_or_kept(web, disks):
    page = review(web, disks[:4])
    assert "secret" not in page.form(CONFIRM).data
    confirm(web, page, secret=CANARY, again=CANARY)
    assert not list(paths.SECRETS.iterdir())


def test_a_passphrase_that_cannot_be_handed_on_begins_nothing(web, disks, monkeypatch):
    page = review(web, disks[:4], encrypted="on")

    def full(*_args: str) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(agent_client, "leave_secret", full)
    response = confirm(web, page, secret=CANARY, again=CANARY)
    assert response.status_code == 409
    assert codes_on_page(response) == ["secret-not-stored"]
    assert not Job.objects.exists()


def test_a_passphrase_left_by_an_attempt_that_never_became_a_job_is_replaced(web, disks):
    page = review(web, disks[:4], encrypted="on")
    agent_client.leave_secret(page.form(CONFIRM).data["job"], "left behind")
    assert confirm(web, page, secret=CANARY, again=CANARY).status_code == 302
    assert (paths.SECRETS / str(Job.objects.get().pk)).read_text() == CANARY


# --- key files ------------------------------------------------------------------------------------------------
KEY = "0123456789abcdef" * 4


def key_review(web, disks) -> Page:
    return review(web, disks[:4], encrypted="on", key_file="on")


def file_of(content: bytes) -> SimpleUploadedFile:
    return SimpleUploadedFile("tank.key", content)


def test_a_key_has_to_be_saved_and_shown_before_anything_begins(web, disks):
    page = key_review(web, disks)
    assert any(found.get("href") == "/pools/new/key/tank/" for _tag, found in page.elements)
    assert_asked_again(confirm(web, page), "secret", "key-file-not-saved")
    # A passphrase typed where a file belongs is none.
    assert_asked_again(confirm(web, page, secret=KEY), "secret", "key-file-not-saved")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"x",
        KEY[:-1].encode(),
        (KEY + "0").encode(),
        b"\x00" * 31,
        b"\xff" * 5000,
        b"g" * 64,
        f"{KEY}\n{KEY}".encode(),
    ],
)
def test_file_without_key_is_refused(web, disks, content):
    response = confirm(web, key_review(web, disks), secret=file_of(content))
    assert_asked_again(response, "secret", "key-file-invalid")


@pytest.mark.parametrize("content", [KEY.encode(), f"{KEY}\n".encode(), f"{KEY}\r\n".encode(), bytes.fromhex(KEY)])
def test_a_key_file_travels_like_a_passphrase_and_stands_nowhere_else(web, disks, calm, tmp_path, content):
    response = confirm(web, key_review(web, disks), secret=file_of(content))
    job = Job.objects.get()
    assert response.status_code == 302
    secret = paths.SECRETS / str(job.pk)
    assert (secret.read_text(), secret.stat().st_mode & 0o777) == (KEY, 0o600)
    stored = [*Job.objects.values(), *(session.get_decoded() for session in Session.objects.all()), calm]
    assert KEY not in json.dumps(stored, default=str)
    assert [path for path in tmp_path.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()] == [secret]
    assert KEY.encode() not in web.get(f"/jobs/{job.pk}/").content


@pytest.mark.parametrize("kind", ["hex", "raw"])
def test_unlocking_what_has_a_key_file_asks_for_the_file(web, calm, kind):
    locked = dataset(
        "tank",
        encryption="aes-256-gcm",
        key_status="unavailable",
        encryption_root="tank",
        mounted=False,
        key_format=kind,
    )
    rows.put(datasets=[locked])
    page = Page(web.get("/pools/unlock/", {"dataset": "tank"}))
    assert not any("/pools/new/key/" in found.get("href", "") for _tag, found in page.elements)
    assert_asked_again(confirm(web, page), "secret", "key-file-not-chosen")
    assert confirm(web, page, secret=file_of(KEY.encode())).status_code == 302
    assert (paths.SECRETS / str(Job.objects.get().pk)).read_text() == KEY


# --- what no page of Larder sends -----------------------------------------------------------------------------
@pytest.mark.parametrize(
    "operation",
    [
        "",
        "{}",
        "null",
        "[]",
        "x",
        '{"kind":"RunCommand","argv":["reboot"]}',
        '{"kind":"create-pool"}',
        "[" * 5000,
        "\x00",
        '{"kind":"create-pool","name":"-f","layout":"stripe","groups":[["/dev/disk/by-id/a"]]}',
        '{"kind":"create-pool","name":"tank","layout":"stripe","groups":[["/dev/sda"]]}',
        '{"kind":"create-pool","name":"tank","layout":"stripe","groups":[["/dev/disk/by-id/../../sda"]]}',
        '{"kind":"create-pool","name":"tank","layout":"stripe","groups":[],"extra":1}',
        '{"kind":"create-dataset","parent":"tank","name":"a\\nb"}',
        '{"kind":"create-account","name":"root"}',
    ],
)
def test_anything_that_is_no_operation_is_refused(web, disks, operation):
    response = web.post(CONFIRM, {"operation": operation, "job": str(uuid.uuid4()), "digest": "x"})
    assert response.status_code == 409
    assert "Nothing was changed" in text_of(response)
    assert not Job.objects.exists()


@pytest.mark.parametrize("job", ["", "1", "../../etc/passwd", "6B1F6A5E-3F0C-4C2E-9A53-0D5B8F9F6A11", "\x00"])
def test_a_job_has_a_proper_id_or_is_refused(web, disks, job):
    assert confirm(web, review(web, disks[:4]), job=job).status_code == 409
    assert not Job.objects.exists()


@pytest.mark.parametrize("digest", ["", "0" * 16, "0" * 64])
def test_without_the_right_digest_the_plan_is_shown_again(web, disks, digest):
    assert confirm(web, review(web, disks[:4]), digest=digest).status_code == 409
    assert not Job.objects.exists()


@pytest.mark.parametrize("target", ELSEWHERE)
def test_going_back_never_leads_to_another_site(web, disks, target):
    page = review(web, [disks[4]], layout="stripe-1")
    for response in (
        confirm(web, page, back=target),
        confirm(web, page, back=target, digest=""),
        confirm(web, page, back=target, job=""),
    ):
        links = [
            attributes["href"] for tag, attributes in Page(response).elements if tag == "a" and "href" in attributes
        ]
        assert all(link.startswith(("/", "#")) and "evil" not in link for link in links)


def test_going_back_from_the_review_leads_to_the_last_question(web, disks):
    assert review(web, disks[:4]).form(CONFIRM).data["back"].startswith("/pools/new/?")


# --- other reviews --------------------------------------------------------------------------------------------
def test_unlocking_asks_for_the_passphrase_once(web, calm):
    rows.put(
        datasets=[
            dataset("tank", encryption="aes-256-gcm", key_status="unavailable", encryption_root="tank", mounted=False)
        ]
    )
    page = Page(web.get("/pools/unlock/", {"dataset": "tank"}))
    assert {"secret"} == {"secret", "again"} & set(page.form(CONFIRM).data)
    assert confirm(web, page, secret="short").status_code == 400
    assert confirm(web, page, secret=CANARY).status_code == 302
    assert Job.objects.get().kind == "unlock-dataset"


@pytest.mark.parametrize(
    "name", ["", "nothing", "-a", "tank@x", "tank\n", "../tank", "tank/photos", "<script>", "\x00"]
)
def test_what_cannot_be_unlocked_is_refused_in_words(web, calm, name):
    rows.recorded_box()
    response = web.get("/pools/unlock/", {"dataset": name})
    assert response.status_code == 409
    assert "Nothing was changed" in text_of(response)


def test_a_refusal_holds_every_reason(web, disks):
    page = review(web, disks[:4])
    rows.put(disks=disks[2:], pools=[rows.pool_of("tank", 1000)])
    text = text_of(confirm(web, page))
    assert all(words in text for words in ("is taken", "0000001 is no longer there", "0000002 is no longer there"))


def test_making_a_job_raises_what_the_operation_refuses(web, disks):
    from appliance.datasets.create import CreateDataset
    from web.jobs import confirm as confirming

    with pytest.raises(Refused):
        confirming.start_without_review(CreateDataset(parent="nowhere", name="x"), user="admin")
    assert not Job.objects.exists()
