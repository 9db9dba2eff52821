"""The review after which a schedule may delete automatic snapshots that this box has no record of."""

from __future__ import annotations

import logging

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods

from appliance.errors import Reason
from appliance.snapshots import policy as snapshot_policy
from appliance.snapshots.destroy import NAMED
from web.inventory import store
from web.inventory.fact_row import facts_of
from web.snapshots import adoption, agent_queries, paging
from web.snapshots.views import dataset_of, rows_below
from web.translation import reason_text

log = logging.getLogger(__name__)


@require_http_methods(["GET", "POST"])
def adopt_snapshots(request: HttpRequest, key: str) -> HttpResponse:
    """Review what it means for a folder and those that follow its schedule; confirmed, record what was shown.

    As with other schedules no password is asked for: the agent prunes within the folder's schedule alone.
    """
    dataset = dataset_of(key)
    policy = snapshot_policy.policy_of(dataset)
    followers = (
        [dataset, *snapshot_policy.inheriting_datasets(dataset, list(facts_of(rows_below(dataset))))] if policy else []
    )
    plan = adoption.plan_adoption(followers, timezone.now())
    to_type = dataset.name if len(plan.going) > NAMED else ""
    error, changed = "", False
    if request.method == "POST" and plan.rows:
        changed = request.POST.get("shown") != plan.fingerprint
        if not changed and request.POST.get("typed", "") == to_type:
            adoption.record_adopted(plan.rows)
            log.info("%s let the schedule of %s delete %d snapshots", request.user, dataset.name, len(plan.rows))
            store.touch("snapshots")
            text = ngettext(
                "The schedule now deletes {count} more snapshot when it is due.",
                "The schedule now deletes {count} more snapshots when they are due.",
                len(plan.rows),
            )
            messages.success(request, text.format(count=len(plan.rows)))
            return redirect("snapshots_of", key)
        if not changed:
            error = reason_text(
                Reason("name-not-typed", "Type {name} exactly, to show that you mean it.", field="typed", name=to_type)
            )
    context = {
        "dataset": dataset,
        "key": key,
        "policy": policy,
        "plan": plan,
        "rows": plan.rows[: paging.PAGE],
        "going": plan.going[: paging.PAGE],
        "going_count": len(plan.going),
        "freed": agent_queries.freed_by_pruning(plan.going) if plan.going else None,
        "folders": plan.folders,
        "to_type": to_type,
        "typed_error": error,
        "changed": changed,
    }
    status = 409 if changed else 400 if error else 200
    return render(request, "snapshots/adopt.html", context, status=status)
