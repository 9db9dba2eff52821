"""The recovery phrase as pages know it, and the records of other boxes on the pools of this one."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

import msgspec
from django.utils.translation import gettext

from appliance.backups.copies import is_copy
from appliance.datasets.encryption import key_store
from appliance.errors import Failed, LarderError, Reason, Refused, explain_error
from appliance.facts import user_properties
from appliance.facts.box import Facts, Pool
from appliance.facts.box_record import BoxMark, BoxRecord, RecordedFolder, parse_record
from appliance.facts.copy_mark import parse_copy_mark
from appliance.facts.datasets import Dataset
from appliance.recovery import records, recovery_key
from appliance.recovery.recovery_key import RecoveryState
from appliance.shares.settings import ShareSetting, parse_setting, setting_of
from appliance.snapshots.policy import parse_policy
from appliance.users.share_folder import ShareFolder
from web import agent

SECONDS = 60


class OtherBox(msgspec.Struct, frozen=True):
    """A box that has left its record on a pool."""

    pool: Pool
    mark: BoxMark

    @property
    def key(self) -> str:
        return str(self.pool.guid)

    @property
    def at(self) -> datetime:
        return moment(self.mark.at)

    @property
    def is_own(self) -> bool:
        """Whether it is this very box, whose place another one has taken."""
        return self.mark.id == key_store.box_mark()


class FolderState(msgspec.Struct, frozen=True):
    """A folder of another box: ``here`` under this or another name, or ``copy`` where only a backup of it is."""

    folder: RecordedFolder
    here: Dataset | None
    copy: Dataset | None
    restored: tuple[Dataset, ...] = ()  # folders of its name that are not shared: it may be one of them

    @property
    def can_share(self) -> bool:
        """Whether the record says how it was shared, over protocols of folders."""
        return bool(self.setting.smb or self.setting.nfs or self.setting.afp)

    @property
    def setting(self) -> ShareSetting:
        return parse_setting(self.folder.settings.get(user_properties.SHARE, "")) or ShareSetting()

    @property
    def sign(self) -> str:
        return "healthy" if self.here else "attention" if self.copy else "unknown"

    @property
    def word(self) -> str:
        return gettext("here") if self.here else gettext("only as a copy") if self.copy else gettext("not here")


class Phrase(msgspec.Struct, frozen=True):
    """How the recovery phrase stands."""

    state: RecoveryState

    @property
    def made(self) -> datetime | None:
        return moment(self.state.made) if self.state.made else None

    @property
    def confirmed(self) -> datetime | None:
        return moment(self.state.confirmed) if self.state.confirmed else None

    @property
    def sign(self) -> str:
        """One of the states that have a picture and a colour."""
        return "healthy" if self.confirmed else "attention"

    @property
    def word(self) -> str:
        return (
            gettext("on paper")
            if self.confirmed
            else gettext("not typed back yet")
            if self.made
            else gettext("not made yet")
        )


def moment(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def read_phrase() -> Phrase | None:
    """How the phrase stands; None where nobody can tell now."""
    state = recovery_key.read_state()
    if state is None:  # once after each start of the box
        try:
            agent.last({"verb": "read-recovery"}, silence=SECONDS)
        except (LarderError, agent.AgentBusy):
            return None
        state = recovery_key.read_state()
    return Phrase(state) if state else None


def is_missing() -> bool:
    """Whether it is known that there is no phrase on paper. Asks nobody."""
    state = recovery_key.read_state()
    return state is not None and not state.confirmed


def read_record(other: OtherBox) -> BoxRecord:
    """The record as the agent reads it. Raises Refused where it cannot be read."""
    try:
        answer = agent.last(
            {"verb": "read-box-record", "pool": other.pool.name, "box": other.mark.id}, silence=SECONDS
        )["facts"]
    except Failed as failure:
        raise Refused(
            Reason("record-unreadable", "The record could not be read: {error}", error=explain_error(failure))
        ) from failure
    return parse_record(json.dumps(answer).encode())


def recorded_folders(record: BoxRecord, facts: Facts) -> Iterator[FolderState]:
    """The folders of another box, without the tops of its pools."""
    here = {one.guid: one for one in facts.datasets if not one.copy_of}
    copies = {mark.guid: one for one in facts.datasets if is_copy(one) and (mark := parse_copy_mark(one.copy_of))}
    for folder in record.folders:
        if "/" not in folder.name:
            continue
        last = folder.name.rpartition("/")[2]
        same = (one for one in here.values() if one.mounted and one.name.rpartition("/")[2] == last)
        free = tuple(one for one in same if not (setting := setting_of(one)) or not setting.anything)
        there = here.get(folder.guid)
        yield FolderState(folder, there, copies.get(folder.guid), () if there else free)


def share_again(folder: RecordedFolder, dataset: Dataset) -> ShareFolder:
    """Share a restored folder as the record says, with its snapshot schedule. Raises Refused."""
    found = parse_setting(folder.settings.get(user_properties.SHARE, "")) or ShareSetting()
    return ShareFolder(
        dataset=dataset.name,
        guid=dataset.guid,
        smb=found.smb,
        nfs=found.nfs,
        afp=found.afp,
        policy=parse_policy(folder.settings.get(user_properties.POLICY, "")),
    )


def other_boxes(facts: Facts) -> Iterator[OtherBox]:
    """The records that other boxes have left on the pools of this one, and this box's own
    where another took its place."""
    own = key_store.box_mark()
    for pool in facts.pools:
        for mark in records.marks_of(facts.dataset(pool.name)).boxes:
            if mark.id != own or mark.by:
                yield OtherBox(pool, mark)


def own_records(facts: Facts) -> list[tuple[Pool, OtherBox | None]]:
    """Each pool with the record that this box has left on it; None where there is none.
    Not those where it was replaced."""
    own = key_store.box_mark()
    found = [(pool, records.marks_of(facts.dataset(pool.name)).find(own)) for pool in facts.pools]
    return [(pool, OtherBox(pool, mark) if mark else None) for pool, mark in found if not (mark and mark.by)]


def unexported(datasets: Iterable[Dataset]) -> list[str]:
    """Encryption roots whose key this box does not store: no record has it, so it has to be kept on paper."""
    return [
        one.name
        for one in datasets
        if one.encryption_root == one.name and not one.copy_of and not key_store.is_marked(one)
    ]
