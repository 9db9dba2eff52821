"""Samba's counter of users, in a database that Samba 4.22.11 has written: two users, numbers
1000 and 1001, brought in."""

from __future__ import annotations

import ctypes
import gzip
from collections.abc import Iterator
from pathlib import Path

import pytest

from appliance.errors import Failed
from appliance.recovery import rid_counter

RECORDED = Path(__file__).parents[1] / "recorded/passdb-samba-4.22.11.tdb.gz"


def has_library() -> bool:
    try:
        ctypes.CDLL(rid_counter.LIBRARY)
    except OSError:
        return False
    return True


needs_tdb = pytest.mark.skipif(not has_library(), reason="libtdb1 is not installed")


@pytest.fixture(autouse=True)
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    place = tmp_path / "passdb.tdb"
    place.write_bytes(gzip.decompress(RECORDED.read_bytes()))
    monkeypatch.setattr(rid_counter, "PASSWORDS", place)
    yield place


def counted() -> int:
    library = rid_counter.load_library()
    with rid_counter.open_database(library) as opened:
        return rid_counter.read_next(library, opened)


@needs_tdb
def test_counter_that_stood_still_goes_past_the_users_and_never_back(database):
    assert counted() == 1000  # Samba would give the number of the first user again
    rid_counter.raise_next(1002)
    assert counted() == 1002
    before = database.read_bytes()
    rid_counter.raise_next(1001)
    assert counted() == 1002 and database.read_bytes()[:4096] == before[:4096]


@needs_tdb
def test_users_in_the_database_stay(database):
    rid_counter.raise_next(21005)
    content = database.read_bytes()
    assert all(key in content for key in (b"USER_anna\0", b"USER_berta\0", b"RID_000003e8\0", b"RID_000003e9\0"))


@needs_tdb
def test_database_that_is_missing_or_none_is_said(database):
    database.write_bytes(b"no database" * 1000)
    with pytest.raises(Failed, match="does not open"):
        rid_counter.raise_next(1002)
    database.unlink()
    with pytest.raises(Failed, match="does not open"):
        rid_counter.raise_next(1002)
    assert not database.exists()


@pytest.mark.parametrize("number", [0, 999, 2**31])
def test_number_that_is_none_of_a_user_is_not_written(number):
    with pytest.raises(Failed, match="no number"):
        rid_counter.raise_next(number)


def test_library_that_is_missing_is_said(monkeypatch):
    monkeypatch.setattr(rid_counter, "LIBRARY", "libtdb.so.none")
    with pytest.raises(Failed, match="does not load"):
        rid_counter.raise_next(1002)
