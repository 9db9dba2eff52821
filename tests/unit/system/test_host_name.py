"""The host name: where it is read and written, and the operation that changes it."""

from __future__ import annotations

import os
import socket

import pytest

from appliance import command
from appliance.errors import Refused
from appliance.operation import checked_plan
from appliance.system import host_name, service_start, set_host_name
from appliance.system.host_name import read_host_name, render_hosts
from appliance.system.set_host_name import SetHostName
from tests.reasons import codes, expect_refusal
from tests.unit.made import box
from tests.unit.pools.test_create import Working

RENAME = SetHostName(name="attic", former="larder")
# What the command prints for a certificate of first-boot (OpenSSL 3.5), and for one of an authority.
OURS = "subject=CN=larder\nissuer=CN=larder\n"
FOREIGN = "subject=CN=larder\nissuer=CN=Home CA,O=Us\n"


@pytest.fixture(autouse=True)
def etc(tmp_path, monkeypatch):
    for name in ("HOSTNAME", "HOSTS"):
        monkeypatch.setattr(host_name, name, tmp_path / name.lower())
    monkeypatch.setattr(service_start, "SYSTEMD", tmp_path)
    monkeypatch.setattr(host_name, "read_host_name", lambda: read_host_name(tmp_path / "hostname"))
    monkeypatch.setattr(set_host_name, "CERTIFICATE", tmp_path / "tls.crt")
    monkeypatch.setattr(set_host_name, "KEY", tmp_path / "tls.key")
    (tmp_path / "hostname").write_text("larder\n")
    (tmp_path / "hosts").write_text("127.0.0.1 localhost\n127.0.1.1 larder\n")
    return tmp_path


def step(name: str, operation: SetHostName = RENAME):
    return next(one for one in checked_plan(operation, box()).steps if one.name == name)


def services(**entered: int) -> str:
    """What ``systemctl show --timestamp=unix`` prints of services (systemd 257): none where they do not run."""
    return "\n\n".join(
        f"Id={name}.service\nActiveState={'active' if at else 'inactive'}\n"
        f"ActiveEnterTimestamp={f'@{at}' if at else ''}"
        for name, at in entered.items()
    )


# --- reading and writing ------------------------------------------------------------------------------------------
def test_name_is_that_of_the_file_without_comments(etc):
    (etc / "hostname").write_text("# set by hand\n\n attic \n")
    assert read_host_name(etc / "hostname") == "attic"


@pytest.mark.parametrize("text", [None, "", "# nothing\n"])
def test_box_without_a_given_name_has_that_of_the_kernel(etc, text):
    file = etc / "other"
    if text is not None:
        file.write_text(text)
    assert read_host_name(file) == socket.gethostname()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("127.0.0.1 localhost\n127.0.1.1 larder\n", "127.0.0.1 localhost\n127.0.1.1\tattic\n"),
        ("127.0.1.1 larder.lan larder # box\n", "127.0.1.1\tattic.lan attic # box\n"),
        ("127.0.1.1 attic larder\n", "127.0.1.1\tattic\n"),
        ("127.0.0.1\tlocalhost\n", "127.0.0.1\tlocalhost\n127.0.1.1\tattic\n"),
        ("192.168.1.9 larder\n127.0.0.1 larder2\n", "192.168.1.9 larder\n127.0.0.1 larder2\n127.0.1.1\tattic\n"),
        ("# 127.0.1.1 larder\n::1 LARDER\n", "# 127.0.1.1 larder\n::1\tattic\n"),
        ("", "127.0.1.1\tattic\n"),
    ],
)
def test_new_name_leads_to_the_box_and_all_else_in_hosts_stays(before, after):
    assert render_hosts(before, "larder", "attic") == after
    assert render_hosts(after, "larder", "attic") == after


def test_localhost_is_never_renamed():
    text = render_hosts("127.0.0.1 localhost\n", "localhost", "attic")
    assert text == "127.0.0.1 localhost\n127.0.1.1\tattic\n"


# --- the operation --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "name", ["", "-a", "a-", "123", "a" * 16, "Attic", "at tic", "attic.lan", "ätic", "attic\n", "--help"]
)
def test_new_name_has_its_grammar(name):
    with expect_refusal("host-name-invalid"):
        SetHostName(name=name, former="larder")


@pytest.mark.parametrize("former", ["", "-h", "a b", "a" * 65, "a\n"])
def test_former_name_has_its_grammar(former):
    with expect_refusal("host-name-former-malformed"):
        SetHostName(name="attic", former=former)


def test_reserved_and_present_names_are_refused():
    assert codes(SetHostName(name="localhost", former="larder").check(box())) == ["host-name-reserved"]
    assert codes(SetHostName(name="larder", former="larder").check(box())) == ["host-name-same"]


