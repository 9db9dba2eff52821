"""A volume's disk as a computer outside the appliance has it open: libiscsi, called directly, block by block."""

from __future__ import annotations

import ctypes
import ctypes.util
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from appliance.shares.iscsi.part import PREFIX
from deploy.image.machine import Machine
from tests.system import initiators

SECTOR = 512
NORMAL = 2  # a session that uses a disk, as opposed to one that asks for names
CACHING = 0x08  # a mode page
GOOD = 0  # the status of a command that was carried out (SAM-5, 5.3.1)
SECONDS_TO_ANSWER = 120


class DiskError(Exception):
    """A command was not carried out, with what libiscsi says of it."""


class Extent(ctypes.Structure):
    """libiscsi's ``struct scsi_iovec``."""

    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


@cache
def library() -> Any:
    found = ctypes.CDLL(ctypes.util.find_library("iscsi"))
    found.iscsi_get_error.restype = ctypes.c_char_p
    for name in (
        "create_context",
        "write10_sync",
        "read10_iov_sync",
        "synchronizecache10_sync",
        "unmap_sync",
        "readcapacity16_sync",
        "scsi_command_sync",
    ):
        getattr(found, f"iscsi_{name}").restype = ctypes.c_void_p
    found.scsi_datain_unmarshall.restype = ctypes.c_void_p
    found.scsi_cdb_modesense6.restype = ctypes.c_void_p
    return found


class Range(ctypes.Structure):
    """libiscsi's ``struct unmap_list``: sectors from the first on."""

    _fields_ = (("first", ctypes.c_uint64), ("count", ctypes.c_uint32))


class Disk:
    """One session with the disk of a volume. Blocks are counted and written as ``size`` bytes, whole sectors."""

    def __init__(self, session: ctypes.c_void_p, size: int, sector: int = SECTOR) -> None:
        self.session, self.size, self.sector = session, size, sector

    def write(self, block: int, data: bytes) -> None:
        """Raises DiskError."""
        assert len(data) == self.size
        lba = block * self.size // self.sector
        self.carried_out(
            library().iscsi_write10_sync(self.session, 0, lba, data, len(data), self.sector, 0, 0, 0, 0, 0)
        )

    def flush(self) -> None:
        """Have everything that was written so far made lasting, as fsync of a file on the disk does.
        Raises DiskError."""
        self.carried_out(library().iscsi_synchronizecache10_sync(self.session, 0, 0, 0, 0, 0))

    def read(self, block: int) -> bytes:
        """Raises DiskError."""
        data = ctypes.create_string_buffer(self.size)
        into = Extent(ctypes.cast(data, ctypes.c_void_p), self.size)
        lba = block * self.size // self.sector
        self.carried_out(
            library().iscsi_read10_iov_sync(
                self.session, 0, lba, self.size, self.sector, 0, 0, 0, 0, 0, ctypes.byref(into), 1
            )
        )
        return data.raw

    def unmap(self, block: int) -> None:
        """Say that a block is no longer used, as fstrim on that computer does. Raises DiskError."""
        one = Range(block * self.size // self.sector, self.size // self.sector)
        self.carried_out(library().iscsi_unmap_sync(self.session, 0, 0, 0, ctypes.byref(one), 1))

    def capacity(self) -> int:
        """The bytes of the disk, asked anew in this session (READ CAPACITY (16), SBC-3, 5.16). Raises DiskError."""
        task = ctypes.c_void_p(library().iscsi_readcapacity16_sync(self.session, 0))
        told = library().scsi_datain_unmarshall(task) if task else None
        last, size = struct.unpack("=QI", ctypes.string_at(told, 12)) if told else (0, 0)  # struct scsi_readcapacity16
        self.carried_out(task.value)
        return int((last + 1) * size)

    def has_write_cache(self) -> bool:
        """Whether the disk says that it keeps writes in memory until it is told to flush: the bit WCE of the mode page
        Caching, SBC-3, 6.5.6. Raises DiskError."""
        data, lib = (ctypes.c_ubyte * 255)(), library()
        task = lib.scsi_cdb_modesense6(1, 0, CACHING, 0, len(data))  # without descriptors of blocks, values of now
        lib.scsi_task_add_data_in_buffer(ctypes.c_void_p(task), len(data), data)
        self.carried_out(lib.iscsi_scsi_command_sync(self.session, 0, ctypes.c_void_p(task), None))
        page = data[4 + data[3] :]  # after the header of four bytes, whose last is the length of descriptors
        assert page[0] & 0x3F == CACHING, bytes(data).hex()
        return bool(page[2] & 0x04)

    def carried_out(self, task: int | None) -> None:
        status = library().scsi_task_get_status(ctypes.c_void_p(task), None) if task else None
        said = library().iscsi_get_error(self.session).decode()
        if task:
            library().scsi_free_scsi_task(ctypes.c_void_p(task))
        if status != GOOD:
            raise DiskError(f"status {status}: {said}")


@contextmanager
def opened(appliance: Machine, name: str, *, size: int = 4096, sector: int = SECTOR) -> Iterator[Disk]:
    """The disk of a volume that is shared under this name. A connection that breaks stays broken."""
    lib = library()
    session = ctypes.c_void_p(lib.iscsi_create_context(initiators.INITIATOR.encode()))
    try:
        lib.iscsi_set_targetname(session, f"{PREFIX}{name}".encode())
        lib.iscsi_set_session_type(session, NORMAL)
        lib.iscsi_set_noautoreconnect(session, 1)
        lib.iscsi_set_timeout(session, SECONDS_TO_ANSWER)
        if lib.iscsi_full_connect_sync(session, initiators.portal(appliance).encode(), 0):
            raise DiskError(lib.iscsi_get_error(session).decode())
        yield Disk(session, size, sector)
    finally:
        lib.iscsi_destroy_context(session)
