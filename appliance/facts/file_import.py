"""An import of files from another NAS, as the agent has noted it. Nothing in here is secret."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from appliance.message import message_of


class Count(msgspec.Struct, frozen=True):
    """What a dry run found. ``size``: bytes of ``files``; ``new``, ``new_size``: of those that are not here yet."""

    files: int = 0
    folders: int = 0
    links: int = 0
    size: int = 0
    new: int = 0
    new_size: int = 0
    left_out: int = 0
    named: tuple[str, ...] = ()  # the first of what is left out, each with the reason


class ImportResult(msgspec.Struct, frozen=True):
    """How a run ended: ``different`` files were not as at the source when both were compared,
    ``missed`` could not be copied."""

    at: datetime
    compared: int = 0  # files; 0: they were not compared
    different: int = 0
    missed: int = 0


class FileImport(msgspec.Struct, frozen=True):
    """``path`` on the other NAS goes into the folder ``dataset``, known by its ``guid``. ``existing``: what happens to
    files that are here already: ``none`` where there may be none, ``keep``, or ``newer`` where the source's newer
    version takes their place and the older one is kept. ``began``: files were copied already.

    ``protocol``: the kind of source, ``ssh``, ``smb``, ``nfs`` or ``rsync``. ``user`` is empty where nobody signs in.
    With ``smb`` and ``rsync`` the first part of ``path`` is the share or module. Only ``ssh`` has host keys.

    ``host_key``, ``offered_key``, ``problem`` are as those of ``Remote``. ``found`` is what the latest dry run said.
    """

    id: str
    host: str
    port: int
    user: str
    path: str
    dataset: str
    guid: int
    existing: str = "none"
    owners: tuple[tuple[str, str], ...] = ()  # a user there, by name or number, and the one here who gets their files
    began: bool = False
    top_owner: int = 0  # the number of the folder's own owner, from before the first run
    public_key: str = ""
    host_key: str = ""
    offered_key: str = ""
    tested: datetime | None = None
    problem: str = ""
    found: Count | None = None
    free: int = 0  # bytes in the folder when that was counted
    result: ImportResult | None = None
    protocol: str = "ssh"
    said: dict[str, Any] = msgspec.field(default_factory=dict)  # what ``problem`` was made from: ``messages_by_text``

    @property
    def problem_text(self) -> str:
        """``problem`` as the message that it was."""
        return message_of(self.problem, self.said)

    @property
    def name(self) -> str:
        return self.source

    @property
    def source(self) -> str:
        """``nas.lan:/volume1/photos``, ``//nas.lan/photos`` or ``rsync://nas.lan/photos``."""
        before = {"smb": "//", "rsync": "rsync://"}.get(self.protocol, "")
        return f"{before}{self.host}{'' if before else ':'}{self.path}"

    @property
    def has_other_key(self) -> bool:
        """Whether it showed another host key than the one that was confirmed: it may be somebody else's computer."""
        return bool(self.host_key and self.offered_key)

    @property
    def is_ready(self) -> bool:
        return bool(self.is_known and self.found and not self.problem)

    @property
    def has_host_key(self) -> bool:
        """Whether its kind proves by a key that it is the right computer."""
        return self.protocol == "ssh"

    @property
    def needs_host_key(self) -> bool:
        """Whether no host key was confirmed yet, where its kind has one."""
        return self.has_host_key and not self.host_key

    @property
    def is_known(self) -> bool:
        """Whether files may be copied from there: nothing is left to confirm."""
        return not self.has_host_key or bool(self.host_key and not self.offered_key)
