"""What goes out: to whom, in which words, once; and what becomes of it while the server is down, slow or refuses."""

from __future__ import annotations

import smtplib
import socket
import stat
from datetime import UTC, datetime, timedelta
from email.message import EmailMessage
from typing import Any

import pytest
from django.conf import settings

from appliance.alerts.fault import Fault
from web.alerts import outbox, reconcile, smtp_password
from web.alerts.models import Alert, MailSettings, Message
from workers.alerts import deliver, mail_text

BOX = f"Larder {settings.BOX_NAME}: "
NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)
FAULT = Fault(
    "disk.failing",
    "ata-WDC_1",
    "Disk in bay 3 (WD20EARS …1234) is failing: 312 sectors cannot be read.",
    "312 sectors cannot be read. It belongs to the pool tank.",
    mark=312,
)


class Server:
    """A mail server of the test: takes mail, or raises what it is told to."""

    def __init__(self) -> None:
        self.taken: list[EmailMessage] = []
        self.problem: Exception | None = None
        self.closed = ""  # a mailbox that refuses everything
        self.signed_in: list[tuple[str, str]] = []
        self.secured = False

    def __call__(self, *_args: Any, **_more: Any) -> Server:
        if isinstance(self.problem, OSError) and not isinstance(self.problem, smtplib.SMTPException):
            raise self.problem
        return self

    def starttls(self, **_more: Any) -> None:
        self.secured = True

    def login(self, user: str, password: str) -> None:
        self.signed_in.append((user, password))

    def send_message(self, message: EmailMessage, **_more: Any) -> dict[str, Any]:
        if self.problem:
            raise self.problem
        if message["To"] == self.closed:
            raise smtplib.SMTPRecipientsRefused({self.closed: (550, b"mailbox closed")})
        self.taken.append(message)
        return {}

    def quit(self) -> None: ...

    def close(self) -> None: ...


@pytest.fixture
def smtp(monkeypatch) -> Server:
    found = Server()
    monkeypatch.setattr(smtplib, "SMTP", found)
    monkeypatch.setattr(smtplib, "SMTP_SSL", found)
    return found


@pytest.fixture(autouse=True)
def somebody_is_told() -> None:
    MailSettings.objects.create(
        pk=1,
        host="mail.example",
        user="box@example.org",
        critical="anna@example.org",
        warning="anna@example.org",
        notice="anna@example.org",
        address="https://larder.local",
    )
    smtp_password.store_password("a secret of its own")


def body(message: EmailMessage, kind: str) -> str:
    part = message.get_body((kind,))
    assert part is not None
    return str(part.get_content())


def test_a_failing_disk_is_one_mail_that_says_what_and_what_to_do(smtp):
    reconcile.reconcile_alerts([FAULT], NOW)
    for minute in range(3):
        deliver.send_due(NOW + timedelta(minutes=minute))
    (message,) = smtp.taken
    assert message["Subject"] == f"{BOX}Disk in bay 3 (WD20EARS …1234) is failing: 312 sectors cannot be read"
    assert message["To"] == "anna@example.org"
    link = f"https://larder.local/alerts/{Alert.objects.get().pk}/"
    for kind in ("plain", "html"):
        for words in ("312 sectors", "tank", "What it means", "What to do", link):
            assert words in body(message, kind), kind
    assert smtp.secured
    assert smtp.signed_in == [("box@example.org", "a secret of its own")]


def test_its_end_is_one_mail_too(smtp):
    reconcile.reconcile_alerts([FAULT], NOW)
    deliver.send_due(NOW)
    for minute in (1, 12):
        reconcile.reconcile_alerts([], NOW + timedelta(minutes=minute))
        deliver.send_due(NOW + timedelta(minutes=minute))
    raised, cleared = (str(message["Subject"]) for message in smtp.taken)
    assert raised.startswith(f"{BOX}Disk in bay 3")
    assert cleared.startswith(f"{BOX}resolved: Disk in bay 3")


