"""The language of pages: as the user chose, else as the browser asks, else that of the box, which mails have too.

While only English is offered, requests pass by none of this.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

from django.conf import settings
from django.core.exceptions import MiddlewareNotUsed
from django.http import HttpRequest, HttpResponse
from django.utils import translation
from django.utils.translation import trans_real

from web.accounts.preferences import preferences_of
from web.alerts.models import MailSettings

Handler = Callable[[HttpRequest], HttpResponse]


def offered() -> dict[str, str]:
    """Code and own name of each language that can be chosen."""
    return dict(settings.LANGUAGES) if settings.OFFER_LANGUAGES else {}


def choices(unchosen: str) -> list[tuple[str, str]]:
    """For a user's field: the languages, after the words for none."""
    return [("", unchosen), *offered().items()]


def choices_of_box() -> list[tuple[str, str]]:
    """For the box's field, where no choice is English."""
    return [("" if code == settings.LANGUAGE_CODE else code, name) for code, name in offered().items()]


def in_language(code: str) -> AbstractContextManager[None]:
    """In this language; in that of the source where it is not offered (any more)."""
    if not settings.OFFER_LANGUAGES:
        return nullcontext()
    return translation.override(code if code in offered() else settings.LANGUAGE_CODE)


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
    return preferences_of(request).language or asked_by_browser(request) or MailSettings.load_row().language


def as_the_browser_asks(get_response: Handler) -> Handler:
    """Middleware: pages about faults, too, which are made before it is known who asks."""
    if not settings.OFFER_LANGUAGES:
        raise MiddlewareNotUsed

    def middleware(request: HttpRequest) -> HttpResponse:
        with in_language(asked_by_browser(request)):
            return get_response(request)

    return middleware


def as_the_user_chose(get_response: Handler) -> Handler:
    """Middleware: pages in the language of their reader."""
    if not settings.OFFER_LANGUAGES:
        raise MiddlewareNotUsed

    def middleware(request: HttpRequest) -> HttpResponse:
        with in_language(language_of(request)):
            return get_response(request)

    return middleware
