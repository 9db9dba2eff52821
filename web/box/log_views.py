"""The system's log: what the journal holds, in plain filters. The agent reads a page of it while the page loads."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

import msgspec
from django.http import HttpRequest, HttpResponse, QueryDict
from django.utils.cache import patch_vary_headers
from django.utils.translation import gettext
from django.views.decorators.http import require_GET

from appliance.errors import Failed, Refused, explain_error
from appliance.system.journal import LONGEST_TEXT, LogLine, LogPage
from appliance.system.redaction import Redactor, known_secrets
from web import agent, live
from web.alerts.models import MailSettings
from web.translation import lazy_text

SECONDS = 60.0
AREAS = {
    "all": lazy_text("Everything"),
    "larder": lazy_text("Larder"),
    "storage": lazy_text("Disks, pools and kernel"),
    "shares": lazy_text("Shares"),
    "access": lazy_text("Sign-ins and ssh"),
}
SEVERITIES = {"error": lazy_text("Errors"), "warning": lazy_text("Errors and warnings"), "all": lazy_text("Every line")}
PERIODS = {
    "hour": lazy_text("Last hour"),
    "day": lazy_text("Last day"),
    "week": lazy_text("Last week"),
    "start": lazy_text("Since the box started"),
    "former-start": lazy_text("Before the last start"),
}
# syslog's priorities in words, and the state that draws them.
WORDS = (
    lazy_text("emergency"),
    lazy_text("alert"),
    lazy_text("critical"),
    lazy_text("error"),
    lazy_text("warning"),
    lazy_text("notice"),
    "",
    lazy_text("debug"),
)
STATES = ("failed", "failed", "failed", "failed", "attention", "notice", "", "")


class LogFilter(msgspec.Struct, frozen=True):
    """What the filters are set to. What is not among the choices is as if it were not given."""

    area: str
    severity: str
    period: str
    text: str
    after: str

    @classmethod
    def from_query(cls, query: QueryDict) -> LogFilter:
        def chosen(name: str, choices: dict[str, str], usual: str) -> str:
            given = query.get(name, usual)
            return given if given in choices else usual

        return cls(
            chosen("area", AREAS, "all"),
            chosen("severity", SEVERITIES, "warning"),
            chosen("period", PERIODS, "day"),
            query.get("text", "").replace("\0", "").strip()[:LONGEST_TEXT],
            query.get("after", "")[:300],
        )

    @property
    def filters(self) -> dict[str, str]:
        return {"area": self.area, "severity": self.severity, "period": self.period, "text": self.text}

    def query(self, **more: str) -> str:
        """The address of the same filters with something else besides."""
        return urlencode({name: value for name, value in (self.filters | more).items() if value})


class ShownLine(msgspec.Struct, frozen=True):
    """A line as the page draws it."""

    at: datetime
    source: str
    text: str
    word: str
    state: str


@require_GET
def show_log(request: HttpRequest) -> HttpResponse:
    """A page of the log. Only its newest page is read again by itself."""
    asked = LogFilter.from_query(request.GET)
    page, problem = read_page(asked)
    context = describe_page(asked, page) if page else {}
    seen = f"{request.get_full_path()}{problem}{page.lines if page else ''}"
    current = f'"{hashlib.sha256(seen.encode(errors="replace")).hexdigest()[:20]}"'
    context |= {
        "asked": asked,
        "problem": problem,
        "areas": AREAS.items(),
        "severities": SEVERITIES.items(),
        "periods": PERIODS.items(),
        "longest": LONGEST_TEXT,
        "live_every": 15,
        # Older pages, and the start before this one, do not change.
        "live_ended": bool(asked.after) or asked.period == "former-start",
    }
    response = live.respond_with_tag(request, "box/log.html", lambda: context, current)
    patch_vary_headers(response, ["HX-Request"])
    response["ETag"], response["Cache-Control"] = current, "no-store"
    return response


def read_page(asked: LogFilter) -> tuple[LogPage | None, str]:
    """The page, or why there is none."""
    request = {"verb": "read-log", **asked.filters, "after": asked.after}
    try:
        return msgspec.convert(agent.last(request, silence=SECONDS)["facts"], LogPage), ""
    except (Refused, Failed) as error:
        return None, explain_error(error)
    except (KeyError, msgspec.ValidationError):
        return None, gettext("Larder's agent answered something that is no page of the log.")


def describe_page(asked: LogFilter, page: LogPage) -> dict[str, Any]:
    """What the template shows of a page. What the agent knows to be secret is hidden
    already; the rest is hidden here."""
    redactor = Redactor([*known_secrets(), MailSettings.load_row().webhook])
    return {
        "page": page,
        "lines": [shown_line(line, redactor) for line in page.lines],
        "reached": moment(page.reached) if page.reached else None,
        "older": asked.query(after=page.after) if page.after else "",
        "newest": asked.query(),
    }


def shown_line(line: LogLine, redactor: Redactor) -> ShownLine:
    return ShownLine(
        moment(line.at), line.source, redactor.hide(line.text), WORDS[line.priority], STATES[line.priority]
    )


def moment(seconds: float) -> datetime:
    """A time of the journal; the beginning of 1970 where it is out of range."""
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError, OSError):
        return datetime.fromtimestamp(0, UTC)
