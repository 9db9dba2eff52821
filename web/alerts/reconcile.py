"""Reconcile alerts with faults: one row from a fault's beginning to its end, and one message for each."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from datetime import datetime
from functools import partial

from django.db import transaction

from appliance.alerts.alert_kind import SEVERITY_WORDS, AlertKind
from appliance.alerts.fault import Fault
from appliance.alerts.kinds import KINDS
from appliance.formatting import names_text
from appliance.message import Message, join_messages
from web import row_retention
from web.alerts import outbox
from web.alerts.models import LARGEST, Alert, AlertNote, KindSeverity, MailSettings
from web.database import is_unusable
from web.said import said_in

log = logging.getLogger(__name__)
SAID_BY_ITSELF = {"disk.failing", "disk.watch", "disk.warm"}


def open_keys() -> frozenset[tuple[str, str]]:
    """Kind and subject of what is not cleared."""
    return frozenset(Alert.objects.exclude(state=Alert.State.CLEARED).values_list("kind", "subject"))


def reconcile_alerts(
    found: Iterable[Fault],
    now: datetime,
    *,
    unread: Iterable[str] = (),
    unheard: Iterable[str] = (),
    missing: Iterable[str] = (),
    complete: bool = True,
) -> bool:
    """Open, update and clear alerts to match the faults; whether anything changed.

    Nothing clears whose source could not be read (``unread``), of a disk that has said nothing of itself
    (``unheard``), of a pool that is not there (``missing``, its guid), nor where a rule broke (not ``complete``): not
    to see a fault is not its end. Rows and messages change together or not at all, so a crash loses none and doubles
    none. One alert that cannot be written stops no other: PartlyWritten is raised after the last. Raises
    DatabaseError where none can be written.
    """
    wanted = {(fault.kind, fault.subject[:300]): fault for fault in found}
    unread, unheard, missing, changed = set(unread), set(unheard), set(missing), False
    odd: list[str] = []

    def alone(subject: str, change: Callable[[], bool]) -> bool:
        """Make one change in a transaction. Raises only where the whole database is unusable."""
        try:
            with transaction.atomic():
                return change()
        except Exception as problem:
            if is_unusable(problem):
                raise
            log.exception("the alert about %s could not be written", subject)
            odd.append(subject)
            return False

    with transaction.atomic():
        known = {(row.kind, row.subject): row for row in Alert.objects.exclude(state=Alert.State.CLEARED)}
        grave = current_severities()
        mail = MailSettings.load_row()
        for key, fault in wanted.items():
            row = known.get(key)
            raised = partial(raise_alert, fault, now, grave, mail)
            changed = alone(fault.subject, partial(update_alert, row, fault, now, mail) if row else raised) or changed
        for key, row in known.items():
            if key in wanted:
                continue
            kind = KINDS.get(row.kind)
            if is_replaced(row, kind, wanted.values()):
                clear_alert(row, now, Message("Another alert about the same took its place."))
                changed = True
            elif (
                complete
                and not (kind and kind.source in unread)
                and not (row.kind in SAID_BY_ITSELF and row.subject in unheard)
                and row.subject.partition("/")[0] not in missing
            ):
                settle = kind.settle if kind else 0
                changed = alone(row.subject, partial(maybe_clear, row, now, settle, mail)) or changed
    if odd:
        raise PartlyWritten(odd, changed=changed)
    return changed


def is_replaced(row: Alert, kind: AlertKind | None, faults: Iterable[Fault]) -> bool:
    """Whether there is a fault of another rank in the same group."""
    if kind is None or not kind.group:
        return False
    return any(fault.kind_info.group == kind.group and fault.subject == row.subject for fault in faults)


class PartlyWritten(Exception):
    """Some alerts could not be written, the others were."""

    def __init__(self, subjects: list[str], *, changed: bool) -> None:
        self.subjects, self.changed = subjects, changed
        super().__init__(names_text(subjects, 5))


def current_severities() -> dict[str, str]:
    """The severity of each kind: as chosen, else the default."""
    chosen = dict(KindSeverity.objects.values_list("kind", "severity"))
    return usual_severities() | {code: severity for code, severity in chosen.items() if code in KINDS}


def usual_severities() -> dict[str, str]:
    """The default severity of each kind."""
    return {code: kind.severity for code, kind in KINDS.items()}


def set_severity(kind: str, severity: str, now: datetime, by: str) -> None:
    """Set the severity of a kind, also of its alerts that are not cleared."""
    if severity == KINDS[kind].severity:
        KindSeverity.objects.filter(kind=kind).delete()
    else:
        KindSeverity.objects.update_or_create(kind=kind, defaults={"severity": severity})
    for row in Alert.objects.exclude(state=Alert.State.CLEARED).filter(kind=kind):
        row.severity = severity
        row.save(update_fields=["severity"])
        add_note(
            row,
            Message("Alerts of this kind are of severity “{severity}” now.", severity=SEVERITY_WORDS[severity]),
            now,
            by,
        )


def raise_alert(fault: Fault, now: datetime, grave: dict[str, str], mail: MailSettings) -> bool:
    """Open an alert. A fault that returns during its silence stays silenced."""
    last = Alert.objects.filter(kind=fault.kind, subject=fault.subject[:300]).first()
    silent = last is not None and last.is_silent(now)
    row = Alert.objects.create(
        kind=fault.kind,
        subject=fault.subject[:300],
        severity=grave[fault.kind],
        summary=fault.summary[:400],
        detail=fault.detail,
        link=fault.link,
        mark=mark_of(fault),
        said=said_in(fault.summary, fault.detail),
        first_seen=now,
        quiet_until=last.quiet_until if last and silent else None,
        quiet_reason=last.quiet_reason if last and silent else "",
    )
    add_note(row, fault.summary, now)
    if silent:
        add_note(row, join_messages([Message("Still silenced"), row.quiet_reason], ": "), now)
    outbox.queue_alert(row, "raised", now, mail)
    return True


def mark_of(fault: Fault) -> int:
    """The fault's mark, limited to what a column can hold."""
    return min(fault.mark, LARGEST)


