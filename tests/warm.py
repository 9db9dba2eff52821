"""What the appliance is when a file of tests gets it.
Each state is made once, from the one before, and kept with the image.

A file says ``STATE = "pool"`` where it wants more, or less, than an appliance that has been set up.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

from deploy.image import states
from deploy.image.machine import Machine
from tests.system import sharing
from tests.visitor import Visitor

POOL_FOLDERS = ("photos",)


def set_up(appliance: Machine) -> None:
    """The administrator has signed in once; the disks are on the pages.

    The kernel waits longer than the usual 30 seconds for a disk: on a busy computer the file behind an emulated one may
    stand still for that long, and a pool of one disk is suspended then.
    """
    appliance.shell("for timeout in /sys/block/sd*/device/timeout; do echo 180 > $timeout; done")
    Visitor.of_new(appliance)


def make_pool(appliance: Machine) -> None:
    """The mirror tank of bays 1 and 2, with the folder tank/photos for users of shares; the pages show both."""
    sharing.make_pool(appliance, "tank", *POOL_FOLDERS)
    Visitor.of_new(appliance).wait_until("/folders/", "tank/photos", timeout=120)


def make_share(appliance: Machine) -> None:
    """The users anna and ben; tank/photos is the SMB share photos: anna writes, ben reads."""
    visitor = Visitor.of_new(appliance)
    for name in ("anna", "ben"):
        sharing.make_person(visitor, name)
    answer = sharing.set_share(visitor, appliance, "tank/photos", name="photos", write="anna", read="ben")
    assert answer.startswith("Done."), answer


# Each state with the one it is made from.
STATES: dict[str, tuple[str, Callable[[Machine], None]]] = {
    "set-up": ("new", set_up),
    "pool": ("set-up", make_pool),
    "share": ("pool", make_share),
}
USUAL = "set-up"
PREPARE = (Path(__file__), Path(__file__).with_name("visitor.py"), Path(sharing.__file__))


def saved_state(layer: Path, name: str) -> Path:
    """The folder of a state; made where it is not there, or where what prepares it has changed."""
    if name == "new":
        return states.warm_state(layer)
    under, prepare = STATES[name]
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in PREPARE)).hexdigest()[:12]
    return states.prepared_state(layer, f"{name}-{digest}", saved_state(layer, under), prepare)
