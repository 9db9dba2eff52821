"""The control groups of the agent's requests."""

from __future__ import annotations

from deploy.image.machine import Machine

GROUPS = "/sys/fs/cgroup/system.slice/larder-agent.service"


def requests_running(appliance: Machine) -> list[str]:
    """The agent's requests that run, by the number of their process."""
    return appliance.run("find", GROUPS, "-maxdepth", "1", "-name", "[0-9]*", "-printf", "%f\\n", check=False).split()
