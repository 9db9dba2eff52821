"""The page of alert levels: the severity of each kind of alert."""

from __future__ import annotations

from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext
from django.views.decorators.http import require_http_methods

from appliance.alerts.alert_kind import SEVERITIES
from appliance.alerts.kinds import KINDS
from web.alerts import reconcile
from web.alerts.models import KindSeverity
from web.forms_common import not_possible
from web.inventory import store


@require_http_methods(["GET", "POST"])
def alert_kinds(request: HttpRequest) -> HttpResponse:
    """All kinds with their severity, the worst first, as a form."""
    chosen = reconcile.current_severities()
    if request.method == "POST":
        wanted = {code: request.POST.get(code, chosen[code]) for code in KINDS}
        if not set(wanted.values()) <= set(SEVERITIES):
            return not_possible(request, gettext("Choose one of the listed severities."))
        with transaction.atomic():
            for code, severity in wanted.items():
                if severity != chosen[code]:
                    reconcile.set_severity(code, severity, timezone.now(), request.user.get_username())
        store.touch("alerts")
        messages.success(request, gettext("Saved."))
        return redirect("alert_kinds")
    own = set(KindSeverity.objects.values_list("kind", flat=True))
    listed = [
        (kind, [(severity, severity == chosen[kind.code]) for severity in SEVERITIES], kind.code in own)
        for kind in sorted(KINDS.values(), key=lambda kind: SEVERITIES.index(kind.severity))
    ]
    return render(request, "alerts/severities.html", {"kinds": listed})
