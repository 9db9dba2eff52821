"""How ssh is called, what its complaints mean, and that nothing from outside becomes one of its options."""

from __future__ import annotations

import base64
import hashlib
import os
import subprocess
import time
from itertools import pairwise

import pytest
from msgspec.structs import replace

from appliance import command
from appliance.backups.remote import connection, settings
from appliance.backups.remote.answers import Hello
from appliance.backups.remote.remote_place import RemotePlace, list_all, say_hello
from appliance.command import Result
from appliance.errors import Failed, Refused
from appliance.facts.remote import Remote, fingerprint_of
from appliance.system import paths
from tests.reasons import expect_refusal

KEY = f"ssh-ed25519 {base64.b64encode(b'k' * 51).decode()}"
OTHER = f"ssh-ed25519 {base64.b64encode(b'o' * 51).decode()}"
REMOTE = Remote("0badcafe", "attic.lan", 2222, "backup", "tank/attic", host_key=KEY)


@pytest.fixture(autouse=True)
def folder(monkeypatch, tmp_path):
    monkeypatch.setattr(paths, "SSH", tmp_path / "ssh")
    monkeypatch.setattr(settings, "ssh_group", os.getgid)
    return tmp_path / "ssh"


def says(monkeypatch, status: int = 0, out: str = "", err: str = "") -> list[list[str]]:
    """Every process answers like this; what was started."""
    asked: list[list[str]] = []

    def run(argv, **_how):
        asked.append(list(argv))
        return Result(tuple(argv), status, out, err, 0.1)

    monkeypatch.setattr(command, "run_bounded", run)
    return asked


# --- the command ----------------------------------------------------------------------------------------------------
def test_ssh_runs_as_its_own_user_with_these_options_alone(folder):
    argv = connection.ssh_argv(REMOTE, ("list", "photos/trip"))
    assert argv[:3] == ["setpriv", "--reuid=larder-ssh", "--regid=larder-ssh"]
    assert {"--clear-groups", "--bounding-set=-all", "--no-new-privs"} <= set(argv)
    assert argv[-3:] == ["--", "attic.lan", "list photos/trip"]
    options = {word for at, word in enumerate(argv) if argv[at - 1] == "-o"}
    assert {
        "BatchMode=yes",
        "StrictHostKeyChecking=yes",
        "IdentitiesOnly=yes",
        "IdentityAgent=none",
        "Compression=no",
        "ControlMaster=no",
        "ControlPath=none",
        "ServerAliveInterval=15",
        "ServerAliveCountMax=4",
        "GlobalKnownHostsFile=/dev/null",
        "UpdateHostKeys=no",
        f"UserKnownHostsFile={folder}/0badcafe.hosts",
        "HostKeyAlias=larder-0badcafe",
        "ClearAllForwardings=yes",
    } <= options
    after = dict(pairwise(argv))
    assert (after["-F"], after["-i"], after["-p"], after["-l"]) == ("none", f"{folder}/0badcafe.key", "2222", "backup")
    assert {"-a", "-x", "-T"} <= set(argv) and "-A" not in argv


