"""The names under which readings that a page asks for are noted (``Source``): the pages ask, the worker reads."""

from __future__ import annotations

BOX = "box"
CONNECTIONS = "connections"
IMPORTABLE = "importable"  # looking for pools that are not imported
SEEN = "seen"  # looking at one share as one person sees it
