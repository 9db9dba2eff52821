"""What an answer to htmx does to the page that asked: htmx itself follows redirects and
knows parts, not whole pages."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlsplit

from django.http import HttpRequest, HttpResponse
from django_htmx.http import HttpResponseClientRedirect, push_url, reswap, retarget
from django_htmx.middleware import HtmxDetails

LIVE = "live"  # the id of the part that asks on its own


def lead_htmx(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """Middleware: the browser goes where a redirect leads, unless that is the page that asked; a
    whole page takes its place."""

    def middleware(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        asked: HtmxDetails = request.htmx  # type: ignore[attr-defined]
        here = asked.current_url_abs_path
        if not asked or not here:
            return response
        if "Location" in response:
            return keep_query(response, here)
        if asked.trigger != LIVE and is_whole_page(response):
            reswap(retarget(response, "body"), "innerHTML show:window:top")  # type: ignore[arg-type]
            if request.method == "POST":  # a page of its own in the history, but not an address that only takes forms
                push_url(response, here)
        return response

    return middleware


def keep_query(response: HttpResponse, here: str) -> HttpResponse:
    """A redirect to the page that asked keeps its search and its page number; any other is a new page."""
    if urlsplit(response["Location"]).path == urlsplit(here).path:
        response["Location"] = here
        return response
    leading = HttpResponseClientRedirect(response["Location"])
    leading.cookies = response.cookies
    return leading


def is_whole_page(response: HttpResponse) -> bool:
    return not response.streaming and response.content[:15].lower() == b"<!doctype html>"
