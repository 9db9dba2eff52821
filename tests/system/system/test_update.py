"""An update by deploy/install on a running box: taken into service whole, or not at all."""

from __future__ import annotations

import pytest

HERE = "/tmp/larder"
UNITS = ("larder-agent.socket", "larder-web.service", "larder-worker.service")


@pytest.fixture(scope="module")
def checkout(appliance) -> str:
    """This checkout's code inside, where an owner would have it."""
    appliance.push_code()
    return HERE


def in_service(appliance) -> str:
    """Which folder the code in service is in, once pages are served and every unit runs."""
    appliance.wait_ready(timeout=300)
    assert appliance.run("systemctl", "is-active", *UNITS).split() == ["active"] * len(UNITS)
    appliance.run("/opt/larder/venv/bin/python", "-I", "-c", "import appliance.agent.__main__, msgspec, django")
    return appliance.run("readlink", "/opt/larder/app").strip()


def test_update_without_network_leaves_the_box_running(appliance, checkout):
    before = in_service(appliance)
    appliance.shell(
        f"cp -a {checkout} {checkout}.later; echo '# another version' >> {checkout}.later/requirements.lock"
    )
    said = appliance.shell(
        f"unshare -n {checkout}.later/deploy/install code 2>&1 || echo it ended with $?", timeout=600
    )
    assert "The Python packages could not be fetched." in said
    assert "was not changed and keeps running" in said
    assert "it ended with 1" in said
    assert in_service(appliance) == before
    appliance.run("systemctl", "restart", "larder-prepare.service", "larder-web.service", "larder-worker.service")
    assert in_service(appliance) == before


def test_installation_of_folders_becomes_one_of_links(appliance, checkout):
    """As the first versions left it."""
    appliance.shell(
        "cd /opt/larder; venv=$(readlink -f venv); app=$(readlink -f app); rm venv static app;"
        ' mv "$app" app; rm app/venv; mv app/static static; cp -a "$venv" venv; rm -rf app.a app.b venv/complete'
    )
    appliance.run(f"{checkout}/deploy/install", "code", timeout=600)
    assert in_service(appliance) == "app.a"
    venv = appliance.run("readlink", "/opt/larder/app/venv").strip().removeprefix("../")
    assert appliance.run("ls", "/opt/larder").split() == ["app", "app.a", "static", "venv", venv]


def test_power_cut_during_an_update_leaves_a_box_that_starts(appliance, checkout):
    for moment in ("app.b/manage.py", "app.b/venv", "app.b/static"):
        appliance.shell(
            "[ $(readlink /opt/larder/app) = app.a ] || { mv /opt/larder/app.b /opt/larder/app.a; ln -sfn "
            "app.a /opt/larder/app; }; rm -rf /opt/larder/app.b"
        )
        appliance.shell(f"(setsid {checkout}/deploy/install code >/dev/null 2>&1 &) ; true")
        appliance.shell(f"until [ -e /opt/larder/{moment} ]; do sleep 0.05; done", timeout=300)
        appliance.cut_power()
        appliance.power_on()
        assert in_service(appliance) in {"app.a", "app.b"}
