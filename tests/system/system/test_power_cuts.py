"""A hundred random acts with a power cut in each tenth: after each start the pages tell the truth, nothing is stuck,
nothing is half made without a way on, and every file that was there is whole.

A cut is at a random moment of a random step of a job: within the time that this has usually taken on the box so far.
A seed fails if too few cuts met a job at work, or if an act never applied.

``SEEDS=1,2 make test-soak AT=tests/system/system/test_power_cuts.py`` for chosen seeds; ten of them otherwise. A seed
takes about half an hour under emulation. Each tenth has a random sequence of its own, so ``TENTHS=4,5`` repeats only
these, on a box that has not seen those before.
"""

from __future__ import annotations

import json
import os
import re
import select
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import pytest

from deploy.image import states
from deploy.image.machine import Machine, wait_for
from tests.system import moving
from tests.system.acts import FOLDERS, KEPT, PEOPLE, POOLS, Acts
from tests.system.crash import BEFORE_THE_END_OF_ITS_PROCESS, WITHIN, no_lock_left, process_inside
from tests.visitor import Visitor, create_pool, disk_paths

SEEDS = [int(seed) for seed in os.environ.get("SEEDS", "1,2,3,4,5,6,7,8,9,10").split(",")]
ACTS, TENTH = 100, 10
TENTHS = [int(tenth) for tenth in os.environ.get("TENTHS", "0,1,2,3,4,5,6,7,8,9").split(",")]
# Most cuts are within a step, some while the agent reads the facts before the first. How long a step lasts is not known
# before, so some come when the last has just ended, which shows whether what is done stays done. With fewer than this
# many that met their job at work, a seed has shown too little.
BEFORE_THE_STEPS, AT_WORK = 0.15, 7
UNTIL_IT_BEGINS = 60.0  # seconds; a job that is refused at once never begins, and another act is cut instead
JOBS = """
import json, sqlite3
rows = sqlite3.connect("/var/lib/larder/settings.sqlite3").execute("select id, state, title, text from jobs_job order by created")
print(json.dumps(rows.fetchall()))
"""
# What a failure shows of the box, as it is gone afterwards.
STATE = """
python3 -c '
import sqlite3
rows = sqlite3.connect("/var/lib/larder/settings.sqlite3").execute("select id, state, title, text from jobs_job order by created")
for row in rows.fetchall()[-8:]: print(*row)
'
zpool status -P; zfs list -t all -o name,mounted,canmount,mountpoint,larder:share
ls -la /var/lib/larder-agent/journal
journalctl -b --no-pager -p notice -n 60; journalctl -b --no-pager -u 'larder-*' -n 120
"""
TIMEOUT = 180
SAMBAS_OWN = {"global", "homes", "printers", "print$"}  # of the configuration as Debian ships it


@pytest.fixture
def box(layer, request) -> Iterator[Machine]:
    """A machine of its own for each seed, with a mirror that holds the files that must stay whole."""
    if name := os.environ.get("LARDER_MACHINE"):
        found = Machine.find(name)
        prepare(found)
        yield found
        return
    with states.borrow_machine(f"cuts-{os.getpid()}-{request.node.callspec.params['seed']}", layer) as found:
        prepare(found)
        yield found


