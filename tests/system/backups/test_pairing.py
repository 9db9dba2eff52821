"""Backups to another Larder, paired by the code that it shows. The other Larder is this one by loopback: the code goes
from one of its pages to another, the offer through nginx, the copies through its own ssh server onto a second pool."""

from __future__ import annotations

import json
import re
import ssl
import urllib.error
import urllib.request

import pytest

from appliance.backups.pairing import codes
from deploy.image.machine import Machine, wait_for
from tests.system.backups.test_pool_to_pool import FORM, guids, make_photos, newest, run_now, start_now, sums
from tests.visitor import Visitor

ROOT, USER = "safe/backups/attic", "larder-receive"
COPY = f"{ROOT}/photos"
COPIES = {"photos": COPY, "photos/trip 2019": f"{COPY}/trip_2019", "photos/secret": f"{COPY}/secret"}
PUBLIC = f"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{'A' * 43}"
RETENTION = {"hourly": 24, "daily": 14, "weekly": 8, "monthly": 12, "days": 7}
OTHER_CODE = codes.spell_digits("0" * codes.DIGITS)


def receive(visitor: Visitor, *said: str) -> str:
    """The page of a pairing that nobody has used yet, set up by its form."""
    review = visitor.post("/backups/receiving/new/", pool="safe", name="attic", limit="", everything="on", **RETENTION)
    for words in said:
        assert words in review.words
    assert visitor.ended(visitor.confirm(review)).startswith("Done.")
    page = visitor.wait_until("/backups/receiving/", ROOT, "not paired yet", timeout=90)
    found = re.search(r"/backups/receiving/[0-9a-f]{8}/", page.text)
    assert found
    return found[0]


def show_code(visitor: Visitor, receiver: str) -> str:
    token = visitor.get(receiver).hidden()["csrfmiddlewaretoken"]
    page = visitor.send(f"{receiver}code/", {"csrfmiddlewaretoken": token})
    groups = re.findall(r'class="nowrap">([0-9A-Z]{5})', page.text)
    assert len(groups) == 4, page.words
    return "-".join(groups)


def pair(visitor: Visitor, code: str, address: str = "127.0.0.1") -> str:
    """How pairing with the box at this address ended."""
    review = visitor.post("/backups/computers/pair/", address=address)
    return visitor.ended(visitor.confirm(review, secret=code))


def offer(appliance: Machine, code: str) -> int:
    """The status that somebody in the network gets who offers a key with this code."""
    made = codes.make_offer(codes.key_of(code), PUBLIC, "stranger")
    body = json.dumps({name: getattr(made, name) for name in made.__struct_fields__}).encode()
    trust = ssl.create_default_context()
    trust.check_hostname, trust.verify_mode = False, ssl.CERT_NONE
    request = urllib.request.Request(f"{appliance.address}/backups/pair/", body, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=120, context=trust) as reply:
            return int(reply.status)
    except urllib.error.HTTPError as error:
        return error.code


def there(appliance: Machine) -> str:
    """Everything in the folder of the copies, by guid."""
    return appliance.run("zfs", "list", "-H", "-p", "-t", "all", "-o", "name,guid", "-r", ROOT)


def keys(appliance: Machine) -> list[str]:
    return appliance.shell("ls /var/lib/larder-ssh/").split()


@pytest.fixture(scope="module")
def photos(appliance: Machine, visitor: Visitor) -> str:
    """The key of the folder that is backed up."""
    return make_photos(appliance, visitor, 1_000_000)


@pytest.fixture(scope="module")
def receiver(appliance: Machine, visitor: Visitor, photos: str) -> str:
    """The page of the pairing on the side that receives."""
    assert offer(appliance, OTHER_CODE) == 404
    return receive(visitor, "It cannot destroy copies", "Without a limit")


