"""Send waiting messages by mail and webhook. Failed attempts are repeated with growing delays for three days.

A message is claimed by a conditional update before anything is sent. A worker that dies between the server's answer and
the row leaves it "being sent"; it is then sent again with the same Message-ID, so that mail programs show one.
"""

from __future__ import annotations

import http.client
import ipaddress
import logging
import smtplib
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext

from appliance.errors import explain_error
from appliance.message import Message, join_messages, shorten
from web.alerts import smtp_password
from web.alerts.models import Alert, MailSettings
from web.alerts.models import Message as Letter
from web.database import is_unusable
from web.inventory import store
from web.language import in_language, language_of_box
from web.said import said_in
from workers import guard
from workers.alerts import mail_problems, mail_text, weekly_report
from workers.celery import app

log = logging.getLogger(__name__)
SECONDS = 30  # for one answer of a server
FIRST_WAIT, LONGEST_WAIT = timedelta(minutes=1), timedelta(hours=4)
GIVE_UP = timedelta(days=3)
FEWEST_TRIES = 20  # before giving up; three days are about 25, fewer mean that the clock stepped or the box was off
STUCK = timedelta(minutes=10)
AT_ONCE = 20
LONGEST_ANSWER = 500  # letters
FURTHEST = timedelta(hours=26)  # longest wait; a later time was stored while the clock was wrong
FAILING_AFTER = timedelta(minutes=30)


_delivering = threading.Lock()


class NotSent(Exception):
    """Why a message was not sent, in the server's words where there are any."""

    def __init__(self, text: str) -> None:
        self.text = text
        super().__init__(str(text))


class ReceiverUnreachable(NotSent):
    """The server did not answer, hung or closed the connection, so other messages do not try it now."""


@app.task(name="workers.deliver")
def deliver_messages() -> None:
    """Send the due messages, one call at a time: a server that hangs must not hold all threads."""
    if not _delivering.acquire(blocking=False):
        return
    try:
        send_due()
    finally:
        _delivering.release()


def send_due(now: datetime | None = None) -> int:
    """Send the due messages; returns how many were sent."""
    now = now or timezone.now()
    stuck = Q(next_try__lt=now - STUCK) | Q(next_try__gt=now + STUCK)
    Letter.objects.filter(stuck, state="sending").update(state="waiting")
    sent, away, odd = 0, set(), []
    rows = list(Letter.objects.filter(is_due(now), state="waiting").select_related("alert")[:AT_ONCE])
    for group in group_messages(rows):
        if group[0].way in away:
            continue
        mine = [
            row
            for row in group
            if Letter.objects.filter(pk=row.pk, state="waiting").update(state="sending", next_try=now)
        ]
        try:
            sent += send_group(mine, now) if mine else 0
        except ReceiverUnreachable:
            away.add(group[0].way)  # its other messages are tried at the next tick
        except Exception as problem:  # one message that fails stops no other
            if is_unusable(problem):
                raise
            log.exception("message %s could not be written", group[0].key)
            put_off(mine, now, explain_error(problem))
            odd.append(join_messages([group[0].key, explain_error(problem)], ": "))
    if rows:
        store.touch("alerts")
    if odd:
        raise guard.PartlyFailed(odd)
    return sent


def is_due(now: datetime) -> Q:
    return Q(next_try__lte=now) | Q(next_try__gt=now + FURTHEST)


def group_messages(rows: list[Letter]) -> Iterator[list[Letter]]:
    """Group messages that are not urgent: one mail for all with the same recipients."""
    digest: dict[tuple[str, str], list[Letter]] = {}
    for row in rows:
        if row.way == "mail" and row.alert and row.alert.severity == "notice":
            digest.setdefault((row.way, row.alert.severity), []).append(row)
        else:
            yield [row]
    yield from digest.values()


def send_group(rows: list[Letter], now: datetime) -> int:
    """Send these together; how many went out. Raises ReceiverUnreachable, with the rows put off
    like after any other failure."""
    mail = MailSettings.load_row()
    try:
        with in_language(language_of_box()):
            answer = by_mail(rows, mail) if rows[0].way == "mail" else by_webhook(rows[0], mail)
    except NotSent as problem:
        put_off(rows, now, problem.text)
        if str(problem)[:LONGEST_ANSWER] != rows[0].answer:  # the same answer for three days is one line
            log.warning("a message did not go out: %s", problem)
        if isinstance(problem, ReceiverUnreachable):
            raise
        return 0
    Letter.objects.filter(pk__in=[row.pk for row in rows]).update(
        state="sent", tries=rows[0].tries + 1, **stored_answer(answer)
    )
    return len(rows)


