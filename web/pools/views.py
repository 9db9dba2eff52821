"""The list of pools, the page of one pool, and unlocking an encrypted folder."""

from __future__ import annotations

from collections.abc import Iterator

from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext
from django.views.decorators.http import require_GET

from appliance.datasets.encryption.unlock import UnlockDataset
from appliance.formatting import size_text
from appliance.pools import health
from web import live
from web.alerts import pool_usage
from web.datasets import actions
from web.inventory.box import Box, read_box
from web.inventory.dataset_models import DatasetRow
from web.inventory.fact_row import readable_facts
from web.inventory.pool_cards import PoolCard
from web.jobs import confirm
from web.jobs.refusals import refusals_lead_to
from web.pools import advice, growth_plans, lifecycle_views, maintenance_views, rehearsal_views, topology
from web.snapshots import space
from web.translation import text_of

LOCKED = 5  # folders with a notice of their own


@require_GET
def list_pools(request: HttpRequest) -> HttpResponse:
    """Every pool."""

    def build_context() -> dict[str, object]:
        box = read_box()
        return {"cards": box.cards, "box": box}

    return live.respond(request, "pools/list.html", build_context)


@require_GET
def show_pool(request: HttpRequest, key: str) -> HttpResponse:
    """The page of one pool: its health, its disks, its folders."""

    def build_context() -> dict[str, object]:
        box = read_box()
        card = next((card for card in box.cards if card.key == key), None)
        if card is None:
            raise Http404
        folders = readable_facts(DatasetRow.objects.filter(pool=card.pool.name).order_by("name")[:200])
        return {
            "card": card,
            "pool": card.pool,
            "folders": folders,
            **locked_context(card.pool.name),
            "moving": lifecycle_views.lifecycle_context(card.pool),
            "space": next(pool_usage.usage_of_pools([card.pool], timezone.now()), None),
            **maintenance_views.checks_context(card.pool),
            "rehearsal": rehearsal_views.rehearsal_line(card.pool, box, folders),
            "rows": topology.topology_rows(card.pool, box),
            "pool_actions": list(topology.pool_actions(card.pool)),
            "advice": [
                *rehearsal_views.rehearsal_advice(card.pool, folders),
                *advice.pool_advice(card.pool, box),
                *plan_advice(card, box),
                *space_advice(card),
            ],
        }

    return live.respond(request, "pools/pool.html", build_context)


def locked_context(pool: str) -> dict[str, object]:
    """The first datasets of a pool that wait for a key, and how many more there are: a query, and
    one where there are many."""
    roots = actions.locked_roots().filter(pool=pool)
    found = readable_facts(roots[: LOCKED + 1])
    return {"locked": found[:LOCKED], "more_locked": roots.count() - LOCKED if len(found) > LOCKED else 0}


def plan_advice(card: PoolCard, box: Box) -> Iterator[advice.Advice]:
    """What is next in the plan to give the pool larger disks, where there is one. Two queries."""
    if plan := growth_plans.open_plan(card.key):
        found = growth_plans.describe_plan(plan, card.pool, box, timezone.now())
        state = "working" if found.state.running else "notice"
        yield advice.Advice(
            state, found.headline, found.text, growth_plans.growth_url(card.pool), gettext("See the plan")
        )


def space_advice(card: PoolCard) -> Iterator[advice.Advice]:
    """Suggest deleting old snapshots when the pool is nearly full."""
    name = card.pool.name
    if health.of_space(name, card.used, card.total) and (held := space.held_in(name)):
        yield advice.Advice(
            "attention",
            gettext("Old snapshots hold {held} of {name}.").format(held=text_of(size_text(held)), name=name),
            gettext("Delete snapshots that you no longer need to free it. The files in the folders stay as they are."),
            reverse("snapshots_space"),
            gettext("Show snapshots by space"),
        )


@require_GET
@refusals_lead_to("pools")
def unlock_dataset(request: HttpRequest) -> HttpResponse:
    """The review page of unlocking; it asks for the passphrase."""
    operation = UnlockDataset(dataset=request.GET.get("dataset", ""))
    return confirm.review(request, operation, back=reverse("pools"))
