"""Where the recorded box keeps its files: a temporary folder of its own, never where a box keeps them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

NAME = "LARDER_DEV_FOLDER"  # handed on to the process that is started again after each change of the code
PREFIX = "larder-dev-"
BOXES = ("healthy", "degraded", "full", "empty", "many", "new")  # tests/dev/boxes.py
SENTENCE = "This is a recorded box: nothing is run here."
INSTALLED = tuple(map(Path, ("/run/larder", "/var/lib/larder", "/var/lib/larder-agent", "/opt/larder")))


def refusal(folder: Path | None = None) -> str:
    """Why it does not start here; empty where it may."""
    if found := [str(path) for path in INSTALLED if path.exists()]:
        return f"This machine is a Larder box ({', '.join(found)}). Recorded boxes are for a developer's own machine."
    if folder is not None and not folder.name.startswith(PREFIX):
        return f"{folder} is not a folder of a recorded box. Start it with make dev."
    return ""


def environment(folder: Path) -> dict[str, str]:
    """Every place of ``appliance/system/paths.py`` and of the settings, below that folder; whatever was set
    before counts for nothing."""
    places = {
        "RUN": "run",
        "STATE": "state",
        "AGENT_STATE": "agent",
        "SSH": "ssh",
        "RECEIVE": "receive",
        "SPOOL": "spool",
        "POOLS": "pools",
    }
    return {
        **{f"LARDER_{name}": str(folder / below) for name, below in places.items()},
        "LARDER_BROKER": f"redis+socket://{folder}/no-redis.sock",
        "LARDER_STATIC": str(folder / "static"),
        "LARDER_SECRET_KEY": "of a recorded box, which keeps no secrets",
        "LARDER_DEBUG": "1",
    }


def prepare(folder: Path) -> None:
    """Make the folders in it. The agent's socket is an empty file: pages look only whether it is there."""
    for below in ("run/inventory", "run/secrets", "run/jobs", "state", "agent", "spool", "pools"):
        (folder / below).mkdir(parents=True, exist_ok=True)
    (folder / "run/agent.sock").touch()


def with_bar(middleware: Sequence[str]) -> list[str]:
    """The product's middleware with the bar above its pages, and with what nginx does before it."""
    found = ["tests.dev.bar.name_client", *middleware]
    found.insert(found.index("web.accounts.first_run.until_set_up"), "tests.dev.bar.Bar")
    return found
