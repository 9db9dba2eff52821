"""Forms about snapshots and their schedules."""

from __future__ import annotations

from datetime import date

from django import forms
from django.core.validators import MaxValueValidator, MinValueValidator
from django.utils.translation import gettext

from appliance import names
from appliance.errors import Refused
from appliance.facts.datasets import Dataset
from appliance.snapshot_names import GRAINS
from appliance.snapshots.policy import MOST_KEPT, WORDS, Policy
from web.forms_common import HOURS
from web.jobs.refusals import validation_error
from web.translation import lazy_text, text_of

PLAIN = {"autocomplete": "off", "spellcheck": "false", "autocapitalize": "none"}


class TakeForm(forms.Form):
    """Take a snapshot now."""

    note = forms.CharField(
        label=lazy_text("Note"),
        max_length=200,
        required=False,
        help_text=lazy_text("For example: before tidying up. It is shown in the list."),
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    name = forms.CharField(
        label=lazy_text("Name"),
        max_length=60,
        required=False,
        strip=False,
        help_text=lazy_text(
            "Leave it empty to use the date and time: Windows then shows it among the previous versions."
        ),
        widget=forms.TextInput(attrs=PLAIN),
    )
    below = forms.BooleanField(
        label=lazy_text("With all folders below it, at the same moment"), required=False, initial=True
    )

    def __init__(self, data: object = None, *, dataset: Dataset) -> None:
        super().__init__(data)  # type: ignore[arg-type]  # Django takes a QueryDict here
        if dataset.kind == "volume":  # nothing can be below it
            del self.fields["below"]

    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"]
        try:
            return names.check_snapshot_name(name) if name else ""
        except Refused as refusal:
            raise validation_error(refusal.reasons) from refusal


class PolicyForm(forms.Form):
    """How many snapshots of each grain are kept, and when they are taken."""

    first = forms.TypedChoiceField(label=lazy_text("Take snapshots from"), choices=HOURS, coerce=int)
    last = forms.TypedChoiceField(
        label=lazy_text("Take snapshots until"),
        choices=HOURS,
        coerce=int,
        help_text=lazy_text(
            "The same hour twice means at any hour. If the box was off, one snapshot is taken when it is on again."
        ),
    )
    skip_unchanged = forms.BooleanField(label=lazy_text("Take no snapshot while nothing has changed"), required=False)
    below = forms.BooleanField(
        label=lazy_text("Also for the folders below"),
        required=False,
        help_text=lazy_text("Each of them can have its own schedule instead."),
    )

    day = forms.DateField(
        label=lazy_text("Preview for the day"),
        required=False,
        help_text=lazy_text("Any day, once the schedule has run for long enough. Leave it empty for today."),
        validators=[MinValueValidator(date(2000, 1, 1)), MaxValueValidator(date(2100, 1, 1))],
        widget=forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d"),
    )

    def __init__(self, data: object = None, *, initial: Policy, dataset: Dataset) -> None:
        fields = ("first", "last", "skip_unchanged", "below", *GRAINS)
        values = {name: getattr(initial, name) for name in fields}
        super().__init__(data, initial=values)  # type: ignore[arg-type]  # Django takes a QueryDict here
        for grain in GRAINS:
            self.fields[grain] = forms.IntegerField(
                label=gettext("Snapshots to keep, taken {words}").format(words=text_of(WORDS[grain])),
                min_value=0,
                max_value=MOST_KEPT,
            )
        self.kept_as_it_is = {}
        if dataset.kind == "volume":  # nothing can be below it
            del self.fields["below"]
            self.kept_as_it_is = {"below": initial.below}
        self.order_fields([*GRAINS, "first", "last", "skip_unchanged", "below", "day"])

    @property
    def policy(self) -> Policy:
        chosen = {name: value for name, value in self.cleaned_data.items() if name != "day"}
        return Policy(**chosen, **self.kept_as_it_is)
