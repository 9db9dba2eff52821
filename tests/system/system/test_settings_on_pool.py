"""The settings database is gone, its copies too: the pool's record has the settings, and a
reviewed page brings them back."""

from __future__ import annotations

import json
import re

import pytest

from deploy.image.machine import Machine
from tests.system import shapes
from tests.system.alerting import ask
from tests.system.backups.test_recovery import READ, make_phrase
from tests.visitor import Answer, Visitor, create_pool

PLACE = "/var/lib/larder"
SERIAL, SMALL = "LARDER-SMALL-1", 512 * 2**20  # bytes, so few that all of them can be searched
UNITS = ("larder-prepare.service", "larder-web.service", "larder-worker.service")
CANARY = "canary-mail-pass-7731"
ADDRESS = "canary-anna@example.org"
MAIL = {
    "preset": "own",
    "host": "mail.example.org",
    "port": 587,
    "security": "starttls",
    "user": "box@example.org",
    "sender": "box@example.org",
    "critical": ADDRESS,
    "warning": ADDRESS,
    "notice": ADDRESS,
    "quiet_from": 22,
    "quiet_to": 7,
    "digest_hour": 9,
    "webhook": "",
    "password": CANARY,
    "address": "",
}
SCHEDULE = "Scrub every week between 02:00 and 04:00"


def pool_page(appliance: Machine) -> str:
    return f"/pools/{appliance.run('zpool', 'get', '-H', '-o', 'value', 'guid', 'tank').strip()}/"


def on_pool(appliance: Machine, what: str) -> str:
    return str(appliance.shell(READ.format(pool="tank", what=what)))


def settings_page(visitor: Visitor) -> Answer:
    """The page of the settings in this box's record on tank."""

    def linked(page: Answer) -> str:
        found = re.search(r"/backups/recovery/\d+/[0-9a-f]{16}/settings/", page.text)
        return found[0] if found else ""

    return visitor.get(visitor.watch("/backups/recovery/", linked))


def times_on_disk(appliance: Machine, text: str) -> int:
    """How often a text is found on the disk of the pool, without a file system between. Zeros end a line for grep."""
    disk = shapes.disk_link(appliance, SERIAL)
    script = f"tr '\\0' '\\n' < {disk} | LC_ALL=C grep -a -c -- {text} || true"
    return int(appliance.shell(script, timeout=900))


def write_record(appliance: Machine, visitor: Visitor) -> None:
    key = pool_page(appliance).split("/")[2]
    said = visitor.ended(visitor.confirm(visitor.get(f"/backups/recovery/{key}/write/")))
    assert said.startswith("Done."), said


@pytest.fixture(scope="module")
def recorded(appliance: Machine, visitor: Visitor) -> None:
    """A box with mail settings, a scrub schedule and a phrase, whose record is on its pool."""
    appliance.insert("small", SMALL, serial=SERIAL)
    disk = shapes.disk_link(appliance, SERIAL)
    create_pool(appliance, "-o", "ashift=12", "-O", "compression=off", "-m", "/tank", "tank", disk)
    page = pool_page(appliance)
    visitor.wait_until(page, "tank", timeout=90)
    make_phrase(visitor)
    answer = visitor.post("/alerts/mail/", **MAIL)
    assert answer.status == 200 and "Saved." in answer.words, answer.words
    visitor.post(f"{page}schedule/scrub/", every="week", first="2", last="4")
    visitor.wait_until(page, SCHEDULE, timeout=30)
    write_record(appliance, visitor)


def test_record_has_the_settings_and_no_password_that_can_be_read(appliance, visitor, recorded):
    written = json.loads(on_pool(appliance, "cat /mnt/record/*/settings.json"))
    (mail,) = written["groups"]["notifications"]
    assert (mail["host"], mail["critical"]) == ("mail.example.org", [ADDRESS])
    assert [one["every"] for one in written["groups"]["care"]] == ["week"]
    assert on_pool(appliance, "stat -c %a /mnt/record/*/settings.json").strip() == "600"
    assert on_pool(appliance, "cat /mnt/record/*/secrets.age").startswith("-----BEGIN AGE ENCRYPTED FILE-----")
    # The whole disk is searched. What it is known to have is found, so that the password would be too.
    appliance.run("zpool", "sync", "tank")
    assert times_on_disk(appliance, ADDRESS) > 0
    assert times_on_disk(appliance, CANARY) == 0
    (hashed,) = ask(appliance, "SELECT password FROM auth_user")
    assert hashed[0].startswith("scrypt") and hashed[0] not in json.dumps(written)


@pytest.fixture(scope="module")
def lost(appliance: Machine, visitor: Visitor, recorded: None) -> None:
    """The database and its copies are gone; the box was set up again."""
    appliance.run("systemctl", "stop", *UNITS)
    appliance.shell(f"rm -rf {PLACE}/settings.sqlite3* {PLACE}/copies")
    appliance.run("systemctl", "restart", *UNITS, timeout=300)
    appliance.wait_ready(timeout=300)
    visitor.cookies.clear()
    visitor.set_up()
    visitor.keep_cookies()
    visitor.wait_until(pool_page(appliance), "tank", timeout=120)
    assert "mail.example.org" not in visitor.get("/alerts/mail/").text
    assert SCHEDULE not in visitor.get(pool_page(appliance)).words


def test_new_settings_do_not_replace_those_of_before(appliance, visitor, lost):
    write_record(appliance, visitor)
    written = json.loads(on_pool(appliance, "cat /mnt/record/*/settings.json"))
    assert written["groups"]["notifications"][0]["host"] == "mail.example.org"


def test_lost_settings_are_offered_and_come_back_when_confirmed(appliance, visitor, lost):
    page = settings_page(visitor)
    for words in (
        "before this box lost its settings",
        ADDRESS,
        "mail.example.org",
        "Scrub of tank",
        "Bring back the settings of",
    ):
        assert words in page.words, page.words
    assert "mail.example.org" not in visitor.get("/alerts/mail/").text  # nothing came back by itself
    groups = re.findall(r'name="group" value="(\w+)"', page.text)
    assert {"notifications", "care"} <= set(groups)
    answer = visitor.send(page.url, {**page.hidden(), "group": groups})
    assert "brought back" in answer.words, answer.words
    mail = visitor.get("/alerts/mail/").text
    assert "mail.example.org" in mail and ADDRESS in mail
    assert "A password is stored" in visitor.get("/alerts/mail/").words
    visitor.wait_until(pool_page(appliance), SCHEDULE, timeout=30)
    assert appliance.run("cat", f"{PLACE}/mail-password") == CANARY


def test_record_goes_on_with_the_settings_of_the_new_database(appliance, visitor, lost):
    visitor.post("/alerts/mail/", **{**MAIL, "password": "", "quiet_from": 21})
    write_record(appliance, visitor)
    written = json.loads(on_pool(appliance, "cat /mnt/record/*/settings.json"))
    assert written["groups"]["notifications"][0]["quiet_from"] == 21
    assert len(written["former"]) == 1
    assert CANARY not in appliance.shell("journalctl -b --no-pager; cat /var/lib/larder-agent/journal/* | base64 -w0")
