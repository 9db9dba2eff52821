"""What changed in a folder since a snapshot, asked of the agent and told in words."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from web import agent
from web.inventory.models import SnapshotRow
from web.snapshots.agent_queries import SECONDS, ask_agent
from web.snapshots.browse_path import readable_text

WORDS = ("new", "changed", "moved", "gone")


@dataclass(frozen=True)
class Changes:
    """``complete``: False where these are only the first. ``trouble``: what kept them from being told."""

    changes: list[dict[str, Any]] = field(default_factory=list)
    complete: bool = True
    trouble: str = ""

    @property
    def counts(self) -> dict[str, int]:
        return {word: sum(one["what"] == word for one in self.changes) for word in WORDS}


def changes_between(row: SnapshotRow, until: SnapshotRow | None = None, *, seconds: int = SECONDS) -> Changes:
    """From a snapshot to a later one, or until now; what could be told in so many seconds."""
    asked = {"verb": "read-difference", "snapshot": row.name, "until": until.name if until else "", "seconds": seconds}
    found, trouble = ask_agent(row.dataset, lambda: agent.last(asked, silence=seconds + SECONDS)["facts"])
    if not found:
        return Changes(trouble=trouble, complete=not trouble)
    changes = [
        {**change, "words": readable_text(change["path"]), "new_words": readable_text(change["to"])}
        for change in found.get("changes", ())
    ]
    return Changes(changes, found.get("complete", True))