def test_real_ssh_understands_every_option(folder):
    settings.make_key("0badcafe")
    argv = connection.ssh_argv(REMOTE, ("hello",))
    ssh = argv[argv.index("ssh") :]
    said = subprocess.run([ssh[0], "-G", *ssh[1:]], capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stderr
    for line in (
        "batchmode yes",
        "stricthostkeychecking true",
        "identitiesonly yes",
        "compression no",
        "controlmaster false",
        "forwardagent no",
        "serveraliveinterval 15",
        "port 2222",
        "user backup",
        "hostkeyalias larder-0badcafe",
    ):
        assert line in said.stdout.splitlines()
    assert said.stdout.count("identityfile ") == 1


def test_cipher_is_what_both_processors_are_fast_at(monkeypatch):
    def cipher(aes: bool) -> str:
        argv = connection.ssh_argv(REMOTE, ("hello",), aes=aes)
        return argv[argv.index("-c") + 1].split(",")[0]

    assert cipher(aes=True) == "aes128-gcm@openssh.com"
    assert cipher(aes=False) == "chacha20-poly1305@openssh.com"


@pytest.mark.parametrize(
    "host", ["-oProxyCommand=id", "a b", "", "a;id", "a\nb", "a..b", "-a", "x" * 254, "[::1]", "$(id)", "a@b"]
)
def test_hosts_that_are_none_are_refused(host):
    with expect_refusal("host-invalid"):
        settings.check_host(host)


def test_address_of_one_link_alone_is_refused():
    with expect_refusal("address-with-scope"):
        settings.check_host("fe80::1%eth0")


@pytest.mark.parametrize("host", ["attic.lan", "192.168.1.20", "fd00::20", "nas-2", "attic"])
def test_names_and_addresses_are_hosts(host):
    assert settings.check_host(host) == host


@pytest.mark.parametrize(
    "words",
    [
        ("receive", "-F"),
        ("list", "../x"),
        ("list", "a b"),
        ("list", "a;id"),
        ("list", "a\nid"),
        ("", "a"),
        ("list", "'a'"),
    ],
)
def test_words_that_are_not_plain_are_never_sent(words):
    with pytest.raises(Refused):
        connection.ssh_argv(REMOTE, words)


@pytest.mark.parametrize("changes", [{"host": "-oProxyCommand=id"}, {"user": "-oProxyCommand=id"}, {"id": "../x"}])
def test_settings_are_checked_again_where_they_are_used(changes):
    with pytest.raises(Refused):
        connection.ssh_argv(replace(REMOTE, **changes), ("hello",))


# --- what it says ---------------------------------------------------------------------------------------------------
SAID = [
    # Recorded from OpenSSH 9.2 and 10.0.
    ("ssh: connect to host attic.lan port 2222: Connection refused", "remote-no-ssh"),
    ("ssh: connect to host attic.lan port 2222: No route to host", "remote-no-route"),
    ("ssh: connect to host attic.lan port 2222: Connection timed out", "remote-no-route"),
    ("ssh: connect to host attic.lan port 2222: Network is unreachable", "remote-no-route"),
    ("ssh: Could not resolve hostname attic.lan: Name or service not known", "remote-unknown-name"),
    ("backup@attic.lan: Permission denied (publickey).", "remote-key-refused"),
    (
        "@@@@@@@@\n@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\nHost key verification failed.",
        "remote-host-key",
    ),
    (
        (
            "No RSA host key is known for larder-0badcafe and you have requested strict checking.\nHost key "
            "verification failed."
        ),
        "remote-host-key",
    ),
    ("Unable to negotiate with 10.0.0.2 port 22: no matching key exchange method found.", "remote-ssh-too-old"),
    ("kex_exchange_identification: Connection closed by remote host", "remote-broken-off"),
]


@pytest.mark.parametrize(("said", "code"), SAID)
def test_every_complaint_of_ssh_has_a_sentence(monkeypatch, said, code):
    says(monkeypatch, 255, err=said)
    with pytest.raises(connection.Unreachable) as caught:
        connection.ask(REMOTE, ("hello",))
    assert caught.value.code == code
    assert "attic.lan" in str(caught.value)


def test_missing_script_is_named(monkeypatch):
    says(monkeypatch, 127, err="sh: 1: /usr/local/lib/larder-peer: not found")
    with pytest.raises(connection.Unreachable, match="has no larder-peer"):
        say_hello(REMOTE)


def test_shell_in_place_of_the_script_is_no_answer(monkeypatch):
    says(monkeypatch, out="Last login: today\n")
    with pytest.raises(Failed, match="restrict,command="):
        say_hello(REMOTE)


def test_nothing_is_asked_of_a_computer_whose_key_was_not_confirmed(monkeypatch):
    asked = says(monkeypatch)
    with expect_refusal("remote-not-confirmed"):
        connection.ask(replace(REMOTE, host_key=""), ("hello",))
    assert asked == []


def test_answer_without_end_is_cut_off(monkeypatch):
    monkeypatch.setattr(connection, "MOST_SAID", 10_000)
    monkeypatch.setattr(connection, "ssh_argv", lambda *_words, **_how: ["yes"])
    with pytest.raises(Failed, match="more than 10000 bytes"):
        list_all(REMOTE)


# --- host keys ------------------------------------------------------------------------------------------------------
def test_first_kind_of_host_key_is_taken(monkeypatch):
    asked = says(monkeypatch, out=f"# attic.lan:2222 SSH-2.0-OpenSSH_10.0\nattic.lan {KEY}\n")
    assert connection.fetch_host_key("attic.lan", 2222) == KEY
    assert len(asked) == 1 and asked[0][-2:] == ["--", "attic.lan"] and "setpriv" in asked[0][0]


@pytest.mark.parametrize(
    "line", ["", "attic.lan ssh-dss AAAA", "attic.lan ssh-ed25519 $(id)", "attic.lan ssh-ed25519", f"attic.lan {KEY};"]
)
def test_what_is_no_host_key_is_none(monkeypatch, line):
    says(monkeypatch, out=f"{line}\n", err="# attic.lan:2222 SSH-2.0-x\n")
    with pytest.raises(connection.Unreachable):
        connection.fetch_host_key("attic.lan", 2222)


def test_fingerprint_is_that_of_ssh_keygen(tmp_path):
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / "key")], check=True)
    said = subprocess.run(["ssh-keygen", "-lf", str(tmp_path / "key.pub")], capture_output=True, text=True, check=True)
    assert fingerprint_of((tmp_path / "key.pub").read_text()) == said.stdout.split()[1]
    assert fingerprint_of("ssh-ed25519 !!") == fingerprint_of("") == ""
    assert fingerprint_of(KEY) == f"SHA256:{base64.b64encode(hashlib.sha256(b'k' * 51).digest()).decode().rstrip('=')}"


