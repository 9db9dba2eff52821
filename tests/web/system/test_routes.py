"""Every address in the urlconf, found by walking the resolver: a new one that is not known here fails."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest
from django.contrib.sessions.models import Session
from django.db import connections, router
from django.urls import URLPattern, URLResolver, get_resolver

from tests.web import rows
from tests.web.routes import ALL_METHODS, CHANGING, CLOSED, ROUTES, TANK, pages
from web.alerts.models import Accepted, Alert, DiskCare, MailSettings, Message, SelfTestPlan
from web.benchmarks.models import CaseRow, ClientRunRow, SweepRow
from web.disks.models import BayRow, Replacement
from web.inventory.dataset_models import DatasetRow
from web.inventory.models import AccountRow, DiskRow, GroupRow, PoolRow
from web.jobs.models import Job
from web.pools.models import CareSchedule, WorkReport


def walk(resolver: URLResolver) -> Iterator[str]:
    for pattern in resolver.url_patterns:
        if isinstance(pattern, URLPattern):
            yield pattern.name or str(pattern.pattern)
        else:
            yield from walk(pattern)


def everything() -> list[object]:
    """All rows that a person's action could change, as the databases hold them."""
    tables = (
        Job,
        PoolRow,
        DatasetRow,
        DiskRow,
        AccountRow,
        GroupRow,
        Session,
        CareSchedule,
        WorkReport,
        BayRow,
        Replacement,
        Alert,
        Accepted,
        DiskCare,
        MailSettings,
        Message,
        SelfTestPlan,
        SweepRow,
        CaseRow,
        ClientRunRow,
    )
    found: list[object] = []
    for table in tables:
        with connections[router.db_for_read(table)].cursor() as cursor:
            found.append(
                cursor.execute(f"SELECT * FROM {table._meta.db_table} ORDER BY {table._meta.pk.column}").fetchall()
            )
    return found


def test_every_address_is_known_to_these_tests():
    assert sorted(walk(get_resolver())) == sorted(route.name for route in ROUTES)


# The requests that change nothing share one box: what one of them changed would fail that one.
@pytest.mark.parametrize("method", ["get", "post"])
def test_nobody_gets_in_without_signing_in(anonymous, admin, box, method):
    before = everything()
    for route in CLOSED:
        response = getattr(anonymous, method)(route.url)
        assert response.status_code == 302, route
        assert response["Location"].startswith("/login/"), route
        assert everything() == before, route


def test_the_address_that_was_asked_for_is_kept_for_after_signing_in(anonymous, admin):
    for route in CLOSED:
        if "GET" in route.methods:
            assert anonymous.get(route.url)["Location"] == f"/login/?next={route.url}"


def test_whoever_waits_for_the_box_learns_only_that_it_is_ready(anonymous, admin):
    assert anonymous.get("/ready/").content == b"ready\n"


def test_a_wrong_method_is_refused(web, box):
    before = everything()
    for route in ROUTES:
        for method in set(ALL_METHODS) - set(route.methods):
            assert web.generic(method, route.url).status_code == 405, (route, method)
        assert everything() == before, route


def test_a_form_without_its_token_is_refused(strict, box):
    before = everything()
    for route in CHANGING:
        response = strict.post(route.url)
        assert response.status_code == 403, route
        assert b"Nothing was changed" in response.content, route
        assert everything() == before, route


@pages
def test_looking_changes_nothing(web, box, route):
    before = everything()
    web.get(route.url)
    web.get(route.url, {"part": "live"})
    assert everything() == before


@pages
def test_every_page_can_be_had(web, box, route):
    response = web.get(route.url)
    refused = {
        "unlock": 409,
        "rehearse_rebuild": 409,
        "wipe_disk": 409,
        "mend_share": 409,
        "end_setting_trial": 409,
        "stop_scrub": 409,
        "replacement_accept": 409,
    }
    refused |= {
        "unlock_all": 409,
        "snapshot_content": 409,
        "put_back": 409,
        "download_bundle": 404,
        "support_file": 404,
        "benchmark_again": 409,
        "set_copy_aside": 409,
        "restore_folder": 409,
        "drill_backup": 409,
        "try_backup_key": 409,
        "discard_received": 409,
        "snapshot_file": 302,  # without a path it leads to the folder
        "other_box": 404,  # no box has left its record
        "take_place": 404,
        "share_again": 404,
        "box_settings": 404,
        "import_report": 409,
    }
    assert response.status_code == {"account_login": 302, "account_signup": 302, **refused}.get(route.name, 200)


@pytest.mark.parametrize(
    "url",
    [
        "/pools/1/",
        "/disks/nothing/",
        "/folders/1/",
        "/folders/1/share/",
        "/users/eve/password/",
        "/users/eve/account/",
        "/groups/eve/members/",
        "/folders/1/access/",
        f"/jobs/{uuid.UUID(int=0)}/",
        f"/jobs/{uuid.UUID(int=0)}/again/",
        "/disks/..%2f..%2fetc/",
        "/pools/%00/",
        "/folders/'%22%3B--/",
        "/jobs/1/",
        "/components/",
    ],
)
def test_what_is_not_there_has_a_page_that_says_so(web, box, url):
    response = web.get(url)
    assert response.status_code == 404
    assert b"There is no such page" in response.content


@pytest.mark.parametrize("page", ["0", "-1", "x", "9" * 5000, "²", "1;--", "%00"])
@pytest.mark.parametrize(
    "url", ["/jobs/", "/folders/", *(f"/pools/{TANK}/{part}/" for part in ("reports", "history", "events"))]
)
def test_any_number_of_a_page_gives_a_page(web, box, url, page):
    assert web.get(url, {"page": page}).status_code == 200


@pytest.mark.parametrize(
    "url",
    [
        "/accounts/signup/",
        "/accounts/login/",
        "/signup/email/",
        "/email/",
        "/password/reset/",
        "/password/change/",
        "/reauthenticate/",
        "/confirm-email/",
        "/social/signup/",
        "/admin/",
        "/sessions/",
    ],
)
def test_pages_of_the_sign_in_library_that_larder_does_not_use_are_not_there(web, url):
    assert web.get(url).status_code == 404


def test_nobody_can_sign_up(anonymous, admin):
    assert anonymous.get("/signup/")["Location"] == "/login/"
    assert (
        anonymous.post("/signup/", {"username": "eve", "password1": "x" * 20, "password2": "x" * 20}).status_code == 405
    )
    assert type(admin).objects.count() == 1


def test_stopping_twice_has_one_effect(web, calm):
    job = rows.job()
    for _ in range(2):
        assert web.post(f"/jobs/{job.pk}/stop/").status_code == 302
        job.refresh_from_db()
        assert job.state == Job.State.CANCELLED
        ended = job.finished
    job.refresh_from_db()
    assert job.finished == ended


def test_acknowledging_twice_has_one_effect(web, calm):
    job = rows.job(state=Job.State.FAILED)
    web.post(f"/jobs/{job.pk}/acknowledge/")
    job.refresh_from_db()
    first = job.acknowledged
    assert web.post(f"/jobs/{job.pk}/acknowledge/").status_code == 302
    job.refresh_from_db()
    assert job.acknowledged == first
