"""Reading and setting the time zone of the box."""

from __future__ import annotations

import pytest

from appliance.operation import checked_plan
from appliance.system import time_zone
from appliance.system.time_zone import SetTimeZone, list_zones, read_zone_name
from tests.reasons import codes, expect_refusal
from tests.unit.made import box
from tests.unit.pools.test_create import Working

# As tzdata has it (2025b).
TABLE = (
    "# comment\nDE\t+5230+01322\tEurope/Berlin\tmost of "
    "Germany\nAR\t-3436-05827\tAmerica/Argentina/Buenos_Aires\tBuenos Aires (BA, "
    "CF)\nPA\t+0858-07932\tAmerica/Panama\n"
)


@pytest.fixture(autouse=True)
def localtime(tmp_path, monkeypatch):
    table = tmp_path / "zone.tab"
    table.write_text(TABLE)
    monkeypatch.setattr(time_zone, "list_zones", lambda: list_zones(table))
    link = tmp_path / "localtime"
    link.symlink_to("/usr/share/zoneinfo/Etc/UTC")
    monkeypatch.setattr(time_zone, "read_zone_name", lambda: read_zone_name(link))
    return link


def turn(link, zone: str) -> None:
    link.unlink()
    link.symlink_to(f"../usr/share/zoneinfo/{zone}")


def test_zones_are_those_that_tzdata_offers_to_people_and_utc():
    assert time_zone.list_zones() == ("America/Argentina/Buenos_Aires", "America/Panama", "Europe/Berlin", "UTC")


def test_box_without_tzdata_offers_utc_alone(tmp_path):
    assert list_zones(tmp_path / "missing") == ("UTC",)


def test_zone_is_read_from_the_link(localtime, tmp_path):
    assert read_zone_name(localtime) == "UTC"
    turn(localtime, "Europe/Berlin")
    assert read_zone_name(localtime) == "Europe/Berlin"
    assert read_zone_name(tmp_path / "missing") == "UTC"
    (tmp_path / "copied").write_bytes(b"TZif2")
    assert read_zone_name(tmp_path / "copied") == ""


def test_timedated_is_asked_by_the_command_that_is_shown(commands):
    (step,) = checked_plan(SetTimeZone(zone="Europe/Berlin"), box()).steps
    step.run(Working())
    assert commands.ran == [["timedatectl", "set-timezone", "Europe/Berlin"]]
    assert step.command_text == "timedatectl set-timezone Europe/Berlin"


def test_zone_is_set_once_the_box_has_it(localtime):
    operation = SetTimeZone(zone="Europe/Berlin")
    assert not operation.probe("zone", box())
    turn(localtime, "Europe/Berlin")
    assert operation.probe("zone", box())


def test_zone_that_tzdata_does_not_offer_is_refused():
    assert codes(SetTimeZone(zone="Europe/Atlantis").check(box())) == ["time-zone-unknown"]


@pytest.mark.parametrize(
    "zone", ["", "../UTC", "/etc/passwd", "-h", "Europe/../UTC", "Europe/Berlin\n", "A" * 61, "Europe//Berlin"]
)
def test_zone_has_its_grammar(zone):
    with expect_refusal("time-zone-malformed"):
        SetTimeZone(zone=zone)


def test_every_zone_of_this_computer_is_within_the_grammar():
    for zone in list_zones():
        assert SetTimeZone(zone=zone).zone == zone


def test_plans_of_two_zones_differ():
    assert SetTimeZone(zone="UTC").plan(box()).digest() != SetTimeZone(zone="Europe/Berlin").plan(box()).digest()
