"""deploy/install: its functions run in bash over folders of the test, with stand-ins for what installs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from deploy.image.build import SHIPPED

INSTALL = Path(__file__).parents[3] / "deploy/install"

# As coreutils 9.5 and later have it, for machines whose mv is older.
MOVE = """#!/bin/bash
[ "$1" = --exchange ] || exec /bin/mv "$@"
exec {python} - "${{@: -2}}" <<'.'
import ctypes, os, sys
one, other = map(os.fsencode, sys.argv[1:])
if ctypes.CDLL(None, use_errno=True).renameat2(-100, one, -100, other, 2):
    sys.exit(os.strerror(ctypes.get_errno()))
.
"""

# Makes an environment whose "packages" are a copy of the lock file.
PYTHON = """#!/bin/bash
[ "$1" = -V ] && { echo Python 3.13.5; exit; }
venv=$3
mkdir -p "$venv/bin" "$venv/site"
cp "$STUBS/pip" "$venv/bin/pip"
cp "$STUBS/python-of-venv" "$venv/bin/python"
"""
PIP = """#!/bin/bash
[ "$1" = install ] || exit 0
[ -e "$STUBS/no-network" ] && { echo "Could not fetch" >&2; exit 1; }
cp "${@: -1}" "$(dirname "$0")/../packages"
"""
WITHOUT_OWNERS = """#!/bin/bash
words=()
while [ $# -gt 0 ]; do case $1 in -o | -g) shift ;; *) words+=("$1") ;; esac; shift; done
exec /usr/bin/install "${words[@]}"
"""
PYTHON_OF_VENV = """#!/bin/bash
case "$*" in
    *sysconfig*) echo "$(dirname "$0")/../site" ;;
    *"import appliance.agent.__main__"*) [ ! -e "$STUBS/broken" ] ;;
    *deploy.catalogues*) mkdir -p "$3" && cp web/static/version "$3/compiled" ;;
    *try_migration*) [ ! -e "$STUBS/odd-settings" ] ;;
    *collectstatic*) mkdir -p "$LARDER_STATIC" && cp web/static/version "$LARDER_STATIC/version" ;;
esac
"""


def checkout(place: Path, version: str) -> Path:
    """What deploy/install copies, each part of it saying its version."""
    for folder in ("appliance", "web/static", "workers", "templates", "deploy"):
        (place / folder).mkdir(parents=True)
    for file in (
        "requirements.lock",
        "manage.py",
        "web/static/version",
        "appliance/version",
        "deploy/compiled_code.py",
    ):
        (place / file).write_text(version)
    return place


class Box:
    """A folder in place of /opt/larder and commands in front of the system's."""

    def __init__(self, place: Path) -> None:
        self.place, self.opt, self.stubs = place, place / "opt", place / "stubs"
        self.opt.mkdir()
        self.stubs.mkdir()
        self.stub("mv", MOVE.format(python=sys.executable))
        self.stub("python3", PYTHON)
        self.stub("pip", PIP)
        self.stub("python-of-venv", PYTHON_OF_VENV)
        self.stub("setpriv", '#!/bin/bash\nwhile [[ $1 = --* ]]; do shift; done\nexec "$@"\n')
        for name in ("sync", "chown"):
            self.stub(name, "#!/bin/sh\n")

    def stub(self, name: str, text: str) -> None:
        (self.stubs / name).write_text(text)
        (self.stubs / name).chmod(0o755)

    def bash(self, script: str, *, here: Path | None = None) -> subprocess.CompletedProcess[str]:
        """Run functions of deploy/install. Everything that it started ends with it."""
        env = {"PATH": f"{self.stubs}:{os.environ['PATH']}", "STUBS": str(self.stubs), "LC_ALL": "C"}
        text = f"source {INSTALL}; opt={self.opt}; here={here or INSTALL.parents[1]}\n{script}"
        return subprocess.run(["setsid", "bash", "-c", text], env=env, capture_output=True, text=True, timeout=60)

    def update(self, here: Path, *, killed_at: int = 0) -> subprocess.CompletedProcess[str]:
        """Bring that checkout in; ``killed_at`` is the number of the command before which the power goes."""
        trap = f"set -T; n=0; trap '[ $((n+=1)) = {killed_at} ] && kill -9 -- -$$' DEBUG\n" if killed_at else ""
        return self.bash(f"{trap}python_environment; application; tidy", here=here)

    def parts(self) -> set[str]:
        """What the parts of Larder that would start now say their version is; "" for one that is not there."""
        paths = ("app/manage.py", "app/appliance/version", "venv/packages", "static/version")
        found = {(self.opt / path).read_text() if (self.opt / path).exists() else "" for path in paths}
        return found if os.access(self.opt / "venv/bin/python", os.X_OK) else found | {""}


