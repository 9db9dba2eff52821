"""Notifications: the provider fills in its server, three fields are enough, and the result of
the test says what to do."""

from __future__ import annotations

import smtplib
import socket
import ssl

import pytest
from django.utils import timezone

from tests.reasons import codes_of_form
from web.alerts import outbox, smtp_password
from web.alerts.mail_providers import PROVIDERS, provider_of
from web.alerts.models import MailSettings, Message
from workers.alerts import mail_problems

USUAL = {"port": 587, "security": "starttls", "quiet_from": 0, "quiet_to": 0, "digest_hour": 8}
THREE = {**USUAL, "preset": "gmail", "critical": "anna@example.org", "user": "box@gmail.com", "password": "a canary"}
PAGE = "/alerts/mail/"


def test_provider_and_three_fields_are_enough(web, calm):
    assert web.post(PAGE, {**THREE, "test": "1"}).status_code == 302
    row = MailSettings.load_row()
    assert (row.host, row.port, row.security) == ("smtp.gmail.com", 587, "starttls")
    assert row.sender == row.user == "box@gmail.com"
    assert row.critical == row.warning == row.notice == "anna@example.org"
    assert smtp_password.read_password() == "a canary"
    assert Message.objects.get().way == "mail"
    assert ("workers.deliver",) in calm


def test_save_alone_sends_no_test(web, calm):
    web.post(PAGE, THREE)
    assert not Message.objects.exists()


WITH_WEBHOOK = {**THREE, "host": "smtp.gmail.com", "sender": "box@gmail.com", "webhook": "https://ntfy.example.org/box"}


@pytest.mark.parametrize(
    ("changes", "left"),
    [
        ({}, {"mail", "webhook"}),
        ({"quiet_from": 22, "quiet_to": 7}, {"mail", "webhook"}),
        ({"sender": "attic@gmail.com"}, {"webhook"}),
        ({"critical": "ben@example.org"}, {"webhook"}),
        ({"password": "another"}, {"webhook"}),
        ({"webhook": "https://ntfy.example.org/other"}, {"mail"}),
    ],
)
def test_test_counts_only_for_the_settings_it_was_sent_with(web, calm, changes, left):
    """Otherwise the overview would say that somebody hears of a failure, by a server that no longer is the one."""
    web.post(PAGE, WITH_WEBHOOK)
    for way in ("mail", "webhook"):
        outbox.queue_test(way, timezone.now())
    Message.objects.update(state=Message.State.SENT)
    web.post(PAGE, {**WITH_WEBHOOK, "password": "", **changes})
    assert set(Message.objects.filter(event="test").values_list("way", flat=True)) == left


@pytest.mark.parametrize(
    ("changes", "left"),
    [
        ({}, {"mail", "webhook"}),
        ({"webhook": "https://ntfy.example.org/other"}, {"mail", "webhook"}),
        ({"webhook": ""}, {"mail"}),
        ({"preset": "", "host": ""}, {"webhook"}),
    ],
)
def test_what_waits_for_a_way_that_is_removed_is_not_sent_anymore(web, calm, changes, left):
    web.post(PAGE, WITH_WEBHOOK)
    now = timezone.now()
    for way in ("mail", "webhook"):
        for state in Message.State.values:
            Message.objects.create(key=f"{state}-{way}", event="raised", way=way, state=state, made=now, next_try=now)
    reply = web.post(PAGE, {**WITH_WEBHOOK, "password": "", "user": "", **changes})
    assert reply.status_code == 302
    unsent = Message.objects.filter(state__in=["waiting", "sending"])
    assert sorted(unsent.values_list("way", flat=True)) == sorted([*left, *left])
    assert Message.objects.filter(state__in=["sent", "given-up"]).count() == 4