# --- files ----------------------------------------------------------------------------------------------------------
def test_key_is_made_once_and_is_for_ssh_alone(folder):
    public = settings.make_key("0badcafe")
    assert public.startswith("ssh-ed25519 ")
    assert (folder / "0badcafe.key").stat().st_mode & 0o777 == 0o640
    assert settings.make_key("0badcafe") == public


def test_settings_hold_no_secret_and_come_back_as_they_were(folder):
    public = settings.make_key("0badcafe")
    settings.write_remote(replace(REMOTE, public_key=public))
    settings.pin_host_key(REMOTE, KEY)
    (found,) = settings.read_remotes()
    assert found.host_key == KEY and found.offered_key == ""
    assert (folder / "0badcafe.hosts").read_text() == f"larder-0badcafe {KEY}\n"
    assert "PRIVATE" not in (folder / "0badcafe.json").read_text()
    settings.remove_remote("0badcafe")
    assert list(folder.iterdir()) == []


def test_file_that_was_tampered_with_is_left_out(folder):
    settings.write_remote(REMOTE)
    (folder / "1badcafe.json").write_text((folder / "0badcafe.json").read_text())
    (folder / "2badcafe.json").write_text("{")
    assert [one.id for one in settings.read_remotes()] == ["0badcafe"]


def test_without_its_user_ssh_does_not_run_as_root(monkeypatch):
    monkeypatch.undo()
    monkeypatch.setattr(settings, "SSH_USER", "nobody-has-this-name")
    with pytest.raises(Failed, match="Install Larder again"):
        settings.ssh_group()


# --- the place of copies --------------------------------------------------------------------------------------------
def test_stream_is_received_with_the_mark_of_its_original():
    place = RemotePlace(REMOTE, Hello(aes=True))
    argv = place.receiver("photos", {"larder:copy-of": '{"guid":5,"raw":true}'}, new=True)
    assert argv[-1] == "receive photos 5 raw"
    with pytest.raises(Failed):
        place.receiver("photos", {}, new=True)


def test_keys_and_passwords_that_belong_to_nothing_are_deleted_after_an_hour(folder):
    """What a power cut leaves between a key, or a password, and the settings that are written after it."""
    old = ("11111111.key", "11111111.key.pub", "22222222.password", "33333333.password.new", "44444444.report")
    kept = (
        "33333333.import",
        "33333333.password",
        "55555555.json",
        "55555555.key",
        "0badcafe.key",
        "readme",
        "no-key.password",
    )
    young = ("66666666.password", "77777777.key")
    settings.make_folder()
    for name in (*old, *kept, *young):
        (folder / name).write_text("secret")
        hours = 0.9 if name in young else 1.1
        os.utime(folder / name, (time.time() - hours * 3600,) * 2)
    settings.remove_leftovers("0badcafe")
    assert {path.name for path in folder.iterdir()} == {*kept, *young}


def test_leftover_that_another_job_takes_away_stops_nothing(folder, monkeypatch):
    settings.make_folder()
    monkeypatch.setattr(
        type(folder), "iterdir", lambda _folder: iter([folder / "11111111.key", folder / "22222222.password"])
    )
    (folder / "22222222.password").write_text("secret")
    os.utime(folder / "22222222.password", (0, 0))
    settings.remove_leftovers("0badcafe")
    assert not (folder / "22222222.password").exists()
