"""What serves shares: one object a protocol, each with its daemon's file, its check, and what the daemon itself says."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

from appliance.facts import Facts
from appliance.shares.afp import AfpServing
from appliance.shares.nfs import NfsServing
from appliance.shares.owned_file import OwnedFile


class Serving(Protocol):
    """One protocol. ``name`` as in ``larder:share``, ``units`` of systemd, ``owned`` the file that is Larder's."""

    @property
    def name(self) -> str: ...

    @property
    def units(self) -> tuple[str, ...]: ...

    @property
    def owned(self) -> OwnedFile: ...

    def render(self, facts: Facts) -> str:
        """The text of the file for these facts."""

    def check(self, path: Path) -> None:
        """Raises Failed where the daemon would not take the file."""

    def take_up(self) -> None:
        """Start, reload without dropping anybody, or stop where nothing is left. Raises Failed."""

    def served(self) -> set[tuple[str, str]]:
        """Name and path of what the daemon itself says that it serves."""

    def close(self, gone: Iterable[tuple[str, str]]) -> None:
        """Really close what is no longer served."""


SERVING: dict[str, Serving] = {"nfs": NfsServing(), "afp": AfpServing()}
