"""The mail server's side: encrypted and not trusted, trusted, refusing to sign in, not there at all.
Nothing is lost, none comes twice."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.image.machine import Machine, free_port, wait_for
from tests.system import alerting
from tests.system.mailbox import Mailbox, mailbox, make_certificate
from tests.visitor import Visitor

USER, PASSWORD = "box@example.org", "a secret of its own"
OFFLINE = "tank runs without a disk that was taken offline"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory) -> tuple[Path, Path]:
    return make_certificate(tmp_path_factory.mktemp("mail"))


@pytest.fixture(scope="module")
def boxes(certificate) -> Iterator[dict[str, Mailbox]]:
    with mailbox(certificate[0]) as asked, mailbox(certificate[0], tls=True) as always:
        yield {"starttls": asked, "tls": always}


@pytest.fixture(scope="module", autouse=True)
def tank(appliance: Machine, visitor: Visitor) -> None:
    alerting.make_tank(appliance)
    visitor.wait_until("/pools/", "tank", timeout=180)


@pytest.fixture(scope="module")
def trusted(appliance: Machine, certificate: tuple[Path, Path]) -> None:
    """The appliance trusts that certificate, as its owner would have it do."""
    appliance.put("/usr/local/share/ca-certificates/mail-of-a-test.crt", certificate[1].read_text())
    appliance.run("update-ca-certificates")


@pytest.mark.parametrize("security", ["starttls", "tls"])
def test_a_server_for_which_nobody_vouches_gets_neither_mail_nor_password(appliance, visitor, boxes, security):
    box = boxes[security]
    alerting.tell(visitor, box, security=security, user=USER, password=PASSWORD)
    alerting.try_mail(visitor, "certificate is not valid: self-signed certificate. Nothing was sent to it.")
    assert (box.signed_in, box.mails) == ([], [])
    assert appliance.run("stat", "-c", "%a %U", "/var/lib/larder/mail-password").strip() == "600 larder"


@pytest.mark.parametrize("security", ["starttls", "tls"])
def test_a_trusted_server_takes_password_and_mail(visitor, boxes, trusted, security):
    box = boxes[security]
    alerting.tell(visitor, box, security=security, user=USER, password=PASSWORD)
    alerting.try_mail(visitor, "The mail server accepted it.")
    assert box.signed_in == [f"\0{USER}\0{PASSWORD}"]
    alerting.arrived(box, ": test")


def fault_while_mail_fails(appliance: Machine, visitor: Visitor, box: Mailbox, answer: str) -> None:
    """A disk is taken offline; the try to tell it ends with that answer of the server."""
    appliance.run("zpool", "offline", "tank", alerting.guid_of(appliance, 4))
    alerting.raised(appliance, visitor, "pool.offline")
    query = f"select id from larder_alerts_message where state = 'waiting' and answer like '%{answer}%'"
    wait_for(f"a try that ended with {answer}", lambda: alerting.ask(appliance, query), timeout=180, every=3)
    assert box.mails == []


def told_once_it_works(appliance: Machine, visitor: Visitor, box: Mailbox, since: int) -> None:
    alerting.hasten(appliance)
    alerting.arrived(box, OFFLINE)
    appliance.run("zpool", "online", "tank", alerting.guid_of(appliance, 4))
    alerting.over(appliance, visitor, "pool.offline")
    alerting.each_once(appliance, box, since, "pool.offline")


def test_a_fault_while_signing_in_is_refused_is_told_once_it_works_again(appliance, visitor, boxes, trusted):
    box = boxes["starttls"]
    alerting.tell(visitor, box, security="starttls", user=USER, password=PASSWORD)
    since = alerting.begin(appliance, box)
    box.mode = "login"
    try:
        fault_while_mail_fails(appliance, visitor, box, "535 5.7.8 wrong password")
    finally:
        box.mode = "take"
    told_once_it_works(appliance, visitor, box, since)


def test_a_fault_while_no_mail_server_is_there_is_told_once_there_is_one(appliance, visitor, post):
    alerting.tell(visitor, post)
    since = alerting.begin(appliance, post)
    alerting.tell(visitor, post, port=free_port())
    fault_while_mail_fails(appliance, visitor, post, "Connection refused")
    alerting.tell(visitor, post)
    told_once_it_works(appliance, visitor, post, since)
