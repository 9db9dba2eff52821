"""Keep a setting that has helped, also after a restart, or put it back to what it was before."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import suppress

import msgspec

from appliance.benchmarks.box_settings import switch
from appliance.benchmarks.box_settings.catalogue import find_setting
from appliance.benchmarks.box_settings.catalogue_entry import NOWHERE, BoxSetting
from appliance.errors import Failed, Reason, Refused
from appliance.facts.box import Facts
from appliance.message import Message
from appliance.operation import Operation, Plan, Step, Work, never
from appliance.system import service_start
from appliance.system.atomic_file import sync_folder, write_atomically


class SettingOperation(Operation):
    """``setting``: its tag in the catalogue; ``value`` that it gets, ``former`` that it has, both in the exact form."""

    needs_proof = never  # no data is touched, and each value is one of the catalogue's

    setting: str
    value: str
    former: str

    def __post_init__(self) -> None:
        setting = find_setting(self.setting)
        if setting.file == NOWHERE:
            raise Refused(Reason("setting-kept-elsewhere", "This setting is not kept or put back from here."))
        if not setting.form.fullmatch(self.value) or not setting.form.fullmatch(self.former):
            raise Refused(Reason("tried-value-invalid", "That is no value of this setting."))

    @property
    def known(self) -> BoxSetting:
        return find_setting(self.setting)

    @property
    def subject(self) -> str:
        return self.setting

    def locks(self) -> tuple[str, ...]:
        return (switch.LOCK,)

    def check(self, facts: Facts) -> Iterator[Reason]:
        yield from ()  # what the box has now is asked for where it runs: no reading has it

    def refuse_other(self) -> None:
        """Raises Refused where the box no longer has what the page showed, or a measurement is under way."""
        service_start.refuse_container()
        if switch.read_trial():
            raise Refused(
                Reason("setting-trial-runs", "A setting is being tried. Wait until that measurement has ended.")
            )
        if self.known.read() not in {self.former, self.value}:
            raise Refused(
                Reason("setting-changed-since", "The setting has changed since it was measured. Measure it again.")
            )

    def recovery_hint(self, step: str, facts: Facts) -> str:
        return Message("The page for benchmarks from another computer shows what is kept. Try again if this is not.")


class KeepSetting(SettingOperation, tag="keep-setting"):
    """Set what was tried, and write the file that sets it at each start."""

    needs_proof = never

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.known.propose(self.former) != self.value:
            raise Refused(Reason("tried-value-invalid", "That is no value of this setting."))

    @property
    def title(self) -> str:
        return Message("Keep a setting that helped: {name}", name=self.known.name)

    def plan(self, facts: Facts) -> Plan:
        setting, argv = self.known, self.known.argv(self.value)
        shown, before = setting.show(self.value), setting.show(self.former)
        return Plan(
            summary=Message(
                "The box gets {shown}, also after a restart. Before: {before}.", shown=shown, before=before
            ),
            steps=(
                Step(
                    "keep",
                    Message("Write it for the next start, and set it now"),
                    f"write {setting.file}\n{shlex.join(argv)}",
                    self.keep,
                    (str(setting.file),),
                ),
            ),
            identity={"operation": msgspec.to_builtins(self)},
            warnings=(setting.warning,) if setting.warning else (),
            undo=Message("Put it back on the page for benchmarks from another computer."),
        )

    def keep(self, work: Work) -> None:
        self.refuse_other()
        if over := switch.load_trial():
            switch.end_trial(over)  # its timer would put back what is kept
        setting = self.known
        kept = setting.file.read_bytes() if setting.file.exists() else b""
        # Kept for a second time, it goes back to what it was before the first.
        body = setting.body(self.value, setting.read_former() or self.former)
        setting.file.parent.mkdir(mode=0o755, exist_ok=True)
        write_atomically(setting.file, body.encode(), mode=0o644)
        try:
            switch.set_value(self.setting, self.value)
        except (Failed, Refused):
            if kept:
                write_atomically(setting.file, kept, mode=0o644)
            else:
                setting.file.unlink(missing_ok=True)
            with suppress(Failed, Refused):
                switch.set_value(self.setting, self.former)
            raise

    def probe(self, step: str, facts: Facts) -> bool:
        try:
            return bool(self.known.read_former()) and self.known.read() == self.value
        except Refused:
            return False


class PutSettingBack(SettingOperation, tag="put-setting-back"):
    """Set what was there before it was kept, and delete the file."""

    needs_proof = never

    @property
    def title(self) -> str:
        return Message("Put a setting back: {name}", name=self.known.name)

    def plan(self, facts: Facts) -> Plan:
        setting, argv = self.known, self.known.argv(self.value)
        return Plan(
            summary=Message("The box gets {shown} again, as it was before.", shown=setting.show(self.value)),
            steps=(
                Step(
                    "back",
                    Message("Set it, and delete the file that changes it at each start"),
                    f"{shlex.join(argv)}\nrm {setting.file}",
                    self.back,
                    (str(setting.file),),
                ),
            ),
            identity={"operation": msgspec.to_builtins(self)},
            warnings=(setting.warning,) if setting.warning else (),
            undo=Message("Measure it again, then press “Keep this setting”."),
        )

    def back(self, work: Work) -> None:
        self.refuse_other()
        setting = self.known
        # Nothing is kept where an interrupted attempt has got as far as the file; any other
        # value is not the former one.
        former = setting.read_former() or setting.read()
        if former != self.value:
            raise Refused(
                Reason("setting-changed-since", "The setting has changed since it was measured. Measure it again.")
            )
        switch.set_value(self.setting, self.value)
        setting.file.unlink(missing_ok=True)
        sync_folder(setting.file.parent)

    def probe(self, step: str, facts: Facts) -> bool:
        try:
            return not self.known.file.exists() and self.known.read() == self.value
        except Refused:
            return False