def update_alert(row: Alert, fault: Fault, now: datetime, mail: MailSettings) -> bool:
    """The fault is still there. Words follow it; worse than when it was acknowledged, it opens again and is told again.
    When a silence has ended, what is still open is told once more."""
    over = row.quiet_until is not None and not row.is_silent(now)
    before = (row.summary, row.detail, row.gone, row.mark)
    mark = mark_of(fault)
    worse = row.state == Alert.State.ACKNOWLEDGED and mark > row.mark_seen
    if fault.summary[:400] != row.summary:
        add_note(row, fault.summary, now)
    row.summary, row.detail, row.gone, row.mark = fault.summary[:400], fault.detail, None, mark
    row.said = said_in(fault.summary, fault.detail)
    if worse:
        row.state = Alert.State.OPEN
        add_note(row, Message("It became worse, so it is open again."), now)
        outbox.queue_alert(row, "raised", now, mail, again=f"{mark}-{now:%Y%m%d%H%M%S}")
    elif over and row.state == Alert.State.OPEN:
        add_note(row, Message("The silence is over."), now)
        outbox.queue_alert(row, "raised", now, mail, again=f"{row.quiet_until:%Y%m%d%H%M%S}")
    if over:
        row.quiet_until = None
    if worse or over or (row.summary, row.detail, row.gone, row.mark) != before:
        row.save()
        return True
    return False


def maybe_clear(row: Alert, now: datetime, settle: int, mail: MailSettings) -> bool:
    """Clear an alert whose fault has been gone for ``settle`` seconds. A clock that was set back restarts the wait."""
    if row.gone is None or row.gone > now:
        row.gone = now
        row.save(update_fields=["gone"])
    if (now - row.gone).total_seconds() < settle:
        return False
    clear_alert(row, now, Message("It is over."))
    outbox.queue_alert(row, "cleared", now, mail)
    return True


def clear_alert(row: Alert, now: datetime, why: str) -> None:
    row.state, row.cleared = Alert.State.CLEARED, now
    row.save()
    add_note(row, why, now)
    row_retention.choose_older(
        Alert.objects.filter(state=Alert.State.CLEARED),
        "cleared",
        than=now - row_retention.CLEARED_ALERTS,
        kept=row_retention.ALERTS_ANYWAY,
    ).delete()


def add_note(row: Alert, text: str, now: datetime, by: str = "") -> None:
    """Add a note to an alert. Of many notes the first and the latest are kept."""
    AlertNote.objects.create(alert=row, at=now, text=text[:500], by=by, said=said_in(text))
    notes = AlertNote.objects.filter(alert=row)
    later = notes.exclude(pk=notes.order_by("pk").values("pk")[:1]).order_by("-pk")
    row_retention.choose_past(later, row_retention.NOTES_OF_ALERT).delete()
