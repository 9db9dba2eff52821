"""A snapshot policy that takes nothing when it should is told once, and so is that it does again.
Time is moved on by the test."""

from __future__ import annotations

from deploy.image.machine import wait_for
from tests.system import alerting
from tests.system.mailbox import text_of
from tests.system.policy import made, set_policy
from tests.system.sharing import key_of
from tests.visitor import create_pool, disk_paths

# Open: not yet seen to pass in an appliance, so none of it stands in the normal run.
MISSED = "tank: snapshots were not taken"


# Half an hour: what is overdue is looked for every five minutes of time that passes, and told
# when it has lasted for ten.
def test_a_policy_that_takes_nothing_is_told_once_and_its_return_too(appliance, visitor, post):
    alerting.tell(visitor, post)
    create_pool(appliance, "-f", "-o", "ashift=12", "tank", *disk_paths(appliance, 1))
    appliance.run("zfs", "create", "tank/photos")
    visitor.wait_until("/folders/", "tank/photos", timeout=180)
    set_policy(visitor, f"/snapshots/of/{key_of(appliance, 'tank/photos')}/")
    wait_for("the first of the policy", lambda: made(appliance), timeout=240)
    since = alerting.begin(appliance, post)

    # Nothing can be taken in a pool that can only be read.
    appliance.run("zpool", "export", "tank")
    appliance.run("zpool", "import", "-d", "/dev/disk/by-id", "-o", "readonly=on", "tank")
    known = made(appliance)

    def half_an_hour_later() -> object:
        appliance.run("date", "-s", "+30 minutes")
        return alerting.are_open(appliance, "policy.overdue")

    try:
        (row,) = wait_for("the alert", half_an_hour_later, timeout=2400, every=100)
        assert row[2] == f"{MISSED}."
        assert made(appliance) == known
        alerting.arrived(post, MISSED)
        assert "tank/photos" in text_of(post.about(MISSED)[0])

        appliance.run("zpool", "export", "tank")
        appliance.run("zpool", "import", "-d", "/dev/disk/by-id", "tank")
        appliance.run("date", "-s", "+6 hours")  # what fails again and again is tried after some hours
        wait_for("the next of the policy", lambda: set(made(appliance)) - set(known), timeout=300)
        visitor.sign_in()
        alerting.over(appliance, visitor, "policy.overdue", timeout=900)
        alerting.each_once(appliance, post, since, "policy.overdue")
    finally:
        appliance.set_clock()
