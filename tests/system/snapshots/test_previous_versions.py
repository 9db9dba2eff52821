"""Previous versions in Windows: the snapshots that Larder takes, through Samba's shadow_copy2, in UTC."""

from __future__ import annotations

import re

import pytest

from deploy.image.machine import Machine
from tests.system import sharing
from tests.system.policy import job_of, made
from tests.system.sharing import Client
from tests.visitor import Visitor

STATE = "share"


@pytest.fixture(scope="module")
def photos(appliance: Machine, visitor: Visitor) -> str:
    sharing.make_pool(appliance, "tank", "photos")
    sharing.make_person(visitor, "anna")
    said = sharing.set_share(visitor, appliance, "tank/photos", name="photos", write="anna", previous="on")
    assert said.startswith("Done."), said
    return f"/snapshots/of/{sharing.key_of(appliance, 'tank/photos')}/"


@pytest.mark.parametrize("zone", ["UTC", "America/St_Johns"])
def test_deleted_file_is_restored_from_previous_version(visitor, appliance, photos, tmp_path, zone):
    appliance.run("timedatectl", "set-timezone", zone)
    anna = Client(appliance, tmp_path, "anna")
    old, got = tmp_path / "old", tmp_path / "got"
    old.write_text(f"as it was in {zone}\n")
    anna.done("photos", f"put {old} letter.txt")
    job_of(visitor, f"{photos}take/")
    listed = appliance.run("zfs", "list", "-H", "-t", "snapshot", "-o", "name", "-S", "createtxg", "tank/photos")
    name = listed.splitlines()[0].partition("@")[2]
    assert name.startswith("larder-manual-")
    moment = name.removeprefix("larder-manual-")
    # A snapshot whose name has no moment is not among them.
    appliance.run("zfs", "snapshot", f"tank/photos@by-hand-{zone.replace('/', '-')}")
    said = anna.done("photos", "allinfo letter.txt")
    assert {f"larder-manual-{at}" for at in re.findall(r"@GMT-([\d.-]+)", said)} == set(made(appliance)), said
    anna.done("photos", "del letter.txt")
    anna.done("photos", f"get @GMT-{moment}\\letter.txt {got}")
    assert got.read_text() == old.read_text()
    appliance.run("timedatectl", "set-timezone", "UTC")
