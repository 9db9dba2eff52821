"""Whatever is broken, every page answers and says in words what is wrong."""

from __future__ import annotations

import os
from datetime import timedelta

import pytest
from django.utils import timezone
from msgspec.structs import replace

from appliance.system import paths
from tests.unit.made import dataset, disk, recorded_pool
from tests.web import rows
from tests.web.reading import text_of
from tests.web.routes import PHOTOS, TANK, pages
from web.inventory import store
from web.inventory.models import PoolRow, Source
from web.jobs import queue
from web.jobs.models import Job
from web.system import error_pages, service_status

SAYING = [
    "/",
    "/pools/",
    "/disks/",
    "/folders/",
    "/users/",
    "/jobs/",
    "/alerts/",
    f"/pools/{TANK}/",
    f"/folders/{PHOTOS}/",
]
saying = pytest.mark.parametrize("url", SAYING)


def without_worker(monkeypatch) -> None:
    monkeypatch.setattr(service_status, "WORKER_LOCK", paths.RUN / "another.lock")


def without_queue(monkeypatch) -> None:
    monkeypatch.setattr(queue, "is_reachable", lambda: False)
    monkeypatch.setattr(queue, "send", lambda *_words: False)


def without_agent(monkeypatch) -> None:
    paths.AGENT_SOCKET.unlink()


def without_zfs(monkeypatch) -> None:
    store.checked("zfs", changed=False, error="The ZFS module is not loaded, so no pool can be used.")


def without_disks(monkeypatch) -> None:
    store.checked("disks", changed=False, error="lsblk took longer than 20 seconds")


def without_people(monkeypatch) -> None:
    store.checked("accounts", changed=False, error="getent said no")


TROUBLES = [
    (without_worker, "Larder's worker is not running."),
    (without_queue, "Larder's queue (Redis) is not running."),
    (without_agent, "Larder's agent cannot be reached."),
    (without_zfs, "The ZFS module is not loaded"),
    (without_disks, "Larder could not read the disks. lsblk took longer than 20 seconds"),
    (without_people, "Larder could not read the users. getent said no"),
]


@saying
@pytest.mark.parametrize(("happens", "sentence"), TROUBLES, ids=[trouble.__name__ for trouble, _sentence in TROUBLES])
def test_every_page_says_what_is_wrong(web, box, monkeypatch, happens, sentence, url):
    assert sentence not in text_of(web.get(url))
    happens(monkeypatch)
    response = web.get(url)
    assert response.status_code == 200
    assert sentence in text_of(response)


@saying
def test_all_troubles_at_once_are_all_said(web, box, monkeypatch, url):
    for happens, _sentence in TROUBLES:
        happens(monkeypatch)
    text = text_of(web.get(url))
    assert all(sentence in text for _happens, sentence in TROUBLES)


# Nothing of theirs is there unless somebody has just asked for a support bundle, or another box has left its record.
WITHOUT_A_THING = {"download_bundle", "support_file", "other_box", "take_place", "share_again", "box_settings"}


@pages
def test_every_page_answers_whatever_is_broken(web, box, monkeypatch, route):
    for happens, _sentence in TROUBLES:
        happens(monkeypatch)
    expected = {404} if route.name in WITHOUT_A_THING else {200, 302, 409}
    assert web.get(route.url).status_code in expected


@pages
def test_every_page_answers_before_anything_was_read(web, calm, route):
    assert web.get(route.url).status_code in {200, 302, 404, 409}


def test_a_box_that_was_never_read_says_so(web, calm):
    assert "Larder is looking at this box for the first time." in text_of(web.get("/"))


def test_a_calm_box_says_that_all_is_well(web, calm):
    rows.recorded_box()
    rows.notified()
    assert "All is well." in text_of(web.get("/"))


@pytest.mark.parametrize("url", ["/", "/pools/", f"/pools/{TANK}/", "/disks/"])
def test_a_suspended_pool_hangs_no_page_and_is_said(web, calm, url):
    pool = rows.recorded_box()
    rows.put(pools=[replace(pool, state="SUSPENDED")])
    response = web.get(url)
    assert response.status_code == 200
    assert (
        url == "/disks/"
        or "tank has stopped." in text_of(response)
        or "ZFS holds every read and write" in text_of(response)
    )


@pytest.mark.parametrize("pool_state", ["DEGRADED", "FAULTED", "UNAVAIL", "SUSPENDED", "REMOVED", "SPLIT", ""])
def test_every_state_of_a_pool_has_a_page(web, calm, pool_state):
    pool = rows.recorded_box()
    rows.put(pools=[replace(pool, state=pool_state, vdevs=() if pool_state == "SPLIT" else pool.vdevs)])
    for url in ("/", "/pools/", f"/pools/{TANK}/", "/disks/"):
        assert web.get(url).status_code == 200


