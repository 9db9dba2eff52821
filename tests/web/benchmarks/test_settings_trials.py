"""A benchmark from another computer that tries a setting: the form, what the script may
switch, the result, keeping it."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from django.utils import timezone

from appliance.benchmarks.box_settings.catalogue import SETTINGS
from appliance.benchmarks.box_settings.catalogue_entry import NOWHERE
from appliance.benchmarks.box_settings.keep import KeepSetting, PutSettingBack
from appliance.errors import Failed, Reason, Refused
from appliance.layout.geometry import MIB
from tests.reasons import codes_on_page
from tests.web.benchmarks import client_runs_made
from tests.web.benchmarks.test_client_runs import FORM, State, ask, new_run, shared  # noqa: F401  # a fixture
from tests.web.reading import text_of
from tests.web.routes import PHOTOS
from web import agent
from web.benchmarks import settings_trials
from web.benchmarks.client_models import MOST_SWITCHES, ClientRunRow
from web.jobs.models import Job

TAG, FORMER, TRIED = client_runs_made.SETTING, client_runs_made.FORMER, client_runs_made.TRIED


class Agent:
    """The agent in place of the real one: what it was asked, and the state of the setting."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.on = False
        self.error: Exception | None = None
        self.settings: list[dict[str, Any]] = [
            {"tag": TAG, "value": FORMER, "tried": TRIED},
            {
                "tag": "nfs-threads",
                "refusal": {
                    "code": "setting-nfs-off",
                    "template": "The NFS server does not run.",
                    "arguments": {},
                    "field": "",
                },
            },
        ]

    def last(self, request: dict[str, Any], *, silence: float) -> dict[str, Any]:
        self.asked.append(request)
        if self.error:
            raise self.error
        if request["verb"] == "read-settings":
            return {"facts": self.settings}
        was, self.on = self.on, request["on"]
        return {"facts": {"value": TRIED if self.on else FORMER, "was_switched": was}}


@pytest.fixture
def answering(monkeypatch: pytest.MonkeyPatch) -> Agent:
    found = Agent()
    monkeypatch.setattr(agent, "last", found.last)
    return found


@pytest.fixture
def begun(anonymous, admin, calm, answering) -> tuple[ClientRunRow, str]:
    """A run that tries a setting and whose code was used, and its token."""
    row, code = new_run(setting=TAG)
    told = ask(anonymous, "begin", code=code).json()
    assert told["compare"] is True
    return row, told["token"]


def switched(anonymous, token: str, *states: bool) -> list[int]:
    return [ask(anonymous, "setting", token=token, on=state).status_code for state in states]


KEPT_UNREADABLE = [
    {
        "tag": tag,
        "value": "",
        "kept": kept,
        "refusal": {"code": "setting-port-unknown", "template": "No way.", "arguments": {}, "field": ""},
    }
    for tag, kept in (
        ("tcp-buffers", FORMER),
        ("ring-sizes", "eth0 rx 256 of 4096, tx 256 of 4096"),
        ("flow-control", "eth0 autoneg on rx on tx on"),
        ("interrupts", "eth0 3 us"),
        ("nfs-threads", "16"),
        ("smb-async", "1 1"),
        ("smb-socket", "TCP_NODELAY"),
    )
]


def test_kept_setting_that_cannot_be_read_now_hides_nothing(web, shared, answering):  # noqa: F811
    keepable = {tag for tag, setting in SETTINGS.items() if setting.file != NOWHERE}
    assert {one["tag"] for one in KEPT_UNREADABLE} == keepable
    answering.settings = KEPT_UNREADABLE
    page = web.get(FORM)
    assert page.status_code == 200
    assert text_of(page).count("it cannot be read now, so it cannot be put back") == len(keepable)
    assert "Put it back" not in text_of(page)