@pytest.fixture
def box(tmp_path: Path) -> Box:
    return Box(tmp_path)


@pytest.fixture
def versions(tmp_path: Path) -> tuple[Path, Path]:
    return checkout(tmp_path / "old", "old"), checkout(tmp_path / "new", "new")


def test_update_replaces_all_parts_together(box, versions):
    old, new = versions
    assert box.update(old).returncode == 0
    assert box.parts() == {"old"}
    assert box.update(new).returncode == 0
    assert box.parts() == {"new"}
    assert (box.opt / "venv/site/larder.pth").read_text() == f"{box.opt}/app\n"


def test_boxes_that_were_paired_before_visits_were_noted_count_as_here_at_the_update(box, tmp_path):
    box.stub("install", WITHOUT_OWNERS)
    folder = tmp_path / "receive"
    folder.mkdir()
    for name in ("0badcafe", "1badcafe"):
        (folder / f"{name}.json").write_text("{}")
        assert box.bash(f"visits {folder}").returncode == 0
        # Later ones have a moment of their own: when they were paired.
        assert [one.name for one in (folder / "visits").iterdir()] == ["0badcafe"]


def test_update_compiles_the_translations(box, versions):
    box.update(versions[1])
    assert (box.opt / "app/web/locale/compiled").read_text() == "new"


def test_update_keeps_the_version_before_until_the_next(box, versions):
    old, new = versions
    box.update(old)
    box.update(new)
    assert (box.opt / "app.a/manage.py").read_text() == "old"
    assert (box.opt / "app.a/venv/packages").read_text() == "old"
    box.update(new)
    assert box.parts() == {"new"}
    assert len(list(box.opt.glob("venv-*"))) == 1


def test_update_without_network_leaves_the_old_version_and_says_so(box, versions):
    old, new = versions
    box.update(old)
    (box.stubs / "no-network").touch()
    done = box.update(new)
    assert done.returncode == 1
    assert box.parts() == {"old"}
    assert "could not be fetched" in done.stdout
    assert "was not changed and keeps running" in done.stdout
    (box.stubs / "no-network").unlink()
    assert box.update(new).returncode == 0
    assert box.parts() == {"new"}


def test_first_install_without_network_does_not_speak_of_an_old_version(box, versions):
    (box.stubs / "no-network").touch()
    done = box.update(versions[0])
    assert done.returncode == 1
    assert "runs on" not in done.stdout


def test_packages_that_do_not_import_are_not_taken_into_use(box, versions):
    old, new = versions
    box.update(old)
    (box.stubs / "broken").touch()
    done = box.update(new)
    assert done.returncode == 1
    assert "does not work" in done.stdout
    assert box.parts() == {"old"}


def test_a_version_that_cannot_migrate_the_settings_is_not_taken_into_use(box, versions):
    old, new = versions
    box.update(old)
    (box.stubs / "odd-settings").touch()
    done = box.update(new)
    assert done.returncode == 1
    assert "settings could not be brought to the new version" in done.stdout
    assert "was not changed and keeps running" in done.stdout
    assert box.parts() == {"old"}


def test_a_version_that_does_not_start_is_said_with_where_to_look(box):
    box.stub("systemctl", '#!/bin/sh\n[ "$1" != restart ]\n')
    for step in ("code", "all"):
        done = box.bash(f"running() {{ true; }}; systemd-tmpfiles() {{ true; }}; start {step}")
        assert done.returncode == 1
        assert "journalctl -u larder-prepare" in done.stdout


