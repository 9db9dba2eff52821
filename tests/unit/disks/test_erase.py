from __future__ import annotations

import errno
import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from appliance.agent.registry import decode_operation
from appliance.disks import clear_labels, exclusive_disk
from appliance.disks import erase as disk_erase
from appliance.disks.erase import EraseDisk
from appliance.disks.exclusive_disk import ExclusiveDisk
from appliance.errors import Bug, Cancelled, Failed, Refused
from appliance.facts.box import Pool, Scan, Use, Vdev
from appliance.layout.geometry import MIB
from appliance.operation import checked_plan
from tests.reasons import codes, expect_refusal
from tests.unit.made import BUSY, OLD, box, disk, path_of, recorded
from tests.unit.pools.test_create import Working

EXPORTED = Use("exported", "holds the pool old, which is not in use here", "42", "old")


def erase(how: str = "quick", number: int = 1) -> EraseDisk:
    return EraseDisk(disk=path_of(number), how=how)  # type: ignore[arg-type]


def refusals(operation: EraseDisk, facts) -> list[str]:
    return codes(operation.check(facts))


@pytest.mark.parametrize("kind", ["system", "pool", "mounted", "swap", "raid"])
def test_a_disk_in_use_is_never_erased(kind):
    facts = box(disk(1, uses=(Use(kind, "is taken"),)))
    for how in ("quick", "full"):
        (reason,) = erase(how).check(facts)
        assert reason.code == "disk-not-erasable"
        assert reason.message.arguments["use"] == "is taken"


def tank(
    state: str = "OFFLINE", *, pool: str = "DEGRADED", errors: int = 0, beside: int = 0, scan: Scan | None = None
) -> Pool:
    """Made up: a mirror of disks 1 and 2, the first of them in that state; ``beside``: errors that the second made."""
    pair = tuple(
        Vdev(
            path_of(at).rsplit("/", 1)[-1],
            "disk",
            at,
            state if at == 1 else "ONLINE",
            path=f"{path_of(at)}-part1",
            checksum_errors=beside if at == 2 else 0,
        )
        for at in (1, 2)
    )
    return Pool("tank", 77, pool, (Vdev("mirror-0", "mirror", 9, pool, children=pair),), errors=errors, scan=scan)


PART = Use("pool", "is part of the pool tank", "77", "tank")
REBUILT = Scan("resilver", "scanning", datetime(2026, 1, 1, tzinfo=UTC), None, 100, 10, 10, 0)


def test_a_disk_that_is_offline_in_its_pool_can_be_erased_in_full_and_what_follows_is_said():
    facts = replace(box(disk(1, uses=(PART,)), disk(2, uses=(PART,))), pools=(tank(),))
    assert refusals(erase("full"), facts) == []
    plan = checked_plan(erase("full"), facts)
    assert "Until then tank survives no failed disk" in " ".join(plan.warnings)
    assert refusals(erase("quick"), facts) == ["disk-not-erasable"]
    assert refusals(erase("full", 2), facts) == ["disk-not-erasable"]


@pytest.mark.parametrize(
    ("pool", "code"),
    [
        (tank("ONLINE", pool="ONLINE"), "disk-not-erasable"),
        (tank("FAULTED"), "disk-not-erasable"),
        (tank(pool="SUSPENDED"), "pool-not-working"),
        (tank(errors=1), "pool-damaged"),
        (tank(beside=2), "pool-errors"),
        (tank(scan=REBUILT), "pool-rebuilding"),
    ],
)
def test_an_offline_disk_that_may_hold_the_last_good_copy_is_not_erased(pool, code):
    facts = replace(box(disk(1, uses=(PART,)), disk(2, uses=(PART,))), pools=(pool,))
    assert refusals(erase("full"), facts) == [code]


@pytest.mark.parametrize(
    "use", [Use("mounted", "is in use at /mnt"), Use("pool", "is part of the pool other", "78", "other")]
)
def test_an_offline_disk_that_something_else_uses_too_is_not_erased(use):
    facts = replace(box(disk(1, uses=(PART, use)), disk(2, uses=(PART,))), pools=(tank(),))
    assert refusals(erase("full"), facts) == ["disk-not-erasable"]


def test_a_disk_that_is_gone_is_said():
    assert refusals(erase(number=9), box(disk(1))) == ["disk-missing"]


@pytest.mark.parametrize("path", ["/dev/sda", "/etc/passwd", "/dev/disk/by-id/../sda", "", "/dev/disk/by-id/a\nb"])
def test_only_a_stable_path_is_taken(path):
    with expect_refusal("disk-path-malformed"):
        EraseDisk(disk=path)


def test_how_is_one_of_two():
    with pytest.raises(Refused):
        decode_operation(json.dumps({"kind": "erase-disk", "disk": path_of(1), "how": "gutmann"}))