def test_code_page_warns_where_a_switch_cuts_the_connection(web, shared, answering):  # noqa: F811
    answering.settings.append(
        {
            "tag": "ring-sizes",
            "value": "eth0 rx 256 of 4096, tx 256 of 4096",
            "tried": "eth0 rx 4096 of 4096, tx 4096 of 4096",
        }
    )
    answer = web.post(FORM, {"share": shared, "size": "16 MiB", "runs": 3, "setting": "ring-sizes"})
    assert "Each switch can cut all connections of this box for some seconds." in text_of(answer)


# --- the form -------------------------------------------------------------------------------------------------------
def test_form_offers_what_can_be_tried_and_says_why_the_rest_cannot(web, shared, answering):  # noqa: F811
    page = web.get(FORM)
    choices = page.context["form"].fields["setting"].choices
    assert [value for value, _label in choices] == ["", TAG]
    assert "up to 16.8 MB for receiving" in choices[1][1]
    assert "More threads of the NFS server." in text_of(page)
    assert "It cannot be tried now: The NFS server does not run." in text_of(page)
    answer = web.post(FORM, {"share": shared, "size": "64 MiB", "runs": 3, "setting": TAG})
    assert answer.status_code == 200
    assert "Larger buffers for connections (TCP)" in text_of(answer)
    assert ClientRunRow.objects.get(state=State.WAITING).setting == TAG


@pytest.mark.parametrize(
    ("changed", "word"),
    [
        ({"runs": 2}, "at least 3 runs"),
        ({"setting": "nfs-threads"}, "valid choice"),
        ({"setting": "x"}, "valid choice"),
    ],
)
def test_form_refuses_what_would_show_nothing(web, shared, answering, changed, word):  # noqa: F811
    answer = web.post(FORM, {"share": shared, "size": "16 MiB", "runs": 3, "setting": TAG, **changed})
    assert answer.status_code == 400
    assert word in text_of(answer)


def test_setting_of_another_protocol_is_refused(web, shared, answering):  # noqa: F811
    answering.settings[1] = {"tag": "nfs-threads", "value": "16", "tried": "32"}
    answer = web.post(FORM, {"share": shared, "size": "16 MiB", "runs": 3, "setting": "nfs-threads"})
    assert answer.status_code == 400
    assert "not used over SMB" in text_of(answer)


def test_form_measures_without_a_setting_where_the_agent_does_not_answer(web, shared, answering):  # noqa: F811
    answering.error = Failed("The agent does not answer")
    assert [value for value, _label in web.get(FORM).context["form"].fields["setting"].choices] == [""]
    assert web.post(FORM, {"share": shared, "size": "64 MiB", "runs": 2}).status_code == 200


# --- switching ------------------------------------------------------------------------------------------------------
def test_script_switches_only_the_setting_that_was_chosen(anonymous, begun, answering):
    row, token = begun
    assert switched(anonymous, token, False, True, False) == [200] * 3
    assert {one["setting"] for one in answering.asked} == {TAG}
    row.refresh_from_db()
    assert (row.former, row.tried, row.switched, row.switches) == (FORMER, TRIED, False, 3)
    assert ask(anonymous, "setting", token=token, on=True, setting="nfs-threads").status_code == 403


def test_script_without_a_setting_switches_none(anonymous, admin, calm, answering):
    _row, code = new_run()
    told = ask(anonymous, "begin", code=code).json()
    assert told["compare"] is False
    assert switched(anonymous, told["token"], True) == [409]
    assert answering.asked == []


def test_script_does_not_switch_without_end_or_without_its_token(anonymous, begun):
    assert switched(anonymous, "x" * 43, True) == [403]
    states = [at % 2 == 1 for at in range(MOST_SWITCHES + 3)]
    # After the last time on, it may still go off.
    assert switched(anonymous, begun[1], *states) == [200] * (MOST_SWITCHES + 1) + [409, 409]


def test_run_ends_where_something_else_has_put_the_setting_back(anonymous, begun, answering):
    _row, token = begun
    switched(anonymous, token, False, True)
    answering.on = False
    answer = ask(anonymous, "setting", token=token, on=False)
    assert answer.status_code == 409
    assert "went back by itself because a part took too long" in answer.json()["error"]


