"""What is seldom needed stands behind "More": a list that opens without a script and is closed at first."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

import pytest
from msgspec.structs import replace

from tests.unit.made import recorded_pool
from tests.web import rows
from tests.web.routes import PHOTOS

POOL = str(recorded_pool().guid)


class Links(HTMLParser):
    """The addresses of links and forms on a page: those ``behind`` a closed "More", and those ``in_sight``."""

    def __init__(self, response: Any) -> None:
        super().__init__()
        self.behind, self.in_sight = set[str](), set[str]()
        self.lists: list[dict[str, str]] = []
        self.in_summary = False
        self.feed(response.content.decode())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        if tag == "details":
            self.lists.append({"open": str("open" in found), "words": ""})
        self.in_summary = tag == "summary" or (self.in_summary and tag != "div")
        address = found.get("href") or found.get("action")
        if address and tag in {"a", "form"}:
            hidden = any(one["words"].startswith("More") and one["open"] == "False" for one in self.lists)
            (self.behind if hidden else self.in_sight).add(address)

    def handle_data(self, data: str) -> None:
        if self.in_summary and self.lists:
            self.lists[-1]["words"] += data.strip()

    def handle_endtag(self, tag: str) -> None:
        if tag == "details":
            self.lists.pop()
        if tag == "summary":
            self.in_summary = False


@pytest.mark.parametrize(
    ("page", "seldom", "often"),
    [
        ("/pools/", {"/pools/import/"}, {"/pools/new/"}),
        (
            "/folders/",
            {"/imports/", "/folders/volumes/", "/shares/by-hand/"},
            {"/shares/new/", "/folders/new/"},
        ),
        (
            f"/pools/{POOL}/",
            {f"/pools/{POOL}/trim/", f"/pools/{POOL}/end/export/", f"/pools/{POOL}/end/checkpoint/"},
            {f"/pools/{POOL}/scrub/"},
        ),
        (
            f"/folders/{PHOTOS}/",
            {f"/folders/{PHOTOS}/rename/", f"/folders/{PHOTOS}/do/unmount/", f"/folders/{PHOTOS}/destroy/"},
            {f"/snapshots/of/{PHOTOS}/take/", f"/folders/{PHOTOS}/settings/"},
        ),
    ],
)
def test_seldom_needed_things_stand_behind_more(web, calm, page, seldom, often):
    rows.recorded_box()
    rows.put(pools=[replace(recorded_pool(), can_trim=True)])
    found = Links(web.get(page))
    assert seldom <= found.behind, seldom - found.behind
    assert not seldom & found.in_sight
    assert often <= found.in_sight, often - found.in_sight


def test_pool_can_be_imported_in_sight_where_there_is_none(web, calm):
    rows.empty_box()
    assert "/pools/import/" in Links(web.get("/pools/")).in_sight
