"""The settings of Larder's database in records: what is read of it, what a record would
change, and bringing it back."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from django.apps import apps
from django.contrib.auth import get_user_model
from django.utils import timezone

from appliance import agent_client
from appliance.datasets.encryption import key_store
from appliance.errors import Failed, Reason, Refused
from appliance.facts.box_record import BoxMark, BoxMarks
from appliance.facts.datasets import Property
from appliance.recovery import mail_password, recovery_key
from appliance.recovery.box_settings import GROUPS, BoxSettings, read_settings
from appliance.recovery.recovery_key import RecoveryState
from appliance.system import paths
from appliance.system.language import read_language
from tests.reasons import codes_on_page
from tests.unit.made import dataset, disk
from tests.web import rows
from tests.web.reading import text_of
from web.accounts.models import Preferences
from web.alerts import mail_form, smtp_password
from web.alerts.models import Accepted, DiskCare, KindSeverity, MailSettings, PoolDay, SelfTestPlan
from web.disks.models import BayRow
from web.inventory import store
from web.jobs.models import BY_SCHEDULE, Job
from web.pools.models import CareSchedule, DiskPrice, GrowthPlan
from web.settings_copy import current, tables
from web.settings_copy.offers import DESCRIBED, TITLES
from web.settings_copy.restore import WRITERS
from web.snapshots.models import MadeSnapshot
from web.system.models import BoxChoices
from workers import pool_records

OWN, OTHER = "0123456789abcdef", "fedcba9876543210"
AT = 1_790_000_000
GUID = 1000
OWN_PAGE = f"/backups/recovery/{GUID}/{OWN}/settings/"
OTHER_PAGE = f"/backups/recovery/{GUID}/{OTHER}/settings/"
CANARY = "canary-pass-7731"


def test_every_table_is_decided_about():
    every = {model._meta.label for model in apps.get_models(include_auto_created=True)}
    assert every == set(tables.KEPT) | set(tables.LEFT_OUT)
    assert not set(tables.KEPT) & set(tables.LEFT_OUT)
    assert (
        set(tables.KEPT.values())
        == set(GROUPS)
        == set(current.READERS)
        == set(WRITERS)
        == set(DESCRIBED)
        == set(TITLES)
    )


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(paths, "STATE", tmp_path)
    monkeypatch.setattr(key_store, "box_mark", lambda: OWN)
    monkeypatch.setattr(recovery_key, "read_state", lambda: RecoveryState())


def mark(box: str, by: str = "", at: int = AT) -> BoxMark:
    return BoxMark(id=box, host="attic", at=at, by=by)


def put_pool(*marks: BoxMark) -> None:
    noted = {"larder:box": Property(BoxMarks(boxes=marks).text, "local")}
    rows.put(
        pools=[rows.pool_of("tank", GUID, disk(1), disk(2))],
        datasets=[dataset("tank", guid=1, properties=noted)],
        disks=[disk(1), disk(2)],
        accounts=[],
        shares=[],
    )
    for name in ("pools", "datasets"):
        store.checked(name, changed=True)


def make_settings() -> None:
    """Something in every table that is kept."""
    BoxChoices(pk=1, language="nl").save()
    now = timezone.now().replace(microsecond=0)
    MailSettings(
        pk=1,
        host="mail.example.org",
        user="box",
        sender="box@example.org",
        critical="anna@example.org",
        notice="ben@example.org",
        quiet_from=22,
        quiet_to=7,
        webhook=f"https://ntfy.sh/{CANARY}",
    ).save()
    KindSeverity.objects.create(kind="service.pages", severity="notice")
    Accepted.objects.create(disk="ata-1", count="reallocated", value=8, by="admin")
    DiskCare.objects.create(disk="ata-1", since=now, tested=False, sleep=20)
    DiskCare.objects.create(disk="ata-2", since=now)  # as every disk is without a choice
    SelfTestPlan(pk=1, short="month", long="quarter", first=3, last=4).save()
    CareSchedule.objects.create(pool_key=str(GUID), kind="scrub", every="week", first=2, last=5)
    DiskPrice(pk=1, per_tb=Decimal("19.90"), currency="EUR").save()
    GrowthPlan.objects.create(
        pool_guid=str(GUID),
        pool="tank",
        size=8 * 10**12,
        targets=[["7", "bay 1"], ["8", "bay 2"]],
        replaced=[["7", "9", "bay 3", AT]],
        moved=now,
        begun=now,
        begun_by="admin",
    )
    BayRow.objects.create(port="pci-1-ata-1", position=2, label="top")
    Preferences.objects.create(user=get_user_model().objects.get(), units="TiB", language="nl")
    MadeSnapshot.objects.create(dataset_key="5", guid="6", grains="daily,hourly", until=now)


KEPT_MODELS = (
    BoxChoices,
    MailSettings,
    KindSeverity,
    Accepted,
    DiskCare,
    SelfTestPlan,
    CareSchedule,
    DiskPrice,
    GrowthPlan,
    BayRow,
    Preferences,
    MadeSnapshot,
)


def lose_settings() -> None:
    for model in KEPT_MODELS:
        model._default_manager.all().delete()


class Agent:
    """Stands in for the agent: one file of settings, and what was handed over."""

    def __init__(self) -> None:
        self.recorded: dict[str, Any] = {}
        self.left_out: list[dict[str, Any]] = []
        self.handed: list[dict[str, Any]] = []
        self.kept = True
        self.away = False

    def answer(self, request: dict[str, Any], **_options: object) -> dict[str, Any]:
        if self.away:
            raise Failed("Larder's agent does not answer")
        if request["verb"] == "keep-box-settings":
            msgspec.convert(json.loads(json.dumps(request["settings"])), BoxSettings)  # as the agent reads it
            self.handed.append(request)
            return {"facts": {"kept": self.kept, "written": AT + 1}}
        if request["verb"] == "read-box-settings":
            if not self.recorded:
                raise Refused(Reason("settings-missing", "No settings."))
            return {"facts": {"settings": self.recorded, "left_out": self.left_out}}
        raise Failed(request["verb"])

    def record(self, **changes: Any) -> None:
        found = current.read_settings()
        self.recorded = msgspec.to_builtins(msgspec.structs.replace(found, written=AT, **changes))


@pytest.fixture
def agent(monkeypatch) -> Agent:
    found = Agent()
    monkeypatch.setattr(agent_client, "send_request", found.answer)
    return found


# --- reading ----------------------------------------------------------------------------------------------------------
def test_settings_are_read_in_every_group_and_have_no_secret(web):
    make_settings()
    smtp_password.store_password(CANARY)
    found = current.read_settings()
    assert {group: len(getattr(found.groups, group)) for group in GROUPS} == dict.fromkeys(GROUPS, 1)
    assert read_settings(found.text).settings == found and read_settings(found.text).left_out == ()
    assert CANARY.encode() not in found.text
    user = get_user_model().objects.get()
    assert user.password.encode() not in found.text


def test_row_that_breaks_a_rule_loses_no_other(web):
    make_settings()
    KindSeverity.objects.create(kind="Ünlikely", severity="notice")
    assert [one.kind for one in current.read_settings().groups.levels] == ["service.pages"]


def test_settings_fit_into_one_request_however_many_snapshots_there_are(web, monkeypatch):
    from appliance.recovery import box_settings

    MadeSnapshot.objects.bulk_create(
        MadeSnapshot(dataset_key="5", guid=str(10**18 + at), grains="daily") for at in range(200)
    )
    monkeypatch.setattr(box_settings, "LARGEST", 6000)
    found = current.read_settings()
    assert len(found.text) <= 5000 and found.groups.snapshots[0].guid == str(10**18 + 199)  # the newest stay


def test_database_is_told_from_one_that_takes_its_place(db):
    assert current.database_made() > 10**15
    assert current.database_made() == current.database_made()


# --- bringing back ----------------------------------------------------------------------------------------------------
def lost(agent: Agent) -> None:
    """The settings of this box were lost; its record has those of the former database."""
    make_settings()
    agent.record(made=current.database_made() - 1)
    lose_settings()
    put_pool(mark(OWN))


def shown(page: Any) -> str:
    fingerprint: str = page.context["offer"].fingerprint
    return fingerprint


def test_lost_settings_are_offered_with_names_and_come_back(web, agent):
    lost(agent)
    recovery = web.get("/backups/recovery/")
    assert OWN_PAGE in recovery.content.decode()
    page = web.get(OWN_PAGE)
    text = text_of(page)
    assert "before this box lost its settings" in text and "Bring back the settings of" in text
    for words in ("anna@example.org", "mail.example.org", "Scrub of tank: every week", "19.90 EUR", "bay top"):
        assert words in text, text
    assert page.context["chosen"] == set(GROUPS)
    assert "Here now" not in text
    smtp_password.store_password(CANARY)
    answer = web.post(OWN_PAGE, {"group": list(GROUPS), "shown": shown(page)})
    assert answer.status_code == 302 and answer["Location"] == "/backups/recovery/"
    mail = MailSettings.objects.get()
    assert (mail.host, mail.critical, mail.notice, mail.quiet_from) == (
        "mail.example.org",
        "anna@example.org",
        "ben@example.org",
        22,
    )
    schedule = CareSchedule.objects.get()
    assert (schedule.pool_key, schedule.every, schedule.first) == (str(GUID), "week", 2)
    assert MadeSnapshot.objects.get().grains == "daily,hourly" and MadeSnapshot.objects.get().until
    assert DiskCare.objects.get().sleep == 20 and KindSeverity.objects.get().severity == "notice"
    assert DiskPrice.objects.get().per_tb == Decimal("19.90") and BayRow.objects.get().label == "top"
    assert Preferences.objects.get().language == "nl" and GrowthPlan.objects.get().targets == [
        ["7", "bay 1"],
        ["8", "bay 2"],
    ]
    assert GrowthPlan.objects.get().replaced == [["7", "9", "bay 3", AT]]
    assert (BoxChoices.objects.get().language, read_language()) == ("nl", "nl")  # also for the console
    assert Accepted.objects.get().value == 8 and SelfTestPlan.objects.get().long == "quarter"
    assert smtp_password.read_password() == CANARY  # it is of this very box
    # The record gets the settings as they are now, and the former ones are decided about.
    assert agent.handed[-1]["former"] == agent.recorded["made"]
    assert agent.handed[-1]["settings"]["groups"]["levels"]
    assert Job.objects.get().kind == "write-record"


def test_group_that_was_not_ticked_stays_away(web, agent):
    lost(agent)
    web.post(OWN_PAGE, {"group": ["price"], "shown": shown(web.get(OWN_PAGE))})
    assert DiskPrice.objects.exists()
    assert not any(model._default_manager.exists() for model in KEPT_MODELS if model is not DiskPrice)


def test_nothing_ticked_is_an_error_and_changes_nothing(web, agent):
    lost(agent)
    answer = web.post(OWN_PAGE, {"shown": shown(web.get(OWN_PAGE))})
    assert answer.status_code == 400 and "Choose at least one group" in text_of(answer)
    assert agent.handed == []


def test_setting_that_is_replaced_is_shown_and_not_ticked(web, agent):
    lost(agent)
    MailSettings(pk=1, host="new.example.org", critical="carla@example.org").save()
    smtp_password.store_password(CANARY)
    page = web.get(OWN_PAGE)
    text = text_of(page)
    assert (
        "Here now: Critical alerts to carla@example.org, warnings to nobody, notices to nobody; through new.example.org"
        in text
    )
    assert "notifications" not in page.context["chosen"] and "care" in page.context["chosen"]
    web.post(OWN_PAGE, {"group": ["notifications"], "shown": shown(page)})
    assert MailSettings.objects.get().host == "mail.example.org"
    assert not smtp_password.has_password()  # it belongs to the other server


def test_what_changed_since_the_page_was_shown_is_shown_again(web, agent):
    lost(agent)
    page = web.get(OWN_PAGE)
    KindSeverity.objects.create(kind="service.pages", severity="critical")
    answer = web.post(OWN_PAGE, {"group": list(GROUPS), "shown": shown(page)})
    assert answer.status_code == 409 and "Something changed since you looked" in text_of(answer)
    assert not MailSettings.objects.exists() and KindSeverity.objects.get().severity == "critical"


def test_todays_settings_can_be_kept_instead(web, agent):
    lost(agent)
    assert "Keep today’s settings instead" in text_of(web.get(OWN_PAGE))
    web.post(OWN_PAGE, {"keep": "today"})
    assert agent.handed[-1]["former"] == agent.recorded["made"] and not MailSettings.objects.exists()


def test_same_settings_are_nothing_to_bring_back(web, agent):
    make_settings()
    agent.record()
    put_pool(mark(OWN))
    text = text_of(web.get(OWN_PAGE))
    assert "This box has the same settings." in text and "Keep today" not in text


def test_existing_record_of_a_snapshot_and_plan_stay_as_they_are(web, agent):
    lost(agent)
    MadeSnapshot.objects.create(dataset_key="5", guid="6", grains="hourly")
    assert web.get(OWN_PAGE).context["offer"].group("snapshots") is None


# --- another box ------------------------------------------------------------------------------------------------------
def old_box(agent: Agent) -> None:
    make_settings()
    agent.record(made=5)
    lose_settings()
    put_pool(mark(OTHER))


def test_mail_of_another_box_waits_until_that_one_is_switched_off(web, agent):
    old_box(agent)
    page = web.get(OTHER_PAGE)
    assert "notifications" not in page.context["chosen"] and "Keep today" not in text_of(page)
    answer = web.post(OTHER_PAGE, {"group": ["notifications", "price"], "shown": shown(page)})
    assert answer.status_code == 400 and "switched off for good" in text_of(answer)
    assert not MailSettings.objects.exists() and not DiskPrice.objects.exists()
    assert web.post(OTHER_PAGE, {"group": ["notifications"], "shown": shown(page), "off": "on"}).status_code == 302
    assert MailSettings.objects.get().host == "mail.example.org"
    assert agent.handed == []  # nothing was decided about records of this box


def test_password_that_came_with_the_place_is_used_and_another_is_not_sent_to_that_server(web, agent):
    old_box(agent)
    smtp_password.store_password("of another server")
    mail_password.leave_password(OTHER, CANARY)
    answers = {"group": ["notifications"], "off": "on"}
    web.post(OTHER_PAGE, {**answers, "shown": shown(web.get(OTHER_PAGE))})
    assert smtp_password.read_password() == CANARY and not mail_password.left_file(OTHER).exists()
    lose_settings()
    web.post(OTHER_PAGE, {**answers, "shown": shown(web.get(OTHER_PAGE))})
    assert not smtp_password.has_password()


@pytest.mark.parametrize(
    ("made_up", "told"),
    [
        ({"authority": "-----BEGIN CERTIFICATE-----"}, "also trusting the certificate"),
        ({"sender": "box@bad.example"}, "sent as box@bad.example"),
        ({"address": "https://bad.example"}, "links to https://bad.example"),
        ({"critical": []}, "Critical alerts to nobody"),
        ({"port": 2525}, "mail.example.org:2525"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_everything_that_a_record_changes_in_mail_is_shown(web, agent, monkeypatch, made_up, told):
    monkeypatch.setattr(mail_form, "reasons_against_certificate", lambda _text: ())
    old_box(agent)
    first = agent.recorded["groups"]["notifications"][0]
    MailSettings(
        pk=1,
        **{name: first[name] for name in current.MAIL_FIELDS},
        **{name: "\n".join(first[name]) for name in current.RECIPIENTS},
    ).save()
    smtp_password.store_password(CANARY)
    first.update(made_up)
    page = web.get(OTHER_PAGE)
    assert text_of(page).count(told) == 1
    web.post(OTHER_PAGE, {"group": ["notifications"], "off": "on", "shown": shown(page)})
    assert smtp_password.has_password() is (not {"authority", "port"} & set(made_up))


def test_choices_of_one_administrator_are_those_of_the_other(web, agent):
    old_box(agent)
    agent.recorded["groups"]["pages"][0]["user"] = "someone-else"
    web.post(OTHER_PAGE, {"group": ["pages"], "shown": shown(web.get(OTHER_PAGE))})
    assert Preferences.objects.get().language == "nl"


# --- hostile ----------------------------------------------------------------------------------------------------------
def test_bad_entries_are_named_and_the_rest_can_be_brought_back(web, agent):
    old_box(agent)
    groups = agent.recorded["groups"]
    groups["levels"] = [{"kind": "no.such", "severity": "notice"}, {"kind": "service.pages", "severity": "loud"}]
    groups["notifications"][0]["critical"] = ["anna@nowhere..example"]
    groups["price"] = [{"per_tb": "<script>", "currency": "EUR"}]
    agent.left_out = [{"group": "<b>later</b>", "count": 2, "code": "kept-setting-unknown"}]
    page = web.get(OTHER_PAGE)
    text = text_of(page)
    assert "Cannot be brought back" in text and "Alert levels (1): This version of Larder does not know it." in text
    assert "Price of disks (1): An entry is damaged" in text or "Price of disks (1): A value is missing" in text
    assert "is not a mail address" in text and b"<b>later</b>" not in page.content
    assert {one.group for one in page.context["offer"].groups} == set(GROUPS) - {"levels", "notifications", "price"}


@pytest.mark.parametrize(
    "spoiled", [{}, {"version": 1}, {"version": 2, "made": 1, "groups": {}}, {"version": 1, "made": "x", "groups": {}}]
)
def test_hostile_settings_are_a_page_with_a_reason(web, agent, spoiled):
    put_pool(mark(OTHER))
    agent.recorded = spoiled
    answer = web.get(OTHER_PAGE)
    assert answer.status_code == 409
    assert codes_on_page(answer)[0] in {"settings-missing", "settings-malformed", "record-too-new"}


def test_record_that_is_not_there_is_not_found(web, agent):
    put_pool(mark(OTHER))
    assert web.get(OWN_PAGE).status_code == 404
    assert web.get(f"/backups/recovery/1/{OTHER}/settings/").status_code == 404


# --- writing ----------------------------------------------------------------------------------------------------------
def test_record_is_written_from_the_page_with_the_settings_of_that_moment(web, agent):
    put_pool()
    page = web.get(f"/backups/recovery/{GUID}/write/")
    assert page.status_code == 200 and len(agent.handed) == 1
    agent.away = True
    assert web.get(f"/backups/recovery/{GUID}/write/").status_code == 200


def begun() -> list[str]:
    return list(Job.objects.filter(created_by=BY_SCHEDULE, kind="write-record").values_list("subject", flat=True))


NOW = datetime.now(UTC)


def seconds(ago: timedelta) -> int:
    return int((timezone.now() - ago).timestamp())


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        (lambda: [mark(OWN, at=seconds(timedelta(days=2)))], True),
        (lambda: [mark(OWN, at=seconds(timedelta(hours=5)))], False),  # at most once a day
        (lambda: [mark(OWN, by="cellar", at=seconds(timedelta(days=2)))], False),
        (lambda: [mark(OTHER, at=seconds(timedelta(days=2)))], False),
        (list, True),
    ],
)
def test_record_is_written_by_the_schedule_when_it_is_due(web, agent, monkeypatch, known, expected):
    put_pool(*known())
    PoolDay.objects.create(
        guid=str(GUID), name="tank", day=(timezone.now() - timedelta(days=1)).date(), used=1, total=2
    )
    monkeypatch.setattr(agent, "answer", lambda *_a, **_o: {"facts": {"kept": True, "written": seconds(timedelta())}})
    monkeypatch.setattr(agent_client, "send_request", agent.answer)
    assert pool_records.record_settings(timezone.now()) is expected
    assert begun() == (["tank"] if expected else [])


def test_new_pool_gets_no_record_on_its_first_day_and_an_unchanged_one_no_second(web, agent):
    put_pool()
    assert not pool_records.record_settings(timezone.now())
    put_pool(mark(OWN, at=AT + 1))  # nothing changed since
    assert not pool_records.record_settings(timezone.now())
    assert begun() == []


def test_odd_row_of_another_disk_or_pool_keeps_no_record_from_being_written(web, agent):
    from web.inventory.models import DiskRow, PoolRow

    put_pool(mark(OWN, at=AT - 10**6))
    PoolRow.objects.create(key="odd", name="odd", facts="{")
    DiskRow.objects.create(key="odd", name="odd", facts="{", asleep=True)
    assert pool_records.record_settings(timezone.now())


def test_pool_whose_own_folder_is_odd_gets_no_record(web, agent):
    """Whether another box calls it its own is not known."""
    from web.inventory.dataset_models import DatasetRow

    put_pool(mark(OTHER, at=AT - 10**6))
    DatasetRow.objects.update(facts="{")
    assert not pool_records.record_settings(timezone.now())


def test_sleeping_disk_is_not_woken(web, agent):
    from web.inventory.models import DiskRow

    put_pool(mark(OWN, at=AT - 10**6))
    DiskRow.objects.filter(key__in=DiskRow.objects.values("key")[:1]).update(asleep=True)
    assert not pool_records.record_settings(timezone.now())
    DiskRow.objects.update(asleep=False)
    assert pool_records.record_settings(timezone.now())


def test_former_settings_in_the_record_are_told_and_not_overwritten(web, agent):
    put_pool(mark(OWN, at=AT - 10**6))
    agent.kept = False
    with pytest.raises(Failed, match="before its settings were lost"):
        pool_records.record_settings(timezone.now())
    assert begun() == []


def test_agent_that_does_not_answer_is_no_fault_of_the_upkeep(web, agent):
    put_pool(mark(OWN, at=AT - 10**6))
    agent.away = True
    assert not pool_records.record_settings(timezone.now())
