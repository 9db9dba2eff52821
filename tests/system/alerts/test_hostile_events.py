"""What lies in the spool and is no event: put aside and logged once, while what happens beside it is told."""

from __future__ import annotations

import json

import pytest

from deploy.image.machine import Machine, wait_for
from tests.system import alerting
from tests.system.mailbox import Mailbox
from tests.visitor import Visitor

SPOOL = "/var/spool/larder"
OFFLINE = "tank runs without a disk that was taken offline"
ODD = "<script>alert(1)</script>\r\nBcc: all@example.org"
LINES = """
cd /var/spool/larder/events
truncate -s 1G hostile-huge.json
printf '{"source":"zed","fie' > hostile-half.json
printf 'no event at all' > hostile-text.json
printf '["zed"]' > hostile-list.json
head -c 60000 /dev/zero | tr '\\0' '[' > hostile-deep.json
head -c 2000 /dev/urandom > hostile-bytes.json
mkfifo hostile-pipe.json
ln -s /etc/shadow hostile-link.json
ln -s /var/spool/larder/events/hostile-loop.json hostile-loop.json
"""
ASIDE = {f"hostile-{name}.json" for name in ("huge", "half", "text", "list", "deep", "bytes", "pipe")}
LINKS = {"hostile-link.json", "hostile-loop.json"}


@pytest.fixture(scope="module", autouse=True)
def told(appliance: Machine, visitor: Visitor, post: Mailbox) -> None:
    alerting.tell(visitor, post)
    alerting.make_tank(appliance)
    visitor.wait_until("/pools/", "tank", timeout=180)


def test_what_is_no_event_is_put_aside_logged_once_and_a_fault_beside_it_is_told(appliance, visitor, post):
    since, guid = alerting.begin(appliance, post), alerting.guid_of(appliance, 4)
    before = appliance.run("sha256sum", "/etc/shadow")
    appliance.shell(LINES)
    # An event as it should be, of a pool with a name that means harm.
    fields = {"ZEVENT_CLASS": "ereport.fs.zfs.io", "ZEVENT_POOL": ODD}
    appliance.put(f"{SPOOL}/new/odd", json.dumps({"source": "zed", "received": "soon", "fields": fields}))
    appliance.run("mv", f"{SPOOL}/new/odd", f"{SPOOL}/events/hostile-odd.json")
    appliance.run("zpool", "offline", "tank", guid)
    assert OFFLINE in alerting.raised(appliance, visitor, "pool.offline")
    alerting.arrived(post, OFFLINE)

    wait_for("an empty spool", lambda: "hostile" not in appliance.run("ls", f"{SPOOL}/events"), timeout=120)
    assert set(appliance.run("ls", f"{SPOOL}/aside").split()) == ASIDE
    said = appliance.run("journalctl", "-u", "larder-worker", "-o", "cat", "--no-pager")
    assert {name: said.count(f"set aside '{name}'") for name in ASIDE | LINKS} == dict.fromkeys(ASIDE | LINKS, 1)
    query = "select file, subject from inventory_event where file like 'hostile%'"
    heard = json.loads(appliance.run("python3", "-c", alerting.ASK, alerting.INVENTORY, query))
    assert heard == [["hostile-odd.json", ODD]]
    assert appliance.run("sha256sum", "/etc/shadow") == before
    for page in ("/", "/alerts/", "/pools/"):
        assert "<script>alert(1)" not in visitor.get(page).text

    appliance.run("zpool", "online", "tank", guid)
    alerting.over(appliance, visitor, "pool.offline")
    alerting.each_once(appliance, post, since, "pool.offline")
