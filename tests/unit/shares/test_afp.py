"""AFP through netatalk: what its file says, what never gets into it, and how its service is taken up and closed."""

from __future__ import annotations

import json
import os
import signal
import socket
import struct
import threading
from pathlib import Path
from typing import Any

import pytest

from appliance import command
from appliance.errors import Failed, Refused
from appliance.facts.datasets import Dataset
from appliance.facts.sharing import Account, Group, Share
from appliance.shares import afp
from appliance.shares.owned_file import OwnedFile
from tests.unit.made import box, dataset


def offered(name: str = "tank/photos", *, share: object = None, **changes: Any) -> Dataset:
    """Made up: a dataset that asks to be served over AFP."""
    setting = share if share is not None else {"afp": {"name": name.rsplit("/", 1)[-1], "write": ["anna"]}}
    return dataset(name, **{"share": json.dumps(setting), "share_source": "local", **changes})


def rendered(datasets: list[Dataset], people: list[str]) -> str:
    accounts = tuple(Account(name, 1001) for name in people)
    return afp.render_config(
        box(datasets=tuple(datasets), accounts=accounts, groups=(Group("family", 20000, ("anna",)),))
    )


def at(file: Path) -> afp.AfpServing:
    return afp.AfpServing(OwnedFile(file, afp.check_config))


def volume(text: str, name: str = "photos") -> dict[str, str]:
    return dict(afp.parse_config(text)[name])


def test_a_volume_is_for_its_people_and_for_the_networks_of_a_home_only():
    found = volume(rendered([offered()], ["anna"]))
    assert (found["path"], found["valid users"]) == ("/tank/photos", "anna")
    assert found["hosts allow"].split() == list(afp.HOME)
    assert "rolist" not in found


def test_nobody_gets_in_without_a_password_and_none_crosses_the_network_in_the_clear():
    common = dict(afp.parse_config(rendered([], []))["Global"])
    assert common["uam list"] == "uams_dhx2.so"


def test_people_without_a_shell_can_log_in():
    assert dict(afp.parse_config(rendered([], []))["Global"])["valid shellcheck"] == "no"


def test_metadata_is_kept_where_samba_looks_for_it():
    assert volume(rendered([offered()], ["anna"]))["ea"] == "samba"


def test_who_may_only_read_is_let_in_and_cannot_write():
    share = {"afp": {"name": "photos", "write": ["anna"], "read": ["berta"]}}
    found = volume(rendered([offered(share=share)], ["anna", "berta"]))
    assert (found["valid users"], found["rolist"]) == ("anna berta", "berta")


def test_a_group_is_let_in_by_its_name():
    share = {"afp": {"name": "photos", "write": ["@family"], "read": ["@gone"]}}
    found = volume(rendered([offered(share=share)], ["anna"]))
    assert found["valid users"] == "@family"


@pytest.mark.parametrize("write", [[], ["gone"]])
def test_a_volume_for_nobody_does_not_become_one_for_everybody(write):
    found = volume(rendered([offered(share={"afp": {"name": "photos", "write": write}})], ["anna"]))
    assert found["valid users"] == "larder-nobody"


def test_a_limit_of_time_machine_is_told_in_mib():
    share = {"afp": {"name": "backups", "write": ["anna"], "time_machine": 500 * 2**30}}
    found = volume(rendered([offered(share=share)], ["anna"]), "backups")
    assert (found["time machine"], found["vol size limit"]) == ("yes", "512000")


@pytest.mark.parametrize(
    "changes", [{"mounted": False}, {"mounted": False, "key_status": "unavailable"}, {"canmount": "off"}]
)
def test_a_folder_that_is_not_there_is_not_served(changes):
    assert afp.parse_config(rendered([offered(**changes)], ["anna"])).sections() == ["Global"]


HOSTILE = ["x\npreexec = /bin/sh", "Global", "homes", "x]", "$u", "a:b", "", "-x", "x;y", "#x", "x\\"]


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_on_foreign_disks_is_not_served(name):
    text = rendered([offered(share={"afp": {"name": name, "write": ["anna"]}})], ["anna"])
    assert text == rendered([], [])


@pytest.mark.parametrize("who", ["x\nguest account = root", "root", "@wheel x", "anna,root", "*"])
def test_a_hostile_person_on_foreign_disks_is_not_let_in(who):
    text = rendered([offered(share={"afp": {"name": "photos", "write": [who]}})], ["anna", who])
    assert text == rendered([], [])


def test_the_first_of_two_volumes_of_one_name_wins():
    twin = offered("pond/photos", share={"afp": {"name": "PHOTOS", "write": ["anna"]}})
    assert afp.parse_config(rendered([offered(), twin], ["anna"])).sections() == ["Global", "photos"]


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    found = tmp_path / "larder.conf"
    monkeypatch.setattr(afp, "DROP_IN", tmp_path / "drop-in")
    (tmp_path / "drop-in").touch()
    return found


def test_the_check_takes_what_is_rendered(file):
    file.write_text(f"# a comment\n{rendered([offered(), offered('tank/my photos')], ['anna'])}")
    afp.check_config(file)
    assert at(file).configured() == (
        Share("afp", "photos", "/tank/photos"),
        Share("afp", "my photos", "/tank/my photos"),
    )


