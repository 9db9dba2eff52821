"""A box that runs Larder of before the restructuring is updated: its settings, jobs, journals and
properties go on working."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from deploy.image.build import CHECKOUT, fetch_wheels
from deploy.image.machine import Machine, wait_for
from tests.system import measuring, moving, policy, sharing
from tests.system.crash import no_lock_left
from tests.visitor import Answer, Visitor, disk_paths

STATE = "new"
BEFORE = "4f9cd25e"  # the commit before operations had tags: jobs and journals held the names of their classes
PARTS = ("appliance", "web", "workers", "templates", "deploy", "manage.py", "requirements.lock")
OLD = "/tmp/larder-before"
GONE = "/var/lib/larder/settings.sqlite3* /run/larder/inventory/inventory.sqlite3*"
UNITS = ("larder-web.socket", "larder-web", "larder-worker", "larder-agent.socket")
WHEELS = "/tmp/wheels-before"
# All at once: the worker is started again two seconds after it was killed.
CUT = (
    "systemctl kill -s KILL larder-agent.service larder-worker.service; systemctl stop larder-worker "
    "larder-web.socket larder-web"
)
# Addresses of now, and what they were.
ADDRESSES = {"/users/": "/people/", "/benchmarks/": "/sweeps/"}


class VisitorBefore(Visitor):
    """The same visitor at the pages of before, some of which had other addresses."""

    def send(self, path: str, data: dict[str, object] | None = None, *, part: bool = False, seen: str = "") -> Answer:
        for now, before in ADDRESSES.items():
            path = path.replace(now, before)
        answer = super().send(f"{path}?part=live" if part else path, data)
        url, text = answer.url, answer.text
        for now, before in ADDRESSES.items():
            url, text = url.replace(before, now), text.replace(before, now)
        return Answer(answer.status, url, text, answer.headers)


def install_version_before(appliance: Machine, folder: Path) -> None:
    """Take this Larder away with what it has stored, and install the version of before as
    an owner would have had it."""
    archive = subprocess.run(
        ["git", "-C", str(CHECKOUT), "archive", "--format=tar.gz", BEFORE, *PARTS], capture_output=True, check=False
    )
    assert archive.returncode == 0, f"the clone does not hold the commit {BEFORE}: {archive.stderr.decode()}"
    appliance.run("systemctl", "stop", *UNITS, "larder-agent.service")
    appliance.shell(f"rm -rf {GONE} {OLD}; mkdir {OLD}")
    appliance.run("tar", "-xz", "-C", OLD, given=archive.stdout)
    lock = folder / "requirements.lock"
    lock.write_text(appliance.run("cat", f"{OLD}/requirements.lock"))
    wheels = subprocess.run(["tar", "-C", str(fetch_wheels(lock)), "-c", "."], capture_output=True, check=True).stdout
    appliance.shell(f"rm -rf {WHEELS}; mkdir {WHEELS}")
    appliance.run("tar", "-x", "-C", WHEELS, given=wheels)
    appliance.shell("rm /etc/systemd/system/larder-agent.service; systemctl daemon-reload")
    appliance.run("env", f"LARDER_WHEELS={WHEELS}", f"{OLD}/deploy/install", timeout=900)
    appliance.wait_ready(timeout=300)


@pytest.fixture(scope="module")
def before(appliance: Machine, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What was done with the version of before: jobs that ended well, badly, and in the middle; a
    share; a paused benchmark."""
    install_version_before(appliance, tmp_path_factory.mktemp("before"))
    visitor = VisitorBefore.of_new(appliance)
    done = visitor.confirm(visitor.review_pool("tank", disk_paths(appliance, 1, 2), "mirror-1"))
    assert visitor.ended(done).startswith("Done.")
    answer = visitor.post("/folders/new/", parent="tank", name="photos", preset="general", limit="", key="")
    assert visitor.ended(sharing.job_in(answer)).startswith("Done.")
    sharing.make_person(visitor, "anna")
    assert sharing.set_share(visitor, appliance, "tank/photos", name="photos", write="anna").startswith("Done.")
    photos = f"/snapshots/of/{sharing.key_of(appliance, 'tank/photos')}/"
    policy.set_policy(visitor, photos, hourly=3)
    sweep = measuring.begin(
        visitor,
        measuring.review(visitor, "ashift", disk_paths(appliance, 4), ashifts=[9, 12], seconds=20, repeats=1),
    )
    visitor.wait_until(sweep, "Run 1 of 1", timeout=300)
    visitor.send(f"{sweep}act/pause/", {**visitor.get(sweep).hidden()})
    measuring.ended(visitor, sweep, timeout=600)
    cut = erase_and_kill(appliance, visitor)
    return {"done": done, "cut": cut, "photos": photos, "sweep": sweep}


def erase_and_kill(appliance: Machine, visitor: Visitor) -> str:
    """A job that was ended in the middle by kill -9, and of whose end Larder does not know yet."""
    key = moving.disk_key(visitor, appliance.disks[4].serial)
    review = visitor.get(f"/disks/{key}/wipe/?how=full")
    typed = re.search(r'class="to-type">([^<]*)<', review.text)
    job = visitor.confirm(review, typed=typed[1] if typed else "")
    visitor.wait_until(f"/jobs/{job}/", "written", timeout=120)
    appliance.shell(CUT)
    return job


@pytest.fixture(scope="module")
def updated(appliance: Machine, before: dict[str, Any]) -> Visitor:
    """The box after the update to this checkout, and a visitor who has signed in with the old password."""
    appliance.run(f"{appliance.bring_code()}/deploy/install", timeout=900)
    appliance.wait_ready(timeout=300)
    visitor = Visitor(appliance)
    visitor.sign_in()
    return visitor


def test_jobs_of_before_are_shown_as_they_ended(updated, before):
    assert "Done." in updated.wait_until(f"/jobs/{before['done']}/", "tank", timeout=120).words
    for job in re.findall(r"/jobs/[0-9a-f-]{36}/", updated.get("/jobs/").text):
        assert updated.get(job).status == 200


def test_job_cut_off_before_the_update_is_told_as_interrupted_and_can_be_planned_again(appliance, updated, before):
    assert updated.ended(before["cut"], timeout=300).startswith("Interrupted.")
    no_lock_left(appliance)
    assert updated.get(f"/jobs/{before['cut']}/again/").status == 200


def test_pool_folder_and_share_are_as_they_were(appliance, updated, tmp_path):
    updated.wait_until("/pools/", "tank", timeout=120)
    updated.wait_until("/folders/", "tank/photos", timeout=120)
    letter = tmp_path / "letter"
    letter.write_text("as before\n")
    sharing.Client(appliance, tmp_path, "anna").done("photos", f"put {letter} letter.txt")
    assert appliance.run("cat", "/tank/photos/letter.txt") == "as before\n"


def test_snapshot_policy_goes_on(appliance, updated, before):
    count = len(policy.made(appliance))
    appliance.run("date", "-s", "+1 hour")
    wait_for("the next automatic snapshot", lambda: len(policy.made(appliance)) > count, timeout=300, every=2)
    assert updated.get(f"{before['photos']}policy/").status == 200


def test_paused_benchmark_goes_on_to_its_end(appliance, updated, before):
    page = updated.wait_until(before["sweep"], "1 of 2", timeout=120)
    assert ">paused<" in page.text
    updated.send(f"{before['sweep']}act/resume/", {**page.hidden()})
    wait_for("its end", lambda: ">done<" in updated.get_live(before["sweep"]).text, timeout=900)
    measuring.nothing_left(appliance, *disk_paths(appliance, 4))
