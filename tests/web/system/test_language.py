"""Pages are in the language of their reader, mails and the console in that of the box."""

from __future__ import annotations

import re
import smtplib
from datetime import UTC, datetime, timedelta
from unittest.mock import Mock

import msgspec
import pytest
from django.db import DatabaseError
from django.http import HttpResponse
from django.template import Context, Template
from django.utils import timezone, translation
from django.utils.formats import localize
from django.utils.translation import trans_real
from msgspec.structs import replace

from appliance import message
from appliance.alerts.fault import AlertInput, DiskStatus, Fault
from appliance.alerts.rules import disk_faults
from appliance.backups.tasks import BackupTask
from appliance.benchmarks.case import Case
from appliance.benchmarks.conclusions import summarize_results
from appliance.benchmarks.conditions import shared_conditions
from appliance.benchmarks.parse_results import Figures
from appliance.benchmarks.results import RESULT, BenchmarkRun, MeasuredCase, build_blocks, encode_run
from appliance.benchmarks.validity import Circumstances, run_remarks
from appliance.disks.health import HealthReason, judge_health
from appliance.disks.smart_values import Reading
from appliance.facts import vdev_state
from appliance.formatting import moment_text, rest_of_sentence, time_left
from appliance.layout.advice import propose_layouts
from appliance.layout.descriptions import describe_failures, explain_layout
from appliance.layout.proposal import Candidate
from appliance.layout.shortlist import shorten_proposals
from appliance.message import join_messages
from appliance.shares.connections import Connection
from appliance.snapshots.policy import Policy
from appliance.system.language import language_file, read_language
from tests.unit.made import disk, recorded_pool
from tests.web.disks import burn_ins_made
from tests.web.reading import text_of as words_of_page
from tests.web.rows import SYSTEM_DISK, put, put_box
from web import language
from web.accounts.models import Preferences
from web.alerts import outbox, reconcile
from web.alerts.models import Alert, MailSettings, Message
from web.datasets import settings_views
from web.disks import smart_history
from web.disks.models import BurnIn, Replacement
from web.inventory import store
from web.inventory.box import read_box
from web.inventory.models import ConnectionRow, DiskRow, Source
from web.pools.growth import full_text
from web.said import said_in
from web.system.models import BoxChoices
from web.system.templatetags import formatting
from web.translation import lazy_format, text_of
from workers import burn_in
from workers.alerts import deliver, direct_mail, mail_text, weekly_report
from workers.collectors import ZFS_MISSING

NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)


def language_of(rf, user, accept: str = "") -> str | None:
    """The language in which a page for this user is made."""
    request = rf.get("/", headers={"Accept-Language": accept})
    request.user = user

    def page(_request):
        return HttpResponse(translation.get_language())

    answer = language.as_the_browser_asks(language.as_the_user_chose(page))(request)
    return answer.content.decode()


@pytest.mark.parametrize(
    ("user", "browser", "box", "found"),
    [
        ("", "", "", "en-gb"),
        ("", "", "nl", "nl"),
        ("", "de, nl-BE;q=0.8, en;q=0.5", "", "nl"),
        ("", "en-US,en;q=0.9,nl;q=0.5", "nl", "en-gb"),
        ("", "de,*", "nl", "nl"),
        ("nl", "en-US", "", "nl"),
        ("en-gb", "nl", "nl", "en-gb"),
        ("xx", "nl", "", "en-gb"),
        ("", "\x00;q=x,,;" * 50, "", "en-gb"),
    ],
)
def test_user_comes_before_browser_and_browser_before_box(rf, admin, dutch, user, browser, box, found):
    Preferences.objects.create(user=admin, language=user)
    BoxChoices.objects.create(pk=1, language=box)
    assert language_of(rf, admin, browser) == found
    assert translation.get_language() == "en-gb"


def test_english_pages_and_mails_load_no_catalogue_of_another_language(rf, admin, dutch):
    assert language_of(rf, admin, "en-US") == "en-gb"
    with language.in_language(""):
        mail_text.count_notices(2)
    assert "nl" not in vars(trans_real)["_translations"]


