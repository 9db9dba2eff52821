"""The page of the ways to more room in a pool, the price of disks, and the plan that is followed over weeks."""

from __future__ import annotations

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext
from django.views.decorators.http import require_GET, require_POST

from appliance.formatting import disk_size
from web.inventory import store
from web.inventory.box import Box, read_box
from web.inventory.pool_cards import PoolCard
from web.pools import growth, growth_chart, growth_plans
from web.pools.growth_plans import STANDS
from web.pools.models import DiskPrice
from web.translation import lazy_text, text_of

LARGEST = 10**15  # bytes of a disk
YEARS = 5


class PriceForm(forms.Form):
    """What disks cost the owner."""

    per_tb = forms.DecimalField(
        label=lazy_text("Price of a TB"),
        required=False,
        min_value=0,
        max_value=100_000,
        max_digits=9,
        decimal_places=2,
        help_text=lazy_text("What you pay for disks. Leave it empty, and no costs are shown."),
    )
    currency = forms.CharField(
        label=lazy_text("Currency"), required=False, max_length=5, help_text=lazy_text("EUR, for example.")
    )


def find_card(key: str) -> tuple[Box, PoolCard]:
    """The box and the pool with that guid. Raises Http404."""
    box = read_box()
    card = next((card for card in box.cards if card.key == key), None)
    if card is None:
        raise Http404
    return box, card


def chosen_size(text: str) -> int:
    """The size of a new disk in an address; 0 for anything that is none."""
    size = int(text) if text.isascii() and text.isdigit() and len(text) <= 16 else 0
    return size if 10**8 <= size <= LARGEST else 0


def page_context(key: str, size: int, form: PriceForm | None = None) -> dict[str, object]:
    """What the page shows of one pool. A constant number of queries."""
    box, card = find_card(key)
    now = timezone.now()
    plan, row = growth_plans.open_plan(key), DiskPrice.load_row()
    page = growth.build_page(card, box, now, size)
    return {
        "card": card,
        "pool": card.pool,
        "growth": page,
        "sizes": [(one, text_of(disk_size(one))) for one in sorted({*page.sizes, page.new_disk} - {0})],
        "plan": growth_plans.describe_plan(plan, card.pool, box, now) if plan else None,
        "last": describe_last(key) if plan is None else None,
        "form": form or PriceForm(initial={"per_tb": row.per_tb, "currency": row.currency}),
        "priced": row.per_tb is not None,
        "view_box": growth_chart.BOX,
        "width": growth_chart.WIDTH,
        "mark": growth_chart.MARK,
        "years": [now.year + at for at in range(YEARS + 1)],
        "stands": STANDS.days,
    }


def describe_last(key: str) -> dict[str, object] | None:
    """The plan that ended last, and which disks took which places under it; None where there is none."""
    plan = growth_plans.last_plan(key)
    return {"plan": plan, "places": growth_plans.known_places(plan)} if plan else None


@require_GET
def show_growth(request: HttpRequest, key: str) -> HttpResponse:
    """Every way to more room, side by side."""
    return render(request, "pools/growth.html", page_context(key, chosen_size(request.GET.get("size", ""))))


@require_POST
def set_price(request: HttpRequest, key: str) -> HttpResponse:
    """Store the price of disks; it is that of the box, not of this pool."""
    form = PriceForm(request.POST)
    if not form.is_valid():
        context = page_context(key, 0, form)
        return render(request, "pools/growth.html", context, status=400)
    find_card(key)
    DiskPrice.objects.update_or_create(
        pk=1, defaults={"per_tb": form.cleaned_data["per_tb"], "currency": form.cleaned_data["currency"].strip()}
    )
    messages.success(request, gettext("The price was saved."))
    return redirect("pool_growth", key)


@require_POST
def begin_plan(request: HttpRequest, key: str) -> HttpResponse:
    """Begin the plan to replace every smaller disk. The disks are found anew, so a page that is
    old begins nothing wrong."""
    box, card = find_card(key)
    size = chosen_size(request.POST.get("size", ""))
    now = timezone.now()
    page = growth.build_page(card, box, now, size)
    way = next(offer.way for offer in page.offers if offer.way.key == "replace")
    if not way.is_possible or not way.targets:
        messages.error(request, way.reason or gettext("There is no disk to replace."))
        return redirect("pool_growth", key)
    growth_plans.begin_plan(card.pool, way.targets, page.new_disk, box, request.user.get_username(), now)
    store.touch("pools")
    return redirect("pool_growth", key)


@require_POST
def end_plan(request: HttpRequest, key: str) -> HttpResponse:
    """End the plan. Disks that were replaced stay."""
    _box, card = find_card(key)
    if plan := growth_plans.open_plan(key):
        growth_plans.end_plan(
            plan, gettext("Ended by {user}.").format(user=request.user.get_username()), timezone.now()
        )
        store.touch("pools")
        messages.success(request, gettext("The plan was ended. {name} stays as it is now.").format(name=card.pool.name))
    return redirect("pool_growth", key)
