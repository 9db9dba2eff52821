"""Parts of Larder fail, hang and answer nonsense, one after the other: the rest goes on, and
each fault is reported once."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from deploy.image.machine import Machine, wait_for
from tests.system import alerting, faults, moving, protocols, sharing
from tests.system.crash import stopped
from tests.system.mailbox import Mailbox, mailbox
from tests.visitor import Visitor

# A short watchdog, so that nobody waits five minutes for it.
QUICK = "[Service]\nWatchdogSec=45\nTimeoutAbortSec=5\n"
DROP_IN = "/run/systemd/system/larder-worker.service.d/quick.conf"
# A benchmark of another version of Larder: its next case cannot be understood.
ODD_SWEEP = (
    "insert into sweeps_sweeprow (id, title, preset, spec, state, text, versions, created, created_by) values "
    "('00000000000040008000000000000001', 'Odd', '', '{}', 'running', '', '', '2026-01-01 00:00:00', 'admin')"
)
ODD_CASE = (
    "insert into sweeps_caserow (sweep_id, number, spec, state, token, ended, attempts, text) values "
    "('00000000000040008000000000000001', 1, '{\"where\":\"tape\"}', 'waiting', '', '', 0, '')"
)


@pytest.fixture(scope="module")
def post() -> Iterator[Mailbox]:
    with mailbox() as box:
        yield box


@pytest.fixture(scope="module", autouse=True)
def told(appliance: Machine, visitor: Visitor, post: Mailbox) -> None:
    alerting.tell(visitor, post)


def pid_of(appliance: Machine, unit: str) -> str:
    return appliance.run("systemctl", "show", "-P", "MainPID", unit).strip()


def test_a_worker_that_hangs_is_restarted_and_says_so(appliance, visitor, post):
    since = alerting.begin(appliance, post)
    appliance.run("mkdir", "-p", DROP_IN.rpartition("/")[0])
    appliance.put(DROP_IN, QUICK)
    appliance.shell("systemctl daemon-reload && systemctl restart larder-worker")
    wait_for("a tick", lambda: appliance.run("cat", f"{faults.RUN}/at-work.json", check=False), timeout=120)
    before, pid = faults.restarts(appliance), pid_of(appliance, "larder-worker")
    appliance.run("kill", "-STOP", pid)
    wait_for("another worker", lambda: faults.restarts(appliance) > before, timeout=180, every=2)
    assert pid_of(appliance, "larder-worker") != pid
    assert "hung and was restarted" in alerting.raised(appliance, visitor, "worker.restarted")
    alerting.arrived(post, "background worker hung and was restarted")
    assert alerting.kinds_since(appliance, since) == ["worker.restarted"]
    appliance.run("rm", DROP_IN)
    appliance.shell("systemctl daemon-reload && systemctl restart larder-worker")


def test_a_worker_that_works_is_left_alone_by_the_watchdog(appliance):
    assert appliance.run("systemctl", "show", "-P", "WatchdogUSec", "larder-worker").strip() == "5min"
    before = faults.restarts(appliance)
    told = appliance.run("systemctl", "show", "-P", "WatchdogTimestampMonotonic", "larder-worker")
    wait_for(
        "word of a finished tick",
        lambda: appliance.run("systemctl", "show", "-P", "WatchdogTimestampMonotonic", "larder-worker") != told,
        timeout=120,
    )
    assert faults.restarts(appliance) == before


def test_a_benchmark_that_cannot_be_understood_stops_nothing(appliance, visitor, post):
    alerting.begin(appliance, post)
    for row in (ODD_SWEEP, ODD_CASE):
        appliance.run("python3", "-c", alerting.DO, alerting.SETTINGS, row)
    rows = wait_for(
        "the benchmark to be held",
        lambda: alerting.ask(appliance, "select text from sweeps_sweeprow where title = 'Odd' and state = 'paused'"),
        timeout=120,
    )
    assert rows[0][0].startswith("Larder cannot continue this benchmark")
    alerting.make_tank(appliance)
    appliance.run("zpool", "offline", "tank", alerting.guid_of(appliance, 4))
    # Nobody looks at a page: the clock alone has to see it and send it.
    alerting.arrived(post, "taken offline")
    appliance.run("zpool", "online", "tank", alerting.guid_of(appliance, 4))
    alerting.over(appliance, visitor, "pool.offline")


# --- parts of the background work ---------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def spoilable(appliance: Machine, visitor: Visitor) -> Iterator[None]:
    """The worker whose parts can be spoiled, on a box that shares a folder over SMB and NFS."""
    if "tank" not in moving.pools(appliance):
        alerting.make_tank(appliance)
    sharing.make_pool(appliance, "tank", "photos")
    sharing.make_person(visitor, "anna")
    nfs, smb = {"hosts": list(protocols.NETWORKS)}, {"name": "photos", "write": ["anna"]}
    if moving.prop(appliance, "larder:share", "tank/photos") == "-":
        protocols.share(appliance, visitor, "tank/photos", smb=smb, nfs=nfs)
    wait_for(
        "both file servers",
        lambda: appliance.run("systemctl", "is-active", "smbd", "nfs-server", check=False).split() == ["active"] * 2,
        timeout=180,
    )
    with faults.worker_replaced(appliance):
        yield


@pytest.fixture
def since(appliance: Machine, post: Mailbox, spoilable: None) -> int:
    """Nothing is wrong, and everything that was has been told. The number of the newest alert so far."""
    wait_for(
        "the end of what was before",
        lambda: alerting.hasten(appliance) or not open_since(appliance, 0),
        timeout=400,
        every=3,
    )
    return alerting.begin(appliance, post)


def open_since(appliance: Machine, since: int) -> list[list[str]]:
    """Kind and subject of what is not over, but for the day's news and what is only ever told and never over."""
    return alerting.ask(
        appliance,
        f"select kind, subject from larder_alerts_alert where id > {since} and state != 'cleared' and "
        "severity != 'notice' and kind != 'worker.restarted' order by id",
    )


