"""Mail critical faults without the database, where no alert can be stored: each once per worker process."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable

from django.conf import settings
from django.utils import timezone

from appliance.alerts.fault import Fault
from web.alerts import reconcile
from web.alerts.models import Alert, MailSettings, Message
from web.language import in_language, language_of_box
from workers import background, guard
from workers.alerts import deliver, mail_text

log = logging.getLogger(__name__)
_told: set[tuple[str, str]] = set()
_known: list[tuple[MailSettings, str]] = []  # the settings, and the language of the box


def remember_settings() -> None:
    """Remember the mail settings and the language while they can be read."""
    _known[:] = [(MailSettings.load_row(), language_of_box())]


def latest_settings() -> tuple[MailSettings, str] | None:
    try:
        remember_settings()
    except Exception as problem:
        guard.log_failure("reading the mail settings", problem)
    return _known[0] if _known else None


def mail_critical_faults(faults: Iterable[Fault]) -> None:
    """Mail critical faults that were not sent yet, in a background thread."""
    severities = known_severities()
    new = [
        one for one in faults if severities.get(one.kind) == "critical" and one.key not in _told and not was_sent(one)
    ]
    if new:
        background.start_thread("run-straight-mail", lambda: send_mails(new))


def known_severities() -> dict[str, str]:
    try:
        return reconcile.current_severities()
    except Exception:
        return reconcile.usual_severities()


def was_sent(fault: Fault) -> bool:
    """Whether a message about the fault was sent; False where that cannot be read."""
    try:
        row = (
            Alert.objects.exclude(state=Alert.State.CLEARED)
            .filter(kind=fault.kind, subject=fault.subject[:300])
            .first()
        )
        return row is not None and Message.objects.filter(alert=row, event="raised", state="sent").exists()
    except Exception:
        return False


def send_mails(faults: list[Fault]) -> None:
    """Send one mail for each fault. A mail that fails is retried at the next evaluation."""
    mail_settings, code = latest_settings() or (MailSettings(), "")
    if not mail_settings.host or not (to := mail_settings.recipients_for("critical")):
        log.error("critical and told to nobody: %s", "; ".join(fault.summary for fault in faults))
        return
    guard.for_each(faults, lambda fault: send_one(fault, mail_settings, code, to), lambda fault: fault.summary)


def send_one(fault: Fault, mail_settings: MailSettings, code: str, to: list[str]) -> None:
    now = timezone.now()
    alert = Alert(
        kind=fault.kind,
        subject=fault.subject,
        severity="critical",
        summary=fault.summary,
        detail=fault.detail,
        first_seen=now,
    )
    key = hashlib.sha256(f"{fault.kind} {fault.subject} {now.timestamp()}".encode()).hexdigest()[:20]
    sender = mail_settings.sender or mail_settings.user
    # Without a link: an alert that is not stored has no page.
    with in_language(code):
        letter = mail_text.build_alert_mail(
            [(alert, "raised")], box=str(settings.BOX_NAME), base="", sender=sender, to=to, key=f"straight-{key}"
        )
    with deliver.mail_server(mail_settings) as smtp:
        smtp.send_message(letter, from_addr=sender, to_addrs=to)
    _told.add(fault.key)