def test_what_goes_is_listed_and_the_serial_number_on_the_sticker_is_typed():
    facts = box(disk(1, uses=(EXPORTED, OLD), content=("sda1", "sda")))
    quick, full = checked_plan(erase(), facts), checked_plan(erase("full"), facts)
    assert [step.name for step in quick.steps] == ["erase", "ends"]
    assert [step.name for step in full.steps] == ["before", "erase", "ends", "zero", "after"]
    for plan in (quick, full):
        assert plan.type_to_confirm == "WD-WCAZA0000001"
        assert [loss.what.split(") ")[1] for loss in plan.losses] == [EXPORTED.text, OLD.text]
    assert quick.digest() != full.digest()
    assert quick.digest() != checked_plan(erase(), box(disk(1, uses=(OLD,)))).digest()


@pytest.mark.parametrize("serial", ["", "a\nb", "ä", " x", "\u202e1"])
def test_a_serial_number_that_nobody_can_type_gives_way_to_the_name_of_today(serial):
    assert checked_plan(erase(), box(disk(1, serial=serial))).type_to_confirm == "sda"


def test_it_holds_only_the_lock_of_its_disk():
    assert erase().locks() == (path_of(1),)


# --- writing --------------------------------------------------------------------------------------------------
SIZE = 9 * MIB + 512


@pytest.fixture
def target(tmp_path) -> Path:
    """A file in a disk's place, full of ones; not a whole number of writes long."""
    path = tmp_path / "disk"
    path.write_bytes(b"\xff" * SIZE)
    return path


def size_of(handle: int) -> int:
    return os.fstat(handle).st_size


def test_every_byte_is_zero_afterwards_and_how_far_it_is_rises_to_the_end(target):
    with ExclusiveDisk(str(target), size_of) as opened:
        far = list(opened.write_zeros(0, opened.size))
    assert far == sorted(far)
    assert far[-1] == SIZE
    assert target.read_bytes() == b"\0" * SIZE


def test_only_the_stretch_that_was_asked_for_is_written(target):
    with ExclusiveDisk(str(target), size_of) as opened:
        list(opened.write_zeros(4096, MIB))
    data = target.read_bytes()
    assert data[:4096] == b"\xff" * 4096
    assert data[4096:MIB] == b"\0" * (MIB - 4096)
    assert data[MIB:] == b"\xff" * (SIZE - MIB)


def test_without_direct_writes_it_syncs_and_leaves_no_pages_behind(target, monkeypatch):
    real, given = os.open, []

    def no_direct(path: str, flags: int, *more: Any) -> int:
        if flags & os.O_DIRECT:
            raise OSError(errno.EINVAL, "no O_DIRECT here")
        return real(path, flags, *more)

    monkeypatch.setattr(os, "open", no_direct)
    monkeypatch.setattr(os, "posix_fadvise", lambda *words: given.append(words[1:]))
    with ExclusiveDisk(str(target), size_of) as opened:
        assert not opened.direct
        list(opened.write_zeros(0, opened.size))
    assert given[-1] == (0, SIZE, os.POSIX_FADV_DONTNEED)
    assert target.read_bytes() == b"\0" * SIZE


def test_it_is_opened_for_this_alone_and_refused_where_something_has_it(target, monkeypatch):
    asked = []

    def busy(path: str, flags: int, *_more: Any) -> int:
        asked.append(flags)
        raise OSError(errno.EBUSY, "Device or resource busy")

    monkeypatch.setattr(os, "open", busy)
    with pytest.raises(Failed, match="Something has begun to use this disk"), ExclusiveDisk(str(target)):
        pass
    assert all(flags & os.O_EXCL for flags in asked)


def test_a_file_is_no_disk(target):
    with pytest.raises(Bug), ExclusiveDisk(str(target)):
        pass
    assert target.read_bytes() == b"\xff" * SIZE


def failing_at(monkeypatch: pytest.MonkeyPatch, *bad: int, code: int = errno.EIO) -> None:
    """Writes that touch one of these bytes fail."""
    real = os.pwrite

    def pwrite(handle: int, data: memoryview, at: int) -> int:
        if any(at <= offset < at + len(data) for offset in bad):
            raise OSError(code, os.strerror(code))
        return real(handle, data, at)

    monkeypatch.setattr(os, "pwrite", pwrite)


def test_a_sector_that_cannot_be_written_is_found_and_the_rest_is_written(target, monkeypatch):
    failing_at(monkeypatch, 5 * MIB + 100)
    with ExclusiveDisk(str(target), size_of) as opened:
        list(opened.write_zeros(0, opened.size))
        assert opened.bad == [5 * MIB]
    data = target.read_bytes()
    assert data[5 * MIB : 5 * MIB + 4096] == b"\xff" * 4096
    assert data.count(b"\xff") == 4096


def test_ends_that_could_not_be_cleared_are_told(target, monkeypatch):
    monkeypatch.setattr(exclusive_disk, "device_size", size_of)
    monkeypatch.setattr(disk_erase, "reread_disks", lambda _disks: None)
    for module in (clear_labels, disk_erase):
        monkeypatch.setattr(module, "ExclusiveDisk", lambda _path: ExclusiveDisk(str(target)))
    for clear in (clear_labels.zero_ends, lambda path: erase().clear_ends(Working())):
        clear(path_of(1))
        with monkeypatch.context() as patch:
            failing_at(patch, 4096)
            with pytest.raises(Failed, match="could not be written even once"):
                clear(path_of(1))


