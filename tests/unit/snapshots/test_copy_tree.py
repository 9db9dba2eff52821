"""A file out of a snapshot is copied by the kernel, which lets ZFS share its blocks; reading
and writing is the fallback."""

from __future__ import annotations

import errno
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from appliance.snapshots.browse import copy_tree
from appliance.snapshots.browse.copy_tree import TreeCopy
from tests.unit.pools.test_create import Working

MIB = 2**20
SIZE = 3 * MIB + 123


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "then"
    path.write_bytes(os.urandom(SIZE))
    return path


@pytest.fixture
def moved(monkeypatch) -> Iterator[Counter[str]]:
    """How many bytes each function of the system has moved. They do what they always do."""
    found: Counter[str] = Counter()
    in_kernel, read, write = os.copy_file_range, os.pread, os.pwrite

    def copy_file_range(source: int, target: int, count: int, source_at: int, target_at: int) -> int:
        assert source_at == target_at
        done = in_kernel(source, target, count, source_at, target_at)
        found["copied"] += done
        return done

    def pread(handle: int, count: int, at: int) -> bytes:
        part = read(handle, count, at)
        found["read"] += len(part)
        return part

    def pwrite(handle: int, part: bytes, at: int) -> int:
        done = write(handle, part, at)
        found["written"] += done
        return done

    with monkeypatch.context() as patch:
        patch.setattr(os, "copy_file_range", copy_file_range)
        patch.setattr(os, "pread", pread)
        patch.setattr(os, "pwrite", pwrite)
        yield found


def copy(source: Path) -> bytes:
    """What the copy holds."""
    target = source.with_name("now")
    with source.open("rb") as old, target.open("wb") as new:
        TreeCopy(Working()).copy_content(old.fileno(), new.fileno(), SIZE)
    return target.read_bytes()


def test_kernel_copies_every_byte_and_nothing_is_read(source, moved):
    assert copy(source) == source.read_bytes()
    assert moved == {"copied": SIZE}


def test_kernel_copies_a_large_file_in_parts(source, moved, monkeypatch):
    monkeypatch.setattr(copy_tree, "CLONED", MIB)
    assert copy(source) == source.read_bytes()
    assert moved == {"copied": SIZE}


def fail(monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    def refuse(*_arguments: object) -> int:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "copy_file_range", refuse)


@pytest.mark.parametrize("code", sorted(copy_tree.CANNOT), ids=errno.errorcode.get)
def test_file_is_read_and_written_where_the_kernel_cannot_copy(source, moved, monkeypatch, code):
    fail(monkeypatch, code)
    assert copy(source) == source.read_bytes()
    assert moved == {"read": SIZE, "written": SIZE}


def test_copies_between_file_systems_and_on_old_kernels_are_read_and_written():
    assert {errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP} <= copy_tree.CANNOT


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EIO], ids=errno.errorcode.get)
def test_no_second_attempt_after_a_full_pool_or_an_unreadable_file(source, moved, monkeypatch, code):
    fail(monkeypatch, code)
    with pytest.raises(OSError, match=os.strerror(code)):
        copy(source)
    assert moved == {}