def killed_everywhere(box: Box, new: Path, prepare) -> int:
    """Cut the power before each command in turn; how many there were."""
    at = 0
    while True:
        at += 1
        prepare()
        done = box.update(new, killed_at=at)
        parts = box.parts()
        assert parts in ({"old"}, {"new"}), (at, parts)
        if done.returncode == 0:
            return at
        assert done.returncode == -9, done.stderr
        if at % 7 == 0:  # the next try does not mind what the cut left
            assert box.update(new).returncode == 0, at
            assert box.parts() == {"new"}, at


def test_power_cut_at_any_command_leaves_one_whole_version(box, versions, tmp_path):
    old, new = versions
    box.update(old)
    subprocess.run(["cp", "-a", box.opt, tmp_path / "saved"], check=True)

    def prepare() -> None:
        subprocess.run(["rm", "-rf", box.opt], check=True)
        subprocess.run(["cp", "-a", tmp_path / "saved", box.opt], check=True)

    assert killed_everywhere(box, new, prepare) > 30


def test_power_cut_while_folders_become_links_leaves_one_whole_version(box, versions):
    old, new = versions

    def prepare() -> None:
        """As version 0.1.0 left it: three folders."""
        subprocess.run(["rm", "-rf", box.opt], check=True)
        for name in ("venv/bin", "static"):
            (box.opt / name).mkdir(parents=True)
        subprocess.run(["cp", "-a", old, box.opt / "app"], check=True)
        (box.opt / "venv/packages").write_text("old")
        (box.opt / "static/version").write_text("old")
        python = box.opt / "venv/bin/python"
        python.write_text(PYTHON_OF_VENV)
        python.chmod(0o755)

    assert killed_everywhere(box, new, prepare) > 30
    assert not list(box.opt.glob("*.before"))


def test_power_cut_while_a_file_is_written_leaves_the_old_or_the_new(box, tmp_path):
    source, target = tmp_path / "source", tmp_path / "etc/zed.d/all-larder.sh"
    source.write_text("new")
    target.parent.mkdir(parents=True)
    for at in range(1, 30):
        target.write_text("old")
        trap = f"set -T; n=0; trap '[ $((n+=1)) = {at} ] && kill -9 -- -$$' DEBUG\n"
        done = box.bash(f"{trap}put 755 {source} {target}")
        assert target.read_text() in {"old", "new"}
        # A half-written file has a name that no daemon reads.
        assert {path.name for path in target.parent.iterdir()} <= {"all-larder.sh", ".all-larder.sh.new"}
        if done.returncode == 0:
            assert target.read_text() == "new"
            assert target.stat().st_mode & 0o777 == 0o755
            return
    raise AssertionError("it never came to its end")


# --- events of ZFS ----------------------------------------------------------------------------------------------
DEBIANS = "/usr/lib/zfs-linux/zed.d"
IDLE = ("all-syslog.sh", "history_event-zfs-list-cacher.sh")


def zed_scripts(box: Box, excluded: str = "history_event", cache: str = "", own: str = "") -> set[str]:
    """What is left of ZED's folder after the installer, of Debian's scripts or one (``own``)
    that is the administrator's."""
    folder = box.place / "zfs/zed.d"
    folder.mkdir(parents=True)
    for name in (*IDLE, "scrub_finish-notify.sh"):
        (folder / name).symlink_to(f"/root/{name}" if name == own else f"{DEBIANS}/{name}")
    (folder / "zed.rc").write_text(f'# comment\nZED_SYSLOG_SUBCLASS_EXCLUDE="{excluded}"\n')
    if cache:
        (box.place / "zfs/zfs-list.cache").mkdir()
        (box.place / "zfs/zfs-list.cache" / cache).touch()
    for _again in range(2):
        done = box.bash(f"idle_zed_scripts {box.place}/zfs")
        assert done.returncode == 0, done.stderr
    return {path.name for path in folder.iterdir()} - {"zed.rc", "scrub_finish-notify.sh"}


def test_scripts_that_do_nothing_with_history_events_are_not_started_for_them(box):
    assert zed_scripts(box) == set()


@pytest.mark.parametrize(
    ("changed", "stays"),
    [
        ({"excluded": ""}, "all-syslog.sh"),
        ({"cache": "tank"}, "history_event-zfs-list-cacher.sh"),
        ({"own": "all-syslog.sh"}, "all-syslog.sh"),
    ],
)
def test_what_an_administrator_uses_stays_in_the_folder_of_zed(box, changed, stays):
    assert zed_scripts(box, **changed) == {stays}


