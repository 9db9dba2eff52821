"""A bay shows the worst of pool, SMART and heat; what can be used at once is counted apart
from what can be used later."""

from __future__ import annotations

import pytest

from appliance.facts.box import Use
from tests.unit.made import disk
from tests.unit.pools import shapes
from tests.web import rows
from tests.web.reading import Page, text_of
from web.disks import bay_state
from web.inventory.box import read_box
from web.inventory.models import DiskRow
from web.pools import topology

pytestmark = pytest.mark.django_db
HEAT = [["watch", "It is at 60 °C; its limit is 55 °C.", "temperature", 0, ""]]
COUNT = [["watch", "1 sector cannot be read.", "pending", 1, ""]]
OLD = (Use("old", "holds ext4 data called photos", "u1"),)


def put(pool=None, count: int = 4) -> None:
    pool = pool or shapes.mirror()
    rows.put(pools=[pool], datasets=[], disks=shapes.facts(pool, count=count).disks, accounts=[], shares=[])


def key(number: int) -> str:
    return disk(number).path.rsplit("/", 1)[-1]


def mark(number: int, verdict: str, reasons=(), **more) -> None:
    DiskRow.objects.filter(key=key(number)).update(
        verdict=verdict, reasons=list(reasons), smart_text=" ".join(one[1] for one in reasons), **more
    )


def shown(number: int) -> tuple[str, str]:
    (bay,) = [bay for bay in read_box().bays if bay.key == key(number)]
    return bay.state, bay.word


@pytest.mark.parametrize(
    ("verdict", "reasons", "state"),
    [
        ("healthy", (), ("healthy", "healthy")),
        ("unknown", (), ("healthy", "healthy")),
        ("", (), ("healthy", "healthy")),
        ("watch", COUNT, ("attention", "needs attention")),
        ("watch", HEAT, ("attention", "too warm")),
        ("watch", [*HEAT, *COUNT], ("attention", "needs attention")),
        ("failing", COUNT, ("failed", "failing")),
    ],
)
def test_bay_shows_smart_and_heat_of_a_disk_that_its_pool_calls_healthy(verdict, reasons, state):
    put()
    mark(1, verdict, reasons)
    assert shown(1) == state


def test_bay_shows_the_pools_word_where_that_is_as_bad_or_worse():
    put(shapes.mirror("FAULTED", "ONLINE"))
    mark(1, "failing", COUNT)
    assert shown(1) == ("failed", "failed")
    mark(1, "watch", HEAT)
    assert shown(1) == ("failed", "failed")


def test_sleep_hides_no_trouble():
    put()
    mark(1, "healthy", asleep=True)
    mark(2, "failing", COUNT, asleep=True)
    assert shown(1) == ("asleep", "asleep")
    assert shown(2) == ("failed", "failing")


def test_disks_page_and_health_page_agree(web, calm):
    put()
    mark(1, "watch", HEAT)
    assert text_of(web.get("/disks/")).count("too warm") == 2  # the picture and the list
    assert "too warm" in text_of(web.get(f"/disks/{key(1)}/health/"))
    row = DiskRow.objects.get(key=key(1))
    assert bay_state.disk_state(row) == shown(1)


def test_tree_of_the_pool_says_the_same_of_a_disk_as_its_bay(web, calm):
    put()
    assert "failing" not in text_of(web.get("/pools/7/"))
    mark(1, "failing", COUNT)
    (card,) = read_box().cards
    (row, other) = topology.topology_rows(card.pool, read_box())[0].children
    assert (row.state, row.word) == shown(1) == ("failed", "failing")
    assert (other.state, other.word) == shown(2) == ("healthy", "healthy")


def test_only_what_can_be_used_at_once_is_counted_as_free(web, calm):
    rows.empty_box(3, disk(4, uses=OLD), disk(5))
    mark(5, "failing", COUNT)
    said = "You have 3 free disks. 1 more holds old data and can be used once that is erased. 1 more is failing"
    assert said in text_of(web.get("/"))
    assert said in text_of(web.get("/pools/"))
    rows.empty_box(0, disk(4, uses=OLD))
    assert "You have no free disks. 1 holds old data" in text_of(web.get("/"))
    assert "There is no free disk" not in text_of(web.get("/pools/create/"))


def test_counts_of_a_failing_disk_are_not_cleared_but_the_disk_replaced(web, calm):
    worn = shapes.group("mirror-0", shapes.leaf(1, checksum_errors=3), shapes.leaf(2))
    put(shapes.pool(worn))
    assert f"/pools/7/vdev/{worn.children[0].guid}/clear/" in links(web)
    mark(1, "failing", COUNT)
    page = Page(web.get("/pools/7/"))
    assert not [link for link in links(web) if link.endswith("/clear/")]
    assert "has errors and is failing." in page.text
    assert "1 sector cannot be read. Replace it before another disk fails." in page.text


def links(web) -> list[str]:
    return [found["href"] for tag, found in Page(web.get("/pools/7/")).elements if tag == "a" and "href" in found]
