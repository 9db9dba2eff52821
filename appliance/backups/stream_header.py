"""The beginning of a stream of ``zfs send``, as far as it says whether one snapshot follows or a whole package.

A package (``zfs send -R`` or ``-p``) brings datasets and properties of the sender's choice: ``zfs receive`` makes a
dataset below the target that is mounted wherever it says, since ``-o canmount=noauto`` does not reach it. The layout is
that of ``dmu_replay_record_t`` (OpenZFS, ``include/sys/zfs_ioctl.h``), in the order of bytes of who sent it.
"""

from __future__ import annotations

import struct

LENGTH = 24  # bytes: type, length of the payload, magic number, version
MAGIC = 0x2F5BACBAC
BEGIN, SUBSTREAM = 0, 1  # a package is 2


def is_single(header: bytes) -> bool:
    """Whether the first LENGTH bytes of a stream begin a single snapshot, without properties
    and without other datasets."""
    for order in ("<", ">"):
        kind, _payload, magic, version = struct.unpack(f"{order}IIQQ", header)
        if magic == MAGIC:
            return bool(kind == BEGIN and version & 3 == SUBSTREAM)
    return False
