"""Faults for real: each is one alert, one mail with the right words, and one mail when it is over."""

from __future__ import annotations

import pytest

from deploy.image.machine import Machine, wait_for
from tests.system import alerting
from tests.system.mailbox import Mailbox, text_of
from tests.visitor import Visitor

NVME = "LARDER-NVME-1"


@pytest.fixture(scope="module", autouse=True)
def told(appliance: Machine, visitor: Visitor, post: Mailbox) -> None:
    alerting.tell(visitor, post)


def test_a_test_mail_shows_the_servers_answer(visitor, post):
    assert "The mail server accepted it." in alerting.try_mail(visitor, "The mail server accepted it.")
    alerting.arrived(post, ": test")


@pytest.mark.parametrize(
    ("mode", "answer"), [("refuse", "550 5.1.1 nobody of that name"), ("greylist", "451 4.7.1 come back later")]
)
def test_a_test_mail_that_is_refused_shows_why(visitor, post, mode, answer):
    post.mode = mode
    try:
        assert answer in alerting.try_mail(visitor, answer)
    finally:
        post.mode = "take"


@pytest.fixture(scope="module")
def nvme(appliance: Machine, visitor: Visitor, told: None) -> None:
    """A disk whose warnings can be set while it runs."""
    appliance.insert("nvme5", 10**10, serial=NVME, kind="nvme")
    visitor.wait_until("/disks/", NVME, timeout=180)


# One in every run of the tests; each of the others, a minute, in the soak.
@pytest.mark.parametrize(
    ("bit", "kind", "words"),
    [
        pytest.param(1, "disk.failing", "its spare memory is used up", marks=pytest.mark.soak),
        (4, "disk.failing", "unreliable"),
        pytest.param(8, "disk.failing", "accepts no more writes", marks=pytest.mark.soak),
        pytest.param(16, "disk.failing", "protection against a power cut", marks=pytest.mark.soak),
        pytest.param(32, "disk.failing", "persistent memory region has become unreliable", marks=pytest.mark.soak),
        pytest.param(2, "disk.watch", "warmer or colder", marks=pytest.mark.soak),
    ],
)
def test_a_warning_of_an_nvme_disk_is_one_mail_and_its_end_another(appliance, visitor, post, nvme, bit, kind, words):
    since = alerting.begin(appliance, post)
    appliance.nvme_warning("nvme5", bit)
    summary = alerting.raised(appliance, visitor, kind, disks=True)
    assert words in summary
    alerting.arrived(post, summary.split(":")[0])
    text = text_of(post.mails[0])
    assert "What to do" in text
    assert f"{appliance.address}/alerts/" in text
    appliance.nvme_warning("nvme5", 0)
    alerting.over(appliance, visitor, kind, disks=True)
    alerting.each_once(appliance, post, since, kind)


def test_smartd_stopped_is_told_and_its_return_too(appliance, visitor, post):
    since = alerting.begin(appliance, post)
    appliance.run("systemctl", "stop", "smartmontools")
    try:
        assert alerting.raised(appliance, visitor, "service.smartd") == "Disks are not monitored."
        alerting.arrived(post, "Disks are not monitored")
    finally:
        appliance.run("systemctl", "start", "smartmontools")
    alerting.over(appliance, visitor, "service.smartd")
    alerting.each_once(appliance, post, since, "service.smartd")


def test_a_pulled_disk_of_a_pool_waits_for_the_mail_server_and_is_told_once(appliance, visitor, post):
    alerting.make_tank(appliance)
    visitor.wait_until("/pools/", "tank", timeout=120)
    since = alerting.begin(appliance, post)
    post.mode = "greylist"
    before = post.tries
    appliance.pull(2)
    try:
        alerting.raised(appliance, visitor, "pool.degraded")
        wait_for("a try to send it", lambda: post.tries > before, timeout=180)
        assert post.mails == []
    finally:
        post.mode = "take"
    alerting.hasten(appliance)
    alerting.arrived(post, "tank is degraded:")
    assert "bay 2" in text_of(post.mails[0])
    appliance.put_back(2)
    alerting.over(appliance, visitor, "pool.degraded")
    alerting.each_once(appliance, post, since, "pool.degraded")
    appliance.run("sha256sum", "-c", "/root/sum")