PROBLEMS = [
    ConnectionRefusedError("Connection refused"),
    TimeoutError("timed out"),
    smtplib.SMTPAuthenticationError(535, b"5.7.8 wrong password"),
    smtplib.SMTPResponseException(451, b"4.7.1 greylisted, try again later"),
    smtplib.SMTPRecipientsRefused({"anna@example.org": (550, b"no such user")}),
    smtplib.SMTPServerDisconnected("Connection unexpectedly closed"),
]


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: type(problem).__name__)
def test_while_the_server_fails_a_message_waits_longer_each_time_and_then_goes_out_once(smtp, problem):
    reconcile.reconcile_alerts([FAULT], NOW)
    smtp.problem, at, waits = problem, NOW, []
    for _ in range(5):
        assert deliver.send_due(at) == 0
        row = Message.objects.get()
        waits.append(row.next_try - at)
        at = row.next_try
    assert waits == sorted(waits)
    assert waits[0] < waits[-1]
    assert Message.objects.get().answer
    smtp.problem = None
    deliver.send_due(at)
    deliver.send_due(at + timedelta(days=1))
    assert len(smtp.taken) == 1
    assert Message.objects.get().state == "sent"


def test_the_servers_own_words_are_kept(smtp):
    smtp.problem = smtplib.SMTPAuthenticationError(535, b"5.7.8 wrong password")
    outbox.queue_test("mail", NOW)
    deliver.send_due(NOW)
    row = Message.objects.get()
    assert row.state == "given-up"
    assert "The mail server answered: 535 5.7.8 wrong password" in row.answer


def test_mail_that_does_not_go_out_for_long_is_a_fault_and_is_given_up_after_days(smtp):
    reconcile.reconcile_alerts([FAULT], NOW)
    smtp.problem = ConnectionRefusedError("Connection refused")
    deliver.send_due(NOW)
    assert deliver.delivery_error(NOW + timedelta(minutes=5)) == ""
    assert "Connection refused" in deliver.delivery_error(NOW + timedelta(hours=1))
    at = NOW
    while Message.objects.get().state == "waiting":
        at = Message.objects.get().next_try
        deliver.send_due(at)
    assert Message.objects.get().state == "given-up"
    assert timedelta(days=3) < at - NOW < timedelta(days=3, hours=5)
    assert "Connection refused" in deliver.delivery_error(at)


def test_a_clock_that_steps_forward_gives_no_message_up(smtp):
    """A box without a battery fails once before the network sets its clock."""
    reconcile.reconcile_alerts([FAULT], NOW)
    smtp.problem = ConnectionRefusedError("Connection refused")
    deliver.send_due(NOW)
    later = NOW + timedelta(days=10)
    deliver.send_due(later)
    assert Message.objects.get().state == "waiting"
    assert "Connection refused" in deliver.delivery_error(later)
    smtp.problem = None
    deliver.send_due(later + timedelta(hours=1))
    assert len(smtp.taken) == 1
    assert deliver.delivery_error(later + timedelta(hours=1)) == ""


def queue(event: str, severity: str, at: datetime, way: str = "mail") -> Message:
    """A letter that is due: of an alert of this severity, else the weekly report or a test."""
    alert = None
    if severity:
        alert = Alert.objects.create(
            kind="disk.failing", subject=f"{at}", severity=severity, summary="x", first_seen=at
        )
    key = f"{event}-{severity}-{way}-{at}"
    return Message.objects.create(key=key, alert=alert, event=event, way=way, made=at, next_try=at)


