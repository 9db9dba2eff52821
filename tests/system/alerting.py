"""Alerts in the appliance: who is told, what is open, and time that need not be waited for."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from deploy.image.machine import Machine, wait_for
from tests.system import shapes
from tests.system.mailbox import HOST, Mailbox
from tests.visitor import Visitor, create_pool, disk_paths

SETTINGS = "/var/lib/larder/settings.sqlite3"
INVENTORY = "/run/larder/inventory/inventory.sqlite3"
ASK = (
    "import json, sqlite3, sys; print(json.dumps(sqlite3.connect(sys.argv[1], "
    "timeout=20).execute(sys.argv[2]).fetchall()))"
)
DO = "import sqlite3, sys; base = sqlite3.connect(sys.argv[1], timeout=20); base.execute(sys.argv[2]); base.commit()"
MAIL = {
    "preset": "own",
    "host": HOST,
    "security": "none",
    "user": "",
    "sender": "box@example.org",
    "critical": "anna@example.org",
    "warning": "anna@example.org",
    "notice": "anna@example.org",
    "quiet_from": 0,
    "quiet_to": 0,
    "webhook": "",
    "password": "",
}


def tell(visitor: Visitor, box: Mailbox, **other: object) -> None:
    """Have the appliance send its mail to this box; ``other`` answers than the usual ones of the form.

    The day's news are half a day away, so that no notice goes out in the middle of a test.
    """
    later = (datetime.now(UTC).hour + 12) % 24
    fields = {**MAIL, "port": box.port, "address": visitor.appliance.address, "digest_hour": later, **other}
    answer = visitor.post("/alerts/mail/", **fields)
    assert answer.status == 200, answer.words


def try_mail(visitor: Visitor, says: str) -> str:
    """Press the button for a test mail, and wait until the page shows that answer; the words of the page."""
    return try_way(visitor, "mail", says)


def try_way(visitor: Visitor, way: str, says: str) -> str:
    """The same of a test by mail or webhook."""
    visitor.send("/alerts/mail/test/", {**visitor.get("/alerts/mail/").hidden(), "way": way})
    return visitor.wait_until("/alerts/mail/", says, timeout=180).words


def arrived(box: Mailbox, words: str, count: int = 1) -> None:
    """Wait until so many mails about something have come, and see that there are no more."""
    wait_for(f"{count} mails about {words}", lambda: len(box.about(words)) >= count, timeout=240)
    assert len(box.about(words)) == count, box.subjects()


def make_tank(appliance: Machine) -> None:
    """A raidz2 with something in it, made by hand."""
    create_pool(appliance, "-f", "-o", "ashift=12", "tank", "raidz2", *disk_paths(appliance, 1, 2, 3, 4))
    appliance.shell(
        "dd if=/dev/urandom of=/tank/photo bs=1M count=64 status=none; sha256sum /tank/photo > /root/sum; "
        "zpool sync tank"
    )


def guid_of(appliance: Machine, bay: int, pool: str = "tank") -> str:
    """The guid of the vdev in a bay, by which every command names it."""
    return str(shapes.guid_of(appliance, pool, appliance.disks[bay - 1].serial))


def ask(appliance: Machine, query: str) -> list[list[Any]]:
    """Rows of the settings database."""
    found: list[list[Any]] = json.loads(appliance.run("python3", "-c", ASK, SETTINGS, query))
    return found


def alerts(appliance: Machine, kind: str) -> list[list[str]]:
    """Subject, state and summary of all alerts of a kind, the oldest first."""
    return ask(appliance, f"select subject, state, summary from larder_alerts_alert where kind = '{kind}' order by id")


def are_open(appliance: Machine, kind: str) -> list[list[str]]:
    return [row for row in alerts(appliance, kind) if row[1] == "open"]


def ask_disks(appliance: Machine) -> None:
    """The disks are asked at the next beat of the clock, as if the five minutes had passed.

    No more than that: a reading that is half an hour old is an alert of its own.
    """
    appliance.run(
        "python3",
        "-c",
        DO,
        INVENTORY,
        "update inventory_source set checked = datetime('now', '-6 minutes') where name = 'temperatures'",
    )


def hasten(appliance: Machine) -> None:
    """What waits for its end to last, and what waits to be sent again, has waited for long."""
    appliance.run(
        "python3",
        "-c",
        DO,
        SETTINGS,
        "update larder_alerts_alert set gone = '2020-01-01 00:00:00' where gone is not null",
    )
    appliance.run(
        "python3",
        "-c",
        DO,
        SETTINGS,
        "update larder_alerts_message set next_try = '2020-01-01 00:00:00' where state = 'waiting'",
    )


def begin(appliance: Machine, box: Mailbox) -> int:
    """Everything that was to be told has been told, and the box is empty: what comes from here on is about what happens
    from here on. The number of the newest alert so far."""

    def nothing_waits() -> bool:
        hasten(appliance)
        return not ask(appliance, "select id from larder_alerts_message where state in ('waiting', 'sending')")

    wait_for("what is still to be sent", nothing_waits, timeout=180, every=3)
    box.mails.clear()
    return int(ask(appliance, "select coalesce(max(id), 0) from larder_alerts_alert")[0][0])


def each_once(appliance: Machine, box: Mailbox, since: int, *kinds: str) -> None:
    """Since then these kinds, each once, were all that was told; each by one mail, and its end by one more."""
    rows = ask(
        appliance,
        f"select kind, summary, state from larder_alerts_alert where id > {since} and severity != 'notice' order by id",
    )
    assert sorted(row[0] for row in rows) == sorted(kinds), rows
    for _kind, summary, state in rows:
        assert state == "cleared", rows
        words = summary.rstrip(".")
        wait_for(f"both mails about {summary}", lambda words=words: len(box.about(words)) >= 2, timeout=240)  # type: ignore[misc]
        subjects = box.subjects()
        assert subjects.count(f"Larder larder: {words}") == 1, subjects
        assert subjects.count(f"Larder larder: resolved: {words}") == 1, subjects


def kinds_since(appliance: Machine, since: int) -> list[str]:
    """The kinds of the alerts that began since then, but for the day's news."""
    rows = ask(appliance, f"select kind from larder_alerts_alert where id > {since} and severity != 'notice'")
    return [str(row[0]) for row in rows]


def raised(appliance: Machine, visitor: Visitor, *kinds: str, disks: bool = False, timeout: float = 300) -> str:
    """Wait until an alert of one of these kinds is open, and no kind twice; its summary."""

    def look() -> str:
        if disks:
            ask_disks(appliance)
        visitor.get("/")  # looking has the facts read
        found = [are_open(appliance, kind) for kind in kinds]
        assert all(len(rows) <= 1 for rows in found), found
        return next((rows[0][2] for rows in found if rows), "")

    return str(wait_for(f"an alert {' or '.join(kinds)}", look, timeout=timeout, every=5))


def over(appliance: Machine, visitor: Visitor, *kinds: str, disks: bool = False, timeout: float = 300) -> None:
    """Wait until nothing of these kinds is open any more."""

    def look() -> bool:
        if disks:
            ask_disks(appliance)
        visitor.get("/")
        hasten(appliance)
        return all(row[1] == "cleared" for kind in kinds for row in alerts(appliance, kind))

    wait_for(f"the end of {' and '.join(kinds)}", look, timeout=timeout, every=5)