def put_off(rows: list[Letter], now: datetime, answer: str) -> None:
    """Schedule another attempt with a growing delay; give up after three days of attempts."""
    for row in rows:
        tries = row.tries + 1
        over = (now - row.made > GIVE_UP and tries >= FEWEST_TRIES) or row.event == "test"
        wait = min(FIRST_WAIT * 2 ** min(tries - 1, 12), LONGEST_WAIT)
        Letter.objects.filter(pk=row.pk).update(
            state="given-up" if over else "waiting", tries=tries, next_try=now + wait, **stored_answer(answer)
        )


def stored_answer(answer: str) -> dict[str, Any]:
    """The columns that hold an answer."""
    text = shorten(answer, LONGEST_ANSWER)
    return {"answer": text, "said": said_in(text)}


def delivery_error(now: datetime) -> str:
    """The server's last answer where messages have failed for a while; empty where they are sent.

    Each severity has its own recipients, so only a later message of the same way and
    severity shows that it works again.
    """
    mail = MailSettings.load_row()
    recent = Q(state__in=["given-up", "sent"], made__gt=now - 2 * GIVE_UP)
    tried = Letter.objects.exclude(event="test").filter(recent | Q(state="waiting"), tries__gt=0)
    works: set[tuple[str, str]] = set()
    for row in tried.select_related("alert"):  # the newest first
        severity = row.alert.severity if row.alert else mail.report_severity
        if row.state == "sent":
            works.add((row.way, severity))
        elif row.made < now - FAILING_AFTER and row.way in mail.ways_for(severity) and (row.way, severity) not in works:
            return row.answer
    return ""


# --- mail -----------------------------------------------------------------------------------------------------
def by_mail(rows: list[Letter], mail: MailSettings) -> str:
    """Send one mail; the server's answer. Raises NotSent."""
    first = rows[0]
    to = mail.recipients_for(first.alert.severity) if first.alert else mail.for_report
    if not mail.host or not to:
        raise NotSent(Message("There are no recipients."))
    sender = mail.sender or mail.user
    box, key = str(settings.BOX_NAME), first.key
    told: list[tuple[Alert, str]] = [(row.alert, row.event) for row in rows if row.alert]
    try:
        if first.event == "weekly":
            title, parts = weekly_report.build_report(timezone.now())
            message = mail_text.build_mail(
                title, mail_text.as_text(parts), mail_text.as_page(parts), box=box, sender=sender, to=to, key=key
            )
        elif told:
            message = mail_text.build_alert_mail(
                told, box=box, base=mail.address.rstrip("/"), sender=sender, to=to, key=key
            )
        else:
            said = gettext("This is the test that you asked for. Mail from {box} reaches you.")
            text = said.format(box=mail_text.plain_text(box))
            message = mail_text.build_mail(
                mail_text.name_subject(box, gettext("test")),
                text,
                mail_text.as_page([("", text)]),
                box=box,
                sender=sender,
                to=to,
                key=key,
            )
        with mail_server(mail) as smtp:
            refused = smtp.send_message(message, from_addr=sender, to_addrs=to)
    except (OSError, smtplib.SMTPException, ValueError) as problem:
        away = mail_problems.is_unreachable(problem)
        raise (ReceiverUnreachable if away else NotSent)(mail_problems.explain_problem(problem, mail)) from problem
    if refused:
        answers = "; ".join(
            f"{who}: {code} {mail_problems.response_text(text)}" for who, (code, text) in refused.items()
        )
        return Message("Accepted, but not for: {answers}", answers=answers)
    return Message("The mail server accepted it.")


@contextmanager
def mail_server(mail: MailSettings) -> Iterator[smtplib.SMTP]:
    """Connect to the mail server and sign in where there is a user. Sends no password over a plain connection."""
    trust = ssl.create_default_context()
    if mail.authority:
        trust.load_verify_locations(cadata=mail.authority)
    smtp: smtplib.SMTP
    if mail.security == "tls":
        smtp = smtplib.SMTP_SSL(mail.host, mail.port, timeout=SECONDS, context=trust)
    else:
        smtp = smtplib.SMTP(mail.host, mail.port, timeout=SECONDS)
    try:
        if mail.security == "starttls":
            smtp.starttls(context=trust)
        if mail.user:
            if mail.security == "none":
                raise NotSent(Message("A password is not sent over an unencrypted connection. Choose TLS or STARTTLS."))
            smtp.login(mail.user, smtp_password.read_password())
        yield smtp
        with suppress(OSError, smtplib.SMTPException):  # the mail is accepted, so a lost connection does no harm
            smtp.quit()
    finally:
        smtp.close()


