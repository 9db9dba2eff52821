"""The forms of NFS and AFP."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from appliance.facts.sharing import Group
from appliance.shares.settings import NOBODY
from appliance.shares.troubleshoot import diagnosis
from tests.unit.made import dataset
from tests.web import rows
from tests.web.reading import Page, text_of
from web.inventory.models import SeenRow
from web.jobs.models import Job

PHOTOS = dataset()
HERE = f"/shares/{PHOTOS.guid}"


@pytest.fixture
def box_with_people(calm) -> None:
    rows.put(
        pools=[],
        datasets=[dataset("tank"), PHOTOS],
        accounts=["anna", "ben"],
        groups=[Group("family", 20000, ("anna",))],
        disks=[],
        shares=[],
    )


def made() -> dict[str, Any]:
    return json.loads(Job.objects.get().operation)


def test_an_export_is_made_of_what_was_typed(web, box_with_people):
    response = web.post(
        f"{HERE}/nfs/", {"hosts": "192.168.1.0/24\nIMAC.local, 10.0.0.7/32", "write": "on", "sync": "on"}
    )
    assert response["Location"] == f"/jobs/{Job.objects.get().pk}/"
    assert made()["nfs"] == {"hosts": ["192.168.1.0/24", "imac.local", "10.0.0.7"]}


@pytest.mark.parametrize(
    ("hosts", "code"),
    [
        ("", "required"),
        ("*", "nfs-client-everybody"),
        ("192.168.1.9/24", "nfs-address-in-network"),
        ("a(rw)", "nfs-client-malformed"),
    ],
)
def test_refused_hosts_are_reported_at_their_field(web, box_with_people, hosts, code):
    response = web.post(f"{HERE}/nfs/", {"hosts": hosts, "write": "on"})
    assert response.status_code == 400
    assert [error.code for error in response.context["form"].errors.as_data()["hosts"]] == [code]
    assert not Job.objects.exists()


def test_a_volume_for_older_macs_is_made_of_what_was_chosen(web, box_with_people):
    web.post(
        f"{HERE}/afp/",
        {"name": "photos", "user-anna": "change", "group-family": "change", "user-ben": "read", "time_machine": "500"},
    )
    assert made()["afp"] == {
        "name": "photos",
        "write": ["anna", "@family"],
        "read": ["ben"],
        "time_machine": 500 * 10**9,
    }


def test_a_volume_for_nobody_is_refused_at_its_field(web, box_with_people):
    response = web.post(f"{HERE}/afp/", {"name": "photos"})
    assert response.status_code == 400
    assert [error.code for error in response.context["form"].errors.as_data()["people"]] == ["share-without-users"]


def test_the_page_says_who_still_needs_afp(web, box_with_people):
    assert "Macs before OS X 10.9" in text_of(web.get(f"{HERE}/afp/"))


def test_switching_off_is_one_button_and_files_stay(web, calm):
    shared = dataset(share=json.dumps({"nfs": {"hosts": ["10.0.0.0/8"]}}), share_source="local")
    rows.put(pools=[], datasets=[shared], accounts=[], disks=[], shares=[])
    assert "Stop sharing over NFS" in text_of(web.get(f"{HERE}/nfs/"))
    web.post(f"/folders/{shared.guid}/switch/nfs/off/")
    assert {key: value for key, value in made().items() if value} == {
        "kind": "set-share",
        "dataset": "tank/photos",
        "protocol": "nfs",
    }


def test_the_switch_of_nfs_leads_to_its_form_since_nobody_can_guess_the_network(web, box_with_people):
    links = [
        attributes
        for tag, attributes in Page(web.get("/folders/")).elements
        if tag == "a" and attributes.get("href") == f"{HERE}/nfs/"
    ]
    assert [link["class"] for link in links] == ["switch switch-off"]
    assert "Switch on Linux (NFS) for tank/photos" in text_of(web.get("/folders/"))
    assert web.post(f"/folders/{PHOTOS.guid}/switch/nfs/on/").status_code == 409
    assert not Job.objects.exists()


def test_the_switch_of_afp_lets_in_whom_smb_lets_in(web, calm):
    shared = dataset(share=json.dumps({"smb": {"name": "Fotos", "read": ["ben"]}}), share_source="local")
    rows.put(pools=[], datasets=[shared], accounts=["anna", "ben"], disks=[], shares=[])
    web.post(f"/folders/{shared.guid}/switch/afp/on/")
    assert made()["afp"] == {"name": "Fotos", "read": ["ben"]}


def test_a_new_export_counts_everybody_as_a_user_unless_somebody_chooses_otherwise(web, box_with_people):
    chosen = Page(web.get(f"{HERE}/nfs/")).form(of="everybody_as").data
    assert chosen["everybody_as"] == "anna"
    web.post(f"{HERE}/nfs/", {**chosen, "hosts": "192.168.1.0/24"})
    assert made()["nfs"] == {"hosts": ["192.168.1.0/24"], "everybody_as": "anna"}


def test_the_page_shows_the_numbers_that_other_computers_need(web, box_with_people, monkeypatch):
    monkeypatch.setattr("web.shares.nfs_afp_views.people_number", lambda: 9999)
    text = text_of(web.get(f"{HERE}/nfs/"))
    assert "anna 1000, ben 1001; their group larder-people 9999" in text


def test_an_export_by_number_stays_by_number(web, calm):
    shared = dataset(share=json.dumps({"nfs": {"hosts": ["10.0.0.0/8"]}}), share_source="local")
    rows.put(pools=[], datasets=[shared], accounts=["anna"], disks=[], shares=[])
    assert Page(web.get(f"{HERE}/nfs/")).form(of="everybody_as").data["everybody_as"] == ""


@pytest.mark.parametrize("gone", [NOBODY, "eve"])
def test_export_for_a_removed_user_asks_for_a_user(web, calm, gone):
    share = json.dumps({"nfs": {"hosts": ["10.0.0.0/8"], "everybody_as": gone}})
    shared = dataset(share=share, share_source="local")
    rows.put(pools=[], datasets=[shared], accounts=["anna"], disks=[], shares=[])
    page = Page(web.get(f"{HERE}/nfs/"))
    assert "Choose a user" in page.text
    chosen = {**page.form(of="everybody_as").data, "hosts": "10.0.0.0/8"}
    response = web.post(f"{HERE}/nfs/", chosen)
    assert response.status_code == 400
    assert [one.code for one in response.context["form"].errors.as_data()["everybody_as"]] == ["required"]
    assert not Job.objects.exists()
    web.post(f"{HERE}/nfs/", {**chosen, "everybody_as": "anna"})
    assert made()["nfs"]["everybody_as"] == "anna"


def test_addresses_of_an_export_for_a_removed_user_say_so(web, calm):
    def text_for(who: str) -> str:
        share = json.dumps({"nfs": {"hosts": ["10.0.0.0/8"], "everybody_as": who}})
        shared = dataset(share=share, share_source="local")
        rows.put(pools=[], datasets=[shared], accounts=["anna"], disks=[], shares=[])
        return text_of(web.get(f"{HERE}/nfs/ways/"))

    asks = "Nobody can use it until you choose a user."
    assert asks in text_for(NOBODY)
    assert NOBODY not in text_for(NOBODY)
    assert asks in text_for("eve")
    assert asks not in text_for("anna")
    assert asks not in text_for("")


def test_root_for_everybody_as_one_user_is_refused_at_its_field(web, box_with_people):
    response = web.post(f"{HERE}/nfs/", {"hosts": "192.168.1.0/24", "everybody_as": "anna", "root": "on"})
    assert response.status_code == 400
    assert "Choose one of the two" in text_of(response)


def test_the_form_of_afp_lists_everybody_once(web, box_with_people):
    radios = [
        one for tag, one in Page(web.get(f"{HERE}/afp/")).elements if tag == "input" and one.get("type") == "radio"
    ]
    assert [(one["name"], one["value"]) for one in radios if "checked" in one] == [
        ("user-anna", "change"),
        ("user-ben", "change"),
        ("group-family", "none"),
    ]


def test_the_page_of_an_export_says_which_name_is_not_found(web, calm):
    shared = dataset(share=json.dumps({"nfs": {"hosts": ["imac.local"]}}), share_source="local")
    rows.put(pools=[], datasets=[shared], accounts=["anna"], disks=[], shares=[])
    assert "not found in the network" not in text_of(web.get(f"{HERE}/nfs/"))
    assert ("workers.look_at_share", str(shared.guid), "nfs", "") in calm
    found = diagnosis.Diagnosis(dataset=shared.name, protocol="nfs", unknown=("imac.local",))
    key = SeenRow.key_of(str(shared.guid), "nfs", "")
    SeenRow.objects.update_or_create(key=key, defaults={"facts": msgspec.json.encode(found).decode()})
    assert "imac.local is not found in the network." in text_of(web.get(f"{HERE}/nfs/"))
