"""Models of drive-managed SMR disks, as their makers list them; an unknown model is not suspected."""

from __future__ import annotations

import re

# From the makers' lists of drive-managed SMR disks: Western Digital, April 2020 (Red, Blue
# and Black); Toshiba, 28 April 2020 (P300, DT02, L200, MQ04); Seagate, "CMR and SMR hard drives" (BarraCuda, Archive).
SHINGLED = re.compile(
    r"\b(?:WD[2346]0EFAX|WD[26]0EZAZ|WD[12]0SPZX|WD10SPSX"
    r"|HDWD2[46]0|DT02ABA[46]00V?|HDWL1[12]0|MQ04AB[DF][12]00"
    r"|ST2000DM008|ST3000DM007|ST4000DM004|ST6000DM003|ST8000DM004|ST[68]000AS0002|ST5000AS0011"
    r"|ST1000LM048|ST2000LM015|ST3000LM024|ST4000LM024|ST5000LM000)"
)


def is_shingled(model: str) -> bool:
    """Whether the maker lists this model as SMR: overlapping tracks make long writes and rebuilds very slow."""
    return bool(SHINGLED.search(model.upper()))
