"""When something goes wrong: a page with words, and the details in the journal under a short code."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable

from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import DisallowedHost
from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest
from django.shortcuts import render
from django.utils.translation import gettext

log = logging.getLogger(__name__)


def faults_in_words(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """Middleware: a call under a foreign name gets one plain line and no page."""

    def middleware(request: HttpRequest) -> HttpResponse:
        try:
            request.get_host()
        except DisallowedHost:
            return HttpResponseBadRequest(
                gettext("This box is not known by that name. Use its own name or its address."),
                content_type="text/plain",
            )
        return get_response(request)

    return middleware


@login_not_required
def server_error(request: HttpRequest) -> HttpResponse:
    """Larder's own fault. The page is static where even the templates cannot be had."""
    code = secrets.token_hex(2)
    log.error("fault %s at %s", code, request.path, exc_info=True)
    try:
        return render(request, "system/error.html", {"code": code}, status=500)
    except Exception:  # whatever broke the page may break this one too
        return HttpResponse(
            gettext("Something went wrong in Larder. The details are in the log under {code}.").format(code=code),
            status=500,
            content_type="text/plain",
        )


@login_not_required
def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:  # noqa: ARG001  # Django's signature
    return render(request, "system/not_found.html", status=404)


@login_not_required
def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    log.warning("refused a form at %s: %s", request.path, reason)
    return render(request, "system/csrf.html", status=403)
