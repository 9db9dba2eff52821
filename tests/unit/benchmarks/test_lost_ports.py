"""Settings that are kept for a network port which got another name, or is not there any more."""

from __future__ import annotations

from pathlib import Path

import pytest

from appliance.benchmarks.box_settings.catalogue import SETTINGS, read_setting
from appliance.benchmarks.box_settings.keep import KeepSetting, PutSettingBack
from appliance.benchmarks.box_settings.lost_ports import ForgetPort
from appliance.errors import Refused
from appliance.operation import checked_plan
from appliance.system import mtu, paths
from tests.reasons import expect_refusal
from tests.unit.benchmarks.test_box_settings import ROUTES, do, machine, settings  # noqa: F401  # fixtures
from tests.unit.made import box


@pytest.fixture
def kept(machine, settings, monkeypatch) -> Path:  # noqa: F811
    """Interrupts are kept for eth0, and an MTU; the folder of the agent."""
    monkeypatch.setattr(paths, "AGENT_STATE", settings / "state")
    before = read_setting("interrupts")
    do(KeepSetting(setting="interrupts", value=before.tried, former=before.value))
    mtu.confirmed_file("eth0").parent.mkdir(parents=True)
    mtu.confirmed_file("eth0").write_text("9000\n")
    return settings


def rename(folder: Path, *, address: str = "") -> None:
    """What was eth0 is enp3s0 after the next start; with another address where the card is another one."""
    (folder / "net" / "eth0").rename(folder / "net" / "enp3s0")
    if address:
        (folder / "net" / "enp3s0" / "address").write_text(f"{address}\n")
    (folder / "route").write_text(ROUTES.replace("eth0", "enp3s0"))
    (folder / "interfaces").write_text("auto enp3s0\niface enp3s0 inet dhcp\n")


def test_nothing_is_lost_as_long_as_the_port_is_there(kept):
    assert [read_setting(tag).lost for tag in ("interrupts", "mtu")] == [(), ()]
    for tag in ("interrupts", "mtu"):
        with expect_refusal("port-not-lost"):
            do(ForgetPort(setting=tag, port="eth0"))
    assert SETTINGS["interrupts"].file.exists()
    assert mtu.confirmed_file("eth0").exists()


def test_setting_that_udev_knows_by_address_goes_on_under_the_new_name_and_can_be_put_back(kept, machine):  # noqa: F811
    rename(kept)
    found = read_setting("interrupts")
    assert (found.value, found.kept, found.lost) == ("enp3s0 100 us", "enp3s0 3 us", ())
    do(PutSettingBack(setting="interrupts", value=found.kept, former=found.value))
    assert machine.ran[-1][:3] == ("ethtool", "--json", "-c")
    assert ("ethtool", "-C", "enp3s0", "rx-usecs", "3") in machine.ran
    assert not SETTINGS["interrupts"].file.exists()


def test_mtu_of_a_port_that_was_renamed_is_told_and_forgotten(kept):
    rename(kept)
    assert read_setting("mtu").lost == ("eth0",)
    forget = ForgetPort(setting="mtu", port="eth0")
    assert not forget.probe("forget", box())
    do(forget)
    assert forget.probe("forget", box())
    assert not mtu.confirmed_file("eth0").exists()
    assert read_setting("mtu").lost == ()


def test_setting_of_a_card_that_was_replaced_is_told_and_forgotten(kept):
    rename(kept, address="52:54:00:99:99:99")
    found = read_setting("interrupts")
    assert (found.kept, found.lost) == ("eth0 3 us", ("eth0",))
    do(ForgetPort(setting="interrupts", port="eth0"))
    assert not SETTINGS["interrupts"].file.exists()
    assert mtu.confirmed_file("eth0").exists()
    assert (read_setting("interrupts").kept, read_setting("interrupts").lost) == ("", ())


def test_bridge_with_the_address_of_the_port_does_not_stand_for_it(kept):
    rename(kept, address="52:54:00:99:99:99")
    bridge = kept / "net" / "br0"
    bridge.mkdir()
    (bridge / "address").write_text("52:54:00:12:34:57\n")
    assert read_setting("interrupts").lost == ("eth0",)


def test_plan_names_the_file_and_other_words_are_refused(kept):
    plan = checked_plan(ForgetPort(setting="interrupts", port="eth0"), box())
    assert plan.steps[0].affects == (str(SETTINGS["interrupts"].file),)
    for setting, port in (("interrupts", "../x"), ("kernel", "eth0"), ("mtu", "")):
        with pytest.raises(Refused):
            ForgetPort(setting=setting, port=port)