def test_script_is_warned_where_a_switch_cuts_the_connection(anonymous, admin, calm, answering):
    for setting, warned in (("mtu", True), (TAG, False)):
        _row, code = new_run(setting=setting)
        told = ask(anonymous, "begin", code=code).json()
        assert ("can cut all connections" in told["warning"]) is warned


@pytest.mark.parametrize(
    ("address", "sentence"),
    [
        ("192.168.1.20", "this computer cannot take frames of 9000 bytes. Set an MTU of 9000 here"),
        ("192.168.1.21", "frames of 9000 bytes do not reach 192.168.1.20."),
    ],
)
def test_computer_that_larger_frames_do_not_reach_is_told_so(anonymous, admin, calm, answering, address, sentence):
    row, code = new_run(setting="mtu")
    token = ask(anonymous, "begin", code=code).json()["token"]
    ClientRunRow.objects.filter(pk=row.pk).update(address=address)
    answering.error = Refused(
        Reason(
            "frames-lost",
            "It cannot be tried here: frames of {mtu} bytes do not reach {names}.",
            mtu=9000,
            names="192.168.1.20",
        )
    )
    answer = ask(anonymous, "setting", token=token, on=True)
    assert answer.status_code == 409
    assert answer.json()["error"].startswith("It cannot be tried here: ")
    assert sentence in answer.json()["error"]


@pytest.mark.parametrize(
    "message", [{"figures": client_runs_made.figures()}, {"failed": "It was stopped on the other computer."}]
)
def test_setting_is_put_back_however_the_run_ends(anonymous, begun, answering, message):
    _row, token = begun
    switched(anonymous, token, False, True)
    assert ask(anonymous, "finish", token=token, **message).status_code == 200
    assert not answering.on


def test_setting_of_a_run_that_is_deleted_is_put_back(anonymous, web, begun, answering):
    row, token = begun
    switched(anonymous, token, False, True)
    assert web.post(f"/benchmarks/client/{row.pk}/forget/").status_code == 302
    assert not answering.on
    assert not ClientRunRow.objects.filter(pk=row.pk).exists()


def test_figures_are_stored_where_the_setting_cannot_be_put_back_at_once(anonymous, begun, answering):
    row, token = begun
    switched(anonymous, token, False, True)
    answering.error = Failed("The agent does not answer")
    assert ask(anonymous, "finish", token=token, figures=client_runs_made.figures()).status_code == 200
    row.refresh_from_db()
    assert row.state == State.DONE


# --- a script that was killed ---------------------------------------------------------------------------------------
def end_trial(row: ClientRunRow) -> str:
    return f"/benchmarks/client/{row.pk}/end-trial/"


def killed(anonymous, begun, ago: timedelta) -> tuple[ClientRunRow, str]:
    """The run whose script has switched its setting, and was last heard so long ago."""
    row, token = begun
    assert switched(anonymous, token, False, True) == [200, 200]
    ClientRunRow.objects.filter(pk=row.pk).update(heard=timezone.now() - ago)
    row.refresh_from_db()
    return row, token


def test_setting_of_a_killed_script_is_put_back_at_once_after_a_review(anonymous, web, begun, answering):
    row, token = killed(anonymous, begun, timedelta(minutes=3))
    for place in (f"/benchmarks/client/{row.pk}/", FORM):
        assert end_trial(row) in web.get(place).content.decode()
    review = web.get(end_trial(row))
    assert "up to 16.8 MB for receiving" in text_of(review)
    assert "The script may still run" not in text_of(review)
    assert answering.on
    answer = web.post(end_trial(row))
    assert answer.headers["Location"] == f"/benchmarks/client/{row.pk}/"
    assert not answering.on
    row.refresh_from_db()
    assert (row.state, row.switched) == (State.FAILED, False)
    page = web.get(f"/benchmarks/client/{row.pk}/")
    assert "The setting that it tried was put back by admin." in text_of(page)
    assert end_trial(row) not in page.content.decode()
    # The script, if it was not killed after all, changes nothing any more.
    assert switched(anonymous, token, True) == [403]
    assert not answering.on


