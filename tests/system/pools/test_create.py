"""The wizard's full form on real disks: log, cache and spare; equal partitions; a key in a file."""

from __future__ import annotations

import json
import urllib.error
import urllib.parse
import urllib.request
import uuid
from collections.abc import Callable, Iterator

import pytest

from appliance.layout.advice import judge_layout
from appliance.layout.choices import LayoutChoice
from appliance.layout.proposal import Candidate
from deploy.image.machine import wait_for
from tests.visitor import Answer, Visitor, disk_paths


def upload(visitor: Visitor, path: str, fields: dict[str, str], file: bytes) -> Answer:
    """Send a form with a file in its field ``secret``, as a browser would."""
    edge = uuid.uuid4().hex
    parts = [
        f'--{edge}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode()
        for name, value in fields.items()
    ]
    parts.append(
        (
            f'--{edge}\r\nContent-Disposition: form-data; name="secret"; filename="x.key"\r\nContent-Type: '
            "application/octet-stream\r\n\r\n"
        ).encode()
        + file
        + b"\r\n"
    )
    body = b"".join(parts) + f"--{edge}--\r\n".encode()
    url = urllib.parse.urljoin(visitor.appliance.address, path)
    headers = {"Referer": url, "Content-Type": f"multipart/form-data; boundary={edge}"}
    try:
        with visitor.opener.open(urllib.request.Request(url, body, headers), timeout=120) as reply:
            return Answer(reply.status, reply.url, reply.read().decode(), dict(reply.headers))
    except urllib.error.HTTPError as error:
        return Answer(error.code, error.url or url, error.read().decode(), dict(error.headers))


def job_of(answer: Answer) -> str:
    assert "/jobs/" in answer.url, answer.words
    return answer.url.rstrip("/").rsplit("/", 1)[-1]


def members(appliance, pool: str) -> dict[str, list[str]]:
    """The devices of a pool by role, as zpool itself says them."""
    status = json.loads(appliance.run("zpool", "status", "-j", "--json-int", pool))["pools"][pool]

    def leaves(vdevs: dict) -> list[str]:
        return [
            name
            for vdev in vdevs.values()
            for name in (leaves(vdev["vdevs"]) if vdev.get("vdevs") else [vdev.get("path") or vdev["name"]])
        ]

    root = next(iter(status["vdevs"].values()))
    return {
        "data": leaves(root["vdevs"]),
        **{role: leaves(status.get(role) or {}) for role in ("logs", "l2cache", "spares")},
    }


def ids(paths: list[str]) -> list[str]:
    return sorted(path.rsplit("/", 1)[-1].removesuffix("-part1") for path in paths)


def reviewed(visitor: Visitor, name: str, disks: list[str], layout: str, **more: object) -> Answer:
    """The review page, as soon as the pages know that the disks are not in use any more."""
    return wait_for(
        f"the review of {name}",
        lambda: (found := visitor.review_pool(name, disks, layout, **more)).status == 200 and found,
        timeout=120,
        every=2,
    )


@pytest.fixture
def block_events(appliance) -> Iterator[Callable[[], list[str]]]:
    """What the kernel has told of disks and partitions since the test began: "add sdb1", "remove sdb1"."""
    kept = "/run/block-events"
    appliance.run(
        "systemd-run",
        "--unit=block-events",
        f"--property=StandardOutput=file:{kept}",
        "stdbuf",
        "-oL",
        "udevadm",
        "monitor",
        "--kernel",
        "--subsystem-match=block",
    )
    wait_for("udevadm to listen", lambda: "KERNEL" in appliance.run("cat", kept), timeout=60)

    def read() -> list[str]:
        lines = [line.split() for line in appliance.run("cat", kept).splitlines() if line.startswith("KERNEL[")]
        return [f"{line[1]} {line[2].rsplit('/', 1)[-1]}" for line in lines]

    yield read
    appliance.run("systemctl", "stop", "block-events.service")


def test_a_pool_with_a_mirrored_log_a_cache_and_a_spare(appliance, visitor, block_events):
    data, logs, cache, spare = (disk_paths(appliance, *bays) for bays in ((1, 2), (3, 4), (5,), (6,)))
    review = reviewed(visitor, "tank", data, "mirror-1", logs=logs, cache=cache, spares=spare)
    assert f"log mirror {logs[0]} {logs[1]} cache {cache[0]} spare {spare[0]}" in review.words
    said = visitor.ended(visitor.confirm(review))
    assert said.startswith("Done."), said
    # udev takes the partitions of a disk away for a moment when somebody closes it (appliance/disks/udev.py). Not here.
    events = block_events()
    names = [
        appliance.run("readlink", "-f", path).strip().rsplit("/", 1)[-1] for path in (*data, *logs, *cache, *spare)
    ]
    assert {f"add {name}1" for name in names} <= set(events), events
    assert not [event for event in events if event.startswith("remove")], events
    # They are watched again afterwards.
    assert not appliance.shell("ls /run/udev/rules.d 2>/dev/null || true").split()
    found = members(appliance, "tank")
    assert {role: ids(paths) for role, paths in found.items()} == {
        "data": ids(data),
        "logs": ids(logs),
        "l2cache": ids(cache),
        "spares": ids(spare),
    }
    assert "mirror" in appliance.run("zpool", "list", "-v", "tank")
    guid = appliance.run("zpool", "get", "-Hp", "-o", "value", "guid", "tank").strip()
    visitor.wait_until(f"/pools/{guid}/", "log", "cache", "spare", timeout=60)


