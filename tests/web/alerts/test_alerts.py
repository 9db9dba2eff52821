"""The pages of health: what is open, one alert, who is told, what a disk said."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from django.utils.html import escape
from msgspec.structs import replace

from appliance.alerts.fault import Fault
from appliance.alerts.kinds import KINDS
from appliance.disks import health, smart
from appliance.disks.smart_values import Reading, SmartFigure
from appliance.facts.box import Pool, Vdev
from appliance.zfs.vdev_tree import link_of
from tests.unit.made import recorded, recorded_pool
from tests.web import rows
from tests.web.reading import Page
from web import row_retention
from web.alerts import failing_disk_guide, reconcile, smtp_password
from web.alerts.models import Accepted, Alert, DiskDay, KindSeverity, MailSettings, Message, PoolDay
from web.disks import smart_history
from web.inventory import store
from web.inventory.models import DiskRow, Source
from web.jobs.models import Job
from workers.alerts import evaluate_alerts, pending_faults

DISK = "ata-WDC_WD20EARS-00MVWB0_WD-WCAZA0000001"
PENDING = Reading(answered=True, passed=True, temperature=31, counts={"pending": 312, "reallocated": 4}, hours=40000)


@pytest.fixture
def failing(calm) -> Alert:
    rows.recorded_box()
    smart_history.store_answers({DiskRow.objects.get(key=DISK): PENDING})
    evaluate_alerts.evaluate_alerts()
    return Alert.objects.get(kind="disk.failing")


def test_a_failing_disk_is_the_first_thing_on_the_overview(web, failing):
    page = web.get("/").content.decode()
    assert "is failing: 312 sectors cannot be read." in page
    assert f"/alerts/{failing.pk}/" in page
    assert 'class="nav-count">1<' in page


def test_the_alert_names_bay_model_and_pool_and_the_way_to_healthy(web, failing):
    page = web.get(f"/alerts/{failing.pk}/").content.decode()
    for words in (
        "bay 1 (WDC WD20EARS-00MVWB0 …0001)",
        "Its serial number is WD-WCAZA0000001.",
        "pool tank",
        "Take it offline to test it",
        "survives 2 more failed disks",
    ):
        assert words in page, words


def test_acknowledging_twice_is_acknowledging_once(web, failing):
    for _ in range(2):
        assert web.post(f"/alerts/{failing.pk}/act/", {"act": "acknowledge"}).status_code == 302
    failing.refresh_from_db()
    assert failing.state == "acknowledged"
    assert failing.mark_seen == failing.mark
    assert failing.notes.filter(text__startswith="Acknowledged").count() == 1
    assert "Nothing new is wrong" in web.get("/alerts/").content.decode()


def test_a_long_time_line_shows_the_newest_and_keeps_the_rest_at_hand(web, failing):
    now = timezone.now()
    for minutes in range(30):
        reconcile.add_note(failing, f"It got worse, {minutes}.", now - timedelta(hours=1) + timedelta(minutes=minutes))
    Message.objects.create(
        key="m", alert=failing, event="cleared", way="mail", state="sent", made=now + timedelta(hours=1), next_try=now
    )
    page = web.get(f"/alerts/{failing.pk}/")
    assert [text for _at, _by, text in page.context["happened"]][:1] == ["Mail that it is over: sent. "]
    assert "It got worse, 29." in [text for _at, _by, text in page.context["happened"]]
    assert [text for _at, _by, text in page.context["earlier"]][-1] == "It got worse, 0."
    assert "Before that" in page.content.decode()


def test_what_is_over_is_not_called_critical(web, failing):
    Alert.objects.update(state="cleared", cleared=timezone.now())
    assert "<span>over</span>" in web.get("/alerts/").content.decode()


def test_a_silence_has_an_end_and_a_reason(web, failing):
    web.post(f"/alerts/{failing.pk}/act/", {"act": "silence", "for": "week", "reason": "a new one is ordered"})
    failing.refresh_from_db()
    assert timedelta(days=6) < failing.quiet_until - timezone.now() <= timedelta(days=7)
    assert "a new one is ordered" in web.get(f"/alerts/{failing.pk}/").content.decode()


def test_the_severity_of_a_kind_is_its_owners(web, failing):
    web.post(f"/alerts/{failing.pk}/act/", {"act": "severity", "severity": "notice"})
    assert KindSeverity.objects.get().severity == "notice"
    failing.refresh_from_db()
    assert failing.severity == "notice"


def test_every_figure_has_its_line_and_hostile_ones_stay_text(web, failing):
    row = DiskRow.objects.get(key=DISK)
    DiskDay.objects.all().delete()  # a day's row is written at once when it begins
    told = (SmartFigure("Power On Hours (9)", 40000, "40000", 45, 0), SmartFigure("<script>x</script>", 1, "<b>1</b>"))
    smart_history.store_answers({row: Reading(answered=True, passed=True, temperature=30, figures=told)})
    page = web.get(f"/disks/{DISK}/health/").content.decode()
    assert "Power On Hours (9)" in page
    assert "<script>x" not in page
    assert "&lt;b&gt;1&lt;/b&gt;" in page
    assert DiskDay.objects.get(disk=DISK).values["figure Power On Hours (9)"] == [40000, 40000, 40000]


def test_a_figure_that_always_moves_is_not_written_each_time(web, failing):
    row = DiskRow.objects.get(key=DISK)
    DiskDay.objects.all().delete()
    for count in range(3):
        smart_history.store_answers(
            {
                row: Reading(
                    answered=True,
                    passed=True,
                    counts={"crc": 0},
                    figures=(SmartFigure("Blocks (241)", count, str(count)),),
                )
            }
        )
    assert DiskDay.objects.get(disk=DISK).values["figure Blocks (241)"] == [0, 0, 0]


def test_every_kind_can_be_made_graver_or_lighter_also_before_it_happens(web, failing):
    page = web.get("/alerts/kinds/").content.decode()
    assert all(escape(kind.name) in page for kind in KINDS.values())
    web.post("/alerts/kinds/", {"disk.failing": "warning", "pool.rebuilt": "warning", "disk.warm": "warning"})
    assert dict(KindSeverity.objects.values_list("kind", "severity")) == {
        "disk.failing": "warning",
        "pool.rebuilt": "warning",
    }
    failing.refresh_from_db()
    assert failing.severity == "warning"
    assert "The default is “critical”." in web.get("/alerts/kinds/").content.decode()
    web.post("/alerts/kinds/", {"disk.failing": "critical"})
    assert set(KindSeverity.objects.values_list("kind", flat=True)) == {"pool.rebuilt"}
    reply = web.post("/alerts/kinds/", {"disk.failing": "dire"})
    assert reply.status_code == 400
    assert "<h1>That is not possible</h1>" in reply.content.decode()


@pytest.mark.parametrize("act", ["", "delete", "silence", "severity"])
def test_nothing_else_can_be_done_with_an_alert(web, failing, act):
    assert web.post(f"/alerts/{failing.pk}/act/", {"act": act, "for": "ever", "severity": "none"}).status_code == 400


def accept_shown(web) -> None:
    """Accept the values that the page shows now."""
    address = f"/disks/{DISK}/health/accept/"
    web.post(address, Page(web.get(f"/disks/{DISK}/health/")).form(address).data)


def test_a_figure_that_grew_since_the_page_was_shown_is_not_accepted(web, failing):
    shown = Page(web.get(f"/disks/{DISK}/health/")).form(f"/disks/{DISK}/health/accept/").data
    assert {shown["pending"], shown["reallocated"]} == {"312", "4"}
    more = Reading(answered=True, passed=True, counts={"pending": 313, "reallocated": 4})
    smart_history.store_answers({DiskRow.objects.get(key=DISK): more})
    page = Page(web.post(f"/disks/{DISK}/health/accept/", shown, follow=True))
    assert "Figures have changed since the page was shown." in page.text
    assert dict(Accepted.objects.values_list("count", "value")) == {"reallocated": 4}
    accept_shown(web)
    assert dict(Accepted.objects.values_list("count", "value")) == {"pending": 313, "reallocated": 4}


@pytest.mark.parametrize(
    "shown", [{}, {"pending": "", "reallocated": "x"}, {"pending": "-1"}, {"pending": "\u0663" * 9}]
)
def test_a_figure_that_was_not_shown_is_not_accepted(web, failing, shown):
    web.post(f"/disks/{DISK}/health/accept/", shown)
    assert not Accepted.objects.exists()


def test_what_cannot_be_accepted_is_not_offered(web, failing):
    DiskRow.objects.filter(key=DISK).update(reasons=[["watch", "Its spare memory is at 4 %.", "spare", 4, ""]])
    assert "Accept these values" not in web.get(f"/disks/{DISK}/health/").content.decode()
    web.post(f"/disks/{DISK}/health/accept/", {"spare": "4"})
    assert not Accepted.objects.exists()


def test_accepted_figures_stay_quiet_until_they_grow(web, failing):
    accept_shown(web)
    assert dict(Accepted.objects.values_list("count", "value")) == {"pending": 312, "reallocated": 4}
    row = DiskRow.objects.get(key=DISK)
    smart_history.store_answers({row: PENDING})
    assert DiskRow.objects.get(key=DISK).verdict == "healthy"
    more = Reading(answered=True, passed=True, counts={"pending": 313, "reallocated": 4})
    smart_history.store_answers({DiskRow.objects.get(key=DISK): more})
    assert DiskRow.objects.get(key=DISK).verdict == "failing"


def test_the_page_of_a_disk_draws_what_it_said(web, failing):
    page = web.get(f"/disks/{DISK}/health/").content.decode()
    assert "312 sectors cannot be read." in page
    assert "<polyline" in page
    assert "Accept these values" in page


def test_what_was_never_counted_is_a_line_and_no_graph(web, failing):
    row = DiskRow.objects.get(key=DISK)
    smart_history.store_answers({row: Reading(answered=True, passed=True, counts={"pending": 0, "uncorrectable": 0})})
    page = " ".join(web.get(f"/disks/{DISK}/health/").content.decode().split())
    assert "<h2>Counters at zero</h2> <ul><li>Sectors that could not be read in a test (198)</li></ul>" in page
    assert "<h2>Sectors that cannot be read (197)</h2>" in page  # it was 312 before


def test_the_report_for_the_warranty_is_plain_text(web, failing):
    reply = web.get(f"/disks/{DISK}/health/?report=1")
    assert reply["Content-Type"].startswith("text/plain")
    for words in ("WD-WCAZA0000001", "Sectors that cannot be read (197): 312", "Hours of use: 40000"):
        assert words in reply.content.decode()


def test_a_day_is_one_row_with_its_least_most_and_last(failing):
    smart_history.store_day(DISK, Reading(answered=True, temperature=40, counts={"pending": 10}))
    values = DiskDay.objects.get(disk=DISK).values
    assert values["pending"] == [10, 312, 10]
    assert values["temperature"] == [31, 40, 40]


def test_a_clock_that_is_years_ahead_takes_no_history_away_and_many_days_are_not_kept_for_ever(failing, monkeypatch):
    reading, now = Reading(answered=True, temperature=40), timezone.now()
    for days in (-1, 0, 5 * 365, 1):
        smart_history.store_day(DISK, reading, now + timedelta(days=days))
    assert DiskDay.objects.filter(disk=DISK).count() == 4
    monkeypatch.setattr(row_retention, "DAYS_OF_DISK", 2)
    smart_history.store_day(DISK, reading, now + timedelta(days=2))
    assert DiskDay.objects.filter(disk=DISK).count() == 3


def test_a_temperature_that_wanders_costs_no_writing(failing):
    for degrees in (30, 31, 30, 31):
        smart_history.store_day(DISK, Reading(answered=True, temperature=degrees, counts=PENDING.counts))
    before = DiskDay.objects.get(disk=DISK).written
    smart_history.store_day(DISK, Reading(answered=True, temperature=30, counts=PENDING.counts))
    assert DiskDay.objects.get(disk=DISK).written == before


def test_a_sleeping_disk_keeps_its_verdict_and_its_alert(failing):
    smart_history.store_answers({DiskRow.objects.get(key=DISK): Reading(asleep=True)})
    evaluate_alerts.evaluate_alerts(timezone.now() + timedelta(hours=3))
    row = DiskRow.objects.get(key=DISK)
    assert (row.asleep, row.verdict) == (True, "failing")
    assert Alert.objects.get(kind="disk.failing").state == "open"


def test_a_disk_that_recovers_clears_its_alert(failing):
    good = Reading(answered=True, passed=True, counts={"pending": 0, "reallocated": 0})
    smart_history.store_answers({DiskRow.objects.get(key=DISK): good})
    Source.objects.update_or_create(name="temperatures", defaults={"checked": timezone.now(), "error": ""})
    now = timezone.now()
    for minutes in (1, 12):
        evaluate_alerts.evaluate_alerts(now + timedelta(minutes=minutes))
    assert Alert.objects.get(kind="disk.failing").state == "cleared"


def test_open_alerts_are_paged_the_worst_first_and_each_list_turns_alone(web, calm):
    many = [
        Alert(
            kind="pool.full80",
            subject=str(at),
            severity="notice",
            summary=f"Pool {at} fills up.",
            first_seen=rows.LONG_AGO,
        )
        for at in range(120)
    ]
    Alert.objects.bulk_create(many)
    worst = Alert.objects.create(
        kind="disk.failing", subject="x", severity="critical", summary="Worst of all.", first_seen=rows.LONG_AGO
    )
    Alert.objects.bulk_create(
        [
            Alert(
                kind="pool.full80",
                subject=f"over {at}",
                severity="notice",
                state="cleared",
                summary="It was full.",
                first_seen=rows.LONG_AGO,
            )
            for at in range(60)
        ]
    )
    first = web.get("/alerts/").content.decode()
    assert first.count("fills up.") == 49
    assert first.count("It was full.") == 50
    assert first.index("Worst of all.") < first.index("fills up.")
    last = web.get("/alerts/?open=3&page=2").content.decode()
    assert last.count("fills up.") == 21
    assert last.count("It was full.") == 10
    assert "?page=2&amp;open=2" in last
    assert "?open=3&amp;page=1" in last
    assert worst.summary not in last
    assert web.get("/alerts/?open=no&acknowledged=99").status_code == 200


def test_a_slow_disk_among_quick_ones_is_told_once_it_has_lasted(calm, monkeypatch):
    pool = rows.recorded_box()
    names = {row.key: row.fact.name for row in DiskRow.objects.all()}
    members = [name for key, name in names.items() if any(link_of(one) == key for one in pool.devices())]
    assert len(members) == 4
    for row in DiskRow.objects.all():
        smart_history.note_latency(row, {name: 26.0 if names[DISK] == name else 1.2 for name in members})
    evaluate_alerts.evaluate_alerts()
    assert not Alert.objects.filter(kind="disk.slow").exists()
    pending_faults.store_pending("faults", dict.fromkeys(pending_faults.read_pending("faults"), -10_000.0))
    evaluate_alerts.evaluate_alerts()
    slow = Alert.objects.get(kind="disk.slow")
    assert slow.detail.startswith(
        "It takes 26 ms per request, the other disks of its group 1.2 ms. Its serial number is "
    )
    assert slow.subject == DISK


def test_hostile_names_stay_text(web, calm):
    reconcile.reconcile_alerts([Fault("disk.watch", "x", "Disk <script>alert(1)</script>", "<b>x</b>")], timezone.now())
    for url in ("/alerts/", f"/alerts/{Alert.objects.get().pk}/", "/"):
        assert "<script>alert(1)" not in web.get(url).content.decode()


FORM = {
    "preset": "own",
    "host": "mail.example",
    "port": 587,
    "security": "starttls",
    "user": "box@example.org",
    "sender": "",
    "critical": "anna@example.org",
    "warning": "",
    "notice": "",
    "quiet_from": 22,
    "quiet_to": 7,
    "digest_hour": 8,
    "address": "https://larder.local",
    "webhook": "",
    "password": "a canary of a password",
}


def test_mail_settings_are_kept_and_the_password_is_shown_nowhere(web, calm):
    assert web.post("/alerts/mail/", FORM).status_code == 302
    assert MailSettings.load_row().recipients_for("critical") == ["anna@example.org"]
    assert "a canary" not in web.get("/alerts/mail/").content.decode()


def test_stored_mail_password_can_be_removed(web, calm):
    assert "Remove the stored password" not in web.get("/alerts/mail/").content.decode()
    web.post("/alerts/mail/", FORM)
    assert smtp_password.has_password()
    assert "Remove the stored password" in web.get("/alerts/mail/").content.decode()
    response = web.post("/alerts/mail/", {**FORM, "forget": "on"})
    assert response.status_code == 400
    assert smtp_password.has_password()
    assert web.post("/alerts/mail/", {**FORM, "password": "", "forget": "on"}).status_code == 302
    assert not smtp_password.has_password()


def test_mail_password_can_be_removed_together_with_its_server(web, calm):
    web.post("/alerts/mail/", FORM)
    assert (
        web.post("/alerts/mail/", {**FORM, "host": "", "user": "", "password": "", "forget": "on"}).status_code == 302
    )
    assert not smtp_password.has_password()


def test_a_provider_fills_in_its_server(web, calm):
    web.post("/alerts/mail/", {**FORM, "preset": "fastmail", "host": ""})
    kept = MailSettings.load_row()
    assert (kept.host, kept.port, kept.security) == ("smtp.fastmail.com", 465, "tls")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("critical", "anna@example.org\nnot an address"),
        ("host", "mail.example; rm -rf /"),
        ("host", "mail\r\nexample"),
        ("port", 0),
        ("security", "none"),
        ("sender", "x\ny@example.org"),
        ("webhook", "file:///etc/shadow"),
        ("webhook", "https://anna:secret@ntfy.example/topic"),
        ("webhook", "https:///topic"),
        ("webhook", "https://ntfy.example:port/topic"),
        ("quiet_from", 24),
    ],
)
def test_what_cannot_be_is_said_at_its_field(web, calm, field, value):
    response = web.post("/alerts/mail/", {**FORM, field: value})
    assert response.status_code == 400
    assert not MailSettings.objects.exists()


def test_a_kept_password_does_not_go_to_another_server(web, calm):
    web.post("/alerts/mail/", FORM)
    again = {**FORM, "host": "mail.elsewhere.example", "password": ""}
    reply = web.post("/alerts/mail/", again)
    assert reply.status_code == 400
    assert "belongs to another server" in reply.content.decode()
    assert web.post("/alerts/mail/", {**again, "password": "another"}).status_code == 302
    assert web.post("/alerts/mail/", {**again, "warning": "ben@example.org"}).status_code == 302


def test_a_test_is_sent_by_the_worker(web, calm):
    web.post("/alerts/mail/test/", {"way": "mail"})
    web.post("/alerts/mail/test/", {"way": "mail"})
    assert Message.objects.get().state == "waiting"
    assert ("workers.deliver",) in calm


def test_the_recorded_disk_is_healthy_and_no_alert(calm):
    rows.recorded_box()
    smart_history.store_answers(
        {DiskRow.objects.get(key=DISK): smart.read_smart(recorded("smartctl-qemu-ata-7.4.json"))}
    )
    evaluate_alerts.evaluate_alerts()
    assert not Alert.objects.filter(kind__startswith="disk.").exists()


# --- the way of a failing disk -------------------------------------------------------------------------------
def pool_with(state: str, *, rebuilding: bool = False, again: bool = False) -> Pool:
    """The recorded pool with its first disk in that state; ``again``: it takes its own place anew."""
    pool = recorded_pool()
    group = pool.vdevs[0]
    first = group.children[0]
    now: Vdev = replace(first, state=state)
    if again:
        old = replace(first, state="OFFLINE", path=f"{first.path}/old", guid=1)
        now = Vdev("replacing-0", "replacing", 2, "DEGRADED", children=(old, replace(first, state="ONLINE", guid=3)))
    scan = replace(pool.scan, kind="resilver", state="scanning", ended=None) if rebuilding and pool.scan else None
    vdevs = (replace(group, state="DEGRADED", children=(now, *group.children[1:])), *pool.vdevs[1:])
    return replace(
        pool, state="DEGRADED" if state != "ONLINE" or again else "ONLINE", vdevs=vdevs, scan=scan or pool.scan
    )


def wiped() -> Job:
    path = DiskRow.objects.get(key=DISK).fact.path
    job = rows.job(
        kind="erase-disk", subject=path, operation=json.dumps({"kind": "erase-disk", "disk": path, "how": "full"})
    )
    Job.objects.filter(pk=job.pk).update(state="done", finished=timezone.now(), created=timezone.now())
    return job


def way(failing: Alert) -> list[tuple[str, list[str]]]:
    """State and buttons of each step."""
    failing.refresh_from_db()
    found = failing_disk_guide.guide_for(failing)
    assert found
    return [(step.state, [text for text, _href in step.links]) for step in found.steps]


def test_the_way_goes_on_with_what_is_so_and_ends_with_the_disk_in_its_pool(web, failing):
    assert [state for state, _links in way(failing)] == ["working", "empty", "empty", "empty"]
    assert way(failing)[1][1] == ["Take it offline to test it", "Replace it now"]
    rows.put(pools=[pool_with("OFFLINE")])
    assert [state for state, _links in way(failing)] == ["healthy", "healthy", "working", "empty"]
    assert way(failing)[2][1] == ["Erase every sector", "Use it again as it is", "Replace it now"]
    wiped()
    assert way(failing)[3] == ("working", ["A report for the warranty"])  # it has not been asked since
    smart_history.store_answers({DiskRow.objects.get(key=DISK): replace(PENDING, counts={"pending": 0})})
    store.checked("temperatures", changed=True)
    page = web.get(f"/alerts/{failing.pk}/").content.decode()
    assert "Sectors that cannot be read (197): 312 at most, 0 now" in page
    assert way(failing)[3] == (
        "working",
        ["Put it back into the pool", "Replace it with another", "A report for the warranty"],
    )
    evaluate_alerts.evaluate_alerts()
    evaluate_alerts.evaluate_alerts(timezone.now() + timedelta(minutes=11))
    failing.refresh_from_db()
    assert failing.state == "cleared"
    assert way(failing)[3][0] == "working"  # the alert is over, the pool still misses the disk
    rows.put(pools=[pool_with("ONLINE", rebuilding=True, again=True)])
    assert way(failing)[3] == ("working", [])
    rows.put(pools=[pool_with("ONLINE")])
    assert [state for state, _links in way(failing)] == ["healthy"] * 4


def test_a_disk_that_still_counts_faults_after_it_was_erased_is_not_put_back(web, failing):
    rows.put(pools=[pool_with("OFFLINE")])
    wiped()
    store.checked("temperatures", changed=True)
    assert way(failing)[3] == ("working", ["Replace it with another", "A report for the warranty"])
    assert "warranty" in web.get(f"/alerts/{failing.pk}/").content.decode()


def test_an_erased_disk_goes_back_into_its_own_place_after_a_review(web, failing):
    rows.put(pools=[pool_with("OFFLINE")])
    free = replace(DiskRow.objects.get(key=DISK).fact, uses=(), content=())
    rows.put(disks=[free, *(row.fact for row in DiskRow.objects.exclude(key=DISK))])
    reply = web.get(f"/disks/{DISK}/health/back/")
    assert reply.status_code == 200
    page = reply.content.decode()
    assert "goes back into its own place in tank" in page
    assert "zpool replace" in page


# --- a disk that hangs ---------------------------------------------------------------------------------------
def test_a_failing_disk_that_stops_answering_does_not_become_well(web, failing):
    smart_history.store_answers(
        {DiskRow.objects.get(key=DISK): Reading(message="Read Device Identity failed: Input/output error")}
    )
    evaluate_alerts.evaluate_alerts(timezone.now() + timedelta(minutes=30))
    failing.refresh_from_db()
    assert failing.state == "open"
    page = web.get(f"/disks/{DISK}/health/").content.decode()
    assert "It does not answer at the moment" in page
    assert "312 sectors cannot be read." in page
    smart_history.store_answers({DiskRow.objects.get(key=DISK): PENDING})
    assert "It does not answer at the moment" not in web.get(f"/disks/{DISK}/health/").content.decode()


def test_a_disk_that_never_told_anything_is_not_missed():
    rows.recorded_box()
    smart_history.store_answers({DiskRow.objects.get(key=DISK): Reading(message="Unknown USB bridge")})
    row = DiskRow.objects.get(key=DISK)
    assert (row.verdict, row.reading.get("silent")) == ("unknown", None)


def test_where_a_pool_leads_is_on_its_page_and_that_of_health(web, failing):
    tank = store.facts().pools[0]
    root = store.facts().dataset("tank")
    assert root
    total, today = root.used + root.available, timezone.now().date()
    for ago in range(11):  # a hundredth a day, up to 40 %
        day = today - timedelta(days=ago)
        PoolDay.objects.update_or_create(
            guid=str(tank.guid), day=day, defaults={"name": "tank", "used": total * (40 - ago) // 100, "total": total}
        )
    # A day of while the clock was ahead.
    PoolDay.objects.create(guid=str(tank.guid), name="tank", day=today + timedelta(days=1500), used=0, total=total)
    says = "At this pace it will be 80 % full in about 40 days and 90 % in about 50 days."
    for url in ("/alerts/", f"/pools/{tank.guid}/"):
        assert says in web.get(url).content.decode(), url


# --- what is not told any more, and odd answers --------------------------------------------------------------
def tables_gone(answer: dict[str, object]) -> dict[str, object]:
    """The same drive with a controller that fails: its tables are gone, PASSED is left beside a command that failed."""
    left = {name: value for name, value in answer.items() if not name.startswith("ata_smart")}
    return left | {"smartctl": {"exit_status": 4}, "smart_status": {"passed": True}}


def failing_drive() -> dict[str, Any]:
    answer = recorded("smartctl-qemu-ata-7.4.json")
    answer["ata_smart_attributes"]["table"] = [
        {"id": 5, "name": "Reallocated_Sector_Ct", "when_failed": "", "raw": {"value": 1975, "string": "1975"}}
    ]
    test = {
        "type": {"value": 2},
        "status": {"value": 0x79, "string": "Completed: read failure", "passed": False},
        "lifetime_hours": 4,
    }
    return answer | {"ata_smart_self_test_log": {"standard": {"table": [test]}}, "power_on_time": {"hours": 65592}}


def tell(answer: object, key: str = DISK) -> DiskRow:
    smart_history.store_answers({DiskRow.objects.get(key=key): smart.read_smart(answer)})
    Source.objects.update_or_create(name="temperatures", defaults={"checked": timezone.now(), "error": ""})
    return DiskRow.objects.get(key=key)


def test_an_alert_stays_open_while_the_figures_behind_it_are_not_told(web, calm):
    rows.recorded_box()
    tell(failing_drive())
    evaluate_alerts.evaluate_alerts()
    alert = Alert.objects.get(kind="disk.failing")
    now, mark = timezone.now(), alert.mark
    for hours in range(1, 5):
        row = tell(tables_gone(failing_drive()))
        evaluate_alerts.evaluate_alerts(now + timedelta(hours=hours))
    alert.refresh_from_db()
    assert (alert.state, alert.mark, row.verdict) == ("open", mark, "failing")
    assert "not reported this again since" in alert.detail
    assert [test["kind"] for test in row.reading["tests"]] == ["long"]  # which is not known to have gone away
    page = web.get(f"/disks/{DISK}/health/").content.decode()
    assert "It does not report its figures at the moment" in page
    assert "1975 sectors went bad" in page
    assert "No tests in the disk’s log" not in page


def look_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """Alerts as they are once what is wrong has lasted for its kind's wait."""
    evaluate_alerts.evaluate_alerts()
    pending_faults.store_pending("faults", dict.fromkeys(pending_faults.read_pending("faults"), -10_000.0))
    evaluate_alerts.evaluate_alerts()


