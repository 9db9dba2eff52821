"""What nobody uses does not run: a box that shares nothing offers its page and ssh, and not the
services of the packages."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize(
    "unit",
    ["netatalk.service", "nfs-server.service", "nmbd.service", "wsdd2.service", "rpcbind.service", "ledmon.service"],
)
def test_a_service_does_not_run_before_something_is_shared(appliance, unit):
    assert appliance.run("systemctl", "is-active", unit, check=False).strip() == "inactive"
    assert appliance.run("systemctl", "is-enabled", unit, check=False).strip() == "disabled"


def test_no_port_of_them_is_open(appliance):
    listening = appliance.run("ss", "-Hltn")
    assert not [port for port in (":548 ", ":2049 ", ":111 ", ":3702 ") if port in listening]


def test_no_service_of_the_box_has_failed(appliance):
    assert appliance.run("systemctl", "--failed", "--plain", "--no-legend").strip() == ""


def test_installing_again_leaves_a_service_that_is_used(appliance):
    appliance.run("systemctl", "enable", "--now", "nfs-server", timeout=120)
    assert appliance.run("cat", "/var/lib/larder-agent/quieted").split() == [
        "netatalk",
        "nfs",
        "samba",
        "ipmi",
        "ledmon",
    ]
    appliance.run(
        "bash",
        "-ceu",
        "cd /tmp/larder 2>/dev/null || cd /opt/larder/app; sed -n '/^quiet()/,/^}/p' deploy/install > "
        '/tmp/quiet; here=$PWD; running() { true; }; unit() { true; }; say() { echo "$@"; }; . /tmp/quiet; '
        "quiet",
    )
    assert appliance.run("systemctl", "is-active", "nfs-server").strip() == "active"
    appliance.run("systemctl", "disable", "--now", "nfs-server", timeout=120)
