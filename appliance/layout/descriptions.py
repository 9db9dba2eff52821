"""Layouts in plain words: what protects the files, and how many disks may fail. Pure functions."""

from __future__ import annotations

from appliance.layout.choices import LayoutChoice
from appliance.layout.geometry import PARITY

NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")


def number_word(number: int) -> str:
    """A number as a sentence has it: in words up to twelve."""
    return NUMBERS[number] if number < len(NUMBERS) else str(number)


def explain_layout(choice: LayoutChoice, width: int) -> str:
    """What protects the files in a layout with this many disks a group, as half a sentence after its name."""
    found = explain_groups(choice, width)
    if choice.spares:
        waiting = "a spare waits" if choice.spares == 1 else f"{number_word(choice.spares)} spares wait"
        found += f"; {waiting} to take the place of a failed disk"
    if choice.equal:
        second = "a second pool, which is mirrored" if choice.mirrored else "a second pool, which nothing protects"
        found += f"; every disk gives as much as the smallest has, and the rest can become {second}"
    return found


def explain_groups(choice: LayoutChoice, width: int) -> str:
    """What protects the files within the groups of a layout."""
    if choice.layout == "stripe":
        return (
            "nothing protects the files" if width == 1 else "files are spread over the disks, and nothing protects them"
        )
    if choice.layout != "mirror":
        parity = PARITY[choice.layout]
        space = "one disk's worth of space" if parity == 1 else f"{number_word(parity)} disks' worth of space"
        return f"{space} {'in each group ' if choice.groups > 1 else ''}protects the others"
    if choice.groups > 1:
        group = "pair" if width == 2 else f"group of {number_word(width)}"
        return f"the disks of each {group} hold the same files"
    return "both disks hold the same files" if width == 2 else f"all {number_word(width)} disks hold the same files"


def describe_failures(survives: int, disks: int) -> str:
    """How many of the disks may fail, wherever they are, as a sentence."""
    if not survives:
        which = "this disk" if disks == 1 else f"any one of the {number_word(disks)} disks"
        return f"If {which} fails, everything in the pool is lost."
    if disks == 2:
        return "Either of the two disks can fail without losing a file."
    at_once = " at once" if survives > 1 else ""
    return f"Any {number_word(survives)} of the {number_word(disks)} disks can fail{at_once} without losing a file."
