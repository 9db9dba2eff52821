"""Users of shares: the list, one user, creating, changing and removing one."""

from __future__ import annotations

from collections.abc import Iterator

from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from appliance import snapshot_names
from appliance.datasets.access_note import valid_note
from appliance.errors import Refused
from appliance.facts.box import Facts
from appliance.facts.sharing import Account
from appliance.files.posix_acl import MAY, Level
from appliance.operation import Operation
from appliance.shares.settings import PROTOCOLS, SPOKEN, Nfs, Protocol, ShareSetting, setting_of
from appliance.users.accounts import CreateAccount, EnableAccount, RenameAccount
from appliance.users.remove import RemoveAccount
from appliance.users.set_password import SetPassword
from web import live
from web.datasets.views import list_filesystems
from web.inventory.dataset_models import DatasetRow
from web.inventory.fact_row import readable_facts, readable_rows
from web.inventory.models import AccountRow, GroupRow
from web.jobs import confirm
from web.jobs.models import Job
from web.jobs.refusals import add_reasons, refusal_page, review_or_refusal
from web.users.forms import DisplayForm, HeirForm, UserForm

MOST_PARENTS = 1000
KINDS = ("set-password", "rename-account", "enable-account", "remove-account")


def read_users() -> list[Account]:
    return readable_facts(AccountRow.objects.order_by("name"))


def read_user_facts() -> Facts:
    """All users and groups, as facts to resolve the names of access notes."""
    return Facts(accounts=tuple(read_users()), groups=tuple(readable_facts(GroupRow.objects.order_by("name"))))


def start_or_refuse(request: HttpRequest, operation: Operation, back: str) -> HttpResponse:
    """Start a job without a review page and redirect to it, or show why it was refused."""
    try:
        job = confirm.start_without_review(operation, user=request.user.get_username())
    except Refused as refusal:
        return refusal_page(request, refusal.reasons, back)
    return redirect("job", pk=job.pk)


@require_GET
def list_users(request: HttpRequest) -> HttpResponse:
    """The list of users and groups."""

    def build() -> dict[str, object]:
        facts = read_user_facts()
        listed = [(user, [group for group in facts.groups if user.name in group.members]) for user in facts.accounts]
        return {"people": listed, "groups": facts.groups}

    return live.respond(request, "users/list.html", build)


@require_http_methods(["GET", "POST"])
def create_user(request: HttpRequest) -> HttpResponse:
    """A form for the name, then the review page, which asks for the password."""
    form = UserForm(request.POST or None, parents=[row.name for row in list_filesystems()[:MOST_PARENTS]])
    if request.method == "POST" and form.is_valid():
        try:
            return confirm.review(request, CreateAccount(**form.cleaned_data), back=reverse("users"))
        except Refused as refusal:
            add_reasons(form, refusal.reasons)
    return render(request, "users/create.html", {"form": form}, status=400 if form.is_bound else 200)


def share_levels(name: str, setting: ShareSetting | None) -> Iterator[tuple[Protocol, Level]]:
    """What the shares of a folder let a user do, by protocol; those that do not name the user are left out."""
    for protocol in PROTOCOLS:
        part = setting.part(protocol) if setting else None
        if isinstance(part, Nfs):
            if part.everybody_as == name:
                yield protocol, "change" if part.write else "read"
        elif part and name in (*part.write, *part.read):
            yield protocol, "change" if name in part.write else "read"


@require_GET
def show_user(request: HttpRequest, name: str) -> HttpResponse:
    """The page of one user: state, groups, folders that name the user, actions."""

    def build() -> dict[str, object]:
        account: Account = get_object_or_404(AccountRow, name=name).fact
        facts = read_user_facts()
        others = [(user.name, user.called) for user in facts.accounts if user.name != name]
        may_name = Q(access_source="local") | ~Q(share_source="none")
        named = readable_rows(DatasetRow.objects.filter(may_name).order_by("name"))
        folders = [
            (row.key, row.name, MAY[said.people[name]])
            for row, dataset in named
            if (said := valid_note(dataset, facts)) and name in said.people
        ]
        served = [
            (row.key, row.name, MAY[level], SPOKEN[protocol])
            for row, dataset in named
            for protocol, level in share_levels(name, setting_of(dataset))
        ]
        return {
            "served": served,
            "person": account,
            "groups": [group for group in facts.groups if name in group.members],
            "folders": folders,
            "form": DisplayForm(initial={"display": account.display}),
            "heirs": HeirForm(others=others),
            "busy": Job.objects.filter(subject=name, kind__in=KINDS, state__in=Job.OPEN).defer("plan", "log").first(),
        }

    return live.respond(request, "users/user.html", build)


@require_GET
def set_password(request: HttpRequest, name: str) -> HttpResponse:
    """The review page of a new password."""
    row = get_object_or_404(AccountRow, name=name)
    return review_or_refusal(request, SetPassword(name=row.name), reverse("users"))


@require_POST
def rename_user(request: HttpRequest, name: str) -> HttpResponse:
    """Change the display name."""
    row, back = get_object_or_404(AccountRow, name=name), reverse("user", args=[name])
    try:
        operation = RenameAccount(name=row.name, display=request.POST.get("display", "").strip())
    except Refused as refusal:
        return refusal_page(request, refusal.reasons, back, status=400)
    return start_or_refuse(request, operation, back)


@require_POST
def enable_user(request: HttpRequest, name: str) -> HttpResponse:
    """Disable or enable a user. The form says which, so that sending it twice has the same effect."""
    row = get_object_or_404(AccountRow, name=name)
    operation = EnableAccount(name=row.name, enabled=request.POST.get("to") == "on")
    return start_or_refuse(request, operation, reverse("user", args=[name]))


@require_GET
def remove_user(request: HttpRequest, name: str) -> HttpResponse:
    """The review page of removing a user, which says what happens to the files."""
    row = get_object_or_404(AccountRow, name=name)
    back = reverse("user", args=[name])
    try:
        heir = request.GET.get("heir", "")
        before = snapshot_names.name_for(snapshot_names.BEFORE, timezone.now()) if heir else ""
        operation = RemoveAccount(name=row.name, heir=heir, before=before)
    except Refused as refusal:
        return refusal_page(request, refusal.reasons, back)
    return review_or_refusal(request, operation, back)