@pytest.fixture(scope="module")
def remote(appliance: Machine, visitor: Visitor, receiver: str) -> str:
    """The page of the other Larder on the side that sends: paired."""
    code = show_code(visitor, receiver)
    said = pair(visitor, code)
    assert said.startswith("Done."), said
    assert offer(appliance, code) == 404  # it works once
    page = visitor.wait_until("/backups/computers/", "127.0.0.1", "ready", timeout=90)
    visitor.wait_until(receiver, "paired", without=("not paired yet", "Show a"), timeout=90)
    found = re.search(r"/backups/computers/[0-9a-f]{8}/", page.text)
    assert found
    return found[0]


@pytest.fixture(scope="module")
def task(appliance: Machine, visitor: Visitor, photos: str, remote: str) -> str:
    """The address of the backup, set up by its form; its first copy has been made."""
    place = f"computer-{remote.split('/')[-2]}"
    visitor.wait_until(f"/backups/of/{photos}/new/", "127.0.0.1 (", timeout=90)
    review = visitor.post(f"/backups/of/{photos}/new/", pool=place, name="photos", **FORM)
    assert visitor.ended(visitor.confirm(review)).startswith("Done.")
    page = visitor.wait_until("/backups/", "tank/photos", "127.0.0.1", "good", timeout=300)
    found = re.search(rf"/backups/of/{photos}/([0-9a-f]{{8}})/", page.text)
    assert found
    return found[0]


def test_wrong_codes_let_nobody_in_and_five_end_the_right_one(appliance, visitor, receiver):
    before = keys(appliance)
    code = show_code(visitor, receiver)
    assert "does not accept the code" in pair(visitor, OTHER_CODE)
    assert keys(appliance) == before  # nor is anything left here
    assert [offer(appliance, OTHER_CODE) for _try in range(4)] == [403] * 4
    assert "shows no code now" in pair(visitor, code)
    assert "ssh-ed25519" not in appliance.shell("cat /var/lib/larder-receive/.ssh/authorized_keys")


def test_code_that_was_cancelled_lets_nobody_in(appliance, visitor, receiver):
    code = show_code(visitor, receiver)
    token = visitor.wait_until(receiver, "A code was shown", timeout=60).hidden()["csrfmiddlewaretoken"]
    visitor.send(f"{receiver}withdraw/", {"csrfmiddlewaretoken": token})
    assert offer(appliance, code) == 404


def test_every_folder_arrives_at_the_paired_box(appliance, visitor, receiver, task):
    for name, copy in COPIES.items():
        assert guids(appliance, f"tank/{name}")[-1:] == guids(appliance, copy)[-1:] != []
        if name != "photos/secret":
            assert sums(appliance, newest(appliance, f"tank/{name}")) == sums(appliance, newest(appliance, copy))
    visitor.wait_until(receiver, COPY, "Restore", timeout=90)
    key = appliance.shell("ls /var/lib/larder-ssh/*.hosts").strip()
    assert appliance.shell("cut -d' ' -f1,2 /etc/ssh/ssh_host_ed25519_key.pub").strip() in appliance.run("cat", key)


def test_paired_box_can_destroy_nothing(appliance, task):
    before = there(appliance)
    last = newest(appliance, COPY)
    for words in (
        f"destroy {last}",
        f"destroy -r {COPY}",
        f"rollback -r {last}",
        f"rename {COPY} {ROOT}/x",
        f"set readonly=off {COPY}",
        f"receive -F {COPY}",
    ):
        stream = f"zfs send {newest(appliance, 'tank/photos')}" if "receive" in words else "true"
        said = appliance.shell(f"{stream} | runuser -u {USER} -- zfs {words} 2>&1 && echo status=0 || echo status=$?")
        assert "status=0" not in said, said
    appliance.shell("install -m 600 /var/lib/larder-ssh/*.key /root/stolen")
    for words in ("zfs destroy -r safe", "receive ../x 5 raw", "hello;id", "sh", "abort photos", ""):
        said = appliance.shell(
            "ssh -F none -i /root/stolen -o BatchMode=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null"
            f" {USER}@127.0.0.1 '{words}' </dev/null 2>&1 && echo status=0 || echo status=$?"
        )
        assert "status=0" not in said and "uid=" not in said, said
    assert there(appliance) == before


