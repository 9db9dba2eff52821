from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from appliance import command
from appliance.agent import protocol
from appliance.disks import locate
from appliance.errors import Failed
from tests.reasons import expect_refusal
from tests.unit.made import path_of


@pytest.fixture
def bay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A disk sdz of one MiB in a made-up /sys; its device folder."""
    device = tmp_path / "sys/sdz/device"
    device.mkdir(parents=True)
    (tmp_path / "sdz").write_bytes(bytes(2**20))
    (tmp_path / "ata-X").symlink_to(tmp_path / "sdz")
    monkeypatch.setattr(locate, "SYS_BLOCK", tmp_path / "sys")
    return device


pytestmark = pytest.mark.usefixtures("folders")


def test_the_bays_own_light_goes_on_and_off_again(bay, tmp_path):
    switch = bay / "enclosure_device:Slot 03/locate"
    switch.parent.mkdir()
    switch.write_text("0")
    with locate.switch_light(str(tmp_path / "ata-X")) as way:
        assert (way, switch.read_text()) == ("light", "1")
    assert switch.read_text() == "0"


def test_lamp_that_hangs_is_a_failure_and_the_next_one_starts_nothing(bay, tmp_path, monkeypatch):
    """As an enclosure that does not answer: the command outlives its time and holds the lamp's turn."""
    switch = bay / "enclosure_device:Slot 03/locate"
    switch.parent.mkdir()
    os.mkfifo(switch)  # whoever opens it to write waits for a reader
    monkeypatch.setattr(locate, "SECONDS_TO_SWITCH", 0.2)
    monkeypatch.setattr(command, "kill_process", lambda process: process.pid)
    with pytest.raises(Failed, match="answer"), locate.switch_light(str(tmp_path / "ata-X")):
        pytest.fail("it was said to be lit")
    monkeypatch.setattr(command, "run", lambda *_args, **_more: pytest.fail("a second command was started"))
    monkeypatch.setattr("time.monotonic", lambda: 10**9)
    with pytest.raises(Failed, match="answer"), locate.switch_light(str(tmp_path / "ata-X")):
        pytest.fail("it was said to be lit")
    os.close(os.open(switch, os.O_RDONLY | os.O_NONBLOCK))  # lets it end


def test_blinking_runs_in_a_process_of_its_own_that_can_be_left_behind(bay, tmp_path, commands):
    locate.blink_by_command(str(tmp_path / "ata-X"))
    (argv,) = commands.ran
    assert argv[-2:] == ["appliance.disks.locate", str(tmp_path / "ata-X")]


def test_a_light_that_the_hardware_hides_is_asked_of_ledctl(bay, tmp_path, commands):
    with pytest.raises(RuntimeError), locate.switch_light(str(tmp_path / "ata-X")) as way:
        assert way == "perhaps"
        raise RuntimeError
    assert commands.ran == [["ledctl", "locate=/dev/sdz"], ["ledctl", "locate_off=/dev/sdz"]]


def test_without_any_light_the_disk_blinks_by_being_read(bay, tmp_path, monkeypatch):
    def missing(*_args, **_more):
        raise Failed("ledctl is not installed on this system")

    monkeypatch.setattr("appliance.command.run", missing)
    with locate.switch_light(str(tmp_path / "ata-X")) as way:
        assert way == "blink"
    before = (tmp_path / "sdz").read_bytes()
    monkeypatch.setattr("os.O_DIRECT", 0)  # a file of this test's own file system may not take it
    assert locate.blink_disk(str(tmp_path / "ata-X"), seconds=0.05) > 0
    assert (tmp_path / "sdz").read_bytes() == before


def test_what_is_no_disk_is_refused(bay, tmp_path):
    with expect_refusal("disk-missing"), locate.switch_light(str(tmp_path / "gone")):
        pass
    with pytest.raises(Failed):
        locate.blink_disk(str(tmp_path / "gone"), seconds=0)


@pytest.mark.parametrize("way", ["blink", "perhaps"])
def test_the_agent_tells_the_way_at_once_and_then_does_it(monkeypatch, way):
    from contextlib import contextmanager

    happened: list[object] = []

    @contextmanager
    def lit(path):
        yield way

    monkeypatch.setattr(locate, "switch_light", lit)
    monkeypatch.setattr(locate, "blink_by_command", lambda path: happened.append(path))
    protocol.answer_request(json.dumps({"verb": "locate", "disk": path_of(1)}).encode(), happened.append)
    assert happened == [{"facts": {"way": way, "seconds": 30}}, path_of(1)]


@pytest.mark.parametrize("disk", ["/dev/sda", "../x", "/dev/disk/by-id/-rf", 5])
def test_the_agent_locates_only_what_has_a_stable_path(disk):
    said: list[dict[str, object]] = []
    protocol.answer_request(json.dumps({"verb": "locate", "disk": disk}).encode(), said.append)
    assert list(said[0]) == ["refused"]
