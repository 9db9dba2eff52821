"""A pool with three shares comes back: it offers them, and one confirmation lets clients in."""

from __future__ import annotations

import json

import pytest

from tests.system import moving, sharing
from tests.system.sharing import CONFIG, Client

NAMES = ("photos", "films", "music")


@pytest.fixture(scope="module")
def moved(visitor, appliance):
    """Made as another box would have left it: the settings are the datasets' own, nobody here has agreed to any."""
    sharing.make_person(visitor, "anna")
    sharing.make_pool(appliance, "tank", *NAMES)
    for name in NAMES:
        setting = json.dumps({"smb": {"name": name, "write": ["anna"]}})
        appliance.run("zfs", "set", f"larder:share={setting}", f"tank/{name}")
        appliance.put(f"/tank/{name}/here.txt", f"{name}\n")
        appliance.shell(f"chmod 0640 /tank/{name}/here.txt; chgrp larder-people /tank/{name}/here.txt")
    guid = moving.guid_of(appliance, "tank")
    appliance.run("zpool", "export", "tank")
    moving.look(visitor, "Import tank")
    assert moving.bring_in(visitor, guid, name="tank").startswith("Done.")
    return guid


def test_three_shares_are_offered_off_and_on_after_one_confirmation(visitor, appliance, moved, tmp_path):
    anna = Client(appliance, tmp_path, "anna")
    for name in NAMES:
        visitor.wait_until(f"/pools/{moved}/", f"tank/{name} asks to be shared as {name} for anna", timeout=90)
        assert f"[{name}]" not in appliance.run("cat", CONFIG)
        assert anna.tried(name, "ls")[0] != 0
    review = moving.end_review(visitor, moved, "accept", "SMB as photos for anna")
    moving.done(visitor, review)
    for name in NAMES:
        assert "here.txt" in anna.done(name, "ls")
    visitor.wait_until(f"/pools/{moved}/", without=("asks to be shared",), timeout=60)