def test_visits_of_the_paired_box_are_seen(appliance, visitor, receiver, task):
    visitor.wait_until(receiver, "Last connected", "every copy", timeout=90)
    key = receiver.split("/")[-2]
    assert appliance.shell("cd /var/lib/larder-receive/visits; find . -type f -printf '%f %s %U\\n'").split()[:2] == [
        key,
        "0",
    ]
    assert appliance.shell("stat -c %U /var/lib/larder-receive /var/lib/larder-receive/visits").split() == [
        "root",
        USER,
    ]


def test_copies_that_are_no_longer_kept_go_here_and_the_next_one_arrives(appliance, visitor, receiver, task):
    for number in range(3):
        appliance.shell(f"head -c 300000 /dev/urandom > /tank/photos/kept{number}; sync; zpool sync tank")
        _job, said = run_now(visitor, task)
        assert said.startswith("Done."), said
    before, others = guids(appliance, COPY), guids(appliance, COPIES["photos/secret"])
    assert len(before) >= 4 and len(others) >= 4
    oldest = appliance.run(
        "zfs", "list", "-H", "-d", "1", "-t", "snapshot", "-o", "name", "-s", "createtxg", COPY
    ).split()[0]
    appliance.run("zfs", "hold", "keep", oldest)
    review = visitor.post(f"{receiver}retention/", hourly=0, daily=1, weekly=0, monthly=0, days=7)
    assert "no longer kept, within minutes" in review.words
    assert visitor.ended(visitor.confirm(review)).startswith("Done.")
    wait_for(
        "only the newest copy and the one that is held to be there",
        lambda: (
            guids(appliance, COPY) == [before[0], before[-1]]
            and guids(appliance, COPIES["photos/secret"]) == others[-1:]
        ),
        timeout=900,
        every=5,
    )
    appliance.shell("echo more > /tank/photos/more; sync; zpool sync tank")
    _job, said = run_now(visitor, task)
    assert said.startswith("Done."), said
    assert guids(appliance, COPY)[:-1] == [before[0], before[-1]]
    assert guids(appliance, COPY)[-1] == guids(appliance, "tank/photos")[-1]
    assert sums(appliance, newest(appliance, "tank/photos")) == sums(appliance, newest(appliance, COPY))
    appliance.run("zfs", "release", "keep", oldest)
    review = visitor.post(f"{receiver}retention/", everything="on", **RETENTION)
    assert visitor.ended(visitor.confirm(review)).startswith("Done.")


def test_removed_box_is_out_at_once_and_its_copies_stay(appliance, visitor, receiver, task):
    appliance.shell("head -c 60000000 /dev/urandom > /tank/photos/large; sync; zpool sync tank")
    before = guids(appliance, COPY)
    job = start_now(visitor, task)
    wait_for("some of it to have arrived", lambda: receiving(appliance), timeout=180, every=0.2)
    said = visitor.ended(visitor.confirm(visitor.get(f"{receiver}remove/")))
    assert said.startswith("Done."), said
    assert not receiving(appliance)
    assert "Done." not in visitor.ended(job)
    assert guids(appliance, COPY) == before
    _job, said = run_now(visitor, task)
    assert "does not let this box in" in said, said
    # A connection that was open before can ask for nothing either.
    key = receiver.split("/")[-2]
    said = appliance.shell(
        f"SSH_ORIGINAL_COMMAND=list runuser -u {USER} -- /usr/local/lib/larder/receive-copies {key} {ROOT} 2>&1"
        " && echo status=0 || echo status=$?"
    )
    assert "this pairing was removed" in said and "status=64" in said
    assert USER not in appliance.run("zfs", "allow", ROOT)


def test_folder_of_a_removed_box_is_used_again(appliance, visitor, task):
    before = there(appliance)
    visitor.wait_until("/backups/receiving/", "No other Larder sends copies here", timeout=90)
    receiver = receive(visitor, "The copies that are in it stay")
    assert there(appliance) == before
    assert pair(visitor, show_code(visitor, receiver)).startswith("Done.")


def receiving(appliance: Machine) -> bool:
    return bool(appliance.run("pgrep", "-u", USER, "-x", "zfs", check=False))