def test_the_role_of_a_disk_is_said_in_the_language_of_the_page(calm, dutch):
    put(disks=[disk(1)])
    bay = replace(read_box().bays[0], pool="tank", role="spare")
    with translation.override("nl"):
        assert bay.use == "reserve van tank"
    with translation.override("en"):
        assert bay.use == "spare of tank"


def test_user_chooses_the_language_of_pages(web, calm, dutch):
    page = web.get("/account/preferences/").content.decode()
    assert re.findall(r'<option value="([^"]*)"', page) == ["", "en-gb", "nl"]
    assert web.post("/account/preferences/", {"units": "TB", "language": "xx"}).status_code == 400
    assert web.post("/account/preferences/", {"units": "TB", "language": "nl"}).status_code == 302
    assert Preferences.objects.get().language == "nl"


def test_page_says_which_language_it_is_in(web, anonymous, calm, dutch):
    for browser, said in (("nl", "nl"), ("en-US", "en-GB"), ("de", "en-GB")):
        for client, path in ((web, "/account/preferences/"), (anonymous, "/login/"), (web, "/nowhere/")):
            page = client.get(path, headers={"Accept-Language": browser}).content.decode()
            assert f'<html lang="{said}">' in page, path


# --- the language of the box ------------------------------------------------------------------------------------------
BOX_LANGUAGE = "/system/language/"


def test_language_of_the_box_is_chosen_on_the_page_of_the_system(web, calm, dutch):
    put_box()
    assert f'href="{BOX_LANGUAGE}"' in web.get("/system/").content.decode()
    assert re.findall(r'<option value="([^"]*)"( selected)?', web.get(BOX_LANGUAGE).content.decode()) == [
        ("en-gb", " selected"),
        ("nl", ""),
    ]
    assert web.post(BOX_LANGUAGE, {"language": "nl"})["Location"] == "/system/"
    assert '<option value="nl" selected' in web.get(BOX_LANGUAGE).content.decode()
    assert "Nederlands" in words_of_page(web.get("/system/"))


def test_browser_without_a_language_gets_that_of_the_box_at_once(web, calm, dutch):
    put_box()
    page = web.post(BOX_LANGUAGE, {"language": "nl"}, follow=True, headers={"Accept-Language": ""}).content.decode()
    assert '<html lang="nl">' in page
    assert "Opgeslagen" in page


@pytest.mark.parametrize("chosen", [{}, {"language": ""}, {"language": "xx"}, {"language": "../nl"}])
def test_language_that_is_not_offered_changes_nothing(web, calm, chosen):
    assert web.post(BOX_LANGUAGE, chosen).status_code == 400
    assert not BoxChoices.objects.exists()
    assert not language_file().exists()


def test_language_of_the_box_is_written_for_the_console_and_again_at_each_start(web, calm):
    put_box()
    web.post(BOX_LANGUAGE, {"language": "nl"})
    assert read_language() == "nl"
    language_file().unlink()
    assert read_language() == ""
    language.publish_language()
    assert (read_language(), language_file().stat().st_mode & 0o777) == ("nl", 0o644)


def test_language_is_stored_where_the_file_of_the_console_cannot_be_written(web, calm):
    put_box()
    language_file().mkdir()
    assert web.post(BOX_LANGUAGE, {"language": "nl"}).status_code == 302
    assert BoxChoices.load_row().language == "nl"
    assert read_language() == ""


@pytest.fixture
def taken(monkeypatch):
    """Mails that a server of the test has taken."""
    found = []

    class Server:
        def __init__(self, *_args, **_more): ...

        def starttls(self, **_more): ...

        def send_message(self, message, **_more):
            found.append(message)
            return {}

        def quit(self): ...

        def close(self): ...

    monkeypatch.setattr(smtplib, "SMTP", Server)
    return found


