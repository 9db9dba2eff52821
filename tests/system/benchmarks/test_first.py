"""The shortest benchmark: one disk, one case, one run."""

from __future__ import annotations

import json

from tests.system.measuring import complete, nothing_left, review
from tests.visitor import disk_paths


def test_one_case_on_one_disk_gives_a_figure_and_leaves_nothing(visitor, appliance):
    (disk,) = disk_paths(appliance, 1)
    page = review(visitor, "ashift", [disk], size="16 MiB", repeats=1)
    assert "1 case, each 1 time" in page.words
    said = complete(visitor, page, timeout=300)
    assert said.text.count('class="measured"') == 1
    told = json.loads(visitor.get(f"{said.url.split('?')[0]}export/json/").text)
    (case,) = told["cases"]
    assert case["median"] > 0
    assert case["runs"][0]["around"]["written"] >= 16 * 2**20
    assert {"Linux", "ZFS"} <= told["versions"].keys()
    nothing_left(appliance, disk)
