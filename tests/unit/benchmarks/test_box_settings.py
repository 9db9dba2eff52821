"""Settings that are tried: what is there, what is tried, the timer that puts it back, and what is kept."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from appliance import command
from appliance.benchmarks.box_settings import catalogue, switch
from appliance.benchmarks.box_settings.catalogue import SETTINGS, read_setting
from appliance.benchmarks.box_settings.keep import KeepSetting, PutSettingBack
from appliance.benchmarks.box_settings.switch import ReadSettings, SwitchSetting
from appliance.errors import Failed, Refused
from appliance.operation import checked_plan
from appliance.system import mtu, paths, service_start
from tests.reasons import expect_refusal
from tests.unit.made import box
from tests.unit.pools.test_create import Working

# As Debian 13 (Linux 6.12) has them.
USUAL = "4096 131072 6291456, 4096 16384 4194304"
TRIED = "4096 131072 16777216, 4096 16384 16777216"


@pytest.fixture(autouse=True)
def settings(tmp_path, monkeypatch) -> Path:
    """The kernel's files, with the values of Debian 13; the folder with them."""
    (tmp_path / "tcp_rmem").write_text("4096\t131072\t6291456\n")
    (tmp_path / "tcp_wmem").write_text("4096\t16384\t4194304\n")
    (tmp_path / "threads").write_text("16\n")
    monkeypatch.setattr(catalogue, "TCP", tmp_path)
    monkeypatch.setattr(catalogue, "NFS_THREADS", tmp_path / "threads")
    for tag, setting in SETTINGS.items():
        monkeypatch.setitem(SETTINGS, tag, replace(setting, file=tmp_path / "etc" / f"{tag}.conf"))
    monkeypatch.setattr(paths, "RUN", tmp_path)
    monkeypatch.setattr(service_start, "SYSTEMD", tmp_path)
    return tmp_path


@pytest.fixture
def ran(settings, monkeypatch) -> list[tuple[str, ...]]:
    """The commands; those that set a value do so."""
    told: list[tuple[str, ...]] = []

    def run(argv, **_more):
        told.append(tuple(argv))
        if argv[0] == "sysctl":
            for word in argv[3:]:
                name, _, value = word.partition("=")
                (settings / name.rpartition(".")[2]).write_text(value.replace(" ", "\t") + "\n")
        if argv[0] == "nfsdctl":
            (settings / "threads").write_text(f"{argv[-1]}\n")
        return command.Result(tuple(argv), 0, "", "", 0.0)

    monkeypatch.setattr(command, "run", run)
    return told


def do(operation) -> None:
    for step in checked_plan(operation, box()).steps:
        step.run(Working())


# --- what is tried --------------------------------------------------------------------------------------------------
def test_larger_buffers_are_tried_and_more_threads():
    assert [(one.value, one.tried) for one in ReadSettings().read()] == [(USUAL, TRIED), ("16", "32")]
    assert str(SETTINGS["tcp-buffers"].show(USUAL)) == "up to 6.29 MB for receiving, 4.19 MB for sending"


@pytest.mark.parametrize(("tag", "file", "text", "code"), [("tcp-buffers", "tcp_rmem", "4096 131072 33554432", "tcp-buffers-large-already"), ("nfs-threads", "threads", "64", "nfs-threads-many-already")])  # fmt: skip
def test_what_is_large_already_is_not_tried(settings, tag, file, text, code):
    (settings / file).write_text(f"{text}\n")
    (settings / "tcp_wmem").write_text("4096 16384 16777216\n")
    found = read_setting(tag)
    assert found.tried == ""
    assert found.refusal
    assert found.refusal["code"] == code


@pytest.mark.parametrize("text", [None, "", "0\n"])
def test_threads_are_not_tried_where_nfs_does_not_run(settings, text):
    (settings / "threads").unlink()
    if text is not None:
        (settings / "threads").write_text(text)
    found = read_setting("nfs-threads")
    assert (found.value, found.tried) == ("", "")
    assert found.refusal
    assert found.refusal["code"] == "setting-nfs-off"


# --- switching ------------------------------------------------------------------------------------------------------
def test_timer_is_armed_before_the_value_changes_and_stopped_after_it_is_back(ran):
    on = SwitchSetting(setting="tcp-buffers", on=True).read()
    assert (on.value, on.was_switched) == (TRIED, False)
    armed = next(at for at, argv in enumerate(ran) if argv[0] == "systemd-run")
    changed = next(at for at, argv in enumerate(ran) if argv[0] == "sysctl")
    assert armed < changed
    # The timer runs what sets the former value, without anything of Larder.
    assert ran[armed][-5:] == SETTINGS["tcp-buffers"].argv(USUAL)
    ran.clear()
    back = SwitchSetting(setting="tcp-buffers", on=False).read()
    assert (back.value, back.was_switched) == (USUAL, True)
    assert [argv[0] for argv in ran] == ["sysctl", "systemctl"]
    assert switch.read_trial() is None


