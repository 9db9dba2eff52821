"""Settings of the box that a benchmark has tried: switched by the script, kept or put back by the administrator."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from appliance.benchmarks.box_settings import frame_size
from appliance.benchmarks.box_settings.keep import KeepSetting, PutSettingBack
from appliance.benchmarks.box_settings.lost_ports import ForgetPort
from appliance.errors import Failed, LarderError, Reason, Refused, explain_error
from web.benchmarks import settings_trials
from web.benchmarks.client_models import ClientRunRow, running_of
from web.benchmarks.client_views import ENDED, TokenMessage, read_message, refuse
from web.jobs import confirm
from web.jobs.refusals import refusals_lead_to
from web.translation import text_of


class SwitchMessage(TokenMessage):
    """A message of a run that tries a setting."""

    on: bool


@csrf_exempt
@login_not_required
@require_POST
def switch_setting(request: HttpRequest) -> HttpResponse:
    """Switch the setting that the administrator chose for this run, or put it back."""
    try:
        message = read_message(request, SwitchMessage)
    except Refused as error:
        return refuse(explain_error(error), 403)
    row = running_of(message.token)
    if row is None:
        return refuse(ENDED, 403)
    try:
        settings_trials.switch(row, on=message.on)
    except LarderError as error:
        return refuse(settings_trials.explain_refusal(error, row), 409)
    return JsonResponse({"on": message.on})


@require_http_methods(["GET", "POST"])
@refusals_lead_to("client_run", "pk")
def end_trial(request: HttpRequest, pk: str) -> HttpResponse:
    """Put back what a run has switched and its script has not: the page that says what happens, then the act.
    A script that was heard a moment ago is not cut off unless that was ticked."""
    row = get_object_or_404(ClientRunRow, pk=pk)
    setting = settings_trials.find_tried(row)
    if setting is None:
        raise Refused(
            Reason(
                "setting-not-switched",
                "This measurement tries no setting any more: it was put back. Nothing was changed.",
            )
        )
    heard = settings_trials.is_heard(row)
    unticked = request.method == "POST" and heard and "anyway" not in request.POST
    if request.method == "GET" or unticked:
        context = {
            "row": row,
            "setting": setting,
            "heard": heard,
            "unticked": unticked,
            "tried": setting.show(row.tried),
            "former": setting.show(row.former) if setting.form.fullmatch(row.former) else "",
        }
        return render(request, "benchmarks/end_trial.html", context, status=409 if unticked else 200)
    try:
        answer = settings_trials.end_trial(row, request.user.get_username())
    except Failed as error:
        raise Refused(
            Reason(
                "setting-not-put-back",
                "The setting was not put back: {why} Its timer does that, at the latest after {minutes} minutes.",
                why=explain_error(error),
                minutes=-(-setting.seconds // 60),
            )
        ) from error
    messages.success(request, gettext("The box has {value} again.").format(value=text_of(setting.show(answer.value))))
    return redirect("client_run", pk=row.pk)


@require_POST
@refusals_lead_to("client_run", "pk")
def keep_setting(request: HttpRequest, pk: str) -> HttpResponse:
    """Keep what this run has tried, where it helped; an MTU after a trial of its own, from its page."""
    row = get_object_or_404(ClientRunRow, pk=pk)
    tried = settings_trials.judge(row)
    if not tried or not tried.helped:
        raise Refused(Reason("setting-did-not-help", "Only a setting that helped in this measurement can be kept."))
    if row.setting == frame_size.TAG:
        port, mtu = frame_size.port_of(row.tried), frame_size.mtu_of(row.tried)
        return redirect(f"{reverse('set_mtu', args=[port])}?mtu={mtu}")
    operation = KeepSetting(setting=row.setting, value=row.tried, former=row.former)
    job = confirm.start_without_review(operation, user=request.user.get_username())
    return redirect("job", pk=job.pk)


@require_POST
@refusals_lead_to("new_client_run")
def put_setting_back(request: HttpRequest, tag: str) -> HttpResponse:
    """Put a kept setting back to what it was before."""
    kept = next((one for one in settings_trials.read_settings() if one.tag == tag and one.kept and one.value), None)
    if kept is None:
        raise Refused(
            Reason("setting-not-kept", "This setting is as it was before, or cannot be read now. Nothing was changed.")
        )
    operation = PutSettingBack(setting=tag, value=kept.kept, former=kept.value)
    job = confirm.start_without_review(operation, user=request.user.get_username())
    return redirect("job", pk=job.pk)


@require_GET
@refusals_lead_to("new_client_run")
def forget_port(request: HttpRequest, tag: str, port: str) -> HttpResponse:
    """The review page of deleting what is kept for a port that is not there."""
    return confirm.review(request, ForgetPort(setting=tag, port=port), back=reverse("new_client_run"))
