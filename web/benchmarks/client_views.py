"""Benchmarks from another computer: the pages of the administrator, and what the script on the other computer asks.

The script has no session. It proves itself by a code that works once, and then by a token; it gets nothing but the
names of what it is to measure, and a port for a minute.
"""

from __future__ import annotations

import logging
import shlex
import ssl
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any

import msgspec
from allauth.core import ratelimit
from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_GET, require_http_methods, require_POST

import appliance.benchmarks
from appliance.benchmarks.box_settings.catalogue import SETTINGS
from appliance.benchmarks.client_report import LONGEST_REPORT, ClientReport, decode
from appliance.benchmarks.wire import OpenWire
from appliance.benchmarks.wire_listener import PORT
from appliance.errors import LarderError, Reason, Refused, explain_error
from appliance.request import verb_of
from appliance.shares.settings import SPOKEN
from appliance.strict_struct import StrictStruct
from web import agent, live
from web.benchmarks import client_results, settings_trials
from web.benchmarks.client_forms import ClientRunForm
from web.benchmarks.client_models import MOST_WIRES, ClientRunRow, claim_run, make_run, running_of
from web.benchmarks.views import memory_limit
from web.inventory import store
from web.jobs import queue
from web.translation import lazy_text, text_of

log = logging.getLogger(__name__)
SCRIPT = Path(appliance.benchmarks.__path__[0]) / "larder-client"
CERTIFICATE = Path("/etc/larder/tls.crt")
SMALL_FILES = 100
SECONDS_FOR_WIRE = 100
TOO_MANY = lazy_text("Too many wrong codes. Wait five minutes, then make a new code. Nothing was changed.")
UNKNOWN = lazy_text(
    "This code is wrong, used or older than 30 minutes. Make a new one on the page of the box. Nothing was changed."
)
ENDED = lazy_text("This measurement has ended. Make a new code on the page of the box. Nothing was changed.")


class BeginMessage(StrictStruct):
    """The first message of the script."""

    code: Annotated[str, msgspec.Meta(max_length=40)]


class TokenMessage(StrictStruct):
    """A message of a run that has begun."""

    token: Annotated[str, msgspec.Meta(min_length=20, max_length=100)]


@cache
def script_text() -> bytes:
    return SCRIPT.read_bytes()


def certificate_fingerprint(path: Path = CERTIFICATE) -> str:
    """SHA-256 of the box's certificate, so that the script talks to no other box; empty where it cannot be read."""
    try:
        return sha256(ssl.PEM_cert_to_DER_cert(path.read_text().strip())).hexdigest()
    except (OSError, ValueError):
        return ""


@require_http_methods(["GET", "POST"])
def new_client_run(request: HttpRequest) -> HttpResponse:
    """The form; then the page with the code, which is shown once and stored nowhere."""
    if request.method == "GET":
        queue.request_refresh()
    settings = settings_trials.read_settings()
    form = ClientRunForm(request.POST or None, facts=store.facts(), memory=memory_limit(), settings=settings)
    if request.method == "POST" and form.is_valid():
        row, code = make_run(**form.row_fields, created_by=request.user.get_username())
        return render(request, "benchmarks/client_code.html", code_context(request, row, code))
    status = 400 if form.is_bound and form.errors else 200
    context = {
        "form": form,
        "kept": settings_trials.list_kept(settings),
        "lost": settings_trials.list_lost(settings),
        "switched": settings_trials.list_tried(),
        "settings": settings_trials.explain_settings(settings),
    }
    return render(request, "benchmarks/client_new.html", context, status=status)


def code_context(request: HttpRequest, row: ClientRunRow, code: str) -> dict[str, object]:
    box = f"https://{request.get_host()}"
    fingerprint = certificate_fingerprint()
    proof = f"--fingerprint {fingerprint}" if fingerprint else "--insecure"
    run = f"python3 larder-client.py --box {box} --code {code} {proof}"
    return {
        "row": row,
        "code": code,
        "spoken": SPOKEN[row.protocol],
        "fetch": f"curl -k -o larder-client.py {box}{reverse('client_script')}",
        "run": run,
        "mounted": f"{run} --folder {example_place(row)}",
        "script_sum": sha256(script_text()).hexdigest(),
        "port": PORT,
        "setting": SETTINGS[row.setting].name if row.setting else "",
        "warning": SETTINGS[row.setting].warning if row.setting else "",
        "script_lines": script_text().count(b"\n"),
    }


def example_place(row: ClientRunRow) -> str:
    """Where the other computer may have the shared folder: a Mac says it by its name."""
    return shlex.quote(f"/Volumes/{row.share}") if row.protocol == "afp" else "/mnt/photos"