def test_a_healthy_disk_that_stops_telling_its_figures_is_unknown_and_an_alert(web, calm, monkeypatch):
    rows.recorded_box()
    assert tell(recorded("smartctl-qemu-ata-7.4.json")).verdict == "healthy"
    row = tell(tables_gone(recorded("smartctl-qemu-ata-7.4.json")))
    assert row.verdict == "unknown"
    assert " since " in row.smart_text
    look_later(monkeypatch)
    assert Alert.objects.filter(kind="disk.silent", subject=DISK).exists()
    again = tell(tables_gone(recorded("smartctl-qemu-ata-7.4.json")))
    assert again.smart_text == row.smart_text  # since when stays what it was
    assert tell(recorded("smartctl-qemu-ata-7.4.json")).verdict == "healthy"
    assert "silent" not in DiskRow.objects.get(key=DISK).reading


def test_a_warm_disk_that_tells_nothing_but_its_warmth_is_both_warm_and_missed(calm):
    rows.recorded_box()
    tell(recorded("smartctl-qemu-ata-7.4.json"))
    row = tell({"temperature": {"current": 63}})
    assert (row.verdict, row.temperature) == ("watch", 63)
    assert row.reading["silent"]


def test_whether_a_disk_can_test_itself_is_not_forgotten_because_one_answer_leaves_it_out(calm):
    rows.recorded_box()
    answer = recorded("smartctl-qemu-ata-7.4.json")
    assert tell(answer).reading["able"]
    assert tell({name: value for name, value in answer.items() if name != "ata_smart_data"}).reading["able"]
    answer["ata_smart_data"]["capabilities"]["self_tests_supported"] = False
    assert not tell(answer).reading["able"]


