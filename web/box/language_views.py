"""The language of the box: of mails, of its screen, and of pages where neither the user nor
the browser chose another."""

from __future__ import annotations

from django import forms
from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext
from django.views.decorators.http import require_http_methods

from web import language
from web.translation import lazy_text


class LanguageForm(forms.Form):
    """The languages, each under its own name."""

    language = forms.ChoiceField(
        label=lazy_text("Language"),
        choices=settings.LANGUAGES,
        error_messages={"invalid_choice": lazy_text("Choose a language from the list.")},
    )


@require_http_methods(["GET", "POST"])
def set_language(request: HttpRequest) -> HttpResponse:
    """The form with the language that is set; with an answer, that one is set."""
    given = request.POST if request.method == "POST" else None
    form = LanguageForm(given, initial={"language": language.language_of_box()})
    if form.is_bound and form.is_valid():
        language.set_language_of_box(form.cleaned_data["language"])
        with language.in_language(language.language_of(request)):
            messages.success(request, gettext("Saved."))
        return redirect("box")
    return render(request, "box/language.html", {"form": form}, status=400 if form.is_bound else 200)
