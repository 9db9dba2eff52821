"""The form of signing and encryption."""

from __future__ import annotations

import json
import re

import pytest

from appliance.facts.sharing import SmbPolicy
from tests.unit.made import dataset
from tests.web import rows
from tests.web.reading import text_of
from web.inventory import store
from web.inventory.models import PolicyRow

HERE = "/shares/protection/"


@pytest.fixture
def one(calm) -> None:
    guests = dataset(share=json.dumps({"smb": {"name": "drop", "guest": "read"}}), share_source="local")
    rows.put(pools=[], datasets=[guests], accounts=[], disks=[], shares=[])
    store.replace(PolicyRow, [SmbPolicy("required", "desired")], lambda _policy: "smb")


def test_what_is_chosen_is_marked_and_what_it_means_is_said(web, one):
    page = web.get(HERE)
    assert page.context["form"].initial == {"signing": "required", "encryption": "desired"}
    assert "Windows 7" in text_of(page)
    assert re.findall(r'value="(\w+)"[^>]* checked', page.content.decode()) == ["desired", "required"]


def test_a_choice_is_reviewed_before_it_is_made(web, one):
    page = web.get(HERE, {"signing": "asked", "encryption": "desired"})
    assert page.status_code == 200
    assert "Change how SMB is protected" in text_of(page)
    assert json.loads(page.context["operation_json"]) == {
        "kind": "set-smb-security",
        "signing": "asked",
        "encryption": "desired",
    }


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        ({"signing": "asked", "encryption": "required"}, "can be reached without a password"),
        ({"signing": "never", "encryption": "asked"}, "never is not one of the available choices"),
        ({"signing": "asked"}, "Choose who has to encrypt."),
    ],
)
def test_what_does_not_work_is_said_at_the_field(web, one, answers, words):
    page = web.get(HERE, answers)
    assert page.status_code == 400
    assert words in text_of(page)
