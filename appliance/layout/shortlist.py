"""The few layouts to choose from first: balanced, safest, most room. Pure functions of the advisor's proposals.

- **Balanced** is the recommended layout (``advice.choose_recommended``).
- **Safest** survives the most failed disks wherever they are; of those that survive as many,
the one that loses data least
  often at two and then at three failed disks, then the one that holds the most.
- **Most room** holds the most of all layouts that survive a failed disk.
A stripe holds more, but it is never suggested.

Equal partitions make two pools to look after, so they are compared but not suggested.
Where nothing survives a failed disk there is one suggestion without a goal.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from appliance.formatting import capitalize_opening
from appliance.layout.proposal import Proposal
from appliance.message import Message, join_messages

Goal = Literal["balanced", "safest", "most room"]
GOALS: dict[Goal, str] = {
    "balanced": Message("balanced"),
    "safest": Message("safest"),
    "most room": Message("most room"),
}


class Suggestion(msgspec.Struct, frozen=True):
    """A layout and the goals that it serves best. Without a goal nothing protects its files."""

    goals: tuple[Goal, ...]
    proposal: Proposal
    note: str = ""  # what speaks for the balanced layout where the safest holds as much

    @property
    def title(self) -> str:
        """The goals as a heading: ``Balanced``, ``Balanced and safest``."""
        if not self.goals:
            return Message("No protection")
        *others, last = (GOALS[goal] for goal in self.goals)
        listed = join_messages(others, ", ")
        return capitalize_opening(Message("{one} and {other}", one=listed, other=last) if others else last)


def shorten_proposals(proposals: Sequence[Proposal]) -> tuple[Suggestion, ...]:
    """The balanced, the safest and the roomiest of ``propose_layouts``, each layout once."""
    protected = [proposal for proposal in proposals if proposal.survives and not proposal.choice.equal]
    if not protected:
        return tuple(Suggestion((), proposal) for proposal in proposals[:1])
    found: dict[Goal, Proposal] = {
        "balanced": next(proposal for proposal in protected if proposal.reason),
        "safest": min(protected, key=rank_safety),
        "most room": min(protected, key=lambda proposal: (-proposal.usable, rank_safety(proposal))),
    }
    layouts = dict.fromkeys(proposal.choice for proposal in found.values())
    return tuple(
        Suggestion(
            tuple(goal for goal, proposal in found.items() if proposal.choice == layout),
            proposal := next(one for one in found.values() if one.choice == layout),
            note_smaller_groups(proposal, found["safest"]),
        )
        for layout in layouts
    )


def note_smaller_groups(proposal: Proposal, safest: Proposal) -> str:
    """Why to prefer a layout to a safer one that holds as much; empty where it does not, or
    where nothing speaks for it."""
    is_smaller = len(proposal.groups[0]) < len(safest.groups[0])
    if not is_smaller or proposal.usable > safest.usable or not proposal.reason:
        return ""
    return Message("Its groups of disks are smaller than those of the safest layout, so a rebuild reads fewer disks.")


def rank_safety(proposal: Proposal) -> tuple[object, ...]:
    """A key by which the safest proposal comes first."""
    return (-proposal.survives, proposal.second_loss, proposal.third_loss, -proposal.usable, proposal.choice.value)
