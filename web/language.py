"""The language of pages: as the user chose, else as the browser asks, else that of the box, which
mails and the console have."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils import translation
from django.utils.translation import trans_real

from appliance.system import atomic_file
from appliance.system.language import language_file
from web.accounts.preferences import preferences_of
from web.system.models import BoxChoices

log = logging.getLogger(__name__)
Handler = Callable[[HttpRequest], HttpResponse]


def choices(unchosen: str) -> list[tuple[str, str]]:
    """For a user's field: the languages, each under its own name, after the words for none."""
    return [("", unchosen), *settings.LANGUAGES]


def in_language(code: str) -> AbstractContextManager[None]:
    """In this language; in that of the source where it is not offered (any more)."""
    return translation.override(code if code in dict(settings.LANGUAGES) else settings.LANGUAGE_CODE)


def language_of_box() -> str:
    """The code of the language of the box."""
    return BoxChoices.load_row().language or settings.LANGUAGE_CODE


def set_language_of_box(code: str) -> None:
    """Store it, and write it where root's programs read it."""
    BoxChoices.objects.update_or_create(pk=1, defaults={"language": code})
    publish_language()


def publish_language() -> None:
    """Write the language of the box to the file from which the console's words take it
    (``appliance/system/language.py``)."""
    try:
        atomic_file.write_atomically(language_file(), language_of_box().encode(), mode=0o644)
    except OSError as problem:
        log.warning("the console stays in the language that it had: %s", problem)


def asked_by_browser(request: HttpRequest) -> str:
    """The first of the browser's languages that is offered; empty where there is none."""
    for code, _preference in trans_real.parse_accept_lang_header(request.headers.get("Accept-Language", "")):
        try:
            return translation.get_supported_language_variant(code)
        except LookupError:
            continue
    return ""


def language_of(request: HttpRequest) -> str:
    """The language of the person who reads the answer."""
    return preferences_of(request).language or asked_by_browser(request) or language_of_box()


def as_the_browser_asks(get_response: Handler) -> Handler:
    """Middleware: pages about faults, too, which are made before it is known who asks."""

    def middleware(request: HttpRequest) -> HttpResponse:
        with in_language(asked_by_browser(request)):
            return get_response(request)

    return middleware


def as_the_user_chose(get_response: Handler) -> Handler:
    """Middleware: pages in the language of their reader."""

    def middleware(request: HttpRequest) -> HttpResponse:
        with in_language(language_of(request)):
            return get_response(request)

    return middleware
