"""Plans show their commands closed, or open at once for who has chosen that."""

from __future__ import annotations

import re

import pytest

from appliance.facts.box import Disk
from tests.web import rows
from web.accounts.models import Preferences

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