def test_script_that_was_heard_a_moment_ago_is_ended_only_where_that_was_ticked(anonymous, web, begun, answering):
    row, _token = killed(anonymous, begun, timedelta(seconds=20))
    assert "The script may still run" in text_of(web.get(end_trial(row)))
    answer = web.post(end_trial(row))
    assert answer.status_code == 409
    assert "Nothing was changed." in text_of(answer)
    assert answering.on
    assert web.post(end_trial(row), {"anyway": "on"}).status_code == 302
    assert not answering.on


def test_script_is_heard_with_each_of_its_messages(anonymous, begun):
    row, token = begun
    for state in (False, True):
        ClientRunRow.objects.filter(pk=row.pk).update(heard=None)
        switched(anonymous, token, state)
        row.refresh_from_db()
        assert settings_trials.is_heard(row)


def test_nothing_is_offered_where_nothing_is_tried_or_its_time_is_over(anonymous, web, begun, answering):
    row, token = begun
    assert switched(anonymous, token, False) == [200]
    assert codes_on_page(web.get(end_trial(row))) == ["setting-not-switched"]
    row, _token = killed(anonymous, begun, timedelta(minutes=31))
    for place in (f"/benchmarks/client/{row.pk}/", FORM):
        assert end_trial(row) not in web.get(place).content.decode()
    asked = len(answering.asked)
    assert codes_on_page(web.post(end_trial(row))) == ["setting-not-switched"]
    assert [one for one in answering.asked[asked:] if one["verb"] == "switch-setting"] == []


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (Refused(Reason("setting-nfs-off", "The NFS server does not run.")), "setting-nfs-off"),
        (Failed("The agent does not answer."), "setting-not-put-back"),
    ],
)
def test_run_goes_on_where_the_setting_could_not_be_put_back(anonymous, web, begun, answering, error, code):
    row, _token = killed(anonymous, begun, timedelta(minutes=3))
    answering.error = error
    assert codes_on_page(web.post(end_trial(row))) == [code]
    row.refresh_from_db()
    assert (row.state, row.switched) == (State.RUNNING, True)


# --- the result -----------------------------------------------------------------------------------------------------
SLOWER, SAME, FASTER = (
    [60.0 * MIB, 61.0 * MIB, 62.0 * MIB],
    [99.0 * MIB, 101.0 * MIB, 102.0 * MIB],
    [130.0 * MIB, 131.0 * MIB, 132.0 * MIB],
)


def result_of(write: list[float], read: list[float]) -> ClientRunRow:
    changed = {"read": SAME, "write": SAME, "changed_write": write, "changed_read": read}
    told = msgspec.json.encode(client_runs_made.figures(**changed)).decode()
    ClientRunRow.objects.all().delete()
    return client_runs_made.finished(told=told, setting=TAG, former=FORMER, tried=TRIED)


@pytest.mark.parametrize(
    ("write", "read", "sentence", "kept"),
    [
        (FASTER, SAME, "It helps here.", True),
        (SAME, SAME, "It makes no difference here.", False),
        (SLOWER, SAME, "It makes it slower here.", False),
        (FASTER, SLOWER, "It makes one thing faster and another slower.", False),
    ],
)
def test_result_says_whether_it_helps_and_offers_to_keep_what_does(web, box, write, read, sentence, kept):
    row = result_of(write, read)
    page = web.get(f"/benchmarks/client/{row.pk}/")
    assert sentence in text_of(page)
    assert ("Keep this setting" in text_of(page)) is kept
    answer = web.post(f"/benchmarks/client/{row.pk}/keep/")
    job = Job.objects.filter(kind="keep-setting")
    if not kept:
        assert answer.status_code == 409
        assert codes_on_page(answer) == ["setting-did-not-help"]
        assert not job.exists()
        return
    assert answer.status_code == 302
    wanted = KeepSetting(setting=TAG, value=TRIED, former=FORMER)
    assert json.loads(job.get().operation) == msgspec.to_builtins(wanted)


