"""Alerts and their notes, messages, settings of notifications, and daily values of disks and pools."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext

from appliance.alerts.alert_kind import AlertKind, severity_word
from appliance.alerts.kinds import KINDS
from appliance.pools.health import LEVEL_STATES, Health
from web.said import RowWithMessages
from web.translation import lazy_text, text_of

LONGEST_SILENCE = timedelta(days=31)
LARGEST = 2**63 - 1  # that a column holds; broken firmware counts up to 2**64 - 1


class Alert(RowWithMessages):
    """One fault from its beginning to its end. There is at most one that is not cleared of a kind and subject.

    ``gone`` is since when the fault has not been seen, while its clearing waits. ``mark`` is how bad it is now,
    ``mark_seen`` how bad it was when somebody acknowledged it.
    """

    class State(models.TextChoices):
        OPEN = "open", lazy_text("Open")
        ACKNOWLEDGED = "acknowledged", lazy_text("Acknowledged")
        CLEARED = "cleared", lazy_text("Cleared")

    TEXTS = ("summary", "detail")

    kind = models.CharField(max_length=40)
    subject = models.CharField(max_length=300)
    severity = models.CharField(max_length=10)
    state = models.CharField(max_length=12, choices=State.choices, default=State.OPEN, db_index=True)
    summary = models.CharField(max_length=400)
    detail = models.TextField(default="")
    link = models.CharField(max_length=400, default="")
    mark = models.BigIntegerField(default=0)
    mark_seen = models.BigIntegerField(default=0)
    first_seen = models.DateTimeField()
    gone = models.DateTimeField(null=True)
    cleared = models.DateTimeField(null=True)
    quiet_until = models.DateTimeField(null=True)
    quiet_reason = models.CharField(max_length=200, default="")

    class Meta:
        ordering = ("-first_seen", "-pk")
        constraints = (
            models.UniqueConstraint(
                fields=["kind", "subject"], condition=~models.Q(state="cleared"), name="one_alert_of_a_fault"
            ),
        )

    def __str__(self) -> str:
        return self.summary

    @property
    def kind_info(self) -> AlertKind:
        """Its kind; one that this version of Larder does not know says nothing beyond the alert's own words."""
        return KINDS.get(self.kind) or AlertKind(
            self.kind, "warning", "", self.summary, "", "", gettext("See the alert")
        )

    def is_silent(self, now: datetime) -> bool:
        """Whether nothing is told about it at that time.
        A silence that ends too far ahead was asked for while the clock was wrong."""
        return self.quiet_until is not None and now < self.quiet_until <= now + LONGEST_SILENCE

    @property
    def is_silenced(self) -> bool:
        return self.is_silent(timezone.now())

    @property
    def wants_somebody(self) -> bool:
        """Whether the user has something to do; good news needs nothing."""
        kind = KINDS.get(self.kind)
        return not (kind and kind.news and self.severity == "notice")

    @property
    def mark_state(self) -> Health:
        """The state of its icon."""
        if self.state == self.State.CLEARED:
            return "healthy"
        return LEVEL_STATES.get(self.severity, "notice")

    @property
    def state_word(self) -> str:
        """The text beside its icon in a list."""
        return gettext("over") if self.state == self.State.CLEARED else text_of(severity_word(self.severity))


class AlertNote(RowWithMessages):
    """One line of an alert's time line."""

    TEXTS = ("text",)

    alert = models.ForeignKey(Alert, on_delete=models.CASCADE, related_name="notes")
    at = models.DateTimeField()
    text = models.CharField(max_length=500)
    by = models.CharField(max_length=150, default="")

    class Meta:
        ordering = ("at", "pk")

    def __str__(self) -> str:
        return self.text


class Message(RowWithMessages):
    """A notification: made together with its alert, sent once by the worker, retried for days."""

    TEXTS = ("answer",)

    class State(models.TextChoices):
        WAITING = "waiting", lazy_text("Waiting")
        SENDING = "sending", lazy_text("Being sent")
        SENT = "sent", lazy_text("Sent")
        GIVEN_UP = "given-up", lazy_text("Given up")

    key = models.CharField(max_length=120, unique=True)  # raised-12-mail: what is told, and by which way
    alert = models.ForeignKey(Alert, on_delete=models.CASCADE, null=True)
    event = models.CharField(max_length=10)  # raised, cleared, weekly, test
    way = models.CharField(max_length=10)  # mail, webhook
    state = models.CharField(max_length=10, choices=State.choices, default=State.WAITING, db_index=True)
    made = models.DateTimeField()
    next_try = models.DateTimeField()
    tries = models.PositiveSmallIntegerField(default=0)
    answer = models.CharField(max_length=500, default="")

    class Meta:
        ordering = ("-made", "-pk")

    def __str__(self) -> str:
        return self.key