# --- services of packages ----------------------------------------------------------------------------------------
def quiet(box: Box, *, killed_at: int = 0) -> subprocess.CompletedProcess[str]:
    """Switch off what packages have switched on, below a folder of the test; the power may go before a command."""
    text = INSTALL.read_text()
    own = text[text.index("quiet() {") : text.index("\n}\n", text.index("quiet() {")) + 3]
    for place in ("/var/lib/larder-agent", "/etc/", "/proc/mdstat"):
        assert place in own
        own = own.replace(place, f"{box.place}{place}")
    (box.place / "quiet").write_text(own)
    trap = f"set -T; n=0; trap '[ $((n+=1)) = {killed_at} ] && kill -9 -- -$$' DEBUG\n" if killed_at else ""
    return box.bash(f"source {box.place}/quiet; running() {{ true; }}\n{trap}quiet")


@pytest.fixture
def fresh(box: Box) -> Box:
    """A box with the packages as Debian has them."""
    box.stub("systemctl", SYSTEMCTL)
    settings = box.place / "etc/netatalk/afp.conf"
    box.stub("dpkg-query", f'#!/bin/sh\necho " {settings} $(echo plain | md5sum | cut -c1-32)"\n')
    for folder in ("var/lib/larder-agent", "etc/netatalk", "etc/samba"):
        (box.place / folder).mkdir(parents=True)
    settings.write_text("plain\n")
    (box.place / "etc/samba/smb.conf").write_text("[global]\n")
    return box


OFF = {"netatalk.service", "nfs-server.service", "smbd.service", "ledmon.service"}


def switched_off(box: Box) -> set[str]:
    said = (box.stubs / "said-to-systemd").read_text().splitlines()
    return {word for line in said if line.startswith("disable") for word in line.split()} & OFF


def test_services_of_packages_are_switched_off_once(fresh):
    for _again in range(2):
        assert quiet(fresh).returncode == 0
    assert switched_off(fresh) == OFF
    said = (fresh.stubs / "said-to-systemd").read_text()
    assert all(said.count(f"disable -q {name}") == 1 for name in OFF - {"smbd.service"})
    assert (fresh.place / "etc/systemd/system/netatalk.service.d/larder.conf").exists()


def test_netatalk_that_somebody_has_set_up_stays(fresh):
    (fresh.place / "etc/netatalk/afp.conf").write_text("changed\n")
    for times in (1, 0):
        assert quiet(fresh).stdout.count("set up by hand") == times
    assert switched_off(fresh) == OFF - {"netatalk.service"}
    assert not (fresh.place / "etc/systemd/system/netatalk.service.d/larder.conf").exists()


@pytest.mark.parametrize(
    ("path", "text", "left_on"),
    [
        ("etc/ledmon.conf", "INTERVAL=30\n", True),
        ("proc/mdstat", "Personalities : [raid1]\nmd0 : active raid1 sda1[0]\n", True),
        ("proc/mdstat", "Personalities : [raid1]\nunused devices: <none>\n", False),
    ],
)
def test_ledmon_stays_where_somebody_has_set_it_up_or_it_has_arrays_to_show(fresh, path, text, left_on):
    (fresh.place / path).parent.mkdir(exist_ok=True)
    (fresh.place / path).write_text(text)
    assert quiet(fresh).returncode == 0
    assert switched_off(fresh) == (OFF - {"ledmon.service"} if left_on else OFF)


def test_power_cut_while_services_are_switched_off_leaves_none_for_one_set_up_by_hand(fresh):
    for at in range(1, 200):
        for path in ("var/lib/larder-agent/quieted", "etc/netatalk/larder.conf"):
            (fresh.place / path).unlink(missing_ok=True)
        (fresh.place / "etc/systemd/system/netatalk.service.d/larder.conf").unlink(missing_ok=True)
        (fresh.stubs / "said-to-systemd").unlink(missing_ok=True)
        cut = quiet(fresh, killed_at=at)
        assert quiet(fresh).returncode == 0
        assert switched_off(fresh) == OFF, at
        assert (fresh.place / "etc/systemd/system/netatalk.service.d/larder.conf").exists(), at
        if cut.returncode == 0:
            assert at > 20
            return
    raise AssertionError("it never came to its end")


