"""Requests to the agent about several disks at once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from appliance import names
from appliance.disks import power_mode, query, smart_answer, standby
from appliance.errors import Failed, Reason, Refused, explain_error
from appliance.request import Exchange, Request, Send, as_facts

MOST_DISKS = 128


def check_count(disks: Collection[str]) -> None:
    """Raises Refused for more disks than a box has."""
    if len(disks) > MOST_DISKS:
        raise Refused(Reason("disks-too-many", "Choose at most {count} disks.", count=MOST_DISKS))


def ask_each(disks: Iterable[str], ask: Callable[[str], object], send: Send) -> dict[str, object]:
    """What each disk answers. A word goes out after each: several that hang take minutes, and the client must not take
    that for silence and lose the answers of the others."""
    found = {}
    for path in disks:
        found[path] = ask(path)
        send({"asked": path})
    return found


def query_smart(path: str) -> object:
    """The JSON of smartctl for one disk, None where it has none; one bad disk does not hide the others.

    Only what can sleep is left asleep. One that answers nothing says so in smartctl's shape.
    """
    try:
        if standby.is_rotating(path):
            return smart_answer.parse_json(power_mode.read_if_awake(path, ["-a", path], timeout=30).stdout)
        return smart_answer.parse_json(query.query_disk(path, [*power_mode.WITH_TEXT, "-a", path], timeout=30).stdout)
    except query.Silent as problem:
        return smart_answer.no_answer(explain_error(problem))
    except Failed:
        return None


def read_report(path: str, *, timeout: float) -> str:
    """The whole report of one disk as smartctl's JSON, as text. Only what can sleep is left asleep.
    Raises what ``query_disk`` does."""
    options = ["--xall", "--", path]
    if standby.is_rotating(path):
        return power_mode.query_if_awake(path, options, timeout=timeout).stdout
    return query.query_disk(path, [*power_mode.SMARTCTL, *options], timeout=timeout).stdout


class DiskRequest(Request):
    """Base of requests about several disks."""

    disks: tuple[str, ...]

    def __post_init__(self) -> None:
        check_count(self.disks)
        for path in self.disks:
            names.by_id(path)


class ReadSmart(DiskRequest, tag="read-smart"):
    """SMART of disks, without waking one that sleeps."""

    def answer(self, exchange: Exchange) -> None:
        exchange.send({"facts": ask_each(self.disks, query_smart, exchange.send)})


class LetSleep(Request, tag="let-sleep"):
    """Set after how many minutes without work disks go to sleep; 0: never. None is woken for it."""

    disks: dict[str, int]

    def __post_init__(self) -> None:
        check_count(self.disks)
        for path, minutes in self.disks.items():
            names.by_id(path)
            standby.timer_value(minutes)

    def answer(self, exchange: Exchange) -> None:
        said = ask_each(self.disks, lambda path: standby.set_timer(path, self.disks[path]), exchange.send)
        exchange.send(as_facts(said))
