"""The properties of a dataset: show them, change one, inherit one again."""

from __future__ import annotations

from typing import Any

import msgspec
from django import forms
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from appliance.datasets.properties import InheritDatasetProperty, SetDatasetProperty
from appliance.datasets.property_words import (
    KNOWN,
    DatasetPropertyWords,
    describe_source,
    properties_of_kind,
    read_property,
    value_text,
)
from appliance.errors import Refused
from appliance.facts.datasets import Dataset
from web.datasets import actions
from web.forms_common import SizeField
from web.jobs import confirm
from web.jobs.refusals import add_reasons, refusals_lead_to
from web.translation import text_of


class SettingLine(msgspec.Struct, frozen=True):
    """One property for the page."""

    name: str
    words: DatasetPropertyWords
    value_text: str
    value: str
    source: str
    own: bool  # it has a value of its own and could inherit one

    @property
    def byte_count(self) -> int:
        return int(self.value) if self.words.is_size and self.value.isdigit() else 0


def list_settings(dataset: Dataset) -> list[SettingLine]:
    found = []
    for name in properties_of_kind(dataset.kind):
        value, words = read_property(dataset, name), KNOWN[name]
        own = words.inherits and value.source in {"local", "received"}
        found.append(
            SettingLine(
                name,
                words,
                value_text(name, value.value),
                value.value,
                "" if words.is_size else describe_source(value),
                own,
            )
        )
    return found


class ValueForm(forms.Form):
    """A new value for one property."""

    def __init__(self, data: Any = None, *, name: str, now: str) -> None:
        super().__init__(data)
        words = KNOWN[name]
        if words.is_size:
            self.fields["value"] = SizeField(
                label=words.title,
                required=False,
                initial=int(now) if now.isdigit() else 0,
                help_text=gettext("{meaning} For example 500 GB. Leave it empty for none.").format(
                    meaning=text_of(words.meaning)
                ),
            )
        else:
            choices = list(words.choices.items())
            if now not in words.choices:
                choices.insert(0, (now, gettext("{name} (as it is)").format(name=text_of(value_text(name, now)))))
            self.fields["value"] = forms.ChoiceField(
                label=words.title, choices=choices, initial=now, help_text=words.meaning
            )


@require_GET
def show_settings(request: HttpRequest, key: str) -> HttpResponse:
    """The page of all properties, in plain words."""
    dataset: Dataset = actions.find_row(key).fact
    found = list_settings(dataset)
    context = {
        "dataset": dataset,
        "key": key,
        "sizes": [one for one in found if one.words.is_size],
        "others": [one for one in found if not one.words.is_size],
        "read": bool(dataset.properties),
    }
    return render(request, "datasets/settings.html", context)


@require_http_methods(["GET", "POST"])
def change_setting(request: HttpRequest, key: str, name: str) -> HttpResponse:
    """A form for another value. A change with a warning goes to a review page, others start at once."""
    dataset: Dataset = actions.find_row(key).fact
    if name not in properties_of_kind(dataset.kind):
        raise Http404
    back = reverse("folder_settings", args=[key])
    form = ValueForm(request.POST or None, name=name, now=read_property(dataset, name).value)
    if request.method == "POST" and form.is_valid():
        try:
            value = str(form.cleaned_data["value"])
            # looked at above
            operation = SetDatasetProperty(dataset=dataset.name, guid=dataset.guid, name=name, value=value)  # type: ignore[arg-type]
            if operation.needs_review:
                return confirm.review(request, operation, back=back)
            return actions.start_and_return(request, operation, back)
        except Refused as refusal:
            add_reasons(form, refusal.reasons)
    context = {
        "form": form,
        "dataset": dataset,
        "back": back,
        "title": gettext("Change a setting of {name}").format(name=dataset.name),
        "verb": gettext("Save"),
    }
    return render(request, "datasets/form.html", context, status=400 if request.method == "POST" else 200)


@require_POST
@refusals_lead_to("folder_settings", "key")
def inherit_setting(request: HttpRequest, key: str, name: str) -> HttpResponse:
    """Inherit the value of the folder above again."""
    dataset: Dataset = actions.find_row(key).fact
    if name not in properties_of_kind(dataset.kind):
        raise Http404
    # looked at above
    operation = InheritDatasetProperty(dataset=dataset.name, guid=dataset.guid, name=name)  # type: ignore[arg-type]
    return actions.start_and_return(request, operation, reverse("folder_settings", args=[key]))
