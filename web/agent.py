"""How pages ask the agent something that may take a while: two at a time, so that two of the four
threads stay for other pages."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from appliance import agent_client

AT_ONCE = 2
SECONDS_FOR_A_TURN = 1.0
SECONDS_TO_RETRY = 10
TURNS = threading.BoundedSemaphore(AT_ONCE)


class AgentBusy(Exception):
    """Too many pages wait for the agent already."""


@contextmanager
def turn() -> Iterator[None]:
    """One of the few that may wait for the agent. Raises Busy."""
    if not TURNS.acquire(timeout=SECONDS_FOR_A_TURN):
        raise AgentBusy
    try:
        yield
    finally:
        TURNS.release()


def last(request: dict[str, Any], *, silence: float) -> dict[str, Any]:
    """The last reply to a request. Raises Busy, and what ``client.last`` raises."""
    with turn():
        return agent_client.send_request(request, silence=silence)


def open_file(request: dict[str, Any], *, silence: float) -> tuple[dict[str, Any], int]:
    """A file and what is told of it. Raises Busy, and what ``client.open_file`` raises."""
    with turn():
        return agent_client.open_file(request, silence=silence)


def make_file(
    request: dict[str, Any], *, silence: float, report: Callable[[dict[str, Any]], None]
) -> tuple[dict[str, Any], int]:
    """A file that takes a while to make. Only for a thread that serves no page: it takes no turn.
    Raises as ``open_file``."""
    return agent_client.open_file(request, silence=silence, report=report)


class BusyPage:
    """Middleware: where a page got no turn, one that says so and, where that is safe, tries again by itself."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        if not isinstance(exception, AgentBusy):
            return None
        again = SECONDS_TO_RETRY if request.method == "GET" else 0
        response = render(request, "system/busy.html", {"again": again}, status=503)
        response["Retry-After"] = str(SECONDS_TO_RETRY)
        if again:
            response["Refresh"] = str(again)
        response["Cache-Control"] = "no-store"
        return response
