"""Settings that are tried: what is there, what is tried, the timer that puts it back, and what is kept."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from msgspec.structs import replace

from appliance import command
from appliance.benchmarks.box_settings import nfs_threads, port_settings, samba_options, switch, tcp_buffers
from appliance.benchmarks.box_settings.catalogue import SETTINGS, read_setting
from appliance.benchmarks.box_settings.catalogue_entry import NOWHERE
from appliance.benchmarks.box_settings.keep import KeepSetting, PutSettingBack
from appliance.benchmarks.box_settings.switch import ReadSettings, SwitchSetting
from appliance.errors import Failed, Refused
from appliance.operation import checked_plan
from appliance.system import mtu, paths, service_start
from appliance.system.trial_record import trial_file
from tests.reasons import expect_refusal
from tests.unit.made import box, recorded_text
from tests.unit.pools.test_create import Working

SECONDS = 30 * 60
STOPPED = ("systemctl", "stop", *(f"{unit}.timer" for unit in switch.UNITS))
# proc(5); the second is the way to this network, the first to all others.
ROUTES = """Iface	Destination	Gateway 	Flags	RefCnt	Use	Metric	Mask		MTU	Window	IRTT
eth0	00000000	0202000A	0003	0	0	0	00000000	0	0	0
eth0	0002000A	00000000	0001	0	0	0	00FFFFFF	0	0	0
"""
# As Debian 13 (Linux 6.12) has them.
USUAL = "4096 131072 6291456, 4096 16384 4194304"
TRIED = "4096 131072 16777216, 4096 16384 16777216"


@pytest.fixture(autouse=True)
def settings(tmp_path, monkeypatch) -> Path:
    """The kernel's files, with the values of Debian 13; the folder with them."""
    (tmp_path / "tcp_rmem").write_text("4096\t131072\t6291456\n")
    (tmp_path / "tcp_wmem").write_text("4096\t16384\t4194304\n")
    (tmp_path / "threads").write_text("16\n")
    monkeypatch.setattr(tcp_buffers, "TCP", tmp_path)
    monkeypatch.setattr(nfs_threads, "THREADS", tmp_path / "threads")
    (tmp_path / "route").write_text(ROUTES)
    port = tmp_path / "net" / "eth0"
    (port / "device").mkdir(parents=True)
    (port / "carrier").write_text("1\n")
    (port / "carrier_changes").write_text("2\n")
    monkeypatch.setattr(port_settings, "SECONDS_QUIET", 0.0)
    (port / "address").write_text("52:54:00:12:34:57\n")
    (port / "mtu").write_text("1500\n")
    (tmp_path / "interfaces").write_text("auto eth0\niface eth0 inet dhcp\n")
    for name, path in {"PORTS": "net", "INTERFACES": "interfaces", "HOOK": "interfaces"}.items():
        monkeypatch.setattr(mtu, name, tmp_path / path)
    monkeypatch.setattr(port_settings, "PORTS", tmp_path / "net")
    monkeypatch.setattr(port_settings, "ROUTES", tmp_path / "route")
    for tag, setting in SETTINGS.items():
        if setting.file != NOWHERE:
            monkeypatch.setitem(SETTINGS, tag, replace(setting, file=tmp_path / "etc" / f"{tag}.conf"))
    monkeypatch.setattr(paths, "RUN", tmp_path)
    monkeypatch.setattr(service_start, "SYSTEMD", tmp_path)
    return tmp_path


