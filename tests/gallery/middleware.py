"""Fills and opens the recorded boxes for the gallery, and keeps them as they are."""

from __future__ import annotations

from collections.abc import Callable

from django.contrib.auth import login
from django.contrib.auth.models import User
from django.db import transaction
from django.http import HttpRequest, HttpResponse, JsonResponse

from tests.dev import inventory
from tests.dev.boxes import BOXES
from web.box.support import SHELF


class Gallery:
    """Middleware. ``GET /gallery/BOX/`` fills that box; whatever a form does is rolled back
    once its answer was rendered."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        parts = request.path.strip("/").split("/")
        if parts[0] == "gallery" and parts[-1] in BOXES:
            return open_box(request, parts[-1])
        if request.method != "POST":
            return self.get_response(request)
        with transaction.atomic(), transaction.atomic(using="inventory"):
            response = self.get_response(request)
            transaction.set_rollback(True)
            transaction.set_rollback(True, using="inventory")
        SHELF.discard()  # a support bundle is kept in memory
        return response


def open_box(request: HttpRequest, name: str) -> HttpResponse:
    """Fill the box, sign its administrator in, and answer with the addresses of its pages."""
    from tests.gallery import samples, states  # they import the views, which load after the middleware

    inventory.fill(name)
    states.add_states(name)
    if user := User.objects.first():
        login(request, user)
    return JsonResponse(samples.find_samples())