def told_once(appliance: Machine, post: Mailbox, since: int, *expected: tuple[str, str]) -> None:
    """These alerts, and no others, have come since then, and each was told by one mail."""
    rows = alerting.ask(
        appliance, f"select kind, subject, summary from larder_alerts_alert where id > {since} and severity != 'notice'"
    )
    assert sorted((kind, subject) for kind, subject, _summary in rows) == sorted(expected)
    for _kind, _subject, summary in rows:
        words = f"Larder larder: {summary.rstrip('.')}"
        wait_for(f"the mail {words}", lambda words=words: words in post.subjects(), timeout=240)  # type: ignore[misc]
        assert post.subjects().count(words) == 1, post.subjects()


def read_times(appliance: Machine) -> dict[str, str]:
    """When each source was read last, and under "now" the time of the appliance."""
    rows = json.loads(
        appliance.run(
            "python3",
            "-c",
            alerting.ASK,
            alerting.INVENTORY,
            "select name, checked from inventory_source where checked is not null union select 'now', datetime('now')",
        )
    )
    return dict(rows)


@pytest.mark.parametrize("group", faults.GROUPS, ids="+".join)
def test_parts_that_fail_are_told_once_each_and_all_others_go_on(appliance, post, since, group):
    expected = [faults.alert_of(name) for name in group]
    begun = read_times(appliance)["now"]
    with faults.spoiled(appliance, "fail", *group):
        wait_for(
            f"alerts of {group}",
            lambda: {tuple(row) for row in open_since(appliance, since)} >= set(expected),
            timeout=300,
            every=2,
        )

        def late() -> set[str]:
            read = read_times(appliance)
            return {one for one in faults.going_on(group) if read.get(one, "") <= begun}

        wait_for(f"all others to be read, first {late()}", lambda: not late(), timeout=300, every=2)
        if not {"tick-mail", "run-mail"} & set(group):
            told_once(appliance, post, since, *expected)
    told_once(appliance, post, since, *expected)
    wait_for("their end", lambda: alerting.hasten(appliance) or not open_since(appliance, since), timeout=300, every=2)


# --- what surrounds Larder ----------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("proof", "some"),
    faults.FAULTS,
    ids=lambda some: "+".join(one.name for one in some) if isinstance(some, tuple) else some,
)
def test_everything_else_goes_on_and_each_fault_is_told_once(appliance, post, since, proof, some):
    expected = [(one.kind, one.subject) for one in some if one.kind]
    tank = moving.guid_of(appliance, "tank")  # asked before, as what tells it may be spoiled
    # The clock asks the disks each five minutes, and an agent that is silent is given three more.
    asks_disks = faults.AGENT in expected
    with faults.faults_there(appliance, some):
        if asks_disks:
            alerting.ask_disks(appliance)
        wait_for(
            f"alerts of {expected}",
            lambda: {tuple(row) for row in open_since(appliance, since)} >= set(expected),
            timeout=400,
            every=3,
        )
        # Something else breaks meanwhile, and is told.
        if proof == "pool":
            expected.append(take_disk(appliance, post, tank))
        elif proof == "smartd":
            appliance.run("systemctl", "stop", "smartmontools")
            alerting.arrived(post, "Disks are not monitored")
            appliance.run("systemctl", "start", "smartmontools")
            expected.append(("service.smartd", "smartmontools.service"))
        told_once(appliance, post, since, *expected)
    if asks_disks:
        alerting.ask_disks(appliance)
    if proof == "afterwards":
        wait_for(
            "its end", lambda: alerting.hasten(appliance) or not open_since(appliance, since), timeout=400, every=3
        )
        expected.append(take_disk(appliance, post, tank))
    wait_for(
        "the end of all of it",
        lambda: alerting.hasten(appliance) or not open_since(appliance, since),
        timeout=400,
        every=3,
    )
    told_once(appliance, post, since, *expected)


