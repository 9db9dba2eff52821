"""Adopt a manual change as the folders' settings, or overwrite it. Either way a copy is kept first.

Both name the very content that the person looked at by its fingerprint, so an edit of a later
minute is never taken for it.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

import msgspec

from appliance import command
from appliance.errors import Bug, LarderError, Reason, Refused
from appliance.facts.box import Facts
from appliance.facts.datasets import Dataset
from appliance.message import Message
from appliance.operation import Operation, Plan, Step, Work, never
from appliance.shares import approved, discovery, publish
from appliance.shares.drift import detect, parse
from appliance.shares.owned_file import OwnedFile, content_fingerprint
from appliance.shares.set_share import SetShare
from appliance.shares.settings import PROTOCOLS, lays_open, setting_of
from appliance.system import atomic_file
from appliance.zfs import status

MOST_CHANGES = 200


def without_setting(line: str) -> Reason:
    """Why a manual change cannot be adopted; ``line`` is one of ``Edit.against``."""
    return Reason("change-without-setting", "It cannot be adopted: {line}", line=line)


def changed_since() -> Reason:
    return Reason(
        "file-changed-again", "The file was changed again since you looked. Look at the difference as it is now."
    )


class DriftDecision(Operation):
    """The base of both decisions. ``file`` is the key of an owned file, ``seen`` the fingerprint of its hand edit."""

    file: str
    seen: str

    def __post_init__(self) -> None:
        if detect.owned_of(self.file) is None:
            raise Refused(Reason("file-not-larders", "Larder does not write that file."))
        if len(self.seen) != 64 or not set(self.seen) <= set("0123456789abcdef"):
            raise Refused(Reason("manual-change-not-named", "Choose which manual change is meant."))

    @property
    def owned(self) -> OwnedFile:
        found = detect.owned_of(self.file)
        if found is None:
            raise Bug("an operation for no file")
        return found

    @property
    def subject(self) -> str:
        return str(self.owned.path)

    def keep_step(self) -> Step:
        copy = detect.copy_of(self.owned, self.seen)
        return Step(
            "keep",
            Message("Keep the file as you left it"),
            Message("write {copy}, with what {path} says", copy=copy, path=self.owned.path),
            lambda work: self.keep(work),
            (str(copy),),
        )

    def keep(self, work: Work) -> None:
        """A durable copy beside the file, of just what was looked at. Raises Refused where that is gone."""
        path, copy = self.owned.path, detect.copy_of(self.owned, self.seen)
        self.refuse_another()
        content, mode = path.read_bytes(), path.stat().st_mode & 0o777
        if content_fingerprint(content) != self.seen:
            raise Refused(changed_since())
        atomic_file.write_atomically(copy, content, mode=mode)
        work.note(Message("Your version is kept as {copy}", copy=copy))

    def kept(self) -> bool:
        return OwnedFile(detect.copy_of(self.owned, self.seen), lambda _path: None).fingerprint() == self.seen

    def undo(self) -> str:
        return Message(
            "Your version stays on the box as {copy_of}. No service reads it there.",
            copy_of=detect.copy_of(self.owned, self.seen),
        )

    def refuse_another(self) -> None:
        if self.owned.fingerprint() != self.seen:
            raise Refused(changed_since())

    def recovery_hint(self, step: str, facts: Facts) -> str:
        return Message("Open the Manual changes page and decide again.")


class OverwriteDrift(DriftDecision, tag="overwrite-drift"):
    """Write what the settings say in the place of a hand edit."""

    needs_proof = never

    @property
    def title(self) -> str:
        return Message("Write Larder's version of {owned_path}", owned_path=self.owned.path.name)

    def locks(self) -> tuple[str, ...]:
        return ("shares",)

    def check(self, facts: Facts) -> Iterator[Reason]:
        yield from ()

    def plan(self, facts: Facts) -> Plan:
        return Plan(
            summary=Message(
                "{owned_path} says again what the folders' settings say. What was changed by hand no longer applies.",
                owned_path=self.owned.path,
            ),
            steps=(
                self.keep_step(),
                Step(
                    "write",
                    Message("Write Larder's version, and have it served"),
                    Message("write {path}, checked by its own daemon", path=self.owned.path),
                    lambda work: self.write(work),
                    (str(self.owned.path),),
                ),
            ),
            identity={"operation": msgspec.to_builtins(self)},
            warnings=(Message("A share that is only in your version is closed, also for who uses it now."),)
            if self.file in publish.SERVING
            else (),
            undo=self.undo(),
        )

    def write(self, work: Work) -> None:
        self.refuse_another()
        facts = publish.agreed_facts()
        if one := publish.protocol_named(self.file):
            publish.publish_shares(facts, [one.name], over=self.seen, note=work.note)
            return
        body = discovery.render_files(facts.datasets).get(self.file)
        if body is None:
            self.owned.path.unlink()
            atomic_file.sync_folder(self.owned.path.parent)
        else:
            self.owned.write(body, over=self.seen)

    def probe(self, step: str, facts: Facts) -> bool:
        if step == "keep":
            return self.kept()
        return self.kept() and self.owned.fingerprint() != self.seen and not self.owned.drifted()


class AdoptDrift(DriftDecision, tag="adopt-drift"):
    """Make a hand edit the folders' own settings. ``changes`` are what it comes to, as the person has seen them."""

    changes: tuple[SetShare, ...]

    def needs_proof(self, facts: Facts, plan: Plan) -> bool:
        return any(lays_open(one.part) for one in self.changes)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.file not in publish.SERVING:
            raise Refused(
                Reason(
                    "announcement-not-adoptable",
                    "What is announced follows from what is shared, so nothing in this file can become a setting.",
                )
            )
        if len(self.changes) > MOST_CHANGES or any(one.protocol != self.file for one in self.changes):
            raise Refused(Reason("settings-of-other-file", "These are not the settings of that file."))
        if len({one.dataset for one in self.changes}) != len(self.changes):
            raise Refused(Reason("folder-set-twice", "Set each folder only once."))

    @property
    def title(self) -> str:
        return Message("Adopt what was changed in {owned_path}", owned_path=self.owned.path.name)

    def locks(self) -> tuple[str, ...]:
        return (*sorted({one.dataset.split("/", 1)[0] for one in self.changes}), "shares")

    def check(self, facts: Facts) -> Iterator[Reason]:
        gone = any(facts.dataset(one.dataset) is None for one in self.changes)
        for one in self.changes:
            # One edit may swap two names: each is held against what the others will be.
            others = () if gone else tuple(other for other in self.changes if other is not one)
            yield from one.check(parse.with_changes(facts, others))

    def plan(self, facts: Facts) -> Plan:
        known = {one.dataset: facts.dataset(one.dataset) for one in self.changes}
        return Plan(
            summary=Message(
                "What you changed by hand becomes the folders' own settings, so that Larder writes it from "
                "now on. Comments and spacing are not kept in the file."
            )
            if self.changes
            else Message(
                "Your changes are only comments and spacing: Larder writes the file again in its own format. "
                "The shares stay as they are."
            ),
            steps=(
                self.keep_step(),
                Step(
                    "adopt",
                    Message("Keep the settings with the folders, write the file from them, and have it served"),
                    "\n".join(
                        [
                            *(self.set_text(one, facts) for one in self.changes),
                            f"write {self.owned.path}, checked by its own daemon",
                        ]
                    ),
                    lambda work: self.adopt(work, known),
                    (*known, str(self.owned.path)),
                ),
            ),
            identity={
                "operation": msgspec.to_builtins(self),
                "datasets": sorted(found.guid for found in known.values() if found),
            },
            warnings=tuple(dict.fromkeys(said for one in self.changes for said in one.warnings(known[one.dataset]))),
            undo=self.undo(),
            details={one.dataset: one.title for one in self.changes},
        )

    @staticmethod
    def set_text(one: SetShare, facts: Facts) -> str:
        dataset = facts.dataset(one.dataset)
        return shlex.join(one.set_argv(dataset, one.setting(dataset)))

    def adopt(self, work: Work, before: dict[str, Dataset | None]) -> None:
        """Set all, publish once; where that fails all of it is put back, and the file is the hand edit as before."""
        self.refuse_another()
        text = self.owned.path.read_bytes().decode(errors="replace")
        found, against = parse.parse_changes(self.file, text, detect.facts_now())
        if against:
            raise Refused(*map(without_setting, against))
        if {one.dataset: one for one in found} != {one.dataset: one for one in self.changes}:
            raise Refused(
                Reason(
                    "share-settings-changed",
                    "The folders' settings have changed since you looked. Look at the difference as it is now.",
                )
            )
        was_agreed, now = approved.read_approved(), {one.name: one for one in status.read_datasets()}
        done: list[SetShare] = []
        try:
            for one in self.changes:
                dataset = now.get(one.dataset)
                if dataset is None:
                    raise Refused(
                        Reason("folder-missing", "The folder {folder} is no longer there.", folder=one.dataset)
                    )
                setting = one.agreed_setting(now.values())
                done.append(one)
                command.run(one.set_argv(dataset, setting), timeout=60)
                approved.set_approved(dataset.guid, share=setting.anything)
            served = [one for one in PROTOCOLS if one == self.file or (self.file == "afp" and one == "smb")]
            publish.publish_shares(publish.agreed_facts(), served, over=self.seen, note=work.note)
        except LarderError:
            for one in done:
                one.put_back(before.get(one.dataset))
                if dataset := now.get(one.dataset):
                    approved.set_approved(dataset.guid, share=dataset.guid in was_agreed)
            raise
        for one in self.changes:
            work.note(Message("{one_title}: done", one_title=one.title))

    def probe(self, step: str, facts: Facts) -> bool:
        if step == "keep":
            return self.kept()
        for one in self.changes:
            dataset = facts.dataset(one.dataset)
            setting = setting_of(dataset) if dataset else None
            if (setting.part(one.protocol) if setting else None) != one.part:
                return False
        return self.owned.fingerprint() != self.seen and not self.owned.drifted()
