"""The System page sets time zone and time servers, and the whole box follows without a restart."""

from __future__ import annotations

from urllib.parse import urlencode

import pytest

from tests.visitor import Visitor

# Answers as a time server does (RFC 5905) with the box's own clock, since the machine has no network to ask.
TIME_SERVER = """
import socket, struct, time
def stamp(at): return divmod(int((at + 2208988800) * 2**32), 2**32)
server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind(("127.0.0.1", 123))
while True:
    asked, who = server.recvfrom(512)
    now = time.time()
    times = (*stamp(now - 5), *struct.unpack("!2I", asked[40:48]), *stamp(now), *stamp(now))
    server.sendto(struct.pack("!BBbb11I", 0x24, 2, 6, -20, 0, 0, 0x7F000001, *times), who)
"""


def confirm_setting(visitor: Visitor, path: str, **answers: str) -> str:
    """Answer the form of a setting and confirm its review; what its job says at the end."""
    visitor.wait_until("/system/", "Name, language and time", timeout=90)
    return visitor.ended(visitor.confirm(visitor.get(f"{path}?{urlencode(answers)}")), timeout=300)


def test_time_zone_is_set_and_pages_follow_at_once(appliance, visitor):
    said = confirm_setting(visitor, "/system/time-zone/", zone="Asia/Kolkata")
    assert said.startswith("Done."), said
    assert appliance.run("timedatectl", "show", "--property=Timezone", "--value").strip() == "Asia/Kolkata"
    assert appliance.run("date", "+%Z").strip() == "IST"
    visitor.wait_until("/system/", "(IST)", "Asia/Kolkata")


def test_zone_that_is_not_offered_changes_nothing(appliance, visitor):
    before = appliance.run("readlink", "/etc/localtime")
    assert visitor.get("/system/time-zone/?zone=Europe/Atlantis").status == 400
    assert appliance.run("readlink", "/etc/localtime") == before


@pytest.fixture
def time_server(appliance):
    """A time server inside the machine, whose image has the time service switched off."""
    appliance.run("systemctl", "unmask", "systemd-timesyncd.service")
    appliance.run("systemd-run", "--quiet", "--unit=time-stand-in", "python3", "-c", TIME_SERVER)
    yield "127.0.0.1"
    appliance.run("timedatectl", "set-ntp", "false")
    appliance.run("systemctl", "stop", "time-stand-in.service")
    appliance.run("systemctl", "mask", "systemd-timesyncd.service")


def test_clock_is_set_from_the_chosen_server_and_the_page_tells_so(appliance, visitor, time_server):
    visitor.wait_until("/system/", "not set from the network", timeout=90)
    said = confirm_setting(visitor, "/system/time-servers/", servers=time_server)
    assert said.startswith("Done."), said
    visitor.wait_until("/system/", f"synchronised with {time_server}", "Was off by", "Last set", timeout=180)
    assert appliance.run("timedatectl", "show", "--property=NTPSynchronized", "--value").strip() == "yes"
    said = confirm_setting(visitor, "/system/time-servers/", servers="")
    assert said.startswith("Done."), said
    assert appliance.run("ls", "/etc/systemd/timesyncd.conf.d").strip() == ""
    visitor.wait_until("/system/", "Debian's servers", timeout=90)