def odd_answers() -> list[object]:
    odd_id, odd_test = failing_drive(), failing_drive()
    odd_id["ata_smart_attributes"]["table"].append({"id": [5], "raw": {"value": 1}})
    odd_test["ata_smart_self_test_log"]["standard"]["table"][0]["type"]["value"] = {"a": 1}
    return [
        odd_id,
        odd_test,
        {"nvme_smart_health_information_log": {"media_errors": 2**64 - 1}, "smart_status": {"passed": True}},
        {"nvme_self_test_log": {"table": [{"self_test_code": {"value": []}, "self_test_result": {"value": {}}}]}},
        {"scsi_grown_defect_list": 2**63, "scsi_self_test_0": {"code": {"value": [1]}, "result": {"value": 3}}},
        {
            "model_name": "\ud800",
            "ata_smart_attributes": {"table": [{"id": 5, "name": "\ud800", "when_failed": "now"}]},
        },
    ]


@pytest.mark.parametrize("odd", odd_answers())
def test_one_odd_answer_leaves_no_other_disk_unjudged(calm, odd):
    rows.recorded_box()
    keys = list(DiskRow.objects.values_list("key", flat=True))
    others = [key for key in keys if key != DISK]
    answers: dict[str, object] = {key: failing_drive() for key in others} | {DISK: odd}
    smart_history.store_answers(
        {DiskRow.objects.get(key=key): smart.read_smart(answers[key]) for key in (DISK, *others)}
    )
    assert set(DiskRow.objects.filter(key__in=others).values_list("verdict", flat=True)) == {"failing"}
    evaluate_alerts.evaluate_alerts()
    assert set(others) - {DISK} >= set(
        Alert.objects.filter(kind="disk.failing").exclude(subject=DISK).values_list("subject", flat=True)
    )
    assert Alert.objects.filter(kind="disk.failing").count() >= len(others)