def test_a_pulled_disk_is_named_on_the_overview(web, calm):
    rows.recorded_box()
    rows.put(pools=[recorded_pool("zpool-status-pulled-2.3.9.json")])
    text = text_of(web.get("/"))
    assert "tank is degraded: it survives only one more failed disk." in text
    assert "WD-WCAZA0000002" in text
    assert "was pulled out" in text


def test_the_worst_comes_first_and_the_rest_below_it(web, calm, monkeypatch):
    pool = rows.recorded_box()
    rows.put(
        pools=[replace(pool, state="SUSPENDED"), rows.pool_of("attic", 9000)],
        datasets=[dataset("attic", encryption="on", key_status="unavailable", encryption_root="attic", mounted=False)],
    )
    rows.job(state=Job.State.FAILED, text="The disk vanished.")
    without_agent(monkeypatch)
    text = text_of(web.get("/"))
    found = [
        text.index(words)
        for words in ("tank has stopped.", "attic is locked.", "agent cannot be reached", "The disk vanished.")
    ]
    assert found[0] == min(found)


def test_a_slow_system_is_told_from_a_stopped_one(web, box):
    Source.objects.filter(name="pools").update(checked=timezone.now() - timedelta(minutes=5))
    Source.objects.filter(name="looking").update(requested=timezone.now())
    assert "The system is slow to answer." in text_of(web.get("/pools/"))


def test_the_worker_counts_as_running_only_while_it_holds_its_lock(calm, tmp_path, monkeypatch):
    assert service_status.worker_runs()
    monkeypatch.setattr(service_status, "WORKER_LOCK", tmp_path / "lock")
    assert not service_status.worker_runs()
    os.close(os.open(tmp_path / "lock", os.O_CREAT))
    assert not service_status.worker_runs()


def test_a_queue_without_a_socket_is_noticed_at_once(settings, tmp_path):
    settings.BROKER_SOCKET = tmp_path / "no.sock"
    assert not queue.is_reachable()
    assert not queue.send("workers.collect")


def test_a_disk_without_a_stable_name_can_be_looked_at_but_not_chosen(web, calm):
    rows.put(disks=[disk(1, path="", name="sdx", serial="", model="")])
    assert web.get("/disks/sdx/").status_code == 200
    assert web.get("/pools/new/", {"name": "tank", "disks": [""], "step": "layout"}).status_code == 400


# --- faults of Larder's own -----------------------------------------------------------------------------------
@pytest.fixture
def broken(web, box, monkeypatch):
    """A page that fails, and whatever is asked of it."""
    web.raise_request_exception = False

    def fail(*_args: object) -> None:
        raise RuntimeError("canary: a secret of the program")

    monkeypatch.setattr("web.disks.views.read_box", fail)
    return web


def test_a_fault_has_a_page_with_a_code_that_stands_in_the_log(broken, caplog):
    response = broken.get("/disks/")
    text = text_of(response)
    assert response.status_code == 500
    assert "Something went wrong in Larder" in text
    assert "canary" not in text
    code = response.content.decode().split("<strong>")[1].split("</strong>")[0]
    assert f"fault {code} at /disks/" in caplog.text


def test_a_fault_that_reaches_the_page_about_it_still_gives_a_sentence(broken, monkeypatch):
    def fail(*_args: object) -> None:
        raise KeyError("canary")

    monkeypatch.setattr("web.system.service_status.service_status", fail)
    response = broken.get("/disks/")
    assert (response.status_code, response["Content-Type"]) == (500, "text/plain")
    assert b"Something went wrong in Larder" in response.content


def test_a_row_that_cannot_be_read_takes_no_page_down_and_is_named(web, box):
    PoolRow.objects.update(facts='{"name":1}')
    for page in ("/", "/pools/", "/disks/"):
        answer = web.get(page)
        assert answer.status_code == 200, page
        assert "tank cannot be shown." in text_of(answer), page
    assert web.get("/users/").status_code == 200


def test_a_form_that_is_too_old_has_a_page_that_says_so(strict, box):
    text = text_of(strict.post("/users/new/", {"name": "ben"}))
    assert "This form is too old" in text
    assert "Nothing was changed." in text


def test_the_handlers_are_the_ones_of_the_urlconf():
    from web import urls

    assert urls.handler500 == f"{error_pages.server_error.__module__}.{error_pages.server_error.__name__}"
    assert urls.handler404 == f"{error_pages.not_found.__module__}.{error_pages.not_found.__name__}"