def test_what_follows_a_field_follows_it_until_it_is_changed(web, calm):
    web.post(PAGE, THREE)
    kept = {**THREE, "password": "", "host": "smtp.gmail.com", "sender": "box@gmail.com", "notice": "anna@example.org"}
    web.post(PAGE, {**kept, "critical": "ben@example.org", "warning": "carol@example.org"})
    row = MailSettings.load_row()
    assert (row.critical, row.warning, row.notice) == ("ben@example.org", "carol@example.org", "ben@example.org")
    web.post(PAGE, {**kept, "critical": "dora@example.org", "warning": "carol@example.org", "notice": ""})
    row = MailSettings.load_row()
    assert (row.critical, row.warning, row.notice) == ("dora@example.org", "carol@example.org", "")


def test_port_changed_by_hand_stays_with_the_provider(web, calm):
    web.post(PAGE, {**THREE, "host": "smtp.gmail.com", "port": 465, "security": "tls"})
    row = MailSettings.load_row()
    assert (row.host, row.port, row.security) == ("smtp.gmail.com", 465, "tls")


def test_another_provider_replaces_the_stored_server(web, calm):
    web.post(PAGE, THREE)
    again = {**THREE, "host": "smtp.gmail.com", "preset": "fastmail"}
    assert web.post(PAGE, {**again, "password": ""}).status_code == 400  # the password belongs to the other one
    web.post(PAGE, again)
    row = MailSettings.load_row()
    assert (row.host, row.port, row.security) == ("smtp.fastmail.com", 465, "tls")


@pytest.mark.parametrize("key", PROVIDERS)
def test_chosen_provider_shows_its_server_and_what_it_needs(web, key):
    provider = PROVIDERS[key]
    page = web.get(PAGE, {"part": "provider", "preset": key}, headers={"HX-Request": "true"}).content.decode()
    assert "<form" not in page
    assert str(provider.needs) in page
    assert f'value="{provider.host}"' in page or not provider.host
    assert provider_of(provider.host) in (key, "")


def test_box_address_is_taken_from_the_request(web):
    assert 'value="http://testserver"' in web.get(PAGE).content.decode()
    MailSettings.objects.create(pk=1, address="https://nas.example")
    assert 'value="https://nas.example"' in web.get(PAGE).content.decode()


def test_test_without_a_way_to_send_is_refused(web, calm):
    reply = web.post(PAGE, {**USUAL, "preset": "", "test": "1"})
    assert reply.status_code == 400
    assert codes_of_form(reply) == ["nothing-to-test"]
    assert not Message.objects.exists()


def test_mail_without_a_recipient_is_refused(web, calm):
    reply = web.post(PAGE, {**THREE, "critical": " "})
    assert codes_of_form(reply) == ["mail-recipient-missing"]


@pytest.mark.parametrize(
    ("field", "text", "code"),
    [
        ("critical", "anna", "mail-address-invalid"),
        ("sender", "anna", "mail-address-invalid"),
        ("user", "anna\x07@example.org", "invisible-characters"),
        ("security", "none", "mail-password-unencrypted"),
        ("webhook", "ntfy.sh/attic", "link-not-web"),
        ("webhook", "https://[ntfy", "link-malformed"),
        ("address", "https://anna:secret@nas.example", "link-with-password"),
    ],
)
def test_wrong_answer_is_refused_at_its_field(web, calm, field, text, code):
    reply = web.post(PAGE, {**THREE, "preset": "own", "host": "mail.example", field: text})
    assert reply.status_code == 400
    assert code in codes_of_form(reply, field)
    assert not MailSettings.objects.exists()


def test_webhook_alone_is_tested(web, calm):
    web.post(PAGE, {**USUAL, "preset": "", "webhook": "https://ntfy.sh/attic", "test": "1"})
    assert Message.objects.get().way == "webhook"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("hello", "certificate-invalid"),
        ("-----BEGIN CERTIFICATE-----\nxx\n-----END CERTIFICATE-----", "certificate-invalid"),
        ("-----BEGIN PRIVATE KEY-----", "certificate-private"),
    ],
)
def test_what_is_no_certificate_is_refused(web, calm, text, code):
    reply = web.post(PAGE, {**THREE, "authority": text})
    assert codes_of_form(reply) == [code]
    assert not MailSettings.objects.exists()