@pytest.mark.parametrize(
    ("event", "severity", "fails"),
    [
        ("raised", "critical", False),
        ("raised", "warning", True),
        ("raised", "notice", True),
        ("weekly", "", True),
        ("test", "", True),
    ],
)
def test_mail_of_one_severity_that_is_refused_is_told_though_other_mail_goes_out(smtp, event, severity, fails):
    MailSettings.objects.update(critical="closed@example.org")
    smtp.closed = "closed@example.org"
    queue("raised", "critical", NOW)
    deliver.send_due(NOW)
    assert smtp.taken == []
    MailSettings.objects.update(critical="ben@example.org")
    later = NOW + timedelta(seconds=30)
    queue(event, severity, later)
    deliver.send_due(later)
    assert len(smtp.taken) == 1
    assert ("mailbox closed" in deliver.delivery_error(NOW + timedelta(hours=1))) == fails


def test_a_refused_letter_is_told_also_when_a_later_one_by_another_way_waits(smtp, monkeypatch):
    MailSettings.objects.update(webhook="https://hook.example/topic")
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_args, **_more: [(0, 0, 0, "", ("192.168.1.5", 443))])
    smtp.closed = "anna@example.org"
    queue("raised", "critical", NOW)
    queue("raised", "critical", NOW + timedelta(seconds=1), "webhook")
    deliver.send_due(NOW + timedelta(seconds=1))
    assert "inside your own network" in deliver.delivery_error(NOW + timedelta(hours=1))
    MailSettings.objects.update(webhook="")
    assert "mailbox closed" in deliver.delivery_error(NOW + timedelta(hours=1))


@pytest.mark.parametrize("emptied", ["host", "critical"])
def test_mail_that_is_no_longer_sent_does_not_fail(smtp, emptied):
    smtp.closed = "anna@example.org"
    queue("raised", "critical", NOW)
    deliver.send_due(NOW)
    assert deliver.delivery_error(NOW + timedelta(hours=1))
    MailSettings.objects.update(**{emptied: ""})
    assert deliver.delivery_error(NOW + timedelta(hours=1)) == ""


@pytest.mark.parametrize("to", ["notice", "critical"])
def test_the_report_is_excused_by_later_mail_to_its_recipients(smtp, to):
    """Without recipients of notices it goes to those of critical alerts."""
    if to == "critical":
        MailSettings.objects.update(notice="")
    smtp.closed = "anna@example.org"
    queue("weekly", "", NOW)
    deliver.send_due(NOW)
    assert deliver.delivery_error(NOW + timedelta(hours=1))
    smtp.closed = ""
    later = NOW + timedelta(seconds=30)
    queue("raised", to, later)
    deliver.send_due(later)
    assert deliver.delivery_error(NOW + timedelta(hours=1)) == ""


def test_a_worker_that_died_while_sending_does_not_lose_the_message(smtp):
    reconcile.reconcile_alerts([FAULT], NOW)
    Message.objects.update(state="sending", next_try=NOW)
    deliver.send_due(NOW + timedelta(minutes=1))
    assert smtp.taken == []
    deliver.send_due(NOW + timedelta(minutes=11))
    assert len(smtp.taken) == 1


@pytest.mark.parametrize("state", ["waiting", "sending"])
def test_a_clock_that_was_years_ahead_holds_nothing_back(smtp, state):
    reconcile.reconcile_alerts([FAULT], NOW + timedelta(days=1500))
    Message.objects.update(state=state)
    assert deliver.has_waiting(NOW)
    deliver.send_due(NOW)
    assert len(smtp.taken) == 1


def test_a_notice_waits_for_its_hour_all_the_same(smtp):
    reconcile.reconcile_alerts([Fault("pool.rebuilt", "1", "tank was rebuilt.")], NOW)
    assert not deliver.has_waiting(NOW)


def test_notices_of_a_day_are_one_mail(smtp):
    reconcile.reconcile_alerts([Fault("pool.full80", str(guid), f"pool{guid} is 81 % full.") for guid in range(3)], NOW)
    deliver.send_due(NOW)
    assert smtp.taken == []
    deliver.send_due(NOW + timedelta(days=1))
    (message,) = smtp.taken
    assert str(message["Subject"]).startswith(f"{BOX}3 notices")


