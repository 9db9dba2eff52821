"""Plans show their commands closed or open, and pages count space in TB or TiB, as the user has chosen."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth.models import User
from django.http import HttpResponse

from appliance import formatting
from appliance.facts.box import Disk, Pool
from appliance.pools.export_destroy import DestroyPool
from tests.web import rows
from web.accounts.models import Preferences
from web.accounts.preferences import in_chosen_units
from web.inventory import store

URL = "/account/commands/"
OPEN = re.compile(r'<details class="[^"]*commands"[^>]* open>')


@pytest.fixture
def disks(calm) -> list[Disk]:
    return rows.empty_box(4)


def is_open(web, disks: list[Disk]) -> bool:
    asked = {"step": "review", "name": "tank", "layout": "raidz2-1", "disks": [one.path for one in disks[:4]]}
    page = web.get("/pools/new/", asked).content.decode()
    assert "Show the commands" in page, page
    return bool(OPEN.search(page))


def test_commands_of_a_plan_are_closed_until_somebody_chooses_otherwise(web, disks):
    assert not is_open(web, disks)
    assert web.post(URL, {"show": "yes"}).status_code == 204
    assert is_open(web, disks)
    web.post(URL, {"show": "no"})
    assert not is_open(web, disks)


def test_choice_is_one_row_and_its_form_comes_back_with_the_other_choice(web, admin):
    answers = [web.post(URL, {"show": show}, headers={"HX-Request": "true"}) for show in ("yes", "yes", "no")]
    assert [re.findall(r'name="show" value="(\w+)"', answer.content.decode()) for answer in answers] == [
        ["no"],
        ["no"],
        ["yes"],
    ]
    assert list(Preferences.objects.values_list("user", "show_commands")) == [(admin.pk, False)]


@pytest.mark.parametrize("show", ["", "YES", "1", "true"])
def test_anything_but_yes_means_closed(web, show):
    web.post(URL, {"show": show})
    assert not Preferences.objects.get().show_commands


# --- units ----------------------------------------------------------------------------------------------------
def choose_units(web, units: str):
    return web.post("/account/preferences/", {"units": units})


@pytest.fixture
def pool(calm) -> Pool:
    """A pool of recorded disks of 2 TB."""
    return rows.recorded_box()


def test_space_is_in_the_units_that_were_chosen_and_disks_are_in_tb(web, pool):
    pages = []
    for units in (formatting.DECIMAL, formatting.BINARY):
        page = web.get(f"/pools/{pool.guid}/").content.decode()
        exact = re.search(r'<dt>Free</dt><dd>\s*<span class="nowrap" title="([0-9,]+) bytes">([^<]+)<', page)
        assert exact, page
        assert exact[2] == formatting.text_in(units, int(exact[1].replace(",", "")))
        assert 'href="/account/preferences/">Choose the unit' in page
        pages.append(exact[1])
        assert "2 TB" in web.get("/disks/").content.decode()
        assert choose_units(web, "TiB").status_code == 302
    assert pages[0] == pages[1]


def test_units_of_one_request_do_not_reach_the_next_or_the_worker(web, client, pool):
    choose_units(web, "TiB")
    assert "iB<" in web.get(f"/pools/{pool.guid}/").content.decode()
    assert formatting.size_text(10**12) == "1 TB"  # what workers and mails use
    other = User.objects.create_user("other", password="another long one")
    client.force_login(other)
    assert "iB<" not in client.get(f"/pools/{pool.guid}/", secure=True).content.decode()


def test_units_are_back_after_a_page_that_failed(rf, admin):
    request = rf.get("/")
    request.user = admin
    Preferences.objects.create(user=admin, units="TiB")

    def fail(_request):
        assert formatting.size_text(2**40) == "1 TiB"
        raise RuntimeError("a fault")

    with pytest.raises(RuntimeError):
        in_chosen_units(fail)(request)
    assert formatting.size_text(10**12) == "1 TB"


def test_preferences_are_read_once_and_only_where_something_is_shown_by_them(rf, admin, django_assert_num_queries):
    request = rf.get("/")
    request.user = admin

    def show(_request):
        with django_assert_num_queries(0):
            formatting.disk_size(10**12)
        with django_assert_num_queries(1):
            return HttpResponse(" ".join(formatting.size_text(10**12) for _again in range(3)))

    assert in_chosen_units(show)(request).content == b"1 TB 1 TB 1 TB"


@pytest.mark.parametrize("units", ["", "GB", "tib"])
def test_unknown_units_are_refused_and_nothing_is_stored(web, units):
    assert choose_units(web, units).status_code == 400
    assert not Preferences.objects.exists()


def test_a_plan_means_the_same_in_all_units(pool):
    destroy = DestroyPool(pool=pool.name, guid=pool.guid)
    facts = store.facts_for(destroy)
    decimal = destroy.plan(facts)
    with formatting.space_in(lambda: formatting.BINARY):
        assert destroy.plan(facts).digest() == decimal.digest()
