"""NFS and AFP of one folder: who may use it and how; switching off is one button."""

from __future__ import annotations

import re

from django import forms
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST

from appliance import names
from appliance.errors import Refused
from appliance.facts import Dataset
from appliance.operation import Operation
from appliance.shares import clients
from appliance.shares.setting import Afp, Nfs, ShareSetting, setting_of
from appliance.shares.switch import SwitchShare
from web.inventory.models import AccountRow, DatasetRow
from web.jobs import confirm

GIB = 2**30
LARGEST_LIMIT = 1024 * 1024  # GiB, which is a PiB


class NfsForm(forms.Form):
    """Who may mount the folder, and how."""

    hosts = forms.CharField(
        label="Which networks and computers may mount it",
        widget=forms.Textarea(
            attrs={"rows": 4, "autocomplete": "off", "spellcheck": "false", "autocapitalize": "none"}
        ),
        max_length=8000,
        error_messages={"required": "Name at least one network or computer, for example 192.168.1.0/24."},
        help_text="One a line: a network such as 192.168.1.0/24, an address, or a computer's name.",
    )
    write = forms.BooleanField(label="They may change files", required=False)
    sync = forms.BooleanField(
        label="A write is done when it is on disk", required=False, help_text="Slower, and safe in a power cut."
    )
    root = forms.BooleanField(
        label="Root there is root here",
        required=False,
        help_text="Only for computers that you alone use, for backups of whole systems.",
    )

    def clean_hosts(self) -> tuple[str, ...]:
        try:
            return clients.clients(tuple(re.split(r"[\s,]+", self.cleaned_data["hosts"].strip())))
        except Refused as refusal:
            raise forms.ValidationError(str(refusal)) from refusal


class AfpForm(forms.Form):
    """Under which name older Macs see the folder, and who may use it."""

    name = forms.CharField(
        label="Name of the share",
        max_length=60,
        strip=False,
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
        error_messages={"required": "Give the share a name, for example photos."},
    )
    write = forms.MultipleChoiceField(
        label="Who may read and change it", widget=forms.CheckboxSelectMultiple, required=False
    )
    read = forms.MultipleChoiceField(label="Who may only read it", widget=forms.CheckboxSelectMultiple, required=False)
    time_machine = forms.IntegerField(
        label="Limit for Time Machine, in GiB",
        required=False,
        min_value=1,
        max_value=LARGEST_LIMIT,
        help_text="Empty: the folder is not for Time Machine. A Mac sees a disk of that size and removes its oldest backups by itself.",
    )

    def __init__(self, data: object = None, *, accounts: list[str], initial: dict[str, object] | None = None) -> None:
        super().__init__(data, initial=initial)  # type: ignore[arg-type]  # Django takes a QueryDict here
        for field in ("write", "read"):
            self.fields[field].choices = [(name, name) for name in accounts]  # type: ignore[attr-defined]

    def clean_name(self) -> str:
        try:
            return names.share(self.cleaned_data["name"])
        except Refused as refusal:
            raise forms.ValidationError(str(refusal)) from refusal


def begin(request: HttpRequest, form: forms.Form, operation: Operation) -> HttpResponse | None:
    """Start the change, or put what speaks against it into the form."""
    try:
        return redirect("job", pk=confirm.start(operation, user=request.user.get_username()).pk)
    except Refused as refusal:
        for reason in refusal.reasons:
            form.add_error(reason.field if reason.field in form.fields else None, reason.text)
        return None


def page(
    request: HttpRequest, form: forms.Form, dataset: Dataset, key: str, protocol: str, *, on: bool
) -> HttpResponse:
    context = {
        "form": form,
        "dataset": dataset,
        "key": key,
        "protocol": protocol,
        "protocol_name": protocol.upper(),
        "on": on,
    }
    return render(request, "shares/protocol.html", context, status=400 if form.is_bound else 200)


@require_http_methods(["GET", "POST"])
def over_nfs(request: HttpRequest, key: str) -> HttpResponse:
    """Share a folder over NFS, or change how."""
    dataset: Dataset = get_object_or_404(DatasetRow, key=key).fact
    now = (setting_of(dataset) or ShareSetting()).nfs
    shown = {"hosts": "\n".join(now.hosts), "write": now.write, "sync": now.sync, "root": now.root} if now else {"write": True, "sync": True}  # fmt: skip
    form = NfsForm(request.POST or None, initial=shown)
    if request.method == "POST" and form.is_valid():
        operation = SwitchShare(dataset=dataset.name, protocol="nfs", nfs=Nfs(**form.cleaned_data))
        if begun := begin(request, form, operation):
            return begun
    return page(request, form, dataset, key, "nfs", on=now is not None)


@require_http_methods(["GET", "POST"])
def over_afp(request: HttpRequest, key: str) -> HttpResponse:
    """Share a folder over AFP, or change how."""
    dataset: Dataset = get_object_or_404(DatasetRow, key=key).fact
    now = (setting_of(dataset) or ShareSetting()).afp
    accounts = list(AccountRow.objects.order_by("name").values_list("name", flat=True))
    shown: dict[str, object] = {"name": dataset.name.rsplit("/", 1)[-1]}
    if now:
        shown = {
            "name": now.name,
            "write": now.write,
            "read": now.read,
            "time_machine": now.time_machine // GIB or None,
        }
        accounts += [who for who in (*now.write, *now.read) if who not in accounts]  # groups, and who has gone
    form = AfpForm(request.POST or None, accounts=accounts, initial=shown)
    if request.method == "POST" and form.is_valid():
        said = form.cleaned_data
        read = tuple(who for who in said["read"] if who not in said["write"])
        limit = (said["time_machine"] or 0) * GIB
        wanted = Afp(name=said["name"], write=tuple(said["write"]), read=read, time_machine=limit)
        if begun := begin(request, form, SwitchShare(dataset=dataset.name, protocol="afp", afp=wanted)):
            return begun
    return page(request, form, dataset, key, "afp", on=now is not None)


@require_POST
def off(request: HttpRequest, key: str, protocol: str) -> HttpResponse:
    """Stop sharing over one protocol; files stay, so no review."""
    dataset: Dataset = get_object_or_404(DatasetRow, key=key).fact
    back = reverse("folder", args=[key])
    try:
        if protocol == "nfs":
            operation = SwitchShare(dataset=dataset.name, protocol="nfs")
        elif protocol == "afp":
            operation = SwitchShare(dataset=dataset.name, protocol="afp")
        else:
            raise Http404
        return redirect("job", pk=confirm.start(operation, user=request.user.get_username()).pk)
    except Refused as refusal:
        return render(request, "jobs/refused.html", {"reasons": refusal.reasons, "back": back}, status=409)
