"""Settings of the box that a benchmark from another computer tries: the choices, the switching, and what came of it."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import Literal

import msgspec
from django.db.models import F
from django.utils import timezone
from django.utils.translation import gettext

from appliance.benchmarks.box_settings import frame_size
from appliance.benchmarks.box_settings.catalogue import SETTINGS, SettingStatus
from appliance.benchmarks.box_settings.catalogue_entry import BoxSetting
from appliance.benchmarks.box_settings.switch import ReadSettings, SwitchedSetting, SwitchSetting
from appliance.benchmarks.client_report import ClientFigures
from appliance.benchmarks.results import value_text
from appliance.benchmarks.statistics import change_text, find_difference, percent_change
from appliance.benchmarks.workloads import Unit
from appliance.errors import LarderError, Reason, Refused, explain_error
from appliance.message import Message
from appliance.request import verb_of
from web import agent
from web.benchmarks.client_models import MOST_SWITCHES, ClientRunRow
from web.said import with_said
from web.translation import lazy_text, reason_text, text_of

log = logging.getLogger(__name__)
SECONDS_HEARD = 60  # a script that asked for something so recently is taken to be running
SECONDS_TO_READ, SECONDS_TO_SWITCH = 30, 100
LEAST_RUNS = 3  # fewer do not tell a difference from chance
MEASURED: tuple[tuple[str, str, Unit], ...] = (
    (lazy_text("Writing"), "write", "B/s"),
    (lazy_text("Reading"), "read", "B/s"),
    (lazy_text("Small files written"), "small", "per second"),
)
Outcome = Literal["better", "worse", "same"]


class TriedLine(msgspec.Struct, frozen=True):
    """A line of the result: what was measured, without and with the setting, and the change as text."""

    name: str
    without: str
    tried: str
    change: str
    outcome: Outcome


class TriedSetting(msgspec.Struct, frozen=True):
    """What came of it. ``helped``: faster somewhere by more than chance, and nowhere slower."""

    name: str
    sentence: str
    lines: tuple[TriedLine, ...]
    helped: bool


def read_settings() -> list[SettingStatus]:
    """The settings as they are; none where the agent does not answer. Raises AgentBusy."""
    try:
        told = agent.last({"verb": verb_of(ReadSettings)}, silence=SECONDS_TO_READ)["facts"]
    except LarderError as error:
        log.warning("the settings that can be tried could not be read: %s", error)
        return []
    return msgspec.convert(told, list[SettingStatus])


def change_of_setting(tag: str, value: str, tried: str) -> str:
    """What is tried: the name of the setting, and from what to what."""
    setting = SETTINGS[tag]
    return gettext("{name}: {tried} instead of {value}").format(
        name=text_of(setting.name), tried=text_of(setting.show(tried)), value=text_of(setting.show(value))
    )


def explain_settings(settings: list[SettingStatus]) -> list[tuple[str, str, str, str]]:
    """Of each its name, what it is, what it does to others, and why it cannot be tried here; the
    last is empty where it can."""
    return [
        (
            SETTINGS[one.tag].name,
            SETTINGS[one.tag].meaning,
            SETTINGS[one.tag].warning,
            reason_text(Reason.from_json(one.refusal)) if one.refusal else "",
        )
        for one in settings
    ]


def list_kept(settings: list[SettingStatus]) -> list[tuple[str, str, str]]:
    """Of each setting that is kept its tag, its name and what it is now; the last is empty
    where the box does not say."""
    return [
        (one.tag, SETTINGS[one.tag].name, SETTINGS[one.tag].show(one.value) if one.value else "")
        for one in settings
        if one.kept and not one.lost
    ]


def list_lost(settings: list[SettingStatus]) -> list[tuple[str, str, str, str]]:
    """Of each setting that is kept for a port which is not there its tag, its name, that port, and the port in use now;
    the last is empty where it is not known."""
    now = next((one.value.partition(" ")[0] for one in settings if one.tag == frame_size.TAG), "")
    return [(one.tag, SETTINGS[one.tag].name, port, now) for one in settings for port in one.lost]


def ask_to_switch(tag: str, *, on: bool) -> SwitchedSetting:
    """Raises Refused, Failed, AgentBusy."""
    request = SwitchSetting(setting=tag, on=on)
    told = agent.last({"verb": verb_of(SwitchSetting), **msgspec.to_builtins(request)}, silence=SECONDS_TO_SWITCH)
    return msgspec.convert(told["facts"], SwitchedSetting)


def switch(row: ClientRunRow, *, on: bool) -> None:
    """Switch the setting of a run, and note what it was and became. Raises Refused, Failed, AgentBusy."""
    # Back it goes also after the last one that is allowed.
    if not row.setting or row.switches >= (MOST_SWITCHES if on else MOST_SWITCHES + 1):
        raise Refused(Reason("setting-not-asked", "This measurement does not switch a setting. Nothing was changed."))
    first = row.switches == 0
    answer = ask_to_switch(row.setting, on=on)
    changed = {"tried": answer.value} if on else {"former": answer.value}
    ClientRunRow.objects.filter(pk=row.pk).update(switched=on, switches=F("switches") + 1, **changed)
    if not first and answer.was_switched != row.switched:
        raise Refused(
            Reason(
                "setting-switched-meanwhile",
                "The setting was switched by something else in the middle of the measurement, or went back "
                "by itself because a part took too long. Measure again, with less data.",
            )
        )


def explain_refusal(error: LarderError, row: ClientRunRow) -> str:
    """Why a setting was not switched, for the computer that measures: it may be the one that cannot follow."""
    lost = next((one for one in getattr(error, "reasons", ()) if one.code == "frames-lost"), None)
    if lost is None or lost.message.arguments["names"] != row.address:
        return explain_error(error)
    return gettext(
        "It cannot be tried here: this computer cannot take frames of {mtu} bytes. Set an MTU of {mtu} here "
        "and on every switch between, then measure again."
    ).format(mtu=lost.message.arguments["mtu"])


def put_back(row: ClientRunRow) -> None:
    """At the end of a run, however it ended. What fails here is left to the timer."""
    if not row.setting or not row.switched:
        return
    try:
        switch(row, on=False)
    except (LarderError, agent.AgentBusy) as error:
        log.warning("the setting %s is put back by its timer: %s", row.setting, error)


def find_tried(row: ClientRunRow) -> BoxSetting | None:
    """The setting that this run has switched and nobody has put back, as far as is known here;
    its timer may have done so."""
    setting = SETTINGS.get(row.setting)
    if not setting or not row.switched or row.state != ClientRunRow.State.RUNNING:
        return None
    # Every request for it starts the time of the timer anew.
    over = row.heard and timezone.now() > row.heard + timedelta(seconds=setting.seconds)
    return None if over else setting


def list_tried() -> list[tuple[ClientRunRow, BoxSetting]]:
    """Each run that has switched a setting, with that."""
    rows = ClientRunRow.objects.filter(state=ClientRunRow.State.RUNNING, switched=True)
    return [(row, setting) for row in rows if (setting := find_tried(row))]


def is_heard(row: ClientRunRow) -> bool:
    return row.heard is not None and timezone.now() < row.heard + timedelta(seconds=SECONDS_HEARD)


def end_trial(row: ClientRunRow, user: str) -> SwitchedSetting:
    """Put the setting back now, and end the run: its script is not let in again. Raises Refused, Failed, AgentBusy."""
    answer = ask_to_switch(row.setting, on=False)
    ClientRunRow.objects.filter(pk=row.pk, state=ClientRunRow.State.RUNNING).update(
        state=ClientRunRow.State.FAILED,
        switched=False,
        former=answer.value,
        token_hash="",
        finished=timezone.now(),
        **with_said(text=Message("The setting that it tried was put back by {user}.", user=user)),
    )
    return answer


def judge_line(figures: ClientFigures, name: str, key: str, unit: Unit) -> TriedLine | None:
    """None where it was not measured both ways."""
    before, now = figures.summary(key), figures.summary(f"changed_{key}")
    if not before or not now:
        return None
    percent = percent_change(now.median, before.median)
    outcome: Outcome = "same"
    if percent is not None and find_difference(now, before) == "clear":
        outcome = "better" if percent > 0 else "worse"
    change = change_text(percent) if outcome != "same" else gettext("no more than chance")
    return TriedLine(
        name, text_of(value_text(before.median, unit)), text_of(value_text(now.median, unit)), change, outcome
    )


def judge(row: ClientRunRow) -> TriedSetting | None:
    """What came of the setting of a run; None where none was tried, or nothing was measured."""
    figures, setting = row.figures, SETTINGS.get(row.setting)
    if not figures or not setting or not setting.form.fullmatch(row.tried) or not setting.form.fullmatch(row.former):
        return None
    lines = tuple(line for one in MEASURED if (line := judge_line(figures, *one)))
    outcomes = {line.outcome for line in lines}
    if not lines:
        return None
    helped = "better" in outcomes and "worse" not in outcomes
    if helped:
        said = gettext("It helps here. The box is as before; keep the setting if you want it.")
    elif outcomes == {"same"}:
        said = gettext("It makes no difference here. The box is as before.")
    elif "better" in outcomes:
        said = gettext("It makes one thing faster and another slower. The box is as before.")
    else:
        said = gettext("It makes it slower here. The box is as before.")
    return TriedSetting(change_of_setting(row.setting, row.former, row.tried), said, lines, helped)
