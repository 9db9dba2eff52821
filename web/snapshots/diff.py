"""Changes in a folder since a snapshot, read by the agent and put into words."""

from __future__ import annotations

from typing import Any

import msgspec

from web import agent
from web.inventory.dataset_models import SnapshotRow
from web.snapshots.agent_queries import SECONDS, ask_agent
from web.snapshots.browse_path import readable_text
from web.translation import lazy_text

WORDS = {
    "new": lazy_text("new"),
    "changed": lazy_text("changed"),
    "moved": lazy_text("moved"),
    "gone": lazy_text("deleted"),
}
KIND_WORDS = {"folder": lazy_text("folder"), "link": lazy_text("link"), "other": lazy_text("other")}


class Changes(msgspec.Struct, frozen=True):
    """``complete``: False if there are more. ``problem``: why they could not be read."""

    changes: list[dict[str, Any]] = msgspec.field(default_factory=list)
    complete: bool = True
    problem: str = ""

    @property
    def counts(self) -> dict[str, int]:
        return {word: sum(change["what"] == word for change in self.changes) for word in WORDS}


def changes_between(row: SnapshotRow, until: SnapshotRow | None = None, *, seconds: int = SECONDS) -> Changes:
    """The changes from a snapshot to a later one, or until now, as far as they are found in so many seconds."""
    asked = {"verb": "read-difference", "snapshot": row.name, "until": until.name if until else "", "seconds": seconds}
    answer, problem = ask_agent(row.dataset, lambda: agent.last(asked, silence=seconds + SECONDS)["facts"])
    if not answer:
        return Changes(problem=problem, complete=not problem)
    changes = [
        {
            **change,
            "what_word": WORDS.get(change["what"], change["what"]),
            "kind_word": KIND_WORDS.get(change["kind"], change["kind"]),
            "words": readable_text(change["path"]),
            "new_words": readable_text(change["to"]),
        }
        for change in answer.get("changes", ())
    ]
    return Changes(changes, answer.get("complete", True))
