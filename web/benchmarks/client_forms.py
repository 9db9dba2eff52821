"""The form of a benchmark from another computer."""

from __future__ import annotations

from typing import Any

from django import forms
from django.http import QueryDict
from django.utils.translation import gettext

from appliance.benchmarks.box_settings.catalogue import SETTINGS, SettingStatus
from appliance.facts.box import Facts
from appliance.facts.datasets import Dataset
from appliance.facts.sharing import Share
from appliance.formatting import size_of, size_text, size_typed
from appliance.layout.geometry import GIB, MIB
from appliance.shares.settings import SPOKEN
from web.benchmarks.settings_trials import LEAST_RUNS, change_of_setting
from web.translation import lazy_text, text_of

LEAST, MOST = 16 * MIB, 64 * GIB
USUAL = GIB


class ClientRunForm(forms.Form):
    """Which shared folder, and how much data."""

    share = forms.ChoiceField(label=lazy_text("Shared folder"), widget=forms.RadioSelect)
    size = forms.CharField(label=lazy_text("Data per run"), max_length=20)
    runs = forms.IntegerField(
        label=lazy_text("Runs"),
        min_value=1,
        max_value=5,
        initial=3,
        help_text=lazy_text("Three tell a difference from chance."),
    )

    setting = forms.ChoiceField(
        label=lazy_text("Does a setting help?"),
        required=False,
        help_text=lazy_text(
            "It is switched between the rounds and is back at the end, at the latest after half an hour. "
            "Each round is measured with and without it."
        ),
    )

    def __init__(self, data: QueryDict | None, *, facts: Facts, memory: int, settings: list[SettingStatus]) -> None:
        self.memory = memory
        super().__init__(data, initial={"size": size_typed(USUAL)})
        self.targets = find_targets(facts)
        field = self.fields["share"]
        if isinstance(field, forms.ChoiceField):
            field.choices = [
                (key, gettext("{name} over {spoken}").format(name=dataset.name, spoken=SPOKEN[share.protocol]))
                for key, (dataset, share) in self.targets.items()
            ]
        if len(self.targets) == 1:
            field.initial = next(iter(self.targets))
        self.fields["size"].help_text = self.size_advice()
        tried = self.fields["setting"]
        if isinstance(tried, forms.ChoiceField):
            offered = [(one.tag, change_of_setting(one.tag, one.value, one.tried)) for one in settings if one.tried]
            tried.choices = [("", gettext("No, only measure")), *offered]
            if not settings:  # one that cannot be tried is read as well, so none means that the agent did not answer
                unread = gettext(
                    "The box did not say in time what its settings are. To choose one, load this page again."
                )
                tried.help_text = tried.error_messages["invalid_choice"] = unread

    def size_advice(self) -> str:
        removed = gettext("Each run writes that much into the shared folder. It is removed at the end.")
        if not self.memory:
            return removed
        return gettext(
            "{removed} For reads that come from the disks and not from this box's memory, {size_text} are needed."
        ).format(removed=removed, size_text=text_of(size_text(2 * self.memory)))

    def clean_size(self) -> int:
        try:
            size = size_of(self.cleaned_data["size"])
        except ValueError:
            raise forms.ValidationError(gettext("Enter a size like 1 GiB.")) from None
        if not LEAST <= size <= MOST:
            raise forms.ValidationError(
                gettext("Enter a size from {least} to {most}.").format(least=size_typed(LEAST), most=size_typed(MOST))
            )
        return size

    def clean(self) -> dict[str, Any]:
        found = super().clean() or {}
        target, size, runs = self.targets.get(found.get("share", "")), found.get("size"), found.get("runs")
        setting = found.get("setting") or ""
        if setting and runs and runs < LEAST_RUNS:
            self.add_error(
                "runs",
                gettext("To see whether a setting helps, at least {least} runs are needed.").format(least=LEAST_RUNS),
            )
        if setting and target and target[1].protocol not in SETTINGS[setting].protocols:
            self.add_error(
                "setting",
                gettext("That setting is not used over {spoken}. Choose another one, or another folder.").format(
                    spoken=SPOKEN[target[1].protocol]
                ),
            )
        files = (runs or 0) * (2 if setting else 1)
        if target and size and runs and size * files > target[0].available // 2:
            self.add_error(
                "size",
                gettext("{name} has {available} free. The runs together may use half of that.").format(
                    name=target[0].name, available=text_of(size_text(target[0].available))
                ),
            )
        return found

    @property
    def row_fields(self) -> dict[str, Any]:
        """The fields of the run that was asked for."""
        dataset, share = self.targets[self.cleaned_data["share"]]
        size = self.cleaned_data["size"]
        return {
            "dataset": dataset.name,
            "dataset_key": str(dataset.guid),
            "pool": dataset.name.split("/")[0],
            "protocol": share.protocol,
            "share": share.path if share.protocol == "nfs" else share.name,
            "size": size,
            "runs": self.cleaned_data["runs"],
            "setting": self.cleaned_data["setting"],
            "cached": not self.memory or size < 2 * self.memory,
        }


def find_targets(facts: Facts) -> dict[str, tuple[Dataset, Share]]:
    """Folders that are served, by the value of their choice, in the order of their names."""
    by_place = {one.mountpoint: one for one in facts.datasets if one.mountpoint}
    served = [
        (dataset, share) for share in facts.shares if share.protocol in SPOKEN and (dataset := by_place.get(share.path))
    ]
    in_order = sorted(served, key=lambda one: (one[0].name, list(SPOKEN).index(one[1].protocol)))
    return {f"{share.protocol}-{dataset.guid}": (dataset, share) for dataset, share in in_order}
