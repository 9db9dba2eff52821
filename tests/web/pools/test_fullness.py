"""Card, page and bar of a pool say how full it is by the same table as its alerts."""

from __future__ import annotations

from html.parser import HTMLParser

import msgspec
import pytest
from django.template.loader import render_to_string

from appliance.pools import fullness, health
from tests.unit.made import dataset
from tests.unit.pools import shapes
from tests.web import rows
from tests.web.reading import text_of
from web.alerts.models import Alert
from web.inventory.models import PoolRow
from web.inventory.pool_cards import build_pool_card

pytestmark = pytest.mark.django_db


class Meter(HTMLParser):
    """Which of its three colours browsers give a meter, by the HTML standard with the optimum at the low end."""

    colour = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "meter":
            found = {name: int(value) for name, value in attrs if value and value.isdigit()}
            assert found["optimum"] < found["low"] < found["high"]
            value = found["value"]
            self.colour = "usual" if value <= found["low"] else "amber" if value <= found["high"] else "red"


@pytest.mark.parametrize("percent", range(101))
def test_card_bar_and_alert_agree_at_every_percent(percent):
    level = fullness.classify(percent).level
    root = dataset("tank", used=percent * 10**9, available=(100 - percent) * 10**9)
    card = build_pool_card(PoolRow(key="7", name="tank", facts=msgspec.json.encode(shapes.raidz2()).decode()), root, {})
    meter = Meter()
    meter.feed(render_to_string("inc/space_bar.html", {"card": card}))
    assert (card.percent, card.state) == (percent, health.LEVEL_STATES[level])
    assert card.word == (fullness.classify(percent).word or "healthy")
    assert meter.colour == {"critical": "red", "warning": "amber"}.get(level, "usual")
    assert Alert(severity=level).mark_state == card.state if level else True


@pytest.mark.parametrize(("percent", "said"), [(85, "tank is filling up"), (97, "tank is almost out of space")])
def test_pages_name_the_level(web, calm, percent, said):
    rows.put(
        pools=[shapes.raidz2()],
        datasets=[dataset("tank", used=percent * 10**9, available=(100 - percent) * 10**9)],
        disks=shapes.facts(shapes.raidz2()).disks,
    )
    for address in ("/", "/pools/", "/pools/7/"):
        assert said in text_of(web.get(address)), address