def test_a_device_in_use_is_refused_as_log_by_the_page_and_by_the_agent(appliance, visitor):
    (log,) = disk_paths(appliance, 3)
    answer = visitor.review_pool("second", [log], "stripe-1")
    assert answer.status == 400
    assert "part of the pool tank" in answer.words


def test_equal_partitions_give_a_protected_and_an_unprotected_pool(appliance, visitor):
    appliance.run("zpool", "destroy", "tank")
    data = disk_paths(appliance, 4, 5, 6)
    sizes = [appliance.disks[bay - 1].size for bay in (4, 5, 6)]
    promised = judge_layout([Candidate(size) for size in sizes], LayoutChoice("raidz1", 1, 0, equal=True))
    review = reviewed(visitor, "even", data, "raidz1-1-0-equal", rest="spill")
    assert "sgdisk --clear" in review.words
    assert "not protected" in review.words
    # What the pool before left on them is erased, so the name has to be typed.
    assert "This will be erased" in review.words
    said = visitor.ended(visitor.confirm(review, typed="even"), timeout=300)
    assert said.startswith("Done."), said
    assert sorted(members(appliance, "even")["data"]) == sorted(f"{path}-part1" for path in data)
    assert members(appliance, "spill")["data"] == [f"{data[2]}-part2"]
    for pool, bytes_promised in (("even", promised.usable), ("spill", promised.rest)):
        listed = appliance.run("zfs", "list", "-Hp", "-o", "used,available", pool)
        assert sum(map(int, listed.split())) == pytest.approx(bytes_promised, rel=0.01)
    visitor.wait_until("/pools/", "even", "spill", timeout=60)
    # A disk that is in both is in use, whichever of the two goes.
    appliance.run("zpool", "destroy", "spill")
    visitor.wait_until("/pools/", "even", without=("spill",), timeout=60)
    assert "part of the pool even" in visitor.review_pool("third", data[2:], "stripe-1").words


def test_a_pool_with_a_key_file_is_locked_without_it_and_unlocked_by_it(appliance, visitor):
    review = reviewed(visitor, "safe", disk_paths(appliance, 1), "stripe-1", encrypted="on", key_file="on")
    key = visitor.get("/pools/new/key/safe/").text.strip()
    assert len(bytes.fromhex(key)) == 32
    fields = {**review.hidden(), "typed": "safe"}

    without = visitor.send("/jobs/confirm/", fields)
    assert without.status == 400
    assert "Save the key first" in without.words

    said = visitor.ended(job_of(upload(visitor, "/jobs/confirm/", fields, f"{key}\n".encode())))
    assert said.startswith("Done."), said
    assert appliance.run("zfs", "get", "-H", "-o", "value", "keyformat,keystatus", "safe").split() == [
        "hex",
        "available",
    ]
    kept = appliance.shell(
        f"grep -rlF {key} /var/lib/larder /var/lib/larder-agent /run/larder /var/spool/larder || true; "
        f"journalctl --no-pager | grep -cF {key} || true; zpool history -il safe | grep -cF {key} || true"
    )
    assert kept.split() == ["0", "0"], kept

    appliance.run("zfs", "unmount", "safe")
    appliance.run("zfs", "unload-key", "safe")
    visitor.wait_until("/pools/", "Unlock safe", timeout=60)
    unlock = visitor.get("/pools/unlock/?dataset=safe")
    wrong = upload(visitor, "/jobs/confirm/", unlock.hidden(), b"not a key")
    assert wrong.status == 400
    assert "contains no key" in wrong.words
    another = visitor.get("/pools/new/key/safe/").text.encode()
    failed = visitor.ended(job_of(upload(visitor, "/jobs/confirm/", unlock.hidden(), another)))
    assert "still locked" in failed, failed
    unlock = visitor.get("/pools/unlock/?dataset=safe")
    said = visitor.ended(job_of(upload(visitor, "/jobs/confirm/", unlock.hidden(), key.encode())))
    assert said.startswith("Done."), said
    assert appliance.run("zfs", "get", "-H", "-o", "value", "keystatus,mounted", "safe").split() == ["available", "yes"]
