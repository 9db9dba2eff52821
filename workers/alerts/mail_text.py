"""Mails about alerts: a subject that names the disk or pool, and the same content as text and HTML."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable
from email.message import EmailMessage
from email.utils import formatdate, make_msgid

from django.utils.formats import date_format
from django.utils.translation import gettext, ngettext

from appliance.schedule import box_zone
from web.alerts.models import Alert
from web.translation import text_of

LONGEST_SUBJECT = 160


def plain_text(text: str) -> str:
    """One line without invisible characters: a disk's name must not make headers."""
    letters = (letter if letter.isprintable() else " " for letter in text_of(text))
    return re.sub(r"\s+", " ", "".join(letters)).strip()


def name_subject(box: str, text: str) -> str:
    """A subject that begins with the name of the box: ``Larder attic: Test``."""
    return f"Larder {plain_text(box)}: {plain_text(text).rstrip('.')[:LONGEST_SUBJECT]}"


def subject_of(alert: Alert, event: str, box: str) -> str:
    """``Larder attic: Disk in bay 3 (WD20EARS …1234) is failing``, or ``Larder attic: resolved: Disk in bay 3 …``."""
    if event == "cleared":
        return name_subject(box, gettext("resolved: {alert}").format(alert=text_of(alert.summary)))
    return name_subject(box, alert.summary)


def alert_paragraphs(alert: Alert, event: str) -> list[tuple[str, str]]:
    """Headings and texts in reading order."""
    kind = alert.kind_info
    if event == "cleared":
        began = alert.first_seen.astimezone(box_zone())
        lasted = gettext("It began on {day} at {time}.").format(day=date_format(began, "d F Y"), time=f"{began:%H:%M}")
        return [("", gettext("Resolved: {alert}").format(alert=plain_text(alert.summary))), ("", lasted)]
    return [
        ("", plain_text(alert.summary)),
        ("", plain_text(alert.detail)),
        (gettext("What it means"), text_of(kind.meaning)),
        (gettext("What to do"), text_of(kind.todo)),
    ]


def alert_address(base: str, alert: Alert) -> str:
    return f"{base}/alerts/{alert.pk}/" if base else ""


def build_alert_mail(
    alerts: Iterable[tuple[Alert, str]], *, box: str, base: str, sender: str, to: list[str], key: str
) -> EmailMessage:
    """A mail about one alert or a day's alerts. ``key`` gives every retry the same Message-ID."""
    alerts = list(alerts)
    title = subject_of(*alerts[0], box) if len(alerts) == 1 else name_subject(box, count_notices(len(alerts)))
    texts, pages = [], []
    for alert, event in alerts:
        told = [(head, text) for head, text in alert_paragraphs(alert, event) if text]
        texts.append(as_text(told))
        pages.append(as_page(told))
        if link := alert_address(base, alert):
            texts[-1] += f"\n\n{gettext('See it and continue:')}\n{link}"
            pages[-1] += f'<p><a href="{html.escape(link)}">{html.escape(text_of(alert.kind_info.button))}</a></p>'
    return build_mail(title, "\n\n----\n\n".join(texts), "<hr>".join(pages), box=box, sender=sender, to=to, key=key)


def count_notices(count: int) -> str:
    return ngettext("{count} notice", "{count} notices", count).format(count=count)


def as_text(parts: list[tuple[str, str]]) -> str:
    return "\n\n".join(f"{head}:\n{text}" if head else text for head, text in parts)


def as_page(parts: list[tuple[str, str]]) -> str:
    def lines(text: str) -> str:
        return html.escape(text).replace("\n", "<br>")

    return "".join(
        f"<h3>{html.escape(head)}</h3><p>{lines(text)}</p>" if head else f"<p><strong>{lines(text)}</strong></p>"
        for head, text in parts
    )


def build_mail(title: str, text: str, page: str, *, box: str, sender: str, to: list[str], key: str) -> EmailMessage:
    """A mail with text and HTML. Headers have no line breaks, because ``plain_text`` removed them."""
    message = EmailMessage()
    message["Subject"] = title
    message["From"] = sender
    message["To"] = ", ".join(to)
    message["Date"] = formatdate(usegmt=True)
    domain = re.sub(r"[^A-Za-z0-9.-]", "", sender.rpartition("@")[2]) or "larder.invalid"
    message["Message-ID"] = f"<{re.sub(r'[^A-Za-z0-9-]', '-', key)}.larder@{domain}>" if key else make_msgid()
    message["Auto-Submitted"] = "auto-generated"
    message["X-Larder-Box"] = plain_text(box)
    signed = gettext("Larder on {box}").format(box=plain_text(box))
    message.set_content(f"{text}\n\n-- \n{signed}\n")
    message.add_alternative(
        "<!doctype html><html><body "
        f'style="font-family:sans-serif">{page}<p><small>{html.escape(signed)}</small></p></body></html>',
        subtype="html",
    )
    return message
