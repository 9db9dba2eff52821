"""At every moment at which a setting is switched, a timer stands ready to put it back."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

from appliance import command
from appliance.benchmarks.box_settings import switch
from appliance.benchmarks.box_settings.switch import SwitchSetting
from appliance.errors import Failed
from appliance.system.trial_record import trial_file
from tests.unit.benchmarks.test_box_settings import Box, settings  # noqa: F401  (a fixture)

ON, OFF = SwitchSetting(setting="nfs-threads", on=True), SwitchSetting(setting="nfs-threads", on=False)
MOST = 7  # more commands than any of these requests runs


class Killed(BaseException):
    """The process ends here."""


class TimedBox(Box):
    """A box in which the command ``at`` fails, or the process is killed before or after it."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.unguarded: list[str] = []
        self.at, self.how, self.count = -1, "", 0

    def hit(self, at: int, how: str) -> None:
        self.at, self.how, self.count = at, how, 0

    def run(self, argv, **more) -> command.Result:
        hit, self.count = self.count == self.at, self.count + 1
        if hit and self.how == "killed before":
            raise Killed
        if hit and self.how == "fails":
            raise Failed("the command failed")
        result = super().run(argv, **more)
        self.look(" ".join(argv))
        if hit and self.how == "killed after":
            raise Killed
        if hit:  # it did its work, and was not heard of in time
            raise Failed("no answer in time")
        return result

    @property
    def value(self) -> str:
        return (self.folder / "threads").read_text().strip()

    def look(self, after: str) -> None:
        if self.value == "32" and not self.armed:
            self.unguarded.append(after)


@pytest.fixture
def timed(settings, monkeypatch) -> TimedBox:  # noqa: F811
    found = TimedBox(settings)
    monkeypatch.setattr(command, "run", found.run)
    return found


def attempt(request: SwitchSetting) -> None:
    with suppress(Failed, Killed):
        request.read()


def test_timer_is_renewed_without_a_moment_between(timed):
    for _part in range(5):
        ON.read()
        assert len(timed.armed) == 1
    OFF.read()
    assert timed.unguarded == []
    assert (timed.value, timed.armed, trial_file().exists()) == ("16", set(), False)


@pytest.mark.parametrize("how", ["fails", "is not heard of", "killed before", "killed after"])
@pytest.mark.parametrize("parts", [0, 1, 2])
def test_timer_stands_wherever_a_request_ends_early(timed, how, parts):
    """Also in the request that follows; and what comes after it goes on as if nothing had been."""
    for first in range(MOST):
        for second in (-1, *range(MOST)):
            for request in (ON, OFF):
                for _part in range(parts):
                    ON.read()
                timed.hit(first, how)
                attempt(request)
                timed.hit(second, how)
                attempt(ON)
                timed.hit(-1, "")
                ON.read()
                assert (timed.value, len(timed.armed)) == ("32", 1), (first, second)
                OFF.read()
                assert (timed.value, timed.armed) == ("16", set()), (first, second)
    assert timed.unguarded == []


def test_timer_that_nobody_knows_of_is_stopped_with_the_trial(timed):
    ON.read()
    timed.armed.update(switch.UNITS)
    ON.read()
    assert len(timed.armed) == 1
    assert timed.unguarded == []


def test_nothing_is_renewed_where_it_is_not_known_which_timer_stands(timed, monkeypatch):
    ON.read()
    stood = set(timed.armed)
    monkeypatch.setattr(timed, "systemctl", lambda *_words: "")
    with pytest.raises(Failed):
        ON.read()
    assert timed.armed == stood
