"""Write the record of this box to a pool, with its secrets sealed: what each run of a backup does
before it copies anything."""

from __future__ import annotations

import time
from collections.abc import Iterable

from appliance import __version__
from appliance.datasets.encryption import key_store
from appliance.errors import Failed, LarderError, Reason, explain_error
from appliance.facts import user_properties
from appliance.facts.box import Facts
from appliance.facts.box_record import (
    VERSION,
    BoxMark,
    BoxRecord,
    RecordedFolder,
    RecordedGroup,
    RecordedUser,
)
from appliance.facts.datasets import Dataset
from appliance.message import Message, join_messages
from appliance.operation import Step, Work
from appliance.recovery import box_secrets, kept_settings, records, recovery_key, seal
from appliance.system import accounts
from appliance.system.host_name import read_host_name
from appliance.zfs import kernel_module

STEP = "record"


def settings_of(dataset: Dataset) -> dict[str, str]:
    """The settings of NOTED that are set on a dataset itself."""
    found = {
        user_properties.SHARE: (dataset.share, dataset.share_source),
        user_properties.POLICY: (dataset.policy, dataset.policy_source),
        user_properties.BACKUP: (dataset.backup, dataset.backup_source),
        user_properties.ACCESS: (dataset.access, dataset.access_source),
    }
    return {key: value for key, (value, source) in found.items() if value and source == "local"}


def read_box(facts: Facts, *, sealed: bool) -> BoxRecord:
    """This box as it is now. Raises Failed, Refused."""
    return BoxRecord(
        version=VERSION,
        box=key_store.box_mark(),
        host=read_host_name(),
        written=int(time.time()),
        larder=__version__,
        zfs=kernel_module.read_version(),
        users=tuple(
            RecordedUser(name=one.name, uid=one.uid, display=one.display, disabled=one.disabled)
            for one in facts.accounts
        ),
        groups=tuple(RecordedGroup(name=one.name, gid=one.gid, members=one.members) for one in facts.groups),
        next_uid=accounts.free_number("account", accounts.UIDS, (one.uid for one in facts.accounts)),
        next_gid=accounts.free_number("group", accounts.GIDS, (one.gid for one in facts.groups)),
        samba_sid=box_secrets.read_sid(),
        pools={str(one.guid): one.name for one in facts.pools},
        folders=tuple(
            RecordedFolder(
                name=one.name,
                guid=one.guid,
                kind=one.kind,
                encrypted=one.encryption != "off",
                settings=settings_of(one),
            )
            for one in facts.datasets
            if not one.copy_of and not one.scratch
        ),
        sealed=sealed,
    )


def write_box(pools: Iterable[str], facts: Facts) -> list[str]:
    """Write the record of this box to each of the pools, and note it on them.
    A pool that fails leaves the others theirs.

    Returns the pools that keep the settings of a former database, until somebody decides about these.
    Raises Failed, Refused.
    """
    former: list[str] = []
    failures: list[str] = []
    keys = recovery_key.load_keys()
    recovery_key.mark(recovery_key.state_of(keys))
    record = read_box(facts, sealed=bool(keys.recipients))
    sealed = b""
    if keys.recipients:
        secrets = box_secrets.read_box_secrets(record.box, (one.name for one in record.users))
        sealed = seal.seal(secrets.text, keys.recipients)
    settings = kept_settings.read_kept()
    for pool in pools:
        try:
            if not records.write_record(pool, record, sealed, settings):
                former.append(pool)
            records.set_mark(
                pool, records.read_marks(pool), BoxMark(id=record.box, host=record.host, at=record.written)
            )
        except LarderError as error:
            failures.append(join_messages([pool, explain_error(error)], ": "))
    if failures:
        raise Failed(join_messages(failures))
    return former


def record_step(pools: Iterable[str], facts: Facts, failures: list[str]) -> Step:
    """The step of a run that writes the record. What goes wrong is added to ``failures``: no
    folder stays uncopied for it."""
    wanted = tuple(dict.fromkeys(pools))

    def write(work: Work) -> None:
        try:
            for pool in write_box(wanted, facts):
                work.note(
                    Message("{pool} keeps the settings that this box had before. See the page Recovery", pool=pool)
                )
        except LarderError as error:
            failures.append(
                Message(
                    "The record of this box, for a restore onto a new one, was not written: {explain_error}",
                    explain_error=explain_error(error),
                )
            )
            work.note(failures[-1])

    return Step(
        STEP, Message("Write the record of this box"), "\n".join(map(records.command_text, wanted)), write, wanted
    )


def is_written(pools: Iterable[str], facts: Facts) -> bool:
    """Whether each of the pools names this box."""
    box = key_store.box_mark()
    return all(records.marks_of(facts.dataset(pool)).find(box) for pool in pools)


def replaced_reasons(pools: Iterable[str], facts: Facts) -> list[Reason]:
    """Why this box makes no backup with a pool on which another box has taken its place: both would
    write to the same copies."""
    box = key_store.box_mark()
    found = ((pool, records.marks_of(facts.dataset(pool)).find(box)) for pool in pools)
    return [
        Reason(
            "box-replaced",
            "{by} has taken the place of this box, so this box makes no backups with the pool {pool}. If "
            "this box goes on after all, take its place back on the page Recovery.",
            by=mark.by,
            pool=pool,
        )
        for pool, mark in found
        if mark and mark.by
    ]
