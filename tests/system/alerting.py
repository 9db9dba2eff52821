"""Alerts in the appliance: who is told, what is open, and time that need not be waited for."""

from __future__ import annotations

import json

from deploy.image.machine import Machine, wait_for
from tests.system.mailbox import HOST, Mailbox
from tests.visitor import Visitor, create_pool, disk_paths

SETTINGS = "/var/lib/larder/settings.sqlite3"
INVENTORY = "/run/larder/inventory/inventory.sqlite3"
ASK = "import json, sqlite3, sys; print(json.dumps(sqlite3.connect(sys.argv[1], timeout=20).execute(sys.argv[2]).fetchall()))"
DO = "import sqlite3, sys; base = sqlite3.connect(sys.argv[1], timeout=20); base.execute(sys.argv[2]); base.commit()"
MAIL = {
    "preset": "own", "host": HOST, "security": "none", "user": "", "sender": "box@example.org", "critical": "anna@example.org",
    "warning": "anna@example.org", "notice": "anna@example.org", "quiet_from": 0, "quiet_to": 0, "digest_hour": 8,
    "webhook": "", "password": "",
}  # fmt: skip


def tell(visitor: Visitor, box: Mailbox) -> None:
    """Have the appliance send its mail to this box."""
    answer = visitor.post("/alerts/mail/", **MAIL, port=box.port, address=visitor.appliance.address)
    assert answer.status == 200, answer.words


def arrived(box: Mailbox, words: str, count: int = 1) -> None:
    """Wait until so many mails about something have come, and see that there are no more."""
    wait_for(f"{count} mails about {words}", lambda: len(box.about(words)) >= count, timeout=240)
    assert len(box.about(words)) == count, box.subjects()


def make_tank(appliance: Machine) -> None:
    """A raidz2 with something in it, made by hand."""
    create_pool(appliance, "-f", "-o", "ashift=12", "tank", "raidz2", *disk_paths(appliance, 1, 2, 3, 4))
    appliance.shell("dd if=/dev/urandom of=/tank/photo bs=1M count=64 status=none; zpool sync tank")


def alerts(appliance: Machine, kind: str) -> list[list[str]]:
    """Subject, state and summary of all alerts of a kind, the oldest first."""
    found: list[list[str]] = json.loads(
        appliance.run("python3", "-c", ASK, SETTINGS, f"select subject, state, summary from larder_alerts_alert where kind = '{kind}' order by id")
    )  # fmt: skip
    return found


def ask_disks(appliance: Machine) -> None:
    """The disks are asked at the next beat of the clock, as if the five minutes had passed."""
    appliance.run("python3", "-c", DO, INVENTORY, "update inventory_source set checked = '2020-01-01 00:00:00' where name = 'temperatures'")  # fmt: skip


def hasten(appliance: Machine) -> None:
    """What waits for its end to last, and what waits to be sent again, has waited for long."""
    appliance.run("python3", "-c", DO, SETTINGS, "update larder_alerts_alert set gone = '2020-01-01 00:00:00' where gone is not null")  # fmt: skip
    appliance.run("python3", "-c", DO, SETTINGS, "update larder_alerts_message set next_try = '2020-01-01 00:00:00' where state = 'waiting'")  # fmt: skip


def raised(appliance: Machine, visitor: Visitor, kind: str, *, disks: bool = False, timeout: float = 300) -> str:
    """Wait until exactly one alert of the kind is open; its summary."""

    def look() -> str:
        if disks:
            ask_disks(appliance)
        visitor.get("/")  # looking has the facts read
        found = [row for row in alerts(appliance, kind) if row[1] == "open"]
        assert len(found) <= 1, found
        return found[0][2] if found else ""

    return str(wait_for(f"an alert {kind}", look, timeout=timeout, every=5))


def over(appliance: Machine, visitor: Visitor, kind: str, *, disks: bool = False, timeout: float = 300) -> None:
    """Wait until nothing of the kind is open any more."""

    def look() -> bool:
        if disks:
            ask_disks(appliance)
        visitor.get("/")
        hasten(appliance)
        return all(row[1] == "cleared" for row in alerts(appliance, kind))

    wait_for(f"the end of {kind}", look, timeout=timeout, every=5)