def test_a_disk_whose_answer_cannot_be_judged_is_named_and_hides_no_other(calm, monkeypatch):
    rows.recorded_box()
    keys = [DISK, *DiskRow.objects.exclude(key=DISK).values_list("key", flat=True)]
    judge = health.judge_health

    def fail(reading: Reading, *more: Any, **other: Any) -> Any:
        if reading.hours == 4711:
            raise TypeError("unhashable type: 'list'")
        return judge(reading, *more, **other)

    monkeypatch.setattr("web.disks.smart_history.judge_health", fail)
    readings = dict.fromkeys(keys, PENDING) | {DISK: replace(PENDING, hours=4711)}
    smart_history.store_answers({DiskRow.objects.get(key=key): readings[key] for key in keys})
    assert set(DiskRow.objects.exclude(key=DISK).values_list("verdict", flat=True)) == {"failing"}
    assert DiskRow.objects.get(key=DISK).verdict == "unknown"
    look_later(monkeypatch)
    told = Alert.objects.get(kind="disk.silent")
    assert (told.subject, "could not be understood" in told.detail) == (DISK, True)


def test_a_count_too_large_for_the_database_leaves_no_other_disk_unjudged(calm):
    """A reading that a later version of the reader lets through all the same."""
    rows.recorded_box()
    other = DiskRow.objects.exclude(key=DISK).first()
    assert other
    huge = Reading(answered=True, passed=True, counts={"crc": 2**64 - 1})
    smart_history.store_answers({DiskRow.objects.get(key=DISK): huge, other: PENDING})
    assert DiskRow.objects.get(key=other.key).verdict == "failing"
    assert DiskRow.objects.get(key=DISK).verdict == "healthy"  # it counts what it counted when it was first seen


def test_hours_of_a_self_test_are_the_drives_whole_age(web, calm):
    rows.recorded_box()
    tell(failing_drive())
    assert "At 65540 hours of use, long" in web.get(f"/disks/{DISK}/health/").content.decode()
    assert "at 65540 hours of use" in web.get(f"/disks/{DISK}/health/?report=1").content.decode()


def test_what_is_not_told_after_erasing_is_not_said_to_be_none(web, failing):
    rows.put(pools=[pool_with("OFFLINE")])
    wiped()
    smart_history.store_answers(
        {DiskRow.objects.get(key=DISK): Reading(answered=True, passed=True, counts={"reallocated": 4})}
    )
    store.checked("temperatures", changed=True)
    page = web.get(f"/alerts/{failing.pk}/").content.decode()
    assert "Sectors that cannot be read (197): 312 at most, not reported now" in page
    assert "It still counts faults" in page
    smart_history.store_answers({DiskRow.objects.get(key=DISK): Reading(answered=True, passed=True, temperature=30)})
    page = web.get(f"/alerts/{failing.pk}/").content.decode()
    assert "nothing says whether it can be trusted" in page
