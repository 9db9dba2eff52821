"""What must not be done is refused by the agent itself, whatever the pages let through."""

from __future__ import annotations

import json
import uuid

import pytest

from deploy.image.machine import wait_for
from tests.visitor import Visitor, create_pool, disk_paths

ASK = (
    "import sys, json; from appliance import agent_client as client\ntry:\n    "
    "print(json.dumps(list(client.stream_replies(json.load(sys.stdin)))))\nexcept Exception as error:\n    "
    "print(json.dumps(str(error)))"
)


@pytest.fixture(scope="module", autouse=True)
def pools(appliance, visitor) -> None:
    """One pool in use on bay 1 and one that is exported on bay 2."""
    first, second = disk_paths(appliance, 1, 2)
    create_pool(appliance, "used", first)
    create_pool(appliance, "away", second)
    appliance.run("zpool", "export", "away")
    visitor.wait_until("/disks/", "used", "holds the pool away", timeout=120)


def ask(appliance, **operation: object) -> str:
    """Send an operation straight to the agent, as the unprivileged user; what it says."""
    request = {"verb": "run", "job": str(uuid.uuid4()), "digest": "0" * 16, "operation": operation}
    argv = [
        "setpriv",
        "--reuid=larder",
        "--regid=larder",
        "--init-groups",
        "/opt/larder/venv/bin/python",
        "-I",
        "-c",
        ASK,
    ]
    return appliance.run(*argv, given=json.dumps(request))


def create(appliance, name: str, disks: list[str], layout: str = "stripe") -> str:
    return ask(appliance, kind="create-pool", name=name, layout=layout, groups=[disks])


def listed(appliance) -> list[str]:
    return appliance.run("zpool", "list", "-H", "-o", "name").split()


@pytest.mark.parametrize(
    "name", ["mirror", "raidz1", "log", "c0t0d0", "-rf", "a\nb", "a\0b", "../x", "tank;id", "$(id)", "a b\n"]
)
def test_the_agent_refuses_a_name_outside_the_grammar(appliance, name):
    said = create(appliance, name, disk_paths(appliance, 3))
    assert "outcome" not in said, said
    assert listed(appliance) == ["used"]


def test_the_agent_refuses_a_disk_in_use_the_system_disk_and_a_missing_one(appliance):
    for path, words in (
        (disk_paths(appliance, 1)[0], "part of the pool used"),
        ("/dev/disk/by-id/virtio-LARDER-SYSTEM", "holds the system"),
        ("/dev/disk/by-id/ata-NOBODY_HOME", "no longer there"),
    ):
        said = create(appliance, "tank", [path])
        assert '"refused"' in said, said
        assert words in said
    assert listed(appliance) == ["used"]


def test_the_agent_refuses_a_name_that_exists_or_is_exported(appliance):
    assert "taken" in create(appliance, "used", disk_paths(appliance, 3))
    assert "not in use at the moment" in create(appliance, "away", disk_paths(appliance, 3))
    assert listed(appliance) == ["used"]


def test_the_agent_refuses_a_plan_that_was_not_the_one_confirmed(appliance):
    assert "Something changed" in create(appliance, "tank", disk_paths(appliance, 3))
    assert listed(appliance) == ["used"]


def test_a_disk_pulled_between_review_and_confirmation_stops_it(appliance, visitor):
    review = visitor.review_pool("tank", disk_paths(appliance, 3, 4), "mirror-1")
    assert review.status == 200
    appliance.pull(4)
    wait_for(
        "the disk to be gone",
        lambda: appliance.disks[3].serial not in appliance.run("lsblk", "-dno", "SERIAL"),
        timeout=20,
    )
    answer = visitor.send("/jobs/confirm/", review.hidden())
    if "/jobs/confirm/" not in answer.url:
        # The pages had not seen it yet: then the agent did.
        said = visitor.ended(answer.url.rstrip("/").rsplit("/", 1)[-1])
        assert "no longer there" in said or "Something changed" in said, said
    else:
        assert "no longer there" in answer.words or "Something changed" in answer.words
    assert listed(appliance) == ["used"]
    appliance.put_back(4)


def test_login_is_throttled(appliance):
    stranger = Visitor(appliance)
    said = [stranger.post("/login/", login="admin", password=f"wrong {number}") for number in range(7)]
    assert any("too many" in answer.words.lower() for answer in said)


def test_the_set_up_page_is_gone_after_set_up(appliance):
    assert Visitor(appliance).get("/setup/").status == 404


STATUS_OF = (
    "import http.client, ssl, sys; c = http.client.HTTPSConnection('127.0.0.1', "
    "context=ssl._create_unverified_context()); c.request('GET', '/', headers={'Host': sys.argv[1]}); "
    "print(c.getresponse().status)"
)


@pytest.mark.parametrize(("host", "status"), [("evil.example", "400"), ("10.0.2.15", "302"), ("larder.local", "302")])
def test_a_foreign_name_is_refused_and_the_boxs_own_names_and_addresses_are_not(appliance, host, status):
    wait_for(
        f"{status} for {host}", lambda: appliance.run("python3", "-c", STATUS_OF, host).strip() == status, timeout=60
    )
