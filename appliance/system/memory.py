"""Give memory that was freed back to the system. glibc keeps it for the next large page
otherwise: some 5 MiB a process."""

from __future__ import annotations

import ctypes
import gc


def give_back() -> None:
    """Collect garbage, then have glibc return what is free (malloc_trim(3)).
    Does nothing where libc has no such call."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
