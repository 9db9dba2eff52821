"""Jobs that must not meet wait for each other, and a disk of unknown content is not taken as empty."""

from __future__ import annotations

import json
import uuid

from tests.system import moving
from tests.visitor import blank, create_pool, disk_paths

PYTHON = "/opt/larder/venv/bin/python"
HOLD = """
import sys, time
from appliance.system import locks
with locks.hold_locks([sys.argv[1]], print, who="Erase the disk of the test"):
    open("/run/larder-held", "w").close()
    while True: time.sleep(1)
"""
ASK = """
import json, sys
from appliance import agent_client as client, operation; from appliance.agent import registry as operations
from appliance.disks import probe
from appliance.agent.read_facts import read_facts
asked, job, read = json.loads(sys.argv[1]), sys.argv[2], sys.argv[3] == "read"
made = operations.decode_operation(json.dumps(asked))
facts = made.load_extra_facts(read_facts())
if read:
    import msgspec
    from appliance.facts.box import Use
    answer = client.send_request({"verb": "read-content", "disks": made.disks_taken()})["facts"]
    facts = probe.with_uses(facts, msgspec.convert(answer, dict[str, Use]))
plan = operation.checked_plan(made, facts)
end = client.send_request({"verb": "run", "job": job, "digest": plan.digest(), "operation": asked}, silence=900)["outcome"]
print(json.dumps({"typed": plan.type_to_confirm, "losses": [one.what for one in plan.losses], **end}))
"""


def create(appliance, pool: str, disk: str, *, read: bool) -> dict[str, object]:
    """Have the agent make a pool, planned by the inventory alone or with what it reads on the disk; the outcome."""
    asked = {"kind": "create-pool", "name": pool, "layout": "stripe", "groups": [[disk]]}
    said = appliance.run(
        PYTHON, "-I", "-c", ASK, json.dumps(asked), str(uuid.uuid4()), "read" if read else "", timeout=600
    )
    found = json.loads(said)
    assert isinstance(found, dict)
    return found


def test_unknown_content_is_refused_without_its_typed_name(visitor, appliance):
    (disk,) = disk_paths(appliance, 6)
    blank(appliance, disk)
    appliance.shell(f"head -c 3000000 /dev/urandom | dd of={disk} bs=1M conv=notrunc,fsync status=none")
    appliance.run("udevadm", "trigger", "--action=change", "--settle", disk)
    assert appliance.run("wipefs", "-n", disk).strip() == ""
    before = appliance.shell(f"head -c 3000000 {disk} | sha256sum")

    refused = create(appliance, "taken", disk, read=False)
    assert refused["state"] == "refused", refused
    assert refused["typed"] == ""
    assert appliance.shell(f"head -c 3000000 {disk} | sha256sum") == before
    assert "taken" not in moving.pools(appliance)

    # Reviewed with what the agent reads, it is erased first and the name has to be typed.
    made = create(appliance, "taken", disk, read=True)
    assert (made["state"], made["typed"]) == ("done", "taken"), made
    assert "does not recognise" in str(made["losses"])
    moving.clear(appliance, disk)

    # What is blank is free: nothing has to be typed.
    made = create(appliance, "empty", disk, read=True)
    assert (made["state"], made["typed"]) == ("done", ""), made
    moving.clear(appliance, disk)


def test_import_waits_while_its_disk_is_taken_by_another_job(visitor, appliance):
    (disk,) = disk_paths(appliance, 5)
    create_pool(appliance, "-f", "attic", disk)
    guid = moving.guid_of(appliance, "attic")
    appliance.run("zpool", "export", "attic")
    moving.look(visitor, "attic")
    appliance.put("/root/hold.py", HOLD)
    appliance.run(
        "systemd-run",
        "--unit=larder-held",
        "-p",
        "WorkingDirectory=/opt/larder/app",
        PYTHON,
        "-I",
        "/root/hold.py",
        disk,
    )
    try:
        appliance.shell("for at in $(seq 60); do [ -e /run/larder-held ] && exit 0; sleep 0.5; done; exit 1")
        job = visitor.confirm(moving.review_import(visitor, guid))
        visitor.wait_until(f"/jobs/{job}/", "Waiting for another job: Erase the disk of the test", timeout=240)
        assert moving.pools(appliance) == []
    finally:
        appliance.run("systemctl", "stop", "larder-held")
    assert visitor.ended(job, timeout=300).startswith("Done.")
    assert moving.pools(appliance) == ["attic"]
    moving.clear(appliance, disk)
