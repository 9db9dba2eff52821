"""How well a backup is proved, in levels with a date each: arrived, scrubbed, its key opens,
compared, restored as a test."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec
from django.utils.translation import gettext, ngettext

from appliance.backups import drill_scratch, tasks
from appliance.backups.discard_received import half_received, received_size
from appliance.backups.drill import DrillBackup
from appliance.backups.remote.drill_remote import DrillRemote
from appliance.backups.restore_folder import is_raw
from appliance.backups.tasks import BackupTask
from appliance.backups.verify_backup import comparable
from appliance.datasets.encryption import key_store
from appliance.facts.box import Facts, Pool, Scan
from appliance.facts.datasets import Dataset
from appliance.formatting import and_more, duration_text, size_text
from appliance.message import Message
from appliance.operation import Operation
from web.translation import text_of

if TYPE_CHECKING:
    from web.backups.status import BackupStatus

DRILL_KINDS = ("drill-backup", "drill-remote")  # of jobs
DRILL_EVERY = timedelta(days=30)
NAMED = 5  # folders in a sentence
KEYS_EVERY = timedelta(days=7)
RECEIVED_TOO_LONG = timedelta(days=7)  # a run that goes on would have finished, or said why it cannot


class Proof(msgspec.Struct, omit_defaults=True):
    """What is remembered of the checks of a backup, besides the comparisons, also while its disk is not connected.

    ``began``, ``scrubbed``, ``damaged``: the last scrub of the copies' pool, and the blocks that it could not repair.
    ``keys``: when they were tried last. ``received``: since when each copy, by its guid, has something half received.
    ``broke``, ``why``: when a test of a restore failed without a result since the last that had one, and what its job
    said. ``missing``: since when each folder, by its guid, has no copy while others of its backup have one. ``tried``:
    the key (``Sealed.key``) of each copy, by its guid, when ``keys`` were tried; nothing where an earlier version did.
    ``renewed``: by the guid of a dataset with a key of its own, of which moment the first copies are that have its
    present key. ``more_…``: how many are not named in the list of that name.
    """

    began: datetime | None = None
    scrubbed: datetime | None = None
    damaged: int = 0
    keys: datetime | None = None
    opened: int = 0
    of: int = 0
    wrong: list[str] = []
    untried: list[str] = []
    more_wrong: int = 0
    more_untried: int = 0
    tried: dict[str, str] = {}
    renewed: dict[str, datetime] = {}
    drilled: datetime | None = None
    seconds: int = 0
    moved: int = 0
    files: int = 0
    different: int = 0
    differences: list[str] = []
    skipped: list[str] = []
    gone: list[str] = []
    more_skipped: int = 0
    more_gone: int = 0
    received: dict[str, datetime] = {}
    broke: datetime | None = None
    why: dict[str, Any] | str = ""  # of a message: ``Message.as_json``
    missing: dict[str, datetime] = {}

    @property
    def has_failed_drill(self) -> bool:
        """Whether the last test of a restore failed, and the one before it found nothing worse."""
        return self.broke is not None and not self.different and (self.drilled is None or self.drilled < self.broke)


def parse_proof(found: object) -> Proof:
    """What a record says; nothing where it cannot be read."""
    try:
        return msgspec.convert(found, Proof)
    except msgspec.ValidationError:
        return Proof()


def reason_of(found: Proof) -> str:
    """Why the last test of a restore failed, as a message where it was one."""
    try:
        return Message.from_json(found.why) if isinstance(found.why, dict) else found.why
    except (KeyError, TypeError, IndexError, ValueError, AttributeError):
        return ""


class Received(msgspec.Struct, frozen=True):
    """A copy with something half received: ``size`` in bytes, ``since`` when that was first seen."""

    name: str
    key: str
    size: int
    since: datetime | None = None


class Sealed(msgspec.Struct, frozen=True):
    """An encrypted original that has a copy. ``copy`` and ``root``: guids, of its copy and of the
    dataset whose key it has."""

    name: str
    copy: str
    root: str
    root_name: str
    key_format: str

    @property
    def key(self) -> str:
        return f"{self.root} {self.key_format}"


class Checkable(msgspec.Struct, frozen=True):
    """What the checks of one backup are about, as the inventory tells: encrypted originals that have a copy, whether
    this box should have their key, what is half received, and whether anything can be compared with its original."""

    sealed: tuple[Sealed, ...] = ()
    stores_key: bool = False
    received: tuple[Received, ...] = ()
    comparable: bool = True


def checkable(root: str, parts: list[tuple[Dataset, Dataset]], facts: Facts) -> Checkable:
    """``parts``: each original with its copy."""
    guids = {one.name: str(one.guid) for one in facts.datasets}
    sealed = tuple(
        Sealed(one.name, str(copy.guid), guids.get(one.encryption_root, ""), one.encryption_root, copy.key_format)
        for one, copy in parts
        if one.encryption != "off" and is_raw(copy)
    )
    roots = {one.root_name for one in sealed}
    marked = any(key_store.is_marked(one) for one in facts.datasets if one.name in roots)
    found = [Received(one.name, str(one.guid), received_size(one, facts)) for one in half_received(root, facts)]
    return Checkable(sealed, marked, tuple(found), bool(comparable(parts, facts)))


def newer_keys(found: Proof, sealed: Iterable[Sealed]) -> list[str]:
    """The originals whose copy has come, or got another key, since keys were tried last, as far as that is known."""
    if not found.keys or not found.tried:
        return []
    return [
        one.name
        for one in sealed
        if found.tried.get(one.copy) != one.key or found.renewed.get(one.root, found.keys) > found.keys
    ]


def last_scrub(pool: Pool | None) -> Scan | None:
    """The scrub that ended last, where the pool still tells; a rebuild takes its place."""
    scan = pool.scan if pool else None
    return scan if scan and scan.kind == "scrub" and scan.state == "finished" and scan.ended else None


# --- the levels -------------------------------------------------------------------------------------------------------
class Level(msgspec.Struct, frozen=True):
    """One level: its name, one of the states that have a picture, when it was last reached, and what that says."""

    name: str
    state: str
    word: str
    at: datetime | None
    text: str
    link: str = ""  # the route of what to do about it
    button: str = ""


def levels(one: BackupStatus) -> list[Level]:
    """Every level of a backup that there can be, the weakest first.
    Of copies on another computer this box can know no more than what arrived and what came back."""
    if one.task.remote:
        return [arrived(one), restored(one)]
    found = [arrived(one), scrubbed(one)]
    if one.checks.sealed or one.proof.keys:
        found.append(key_opens(one))
    return [*found, compared(one), restored(one)]


def arrived(one: BackupStatus) -> Level:
    text = gettext("The copy has the same snapshot as the folder.") if one.good else gettext("Nothing has arrived yet.")
    if one.has_unknown_age:
        return Level(
            gettext("Arrived"), "attention", gettext("age unknown"), None, gettext("The copy is dated in the future.")
        )
    if one.is_late and not one.is_old:
        text = gettext("Some folders have no copy yet.")
        return Level(gettext("Arrived"), "attention", gettext("incomplete"), one.good, text)
    state = "attention" if one.is_late else "healthy" if one.good else "unknown"
    return Level(
        gettext("Arrived"),
        state,
        gettext("too old") if one.is_late else gettext("yes") if one.good else gettext("not yet"),
        one.good,
        text,
    )


def scrubbed(one: BackupStatus) -> Level:
    proof = one.proof
    if not proof.scrubbed:
        return Level(
            gettext("Scrubbed"),
            "unknown",
            gettext("not yet"),
            None,
            gettext("A scrub reads every block of the pool with the copies."),
        )
    if proof.damaged:
        count = ngettext("{damaged} block", "{damaged} blocks", proof.damaged).format(damaged=proof.damaged)
        return Level(
            gettext("Scrubbed"),
            "failed",
            gettext("damaged"),
            proof.scrubbed,
            gettext("{count} of the pool could not be repaired.").format(count=count),
        )
    newest = gettext("Its disks gave back everything, the newest copy too.")
    older = gettext("Its disks gave back everything that was there. What arrived later has not been read since.")
    covers = one.good is not None and proof.began is not None and proof.began >= one.good
    return Level(gettext("Scrubbed"), "healthy", gettext("no damage"), proof.scrubbed, newest if covers else older)


def key_opens(one: BackupStatus) -> Level:
    proof, name = one.proof, gettext("Key opens it")
    button = ("try_backup_key", gettext("Try the key")) if one.pool and one.checks.sealed else ("", "")
    if proof.wrong:
        text = gettext("The stored key does not open the copy of {wrong}.").format(
            wrong=text_of(and_more(proof.wrong, proof.more_wrong))
        )
        return Level(name, "failed", gettext("no"), proof.keys, text, *button)
    if not proof.keys or not proof.opened:
        text = gettext("The copies are encrypted. Nobody has tried yet whether the key that you have opens them.")
        return Level(name, "attention", gettext("not tried"), None, text, *button)
    newer, of = newer_keys(proof, one.checks.sealed), max(proof.of, len(one.checks.sealed))
    count = ngettext("{opened} of {of} encrypted copy opens.", "{opened} of {of} encrypted copies open.", of).format(
        opened=min(proof.opened, of - len(newer)), of=of
    )
    if one.has_newer_key and not newer:  # an earlier version did not remember what it had tried
        text = gettext("{count} What was encrypted later has not been tried.").format(count=count)
        return Level(name, "attention", gettext("in part"), proof.keys, text, *button)
    if untried := [*dict.fromkeys([*newer, *proof.untried])]:
        named = and_more(untried[:NAMED], len(untried[NAMED:]) + proof.more_untried)
        text = gettext("{count} Not tried: {untried}.").format(count=count, untried=text_of(named))
        return Level(name, "attention", gettext("in part"), proof.keys, text, *button)
    return Level(name, "healthy", gettext("yes"), proof.keys, count, *button)


def compared(one: BackupStatus) -> Level:
    name, record = gettext("Compared with the originals"), one.record
    if record is None or record.compared is None:
        return Level(
            name,
            "unknown",
            gettext("not yet"),
            None,
            gettext("Every name is compared each week, and a part of the files read.")
            if one.checks.comparable
            else gettext(
                "Nothing here can be compared: volumes have no files, and this box does not store the key of "
                "encrypted folders. Test a restore instead."
            ),
        )
    if record.different:
        return Level(name, "failed", gettext("different"), record.compared, f"{one.compared}.")
    if record.skipped:
        left = gettext("Not compared: {skipped}.").format(skipped=record.left_out)
        return Level(name, "attention", gettext("in part"), record.compared, f"{one.compared}. {left}")
    return Level(name, "healthy", gettext("equal"), record.compared, f"{one.compared}.")


def restored(one: BackupStatus) -> Level:
    name, proof = gettext("Restored as a test"), one.proof
    is_possible = one.can_run and one.good and not one.is_running
    button = ("drill_backup", gettext("Test a restore")) if is_possible else ("", "")
    if proof.has_failed_drill:
        text = gettext("The last test failed: {reason}").format(reason=text_of(reason_of(proof)))
        return Level(name, "attention", gettext("test failed"), proof.broke, text, *button)
    if not proof.drilled:
        text = gettext("Nobody has tried yet whether the whole folder comes back.")
        return Level(name, "unknown", gettext("not yet"), None, text, *button)
    said = gettext("{moved} came back in {seconds}, {files} files compared.").format(
        moved=text_of(size_text(proof.moved)), seconds=text_of(duration_text(proof.seconds)), files=proof.files
    )
    if proof.different:
        return Level(name, "failed", gettext("different"), proof.drilled, said, *button)
    for what, names, more in (
        (gettext("Not compared"), proof.skipped, proof.more_skipped),
        (gettext("Compared with the copy alone"), proof.gone, proof.more_gone),
    ):
        if names:
            said += f" {what}: {text_of(and_more(names, more))}."
    return Level(
        name,
        "attention" if proof.skipped else "healthy",
        gettext("in part") if proof.skipped else gettext("equal"),
        proof.drilled,
        said,
        *button,
    )


class Said(msgspec.Struct, frozen=True):
    """A part of the line that sums a backup up: words, a moment after them, and what follows in brackets."""

    words: str
    at: datetime
    note: str = ""


def summary(one: BackupStatus) -> Iterator[Said]:
    """The checks that were made, in a few words each."""
    record, proof = one.record, one.proof
    if record and record.compared:
        yield Said(
            gettext("differs from the original, seen") if one.differs else gettext("compared"),
            record.compared,
            one.compared,
        )
    if proof.scrubbed:
        yield Said(gettext("scrubbed"), proof.scrubbed, gettext("with damage") if proof.damaged else "")
    if proof.keys and proof.wrong:
        yield Said(gettext("key does not open it, tried"), proof.keys)
    elif proof.keys and proof.opened:
        yield Said(gettext("key opens it, tried"), proof.keys)
    if proof.broke and proof.has_failed_drill:
        yield Said(gettext("restore test failed"), proof.broke)
    elif proof.drilled:
        words = gettext("restored with differences") if proof.different else gettext("restored as a test")
        yield Said(words, proof.drilled, gettext("in {seconds}").format(seconds=text_of(duration_text(proof.seconds))))


# --- where a test restores to -----------------------------------------------------------------------------------------
def drill_kind(task: BackupTask) -> str:
    """The kind of the jobs that test a restore of a task's copies."""
    return "drill-remote" if task.remote else "drill-backup"


