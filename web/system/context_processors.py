"""What every page shows around its content."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.http import HttpRequest

from appliance.alerts.kinds import KINDS
from web.alerts.models import Alert
from web.inventory.models import Activity
from web.jobs.models import Job
from web.system import service_status

NEWS = [kind.code for kind in KINDS.values() if kind.news]


def page_frame(request: HttpRequest) -> dict[str, Any]:
    """Box name, work under way, troubles, age of the facts. Four queries, none before someone is signed in."""
    if not getattr(request, "user", None) or not request.user.is_authenticated:
        return {"box_name": str(settings.BOX_NAME), "larder_version": settings.VERSION}
    now = service_status.service_status(request)
    open_jobs = list(Job.objects.filter(state__in=Job.OPEN).only("id", "title", "state", "said")[:20])
    long_work = list(Activity.objects.filter(state__in=Activity.UNDER_WAY).defer("samples")[:20])
    return {
        "box_name": str(settings.BOX_NAME),
        "larder_version": settings.VERSION,
        "troubles": now.troubles,
        "checked": now.checked,
        "open_jobs": open_jobs,
        "open_alerts": Alert.objects.filter(state=Alert.State.OPEN).exclude(kind__in=NEWS, severity="notice").count(),
        "long_work": long_work,
        "working": len(open_jobs) + len(long_work),
    }
