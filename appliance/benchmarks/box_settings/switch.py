"""Switch a setting to what is tried and back, between the runs of a benchmark from another computer.

While it is switched, a systemd timer stands ready to put the former value back: it belongs to systemd, so it acts also
if everything of Larder has ended, and nothing of a trial outlives a restart of the box. To ask for the setting again
starts the time anew: by a second timer, before the first is stopped, so that there is no moment without one.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, suppress

import msgspec
from msgspec.structs import replace

from appliance import command
from appliance.benchmarks.box_settings.catalogue import SETTINGS, SettingStatus, find_setting, read_setting
from appliance.errors import Failed, Reason, Refused
from appliance.message import Message
from appliance.request import Request
from appliance.system import atomic_file, locks, mtu, service_start
from appliance.system.set_mtu import NETWORK_LOCK
from appliance.system.trial_record import SettingTrial, read_record, trial_file

UNITS = ("larder-setting-back-a", "larder-setting-back-b")  # in turns
LOCK = "box settings"


class SwitchedSetting(msgspec.Struct, frozen=True):
    """``value`` that is set now; ``was_switched``: whether it was still switched before this request."""

    value: str
    was_switched: bool


def hold_lock() -> AbstractContextManager[None]:
    """Lock against other processes of the agent, also those that try another MTU."""
    return locks.hold_locks((LOCK, NETWORK_LOCK))


def load_trial() -> SettingTrial | None:
    """The trial that was begun last and not ended by us, whatever has become of it; None where there is none."""
    trial = read_record()
    return trial if trial and trial.setting in SETTINGS else None


def is_switched(trial: SettingTrial) -> bool:
    """Whether the box has what is tried. Raises Refused where it does not say."""
    return find_setting(trial.setting).read() == trial.tried


def read_trial() -> SettingTrial | None:
    """What is switched now, or may be, as the box does not say;
    None where nothing is, or where the timer has put it back."""
    trial = load_trial()
    if trial is None or trial.until <= mtu.now():
        return None
    try:
        return trial if is_switched(trial) else None
    except Refused:
        return trial


def timer_argv(trial: SettingTrial, unit: str) -> tuple[str, ...]:
    setting = find_setting(trial.setting)
    return (
        "systemd-run",
        "--quiet",
        "--collect",
        f"--unit={unit}",
        f"--on-active={setting.seconds}s",
        "--timer-property=AccuracySec=1s",
        *setting.argv(trial.former),
    )


def stop_timers(*units: str) -> None:
    command.run(("systemctl", "stop", *(f"{unit}.timer" for unit in units)), timeout=30, accept=range(256))


def find_armed() -> list[str]:
    """The units whose timers stand. Raises Failed where systemd does not say."""
    argv = ("systemctl", "is-active", *(f"{unit}.timer" for unit in UNITS))
    states = command.run(argv, timeout=30, accept=range(256)).stdout.split()
    if len(states) != len(UNITS):
        raise Failed(Message("It is not known which timer puts the setting back"))
    return [unit for unit, state in zip(UNITS, states, strict=True) if state not in {"inactive", "failed", "unknown"}]


def set_value(tag: str, value: str) -> None:
    """Raises Failed where the box does not take it."""
    setting = find_setting(tag)
    command.run(setting.argv(value), timeout=60)
    setting.settle(value)
    if setting.read() != value:
        raise Failed(Message("This box did not take it: {name}", name=setting.name))


def arm_timer(trial: SettingTrial) -> None:
    """Have the former value put back by itself from now on, and note what is tried.
    One timer stands at every moment: also where this ends early, and where both stood because it did before."""
    armed = find_armed()
    if len(armed) == len(UNITS):
        stop_timers(armed.pop())
    command.run(timer_argv(trial, next(unit for unit in UNITS if unit not in armed)), timeout=60)
    until = mtu.now() + find_setting(trial.setting).seconds
    atomic_file.write_atomically(trial_file(), msgspec.json.encode(replace(trial, until=until)))
    if armed:
        stop_timers(*armed)


def switch_on(tag: str) -> str:
    """The timer first, then the value; what is set then. Raises Refused, Failed.

    Where the former value does not come back after a failure, the timer is left to try that again.
    """
    setting = find_setting(tag)
    former = setting.read()
    trial = SettingTrial(setting=tag, former=former, tried=setting.propose(former), until=0.0)
    arm_timer(trial)
    try:
        set_value(tag, trial.tried)
    except (Failed, Refused):
        with suppress(Failed, Refused):
            set_value(tag, former)
            forget_trial()
        raise
    return trial.tried


def end_trial(trial: SettingTrial) -> SwitchedSetting:
    """Put the former value back unless that was done already.
    Raises Refused, Failed: then the timer stands as before."""
    value = find_setting(trial.setting).read()
    switched = value == trial.tried
    if switched:
        set_value(trial.setting, trial.former)
    forget_trial()
    return SwitchedSetting(trial.former if switched else value, switched)


def forget_trial() -> None:
    stop_timers(*UNITS)
    trial_file().unlink(missing_ok=True)


class SwitchSetting(Request, tag="switch-setting"):
    """Switch a setting to what is tried (``on``) or back. The values are not the caller's to choose.
    Harmless to repeat."""

    setting: str
    on: bool

    def __post_init__(self) -> None:
        find_setting(self.setting)

    def read(self) -> SwitchedSetting:
        """Raises Refused, Failed."""
        service_start.refuse_container()
        with hold_lock():
            trial = load_trial()
            if trial and trial.setting != self.setting:
                if read_trial():
                    raise Refused(
                        Reason("setting-trial-runs", "A setting is being tried. Wait until that measurement has ended.")
                    )
                end_trial(trial)
                trial = None
            if not self.on:
                return (
                    end_trial(trial)
                    if trial
                    else SwitchedSetting(find_setting(self.setting).read(), was_switched=False)
                )
            if trial and is_switched(trial):
                arm_timer(trial)
                return SwitchedSetting(trial.tried, was_switched=True)
            return SwitchedSetting(switch_on(self.setting), was_switched=False)


class ReadSettings(Request, tag="read-settings"):
    """Which settings can be tried here, and which are kept."""

    def read(self) -> list[SettingStatus]:
        return [read_setting(tag) for tag in SETTINGS]