# --- ssh --------------------------------------------------------------------------------------------------------
SYSTEMCTL = '#!/bin/sh\necho "$@" >> "$STUBS/said-to-systemd"\n'


def test_users_of_shares_are_denied_ssh_also_by_a_server_that_is_installed_later(box):
    box.stub("systemctl", SYSTEMCTL)
    for _again in range(2):
        done = box.bash(f"running() {{ true; }}; remote_login {box.place}/ssh")
        assert done.returncode == 0, done.stderr
        assert "DenyGroups larder-people\n" in (box.place / "ssh/sshd_config.d/larder.conf").read_text()
    # Nobody's stopped ssh server is started.
    assert (box.stubs / "said-to-systemd").read_text() == "try-reload-or-restart ssh.service\n"


# --- packages ---------------------------------------------------------------------------------------------------
DPKG_QUERY = r"""#!/bin/bash
case "$*" in
    *Provides*) sed -E 's/^([^ ]+) ?(.*)$/installed \1 \2/' "$STUBS/installed" ;;
    *"linux-image-*"*) grep -E '^linux-image-' "$STUBS/installed" | sed -E 's/^([^ ]+).*$/installed \1/' ;;
    *) grep -qE "^${@: -1}( |$)" "$STUBS/installed" && printf installed || exit 1 ;;
esac
"""


def asked_of_apt(box: Box, *installed: str) -> set[str]:
    """What deploy/install asks apt for on a box that has these packages (a name, and what it provides)."""
    (box.stubs / "installed").write_text("".join(f"{line}\n" for line in installed))
    box.stub("dpkg-query", DPKG_QUERY)
    box.stub("dpkg", "#!/bin/sh\necho amd64\n")
    box.stub("apt-cache", "#!/bin/sh\n")
    box.stub("systemctl", "#!/bin/sh\n")
    box.stub("uname", "#!/bin/sh\necho 6.12.48+deb13-amd64\n")
    box.stub("apt-get", '#!/bin/sh\necho "$@" > "$STUBS/asked"\n')
    done = box.bash("packages")
    assert done.returncode == 0, done.stderr
    return set((box.stubs / "asked").read_text().split())


def test_headers_of_every_later_kernel_are_asked_for(box):
    asked = asked_of_apt(box, "linux-image-amd64", "linux-image-6.12.48+deb13-amd64")
    assert {"linux-headers-amd64", "linux-headers-6.12.48+deb13-amd64"} <= asked


def test_headers_follow_the_kind_of_kernel(box):
    asked = asked_of_apt(box, "linux-image-cloud-amd64", "linux-image-6.12.48+deb13-cloud-amd64")
    assert "linux-headers-cloud-amd64" in asked
    assert "linux-headers-amd64" not in asked


def test_headers_are_asked_for_where_no_kernel_is_a_package(box):
    assert "linux-headers-amd64" in asked_of_apt(box, "bash")


def test_a_time_service_is_asked_for_where_there_is_none(box):
    assert "systemd-timesyncd" in asked_of_apt(box, "bash")


def test_a_box_with_chrony_keeps_it(box):
    many = [f"package-{number} libsomething-with-a-long-name-{number}" for number in range(5000)]
    assert "systemd-timesyncd" not in asked_of_apt(box, "chrony time-daemon", *many)


def test_apt_without_network_says_that_the_old_version_stays(box, versions):
    box.update(versions[0])
    asked_of_apt(box, "bash")
    box.stub("apt-get", "#!/bin/sh\nexit 100\n")
    done = box.bash("packages")
    assert done.returncode == 1
    assert "could not be installed" in done.stdout
    assert "was not changed and keeps running" in done.stdout


def test_image_has_every_module_that_the_installation_runs():
    modules = set(re.findall(r"-m (deploy\.[a-z_]+)", INSTALL.read_text()))
    assert modules
    assert {f"{name.replace('.', '/')}.py" for name in modules} <= set(SHIPPED)