class Box:
    """The commands that were run. Those that set a value do so, and those that ask are answered."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ran: list[tuple[str, ...]] = []
        self.armed: set[str] = set()  # timers of systemd
        self.port = {letter: json.loads(recorded_text(f"ethtool-{letter}-e1000e-6.14.json"))[0] for letter in "gac"}
        self.link = json.loads(recorded_text("ip-link-details-veth-6.1.json"))
        self.samba = {"aio read size": "1", "aio write size": "1", "socket options": "TCP_NODELAY"}

    def run(self, argv, **_more) -> command.Result:
        self.ran.append(tuple(argv))
        answer = getattr(self, argv[0].rpartition("/")[2].replace("-", "_"), lambda *_words: "")(*argv[1:])
        return command.Result(tuple(argv), 0, answer or "", "", 0.0)

    def systemd_run(self, *words: str) -> None:
        (unit,) = (word.removeprefix("--unit=") for word in words if word.startswith("--unit="))
        if unit in self.armed:
            raise Failed(f"Unit {unit}.timer already exists")
        self.armed.add(unit)

    def systemctl(self, verb: str, *units: str) -> str:
        names = [unit.removesuffix(".timer") for unit in units]
        if verb == "is-active":
            return "".join("active\n" if name in self.armed else "inactive\n" for name in names)
        assert verb == "stop"
        self.armed -= {*names}
        return ""

    def sysctl(self, *words: str) -> None:
        for word in words[2:]:
            name, _, value = word.partition("=")
            (self.folder / name.rpartition(".")[2]).write_text(value.replace(" ", "\t") + "\n")

    def nfsdctl(self, _threads: str, count: str) -> None:
        (self.folder / "threads").write_text(f"{count}\n")

    def ethtool(self, letter: str, *words: str) -> str:
        if letter == "--json":
            return json.dumps([self.port[words[0][1]]])
        names = {"autoneg": "autonegotiate"}
        for name, value in zip(words[1::2], words[2::2], strict=True):
            self.port[letter[1].lower()][names.get(name, name)] = int(value) if value.isdigit() else value == "on"
        return ""

    def ip(self, *words: str) -> str:
        if words[0] == "-json":
            return json.dumps(self.link)
        assert words[:3] == ("link", "set", "dev")
        (self.folder / "net" / words[3] / "mtu").write_text(f"{words[5]}\n")
        return ""

    def python(self, *words: str) -> None:
        assert samba_options.main(list(words[3:])) == 0

    def testparm(self, _short: str, asked: str) -> str:
        found = self.samba[asked.removeprefix("--parameter-name=")]
        for path in map(samba_options.tried_file, samba_options.OPTIONS):
            for line in path.read_text().splitlines() if path.exists() else ():
                name, _, value = line.strip().partition(" = ")
                found = value if name == asked.removeprefix("--parameter-name=") else found
        return f"{found}\n"


@pytest.fixture
def machine(settings, monkeypatch) -> Box:
    found = Box(settings)
    monkeypatch.setattr(command, "run", found.run)
    return found


@pytest.fixture
def ran(machine) -> list[tuple[str, ...]]:
    return machine.ran


def do(operation) -> None:
    for step in checked_plan(operation, box()).steps:
        step.run(Working())


# --- what is tried --------------------------------------------------------------------------------------------------
def test_each_setting_says_what_it_is_and_what_is_tried(ran):
    assert [(one.tag, one.value, one.tried) for one in ReadSettings().read()] == [
        ("tcp-buffers", USUAL, TRIED),
        ("mtu", "eth0 mtu 1500 of 9216", "eth0 mtu 9000 of 9216"),
        ("ring-sizes", "eth0 rx 256 of 4096, tx 256 of 4096", "eth0 rx 4096 of 4096, tx 4096 of 4096"),
        ("flow-control", "eth0 autoneg on rx on tx on", "eth0 autoneg off rx off tx off"),
        ("interrupts", "eth0 3 us", "eth0 100 us"),
        ("nfs-threads", "16", "32"),
        ("smb-async", "1 1", "0 0"),
        ("smb-socket", "TCP_NODELAY", "TCP_NODELAY SO_RCVBUF=131072 SO_SNDBUF=131072"),
    ]
    assert str(SETTINGS["tcp-buffers"].show(USUAL)) == "up to 6.29 MB for receiving, 4.19 MB for sending"


@pytest.mark.parametrize(
    ("tag", "file", "text", "code"),
    [
        ("tcp-buffers", "tcp_rmem", "4096 131072 33554432", "tcp-buffers-large-already"),
        ("nfs-threads", "threads", "64", "nfs-threads-many-already"),
    ],
)
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


def test_nothing_is_left_of_a_trial_that_somebody_else_put_back(ran, settings):
    SwitchSetting(setting="nfs-threads", on=True).read()
    (settings / "threads").write_text("16\n")
    ran.clear()
    SwitchSetting(setting="nfs-threads", on=False).read()
    assert ran == [STOPPED]
    assert not trial_file().exists()


@pytest.mark.parametrize("tag", ["nfs-threads", "tcp-buffers"])
def test_value_that_is_still_tried_after_its_time_is_put_back(ran, settings, monkeypatch, tag):
    """The timer may be late, or was stopped: whoever asks next puts it back, also for another setting."""
    SwitchSetting(setting="nfs-threads", on=True).read()
    now = mtu.now()
    monkeypatch.setattr(mtu, "now", lambda: now + SECONDS + 1)
    answer = SwitchSetting(setting=tag, on=False).read()
    assert (settings / "threads").read_text() == "16\n"
    assert answer.was_switched is (tag == "nfs-threads")


def test_tried_value_is_never_taken_for_the_former_one(ran, settings, monkeypatch):
    SwitchSetting(setting="nfs-threads", on=True).read()
    now = mtu.now()
    monkeypatch.setattr(mtu, "now", lambda: now + SECONDS + 1)
    assert SwitchSetting(setting="nfs-threads", on=True).read() == switch.SwitchedSetting("32", was_switched=True)
    trial = switch.read_trial()
    assert trial
    assert (trial.former, trial.until) == ("16", now + SECONDS + 1 + SECONDS)


def test_timer_stands_as_long_as_it_is_not_known_what_the_box_has(ran, settings):
    SwitchSetting(setting="nfs-threads", on=True).read()
    (settings / "threads").write_text("0\n")
    ran.clear()
    with expect_refusal("setting-nfs-off"):
        SwitchSetting(setting="nfs-threads", on=False).read()
    assert ran == []
    assert switch.read_trial()
    with expect_refusal("setting-trial-runs"):
        SwitchSetting(setting="tcp-buffers", on=True).read()


def test_timer_of_a_trial_that_is_over_does_not_put_back_what_is_kept(ran, settings):
    SwitchSetting(setting="nfs-threads", on=True).read()
    (settings / "threads").write_text("16\n")
    ran.clear()
    do(KeepSetting(setting="nfs-threads", value="32", former="16"))
    assert ran[0] == STOPPED
    assert switch.read_trial() is None


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
    assert not trial_file().exists()
    assert ran[-1] == STOPPED


def test_trial_file_that_is_nonsense_is_none(ran):
    trial_file().write_text('{"setting": "no-such", "former": "", "tried": "", "until": 1e12}')
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


def test_only_the_former_value_is_put_back(ran):
    """Without anything kept, any value would be set, with no timer to take it back."""
    with pytest.raises(Refused, match="changed since"):
        do(PutSettingBack(setting="nfs-threads", value="64", former="16"))
    do(KeepSetting(setting="nfs-threads", value="32", former="16"))
    do(PutSettingBack(setting="nfs-threads", value="16", former="32"))
    do(PutSettingBack(setting="nfs-threads", value="16", former="32"))  # again, after an interruption
    assert read_setting("nfs-threads").value == "16"


def test_setting_kept_twice_goes_back_to_what_it_was_at_first(ran):
    do(KeepSetting(setting="nfs-threads", value="32", former="16"))
    do(KeepSetting(setting="nfs-threads", value="64", former="32"))
    assert read_setting("nfs-threads").kept == "16"


def test_second_keep_that_fails_leaves_the_first_one(machine, settings, monkeypatch):
    do(KeepSetting(setting="nfs-threads", value="32", former="16"))
    before = SETTINGS["nfs-threads"].file.read_text()
    monkeypatch.setattr(machine, "nfsdctl", lambda *_words: "")
    with pytest.raises(Failed):
        do(KeepSetting(setting="nfs-threads", value="64", former="32"))
    assert SETTINGS["nfs-threads"].file.read_text() == before


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
    monkeypatch.setattr(mtu, "now", lambda: now + SECONDS + 1)
    assert switch.read_trial() is None


# --- the network port -----------------------------------------------------------------------------------------------
def test_port_of_the_default_route_is_tried_and_no_bridge(settings, ran):
    (settings / "net" / "eth0" / "device").rmdir()
    found = read_setting("ring-sizes")
    assert found.refusal
    assert found.refusal["code"] == "setting-port-combined"
    (settings / "route").write_text(ROUTES.splitlines()[0])
    found = read_setting("ring-sizes")
    assert found.refusal
    assert found.refusal["code"] == "setting-port-unknown"
    assert ran == []


@pytest.mark.parametrize("tag", ["ring-sizes", "flow-control", "interrupts"])
def test_setting_that_the_driver_does_not_have_is_not_tried_and_hides_no_other(machine, monkeypatch, tag):
    def silent(*_words: str) -> str:
        raise command.CommandFailed(command.Result(("ethtool",), 75, "", "netlink error: Operation not supported", 0.0))

    monkeypatch.setattr(machine, "ethtool", silent)
    found = {one.tag: one for one in ReadSettings().read()}
    refusal = found[tag].refusal
    assert refusal
    assert refusal["code"] == "setting-port-silent"
    assert found["tcp-buffers"].tried


@pytest.mark.parametrize(
    ("letter", "change", "tag", "code"),
    [
        ("g", {"rx": 4096, "tx": 4096}, "ring-sizes", "port-rings-largest"),
        ("g", {"rx": None}, "ring-sizes", "setting-port-silent"),
        ("c", {"adaptive-rx": True}, "interrupts", "port-interrupts-adapt"),
        ("c", {"rx-usecs": None}, "interrupts", "setting-port-silent"),
    ],
)
def test_port_that_is_set_so_already_or_says_nothing_is_not_tried(machine, letter, change, tag, code):
    machine.port[letter].update(change)
    found = read_setting(tag)
    assert found.tried == ""
    assert found.refusal
    assert found.refusal["code"] == code


@pytest.mark.parametrize(
    ("tag", "shown"),
    [
        ("ring-sizes", "room for 4096 received frames and 4096 to be sent in eth0"),
        ("flow-control", "off at eth0"),
        ("interrupts", "100 µs at eth0"),
    ],
)
def test_port_is_switched_and_put_back(machine, tag, shown):
    before = read_setting(tag).value
    on = SwitchSetting(setting=tag, on=True).read()
    assert str(SETTINGS[tag].show(on.value)) == shown
    assert SwitchSetting(setting=tag, on=False).read() == switch.SwitchedSetting(before, was_switched=True)


def test_port_without_link_after_the_change_is_put_back_by_its_timer(machine, settings, monkeypatch):
    monkeypatch.setattr(port_settings, "SECONDS_TO_LINK", 0.0)
    (settings / "net" / "eth0" / "carrier").write_text("0\n")
    machine.ran.clear()
    with pytest.raises(Failed, match="lost its link"):
        SwitchSetting(setting="ring-sizes", on=True).read()
    assert machine.port["g"]["rx"] == 256
    # The link has not come back with the former value, so the timer tries that once more.
    assert len(machine.armed) == 1
    assert machine.ran[-1][:2] == ("ethtool", "-G")


@pytest.mark.parametrize("gone", ["link", "address"])
def test_link_that_is_lost_a_moment_after_the_change_is_waited_for(settings, monkeypatch, gone):
    readings = [("1", "2"), ("1", "2"), ("0", "3"), ("0", "3"), *[("1", "4")] * 6]
    seconds, port = 100.0, settings / "net" / "eth0"

    def show() -> None:
        link, changes = readings[int(2 * (seconds - 100.0))]
        if gone == "link":
            (port / "carrier").write_text(link)
            (port / "carrier_changes").write_text(changes)
        else:
            # A DHCP client takes the way to other networks away meanwhile.
            (settings / "route").write_text(ROUTES if link == "1" else ROUTES.splitlines()[0])

    def sleep(_seconds: float) -> None:
        nonlocal seconds
        seconds += 0.5
        show()

    show()
    monkeypatch.setattr(port_settings, "time", SimpleNamespace(monotonic=lambda: seconds, sleep=sleep))
    monkeypatch.setattr(port_settings, "SECONDS_QUIET", 1.2)
    port_settings.wait_for_link("eth0 100 us")
    assert seconds == (103.5 if gone == "link" else 103.0)  # it was there again at 102


def test_port_without_a_way_to_other_networks_after_the_change_is_put_back(machine, settings, monkeypatch):
    monkeypatch.setattr(port_settings, "SECONDS_TO_LINK", 0.0)
    real = machine.ethtool

    def ethtool(letter: str, *words: str) -> str:
        if letter == "-G":
            (settings / "route").write_text(ROUTES.splitlines()[0])
        return str(real(letter, *words))

    monkeypatch.setattr(machine, "ethtool", ethtool)
    with pytest.raises(Failed, match="did not get its address back"):
        SwitchSetting(setting="ring-sizes", on=True).read()
    assert machine.port["g"]["rx"] == 256


def test_default_route_with_the_lowest_metric_is_taken(settings, ran):
    lines = ROUTES.splitlines()
    other = lines[1].replace("eth0", "eth1").replace("\t0\t00000000", "\t100\t00000000")
    (settings / "route").write_text("\n".join([lines[0], other, *lines[1:]]))
    assert port_settings.find_port() == "eth0"


def test_kept_port_setting_is_a_rule_for_its_hardware_address(machine):
    do(KeepSetting(setting="interrupts", value="eth0 100 us", former="eth0 3 us"))
    assert SETTINGS["interrupts"].file.read_text().splitlines()[1] == (
        'ACTION=="add", SUBSYSTEM=="net", ENV{DEVTYPE}=="", ATTR{address}=="52:54:00:12:34:57",'
        ' RUN+="/usr/sbin/ethtool -C $name rx-usecs 100"'
    )
    assert read_setting("interrupts").kept == "eth0 3 us"


@pytest.mark.parametrize("value", ["eth0 100 us; reboot", "-s 100 us", "eth0/../x 100 us", "eth0 100"])
def test_port_settings_take_no_other_words(value):
    with pytest.raises(Refused):
        KeepSetting(setting="interrupts", value=value, former="eth0 3 us")


# --- Samba ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("tag", ["smb-async", "smb-socket"])
def test_option_of_samba_is_tried_from_memory_and_kept_in_a_file(machine, settings, tag):
    before = read_setting(tag)
    SwitchSetting(setting=tag, on=True).read()
    assert read_setting(tag).value == before.tried
    assert ("smbcontrol", "all", "reload-config") in machine.ran
    assert not SETTINGS[tag].file.exists()
    SwitchSetting(setting=tag, on=False).read()
    assert read_setting(tag).value == before.value
    assert not any(
        samba_options.tried_file(name).exists() for name in samba_options.OPTIONS
    )  # what is as before needs no file
    do(KeepSetting(setting=tag, value=before.tried, former=before.value))
    assert "[global]" in SETTINGS[tag].file.read_text()
    do(PutSettingBack(setting=tag, value=before.value, former=before.tried))
    assert read_setting(tag).value == before.value


@pytest.mark.parametrize("options", ["TCP_NODELAY SO_RCVBUF=8192", "IPTOS_LOWDELAY " * 5, "$(reboot)"])
def test_samba_with_options_of_its_owner_is_left_alone(machine, options):
    machine.samba["socket options"] = options
    found = read_setting("smb-socket")
    assert found.tried == ""
    assert found.refusal
    assert found.refusal["code"] == "smb-socket-set-already"


def test_samba_reads_the_files_that_are_written():
    text = (Path(__file__).resolve().parents[3] / "deploy/samba/larder-options.conf").read_text()
    included = [line.split(" = ")[1] for line in text.splitlines() if line.strip().startswith("include")]
    kept = [Path("/etc/samba/larder-async.conf"), Path("/etc/samba/larder-socket.conf")]
    assert included == [*map(str, kept), "/run/larder/samba-async.conf", "/run/larder/samba-socket.conf"]
    assert [samba_options.kept_file(name) for name in samba_options.OPTIONS] == kept
    assert [samba_options.tried_file(name).name for name in samba_options.OPTIONS] == [
        "samba-async.conf",
        "samba-socket.conf",
    ]


@pytest.mark.parametrize(
    "words", [[], ["async"], ["async", "1"], ["other", "1 1"], ["socket", "x\n   path = /"], ["async", "1 1", "2"]]
)
def test_program_of_the_timer_writes_nothing_else(words):
    assert samba_options.main(words) == 2
    assert not any(samba_options.tried_file(name).exists() for name in samba_options.OPTIONS)
