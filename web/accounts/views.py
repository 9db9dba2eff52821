"""Set-up, and the sessions of the administrator. Signing in and out are allauth's views."""

from __future__ import annotations

from pathlib import Path

from allauth.core import ratelimit
from allauth.usersessions.models import UserSession
from django.conf import settings
from django.contrib import messages
from django.contrib.auth import login, update_session_auth_hash
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.forms import PasswordChangeForm
from django.contrib.auth.models import User
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from appliance.errors import LarderError, explain_error
from web import language
from web.accounts import first_run, proof
from web.accounts.forms import PreferencesForm, SetUpForm
from web.accounts.preferences import preferences_of
from web.box.time_zone_choices import set_first_zone
from web.system import database
from web.translation import text_of


@sensitive_post_parameters()
@login_not_required
@require_http_methods(["GET", "POST"])
def set_up(request: HttpRequest) -> HttpResponse:
    """Make the administrator, once, with the code from the console."""
    if first_run.is_set_up():
        raise Http404
    form = SetUpForm(request.POST or None)
    if request.method == "POST":
        # Counted for the whole box, not per address: the code must not be guessed by many at once.
        if not ratelimit.consume(request, action="setup", key="setup"):
            return render(request, "accounts/setup.html", {"form": SetUpForm(), "too_many": True}, status=429)
        if form.is_valid():
            user = first_run.make_administrator(form.cleaned_data["username"], form.cleaned_data["password"])
            if user is None:
                raise Http404
            proof.keep_first(form.cleaned_data["password"])
            language.set_language_of_box(form.cleaned_data["language"] or language.asked_by_browser(request))
            login(request, user)
            UserSession.objects.create_from_request(request)
            if problem := set_first_zone(form.cleaned_data.get("time_zone", ""), user=user.username):
                messages.warning(request, problem)
            return redirect("overview")
    context = {"form": form, "notice": database.read_notice(Path(str(settings.DATABASES["default"]["NAME"])))}
    return render(request, "accounts/setup.html", context, status=400 if form.is_bound else 200)


@require_GET
def list_sessions(request: HttpRequest) -> HttpResponse:
    """Where the administrator is signed in."""
    rows = UserSession.objects.purge_and_list(request.user)
    rows.sort(key=lambda row: (not row.is_current(), row.created_at), reverse=False)
    return render(request, "accounts/sessions.html", {"sessions": rows})


@require_POST
def end_session(request: HttpRequest, pk: int) -> HttpResponse:
    """Sign one of them out; one that has ended already stays so."""
    if row := UserSession.objects.filter(pk=pk, user=request.user).first():
        row.end()
    return redirect("sessions")


def changed_at_agent(form: PasswordChangeForm) -> bool:
    """Whether the agent took the new password; why not stands in the form. Before ours: both have to be the same."""
    try:
        proof.store_password(form.cleaned_data["new_password1"], form.cleaned_data["old_password"])
    except LarderError as error:
        form.add_error(
            None, gettext("The password stays as it was. {error}").format(error=text_of(explain_error(error)))
        )
        return False
    return True


@sensitive_post_parameters()
@require_http_methods(["GET", "POST"])
def change_password(request: HttpRequest) -> HttpResponse:
    """Change the administrator's password; every other session ends."""
    if not isinstance(request.user, User):
        raise Http404
    if request.method == "POST" and not ratelimit.consume(request, action="change_password"):
        return render(
            request, "accounts/password.html", {"form": PasswordChangeForm(request.user), "too_many": True}, status=429
        )
    form = PasswordChangeForm(request.user, request.POST or None)
    if request.method == "POST" and form.is_valid() and changed_at_agent(form):
        user = form.save()
        for row in UserSession.objects.filter(user=user):
            if not row.is_current() and row.session_key != request.session.session_key:
                row.end()
        update_session_auth_hash(request, user)
        UserSession.objects.create_from_request(request)
        messages.success(request, gettext("Your password is changed. Every other session was signed out."))
        return redirect("sessions")
    return render(request, "accounts/password.html", {"form": form}, status=400 if form.is_bound else 200)


@require_http_methods(["GET", "POST"])
def edit_preferences(request: HttpRequest) -> HttpResponse:
    """What the user has chosen for the pages."""
    form = PreferencesForm(request.POST or None, instance=preferences_of(request))
    if request.method == "POST" and form.is_valid():
        form.save()
        with language.in_language(language.language_of(request)):
            messages.success(request, gettext("Your preferences are saved."))
        return redirect("preferences")
    return render(request, "accounts/preferences.html", {"form": form}, status=400 if form.is_bound else 200)


@require_POST
def show_commands(request: HttpRequest) -> HttpResponse:
    """Remember whether plans show their commands at once. Without script the page stays as it is."""
    chosen = preferences_of(request)
    chosen.show_commands = request.POST.get("show") == "yes"
    chosen.save()
    if not request.headers.get("HX-Request"):
        return HttpResponse(status=204)
    return render(request, "inc/commands_choice.html", {"preferences": chosen})