def make_drill(one: BackupStatus, pool: Pool | None, facts: Facts) -> Operation:
    """The test of a restore. ``pool``: the one with the copies, which those on another computer have not."""
    name, key, place = one.dataset.name, one.task.key, drill_place(one.dataset, one.task, facts).pool
    if pool is None:
        return DrillRemote(dataset=name, key=key, remote=one.task.remote, pool=place)
    return DrillBackup(dataset=name, key=key, target=one.task.root(pool), pool=place)


def locked_folders(dataset: Dataset, task: BackupTask, facts: Facts) -> list[str]:
    """The folders that keep a test from being made while they are locked: of copies on another computer, as those are
    compared with nothing but the originals."""
    return [one.name for one in tasks.members(dataset, task, facts) if one.locked] if task.remote else []


class DrillPlace(msgspec.Struct, frozen=True):
    """Where a restore can be tested: a pool, what it needs and what there is, in bytes."""

    pool: str
    needed: int
    room: int

    @property
    def fits(self) -> bool:
        return self.needed <= self.room


def drill_place(dataset: Dataset, task: BackupTask, facts: Facts) -> DrillPlace:
    """The folder's own pool, where a real restore would go; else that of the copies, else another that has room.
    Where none has, the first of them, so that the refusal says what is missing."""
    there = task.find_pool(facts)
    root = task.root(there) if there else ""
    copied = tasks.members(dataset, task, facts) if task.remote else facts.below(root) if root else ()
    needed = sum(one.referenced for one in copied) + drill_scratch.SPARE if copied else 0
    others = [pool.name for pool in facts.pools]
    order = dict.fromkeys([dataset.pool, *([there.name] if there else []), *others])
    usable = {pool.name for pool in facts.pools if pool.state != "SUSPENDED"}
    tops = {one.name: one for one in facts.datasets if "/" not in one.name and not one.locked and not one.readonly}
    scratch = {one.pool: one for one in facts.datasets if one.name == drill_scratch.scratch_of(one.pool, task.key)}
    places = [
        DrillPlace(name, needed, drill_scratch.room(tops.get(name), scratch.get(name)))
        for name in order
        if name in usable and name in tops
    ]
    return next((one for one in places if one.fits), places[0] if places else DrillPlace(dataset.pool, needed, 0))
