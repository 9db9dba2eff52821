"""The main navigation says where somebody is, and only once."""

from __future__ import annotations

from typing import Any

import pytest

from tests.web.reading import Page


def marked(response: Any) -> list[str]:
    """The entries of the navigation that are marked as the present one."""
    elements = Page(response).elements
    starts = [at for at, (tag, found) in enumerate(elements) if tag == "nav" and found.get("class") == "app-nav"]
    ends = [at for at, (tag, _found) in enumerate(elements) if tag == "main"]
    return [found["href"] for _tag, found in elements[starts[0] : ends[0]] if "aria-current" in found] if starts else []


@pytest.mark.parametrize(
    ("url", "entry"),
    [
        ("/", "/"),
        ("/disks/bays/", "/disks/"),
        ("/benchmarks/new/disks/", "/benchmarks/"),
        ("/groups/family/members/", "/users/"),
        ("/shares/connected/", "/folders/"),
        ("/system/log/", "/system/"),
    ],
)
def test_page_marks_the_entry_that_it_belongs_to(web, box, url, entry):
    assert marked(web.get(url)) == [entry]
