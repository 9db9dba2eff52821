"""The support bundle: what is in it, that secrets are not, and that one part that fails leaves the others."""

from __future__ import annotations

import io
import json
import os
import time
import zipfile
from types import SimpleNamespace
from typing import Any

import pytest

from appliance import command
from appliance.agent import protocol
from appliance.disks import standby
from appliance.errors import Failed
from appliance.facts.box import Facts
from appliance.facts.remote import Remote
from appliance.support import bundle, sections
from appliance.support.sections import OWN, SECTIONS
from appliance.system import paths
from tests.unit.made import ANNA, box, dataset

SECRETS = {
    "secret-key": "canary-session-key-5b1",
    "mail-password": "canary mail password",
}
PASSPHRASE, HOOK = "canary-passphrase-of-a-pool", "canary-hook-T0K3N"


@pytest.fixture
def places(folders, monkeypatch):
    monkeypatch.setattr(paths, "STATE", folders)
    for name, secret in SECRETS.items():
        (folders / name).write_text(secret)
    (paths.AGENT_STATE / "keys").mkdir()
    (paths.AGENT_STATE / "keys" / "17").write_text(PASSPHRASE)
    return folders


def facts() -> Facts:
    remote = Remote("0123abcd", "attic.example", 22, "copier", "cellar/copies")
    return box(datasets=(dataset("tank"), dataset("tank/photos")), accounts=(ANNA,), remotes=(remote,))


def made(request: dict[str, Any], read: Any = facts) -> tuple[dict[str, str], list[dict[str, Any]]]:
    """The files of a bundle, and everything that was sent before it."""
    sent: list[dict[str, Any]] = []
    archives: list[bytes] = []

    def send_file(message: dict[str, Any], handle: int) -> None:
        sent.append(message)
        archives.append(os.pread(handle, 50_000_000, 0))

    line = json.dumps({"verb": "make-bundle", **request}).encode()
    protocol.answer_request(line, sent.append, read, send_file)
    assert archives, sent
    with zipfile.ZipFile(io.BytesIO(archives[0])) as archive:
        return {name: archive.read(name).decode() for name in archive.namelist()}, sent


def test_every_file_that_the_page_names_is_in_it_and_no_other(places, commands):
    files, sent = made({"own": dict.fromkeys(OWN, "text")})
    assert set(files) == {one.name for one in SECTIONS} | set(OWN) | {"README.txt"}
    told = sent[-1]["facts"]["files"]
    assert {name: size for name, _holds, size in told} == {name: len(text.encode()) for name, text in files.items()}


def test_each_file_is_told_as_it_is_begun(places, commands):
    _files, sent = made({})
    assert [one["file"] for one in sent[1:-1]] == [one.name for one in SECTIONS]
    assert sent[-2]["at"] == sent[-2]["of"] == len(SECTIONS)


@pytest.mark.parametrize("masked", [[], ["names", "serials", "addresses"]])
def test_no_secret_is_in_it_wherever_it_stands(places, commands, masked):
    hidden = [*SECRETS.values(), PASSPHRASE, HOOK]
    every = " ".join(f"<{one}>" for one in hidden)
    for tool in ("zpool", "zfs", "smartctl", "lsblk", "systemctl", "ip"):
        commands.answers[tool] = f"{every}\n"
    entry = {"__REALTIME_TIMESTAMP": "1700000000000000", "MESSAGE": every, "SYSLOG_IDENTIFIER": hidden[0]}
    commands.answers["journalctl"] = json.dumps(entry)
    files, _sent = made({"own": {"settings.txt": every}, "secrets": [HOOK], "masked": masked})
    for name, text in files.items():
        for secret in hidden:
            assert secret not in text, name
    assert "(hidden)" in files["journal.txt"]
    assert "(hidden)" in files["pools.txt"]


def test_names_serials_and_addresses_are_masked_alike_in_every_file(places, commands):
    commands.answers["zfs"] = "tank/photos at 192.168.1.7 by anna\n"
    commands.answers["journalctl"] = json.dumps(
        {"__REALTIME_TIMESTAMP": "1700000000000000", "MESSAGE": "tank/photos used by anna from 192.168.1.7"}
    )
    files, _sent = made(
        {
            "own": {
                "alerts.txt": "berta at nas.example on tank, copied to copier at attic.example, cellar/copies/photos"
            },
            "users": ["berta"],
            "hosts": ["nas.example"],
        }
    )
    whole = "\n".join(files.values())
    for name in (
        "tank",
        "photos",
        "192.168.1.7",
        "anna",
        "berta",
        "nas.example",
        "copier",
        "attic",
        "cellar",
        "copies",
    ):
        assert name not in whole
    place = files["folders.txt"].partition(" at ")[0].splitlines()[-1]
    assert f"{place} used by <user-" in files["journal.txt"]
    plain, _sent = made({"masked": []})
    assert "tank/photos at 192.168.1.7 by anna" in plain["folders.txt"]