def test_switching_twice_is_once(ran):
    SwitchSetting(setting="nfs-threads", on=True).read()
    assert SwitchSetting(setting="nfs-threads", on=True).read().value == "32"
    assert [argv for argv in ran if argv[0] == "nfsdctl"] == [("nfsdctl", "threads", "32")]
    for was in (True, False):
        assert SwitchSetting(setting="nfs-threads", on=False).read() == switch.SwitchedSetting("16", was)


def test_what_the_timer_has_put_back_is_told(ran, settings, monkeypatch):
    SwitchSetting(setting="nfs-threads", on=True).read()
    (settings / "threads").write_text("16\n")
    assert SwitchSetting(setting="nfs-threads", on=False).read().was_switched is False


def test_two_settings_are_not_tried_at_once(ran):
    SwitchSetting(setting="nfs-threads", on=True).read()
    with expect_refusal("setting-trial-runs"):
        SwitchSetting(setting="tcp-buffers", on=True).read()


def test_value_that_the_box_does_not_take_leaves_nothing_behind(ran, settings, monkeypatch):
    real = command.run

    def run(argv, **more):
        return command.Result(tuple(argv), 0, "", "", 0.0) if argv[0] == "nfsdctl" else real(argv, **more)

    monkeypatch.setattr(command, "run", run)
    with pytest.raises(Failed, match="did not take it"):
        SwitchSetting(setting="nfs-threads", on=True).read()
    assert not switch.trial_file().exists()
    assert ran[-1] == ("systemctl", "stop", f"{switch.UNIT}.timer")


def test_trial_file_that_is_nonsense_is_none(ran):
    switch.trial_file().write_text('{"setting": "no-such", "former": "", "tried": "", "until": 1e12}')
    assert switch.read_trial() is None


def test_other_settings_are_refused():
    with pytest.raises(Refused):
        SwitchSetting(setting="kernel.panic", on=True)


def test_container_is_refused(monkeypatch, settings, ran):
    monkeypatch.setattr(service_start, "SYSTEMD", settings / "none")
    with pytest.raises(Refused):
        SwitchSetting(setting="tcp-buffers", on=True).read()
    assert ran == []


# --- keeping --------------------------------------------------------------------------------------------------------
KEEP = KeepSetting(setting="tcp-buffers", value=TRIED, former=USUAL)
BACK = PutSettingBack(setting="tcp-buffers", value=USUAL, former=TRIED)


def test_kept_setting_is_set_at_each_start_until_it_is_put_back(ran, settings):
    do(KEEP)
    file = SETTINGS["tcp-buffers"].file
    text = file.read_text()
    assert "net.ipv4.tcp_rmem=4096 131072 16777216\nnet.ipv4.tcp_wmem=4096 16384 16777216\n" in text
    assert file.stat().st_mode & 0o777 == 0o644
    assert read_setting("tcp-buffers").kept == USUAL
    assert KEEP.probe("keep", box())
    do(BACK)
    assert not file.exists()
    assert read_setting("tcp-buffers").value == USUAL
    assert BACK.probe("back", box())


def test_setting_kept_twice_goes_back_to_what_it_was_at_first(ran):
    do(KeepSetting(setting="nfs-threads", value="32", former="16"))
    do(KeepSetting(setting="nfs-threads", value="64", former="32"))
    assert read_setting("nfs-threads").kept == "16"


def test_value_is_the_one_that_was_tried_and_no_other():
    for value, former in (("48", "16"), ("64; reboot", "32"), ("32", "$(reboot)"), ("", "")):
        with pytest.raises(Refused):
            KeepSetting(setting="nfs-threads", value=value, former=former)


def test_keeping_is_refused_where_the_box_has_another_value_now_or_something_is_tried(ran, settings):
    (settings / "threads").write_text("8\n")
    with expect_refusal("setting-changed-since"):
        do(KeepSetting(setting="nfs-threads", value="32", former="16"))
    SwitchSetting(setting="tcp-buffers", on=True).read()
    with expect_refusal("setting-trial-runs"):
        do(KEEP)


def test_file_that_somebody_else_wrote_says_nothing_of_before(settings):
    file = SETTINGS["nfs-threads"].file
    file.parent.mkdir()
    file.write_text("[nfsd]\nthreads=24\n")
    assert read_setting("nfs-threads").kept == ""


def test_trial_ends_with_its_time(ran, monkeypatch):
    SwitchSetting(setting="nfs-threads", on=True).read()
    now = mtu.now()
    monkeypatch.setattr(mtu, "now", lambda: now + switch.SECONDS + 1)
    assert switch.read_trial() is None
