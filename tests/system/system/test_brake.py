"""Whoever has taken over the web process asks the agent to destroy: it waits, is told, and is
cancelled at the console."""

from __future__ import annotations

import json
import uuid

import pytest

from appliance.agent import delayed_jobs
from deploy.image.machine import Machine, wait_for
from tests.system import moving
from tests.system.agent_groups import requests_running
from tests.system.care import press
from tests.system.sharing import key_of
from tests.visitor import PASSWORD, Visitor, create_pool, disk_paths

# As the user of web and worker: plans with the facts that it can have, and sends the digest that the agent will find.
ASK = r"""
import json, socket, sys
asked = json.load(sys.stdin)
with socket.socket(socket.AF_UNIX) as agent:
    agent.settimeout(300)
    agent.connect("/run/larder/agent.sock")
    agent.sendall(json.dumps(asked).encode() + b"\n")
    print(agent.makefile().read().splitlines()[-1])
"""


def ask(appliance: Machine, **request: object) -> dict[str, dict[str, object]]:
    """The last answer of the agent to a request of the user larder."""
    argv = ("setpriv", "--reuid=larder", "--regid=larder", "--clear-groups", "python3", "-c", ASK)
    found = json.loads(appliance.run(*argv, given=json.dumps(request), timeout=300))
    assert isinstance(found, dict)
    return found


@pytest.fixture(scope="module")
def tank(visitor: Visitor, appliance: Machine) -> str:
    """The guid of a pool with a folder, which the pages know."""
    create_pool(appliance, "-o", "ashift=12", "tank", "mirror", *disk_paths(appliance, 1, 2))
    appliance.run("zfs", "create", "tank/photos")
    visitor.wait_until("/pools/", "tank", timeout=90)
    visitor.wait_until("/folders/", "tank/photos", timeout=90)
    return moving.guid_of(appliance, "tank")


@pytest.fixture
def review(visitor: Visitor, tank: str) -> dict[str, str]:
    """What a person would confirm."""
    page = moving.end_review(visitor, tank, "destroy", "the folder tank/photos")
    return page.hidden()


def is_there(appliance: Machine) -> bool:
    return "tank" in appliance.run("zpool", "list", "-H", "-o", "name").split()


def destroy(appliance: Machine, review: dict[str, str], job: str) -> dict[str, object]:
    asked = {"job": job, "digest": review["digest"], "operation": json.loads(review["operation"])}
    return ask(appliance, verb="run", **asked)["outcome"]


def test_only_root_reads_the_hash_of_the_password(appliance, visitor):
    assert appliance.run("stat", "-c", "%a %U", "/var/lib/larder-agent/administrator").split() == ["600", "root"]
    assert PASSWORD not in appliance.run("cat", "/var/lib/larder-agent/administrator")


def test_asked_for_without_the_password_it_waits_is_told_and_is_cancelled_at_the_console(visitor, appliance, review):
    job = str(uuid.uuid4())
    assert destroy(appliance, review, job)["state"] == "waiting"
    # Asking again, or stopping and starting what runs, does not hasten it; no process waits for it.
    assert destroy(appliance, review, job)["state"] == "waiting"
    wait_for("the end of every request", lambda: not requests_running(appliance), timeout=60)
    visitor.wait_until("/jobs/", "Destroy tank: starts at", "Nobody asked for this on these pages", timeout=30)
    visitor.wait_until("/alerts/", "Destroy tank: starts at", timeout=150)
    assert "Destroy tank" in appliance.run("cat", str(delayed_jobs.ISSUE))
    assert job in appliance.run("larder-jobs")
    assert "cancelled" in appliance.run("larder-jobs", "cancel")
    assert appliance.run("cat", str(delayed_jobs.ISSUE)) == ""
    assert destroy(appliance, review, job)["state"] == "cancelled"
    assert is_there(appliance)
    visitor.wait_until("/jobs/", without=("Destroy tank: starts at",), timeout=30)


def test_the_user_larder_can_neither_set_another_password_nor_cancel_the_wait(appliance, visitor, review):
    refused = ask(appliance, verb="keep-password", password="another long password")
    assert "already" in str(refused["refused"])
    asked = {"job": str(uuid.uuid4()), "digest": review["digest"], "operation": json.loads(review["operation"])}
    assert "not the administrator's" in str(ask(appliance, verb="prove", password="guessed", **asked)["refused"])
    argv = ("setpriv", "--reuid=larder", "--regid=larder", "--clear-groups", "larder-jobs", "forget-password")
    appliance.run(*argv, check=False)
    assert appliance.run("stat", "-c", "%a", "/var/lib/larder-agent/administrator").strip() == "600"


def test_without_the_password_the_page_s_job_waits_and_is_cancelled_on_its_page(visitor, appliance, review):
    del review["password"]
    answer = visitor.send("/jobs/confirm/", {**review, "typed": "tank"})
    page = visitor.wait_until(answer.url, "Waiting: starts at", timeout=90)
    visitor.send(f"{answer.url}stop/", page.hidden())
    said = visitor.ended(answer.url.split("/jobs/")[1].strip("/"))
    assert delayed_jobs.CANCELLED in said
    assert is_there(appliance)


def test_a_wrong_password_starts_nothing(visitor, appliance, review):
    answer = visitor.send("/jobs/confirm/", {**review, "typed": "tank", "password": "wrong words"})
    assert answer.status == 400
    assert "not the administrator's password" in answer.words
    assert visitor.get(f"/jobs/{review['job']}/").status == 404


def test_a_held_snapshot_is_released_with_the_password(visitor, appliance, tank):
    appliance.run("zfs", "snapshot", "tank/photos@kept")
    appliance.run("zfs", "hold", "backup", "tank/photos@kept")
    page = f"/snapshots/of/{key_of(appliance, 'tank/photos')}/{key_of(appliance, 'tank/photos@kept')}/"
    visitor.get(f"/snapshots/of/{key_of(appliance, 'tank/photos')}/")
    visitor.wait_until(page, "Release", timeout=90)
    review = press(visitor, page, f"{page}release/")
    said = visitor.ended(visitor.confirm(review))
    assert said.startswith("Done."), said
    assert appliance.run("zfs", "holds", "-H", "tank/photos@kept") == ""


def test_with_the_password_the_pool_is_gone_at_once(visitor, appliance, tank):
    page = moving.end_review(visitor, tank, "destroy", "the folder tank/photos")
    job = visitor.confirm(page, typed="tank")
    said = visitor.ended(job)
    assert said.startswith("Done."), said
    wait_for("the pool to be gone", lambda: not is_there(appliance), timeout=10)
    for place in ("/var/lib/larder", "/run/larder", "/var/lib/larder-agent", "/var/log"):
        assert appliance.run("grep", "-rlF", PASSWORD, place, check=False) == ""
    assert PASSWORD not in appliance.run("journalctl", "--no-pager", "-q")
