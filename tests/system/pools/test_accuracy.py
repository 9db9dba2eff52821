"""What the advisor promises is what ZFS gives: forty random sets of disks, as sparse files in memory."""

from __future__ import annotations

import json
import random

import pytest

from appliance.layout import choices
from appliance.layout.advice import judge_layout
from appliance.layout.geometry import LEAST_DISKS
from appliance.layout.proposal import Candidate, Proposal

# Forty pools, one after the other, take more than two minutes under emulation.

TB = 10**12
SETS, SEED, WITHIN = 40, 3, 0.01
ASHIFTS = (9, 12, 13)

# Makes each pool in turn and says what zfs list says of it; one command, because each way into the machine is slow.
MAKE_EACH = """
import json, os, subprocess, sys
folder = "/run/accuracy"
os.makedirs(folder, exist_ok=True)
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1500m", "tmpfs", folder], check=True)
found = []
try:
    for case in json.load(sys.stdin):
        words, files = [], []
        for number, group in enumerate(case["groups"]):
            words += [case["layout"]] if case["layout"] != "stripe" else []
            for at, size in enumerate(group):
                path = f"{folder}/{number}-{at}"
                with open(path, "wb") as file:
                    file.truncate(size)
                files.append(path)
                words.append(path)
        subprocess.run(["zpool", "create", "-f", "-o", "cachefile=none", "-o", f"ashift={case['ashift']}", "-O", "mountpoint=none", "accuracy", *words], check=True)
        listed = subprocess.run(["zfs", "list", "-Hp", "-o", "used,available", "accuracy"], check=True, capture_output=True, text=True).stdout
        found.append(sum(map(int, listed.split())))
        subprocess.run(["zpool", "destroy", "accuracy"], check=True)
        for path in files:
            os.unlink(path)
finally:
    subprocess.run(["zpool", "destroy", "-f", "accuracy"], stderr=subprocess.DEVNULL)
    subprocess.run(["umount", folder])
print(json.dumps(found))
"""


def random_sets() -> list[tuple[list[int], choices.LayoutChoice, int]]:
    """Sizes, a layout that fits so many disks, and a sector size; the same ones every time. Every layout comes up."""
    dice = random.Random(SEED)
    layouts, found = list(LEAST_DISKS), []
    for number in range(SETS):
        layout, ashift = layouts[number % len(layouts)], ASHIFTS[number % len(ASHIFTS)]
        count = dice.randint(max(2, LEAST_DISKS[layout]), 12)
        sizes = [dice.randint(1 * TB, 20 * TB) for _disk in range(count)]
        fitting = [choice for choice in choices.possible_layouts(count) if choice.layout == layout]
        found.append((sizes, dice.choice(fitting), ashift))
    return found


def proposal_of(sizes: list[int], choice: choices.LayoutChoice, ashift: int) -> Proposal:
    return judge_layout([Candidate(size) for size in sizes], choice, ashift=ashift)


def test_what_is_promised_is_what_zfs_gives_within_one_per_cent(appliance):
    sets = random_sets()
    assert {choice.layout for _sizes, choice, _ashift in sets} == set(LEAST_DISKS)
    assert any(choice.groups > 1 for _sizes, choice, _ashift in sets)
    proposals = [proposal_of(*one) for one in sets]
    cases = [
        {
            "layout": choice.layout,
            "ashift": ashift,
            "groups": [[sizes[at] for at in group] for group in proposal.groups],
        }
        for (sizes, choice, ashift), proposal in zip(sets, proposals, strict=True)
    ]
    # Forty pools come and go: nobody has to hear of each.
    appliance.run("systemctl", "stop", "zfs-zed", "larder-worker")
    given = json.loads(appliance.run("python3", "-c", MAKE_EACH, given=json.dumps(cases), timeout=3000))
    appliance.run("systemctl", "start", "zfs-zed", "larder-worker")
    assert len(given) == SETS
    wrong = [
        f"{proposal.title} at ashift {ashift}: promised {proposal.usable}, given {measured}"
        for (_sizes, _choice, ashift), proposal, measured in zip(sets, proposals, given, strict=True)
        if proposal.usable != pytest.approx(measured, rel=WITHIN)
    ]
    assert not wrong, "\n".join(wrong)
