"""Pages hold what is private: names, texts of files, who is connected.
Nothing of them stays in a browser or a proxy."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse


def stored_nowhere(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """Middleware: ``no-store`` on every answer, added to what a view says itself."""

    def middleware(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        if "no-store" not in response.get("Cache-Control", ""):
            response["Cache-Control"] = "no-store"
        return response

    return middleware
