"""Pages tell the time by the clock on the box's wall."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from appliance.schedule import box_zone


def in_the_zone_of_the_box(
    get_response: Callable[[HttpRequest], HttpResponse],
) -> Callable[[HttpRequest], HttpResponse]:
    """Middleware: times in templates are in the zone that the box is set to, as the hours of its schedules are."""

    def middleware(request: HttpRequest) -> HttpResponse:
        with timezone.override(box_zone()):
            return get_response(request)

    return middleware
