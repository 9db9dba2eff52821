"""Switch a setting to what is tried and back, between the runs of a benchmark from another computer.

While it is switched, a systemd timer stands ready to put the former value back: it belongs to systemd, so it acts also if
everything of Larder has ended, and nothing of a trial outlives a restart of the box.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

import msgspec

from appliance import command
from appliance.benchmarks.box_settings.catalogue import SETTINGS, SettingStatus, find_setting, read_setting
from appliance.errors import Failed, Reason, Refused
from appliance.message import Message
from appliance.request import Request
from appliance.system import atomic_file, locks, mtu, paths, service_start

SECONDS = 30 * 60  # until the former value comes back by itself: longer than a single run takes
UNIT = "larder-setting-back"
LOCK = "box settings"


class SettingTrial(msgspec.Struct, frozen=True, kw_only=True):
    """A setting that is switched. ``until``: seconds of the clock that counts from the start of the box."""

    setting: str
    former: str
    tried: str
    until: float


class SwitchedSetting(msgspec.Struct, frozen=True):
    """``value`` that is set now; ``was_switched``: whether it was still switched before this request."""

    value: str
    was_switched: bool


def trial_file() -> Path:
    """In a folder of root's in memory, so that it goes with a restart, as the setting does."""
    return paths.RUN / "setting-trial"


def hold_lock() -> AbstractContextManager[None]:
    """Lock against other processes of the agent."""
    return locks.hold_locks((LOCK,), lambda _name: None)


def read_trial() -> SettingTrial | None:
    """What is switched now; None where nothing is, or where the timer has put it back."""
    try:
        trial = msgspec.json.decode(trial_file().read_bytes(), type=SettingTrial)
        if trial.until > mtu.now() and find_setting(trial.setting).read() == trial.tried:
            return trial
    except (OSError, msgspec.MsgspecError, Refused):
        pass
    return None


def timer_argv(trial: SettingTrial) -> tuple[str, ...]:
    back = find_setting(trial.setting).argv(trial.former)
    return ("systemd-run", "--quiet", "--collect", f"--unit={UNIT}", f"--on-active={SECONDS}s", *back)


def stop_timer() -> None:
    command.run(("systemctl", "stop", f"{UNIT}.timer"), timeout=30, accept=range(256))


def set_value(tag: str, value: str) -> None:
    """Raises Failed where the box does not take it."""
    setting = find_setting(tag)
    command.run(setting.argv(value), timeout=60)
    setting.settle(value)
    if setting.read() != value:
        raise Failed(Message("This box did not take it: {name}", name=setting.name))


def switch_on(tag: str) -> str:
    """The timer first, then the value; what is set then. Raises Refused, Failed."""
    setting = find_setting(tag)
    former = setting.read()
    trial = SettingTrial(setting=tag, former=former, tried=setting.propose(former), until=mtu.now() + SECONDS)
    stop_timer()
    command.run(timer_argv(trial), timeout=60)
    atomic_file.write_atomically(trial_file(), msgspec.json.encode(trial))
    try:
        set_value(tag, trial.tried)
    except (Failed, Refused):
        command.run(setting.argv(former), timeout=30, accept=range(256))
        forget_trial()
        raise
    return trial.tried


def forget_trial() -> None:
    stop_timer()
    trial_file().unlink(missing_ok=True)


class SwitchSetting(Request, tag="switch-setting"):
    """Switch a setting to what is tried (``on``) or back. The values are not the caller's to choose. Harmless to repeat."""

    setting: str
    on: bool

    def __post_init__(self) -> None:
        find_setting(self.setting)

    def read(self) -> SwitchedSetting:
        """Raises Refused, Failed."""
        service_start.refuse_container()
        with hold_lock():
            trial = read_trial()
            if trial and trial.setting != self.setting:
                raise Refused(Reason("setting-trial-runs", "A setting is being tried. Wait until that measurement has ended."))  # fmt: skip
            if trial and not self.on:
                set_value(self.setting, trial.former)
                forget_trial()
                return SwitchedSetting(trial.former, was_switched=True)
            if not self.on:
                forget_trial()  # the timer has put it back, or somebody has: nothing is left that would do so again
                return SwitchedSetting(find_setting(self.setting).read(), was_switched=False)
            return SwitchedSetting(trial.tried if trial else switch_on(self.setting), was_switched=bool(trial))


class ReadSettings(Request, tag="read-settings"):
    """Which settings can be tried here, and which are kept."""

    def read(self) -> list[SettingStatus]:
        return [read_setting(tag) for tag in SETTINGS]
