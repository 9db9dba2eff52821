"""Real conversations with a mail server: over a socket, with TLS and a sign-in, refused, put off, cut off."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from appliance.alerts.fault import Fault
from tests.system.mailbox import Mailbox, mailbox, make_certificate, text_of
from web.alerts import outbox, reconcile, smtp_password
from web.alerts.models import MailSettings, Message
from workers.alerts import deliver

NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)
FAULT = Fault(
    "disk.failing", "x", "Disk in bay 3 (<b>x\r\nBcc: evil@example.org) is failing: ünlesbar.", "It belongs to tank."
)


@pytest.fixture
def post() -> Iterator[Mailbox]:
    with mailbox() as box:
        MailSettings.objects.create(
            pk=1,
            host="127.0.0.1",
            port=box.port,
            security="none",
            sender="box@example.org",
            critical="anna@example.org\nbert@example.org",
        )
        yield box


@pytest.fixture(scope="module")
def certificate(tmp_path_factory) -> Path:
    return make_certificate(tmp_path_factory.mktemp("mail"))[0]


@pytest.fixture(params=["starttls", "tls"])
def secured(request, certificate) -> Iterator[Mailbox]:
    with mailbox(certificate, tls=request.param == "tls") as box:
        MailSettings.objects.create(
            pk=1,
            host="localhost",
            port=box.port,
            security=request.param,
            user="box@example.org",
            critical="anna@example.org",
        )
        smtp_password.store_password("a secret of its own")
        yield box


@pytest.fixture
def trusted(monkeypatch, certificate) -> None:
    """As if the server's certificate were from an authority that this box trusts."""
    context = ssl.create_default_context(cafile=certificate)
    monkeypatch.setattr(ssl, "create_default_context", lambda: context)


def test_a_mail_goes_out_whole_and_once(post):
    reconcile.reconcile_alerts([FAULT], NOW)
    for minute in range(3):
        deliver.send_due(NOW + timedelta(minutes=minute))
    (message,) = post.mails
    assert message["To"] == "anna@example.org, bert@example.org"
    assert message["Bcc"] is None
    assert post.subjects()[0].endswith("is failing: ünlesbar")
    assert "It belongs to tank." in text_of(message)
    assert Message.objects.get().state == "sent"


@pytest.mark.parametrize(
    ("mode", "words"),
    [
        ("refuse", "550 5.1.1 nobody of that name"),
        ("greylist", "451 4.7.1 come back later"),
        ("hang", "timed out"),
        ("drop", "closed"),
    ],
)
def test_what_the_server_does_is_told_in_its_words_and_the_mail_still_goes_out_once(post, monkeypatch, mode, words):
    reconcile.reconcile_alerts([FAULT], NOW)
    post.mode = mode
    with monkeypatch.context() as hasty:
        if mode == "hang":
            hasty.setattr(deliver, "SECONDS", 1)
        assert deliver.send_due(NOW) == 0
    row = Message.objects.get()
    assert row.state == "waiting"
    assert words in row.answer
    post.mode = "take"
    deliver.send_due(NOW + timedelta(days=1))
    deliver.send_due(NOW + timedelta(days=2))
    (message,) = post.mails
    if mode == "drop":
        assert message["Message-ID"] == post.dropped[0]["Message-ID"]  # so that mail programs show one


def test_a_server_that_hangs_is_asked_once_in_a_while_and_not_by_everything_that_waits(post, monkeypatch):
    reconcile.reconcile_alerts([replace(FAULT, subject=str(number)) for number in range(5)], NOW)
    post.mode = "hang"
    with monkeypatch.context() as hasty:
        hasty.setattr(deliver, "SECONDS", 0.5)
        for beat in range(2):
            assert deliver.send_due(NOW + timedelta(seconds=5 * beat)) == 0
    assert post.tries == 2
    assert set(Message.objects.values_list("state", flat=True)) == {"waiting"}
    post.mode = "take"
    assert deliver.send_due(NOW + timedelta(minutes=5)) == 5