def test_mails_are_in_the_language_of_the_box(dutch, taken):
    MailSettings.objects.create(pk=1, host="mail.example", sender="a@example.org", critical="a@example.org")
    BoxChoices.objects.create(pk=1, language="nl")
    outbox.queue_test("mail", NOW)
    assert deliver.send_due(NOW) == 1
    reconcile.reconcile_alerts([Fault("disk.failing", "ata-1", "Disk 3 is failing.", "Details.")], NOW)
    assert deliver.send_due(NOW) == 1
    test, alert = (one.get_body(("plain",)).get_content() for one in taken)
    assert "This is the test" not in test
    assert "Wat het betekent" in alert
    BoxChoices.objects.update(language="")
    Message.objects.all().delete()
    outbox.queue_test("mail", NOW)
    assert deliver.send_due(NOW) == 1
    assert "This is the test that you asked for." in taken[-1].get_body(("plain",)).get_content()
    assert Alert.objects.count() == 1


def test_answer_of_the_mail_server_is_in_the_language_of_the_reader(dutch, taken, web, calm):
    MailSettings.objects.create(pk=1, host="mail.example", sender="a@example.org", critical="a@example.org")
    BoxChoices.objects.create(pk=1, language="nl")
    outbox.queue_test("mail", NOW)
    deliver.send_due(NOW)
    row = Message.objects.get()
    assert row.answer == "The mail server accepted it."
    assert Message.objects.values_list("answer", flat=True).get() == "The mail server accepted it."
    page = web.get("/alerts/mail/", headers={"Accept-Language": "nl"}).content.decode()
    assert "De mailserver heeft het aangenomen." in page


def test_critical_mail_without_a_database_is_in_the_language_that_the_box_had(dutch, taken, monkeypatch):
    MailSettings.objects.create(pk=1, host="mail.example", sender="a@example.org", critical="a@example.org")
    BoxChoices.objects.create(pk=1, language="nl")
    direct_mail.remember_settings()
    monkeypatch.setattr(MailSettings, "load_row", Mock(side_effect=DatabaseError("the disk is gone")))
    direct_mail.mail_critical_faults([Fault("pool.stopped", "1", message.Message("{name} is missing.", name="tank"))])
    (sent,) = taken
    assert sent["Subject"].endswith("tank ontbreekt")
    assert "Wat het betekent" in sent.get_body(("plain",)).get_content()


def test_weekly_report_is_in_the_language_of_the_box(dutch):
    put_box()
    put(pools=[recorded_pool()])
    with language.in_language("nl"):
        title, parts = weekly_report.build_report(NOW)
    assert title == "Larder vm: deze week is alles in orde"
    assert "gezond" in dict(parts)["Pools"]


def test_errors_of_readings_are_in_the_language_of_the_reader(dutch):
    store.checked("zfs", changed=False, error=ZFS_MISSING)
    store.checked("disks", changed=False, error="as smartctl says")
    rows = {row.name: row for row in Source.objects.all()}
    with language.in_language("nl"):
        assert text_of(rows["zfs"].error) == "De ZFS-module is niet geladen, dus kan er geen pool worden gebruikt."
        assert text_of(rows["disks"].error) == "as smartctl says"
    store.checked("zfs", changed=True)
    assert (Source.objects.get(name="zfs").error, Source.objects.get(name="zfs").said) == ("", {})


def test_facts_with_sentences_are_in_the_language_of_the_reader(dutch):
    seen = Connection("smb", "1", "anna", "mac", secured=message.Message("encrypted"))
    store.replace(ConnectionRow, [seen], lambda one: one.key)
    (row,) = ConnectionRow.objects.all()
    assert row.fact == seen
    with language.in_language("nl"):
        assert text_of(row.fact.secured) == "versleuteld"