@require_GET
def show_client_run(request: HttpRequest, pk: str) -> HttpResponse:
    """The result: each part alone, what the other computer reached, and the limit."""

    def build() -> dict[str, object]:
        row = get_object_or_404(ClientRunRow, pk=pk)
        figures, verdicts = row.figures, client_results.verdicts_of(row)
        state, word = row.shown_state
        return {
            "row": row,
            "spoken": SPOKEN[row.protocol],
            "state": state,
            "word": word,
            "figures": figures,
            "verdicts": verdicts,
            "lines": client_results.result_lines(verdicts, figures) if figures else [],
            "small": client_results.spread(figures, "small", "per second") if figures else "",
            "hashing": client_results.spread(figures, "hashing") if figures else "",
            "tried": settings_trials.judge(row),
            "switched": settings_trials.find_tried(row),
            "loopback_missing": any(one.ceilings.protocol is None for one in verdicts),
            "is_final": client_results.is_final(row),
            "live_ended": not row.open,
        }

    return live.respond(request, "benchmarks/client_result.html", build)


@require_POST
def forget_client_run(_request: HttpRequest, pk: str) -> HttpResponse:
    """Delete a result, or take back a code. Harmless to repeat."""
    for row in ClientRunRow.objects.filter(pk=pk):
        settings_trials.put_back(row)
        row.delete()
    messages.success(_request, gettext("The measurement was deleted."))
    return redirect("benchmarks")


@login_not_required
@require_GET
def show_script(_request: HttpRequest) -> HttpResponse:
    """The script as text, to be read before it is run. It has no secret and is the same on every box."""
    return HttpResponse(script_text(), content_type="text/plain; charset=utf-8")


def refuse(text: str, status: int) -> JsonResponse:
    return JsonResponse({"error": text_of(text)}, status=status)


def read_message(request: HttpRequest, kind: Any) -> Any:
    """The body of a message of the script. Raises Refused."""
    length = request.headers.get("Content-Length", "0")
    if not length.isdecimal() or int(length) > LONGEST_REPORT:
        raise Refused(Reason("client-message-too-long", "The message is too long. Nothing was changed."))
    return decode(request.body, kind)


@csrf_exempt
@login_not_required
@require_POST
def begin_client_run(request: HttpRequest) -> HttpResponse:
    """Take a code, once, and say what to measure."""
    # Counted for the whole box, not per address: the code must not be guessed by many at once.
    if not ratelimit.consume(request, action="client_code", key="client_code"):
        return refuse(TOO_MANY, 429)
    try:
        message = read_message(request, BeginMessage)
    except Refused as error:
        return refuse(explain_error(error), 403)
    found = claim_run(message.code, request.headers.get("X-Real-IP", ""))
    if not found:
        return refuse(UNKNOWN, 403)
    row, token = found
    store.touch("sweeps")
    asked = {"token": token, "protocol": row.protocol, "share": row.share, "size": row.size, "runs": row.runs}
    warning = text_of(SETTINGS[row.setting].warning) if row.setting else ""
    return JsonResponse({**asked, "small_files": SMALL_FILES, "compare": bool(row.setting), "warning": warning})


@csrf_exempt
@login_not_required
@require_POST
def open_wire(request: HttpRequest) -> HttpResponse:
    """Have the agent open a port for a minute, for this run alone."""
    try:
        message = read_message(request, TokenMessage)
    except Refused as error:
        return refuse(explain_error(error), 403)
    row = running_of(message.token)
    if row is None or row.wires >= MOST_WIRES:
        return refuse(ENDED, 403)
    ClientRunRow.objects.filter(pk=row.pk).update(wires=row.wires + 1)
    try:
        told = agent.last({"verb": verb_of(OpenWire)}, silence=SECONDS_FOR_WIRE)["facts"]
    except LarderError as error:
        log.warning("the port for a benchmark could not be opened: %s", error)
        return refuse(explain_error(error), 409)
    return JsonResponse({name: told[name] for name in ("port", "key", "seconds")})


@csrf_exempt
@login_not_required
@require_POST
def finish_client_run(request: HttpRequest) -> HttpResponse:
    """Store the figures of a run, once, and answer what they mean."""
    try:
        report = read_message(request, ClientReport)
    except Refused as error:
        return refuse(explain_error(error), 403)
    row = running_of(report.token)
    if row is None:
        return refuse(ENDED, 403)
    settings_trials.put_back(row)
    failed = report.figures is None
    changed = ClientRunRow.objects.filter(pk=row.pk, state=ClientRunRow.State.RUNNING).update(
        state=ClientRunRow.State.FAILED if failed else ClientRunRow.State.DONE,
        told="" if failed else msgspec.json.encode(report.figures).decode(),
        text=report.failed,
        token_hash="",
        finished=timezone.now(),
    )
    if not changed:
        return refuse(ENDED, 403)
    store.touch("sweeps")
    row.refresh_from_db()
    sentences = [one.sentence for one in client_results.verdicts_of(row)]
    if tried := settings_trials.judge(row):
        sentences.append(f"{tried.name}. {tried.sentence}")
    return JsonResponse({"sentences": sentences})
