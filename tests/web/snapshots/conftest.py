"""Stand-ins for ZFS and the agent in tests of snapshots."""

from __future__ import annotations

from typing import Any

import pytest

from appliance.errors import Failed
from appliance.facts.datasets import Bookmark, Snapshot


class Zfs:
    """Stands in for reading ZFS: records requests and gives the set answers."""

    def __init__(self) -> None:
        self.there: dict[str, list[Snapshot]] = {}
        self.asked: list[str] = []
        self.marks: list[Bookmark] = []
        self.asked_for_marks: list[str] = []

    def read(self, datasets):
        for name in datasets:
            self.asked.append(name)
            yield from self.there.get(name, [])

    def read_bookmarks(self, datasets):
        self.asked_for_marks += datasets
        return [one for one in self.marks if one.dataset in datasets]


@pytest.fixture
def zfs(monkeypatch):
    stand_in = Zfs()
    monkeypatch.setattr("appliance.zfs.list_snapshots.list_snapshots", stand_in.read)
    monkeypatch.setattr("appliance.snapshots.bookmarks.read_bookmarks", stand_in.read_bookmarks)
    return stand_in


class Agent:
    """Stands in for the agent: every run of neighbours uses one MiB, unless it does not answer."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.silent = False

    def last(self, request, *, silence):
        self.asked.append(request)
        if self.silent:
            raise Failed("Larder's agent does not answer")
        return {"facts": {"ranges": [2**20 for _pair in request["ranges"]], "holds": {}}}


@pytest.fixture
def agent(monkeypatch):
    stand_in = Agent()
    monkeypatch.setattr("appliance.agent_client.send_request", stand_in.last)
    return stand_in