def test_report_of_a_replacement_is_in_the_language_of_the_reader(dutch):
    report = message.join_messages([message.Message("Nothing was lost."), "as zpool says"])
    case = Replacement.objects.create(
        pool="tank",
        pool_guid="1",
        vdev_guid="2",
        disk="ata-1",
        serial="WD-1",
        bay="bay 3",
        begun_by="admin",
        report=report,
        said=said_in(report, message.Message("bay {name}", name=3)),
    )
    case = Replacement.objects.get(pk=case.pk)
    assert (case.name, case.report) == ("bay 3 (serial WD-1)", "Nothing was lost. as zpool says")
    with language.in_language("nl"):
        assert case.name == "schijfvak 3 (serienummer WD-1)"
        assert text_of(case.report) == "Er is niets verloren gegaan. as zpool says"


def test_sizes_have_the_marks_of_the_reader(dutch):
    page = Template("{{ used|size }} {{ used|used_of:total }} {{ used|exact }} {{ load|number }}")
    values = Context({"used": 1_820_000_000_000, "total": 2_500_000_000_000, "load": 0.25})
    assert page.render(values) == "1.82 TB 1.82 of 2.5 TB 1,820,000,000,000 bytes 0.25"
    with language.in_language("nl"):
        assert page.render(values) == "1,82 TB 1,82 van 2,5 TB 1.820.000.000.000 bytes 0,25"


def test_reasons_of_disks_and_states_are_in_the_language_of_the_reader(dutch):
    reading = Reading(answered=True, passed=True, temperature=62, counts={"pending": 312})
    verdict = judge_health(reading, {})
    columns = smart_history.verdict_columns(verdict)
    row = DiskRow.objects.create(key="ata-1", name="sda", facts="{}", **columns)
    row = DiskRow.objects.get(pk=row.pk)
    assert row.smart_text == "312 sectors cannot be read. It is at 62 °C; its limit is 55 °C."
    status = DiskStatus("ata-1", message.Message("bay {name}", name=3), "failing", (HealthReason(*row.reasons[0]),))
    (fault,) = disk_faults(AlertInput(NOW, disks=(status,)))
    with language.in_language("nl"):
        assert "sectoren" in text_of(row.smart_text)
        assert text_of(fault.summary) == "Schijf in schijfvak 3 gaat stuk: 312 sectoren kunnen niet worden gelezen."
        assert text_of(vdev_state.say("sda", "REMOVED")) == "sda is eruit gehaald"
        assert text_of(time_left(19200)) == "nog ongeveer 5 u 20 min"
        assert formatting.ago(timezone.now() - timedelta(hours=3)) == "3 uur geleden"
    assert fault.summary == "Disk in bay 3 is failing: 312 sectors cannot be read."


def test_uses_of_disks_are_in_the_language_of_the_reader(dutch):
    store.replace(DiskRow, [SYSTEM_DISK], lambda disk: disk.name)
    (row,) = DiskRow.objects.all()
    with language.in_language("nl"):
        assert [text_of(use.text) for use in row.fact.uses] == ["bevat het systeem"]


def test_settings_and_schedules_are_in_the_language_of_the_reader(dutch):
    task = BackupTask(
        key="0000000a", pool=1, path="backups/photos", every="weekly", rate=20, slow_from=8, slow_until=23
    )
    with language.in_language("nl"):
        assert text_of(Policy(hourly=24, weekly=8).sentence) == "24 van elk uur, 8 wekelijkse"
        assert text_of(task.when) == "elke zondag om 02:00"
        assert text_of(task.speed) == "hoogstens 20 MB/s tussen 08:00 en 23:00"
        form = str(settings_views.ValueForm(name="atime", now="off"))
        assert "Toegangstijden" in form
        assert ">uit</option>" in form
        kept = lazy_format(
            "Keeps earlier versions of files: {kept}. They use space only for what changed.",
            kept=Policy(daily=3).sentence,
        )
        assert "3 dagelijkse" in str(kept)
    assert (task.when, task.speed) == ("every Sunday at 02:00", "at most 20 MB/s between 08:00 and 23:00")
    assert Policy(hourly=24, weekly=8).sentence == "24 hourly, 8 weekly"
    assert Policy().sentence == "none"


