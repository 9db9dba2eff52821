"""Where an import reads its files: one module for each kind of other NAS, all with the interface of ``base.py``.

``ssh.py`` and ``daemon.py`` talk to an rsync over there.
``smb.py`` and ``nfs.py`` mount a share or export (``mounted.py``) and rsync reads it like a local folder.
"""

from __future__ import annotations

from appliance.facts.file_import import FileImport
from appliance.imports.sources.base import ImportSource
from appliance.imports.sources.daemon import DaemonSource
from appliance.imports.sources.nfs import NfsSource
from appliance.imports.sources.smb import SmbSource
from appliance.imports.sources.ssh import SshSource

SOURCES: dict[str, ImportSource] = {"ssh": SshSource(), "smb": SmbSource(), "nfs": NfsSource(), "rsync": DaemonSource()}


def source_of(task: FileImport) -> ImportSource:
    return SOURCES[task.protocol]


def has_password(task: FileImport) -> bool:
    """Whether a user signs in there by a password."""
    return bool(task.user) and source_of(task).has_passwords