def prepare(appliance: Machine) -> None:
    moving.clear(appliance, *disk_paths(appliance, 1, 2, 3, 4, 5))
    create_pool(appliance, "-o", "ashift=12", "-m", "/safe", "safe", "mirror", *disk_paths(appliance, 1, 2))
    appliance.run("zfs", "create", KEPT)
    appliance.shell(
        f"cd /{KEPT}; for i in $(seq 40); do head -c $((i * 50000)) /dev/urandom > photo-$i; done;"
        " sha256sum photo-* > /root/sums; sync; zpool sync safe"
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_a_hundred_acts_with_a_cut_in_each_tenth(box, seed):
    visitor = Visitor.of_new(box)
    acts = Acts(visitor, box)
    cuts: list[Cut] = []
    told: list[str] = []
    odd: set[str] = set()

    def tell(text: str) -> None:
        told.append(f"{time.strftime('%H:%M:%S')} {text}")
        print(told[-1], flush=True)

    tell(f"seed {seed}")
    try:
        for tenth in TENTHS:
            acts.shuffle(f"seed {seed}, tenth {tenth}")
            cut_at = acts.random.randrange(TENTH)
            for number in range(TENTH):
                if number == cut_at:
                    cuts.append(cut_in_the_middle(acts))
                    tell(f"{tenth}{number}: power cut {cuts[-1]}")
                    visitor.sign_in()
                    check_the_truth(visitor, box)
                    modes(box, odd)
                    tell(f"{tenth}{number}: all is well after it; the job: {cuts[-1].end_of(box)}")
                else:
                    name, job = acts.any()
                    said = visitor.ended(job, timeout=TIMEOUT)
                    tell(f"{tenth}{number}: {name}: {said[:120]}")
                    # What an earlier cut has left may be refused, with a reason. It must not break what comes after it.
                    assert said.startswith(("Done.", "Refused.")), said
                    acts.applied[name] += said.startswith("Done.")
        every_copy_is_whole(box)
        at_work = [cut for cut in cuts if cut.at_work]
        tell(f"{len(at_work)} of {len(cuts)} cuts met a job at work; done were {dict(acts.applied)}")
        if len(TENTHS) == TENTH:
            assert len(at_work) >= AT_WORK, [str(cut) for cut in cuts]
            never = {name: acts.put_off.get(name, "") for name in acts.names() if not acts.applied[name]}
            assert not never, f"these acts never applied, for these reasons: {never}"
    except BaseException as error:
        error.add_note("\n".join([*told, box.shell(STATE, check=False)]))
        raise


@dataclass(frozen=True)
class Cut:
    """A power cut after some seconds of a job's step;
    ``entries`` are what the agent had written into its journal by then."""

    job: str
    kind: str
    step: str
    after: float
    entries: tuple[dict[str, Any], ...]

    @property
    def at_work(self) -> bool:
        return not self.entries or self.entries[-1]["entry"] != "ended"

    def __str__(self) -> str:
        last = self.entries[-1] if self.entries else {"text": "nothing is written yet"}
        steps: list[str] = next(
            (entry["steps"] for entry in self.entries if entry["entry"] == "began" and entry["steps"]), []
        )
        where = " ".join(str(last[key]) for key in ("entry", "step", "state", "text") if last.get(key))
        return f"{self.after:.2f} s into {self.step} of {self.kind}: {where[:120]!r} of {', '.join(steps)}"

    def end_of(self, appliance: Machine) -> str:
        """How the job stands now, as its page says it."""
        found = json.loads(appliance.run("python3", "-c", JOBS))
        return next(
            (f"{state}: {text[:120]}" for stored, state, _title, text in found if UUID(stored) == UUID(self.job)),
            "gone",
        )


def cut_in_the_middle(acts: Acts) -> Cut:
    """Begin an act, and cut the power at some moment of its job."""
    part, place = acts.random.random(), acts.random.random()
    if acts.random.random() < BEFORE_THE_STEPS:
        place = -1.0

    def begin() -> None:
        with suppress(Exception):  # the page that it waits for goes away with the power
            acts.any()

    acting: list[threading.Thread] = []
    with process_inside(acts.appliance, WITHIN, str(part), str(place)) as watcher:
        output = watcher.stdout
        assert output is not None

        def told() -> bool:
            if not acting or not acting[-1].is_alive():
                acting.append(threading.Thread(target=begin, daemon=True))
                acting[-1].start()
            return bool(select.select([output], [], [], UNTIL_IT_BEGINS)[0])

        wait_for("a job to begin", told, timeout=TIMEOUT)
        acts.appliance.cut_power()
        job, kind, step, after = json.loads(output.readline())
    acting[-1].join(TIMEOUT)
    acts.appliance.power_on()
    acts.appliance.set_clock()
    said = acts.appliance.run("python3", "-c", BEFORE_THE_END_OF_ITS_PROCESS, job)
    return Cut(job, kind, step, after, tuple(json.loads(line) for line in said.splitlines()))


# --- after each start ---------------------------------------------------------------------------------------------
def check_the_truth(visitor: Visitor, appliance: Machine) -> None:
    jobs_have_ended(visitor, appliance)
    no_lock_left(appliance)
    nothing_half_written(appliance)
    appliance.shell(f"cd /{KEPT} && sha256sum --quiet -c /root/sums", timeout=TIMEOUT)
    pools_and_folders(visitor, appliance)
    shares(visitor, appliance)
    people(visitor, appliance)


def jobs_have_ended(visitor: Visitor, appliance: Machine) -> None:
    """No job is left open; each that did not get done says what to do, and where it can be
    planned again that page answers."""

    def rows() -> list[list[str]]:
        found: list[list[str]] = json.loads(appliance.run("python3", "-c", JOBS))
        return found

    def open_jobs() -> list[list[str]]:
        for stored, state, _title, _text in rows():
            if state == "waiting":  # the password's proof went with the power, so it waits and can be stopped
                page = visitor.get(f"/jobs/{stored}/")
                stop = visitor.send(
                    f"/jobs/{stored}/stop/", {"csrfmiddlewaretoken": page.hidden()["csrfmiddlewaretoken"]}
                )
                assert page.status == 200 and stop.status == 200, (page.words, stop.words)
        return [row for row in rows() if row[1] in {"queued", "running", "waiting"}]

    wait_for("every job to have ended", lambda: not open_jobs(), timeout=TIMEOUT, every=1.5)
    for stored, state, _title, _text in rows()[-3:]:
        key = UUID(stored)
        if state == "interrupted":
            page = visitor.get(f"/jobs/{key}/")
            assert page.status == 200 and "went wrong in Larder" not in page.words, page.words
            assert re.search(r"after (its|\d+|all)|before (it began|its first step)", page.words), page.words
            if f"/jobs/{key}/again/" in page.text:
                again = visitor.get(f"/jobs/{key}/again/")
                assert again.status in {200, 400, 409} and "went wrong in Larder" not in again.words, again.words


def every_copy_is_whole(appliance: Machine) -> None:
    """Each disk of the mirror has what it should have, also those that came and went while the power was cut."""
    appliance.run("zpool", "wait", "-t", "resilver,replace", "safe", timeout=TIMEOUT)
    appliance.run("zpool", "scrub", "-w", "safe", timeout=TIMEOUT)
    assert "errors: No known data errors" in appliance.run("zpool", "status", "safe")


def nothing_half_written(appliance: Machine) -> None:
    """What daemons read is whole: each file of Larder's has the digest that it was written with."""
    code = (
        "from appliance.shares import publish; print([str(one.owned.path) for one in publish.SERVING.values() if "
        "one.owned.drifted()])"
    )
    assert appliance.run("/opt/larder/venv/bin/python", "-I", "-c", code).strip() == "[]"
    appliance.run("testparm", "-s", "--suppress-prompt")


def pools_and_folders(visitor: Visitor, appliance: Machine) -> None:
    """The pages show the pools and folders that there are, and no others; each that shall be mounted is."""
    here = moving.pools(appliance)
    assert "safe" in here
    visitor.wait_until("/pools/", *here, timeout=TIMEOUT)
    rows = [
        line.split("\t")
        for line in appliance.run("zfs", "list", "-H", "-o", "name,mounted,canmount,mountpoint").splitlines()
    ]
    names = [row[0] for row in rows]
    gone = [f"{pool}/{folder}" for pool in POOLS for folder in FOLDERS if f"{pool}/{folder}" not in names]

    def told() -> bool:
        page = visitor.get("/folders/").words.split()
        return all(name in page for name in names if "/" in name) and not [name for name in gone if name in page]

    wait_for(f"the folders' page to show {names}", told, timeout=TIMEOUT, every=1)
    for name, mounted, canmount, mountpoint in rows:
        if canmount == "on" and mountpoint not in {"none", "legacy"}:
            assert mounted == "yes", f"{name} is not mounted"


def shares(visitor: Visitor, appliance: Machine) -> None:
    """Samba and the NFS server give out nothing that is switched off, and of what is on and was
    not begun the page says so."""
    rows = appliance.run("zfs", "list", "-H", "-o", "mountpoint,guid,larder:share", "-t", "filesystem").splitlines()
    keys = {mountpoint: guid for mountpoint, guid, _value in (row.split("\t") for row in rows)}

    def on(protocol: str) -> set[str]:
        values = {mountpoint: value for mountpoint, _guid, value in (row.split("\t") for row in rows)}
        return {place for place, value in values.items() if value.startswith("{") and json.loads(value).get(protocol)}

    def given() -> tuple[set[str], set[str]]:
        sections = re.split(r"^\[", appliance.run("testparm", "-s", "--suppress-prompt"), flags=re.MULTILINE)
        ours = "".join(section for section in sections if section.split("]")[0] not in SAMBAS_OWN)
        smb = re.findall(r"^\s*path = (/.*)$", ours, re.MULTILINE)
        nfs = [line.split()[0] for line in appliance.run("exportfs", "-s", check=False).splitlines()]
        return set(smb), set(nfs)

    def told() -> bool:
        smb, nfs = given()
        if smb - on("smb") or nfs - on("nfs"):
            return False
        left = (on("smb") - smb) | (on("nfs") - nfs)
        return all("not served" in visitor.get(f"/folders/{keys[place]}/").words for place in left)

    wait_for(f"shares {on('smb')}, {on('nfs')}; given are {given()}", told, timeout=TIMEOUT, every=2)


def modes(appliance: Machine, odd: set[str]) -> None:
    """A folder whose creation was done is the users' and nobody else's;
    ``odd`` are the guids of those that were not done."""
    rows = appliance.run("zfs", "list", "-H", "-o", "guid,mountpoint,mounted", "-t", "filesystem").splitlines()
    places = {
        place: guid
        for guid, place, mounted in (row.split("\t") for row in rows)
        if mounted == "yes" and place.count("/") > 1
    }
    places = {place: guid for place, guid in places.items() if place != f"/{KEPT}"}
    if not places:
        return
    said = appliance.run("stat", "-c", "%G %a %n", *places).splitlines()
    found = {places[line.split()[2]] for line in said if line.split()[:2] != ["larder-people", "2770"]}
    newest = json.loads(appliance.run("python3", "-c", JOBS))[-1]
    if newest[1] == "interrupted" and newest[2].startswith("Create the folder "):
        odd |= found
    assert found <= odd, f"folders lost their mode: {said}, {newest}"


def people(visitor: Visitor, appliance: Machine) -> None:
    """Who may sign in to Samba has an account of the system, and the page shows just these."""
    passwd = appliance.run("getent", "passwd").splitlines()
    here = {name for name in PEOPLE if any(line.startswith(f"{name}:") for line in passwd)}
    samba = {line.split(":")[0] for line in appliance.run("pdbedit", "-L").splitlines()} & set(PEOPLE)
    assert samba <= here, "Samba knows somebody whom the system does not"

    def told() -> bool:
        page = set(visitor.get("/users/").words.split())
        return here <= page and not (set(PEOPLE) - here) & page

    wait_for(f"the page of people to show {here}", told, timeout=TIMEOUT, every=1)
