"""A system disk that damages the settings: the box comes back with the copy and says so."""

from __future__ import annotations

DATABASE = "/var/lib/larder/settings.sqlite3"
COPY = f"""
import datetime, pathlib
from web.system import database
database.make_copy(pathlib.Path("{DATABASE}"), datetime.datetime.now(datetime.UTC))
"""
UNITS = ("larder-prepare.service", "larder-web.service", "larder-worker.service")


def restart(appliance) -> None:
    appliance.run("systemctl", "restart", *UNITS, timeout=300)
    appliance.wait_ready(timeout=300)


def test_box_with_a_damaged_settings_database_restores_the_copy_and_says_so(appliance, visitor):
    appliance.run(
        "setpriv",
        "--reuid=larder",
        "--regid=larder",
        "--clear-groups",
        "sh",
        "-c",
        'cd /opt/larder/app && umask 077 && /opt/larder/venv/bin/python -c "$1"',
        "sh",
        COPY,
    )
    appliance.run("systemctl", "stop", *UNITS)
    appliance.run("dd", "if=/dev/urandom", f"of={DATABASE}", "bs=4096", "seek=1", "count=60", "conv=notrunc")
    restart(appliance)
    visitor.sign_in()
    visitor.wait_until("/", "The settings were restored from a copy", timeout=120)
    assert appliance.run("sh", "-c", "ls /var/lib/larder/damaged-*/settings.sqlite3").strip()


def test_box_whose_settings_are_lost_can_be_set_up_again(appliance, visitor):
    appliance.run("systemctl", "stop", *UNITS)
    appliance.shell(f"rm -r /var/lib/larder/copies; echo no database > {DATABASE}")
    restart(appliance)
    assert "settings were lost" in visitor.get("/setup/").words