def test_hosts_are_written_for_everybody_to_read_and_again_without_harm(etc):
    for _ in range(2):
        step("hosts").run(Working())
        assert (etc / "hosts").read_text() == "127.0.0.1 localhost\n127.0.1.1\tattic\n"
        assert (etc / "hosts").stat().st_mode & 0o777 == 0o644


def test_bytes_of_hosts_that_are_no_text_stay(etc):
    (etc / "hosts").write_bytes(b"10.0.0.1 b\xfcro\n127.0.1.1 larder\n")
    step("hosts").run(Working())
    assert (etc / "hosts").read_bytes() == b"10.0.0.1 b\xfcro\n127.0.1.1\tattic\n"


def test_box_that_got_a_third_name_is_left_alone(etc, commands):
    (etc / "hostname").write_text("cellar\n")
    with pytest.raises(Refused) as caught:
        step("hosts").run(Working())
    assert codes(caught.value.reasons) == ["host-name-changed-since"]
    assert "larder" in (etc / "hosts").read_text()


def test_container_is_left_alone(etc, monkeypatch):
    monkeypatch.setattr(service_start, "SYSTEMD", etc / "missing")
    with expect_refusal("box-in-container"):
        step("hosts").run(Working())
    assert "larder" in (etc / "hosts").read_text()


def test_box_that_has_the_name_after_an_interruption_goes_on(etc, commands):
    (etc / "hostname").write_text("attic\n")
    step("hosts").run(Working())
    assert RENAME.probe("hosts", box())


def test_hostnamed_is_asked_by_the_command_that_is_shown(commands):
    found = step("name")
    found.run(Working())
    assert commands.ran == [["hostnamectl", "set-hostname", "attic"]] == [found.command_text.split()]


@pytest.mark.parametrize(
    ("said", "times"), [("Could not set pretty hostname: Connection timed out", 2), ("Access denied", 1)]
)
def test_hostnamed_that_starts_too_slowly_is_asked_once_more(commands, said, times):
    def refuse(argv: list[str]) -> None:
        if len(commands.ran) == 1:
            raise command.CommandFailed(command.Result(tuple(argv), 1, "", said, 25.0))

    commands.on_run = refuse
    if times == 1:
        with pytest.raises(command.CommandFailed):
            step("name").run(Working())
    else:
        step("name").run(Working())
    assert commands.ran == [["hostnamectl", "set-hostname", "attic"]] * times


def test_certificate_of_larder_is_renewed_with_its_key(etc, commands):
    def answer(argv: list[str]) -> None:
        commands.answers["openssl"] = OURS if argv[1] == "x509" else "-----BEGIN CERTIFICATE-----\n"

    commands.on_run = answer
    step("certificate").run(Working())
    made = next(argv for argv in commands.ran if argv[1] == "req")
    assert made[made.index("-key") + 1] == str(etc / "tls.key")
    assert "subjectAltName=DNS:attic,DNS:attic.local,DNS:localhost" in made
    assert (etc / "tls.crt").read_text().startswith("-----BEGIN")
    assert (etc / "tls.crt").stat().st_mode & 0o777 == 0o644
    assert commands.ran[-1] == ["systemctl", "reload", "nginx.service"]


@pytest.mark.parametrize("said", [FOREIGN, OURS.replace("larder", "attic"), "", "subject=CN=larder\n"])
def test_any_other_certificate_stays(etc, commands, said):
    commands.answers["openssl"] = said
    step("certificate").run(Working())
    assert [argv[:2] for argv in commands.ran] == [["openssl", "x509"]]
    assert not (etc / "tls.crt").exists()
    assert RENAME.probe("certificate", box())


def test_services_that_run_since_before_the_name_are_restarted(etc, commands):
    os.utime(etc / "hostname", (1000, 1000))
    commands.answers["systemctl"] = services(smbd=999, nmbd=1001, netatalk=0)
    assert not RENAME.probe("services", box())
    commands.ran.clear()
    step("services").run(Working())
    assert [argv for argv in commands.ran if "show" not in argv] == [["systemctl", "try-restart", "smbd.service"]]
    commands.answers["systemctl"] = services(smbd=1002, nmbd=1001, netatalk=0)
    assert RENAME.probe("services", box())


def test_each_step_is_seen_once_it_is_done(etc, commands):
    commands.answers["openssl"] = OURS
    assert not any(RENAME.probe(name, box()) for name in ("hosts", "name", "certificate"))
    (etc / "hosts").write_text("127.0.1.1\tattic\n")
    (etc / "hostname").write_text("attic\n")
    commands.answers["openssl"] = OURS.replace("larder", "attic")
    assert all(RENAME.probe(name, box()) for name in ("hosts", "name", "certificate"))


def test_plan_says_what_stops_working_and_differs_by_name():
    plan = RENAME.plan(box())
    assert any("larder" in warning and "Time Machine" in warning for warning in plan.warnings)
    assert plan.digest() != SetHostName(name="cellar", former="larder").plan(box()).digest()