def test_a_disk_with_many_bad_sectors_is_given_up(target, monkeypatch):
    failing_at(monkeypatch, *range(0, MIB, 4096))
    with pytest.raises(Failed, match="the disk is failing"), ExclusiveDisk(str(target), size_of) as opened:
        list(opened.write_zeros(0, opened.size))


def test_a_disk_that_takes_no_more_ends_it_at_once(target, monkeypatch):
    failing_at(monkeypatch, 0, code=errno.EROFS)
    with pytest.raises(Failed, match="accepts no more writes"), ExclusiveDisk(str(target), size_of) as opened:
        list(opened.write_zeros(0, opened.size))


@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC, errno.ENODEV])
def test_a_disk_that_is_taken_out_is_told_as_gone_and_not_as_failing(target, monkeypatch, code):
    failing_at(monkeypatch, 5 * MIB, code=code)
    with pytest.raises(Failed, match="it was taken out, or its cable"), ExclusiveDisk(str(target), size_of) as opened:
        for _far in opened.write_zeros(0, opened.size):
            os.truncate(target, 0)


class Stopping(Working):
    """Asked to stop after the first write; remembers what was told."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[tuple[int, str]] = []
        self.looks = 0

    def progress(self, percent: int, phrase: str) -> None:
        self.told.append((percent, phrase))

    def stop_if_asked(self) -> None:
        self.looks += 1
        if self.looks > 1:
            raise Cancelled


@pytest.fixture
def own_disk(target, monkeypatch):
    """The operation's disk is the file."""
    monkeypatch.setattr(exclusive_disk, "device_size", size_of)
    monkeypatch.setattr(disk_erase, "ExclusiveDisk", lambda _path: ExclusiveDisk(str(target), size_of))
    return target


def test_it_can_be_stopped_while_it_writes(own_disk, commands):
    work = Stopping()
    with pytest.raises(Cancelled):
        erase("full").write_zeros(work)
    assert work.told[0][0] == 4 * MIB * 100 // SIZE
    assert own_disk.read_bytes().endswith(b"\xff" * MIB)


def test_a_whole_wipe_tells_its_end_and_has_the_system_look_again(own_disk, commands):
    work = Working()
    erase("full").write_zeros(work)
    assert work.notes == ["Every sector was written"]
    assert "blockdev" in commands.tools
    assert commands.tools[-1] == "udevadm"


def test_sectors_that_never_took_a_write_fail_the_job(own_disk, commands, monkeypatch):
    failing_at(monkeypatch, 0)
    work = Working()
    with pytest.raises(Failed, match="could not be written even once"):
        erase("full").write_zeros(work)
    assert work.notes == ["The sector at byte 0 could not be written"]


@pytest.mark.parametrize(
    ("done", "seconds", "words"),
    [
        (MIB, 1, "estimating the time left"),
        (10**12, 3600, "1 TB of 2 TB written, about 1 h left"),
        (10**12, 600, "about 10 min left"),
        (2 * 10**12 - 1, 7200, "less than a minute left"),
    ],
)
def test_the_time_left_is_said_once_it_can_be(done, seconds, words):
    assert words in exclusive_disk.progress_text(done, 2 * 10**12, seconds)


# --- the drive's own counts -----------------------------------------------------------------------------------
def test_the_telling_counts_are_read_before_and_after(commands):
    table = [
        {"id": 197, "raw": {"value": 312}},
        {"id": 5, "raw": {"value": 0}},
        {"id": 9, "raw": {"value": 1}},
        {"id": 198},
        "x",
    ]
    commands.answers["smartctl"] = json.dumps({"ata_smart_attributes": {"table": table}})
    work = Working()
    erase("full").note_counts(work, "Before")
    assert work.notes == ["Before: pending sectors: 312; reallocated sectors: 0; unreadable offline sectors: unknown"]


@pytest.mark.parametrize("answer", ["", "[]", '{"ata_smart_attributes": 3}', '{"ata_smart_attributes": {"table": {}}}'])
def test_a_drive_without_counts_says_so(commands, answer):
    commands.answers["smartctl"] = answer
    assert disk_erase.sector_counts_text(path_of(1)) == "the disk reports no counts"


def test_nvme_tells_its_media_errors_and_the_recorded_drive_its_attributes():
    assert list(disk_erase.counts_of({"nvme_smart_health_information_log": {"media_errors": 2}})) == ["media errors: 2"]
    assert all("sectors" in text for text in disk_erase.counts_of(recorded("smartctl-qemu-ata-7.4.json")))


# --- after an interruption ------------------------------------------------------------------------------------
def test_an_interrupted_wipe_is_never_called_done():
    assert not erase("full").probe("zero", box(disk(1)))
    assert erase().probe("ends", box(disk(1)))
    assert not erase().probe("ends", box(disk(1, uses=(OLD,))))
    assert not erase().probe("ends", box(disk(1, uses=(BUSY,))))
    assert "plan it again to erase it from the beginning" in erase("full").recovery_hint("zero", box(disk(1)))
    assert "does not answer any more" in erase("full").recovery_hint("zero", box(disk(2)))