def test_result_appears_by_itself_and_asking_ends_with_it(web, calm):
    web.post(PAGE, {**THREE, "test": "1"})
    asks = {"HX-Request": "true"}
    waiting = web.get(PAGE, headers=asks)
    assert "Sending the test mail" in waiting.content.decode()
    assert "every 1s" in waiting.content.decode()
    Message.objects.update(state="sent", answer="The mail server accepted it.")
    ended = web.get(PAGE, headers=asks)
    assert ended.status_code == 286  # htmx stops asking
    assert "The mail server accepted it." in ended.content.decode()


MAIL = MailSettings(host="smtp.gmail.com", port=587, user="box@gmail.com")
CASES = [
    (smtplib.SMTPAuthenticationError(535, b"5.7.8 Username and Password not accepted"), MAIL, "app password"),
    (smtplib.SMTPAuthenticationError(535, b"5.7.8 wrong"), MailSettings(host="mail.example"), "Type both again"),
    (
        smtplib.SMTPAuthenticationError(534, b"5.7.9 Application-specific password required"),
        MailSettings(host="mail.example"),
        "app password",
    ),
    (
        smtplib.SMTPAuthenticationError(535, b"5.7.139 Authentication unsuccessful, basic authentication is disabled."),
        MAIL,
        "another provider",
    ),
    (socket.gaierror(-2, "Name or service not known"), MAIL, "was not found"),
    (ConnectionRefusedError(111, "Connection refused"), MAIL, "port"),
    (TimeoutError("timed out"), MAIL, "blocks it"),
    (ssl.SSLError(1, "[SSL: WRONG_VERSION_NUMBER] wrong version number"), MAIL, "encryption"),
    (smtplib.SMTPNotSupportedError("STARTTLS extension not supported by server."), MAIL, "encryption"),
    (smtplib.SMTPSenderRefused(550, b"5.7.1 not yours", "x@example.org"), MAIL, "sender"),
    (
        smtplib.SMTPRecipientsRefused({"anna@example.org": (550, b"no such user")}),
        MAIL,
        "anna@example.org: 550 no such user",
    ),
    (smtplib.SMTPServerDisconnected("Connection unexpectedly closed"), MAIL, "unexpectedly closed"),
]


@pytest.mark.parametrize(("problem", "mail", "advice"), CASES, ids=lambda one: type(one).__name__)
def test_usual_failure_says_what_to_do(problem, mail, advice):
    text = mail_problems.explain_problem(problem, mail)
    assert advice in text
    assert len(text) <= 500  # what a row stores


def test_untrusted_certificate_says_that_nothing_was_sent():
    problem = ssl.SSLCertVerificationError(1, "certificate verify failed")
    problem.verify_message = "self-signed certificate"
    text = mail_problems.explain_problem(problem, MAIL)
    assert "certificate is not valid: self-signed certificate. Nothing was sent to it." in text
    assert not mail_problems.is_unreachable(problem)


def test_failed_test_names_the_cause_on_the_page(web, calm):
    outbox.queue_test("mail", timezone.now())
    Message.objects.update(state="given-up", answer="The mail server refused the user name or password.")
    page = web.get(PAGE).content.decode()
    assert "The test mail was not sent." in page
    assert "refused the user name or password" in page


def test_several_recipients_are_separated_by_commas(web, calm):
    web.post(PAGE, {**THREE, "critical": "anna@example.org, ben@example.org"})
    assert MailSettings.load_row().recipients_for("critical") == ["anna@example.org", "ben@example.org"]
    assert 'value="anna@example.org, ben@example.org"' in web.get(PAGE).content.decode()
