"""The power goes at the worst moment of a change to a folder: after the start it is shared and
owned as its job's page says."""

from __future__ import annotations

import re

from deploy.image.machine import wait_for
from tests.system import sharing
from tests.system.crash import struck, watching


def test_mode_of_a_new_folder_outlives_a_power_cut_right_after_its_step(visitor, appliance):
    sharing.make_pool(appliance, "tank", "photos")
    visitor.wait_until("/folders/", "tank/photos")
    fields = {"parent": "tank", "name": "films", "preset": "general", "limit": "", "key": ""}
    with watching(appliance, entry="step done", step="mode", victim="nobody") as watcher:
        job = sharing.job_in(visitor.post("/folders/new/", **fields))
        struck(watcher)
        appliance.cut_power()
    appliance.power_on()
    assert appliance.run("stat", "-c", "%G %a", "/tank/films").split() == ["larder-people", "2770"]
    visitor.sign_in()
    assert visitor.ended(job).startswith("Done.")


def test_share_switched_off_as_the_power_goes_is_not_served_afterwards(visitor, appliance):
    sharing.make_person(visitor, "anna")
    assert sharing.set_share(visitor, appliance, "tank/photos", name="photos", write="anna").startswith("Done.")
    sharing.wait_for_switch(visitor, appliance, "tank/photos", "on")
    with watching(appliance, entry="step begun", step="serve", victim="nobody") as watcher:
        sharing.click(visitor, appliance, "tank/photos", "off")
        struck(watcher)
        appliance.cut_power()
    appliance.power_on()
    visitor.sign_in()
    assert '"smb"' not in appliance.run("zfs", "get", "-H", "-o", "value", "larder:share", "tank/photos")

    def closed() -> bool:
        return not re.search(r"^\[photos\]", appliance.run("testparm", "-s", "--suppress-prompt"), re.MULTILINE)

    wait_for("Samba to serve it no more", closed, timeout=120, every=2)
    sharing.wait_for_switch(visitor, appliance, "tank/photos", "off")
