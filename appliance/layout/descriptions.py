"""Layouts in plain words: what protects the files, and how many disks may fail. Pure functions."""

from __future__ import annotations

from appliance.layout.choices import LayoutChoice
from appliance.layout.geometry import PARITY
from appliance.message import Message, join_messages

NUMBERS = (
    "no",  # as a message it would be the answer to a question
    Message("one"),
    Message("two"),
    Message("three"),
    Message("four"),
    Message("five"),
    Message("six"),
    Message("seven"),
    Message("eight"),
    Message("nine"),
    Message("ten"),
    Message("eleven"),
    Message("twelve"),
)


def number_word(number: int) -> str:
    """A number as a sentence has it: in words up to twelve."""
    return NUMBERS[number] if number < len(NUMBERS) else str(number)


def explain_layout(choice: LayoutChoice, width: int) -> str:
    """What protects the files in a layout with this many disks a group, as half a sentence after its name."""
    found = [explain_groups(choice, width)]
    if choice.spares:
        found.append(
            Message("a spare waits to take the place of a failed disk")
            if choice.spares == 1
            else Message("{number} spares wait to take the place of a failed disk", number=number_word(choice.spares))
        )
    if choice.equal:
        found.append(
            Message(
                "every disk gives as much as the smallest has, and the rest can become a second pool, which is mirrored"
            )
            if choice.mirrored
            else Message(
                "every disk gives as much as the smallest has, and the rest can become a second pool, which "
                "nothing protects"
            )
        )
    return join_messages(found, "; ")


def explain_groups(choice: LayoutChoice, width: int) -> str:
    """What protects the files within the groups of a layout."""
    if choice.layout == "stripe":
        return (
            Message("nothing protects the files")
            if width == 1
            else Message("files are spread over the disks, and nothing protects them")
        )
    if choice.layout != "mirror":
        parity = PARITY[choice.layout]
        space = (
            Message("one disk's worth of space")
            if parity == 1
            else Message("{number} disks' worth of space", number=number_word(parity))
        )
        return (
            Message("{space} in each group protects the others", space=space)
            if choice.groups > 1
            else Message("{space} protects the others", space=space)
        )
    if choice.groups > 1 and width == 2:
        return Message("the disks of each pair hold the same files")
    if choice.groups > 1:
        return Message("the disks of each group of {number} hold the same files", number=number_word(width))
    if width == 2:
        return Message("both disks hold the same files")
    return Message("all {number} disks hold the same files", number=number_word(width))


def describe_failures(survives: int, disks: int) -> str:
    """How many of the disks may fail, wherever they are, as a sentence."""
    if not survives:
        if disks == 1:
            return Message("If this disk fails, everything in the pool is lost.")
        return Message(
            "If any one of the {disks} disks fails, everything in the pool is lost.", disks=number_word(disks)
        )
    if disks == 2:
        return Message("Either of the two disks can fail without losing a file.")
    if survives == 1:
        return Message("Any one of the {disks} disks can fail without losing a file.", disks=number_word(disks))
    return Message(
        "Any {survives} of the {disks} disks can fail at once without losing a file.",
        survives=number_word(survives),
        disks=number_word(disks),
    )


def describe_survival(disks: int) -> str:
    """How many failures are survived, as a phrase."""
    if disks == 0:
        return Message("no failed disk")
    return Message("one failed disk") if disks == 1 else Message("{count} failed disks", count=disks)