class MailSettings(models.Model):
    """The settings of notifications: one row. The password is in a file (``web/alerts/smtp_password.py``)."""

    host = models.CharField(max_length=255, default="", blank=True)
    port = models.PositiveIntegerField(default=587)
    security = models.CharField(max_length=10, default="starttls")
    authority = models.TextField(default="", blank=True)  # certificates in PEM that the server's may come from
    user = models.CharField(max_length=255, default="", blank=True)
    sender = models.CharField(max_length=255, default="", blank=True)
    critical = models.TextField(default="", blank=True)  # one address per line
    warning = models.TextField(default="", blank=True)
    notice = models.TextField(default="", blank=True)
    quiet_from = models.PositiveSmallIntegerField(default=0)
    quiet_to = models.PositiveSmallIntegerField(default=0)
    digest_hour = models.PositiveSmallIntegerField(default=8)
    weekly = models.BooleanField(default=False)  # a report each Monday, also when all is well
    address = models.CharField(max_length=255, default="", blank=True)  # of this box, for links
    webhook = models.CharField(max_length=500, default="", blank=True)
    webhook_private = models.BooleanField(default=False)

    def __str__(self) -> str:
        return self.host or gettext("no mail")

    def recipients_for(self, severity: str) -> list[str]:
        return [line.strip() for line in str(getattr(self, severity, "")).splitlines() if line.strip()]

    @property
    def ways(self) -> list[str]:
        """The ways of sending that are set up."""
        return [*(["mail"] if self.host else []), *(["webhook"] if self.webhook else [])]

    def ways_for(self, severity: str) -> list[str]:
        """The ways by which an alert of this severity is sent."""
        return [way for way in self.ways if way != "mail" or self.recipients_for(severity)]

    @property
    def for_report(self) -> list[str]:
        """The recipients of reports and tests."""
        return self.recipients_for(self.report_severity)

    @property
    def report_severity(self) -> str:
        """The severity whose recipients get reports and tests."""
        return "notice" if self.recipients_for("notice") else "critical"

    @classmethod
    def load_row(cls) -> MailSettings:
        return cls.objects.filter(pk=1).first() or cls(pk=1)


class KindSeverity(models.Model):
    """A chosen severity of a kind of alert."""

    kind = models.CharField(max_length=40, primary_key=True)
    severity = models.CharField(max_length=10)

    def __str__(self) -> str:
        return f"{self.kind}: {self.severity}"


class Accepted(models.Model):
    """An accepted value of a disk, which gives no alert until it grows."""

    disk = models.CharField(max_length=300)
    count = models.CharField(max_length=30)
    value = models.BigIntegerField()
    by = models.CharField(max_length=150, default="")
    at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = (models.UniqueConstraint(fields=["disk", "count"], name="one_accepted_value"),)

    def __str__(self) -> str:
        return f"{self.disk} {self.count} {self.value}"


class DiskDay(models.Model):
    """The values of one disk on one day: ``{count: [least, most, last]}``. About 1,300 bytes."""

    disk = models.CharField(max_length=300)
    day = models.DateField()
    values: Any = models.JSONField(default=dict)
    written = models.DateTimeField()

    class Meta:
        ordering = ("day",)
        constraints = (models.UniqueConstraint(fields=["disk", "day"], name="one_day_of_a_disk"),)

    def __str__(self) -> str:
        return f"{self.disk} {self.day}"


class DiskCare(RowWithMessages):
    """What its owner wants of a disk: whether the schedule tests it and when it last did; after how long it sleeps.

    ``told`` is what a drive was last told and since when it has had power, for it forgets that without; ``answer`` what
    came of it: told, or why it did not take it.
    """

    TEXTS = ("answer",)

    disk = models.CharField(max_length=300, primary_key=True)
    since = models.DateTimeField()  # when it was first seen
    short = models.DateTimeField(null=True)  # when a short test was last begun by the schedule
    long = models.DateTimeField(null=True)
    tested = models.BooleanField(default=True)  # whether the schedule tests it
    sleep = models.PositiveSmallIntegerField(null=True)  # minutes, 0: never, null: as the drive has it
    told = models.CharField(max_length=100, default="")
    answer = models.CharField(max_length=300, default="")

    def __str__(self) -> str:
        return self.disk


class SelfTestPlan(models.Model):
    """The self-test schedule: one row."""

    short = models.CharField(max_length=10, default="week")
    long = models.CharField(max_length=10, default="month")
    first = models.PositiveSmallIntegerField(default=1)
    last = models.PositiveSmallIntegerField(default=6)

    def __str__(self) -> str:
        return gettext("short each {short}, long each {long}").format(short=self.short, long=self.long)

    @classmethod
    def load_row(cls) -> SelfTestPlan:
        return cls.objects.filter(pk=1).first() or cls(pk=1)


class PoolDay(models.Model):
    """How full a pool was on a day. Kept when the pool goes, to notice that it is missing."""

    guid = models.CharField(max_length=20)
    name = models.CharField(max_length=255)
    day = models.DateField()
    used = models.PositiveBigIntegerField()
    total = models.PositiveBigIntegerField()
    ended = models.BooleanField(default=False)  # it was exported or destroyed here, so nobody misses it

    class Meta:
        ordering = ("day",)
        constraints = (models.UniqueConstraint(fields=["guid", "day"], name="one_day_of_a_pool"),)

    def __str__(self) -> str:
        return f"{self.name} {self.day}"
