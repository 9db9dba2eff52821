"""The forms of a pairing: what is received where, and with which Larder."""

from __future__ import annotations

import secrets
from urllib.parse import urlsplit

from django import forms
from django.utils.translation import gettext

from appliance.backups.pairing.pair_box import PairBox
from appliance.backups.pairing.receive_copies import ReceiveCopies
from appliance.backups.pairing.set_retention import MOST_DAYS
from appliance.backups.remote import settings
from appliance.backups.tasks import HOME
from appliance.errors import Refused
from appliance.facts.box import Facts
from appliance.facts.kept_copies import Keep
from appliance.facts.receiver import DAYS, Receiver
from web.backups.forms import keep_of, kept_field, kept_initial
from web.backups.remote_forms import PLAIN
from web.forms_common import SizeField, with_free_space
from web.jobs.refusals import validation_error
from web.translation import lazy_format, lazy_text

HTTPS = 443
USUAL = Keep()


class ReceivedRetention(forms.Form):
    """How long the copies of another Larder stay, and when its silence is an alert."""

    everything = forms.BooleanField(
        label=lazy_text("Keep every copy"),
        required=False,
        help_text=lazy_text("Nothing is destroyed automatically, and the numbers below do not count."),
    )
    hourly = kept_field("hourly", USUAL.hourly)
    daily = kept_field("daily", USUAL.daily)
    weekly = kept_field("weekly", USUAL.weekly)
    monthly = kept_field("monthly", USUAL.monthly)
    days = forms.IntegerField(
        label=lazy_text("Days without a connection before an alert"),
        min_value=0,
        max_value=MOST_DAYS,
        initial=DAYS,
        help_text=lazy_text("0: never."),
    )

    @property
    def keep(self) -> Keep | None:
        given = self.cleaned_data
        return None if given["everything"] else keep_of(given)


def retention_initial(receiver: Receiver) -> dict[str, object]:
    """The values of a form of retention as they are set now."""
    keep = receiver.keep or USUAL
    return {"everything": receiver.keep is None, "days": receiver.days, **kept_initial(keep)}


class ReceiveForm(ReceivedRetention):
    """Where the copies of another Larder lie, and how long they stay."""

    field_order = ("pool", "name", "limit")
    pool = forms.ChoiceField(label=lazy_text("Pool"), widget=forms.RadioSelect)
    name = forms.CharField(
        label=lazy_text("Name"),
        max_length=60,
        help_text=lazy_format(
            "For example the name of the other box. Its copies are stored in a folder of this name, in the "
            "folder {home} of the pool.",
            home=HOME,
        ),
        widget=forms.TextInput(attrs=PLAIN),
    )
    limit = SizeField(
        label=lazy_text("Limit"),
        required=False,
        help_text=lazy_text(
            "The copies never use more than this, with all their snapshots. For example 2 TB. Without a "
            "limit they can fill the pool."
        ),
    )

    def __init__(self, data: object, *, facts: Facts) -> None:
        super().__init__(data)  # type: ignore[arg-type]  # Django takes a QueryDict here
        tops = {one.name: one for one in facts.datasets}
        choices = [
            (
                pool.name,
                with_free_space(pool.name, tops[pool.name].available),
            )
            for pool in facts.pools
            if pool.name in tops
        ]
        self.fields["pool"].choices = choices  # type: ignore[attr-defined]  # a field with choices, declared above
        if len(choices) == 1:
            self.fields["pool"].initial = choices[0][0]

    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"]
        try:
            if "/" in name:
                raise forms.ValidationError(gettext("A name has no slash."), code="name-with-slash")
            return settings.check_remote_name(name)
        except Refused as refusal:
            raise forms.ValidationError(
                gettext(
                    "A name begins with a letter or digit and has only letters, digits, hyphens, "
                    "underscores, dots and colons."
                ),
                code=refusal.reasons[0].code,
            ) from refusal

    @property
    def operation(self) -> ReceiveCopies:
        """Raises Refused."""
        given = self.cleaned_data
        return ReceiveCopies(
            receiver=secrets.token_hex(4),
            pool=given["pool"],
            name=given["name"],
            limit=given["limit"] or 0,
            keep=self.keep,
            days=given["days"],
        )


class PairForm(forms.Form):
    """Which Larder shows a code."""

    address = forms.CharField(
        label=lazy_text("Address of the other Larder"),
        max_length=300,
        help_text=lazy_text("As shown beside the code, for example attic.lan or 192.168.1.20."),
        widget=forms.TextInput(attrs=PLAIN),
    )

    def clean_address(self) -> str:
        typed: str = self.cleaned_data["address"].strip()
        try:
            parts = urlsplit(typed if "://" in typed else f"https://{typed}")
            host, port = parts.hostname or "", parts.port or HTTPS
        except ValueError as error:
            raise forms.ValidationError(
                gettext("Enter a name such as attic.lan, or an address such as 192.168.1.20."), code="host-invalid"
            ) from error
        try:
            settings.check_host(host)
        except Refused as refusal:
            raise validation_error(refusal.reasons) from refusal
        self.place = (host, port)
        return typed

    @property
    def operation(self) -> PairBox:
        """Raises Refused."""
        host, port = self.place
        return PairBox(remote=secrets.token_hex(4), host=host, port=port)