def test_part_that_fails_says_so_and_leaves_the_others(places, commands, monkeypatch):
    def no_facts() -> Facts:
        raise Failed("zpool did not answer within 60 seconds")

    def fail(argv, **more):
        if argv[0] == "zpool":
            raise command.CommandTimedOut(argv, 30, None)
        return real(argv, **more)

    real = command.run
    monkeypatch.setattr(command, "run", fail)
    files, _sent = made({}, no_facts)
    assert "zpool did not answer within 30 seconds" in files["pools.txt"]
    assert "zpool did not answer within 60 seconds" in files["README.txt"]
    assert files["versions.txt"].startswith("Larder ")


def test_no_further_file_is_read_once_the_time_is_over(places, commands, monkeypatch):
    monkeypatch.setattr(bundle, "MOST_SECONDS", -1.0)
    files, _sent = made({})
    assert all("took too long" in files[one.name] for one in SECTIONS)
    assert set(commands.tools) <= {"timedatectl"}  # whose servers are masked


def test_files_are_bounded(places, commands, monkeypatch):
    monkeypatch.setattr(sections, "MOST_JOURNAL", 5_000)
    line = json.dumps({"__REALTIME_TIMESTAMP": "1700000000000000", "MESSAGE": "x" * 900})
    commands.answers["journalctl"] = "\n".join([line] * 100)
    commands.answers["lsblk"] = "y" * 3_000_000
    files, _sent = made({})
    assert files["journal.txt"].startswith("(Older lines were left out")
    assert len(files["journal.txt"]) < 6_000
    assert len(files["disks.txt"]) <= sections.MOST_TEXT + 10_000


def test_sleeping_disks_are_left_asleep_and_names_of_damaged_files_are_not_asked_for(places, commands):
    made({})
    asked = [argv for argv in commands.ran if argv[0] == "smartctl" and "--xall" in argv]
    assert asked
    assert all(argv[:4] == ["smartctl", "--json", "-n", "standby"] for argv in asked)
    assert not [argv for argv in commands.ran if argv[:2] == ["zpool", "status"] and "-v" in argv]


def test_a_disk_without_platters_that_claims_to_sleep_is_asked_all_the_same(places, commands, monkeypatch):
    monkeypatch.setattr(standby, "is_rotating", lambda _path: False)
    made({})
    asked = [argv for argv in commands.ran if "--xall" in argv]
    assert asked
    assert all(argv[:3] == ["smartctl", "--json", "--xall"] for argv in asked)


def test_a_disk_that_hangs_keeps_no_report_of_another_out(places, commands):
    first, *others = facts().disks

    def hang(argv: list[str]) -> None:
        if first.path in argv:
            raise command.CommandTimedOut(argv, 15, None)

    commands.answers["smartctl"] = '{"smart_status": {"passed": true}}'
    commands.on_run = hang
    files, _sent = made({})
    assert "smartctl did not answer within 15 seconds" in files["smart.txt"]
    assert files["smart.txt"].count('"passed"') == len(others) > 0


def test_tools_that_hang_for_pools_and_disks_keep_nothing_else_out(places, commands, monkeypatch):
    now = [0.0]

    def hang(argv: list[str]) -> None:
        if argv[0] in {"zpool", "zfs", "smartctl", "lsblk"}:
            now[0] += 32
            raise command.CommandTimedOut(argv, 30, None)

    clock = SimpleNamespace(monotonic=lambda: now[0], time=time.time)
    monkeypatch.setattr(sections, "time", clock)
    monkeypatch.setattr(bundle, "time", clock)
    commands.on_run = hang
    files, _sent = made({})
    assert [name for name, text in files.items() if "making the bundle took too long" in text] == []
    assert now[0] > bundle.MOST_SECONDS  # so there was something to lose


def test_nothing_is_left_in_any_folder(places, commands):
    before = sorted(places.rglob("*"))
    made({})
    assert sorted(places.rglob("*")) == before
