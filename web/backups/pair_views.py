"""Pages of pairings: who brings copies here, the code that is shown once, and the address that answers who typed it."""

from __future__ import annotations

import logging

import msgspec
from allauth.core import ratelimit
from django.contrib.auth.decorators import login_not_required
from django.db.models import Q
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from appliance.backups.pairing.codes import LONGEST_MESSAGE, Offer
from appliance.backups.pairing.remove_receiver import RemoveReceiver
from appliance.backups.pairing.set_retention import SetReceivedRetention
from appliance.errors import Failed, LarderError, Reason, Refused, explain_error
from appliance.facts.receiver import Receiver
from web import agent, live
from web.backups import received, status
from web.backups.pair_forms import PairForm, ReceivedRetention, ReceiveForm, retention_initial
from web.inventory import store
from web.inventory.fact_row import look_up_or_none
from web.inventory.models import ReceiverRow
from web.jobs import confirm
from web.jobs.models import Job
from web.jobs.refusals import add_reasons, refusals_lead_to
from web.translation import lazy_text

log = logging.getLogger(__name__)
SECONDS = 60
KINDS_OF_JOBS = ("receive-copies", "remove-receiver", "set-received-retention")
NOT_A_MESSAGE = lazy_text("That is not how another Larder asks to be paired. Nothing was changed.")


def find_receiver(key: str) -> Receiver:
    """Raises Http404."""
    receiver: Receiver = get_object_or_404(ReceiverRow, key=key).fact
    return receiver


@require_GET
def list_receivers(request: HttpRequest) -> HttpResponse:
    """Every other Larder whose copies come here, and those that are not paired yet."""

    def build() -> dict[str, object]:
        return {"received": received.read_all(timezone.now())}

    return live.respond(request, "backups/receivers.html", build)


@require_http_methods(["GET", "POST"])
def receive_copies(request: HttpRequest) -> HttpResponse:
    """Ask where the copies of another Larder are to lie; then the review."""
    facts = status.read_facts(look_up_or_none)
    form = ReceiveForm(request.POST or None, facts=facts)
    if request.method == "POST" and form.is_valid():
        try:
            return confirm.review(request, form.operation, back=reverse("receive_copies"))
        except Refused as refusal:
            add_reasons(form, refusal.reasons)
    return live.respond_to_form(request, "backups/receive.html", {"form": form, "pools": facts.pools})


@require_GET
def show_receiver(request: HttpRequest, key: str) -> HttpResponse:
    """One other Larder: how it stands, and its copies here."""

    def build() -> dict[str, object]:
        (one,) = received.received([find_receiver(key)], timezone.now())
        mine = Q(kind__in=KINDS_OF_JOBS, subject=key) | Q(kind="prune-received", subject=one.receiver.root)
        job = Job.objects.filter(mine).defer("plan", "log").order_by("-created").first()
        return {"one": one, "job": job}

    return live.respond(request, "backups/receiver.html", build)


@sensitive_variables()
@require_POST
@refusals_lead_to("receiver", "key")
def show_code(request: HttpRequest, key: str) -> HttpResponse:
    """Make a code and show it, this once. It is in this answer and nowhere else."""
    receiver = find_receiver(key)
    try:
        made = agent.last({"verb": "make-pairing-code", "receiver": receiver.id}, silence=SECONDS)["facts"]
    except Failed as failure:
        raise Refused(Reason("pairing-code-not-made", "{why}", why=explain_error(failure))) from failure
    store.touch("receivers")
    code = str(made["code"])
    context = {"receiver": receiver, "groups": code.split("-"), "minutes": made["minutes"]}
    return render(request, "backups/pairing_code.html", context)


@require_POST
@refusals_lead_to("receivers")
def withdraw_code(_request: HttpRequest, key: str) -> HttpResponse:
    """Have a code count no longer. Harmless to repeat."""
    try:
        agent.last({"verb": "withdraw-pairing-code", "receiver": find_receiver(key).id}, silence=SECONDS)
    except Failed as failure:
        raise Refused(Reason("pairing-code-stays", "{why}", why=explain_error(failure))) from failure
    store.touch("receivers")
    return redirect("receiver", key=key)


@require_GET
@refusals_lead_to("receiver", "key")
def remove_receiver(request: HttpRequest, key: str) -> HttpResponse:
    """Review what removing another Larder means. Its copies stay."""
    operation = RemoveReceiver(receiver=find_receiver(key).id)
    return confirm.review(request, operation, back=reverse("receiver", args=[key]))


@require_http_methods(["GET", "POST"])
def set_retention(request: HttpRequest, key: str) -> HttpResponse:
    """Ask how long the copies of another Larder stay here; then the review."""
    receiver = find_receiver(key)
    form = ReceivedRetention(request.POST or None, initial=retention_initial(receiver))
    if request.method == "POST" and form.is_valid():
        try:
            wanted = SetReceivedRetention(receiver=receiver.id, keep=form.keep, days=form.cleaned_data["days"])
            return confirm.review(request, wanted, back=reverse("receiver", args=[key]))
        except Refused as refusal:
            add_reasons(form, refusal.reasons)
    context = {"form": form, "receiver": receiver}
    return live.respond_to_form(request, "backups/received_retention.html", context)


@require_http_methods(["GET", "POST"])
def pair_box(request: HttpRequest) -> HttpResponse:
    """Ask for the address of the Larder that shows a code; its review asks for the code."""
    form = PairForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            return confirm.review(request, form.operation, back=reverse("pair_box"))
        except Refused as refusal:
            add_reasons(form, refusal.reasons)
    return live.respond_to_form(request, "backups/pair.html", {"form": form})


# --- what the other Larder asks, without a session -------------------------------------------------------------------
def refuse(text: str, code: int) -> JsonResponse:
    return JsonResponse({"error": text}, status=code)


@csrf_exempt
@login_not_required
@require_POST
def accept_pairing(request: HttpRequest) -> HttpResponse:
    """Hand the offer of another Larder to the agent, which alone knows the code. 404 while no code is shown."""
    # Counted for the whole box, not per address: the code must not be guessed by many at once.
    if not ratelimit.consume(request, action="pairing_code", key="pairing_code"):
        return refuse(gettext("Too many tries. Wait five minutes."), 429)
    length = request.headers.get("Content-Length", "")
    if not length.isdecimal() or int(length) > LONGEST_MESSAGE:
        return refuse(NOT_A_MESSAGE, 403)
    try:
        offer = msgspec.json.decode(request.body, type=Offer)
    except (msgspec.MsgspecError, Refused, UnicodeDecodeError, RecursionError):
        return refuse(NOT_A_MESSAGE, 403)
    try:
        answer = agent.last({"verb": "accept-pairing", "offer": msgspec.to_builtins(offer)}, silence=SECONDS)["facts"]
    except Refused as refusal:
        is_open = all(reason.code != "pairing-not-open" for reason in refusal.reasons)
        return refuse(explain_error(refusal), 403 if is_open else 404)
    except LarderError as error:
        log.warning("another Larder could not be paired: %s", error)
        return refuse(gettext("This Larder cannot be paired now."), 503)
    store.touch("receivers")
    return JsonResponse({name: answer[name] for name in ("host_key", "user", "root", "port", "proof")})