def test_no_password_goes_over_a_plain_connection(smtp):
    MailSettings.objects.update(security="none")
    outbox.queue_test("mail", NOW)
    deliver.send_due(NOW)
    assert smtp.signed_in == []
    assert "unencrypted" in Message.objects.get().answer


def test_what_a_disk_calls_itself_makes_no_header_and_no_markup(smtp):
    bad = Fault("disk.failing", "x", "Disk in bay 3 (<script>x</script>\r\nBcc: evil@example.org) is failing.")
    reconcile.reconcile_alerts([bad], NOW)
    deliver.send_due(NOW)
    (message,) = smtp.taken
    assert message["Bcc"] is None
    assert "\n" not in str(message["Subject"])
    assert "<script>" not in body(message, "html")


def test_the_password_is_in_a_file_of_its_own_that_only_larder_can_read():
    assert stat.S_IMODE(smtp_password.password_file().stat().st_mode) == 0o600
    assert "a secret of its own" not in str(list(MailSettings.objects.values()))


@pytest.mark.parametrize(
    ("address", "private", "refused"),
    [
        ("93.184.216.34", False, False),
        ("192.168.1.5", False, True),
        ("10.0.0.1", False, True),
        ("fd00::1", False, True),
        ("100.64.0.1", False, True),
        ("::ffff:192.168.1.5", False, True),
        ("192.168.1.5", True, False),
        ("127.0.0.1", True, True),
        ("::ffff:127.0.0.1", True, True),
        ("169.254.169.254", True, True),
        ("64:ff9b::c0a8:105", False, True),  # 192.168.1.5, as translated for IPv6
        ("2002:c0a8:105::1", False, True),
        ("192.168.1.77", True, True),  # the box's own
        ("0.0.0.0", True, True),  # an address to be refused
    ],
)
def test_a_webhook_leads_inside_only_where_that_is_allowed_and_never_to_the_box_itself(
    monkeypatch, address, private, refused
):
    asked = []

    def look_up(host: str, port: int, **_more: Any) -> list[Any]:
        asked.append(host)
        return [(0, 0, 0, "", (address, port))]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    monkeypatch.setattr(settings, "ALLOWED_HOSTS", ["larder.local", "192.168.1.77", "[fe80::1]"])
    if refused:
        with pytest.raises(deliver.NotSent):
            deliver.public_address("hook.example", 443, private=private)
    else:
        assert deliver.public_address("hook.example", 443, private=private) == (address, 443)
    assert asked == ["hook.example"]


def test_a_webhook_that_is_refused_is_logged_once_and_nothing_is_lost(monkeypatch, caplog):
    MailSettings.objects.update(host="", webhook="http://hook.example/topic")
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_args, **_more: [(0, 0, 0, "", ("192.168.1.5", 80))])
    reconcile.reconcile_alerts([FAULT], NOW)
    for hour in range(5):
        deliver.send_due(NOW + timedelta(hours=5 * hour))
    assert len([line for line in caplog.messages if "inside your own network" in line]) == 1
    assert (Message.objects.get().state, Message.objects.get().tries) == ("waiting", 5)


def test_a_webhook_is_connected_to_the_address_that_was_looked_up(monkeypatch):
    MailSettings.objects.update(host="", webhook="http://hook.example/topic")
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_args, **_more: [(0, 0, 0, "", ("93.184.216.34", 80))])
    reached = []

    def connect(target: tuple[str, int], *_more: Any) -> None:
        reached.append(target)
        raise ConnectionRefusedError("Connection refused")

    monkeypatch.setattr(socket, "create_connection", connect)
    reconcile.reconcile_alerts([FAULT], NOW)
    deliver.send_due(NOW)
    assert reached == [("93.184.216.34", 80)]
    assert "Connection refused" in Message.objects.get().answer


def test_a_subject_stays_short():
    alert = Alert(kind="disk.failing", summary="x" * 400)
    assert len(mail_text.subject_of(alert, "cleared", "attic")) < 200