def test_layouts_are_in_the_language_of_the_reader(dutch):
    reading = Reading(answered=True, passed=True, temperature=62, counts={"pending": 312})
    warm = join_messages([reason.text for reason in judge_health(reading, {}).reasons][1:])
    disks = [Candidate(2 * 10**12, message.Message("Bay {name}", name=at)) for at in range(5)]
    disks[0] = replace(disks[0], trouble=rest_of_sentence(warm))
    best = propose_layouts(disks)[0]
    assert best.warnings[-1] == "Bay 0 is at 62 °C; its limit is 55 °C. Leave it out, or replace it soon."
    with language.in_language("nl"):
        assert text_of(best.title) == "raidz2 van 5"
        assert text_of(best.warnings[-1]).endswith("Laat de schijf weg, of vervang hem binnenkort.")
        assert text_of(explain_layout(best.choice, 5)) == "de ruimte van twee schijven beschermt de andere"
        assert text_of(describe_failures(2, 5)).startswith("Van de vijf schijven mogen er twee tegelijk uitvallen")
        assert text_of(shorten_proposals([best])[0].title) == "Evenwichtig, veiligst en meeste ruimte"


def test_results_of_benchmarks_are_in_the_language_of_the_reader(dutch):
    def measured(number: int, sync: str, *rates: float) -> MeasuredCase:
        case = msgspec.convert({"where": "dataset", "pool": "tank", "workload": "seq-write", "sync": sync}, Case)
        figures = [Figures(rate=rate, written=2**30) for rate in rates]
        around = Circumstances(written=2**30, hottest=61)
        runs = [
            BenchmarkRun(number=at, figures=one, around=around, remarks=(*run_remarks(case, around), "As dd says."))
            for at, one in enumerate(figures)
        ]
        stored = [encode_run(run).removeprefix(RESULT) for run in runs]
        return MeasuredCase(number, case, tuple(msgspec.json.decode(one, type=BenchmarkRun) for one in stored))

    blocks = build_blocks([measured(1, "standard", 2e8, 2.1e8), measured(2, "disabled", 3e8, 3.1e8)])
    (said, *_more) = summarize_results(blocks)
    row = blocks[0].rows[1]
    assert (
        said == "Large files, writing: sync disabled is best, with 305 MB/s: +48.8 % against sync standard (205 MB/s)."
    )
    assert row.measured.remarks == ("A disk was at 61 °C.", "As dd says.")
    with language.in_language("nl"):
        assert text_of(said).startswith("Grote bestanden, schrijven: sync disabled is het best, met 305 MB/s: +48.8 %")
        assert [text_of(one) for one in row.measured.remarks] == ["Een schijf was 61 °C.", "As dd says."]
        shared = {text_of(name): text_of(value) for name, value in shared_conditions([row.measured.case]).items()}
        assert shared["Rondes"] == "3 van elke deeltest"
        assert shared["Toegang via"] == "in de NAS zelf"


def test_verdict_of_a_burn_in_is_in_the_language_of_the_reader(dutch, calm):
    row = burn_ins_made.made(stage="last", reading={"passed": False, "counts": {"pending": 3}})
    burn_in.finish(row)
    row = BurnIn.objects.get()
    assert row.findings[0] == ["failed", "The disk itself reports that it is failing."]
    with language.in_language("nl"):
        assert text_of(row.findings[0][1]) == "De schijf meldt zelf dat hij stukgaat."


def test_dates_are_in_the_language_of_the_reader(dutch):
    said = moment_text(datetime(2026, 5, 5, 14, 30, tzinfo=UTC))
    assert said == "5 May 2026, 14:30"
    with language.in_language("nl"):
        assert text_of(said) == "5 mei 2026, 14:30"
        assert full_text(60, NOW.date()) == "in mei 2026"
    assert full_text(60, NOW.date()) == "in May 2026"


def test_numbers_in_attributes_keep_their_point(dutch):
    with language.in_language("nl"):
        assert localize(12.5) == "12.5"