def test_a_server_that_hangs_up_once_it_has_taken_a_mail_does_not_get_it_twice(post):
    reconcile.reconcile_alerts([FAULT], NOW)
    post.mode = "curt"
    assert deliver.send_due(NOW) == 1
    assert deliver.send_due(NOW + timedelta(days=1)) == 0
    assert len(post.mails) == 1


def test_only_one_delivery_is_under_way(post):
    reconcile.reconcile_alerts([FAULT], NOW)
    with deliver._delivering:
        deliver.deliver_messages()
    assert post.tries == 0
    deliver.deliver_messages()
    assert len(post.mails) == 1


def test_nothing_listens(post):
    MailSettings.objects.update(port=1)
    outbox.queue_test("mail", NOW)
    deliver.send_due(NOW)
    assert "Connection refused" in Message.objects.get().answer


def test_it_signs_in_over_tls(secured, trusted):
    outbox.queue_test("mail", NOW)
    assert deliver.send_due(NOW) == 1
    assert secured.signed_in == ["\0box@example.org\0a secret of its own"]
    assert len(secured.mails) == 1


def test_a_pasted_certificate_is_trusted(secured, certificate):
    MailSettings.objects.update(authority=certificate.read_text().partition("-----END PRIVATE KEY-----")[2])
    outbox.queue_test("mail", NOW)
    assert deliver.send_due(NOW) == 1
    assert len(secured.mails) == 1


def test_a_refused_login_is_told_without_the_password(secured, trusted):
    secured.mode = "login"
    outbox.queue_test("mail", NOW)
    deliver.send_due(NOW)
    answer = Message.objects.get().answer
    assert answer.endswith("The mail server answered: 535 5.7.8 wrong password")
    assert "a secret of its own" not in str(list(Message.objects.values()))


def test_a_certificate_that_nobody_vouches_for_gets_no_password(secured):
    outbox.queue_test("mail", NOW)
    deliver.send_due(NOW)
    answer = Message.objects.get().answer
    assert "certificate is not valid: self-signed certificate. Nothing was sent to it." in answer
    assert secured.signed_in == []
    assert secured.mails == []


def test_a_certificate_for_another_name_gets_no_password_either(secured, trusted):
    MailSettings.objects.update(host="127.0.0.1")
    outbox.queue_test("mail", NOW)
    deliver.send_due(NOW)
    assert "is not valid for '127.0.0.1'" in Message.objects.get().answer
    assert secured.signed_in == []


def test_a_server_that_offers_no_encryption_gets_no_password(post):
    MailSettings.objects.update(security="starttls", user="box@example.org")
    smtp_password.store_password("a secret of its own")
    outbox.queue_test("mail", NOW)
    deliver.send_due(NOW)
    assert "STARTTLS" in Message.objects.get().answer
    assert post.signed_in == []
    assert post.mails == []


def test_the_weeks_report_comes_once_a_week_also_when_all_is_well(post):
    MailSettings.objects.update(weekly=True, notice="anna@example.org")
    settings, monday = MailSettings.load_row(), datetime(2026, 3, 9, 6, tzinfo=UTC)
    assert not outbox.queue_weekly_report(monday, settings)  # the day's hour has not come yet
    for hours in (3, 4, 24, 6 * 24):
        outbox.queue_weekly_report(monday + timedelta(hours=hours), settings)
        deliver.send_due(monday + timedelta(hours=hours))
    (message,) = post.mails
    assert str(message["Subject"]).endswith("all is well this week")
    outbox.queue_weekly_report(monday + timedelta(days=8), settings)
    assert deliver.send_due(monday + timedelta(days=8)) == 1


def test_the_weeks_report_names_what_waits(post):
    MailSettings.objects.update(weekly=True)
    reconcile.reconcile_alerts([FAULT], NOW)
    outbox.queue_weekly_report(NOW, MailSettings.load_row())
    deliver.send_due(NOW)
    report = next(one for one in post.mails if "needs you" in str(one["Subject"]))
    assert "is failing" in text_of(report)
    assert report["Bcc"] is None
