"""The recorded boxes of ``make dev``: each fills, every page of it can be had, and nothing is ever run."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path

import pytest
from django.urls import URLPattern, URLResolver, get_resolver

from appliance.system import paths
from deploy.image.build import SHIPPED
from tests.dev import __main__ as start
from tests.dev import bar, copies_elsewhere, inventory, place, stand_in
from tests.dev.boxes import BOXES
from tests.web.reading import Page, text_of
from web.alerts.models import Alert
from web.benchmarks.models import SweepRow
from web.inventory.box import read_box
from web.inventory.dataset_models import DatasetRow, SnapshotRow
from web.inventory.models import AccountRow, Activity, DiskRow, PoolRow, ShareRow
from web.jobs.models import Job

WITHOUT_A_PAGE = {"setup", "account_login", "account_logout", "account_signup"}
POSTED = {
    "confirm",
    "search_pools",
    "destroy_snapshots",
    "start_benchmark",
    "mail_test",
    "unlock",
    "unlock_all",
    "show_commands",
    "make_bundle",
    "discard_bundle",
    "begin_client_run",
    "open_wire",
    "switch_setting",
    "finish_client_run",
    "accept_pairing",
}


def walk(resolver: URLResolver, before: str = "/") -> list[tuple[str, str]]:
    """Name and address of every page that takes no parameter."""
    found = []
    for one in resolver.url_patterns:
        way = before + str(one.pattern)
        if isinstance(one, URLPattern):
            found += [] if "<" in way else [(one.name or "", way)]
        else:
            found += walk(one, way)
    return found


def pages_of_things() -> list[str]:
    """A page of each kind of thing that the box has."""
    found = []
    if pool := PoolRow.objects.order_by("name").last():
        found += [
            f"/pools/{pool.key}/{part}"
            for part in ("", "settings/", "history/", "events/", "reports/", "schedule/scrub/", "replace/")
        ]
    for key in DiskRow.objects.values_list("key", flat=True)[:2]:
        found += [f"/disks/{key}/", f"/disks/{key}/health/"]
    if row := SnapshotRow.objects.filter(holds=0).order_by("dataset", "pk").last():
        found += [f"/folders/{row.dataset_key}/{part}" for part in ("", "settings/", "share/", "access/", "space/")]
        found += [f"/snapshots/of/{row.dataset_key}/{part}" for part in ("", "policy/", "space/", "bookmarks/")]
        found += [
            f"/snapshots/of/{row.dataset_key}/{row.guid}/{part}"
            for part in ("", "files/", "file/?path=garden.txt", "difference/", "roll-back/")
        ]
    found += [f"/users/{name}/account/" for name in AccountRow.objects.values_list("name", flat=True)[:1]]
    found += [f"/alerts/{pk}/" for pk in Alert.objects.values_list("pk", flat=True)[:1]]
    return [*found, *(f"/benchmarks/{pk}/" for pk in SweepRow.objects.values_list("pk", flat=True))]


@pytest.mark.parametrize("name", [name for name in BOXES if name != "new"])
def test_a_recorded_box_is_what_it_is_called_and_every_page_of_it_can_be_had(opened, name):
    web = opened(name)
    AS_CALLED[name]()
    listed = [way for page, way in walk(get_resolver()) if page not in WITHOUT_A_PAGE | POSTED]
    assert len(listed) > 20
    answers = {way: web.get(way).status_code for way in (*listed, *pages_of_things())}
    assert {way: status for way, status in answers.items() if status != 200} == {}
    text = text_of(web.get("/"))
    assert place.SENTENCE in text
    assert "not running" not in text


def is_healthy() -> None:
    assert (PoolRow.objects.count(), Alert.objects.count()) == (2, 0)
    assert {row.fact.protocol for row in ShareRow.objects.all()} == {"smb", "nfs", "afp"}


def is_degraded() -> None:
    assert set(Alert.objects.values_list("severity", flat=True)) == {"critical", "warning", "notice"}
    assert Activity.objects.get(state="running").left
    assert DiskRow.objects.filter(verdict="failing").count() == 1


def is_full() -> None:
    percents = sorted(card.percent for card in read_box().cards)
    assert percents == [82, 96]
    assert set(Alert.objects.values_list("kind", flat=True)) == {
        "pool.full80",
        "pool.full96",
        "pool.filling",
        "pool.repaired",
    }
    assert DatasetRow.objects.get(name="tank/games").fact.available == 0


def is_empty() -> None:
    assert PoolRow.objects.count() == 0
    assert sum(row.fact.free for row in DiskRow.objects.all()) == 4


def is_many() -> None:
    counts = [table.objects.count() for table in (PoolRow, DatasetRow, SnapshotRow, AccountRow)]
    assert counts == [10, 1000, 20_001, 30]


AS_CALLED = {"healthy": is_healthy, "degraded": is_degraded, "full": is_full, "empty": is_empty, "many": is_many}


def test_a_new_box_is_set_up_with_the_code_that_the_bar_shows(opened):
    web = opened("new")
    page = web.get("/", follow=True)
    assert page.redirect_chain[-1][0] == "/setup/"
    code = re.search(r"set-up code is ([A-Z0-9-]{11})", text_of(page))
    assert code
    answers = {"code": code[1], "username": "eva", "password": "correct horse", "again": "correct horse"}
    done = web.post("/setup/", answers, follow=True)
    assert (done.status_code, done.redirect_chain[-1][0]) == (200, "/")


def test_an_operation_that_is_confirmed_ends_refused_and_says_why(opened):
    web = opened("healthy")
    pool = PoolRow.objects.get(name="attic")
    review = Page(web.get(f"/pools/{pool.key}/end/destroy/"))
    form = review.form("/jobs/confirm/").data | {"typed": "attic", "password": stand_in.PASSWORD}
    wrong = web.post("/jobs/confirm/", form | {"password": "wrong"})
    assert (wrong.status_code, Job.objects.filter(kind="destroy-pool").count()) == (400, 0)
    page = web.post("/jobs/confirm/", form, follow=True)
    job = Job.objects.get(kind="destroy-pool")
    assert (job.state, job.text) == (Job.State.REFUSED, place.SENTENCE)
    assert text_of(page).count(place.SENTENCE) == 2  # in the bar and as the end of the job
    assert PoolRow.objects.filter(name="attic").exists()


def test_copies_on_another_computer_are_listed_and_their_restore_is_reviewed(opened):
    web = opened("healthy")
    at = f"/backups/computers/{copies_elsewhere.COMPUTER}/copies/"
    assert "photos/2025" in text_of(web.get(at))
    moment = re.search(r'value="(larder-backup-[^"]+)"', web.get(f"{at}photos/restore/").content.decode())
    assert moment
    review = web.post(f"{at}photos/restore/", {"snapshot": moment[1], "parent": "tank", "name": "again", "rate": ""})
    assert "As of an earlier copy" in text_of(review)


def test_a_small_act_without_review_ends_refused_too(opened):
    web = opened("healthy")
    web.post(f"/pools/{PoolRow.objects.get(name='tank').key}/scrub/")
    assert Job.objects.get(kind="start-scrub").state == Job.State.REFUSED


def test_the_bar_says_which_box_it_is_and_leads_to_the_others(opened):
    page = Page(opened("empty").get("/pools/"))
    links = {
        found["href"]: found["aria-current"]
        for tag, found in page.elements
        if tag == "a" and "box=" in found.get("href", "")
    }
    assert links == {f"/?box={name}": str(name == "empty").lower() for name in BOXES}
    assert bar.with_bar("<head></head><body>x").endswith("</aside>x")


def test_who_signed_out_signs_in_with_the_name_and_password_that_are_printed(opened):
    web = opened("healthy")
    web.logout()
    web.post("/login/", {"login": stand_in.NAME, "password": stand_in.PASSWORD})
    assert web.get("/pools/").status_code == 200


def test_it_starts_on_no_installed_box(monkeypatch, tmp_path):
    monkeypatch.setattr(place, "INSTALLED", (tmp_path / "missing", tmp_path))
    with pytest.raises(SystemExit, match="This machine is a Larder box"):
        start.main([])
    monkeypatch.setenv(place.NAME, str(tmp_path / f"{place.PREFIX}x"))
    sys.modules.pop("tests.dev.settings", None)
    with pytest.raises(Exception, match="This machine is a Larder box"):
        importlib.import_module("tests.dev.settings")


def test_it_looks_for_a_box_where_the_product_keeps_its_things():
    assert {Path("/run/larder"), Path("/var/lib/larder")} <= set(place.INSTALLED)


@pytest.mark.parametrize("folder", ["/run/larder", "/var/lib/larder", "/"])
def test_no_other_folder_can_be_named(monkeypatch, folder):
    monkeypatch.setattr(place, "INSTALLED", ())
    monkeypatch.setenv(place.NAME, folder)
    sys.modules.pop("tests.dev.settings", None)
    with pytest.raises(Exception, match="is not a folder of a recorded box"):
        importlib.import_module("tests.dev.settings")


def test_every_place_is_moved_into_its_folder():
    read = {
        name
        for file in (paths.__file__, "web/settings.py")
        for name in re.findall(r'"(LARDER_[A-Z_]+)"', Path(file).read_text())
    }
    made = place.environment(Path("/tmp/larder-dev-x"))
    assert read == set(made)
    assert all("/tmp/larder-dev-x" in made[name] for name in read - {"LARDER_SECRET_KEY", "LARDER_DEBUG"})


def test_the_command_knows_every_box():
    assert tuple(BOXES) == place.BOXES


def test_it_is_not_shipped():
    assert not any(name.split("/")[0] == "tests" for name in SHIPPED)


def test_nothing_is_recorded_before_the_first_box(own_places):
    assert inventory.current() == ""
