"""The self-test schedule, and whether it includes a disk."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils import timezone
from django.utils.translation import gettext
from django.views.decorators.http import require_http_methods, require_POST

from appliance.schedule import box_zone
from web import live
from web.alerts.models import DiskCare, SelfTestPlan
from web.forms_common import HOURS
from web.inventory import store
from web.inventory.models import DiskRow
from web.translation import lazy_text

EVERY = (
    ("week", lazy_text("every week")),
    ("month", lazy_text("every four weeks")),
    ("quarter", lazy_text("every three months")),
    ("never", lazy_text("never")),
)

if TYPE_CHECKING:
    PlanModelForm = forms.ModelForm[SelfTestPlan]
else:
    PlanModelForm = forms.ModelForm  # at run time it takes no parameter


class PlanForm(PlanModelForm):
    short = forms.ChoiceField(label=lazy_text("Short test"), choices=EVERY, help_text=lazy_text("About two minutes."))
    long = forms.ChoiceField(
        label=lazy_text("Long test"),
        choices=EVERY,
        help_text=lazy_text("Reads the whole disk, which takes hours. The disk answers a little slower meanwhile."),
    )
    first = forms.TypedChoiceField(label=lazy_text("Start from"), choices=HOURS, coerce=int)
    last = forms.TypedChoiceField(
        label=lazy_text("Start until"),
        choices=HOURS,
        coerce=int,
        help_text=lazy_text("The same hour twice means at any hour."),
    )

    class Meta:
        model = SelfTestPlan
        fields = ("short", "long", "first", "last")


@require_http_methods(["GET", "POST"])
def selftest_plan(request: HttpRequest) -> HttpResponse:
    """The self-test schedule as a form."""
    form = PlanForm(request.POST or None, instance=SelfTestPlan.load_row())
    if request.method == "POST" and form.is_valid():
        row = form.save(commit=False)
        row.pk = 1
        row.save()
        messages.success(request, gettext("Saved."))
        return redirect("self_test_plan")
    context: dict[str, Any] = {"form": form, "now": f"{timezone.now().astimezone(box_zone()):%H:%M (%Z)}"}
    return live.respond_to_form(request, "disks/selftests.html", context)


@require_POST
def set_participation(request: HttpRequest, key: str) -> HttpResponse:
    """Include a disk in the schedule or leave it out."""
    row = get_object_or_404(DiskRow, key=key)
    care, _made = DiskCare.objects.get_or_create(disk=row.key, defaults={"since": timezone.now()})
    care.tested = request.POST.get("tested") == "yes"
    care.save(update_fields=["tested"])
    store.touch("disks")
    return redirect("disk_health", key=key)