def test_mtu_that_helped_is_kept_by_way_of_its_own_trial(web, box):
    row = result_of(FASTER, SAME)
    ClientRunRow.objects.update(setting="mtu", former="eth0 mtu 1500 of 9216", tried="eth0 mtu 9000 of 9216")
    page = text_of(web.get(f"/benchmarks/client/{row.pk}/"))
    assert "Larger frames (MTU): an MTU of 9000 at eth0 instead of an MTU of 1500 at eth0" in page
    answer = web.post(f"/benchmarks/client/{row.pk}/keep/")
    assert answer.headers["Location"] == "/system/ports/eth0/mtu/?mtu=9000"
    assert not Job.objects.filter(kind="keep-setting").exists()


def test_difference_that_may_be_chance_is_called_so(web, box):
    row = result_of([101.0 * MIB, 103.0 * MIB, 104.0 * MIB], SAME)
    page = text_of(web.get(f"/benchmarks/client/{row.pk}/"))
    assert "no more than chance" in page
    assert "+30" not in page


def test_kept_setting_is_listed_and_can_be_put_back(web, shared, answering):  # noqa: F811
    answering.settings[0] = {"tag": TAG, "value": TRIED, "kept": FORMER}
    page = web.get(FORM)
    assert "Settings that you kept" in text_of(page)
    answer = web.post(f"/benchmarks/client/settings/{TAG}/back/")
    assert answer.status_code == 302
    job = Job.objects.get(kind="put-setting-back")
    assert PutSettingBack(setting=TAG, value=FORMER, former=TRIED).title == str(job.title)


def test_setting_that_is_not_kept_is_not_put_back(web, box, answering):
    answer = web.post(f"/benchmarks/client/settings/{TAG}/back/")
    assert codes_on_page(answer) == ["setting-not-kept"]
    assert not Job.objects.filter(kind="put-setting-back").exists()


# --- a port that is not there any more ------------------------------------------------------------------------------
def test_setting_of_a_port_that_is_gone_is_told_and_can_be_forgotten(web, shared, answering):  # noqa: F811
    answering.settings += [
        {"tag": "interrupts", "kept": "enp3s0 3 us", "value": "enp5s0 3 us", "lost": ["enp3s0"]},
        {"tag": "mtu", "value": "enp5s0 mtu 1500 of 9216", "lost": ["enp3s0"]},
    ]
    page = web.get(FORM)
    assert text_of(page).count("it is kept for the network port enp3s0, which is no longer there under that name") == 2
    assert text_of(page).count("Measure it again for enp5s0, or forget it") == 1
    assert text_of(page).lower().count("forget it") == 2  # once in each of the two notices
    assert "/system/ports/enp5s0/mtu/" in page.content.decode()
    assert "Settings that you kept" not in text_of(page)
    for tag in ("interrupts", "mtu"):
        address = f"/benchmarks/client/settings/{tag}/forget/enp3s0/"
        assert address in page.content.decode()
        assert "What is kept for the network port enp3s0 is deleted" in text_of(web.get(address))
    assert codes_on_page(web.get("/benchmarks/client/settings/mtu/forget/..x/")) == ["port-name-invalid"]


@pytest.mark.usefixtures("shared")
def test_form_says_where_the_box_did_not_tell_its_settings_in_time(web, answering):
    answering.error = Failed("The box did not answer in time.")
    unread = "The box did not say in time what its settings are."
    assert unread in text_of(web.get(FORM))
    answer = web.post(FORM, {"share": f"smb-{PHOTOS}", "size": "64 MiB", "runs": 3, "setting": TAG})
    assert answer.status_code == 400
    assert unread in text_of(answer)
    assert "valid choice" not in text_of(answer)
    answering.error = None
    assert unread not in text_of(web.get(FORM))
