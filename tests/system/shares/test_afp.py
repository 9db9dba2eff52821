"""AFP with real clients: one of DHX2 as a Mac speaks it, netatalk's own tools, and Samba on the same folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from deploy.image.machine import wait_for
from tests.system import afp, protocols, sharing
from tests.system.protocols import MIB

STATE = "pool"

PASSWORD, SHORT = "annas own words", "words8ch"  # netatalk's tools know the ways in of old, with eight letters
GIB = 2**30
FINDER = b"TEXTttxt" + bytes(24)


@pytest.fixture(scope="module")
def shared(appliance, visitor) -> dict[str, str]:
    """Two folders over AFP: photos for anna (ben may read), backups for Time Machine; their guids."""
    sharing.make_pool(appliance, "tank", "photos", "backups")
    for name, password in (("anna", PASSWORD), ("ben", PASSWORD), ("carl", PASSWORD), ("dora", SHORT)):
        sharing.make_person(visitor, name, password)
    photos = {"name": "photos", "write": ["anna", "dora"], "read": ["ben"]}
    backups = {"name": "backups", "write": ["anna"], "time_machine": 2 * GIB}
    return {
        "photos": protocols.share(appliance, visitor, "tank/photos", afp=photos),
        "backups": protocols.share(appliance, visitor, "tank/backups", afp=backups),
    }


@pytest.fixture
def port(appliance, shared):
    with afp.tunnel(appliance) as found:
        yield found


def test_only_the_sealed_way_in_is_offered(port):
    with afp.Client("127.0.0.1", port) as client:
        assert client.methods() == ["DHX2"]


def test_a_person_without_a_shell_logs_in_and_a_file_goes_there_and_back(port):
    data = protocols.content(64 * MIB)
    with afp.Client("127.0.0.1", port) as client:
        client.log_in("anna", PASSWORD)
        assert set(client.volumes()) == {"photos", "backups"}
        volume = client.open("photos")
        client.create(volume, "holiday.raw")
        client.write(volume, "holiday.raw", data)
        assert protocols.digest(client.read(volume, "holiday.raw")) == protocols.digest(data)


@pytest.mark.parametrize(("name", "password"), [("anna", "wrong words"), ("root", PASSWORD), ("nobody", "")])
def test_a_wrong_password_and_a_stranger_are_refused(port, name, password):
    with afp.Client("127.0.0.1", port) as client, pytest.raises(afp.AfpError):
        client.log_in(name, password)


def test_who_may_only_read_cannot_write(port):
    with afp.Client("127.0.0.1", port) as client:
        client.log_in("ben", PASSWORD)
        assert client.volumes() == ["photos"]
        volume = client.open("photos")
        with pytest.raises(afp.AfpError):
            client.create(volume, "bens.txt")


def test_who_is_not_among_them_sees_nothing(port):
    with afp.Client("127.0.0.1", port) as client:
        client.log_in("carl", PASSWORD)
        assert client.volumes() == []
        with pytest.raises(afp.AfpError):
            client.open("photos")


def test_a_new_password_holds_for_afp_too(visitor, port):
    review = visitor.get("/users/carl/password/")
    said = visitor.ended(visitor.confirm(review, secret="carls new words", again="carls new words"))
    assert said.startswith("Done"), said
    with afp.Client("127.0.0.1", port) as client, pytest.raises(afp.AfpError):
        client.log_in("carl", PASSWORD)
    with afp.Client("127.0.0.1", port) as client:
        client.log_in("carl", "carls new words")


def test_accounts_for_shares_are_kept_out_of_ssh(appliance, shared):
    said = appliance.run("sshd", "-T", "-C", "user=anna,host=x,addr=10.0.2.2")
    assert "denygroups larder-people" in said


def test_netatalks_own_tools_log_in_and_transfer(appliance, shared):
    """They speak clear text only, which Larder never offers: a second server on the loopback
    does, with the same file."""
    settings = appliance.run("cat", "/etc/netatalk/larder.conf")
    settings = settings.replace("afp listen = 0.0.0.0", "afp listen = 127.0.0.1:5480")
    settings = settings.replace("uam list = uams_dhx2.so", "uam list = uams_clrtxt.so uams_dhx2.so uams_guest.so")
    assert "5480" in settings
    assert "clrtxt" in settings
    appliance.put("/tmp/afp-tools.conf", settings)
    appliance.shell("systemd-run --unit=afp-tools afpd -d -F /tmp/afp-tools.conf")
    try:
        wait_for("the second server", lambda: "5480" in appliance.run("ss", "-ltn"), timeout=90)
        login = ["-h", "127.0.0.1", "-p", "5480", "-u", "dora", "-w", SHORT, "-7", "-C"]
        said = wait_for(
            "afp_logintest to pass",
            lambda: (lambda text: text if "Failed:     0" in text else "")(
                appliance.run("afp_logintest", *login, check=False)
            ),
            timeout=180,
        )
        assert "Clear text login - PASSED" in said, said
        tried = appliance.shell(f"afp_lantest {' '.join(login[:-1])} -s photos -f 2 2>&1", timeout=300)
        assert "Writing one large file" in tried, tried
        assert "MB/s" in tried, tried
    finally:
        appliance.shell("systemctl stop afp-tools; rm -rf /tank/photos/LanTest-*")


def stream(client: sharing.Client, name: str, which: str, target: Path) -> bytes:
    client.done("photos", f'get "{name}:{which}" "{target}"')
    return target.read_bytes()


def test_resource_fork_and_finder_info_are_the_same_over_smb_and_afp(appliance, visitor, shared, port, tmp_path):
    setting = {"name": "photos", "write": ["anna", "dora"], "read": ["ben"]}
    protocols.share(appliance, visitor, "tank/photos", smb=setting, afp=setting)
    over_smb = sharing.Client(appliance, tmp_path, "anna", PASSWORD)
    fork = protocols.content(300_000)

    with afp.Client("127.0.0.1", port) as client:
        client.log_in("anna", PASSWORD)
        volume = client.open("photos")
        client.create(volume, "from-mac")
        client.write(volume, "from-mac", b"the file itself")
        client.write(volume, "from-mac", fork, afp.RESOURCE)
        client.set_finder_info(volume, "from-mac", FINDER)

    assert stream(over_smb, "from-mac", "AFP_Resource", tmp_path / "fork") == fork
    info = stream(over_smb, "from-mac", "AFP_AfpInfo", tmp_path / "info")
    assert info[16:48] == FINDER

    (tmp_path / "plain").write_bytes(b"written over SMB")
    (tmp_path / "new-info").write_bytes(info[:16] + b"PDF prvw" + bytes(24) + info[48:])
    for command in (
        f'put "{tmp_path}/plain" from-pc',
        f'put "{tmp_path}/fork" "from-pc:AFP_Resource"',
        f'put "{tmp_path}/new-info" "from-pc:AFP_AfpInfo"',
    ):
        over_smb.done("photos", command)
    with afp.Client("127.0.0.1", port) as client:
        client.log_in("anna", PASSWORD)
        volume = client.open("photos")
        assert client.read(volume, "from-pc") == b"written over SMB"
        assert client.read(volume, "from-pc", afp.RESOURCE) == fork
        assert client.finder_info(volume, "from-pc")[:8] == b"PDF prvw"


def browse(appliance, kind: str) -> str:
    return appliance.run("avahi-browse", "--parsable", "--resolve", "--terminate", "--no-db-lookup", kind, check=False)


def test_time_machine_is_announced_with_its_record(appliance, shared):
    said = wait_for(
        "the record",
        lambda: (lambda text: text if "dk0=" in text else "")(browse(appliance, "_adisk._tcp")),
        timeout=90,
    )
    assert '"sys=waMa=0,adVF=0x100"' in said
    assert "dk0=adVN=backups,adVF=0xa1,adVU=" in said
    assert "dk1=" not in said


def test_the_limit_of_time_machine_is_what_netatalk_tells(appliance, shared):
    assert "vol size limit = 2048" in appliance.run("cat", "/etc/netatalk/larder.conf")


def test_afp_and_the_page_are_announced_once_each(appliance, shared):
    for kind, number in (("_afpovertcp._tcp", "548"), ("_https._tcp", "443"), ("_http._tcp", "80")):
        lines = [line.split(";") for line in browse(appliance, kind).splitlines() if line.startswith("=;eth0;IPv4")]
        assert [(line[6], line[8]) for line in lines] == [("larder.local", number)], lines


def asks(port: int) -> bool:
    """Whether a server answers there."""
    try:
        with afp.Client("127.0.0.1", port) as client:
            return bool(client.methods())
    except OSError:
        return False


def test_an_unmounted_folder_is_not_served_after_a_start(appliance, port):
    appliance.run("zfs", "unmount", "tank/backups")
    try:
        appliance.run("systemctl", "restart", "netatalk", timeout=120)
        settings = appliance.run("cat", "/etc/netatalk/larder.conf")
        assert "/tank/backups" not in settings
        assert "/tank/photos" in settings
    finally:
        appliance.run("zfs", "mount", "tank/backups")
        appliance.run("systemctl", "restart", "netatalk", timeout=120)
        wait_for("netatalk to answer again", lambda: asks(port), timeout=90)


def test_a_volume_that_is_switched_off_is_really_closed(appliance, visitor, shared, port):
    with afp.Client("127.0.0.1", port) as client:
        client.log_in("anna", PASSWORD)
        volume = client.open("photos")
        client.create(volume, "open.txt")
        client.write(volume, "open.txt", b"still open")
        client.fork(volume, "open.txt", afp.DATA, 0x01)

        def closed() -> bool:
            try:
                return client.read(volume, "open.txt") != b"still open"
            except (afp.AfpError, OSError):
                return True

        assert not closed()
        sharing.click(visitor, appliance, "tank/photos", "off", protocol="afp")
        wait_for("the volume to be closed", closed, timeout=180)
    with afp.Client("127.0.0.1", port) as client:
        client.log_in("anna", PASSWORD)
        assert client.volumes() == ["backups"]


def test_the_packages_own_file_is_as_it_came(appliance, shared):
    assert "/etc/netatalk/afp.conf" not in appliance.run("dpkg", "--verify", "netatalk", check=False)
