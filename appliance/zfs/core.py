"""The one door to libzfs_core: bytes in, errors of our own tree out.

The library comes from Debian (``python3-pyzfs``) and is loaded at the first call, so that everything else of Larder can be
imported where there is none.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from appliance.errors import Failed, LarderError

# What goes wrong, by the name of the library's exception (``libzfs_core/exceptions.py``, OpenZFS 2.3), as a person reads it.
SAID = {
    "PoolNotFound": "The pool is not there.",
    "CheckpointExists": "The pool has a checkpoint already. Discard it first; a pool keeps only one.",
    "CheckpointNotFound": "The pool has no checkpoint.",
    "CheckpointDiscarding": "The pool is still discarding its last checkpoint. Wait until that has ended.",
    "DeviceRemovalRunning": "A disk is being removed from the pool. Wait until that has ended.",
    "DeviceTooBig": "A disk group of the pool is too large for a checkpoint.",
    "RaidzExpansionRunning": "The pool is being expanded. Wait until that has ended.",
    "NoSpace": "The pool has no space left for it.",
    "ReadOnlyPool": "The pool can only be read.",
}


def library() -> Any:
    """The binding. Raises Failed where it is not installed or does not load."""
    try:
        return importlib.import_module("libzfs_core")
    except (ImportError, OSError) as error:
        raise Failed("ZFS's own library (python3-pyzfs) is not installed or does not load", str(error)) from error


def call(name: str, what: str, *arguments: object) -> Any:
    """Call one function of the library. Raises Failed with a sentence, ``what`` being what was tried."""
    loaded = library()
    function: Callable[..., Any] | None = getattr(loaded, name, None)
    if function is None:
        raise Failed(what, f"This version of ZFS's library has no {name}.")
    try:
        return function(*arguments)
    except NotImplementedError as error:
        raise Failed(what, f"This version of ZFS's library has no {name}.") from error
    except LarderError:
        raise
    except Exception as error:
        # Every error of the library derives from ZFSError; its class says which.
        raise Failed(what, SAID.get(type(error).__name__, str(error) or type(error).__name__)) from error


def take_checkpoint(pool: str) -> None:
    """Remember the pool's state of now. Raises Failed."""
    call("lzc_pool_checkpoint", f"The checkpoint of {pool} was not taken", pool.encode())


def discard_checkpoint(pool: str) -> None:
    """Let the remembered state go; the kernel frees its space in the background. Raises Failed."""
    call("lzc_pool_checkpoint_discard", f"The checkpoint of {pool} was not discarded", pool.encode())
