"""After a fault, pages report no recovery before the pool was read again and was healthy for a while."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
import time_machine
from django.utils import timezone
from msgspec.structs import replace

from appliance.alerts.fault import Fault
from appliance.facts.box import Pool, Vdev
from tests.unit.made import recorded_pool
from tests.web import rows
from web.alerts import reconcile
from web.alerts.models import Alert
from web.inventory import stability, store
from web.inventory.models import Event, PoolRow
from web.system.service_status import READ
from workers.alerts import evaluate_alerts

CALM = ("Nothing was lost", "repaired itself", "All is well", "survives", ">healthy<")
SECOND = timedelta(seconds=1)
POOL = recorded_pool()
KEY = str(POOL.guid)


@pytest.fixture
def at(calm, web):
    """A function that moves the clock. The recorded pool is healthy and was just read, and
    nothing else needs attention."""
    rows.recorded_box()
    rows.notified()
    start = timezone.now() + timedelta(hours=2)
    with time_machine.travel(start, tick=False) as clock:
        rows.recorded_box()
        read(POOL)

        def go(seconds: float) -> datetime:
            clock.move_to(start + seconds * SECOND)
            for name in READ:
                if name != "pools":
                    store.checked(name, changed=False)
            return timezone.now()

        yield go


def read(pool: Pool) -> bool:
    """Store a pool as the collector does."""
    changed = stability.replace_pools([pool], timezone.now())
    store.checked("pools", changed=changed)
    return changed


def with_first(pool: Pool, **changes: object) -> Pool:
    """The pool with its first disk changed."""

    def of(vdev: Vdev) -> Vdev:
        if not vdev.children:
            return replace(vdev, **changes)
        return replace(vdev, children=(of(vdev.children[0]), *vdev.children[1:]))

    return replace(pool, vdevs=(of(pool.vdevs[0]), *pool.vdevs[1:]))


def happened(kind: str = "ereport.fs.zfs.io") -> None:
    Event.objects.create(
        file=f"{Event.objects.count()}.json", source="zed", kind=kind, subject=POOL.name, received=timezone.now()
    )


def pages(web) -> str:
    return "".join(web.get(path).content.decode() for path in ("/", "/pools/", f"/pools/{KEY}/"))


def calm(web) -> list[str]:
    text = pages(web)
    return [word for word in CALM if word in text]


ERRORS = with_first(POOL, read_errors=3, write_errors=210)
PULLED = replace(with_first(POOL, state="REMOVED"), state="DEGRADED")


def test_pulled_disk_is_never_first_called_a_repair(at, web):
    at(300)
    read(POOL)
    assert "All is well" in web.get("/").content.decode()
    at(301)
    happened()  # the facts are older than the fault
    assert not set(calm(web)) & {"Nothing was lost", "repaired itself", "All is well"}
    assert "reported a problem" in pages(web)
    at(306)
    read(ERRORS)  # the errors are counted, but the loss is not yet known
    assert not set(calm(web)) & {"Nothing was lost", "repaired itself", "All is well"}
    assert "reported errors" in pages(web)
    assert "made errors" in web.get("/").content.decode()  # its bay
    at(321)
    happened("resource.fs.zfs.removed")
    read(PULLED)
    assert "was pulled out" in pages(web)


def test_repaired_errors_are_reported_once_the_pool_was_healthy_for_a_while(at, web):
    at(300)
    happened()
    read(ERRORS)
    at(330)
    read(ERRORS)
    assert "Nothing was lost" not in pages(web)
    at(361)
    assert "Nothing was lost" not in pages(web)  # not read since
    assert read(ERRORS)  # an open page is drawn again, although only the time has changed
    assert "repaired itself" in pages(web)
    assert "Nothing was lost" in pages(web)


def test_more_errors_restart_the_wait(at, web):
    at(300)
    read(ERRORS)
    at(350)
    read(with_first(POOL, read_errors=4, write_errors=210))
    at(380)
    read(with_first(POOL, read_errors=4, write_errors=210))
    assert "Nothing was lost" not in pages(web)


def test_returned_disk_is_watched_for_a_while_without_events(at, web):
    at(300)
    read(PULLED)
    at(400)
    read(POOL)
    assert "All is well" not in web.get("/").content.decode()
    at(461)
    read(POOL)
    assert "All is well" in web.get("/").content.decode()


def test_event_of_another_pool_or_a_scrub_changes_nothing(at, web):
    at(300)
    read(POOL)
    happened("sysevent.fs.zfs.scrub_start")
    Event.objects.create(
        file="x.json", source="zed", kind="ereport.fs.zfs.io", subject="other", received=timezone.now()
    )
    assert "All is well" in web.get("/").content.decode()


def test_event_years_ahead_changes_nothing(at, web):
    at(3 * 365 * 86400)
    happened()
    at(300)
    read(POOL)
    assert "All is well" in web.get("/").content.decode()


# --- one verdict ------------------------------------------------------------------------------------------------
def test_alert_of_a_pool_agrees_with_its_page(at, web):
    at(300)
    read(PULLED)
    evaluate_alerts.evaluate_alerts()
    headline = Alert.objects.get(kind__in=("pool.degraded", "pool.no-redundancy")).summary
    assert web.get("/").content.decode().count(headline) >= 1
    assert headline in web.get(f"/pools/{KEY}/").content.decode()


def test_banner_ends_with_the_fault_on_the_card(at, web):
    at(300)
    read(PULLED)
    evaluate_alerts.evaluate_alerts()
    at(400)
    read(POOL)
    at(470)
    read(POOL)
    assert Alert.objects.filter(kind__in=("pool.degraded", "pool.no-redundancy"), state="open").exists()
    page = web.get("/")
    assert page.context["attention"].headline == "All is well."
    assert page.context["others"] == []
    assert "is degraded:" not in page.content.decode().partition('id="week"')[0]


def test_alert_whose_fault_is_gone_is_not_on_the_overview(at, web):
    now = at(300)
    fault = Fault("service.zed", "zfs-zed.service", "Events of ZFS do not arrive.")
    reconcile.reconcile_alerts([fault], now)
    assert "Events of ZFS" in web.get("/").content.decode()
    reconcile.reconcile_alerts([], at(301))
    assert Alert.objects.get().state == "open"
    assert "Events of ZFS" not in web.get("/").content.decode()


def test_good_news_asks_for_nothing_on_the_overview(at, web):
    reconcile.reconcile_alerts([Fault("pool.rebuilt", f"{KEY}/1", f"{POOL.name} was rebuilt.")], at(300))
    read(POOL)
    page = web.get("/")
    assert [one.text for one in page.context["week"].newest] == [f"{POOL.name} was rebuilt."]
    assert page.content.decode().count("was rebuilt") == 1
    assert "All is well" in page.content.decode()
    assert page.context["open_alerts"] == 0
    assert "was rebuilt" in web.get("/alerts/").content.decode()


def test_alert_reports_a_repair_once_the_pool_was_healthy_for_a_while(at):
    ended = at(300)
    scan = replace(POOL.scan, kind="resilver", state="finished", ended=ended, errors=0, repaired=2**30)  # type: ignore[type-var]
    read(replace(POOL, scan=scan))
    at(310)
    evaluate_alerts.evaluate_alerts()
    assert not Alert.objects.filter(kind="pool.rebuilt").exists()
    at(361)
    evaluate_alerts.evaluate_alerts()
    assert Alert.objects.filter(kind="pool.rebuilt").exists()


def test_rows_remember_when_a_pool_had_a_fault(at):
    assert PoolRow.objects.get(key=KEY).troubled is None
    now = at(300)
    read(ERRORS)
    at(400)
    read(ERRORS)
    assert PoolRow.objects.get(key=KEY).troubled == now
