"""The number that Samba gives to its next user (RID), in its own database of users.

Bringing users in with the numbers that they had does not move it (``pdb_tdb.c``: only ``NEXT_RID`` says what is free),
so Samba would give such a number once more, find it taken, and refuse the new user. None of Samba's tools sets it. This
goes through Samba's own library, which every Samba comes with, in one transaction.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from appliance.errors import Failed
from appliance.message import Message

PASSWORDS = Path("/var/lib/samba/private/passdb.tdb")
LIBRARY = "libtdb.so.1"
KEY = b"NEXT_RID\0"
FIRST = 1000  # where Samba begins (BASE_RID)
LAST = 2**31
REPLACE = 1  # tdb.h


class Data(ctypes.Structure):
    """TDB_DATA of tdb.h."""

    _fields_ = (("start", ctypes.POINTER(ctypes.c_ubyte)), ("size", ctypes.c_size_t))


def make_data(content: bytes) -> Data:
    return Data((ctypes.c_ubyte * len(content)).from_buffer_copy(content), len(content))


def load_library() -> ctypes.CDLL:
    try:
        library = ctypes.CDLL(LIBRARY, use_errno=True)
    except OSError as error:
        raise Failed(Message("Samba's library for databases does not load"), str(error)) from error
    library.tdb_open.restype = ctypes.c_void_p
    library.tdb_open.argtypes = (ctypes.c_char_p, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_uint)
    library.tdb_fetch.restype = Data
    library.tdb_fetch.argtypes = (ctypes.c_void_p, Data)
    library.tdb_store.argtypes = (ctypes.c_void_p, Data, Data, ctypes.c_int)
    for name in ("tdb_close", "tdb_transaction_start", "tdb_transaction_commit", "tdb_transaction_cancel"):
        getattr(library, name).argtypes = (ctypes.c_void_p,)
    return library


@contextmanager
def open_database(library: ctypes.CDLL) -> Iterator[ctypes.c_void_p]:
    database = library.tdb_open(os.fsencode(PASSWORDS), 0, 0, os.O_RDWR, 0o600)
    if not database:
        raise Failed(Message("Samba's database of users does not open"), os.strerror(ctypes.get_errno()))
    try:
        yield database
    finally:
        library.tdb_close(database)


def read_next(library: ctypes.CDLL, database: ctypes.c_void_p) -> int:
    """The number that the next user gets. Raises Failed where it is none that Samba has written."""
    found = library.tdb_fetch(database, make_data(KEY))
    if not found.start:
        return FIRST
    number = bytes(found.start[: found.size])
    ctypes.CDLL(None).free(found.start)
    if len(number) != 4:
        raise Failed(Message("Samba's database of users is not as expected"))
    return int.from_bytes(number, "little")


def raise_next(number: int) -> None:
    """Have the next new user get ``number`` or a higher one; it is never lowered. Raises Failed."""
    if not FIRST <= number < LAST:
        raise Failed(Message("Samba has no number {number} for users", number=number))
    library = load_library()
    with open_database(library) as database:
        if library.tdb_transaction_start(database):
            raise Failed(Message("Samba's database of users cannot be written"))
        written = False
        try:
            if read_next(library, database) < number:
                content = make_data(number.to_bytes(4, "little"))
                if library.tdb_store(database, make_data(KEY), content, REPLACE):
                    raise Failed(Message("Samba's database of users cannot be written"))
                written = True
        finally:
            done = getattr(library, "tdb_transaction_commit" if written else "tdb_transaction_cancel")(database)
        if done:
            raise Failed(Message("Samba's database of users cannot be written"))
