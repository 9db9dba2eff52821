"""The box's time zone: which zones there are, which one is set, and setting another.

systemd-timedated points /etc/localtime at the zone (localtime(5)). Larder reads that file whenever it needs the zone
(``appliance/schedule.py``), so pages, mails and schedules follow at once and no process is restarted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from appliance.errors import Reason, Refused
from appliance.facts.box import Facts
from appliance.message import Message
from appliance.operation import Operation, Plan, command_step, never

LOCALTIME = Path("/etc/localtime")
ZONES = Path(
    "/usr/share/zoneinfo/zone.tab"
)  # one line a zone: country, coordinates, name; tzdata's own list for people
UTC = "UTC"
ZONE_NAME = re.compile(r"[A-Z][A-Za-z_+-]*[A-Za-z0-9](/[A-Za-z0-9_+-]+){0,2}")
LONGEST = 60


def list_zones(table: Path = ZONES) -> tuple[str, ...]:
    """The zones to choose from, by name, and UTC; only UTC where tzdata is not installed."""
    try:
        lines = table.read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    rows = [line.split("\t") for line in lines if not line.startswith("#")]
    return tuple(sorted({row[2] for row in rows if len(row) > 2} | {UTC}))


def read_zone_name(link: Path = LOCALTIME) -> str:
    """The name of the zone that is set: UTC where none is, empty where the file does not say which."""
    try:
        target = str(link.readlink())
    except OSError:
        return "" if link.exists() else UTC
    name = target.partition("zoneinfo/")[2]
    return UTC if name == "Etc/UTC" else name


class SetTimeZone(Operation, tag="set-time-zone"):
    """Set the time zone of the box. ``zone``: a name as in ``list_zones``, such as ``Europe/Berlin``."""

    needs_proof = never  # no file and no snapshot changes, and it can be set back

    zone: str

    def __post_init__(self) -> None:
        if len(self.zone) > LONGEST or not ZONE_NAME.fullmatch(self.zone):
            raise Refused(Reason("time-zone-malformed", "Choose a time zone from the list.", field="zone"))

    @property
    def title(self) -> str:
        return Message("Set the time zone to {zone}", zone=self.zone)

    @property
    def subject(self) -> str:
        return "the box"

    def locks(self) -> tuple[str, ...]:
        return ("clock",)

    def check(self, facts: Facts) -> Iterator[Reason]:
        if self.zone not in list_zones():
            yield Reason(
                "time-zone-unknown",
                "This box does not know the time zone {zone}. Choose one from the list.",
                field="zone",
                zone=self.zone,
            )

    def plan(self, facts: Facts) -> Plan:
        return Plan(
            summary=Message(
                "Pages, mails and the hours of all schedules (snapshots, backups, scrubs, trims, self-tests) "
                "use the time in {zone}. Files and snapshots keep their dates; pages show them in the new "
                "zone.",
                zone=self.zone,
            ),
            steps=(
                command_step(
                    "zone",
                    Message("Set the time zone to {zone}", zone=self.zone),
                    ("timedatectl", "set-timezone", self.zone),
                    affects=(str(LOCALTIME),),
                    timeout=60,
                ),
            ),
            identity={"kind": "set-time-zone", "zone": self.zone},
            warnings=(
                Message(
                    "Schedules move with the zone: the next run of each can be up to a day earlier or later "
                    "than planned until now."
                ),
            ),
            undo=Message("You can set the earlier time zone again at any time."),
        )

    def probe(self, step: str, facts: Facts) -> bool:
        return read_zone_name() == self.zone

    def recovery_hint(self, step: str, facts: Facts) -> str:
        return Message("The System page shows which time zone is set. Set it again if it is not the one you want.")
