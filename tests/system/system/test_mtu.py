"""An MTU that is tried: who cannot follow is named, it comes back by itself without a page,
and is kept once confirmed."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest

from deploy.image.machine import wait_for
from tests.system import sharing

STATE = "pool"
GATEWAY = "10.0.2.2"  # what is outside, as the box sees it
SECONDS = 105  # from the change until the former value is back, as promised


def port_of(appliance) -> str:
    return appliance.shell("ip -o route get 10.0.2.2").split("dev ")[1].split()[0]


def mtu_of(appliance, port: str) -> str:
    return appliance.run("cat", f"/sys/class/net/{port}/mtu").strip()


def timer(appliance, port: str) -> str:
    return str(appliance.run("systemctl", "is-active", f"larder-mtu-back-{port}.timer", check=False)).strip()


def begin_trial(visitor, port: str, value: int, *, anyway: bool = False) -> str:
    """Try a value by the page; its job. ``anyway``: also if the computers that the page names cannot follow."""
    path = f"/system/ports/{port}/mtu/"
    # After a start the box has not been read yet; until then no port has a page.
    page = visitor.wait_until("/system/", f"MTU {mtu_of(visitor.appliance, port)} Change", timeout=240)
    assert path in page.text
    if anyway:
        page = visitor.wait_until(path, f"Try {value} although not all computers can follow", timeout=240)
    else:
        page = visitor.get(path)
    assert "MTU in bytes" in page.words, page.words
    assert "cannot be changed here" not in page.words
    return str(visitor.confirm(visitor.get(f"{path}?mtu={value}{'&anyway=on' if anyway else ''}")))


def wait_for_mtu(appliance, port: str, value: str) -> None:
    wait_for(f"an MTU of {value}", lambda: mtu_of(appliance, port) == value, timeout=600, every=1)


@pytest.fixture
def connected(appliance) -> Iterator[None]:
    """A connection to the pages at any time, so that the computer outside counts as connected."""
    done = threading.Event()

    def connect() -> None:
        while not done.is_set():
            # nginx ends it after a minute without a request.
            with socket.create_connection(("127.0.0.1", appliance.ports["https"]), timeout=60):
                done.wait(20)

    running = threading.Thread(target=connect, daemon=True)
    running.start()
    listed = ("ss", "-Hnt", "state", "established", "( sport = :443 )")
    wait_for("the connection", lambda: GATEWAY in appliance.run(*listed), timeout=60)
    yield
    done.set()
    running.join(timeout=60)


def test_computer_that_cannot_follow_is_named_before_the_trial(appliance, visitor, connected):
    """The emulator's network takes no frames of 9000 bytes."""
    port = port_of(appliance)
    assert mtu_of(appliance, port) == "1500"
    said = visitor.ended(begin_trial(visitor, port, 9000))
    assert f"Frames of 9000 bytes do not reach {GATEWAY}." in said, said
    assert f"So {port} has an MTU of 1500 again." in said
    assert mtu_of(appliance, port) == "1500"
    assert timer(appliance, port) == "inactive"
    page = visitor.wait_until(
        f"/system/ports/{port}/mtu/", "Try 9000 although not all computers can follow", timeout=240
    )
    assert f"Frames of 9000 bytes did not reach {GATEWAY}." in page.words


def test_mtu_that_the_other_side_cannot_take_is_back_without_a_page(appliance, visitor, connected):
    port = port_of(appliance)
    visitor.ended(begin_trial(visitor, port, 9000))  # after it is known who cannot follow
    wait_for_mtu(appliance, port, "1500")
    appliance.shell(
        "nohup sh -c 'while sleep 0.2; do "
        f'echo $(cut -d" " -f1 /proc/uptime) $(cat /sys/class/net/{port}/mtu); done\' >/run/mtus 2>/dev/null '
        "</dev/null &"
    )
    said = visitor.ended(begin_trial(visitor, port, 9000, anyway=True))
    assert said.startswith("Done."), said
    assert timer(appliance, port) == "active"
    wait_for_mtu(appliance, port, "1500")
    seen = [line.split() for line in appliance.run("cat", "/run/mtus").splitlines() if len(line.split()) == 2]
    tried = [float(at) for at, value in seen if value == "9000"]
    assert tried, seen[:5]
    assert max(tried) - min(tried) <= SECONDS
    assert not appliance.shell(f"ls /var/lib/larder-agent/mtu/{port} 2>/dev/null || true").strip()


def test_mtu_comes_back_though_all_of_larder_was_killed(appliance, visitor):
    port = port_of(appliance)
    begin_trial(visitor, port, 1400)
    wait_for_mtu(appliance, port, "1400")
    state = appliance.shell(
        "systemctl kill --signal=KILL 'larder-agent*.service' larder-web.service larder-worker.service;"
        "systemctl stop 'larder-agent*' 'larder-web*' larder-worker.service;"
        f"cat /sys/class/net/{port}/mtu"
    )
    assert state.strip() == "1400"
    wait_for_mtu(appliance, port, "1500")
    appliance.shell("systemctl start larder-agent.socket larder-web.socket larder-web.service larder-worker.service")
    visitor.wait_until("/system/", "MTU 1500 Change", timeout=240)


def test_confirmed_mtu_stays_and_one_that_is_tried_goes_with_a_power_cut(appliance, visitor):
    port = port_of(appliance)
    job = begin_trial(visitor, port, 1400)
    page = visitor.wait_until("/system/", "1400 is being tried", timeout=90)
    answer = visitor.send(f"/system/ports/{port}/mtu/keep/", {**page.hidden(), "mtu": "1400"})
    said = visitor.ended(job)
    assert said.startswith("Done."), said
    said = visitor.ended(sharing.job_in(answer))
    assert said.startswith("Done."), said
    assert timer(appliance, port) == "inactive"
    assert appliance.run("cat", f"/var/lib/larder-agent/mtu/{port}").strip() == "1400"

    begin_trial(visitor, port, 1300)
    wait_for_mtu(appliance, port, "1300")
    appliance.cut_power()
    appliance.power_on()
    assert mtu_of(appliance, port) == "1400"
