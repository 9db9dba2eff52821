"""Stored benchmarks from another computer."""

from __future__ import annotations

import secrets
import uuid
from datetime import timedelta
from typing import Any

import msgspec
from django.db import models
from django.utils import timezone
from django.utils.crypto import constant_time_compare, salted_hmac
from django.utils.translation import gettext

from appliance.benchmarks.client_report import ClientFigures
from web.row_retention import choose_past
from web.said import RowWithMessages
from web.translation import lazy_text

# As in first_run.py: no letters that look like digits; 10 of 32 are 50 bits.
ALPHABET = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
VALID = timedelta(minutes=30)
LONGEST_RUN = timedelta(hours=6)  # from the moment that the code was used
MOST_KEPT = 100
MOST_SWITCHES = 6 * 5 + 2  # before each of three parts, with and without, of five rounds, and some to spare
MOST_WIRES = 2  # times that a run may have the port opened: a second one for a try that failed


def hash_secret(secret: str) -> str:
    """What is stored of a code or token: keyed, so that a copy of the database does not help to guess it."""
    return salted_hmac("larder-client", secret, algorithm="sha256").hexdigest()


def tidy_code(typed: str) -> str:
    return "".join(letter for letter in typed.upper() if letter in ALPHABET)


class ClientRunRow(RowWithMessages):
    """One benchmark from another computer.

    States: ``waiting`` for somebody with its code → ``running`` (the code is used up, ``token_hash`` replaces it) →
    ``done`` or ``failed``. ``told`` are the figures as they were checked.
    """

    class State(models.TextChoices):
        WAITING = "waiting", lazy_text("Waiting for the other computer")
        RUNNING = "running", lazy_text("Measuring")
        DONE = "done", lazy_text("Done")
        FAILED = "failed", lazy_text("Could not be measured")

    TEXTS = ("text",)

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    dataset = models.CharField(max_length=255)
    dataset_key = models.CharField(max_length=20)
    pool = models.CharField(max_length=255)
    protocol = models.CharField(max_length=4)
    share = models.CharField(max_length=1024)  # a name over SMB, a path over NFS
    size = models.BigIntegerField()
    runs = models.PositiveSmallIntegerField()
    cached = models.BooleanField(default=False)  # the box could keep what is read in its memory
    state = models.CharField(max_length=8, choices=State, default=State.WAITING)
    code_hash = models.CharField(max_length=64)
    token_hash = models.CharField(max_length=64, default="")
    wires = models.PositiveSmallIntegerField(default=0)
    address = models.CharField(max_length=45, default="")
    # What was tried: the tag of a setting of the box, what it was and what it became, and whether it is switched now.
    setting = models.CharField(max_length=32, default="")
    former = models.CharField(max_length=100, default="")
    tried = models.CharField(max_length=100, default="")
    switched = models.BooleanField(default=False)
    switches = models.PositiveSmallIntegerField(default=0)
    told = models.TextField(default="")
    text = models.CharField(max_length=300, default="")
    created = models.DateTimeField(auto_now_add=True)
    created_by = models.CharField(max_length=150)
    begun = models.DateTimeField(null=True)
    heard = models.DateTimeField(null=True)  # when the script last asked for something
    finished = models.DateTimeField(null=True)

    class Meta:
        app_label = "sweeps"
        ordering = ("-created",)

    def __str__(self) -> str:
        return gettext("{dataset} from another computer").format(dataset=self.dataset)

    @property
    def figures(self) -> ClientFigures | None:
        return msgspec.json.decode(self.told, type=ClientFigures) if self.told else None

    @property
    def open(self) -> bool:
        """Whether something may still come."""
        now = timezone.now()
        return (self.state == self.State.WAITING and now < self.created + VALID) or (
            self.state == self.State.RUNNING and self.begun is not None and now < self.begun + LONGEST_RUN
        )

    @property
    def shown_state(self) -> tuple[str, str]:
        """A state that has a picture, and its word."""
        if self.state == self.State.DONE:
            return "healthy", gettext("done")
        if self.state == self.State.FAILED or not self.open:
            return "attention", gettext("could not be measured") if self.state == self.State.FAILED else gettext(
                "nothing came"
            )
        return "working", gettext("measuring") if self.state == self.State.RUNNING else gettext(
            "waiting for the other computer"
        )


def make_run(**fields: Any) -> tuple[ClientRunRow, str]:
    """A new run and its code, which is stored nowhere. Prunes the oldest."""
    letters = "".join(secrets.choice(ALPHABET) for _ in range(10))
    row = ClientRunRow.objects.create(code_hash=hash_secret(letters), **fields)
    choose_past(ClientRunRow.objects.order_by("-created"), MOST_KEPT).delete()
    return row, f"{letters[:5]}-{letters[5:]}"


def claim_run(code: str, address: str) -> tuple[ClientRunRow, str] | None:
    """The run of a code, which works once, and the token for what follows; None for a wrong, used or old code."""
    now, hashed = timezone.now(), hash_secret(tidy_code(code))
    waiting = ClientRunRow.objects.filter(state=ClientRunRow.State.WAITING, created__gt=now - VALID)
    found = [row for row in waiting if constant_time_compare(row.code_hash, hashed)]
    token = secrets.token_urlsafe(32)
    for row in found:
        changed = {
            "state": ClientRunRow.State.RUNNING,
            "token_hash": hash_secret(token),
            "code_hash": "",
            "begun": now,
            "heard": now,
            "address": address[:45],
        }
        # The database lets one of two at the same moment in.
        if ClientRunRow.objects.filter(pk=row.pk, state=ClientRunRow.State.WAITING).update(**changed):
            row.refresh_from_db()
            return row, token
    return None


def running_of(token: str) -> ClientRunRow | None:
    """The run that a token belongs to, while it lasts. Notes that its script was heard."""
    hashed, now = hash_secret(token), timezone.now()
    running = ClientRunRow.objects.filter(state=ClientRunRow.State.RUNNING, begun__gt=now - LONGEST_RUN)
    found = next((row for row in running if constant_time_compare(row.token_hash, hashed)), None)
    if found:
        ClientRunRow.objects.filter(pk=found.pk).update(heard=now)
    return found
