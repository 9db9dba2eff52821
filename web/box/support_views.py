"""The page of the support bundle: what will be in it, making it, looking at each of its files, downloading it."""

from __future__ import annotations

import hashlib

from django import forms
from django.http import FileResponse, Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.cache import patch_vary_headers
from django.views.decorators.http import require_GET, require_POST

from appliance.formatting import capitalize_opening
from appliance.support.bundle import MASKED
from web import live
from web.box import support, support_rows
from web.box.support import SHELF
from web.translation import lazy_text


class MaskForm(forms.Form):
    masked = forms.MultipleChoiceField(
        label=lazy_text("Replace by masks"),
        required=False,
        choices=[(kind, capitalize_opening(words)) for kind, words in MASKED.items()],
        widget=forms.CheckboxSelectMultiple,
        initial=list(MASKED),
        help_text=lazy_text("The same name always gets the same mask, for example <pool-1>."),
    )


@require_GET
def show_support(request: HttpRequest) -> HttpResponse:
    """What would be in a bundle, how far one is, or what is in the one that was made."""
    bundle = SHELF.current()
    seen = f"{request.get_full_path()}{(bundle.key, bundle.at, bundle.problem, bundle.is_made) if bundle else ''}"
    current = f'"{hashlib.sha256(seen.encode(errors="replace")).hexdigest()[:20]}"'
    context = {
        "bundle": bundle,
        "contents": list(support.HOLDS.items()),
        "form": MaskForm(),
        "masked": [MASKED[kind] for kind in MASKED if bundle and kind in bundle.masked],
        "live_every": 2,
        "live_ended": not (bundle and bundle.is_running),
    }
    response = live.respond_with_tag(request, "box/support.html", lambda: context, current)
    patch_vary_headers(response, ["HX-Request"])
    response["ETag"], response["Cache-Control"] = current, "no-store"
    return response


@require_POST
def make_bundle(request: HttpRequest) -> HttpResponse:
    """Begin one. It changes nothing on the box, so there is no review and no job."""
    form = MaskForm(request.POST)
    masked = form.cleaned_data["masked"] if form.is_valid() else list(MASKED)
    asked = {"verb": "make-bundle", "own": support_rows.own_files(), **support_rows.masked_values(), "masked": masked}
    SHELF.make(asked, support.start_thread)
    return redirect("support")


@require_POST
def discard_bundle(_request: HttpRequest) -> HttpResponse:
    SHELF.discard()
    return redirect("support")


@require_GET
def show_file(request: HttpRequest, key: str, name: str) -> HttpResponse:
    """One file of the bundle as text. Raises Http404 where it is not there any more."""
    found = SHELF.text_of(key, name)
    if found is None:
        raise Http404
    text, whole = found
    return render(request, "box/support_file.html", {"name": name, "text": text, "whole": whole, "key": key})


@require_GET
def download_bundle(_request: HttpRequest, key: str) -> HttpResponseBase:
    """The zip. Raises Http404 where it is not there any more."""
    reader = SHELF.open(key)
    if reader is None:
        raise Http404
    name = f"larder-support-{timezone.localtime():%Y-%m-%d-%H%M}.zip"
    response = FileResponse(reader, as_attachment=True, filename=name, content_type="application/zip")
    response["Content-Length"] = str(reader.size)
    response["Cache-Control"] = "private, no-store"
    response["X-Accel-Buffering"] = "no"  # else nginx would write it to the system's disk
    return response