@pytest.mark.parametrize(
    "more",
    [
        "[x]\npath = /tank/x\npreexec = id\n",
        "[x]\npath = /etc\n",
        "[Homes]\nbasedir regex = /home\n",
        "uam list = uams_guest.so\n",
        "[x\n",
        "path /tank\n",
    ],
)
def test_the_check_refuses_a_file_that_larder_would_not_write(file, more):
    file.write_text(rendered([], []) + more)
    with pytest.raises((Failed, Refused)):
        afp.check_config(file)


def test_a_netatalk_that_was_set_up_by_hand_is_left_alone(file, tmp_path):
    (tmp_path / "drop-in").unlink()
    file.write_text(rendered([], []))
    with pytest.raises(Failed, match="set up by hand"):
        afp.check_config(file)


def answer_of(*methods: str) -> bytes:
    """Made up after Apple's reference: only the offset at byte 4 and the list that it leads to are read."""
    head = struct.pack(">HHHHH", 10, 10, 10, 0, 0)
    return head + bytes([len(methods)]) + b"".join(bytes([len(one)]) + one.encode() for one in methods)


def test_the_ways_in_are_read_from_what_the_server_tells_anyone():
    assert afp.methods_in(answer_of("DHX2", "No User Authent")) == ("DHX2", "No User Authent")


@pytest.mark.parametrize("said", [b"", b"\0" * 5, answer_of("DHX2")[:-2] + b"", b"\xff" * 6])
def test_an_answer_cut_short_is_no_crash(said):
    assert set(afp.methods_in(said)) <= {"DHX2", "DH", ""}


def test_a_server_is_asked_over_the_network():
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            line, _ = server.accept()
            with line:
                assert line.recv(16)[1] == 3
                said = answer_of("DHX2")
                line.sendall(struct.pack(">BBHiII", 1, 3, 1, 0, len(said), 0) + said)

        thread = threading.Thread(target=serve)
        thread.start()
        assert afp.login_methods(port=server.getsockname()[1]) == ("DHX2",)
        thread.join()


def test_where_nobody_answers_there_is_no_way_in():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    assert afp.login_methods(port=port, timeout=1) == ()


class Netatalk:
    """Answers systemctl; remembers what was asked."""

    def __init__(self, *, active: bool) -> None:
        self.active = active
        self.ran: list[list[str]] = []

    def run(self, argv: list[str], **_more: Any) -> command.Result:
        self.ran.append(list(argv))
        if argv[1] in {"enable", "disable"}:
            self.active = argv[1] == "enable"
        return command.Result(tuple(argv), 0, "active" if self.active else "inactive", "", 0.0)


def test_the_first_volume_starts_netatalk_an_edit_reloads_it_and_the_last_one_stops_it(file, monkeypatch):
    service = Netatalk(active=False)
    monkeypatch.setattr(command, "run", service.run)
    monkeypatch.setattr(afp, "login_methods", lambda: ("DHX2",) if service.active else ())
    file.write_text(rendered([offered()], ["anna"]))
    serving = at(file)
    serving.take_up(serving.configured())
    serving.take_up(serving.configured())
    assert serving.served() == {("photos", "/tank/photos")}
    file.write_text(rendered([], []))
    serving.take_up(serving.configured())
    assert [argv[1:] for argv in service.ran if argv[1] != "is-active"] == [
        ["enable", "--now", "netatalk.service"],
        ["reload", "netatalk.service"],
        ["disable", "--now", "netatalk.service"],
    ]
    assert serving.served() == set()


def test_a_netatalk_that_does_not_come_up_is_told(file, monkeypatch):
    monkeypatch.setattr(command, "run", Netatalk(active=False).run)
    monkeypatch.setattr(afp, "login_methods", lambda: ())
    monkeypatch.setattr(afp, "SECONDS_TO_START", 0)
    file.write_text(rendered([offered()], ["anna"]))
    with pytest.raises(Failed, match="does not answer"):
        at(file).take_up(at(file).configured())


def process(proc: Path, number: int, *, uid: int, place: Path, name: str = "afpd") -> None:
    """Made up: what /proc says of one process."""
    folder = proc / str(number)
    (folder / "fd").mkdir(parents=True)
    (folder / "comm").write_text(f"{name}\n")
    (folder / "status").write_text(f"Name:\t{name}\nUid:\t0\t{uid}\t0\t{uid}\n")
    (folder / "cwd").symlink_to(place)


def test_closing_a_volume_ends_the_sessions_in_it_and_no_others(tmp_path, monkeypatch):
    proc, gone, kept = tmp_path / "proc", tmp_path / "gone", tmp_path / "gone-by"
    process(proc, 10, uid=0, place=gone)
    process(proc, 11, uid=1001, place=gone / "deep")
    process(proc, 12, uid=1001, place=kept)
    process(proc, 13, uid=1001, place=gone, name="smbd")
    ended: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "kill", lambda pid, how: ended.append((pid, how)))
    monkeypatch.setattr(afp, "session_processes", lambda every=afp.session_processes: every(proc))
    at(tmp_path / "larder.conf").close([Share("afp", "photos", str(gone))])
    assert ended == [(11, signal.SIGTERM)]