# --- webhook --------------------------------------------------------------------------------------------------
def by_webhook(row: Letter, mail: MailSettings) -> str:
    """Post a message in ntfy's format: headers for title and priority, the text as body. Raises NotSent.

    The name is resolved once and the connection uses that address, so a changed DNS answer cannot redirect it.
    Redirects are not followed.
    """
    parts = urlsplit(mail.webhook)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise NotSent(Message("The address of the webhook is not valid."))
    target = public_address(
        parts.hostname, parts.port or (443 if parts.scheme == "https" else 80), private=mail.webhook_private
    )
    alert = row.alert
    box = str(settings.BOX_NAME)
    title = mail_text.subject_of(alert, row.event, box) if alert else mail_text.name_subject(box, gettext("test"))
    text = (
        "\n\n".join(text for _head, text in mail_text.alert_paragraphs(alert, row.event) if text)
        if alert
        else gettext("This is the test that you asked for.")
    )
    head = {
        "Content-Type": "text/plain; charset=utf-8",
        "Title": title.encode("ascii", "replace").decode(),
        "Priority": "5" if alert and alert.severity == "critical" else "3",
    }
    if alert and mail.address:
        head["Click"] = mail_text.alert_address(mail.address.rstrip("/"), alert)
    connection = Pinned(parts.hostname, target, tls=parts.scheme == "https")
    try:
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        connection.request("POST", path, body=text.encode(), headers=head)
        answer = connection.getresponse()
        said = mail_problems.response_text(answer.read(300))
    except (OSError, http.client.HTTPException, ValueError) as problem:
        raise ReceiverUnreachable(
            Message("The webhook could not be reached: {problem}.", problem=str(problem) or type(problem).__name__)
        ) from problem
    finally:
        connection.close()
    if not 200 <= answer.status < 300:
        raise NotSent(Message("The webhook answered: {status} {said}", status=answer.status, said=said))
    return Message("The webhook answered: {status}", status=answer.status)


def public_address(host: str, port: int, *, private: bool) -> tuple[str, int]:
    """Resolve a name once. Raises NotSent for an address in the own network unless that is allowed."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as problem:
        raise NotSent(Message("The name {host} could not be looked up.", host=host)) from problem
    address = str(found[0][4][0])
    leads = embedded_address(address.partition("%")[0])
    own = {name.strip("[]") for name in settings.ALLOWED_HOSTS}
    if leads.is_loopback or leads.is_link_local or leads.is_multicast or leads.is_unspecified or str(leads) in own:
        raise NotSent(Message("The webhook leads to this box itself or to nowhere."))
    if not leads.is_global and not private:
        raise NotSent(
            Message("The webhook leads to an address inside your own network, which is not allowed in the settings.")
        )
    return address, port


NAT64 = ipaddress.ip_network("64:ff9b::/96")  # RFC 6052: an IPv4 address as its last four bytes


def embedded_address(address: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """The IPv4 address embedded in an IPv6 address, if there is one, else the address."""
    parsed = ipaddress.ip_address(address)
    if isinstance(parsed, ipaddress.IPv4Address):
        return parsed
    translated = ipaddress.IPv4Address(parsed.packed[12:]) if parsed in NAT64 else None
    return parsed.ipv4_mapped or parsed.sixtofour or translated or parsed


class Pinned(http.client.HTTPConnection):
    """A connection to a resolved address; the name is used for the certificate and the Host header."""

    def __init__(self, host: str, target: tuple[str, int], *, tls: bool) -> None:
        super().__init__(host, target[1], timeout=SECONDS)
        self.target, self.tls = target, tls

    def connect(self) -> None:
        self.sock = socket.create_connection(self.target, self.timeout)
        if self.tls:
            self.sock = ssl.create_default_context().wrap_socket(self.sock, server_hostname=self.host)


def has_waiting(now: datetime) -> bool:
    return Letter.objects.filter(is_due(now), state__in=["waiting", "sending"]).exists()


def has_unsent() -> bool:
    """Whether any message is still to be sent, now or later."""
    return Letter.objects.filter(state__in=["waiting", "sending"]).exists()
