"""The page of the box, its reading, and the reviews of restarting it and switching it off."""

from __future__ import annotations

import json
import re

import pytest
from msgspec.structs import replace

from appliance.system import clock
from appliance.system.network_port import Link
from tests.web.reading import Page, text_of
from tests.web.rows import BOX, ETH0, put_box
from web import agent
from web.jobs.models import Job
from workers import collect_box


@pytest.fixture
def clients(monkeypatch) -> list[dict[str, object]]:
    found: list[dict[str, object]] = []
    monkeypatch.setattr(agent, "last", lambda _request, silence: {"facts": found})
    return found


def test_page_tells_model_memory_network_and_sensors(web, calm):
    put_box(rates={"eth0": [2048, 1024]})
    text = text_of(web.get("/system/"))
    for words in (
        "HP ProLiant MicroServer",
        "1 GiB of 4 GiB used by programs",
        "192.168.1.5/24",
        "1000 Mbit/s",
        "41 °C",
        "812 rpm",
        "2 damaged, 1 dropped since the start",
    ):
        assert words in text
    assert "2.05 kB/s in" in text


@pytest.mark.parametrize(
    ("link", "words", "slow"),
    [
        (Link(100, False, 1000, 1000, 1000), "so the cable or a plug is the likely cause", True),
        (Link(1000, False, 2500, 2500, 1000), "The other end offers no more than 1 Gbit/s.", False),
    ],
)
def test_page_says_what_keeps_a_link_below_what_the_port_can_do(web, calm, link, words, slow):
    put_box(replace(BOX, ports=(replace(ETH0, speed=link.speed, link=link),)))
    page = web.get("/system/")
    assert words in text_of(page)
    assert ("state-attention" in page.content.decode()) is slow


def test_page_asks_for_a_reading_and_says_so_before_the_first(web, calm):
    assert "Reading." in text_of(web.get("/system/"))
    assert ("workers.read_box",) in calm


def test_page_warns_where_module_and_commands_of_zfs_differ(web, calm):
    put_box(replace(BOX, zfs_module="2.3.8-1"))
    assert "ZFS was updated and waits for a restart." in text_of(web.get("/system/"))


def test_page_without_sensors_says_so(web, calm):
    put_box(replace(BOX, temperatures=(), fans=()))
    assert "has no sensors" in text_of(web.get("/system/"))


@pytest.mark.parametrize(("act", "kind"), [("restart", "restart-box"), ("shut-down", "shut-down-box")])
def test_review_becomes_a_job(web, calm, clients, act, kind):
    put_box()
    page = Page(web.get(f"/system/power/{act}/"))
    assert "Nobody is connected." in page.text
    assert web.post("/jobs/confirm/", page.form("/jobs/confirm/").data).status_code == 302
    assert json.loads(Job.objects.get().operation) == {"kind": kind, "boot": BOX.boot}


def box_goes_by(kind: str, boot: str) -> Job:
    text = {"restart-box": "Restart the box", "shut-down-box": "Shut down the box"}[kind]
    as_stored = json.dumps({"kind": kind, "boot": boot})
    return Job.objects.create(
        title=text, subject="the box", created_by="admin", state="done", kind=kind, operation=as_stored
    )


@pytest.mark.parametrize(
    ("kind", "words", "lost"),
    [
        ("restart-box", "The box is restarting. It is usually back within three minutes.", "tells you when it is back"),
        ("shut-down-box", "The box is switching off.", "press its power button"),
    ],
)
def test_page_of_the_job_tells_that_the_box_goes_and_asks_on_until_it_is_back(web, calm, kind, words, lost):
    job = box_goes_by(kind, clock.boot_id())
    page = web.get(f"/jobs/{job.pk}/")
    assert words in text_of(page)
    assert "Done." not in text_of(page)
    (told,) = re.findall(r'id="connection-lost".*?</div>', page.content.decode(), re.DOTALL)
    assert lost in told
    live_part = web.get(f"/jobs/{job.pk}/", headers={"HX-Request": "true"})
    assert live_part.status_code == 200, "asking goes on"


def test_page_of_the_job_tells_that_the_box_is_back(web, calm):
    job = box_goes_by("restart-box", BOX.boot)
    text = text_of(web.get(f"/jobs/{job.pk}/"))
    assert "Done. The box has been started again." in text
    assert web.get(f"/jobs/{job.pk}/", headers={"HX-Request": "true"}).status_code == 286, "nothing more will change"


def test_review_names_clients_and_jobs(web, calm, clients):
    put_box()
    clients.append({"protocol": "smb", "id": "1", "user": "anna", "machine": "mac", "shares": ["photos"]})
    Job.objects.create(title="Create the pool tank", subject="tank", created_by="admin", state="running")
    text = text_of(web.get("/system/power/restart/"))
    assert "anna (mac) is connected and will lose the connection." in text
    assert "These jobs will be interrupted: Create the pool tank." in text


def test_review_says_how_many_jobs_and_clients_it_does_not_name(web, calm, clients):
    put_box()
    clients += [
        {"protocol": "smb", "id": str(at), "user": f"user{at}", "machine": "mac", "shares": []} for at in range(7)
    ]
    for number in range(7):
        Job.objects.create(title=f"Scrub pool{number}", subject="tank", created_by="admin", state="running")
    text = text_of(web.get("/system/power/restart/"))
    assert "user4 (mac) and 2 more are connected" in text
    assert "Scrub pool2 and 2 more." in text, "the newest first"


def test_review_says_that_clients_could_not_be_read(web, calm, monkeypatch):
    put_box()
    monkeypatch.setattr(agent, "last", lambda _request, silence: {"facts": "nonsense"})
    assert "could not find out who is connected" in text_of(web.get("/system/power/restart/"))


@pytest.mark.parametrize("act", ["off", "halt", "restart;"])
def test_nothing_else_can_be_asked_for(web, calm, act):
    put_box()
    assert web.get(f"/system/power/{act}/").status_code == 404


def test_throughput_is_told_by_two_looks_that_are_near_each_other():
    later = replace(BOX, ports=(replace(ETH0, received=10**6 + 4000, sent=10**6 - 5),))
    assert collect_box.rates_between((100.0, BOX), (102.0, later)) == {"eth0": [2000, 0]}
    assert collect_box.rates_between((100.0, BOX), (100.1, later)) == {}
    assert collect_box.rates_between((100.0, BOX), (500.0, later)) == {}


@pytest.mark.parametrize(
    ("seconds", "read", "written", "rates"),
    [(2.0, 4000, 2000, [2000, 1000]), (0.1, 4000, 2000, []), (90.0, 4000, 2000, []), (2.0, -5, 2000, [])],
)
def test_throughput_of_disks_is_told_unless_one_was_pulled(seconds, read, written, rates):
    before = replace(BOX, disks_read=10**6, disks_written=10**6)
    later = replace(BOX, disks_read=10**6 + read, disks_written=10**6 + written)
    assert collect_box.disk_rates_between((100.0, before), (100.0 + seconds, later)) == rates
