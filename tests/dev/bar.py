"""A bar above every page: which recorded box this is, and links to the others (``?box=full``)."""

from __future__ import annotations

from collections.abc import Callable

from django.contrib.auth import login
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.html import format_html, format_html_join

from tests.dev import inventory
from tests.dev.boxes import BOXES
from tests.dev.place import SENTENCE
from web.accounts import first_run


def name_client(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """Middleware: say who asks, as nginx does. Before all others, since Django reads the headers of a request once."""

    def middleware(request: HttpRequest) -> HttpResponse:
        request.META.setdefault("HTTP_X_REAL_IP", request.META["REMOTE_ADDR"])
        return get_response(request)

    return middleware


class Bar:
    """Middleware. Changing the box signs in as its administrator, where it has one."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if (wanted := request.GET.get("box")) in BOXES:
            inventory.fill(wanted)
            if user := User.objects.first():
                login(request, user)
            return redirect("/")
        response = self.get_response(request)
        if not response.streaming and b"<body" in response.content:
            response.content = with_bar(response.content.decode()).encode()
        return response


def with_bar(page: str) -> str:
    head, body = page.split("<body", 1)
    attributes, rest = body.split(">", 1)
    style = '<link rel="stylesheet" href="/static/dev.css">'
    return f"{head.replace('</head>', f'{style}</head>')}<body{attributes}>{bar()}{rest}"


def bar() -> str:
    now = inventory.current()
    code = first_run.CODE.read_text() if first_run.CODE.exists() else ""
    links = ((name, summary, "true" if name == now else "false", name) for name, (summary, _build) in BOXES.items())
    return format_html(
        '<aside class="dev-bar" aria-label="Recorded box"><strong>{}</strong> {}{}</aside>',
        SENTENCE,
        format_html_join(" ", '<a href="/?box={}" title="{}" aria-current="{}">{}</a>', links),
        f" The set-up code is {code}." if code else "",
    )