def take_disk(appliance: Machine, post: Mailbox, tank: str) -> tuple[str, str]:
    """A disk of the pool of that guid is taken offline, which is told, and comes back; kind
    and subject of the alert."""
    appliance.run("zpool", "offline", "tank", alerting.guid_of(appliance, 4))
    alerting.arrived(post, "taken offline")
    appliance.run("zpool", "online", "tank", alerting.guid_of(appliance, 4))
    return "pool.offline", tank


def test_settings_that_are_locked_are_told_by_mail_once_and_all_goes_on_afterwards(appliance, post, since):
    begin, end = faults.locked(alerting.SETTINGS)
    appliance.shell(begin)
    try:
        alerting.arrived(post, "cannot use its database of settings")
    finally:
        appliance.shell(end)
    expected = take_disk(appliance, post, moving.guid_of(appliance, "tank"))
    wait_for(
        "the end of all of it",
        lambda: alerting.hasten(appliance) or not open_since(appliance, since),
        timeout=400,
        every=3,
    )
    assert len(post.about("cannot use its database of settings")) == 1, post.subjects()
    told_once(appliance, post, since, expected)


# --- mail ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("mode", ["refuse", "greylist", "hang", "drop", "nonsense"])
def test_a_mail_server_that_fails_or_hangs_stops_nothing_and_what_waits_is_sent_later(appliance, post, since, mode):
    post.mode, before = mode, post.tries
    try:
        appliance.run("zpool", "offline", "tank", alerting.guid_of(appliance, 4))
        pool = ["pool.offline", moving.guid_of(appliance, "tank")]
        wait_for("the alert of the pool", lambda: pool in open_since(appliance, since), timeout=240, every=3)
        wait_for("a try", lambda: post.tries > before, timeout=240)
    finally:
        post.mode = "take"
    wait_for("the mail", lambda: alerting.hasten(appliance) or post.about("taken offline"), timeout=400, every=5)
    appliance.run("zpool", "online", "tank", alerting.guid_of(appliance, 4))
    wait_for("its end", lambda: alerting.hasten(appliance) or not open_since(appliance, since), timeout=400, every=5)
    kinds = alerting.kinds_since(appliance, since)
    assert kinds.count("pool.offline") == 1
    assert kinds.count("mail.failing") <= 1
    assert set(kinds) <= {"pool.offline", "mail.failing"}
    assert post.subjects().count("Larder larder: tank runs without a disk that was taken offline") == 1, post.subjects()


def test_with_redis_away_a_fault_is_told(appliance, visitor, post):
    if "tank" not in moving.pools(appliance):
        alerting.make_tank(appliance)
        visitor.wait_until("/pools/", "tank", timeout=180)
    alerting.begin(appliance, post)
    with stopped(appliance, "redis-server@larder"):
        appliance.run("zpool", "offline", "tank", alerting.guid_of(appliance, 4))
        alerting.arrived(post, "taken offline")
    appliance.run("zpool", "online", "tank", alerting.guid_of(appliance, 4))
    alerting.over(appliance, visitor, "pool.offline")
    assert post.subjects().count("Larder larder: tank runs without a disk that was taken offline") == 1, post.subjects()


def test_a_system_disk_that_takes_no_writes_is_told_by_mail_once(appliance, visitor, post):
    """The last test here: what follows is a restart of the box."""
    alerting.begin(appliance, post)
    visitor.get("/alerts/")
    appliance.shell("sync; echo u > /proc/sysrq-trigger")
    try:
        wait_for(
            "a disk that takes no writes",
            lambda: appliance.shell("findmnt -no OPTIONS -T /var/lib/larder").startswith("ro"),
            timeout=60,
        )
        alerting.arrived(post, "cannot be written to")
        assert appliance.run("systemctl", "is-active", "larder-worker").strip() == "active"
    finally:
        appliance.cut_power()
        appliance.power_on()
    visitor.sign_in()
    visitor.wait_until("/pools/", "tank", timeout=180)
