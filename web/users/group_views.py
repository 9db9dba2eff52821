"""Groups of users: create, change the members, remove."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods

from appliance.errors import Refused
from appliance.facts.sharing import Group
from appliance.users.groups import CreateGroup, RemoveGroup, SetMembers
from web.inventory.models import GroupRow
from web.jobs import confirm
from web.jobs.refusals import add_reasons, review_or_refusal
from web.users.forms import GroupForm, MembersForm
from web.users.views import read_users


def user_choices() -> list[tuple[str, str]]:
    return [(user.name, f"{user.called} ({user.name})" if user.display else user.name) for user in read_users()]


@require_http_methods(["GET", "POST"])
def create_group(request: HttpRequest) -> HttpResponse:
    """Create a group without a review page."""
    people = user_choices()
    form = GroupForm(request.POST or None, people=people)
    if request.method == "POST" and form.is_valid():
        try:
            operation = CreateGroup(name=form.cleaned_data["name"], members=tuple(form.cleaned_data["members"]))
            return redirect("job", pk=confirm.start_without_review(operation, user=request.user.get_username()).pk)
        except Refused as refusal:
            add_reasons(form, refusal.reasons)
    return render(request, "users/group.html", {"form": form, "people": people}, status=400 if form.is_bound else 200)


@require_http_methods(["GET", "POST"])
def edit_group(request: HttpRequest, name: str) -> HttpResponse:
    """The page of one group, with a form for its members."""
    fact: Group = get_object_or_404(GroupRow, name=name).fact
    people = user_choices()
    # A form without any box ticked is valid too: it empties the group.
    data = request.POST if request.method == "POST" else None
    form = MembersForm(data, people=people, initial={"members": list(fact.members)})
    if request.method == "POST" and form.is_valid():
        try:
            operation = SetMembers(name=fact.name, members=tuple(form.cleaned_data["members"]))
            return redirect("job", pk=confirm.start_without_review(operation, user=request.user.get_username()).pk)
        except Refused as refusal:
            add_reasons(form, refusal.reasons)
    context = {"form": form, "group": fact, "people": people}
    return render(request, "users/group.html", context, status=400 if form.is_bound else 200)


@require_GET
def remove_group(request: HttpRequest, name: str) -> HttpResponse:
    """The review page of removing a group."""
    row = get_object_or_404(GroupRow, name=name)
    return review_or_refusal(request, RemoveGroup(name=row.name), reverse("users"))
