"""Who is connected, from recorded and made-up answers, and ending it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from appliance.errors import Failed, Refused
from appliance.facts.box import Facts
from appliance.facts.sharing import Share
from appliance.operation import checked_plan
from appliance.shares import afp, connections, disconnect
from appliance.shares.connections import Connection
from appliance.shares.end_connection import EndConnection
from tests.unit.made import recorded
from tests.unit.pools.test_create import Working

OPEN = "smbstatus-open-4.22.11.json"
# Made up after nfsd's show functions in Linux 6.12, fs/nfsd/nfs4state.c (client_info_show, nfs4_show_open).
INFO = """clientid: 0x6aa2b1e36557b5a1
address: "192.168.1.20:844"
status: confirmed
seconds from last renew: 12
name: "Linux NFSv4.2 imac"
minor version: 2
"""
STATES = """- 0xa1b557: { type: open, access: rw, deny: --, superblock: "00:2f:34", filename: "photos/holiday.raw", owner: "open id:\\x00" }
- 0xa1b558: { type: deleg, access: r, superblock: "00:2f:35", filename: "photos/other.raw" }
"""


def test_a_client_of_samba_is_told_with_its_shares_and_files():
    assert list(connections.smb_connections(recorded(OPEN))) == [
        Connection(
            "smb", "2003", "nobody", "127.0.0.1", ("photos",), ("holiday.raw",), secured="neither signed nor encrypted"
        )
    ]


def test_where_nobody_is_connected_nobody_is_told():
    assert list(connections.smb_connections(recorded("smbstatus-4.22.11.json"))) == []


@pytest.mark.parametrize(
    "answer", [None, [], {"sessions": []}, {"sessions": {"1": None}}, {"sessions": {"1": {"server_id": 7}}}]
)
def test_an_answer_of_another_shape_is_nobody(answer):
    assert list(connections.smb_connections(answer)) == []


def test_names_from_outside_are_bounded_and_visible():
    answer = recorded(OPEN)
    next(iter(answer["sessions"].values()))["username"] = "a\n\x1b[31m" + "b" * 1000
    (one,) = connections.smb_connections(answer)
    assert one.user.isprintable()
    assert len(one.user) <= connections.LONGEST


def test_many_open_files_are_counted():
    answer = recorded(OPEN)
    (entry,) = answer["open_files"].values()
    answer["open_files"] = {str(at): {**entry, "filename": f"f{at:03}"} for at in range(50)}
    (one,) = connections.smb_connections(answer)
    assert (len(one.files), one.more_files) == (connections.MOST_FILES, 50 - connections.MOST_FILES)


@pytest.mark.parametrize(("kind", "said"), [("encryption", "encrypted"), ("signing", "signed")])
def test_how_it_is_kept_from_others_is_told(kind, said):
    answer = recorded(OPEN)
    next(iter(answer["sessions"].values()))[kind]["degree"] = "full"
    (one,) = connections.smb_connections(answer)
    assert one.secured == said


@pytest.fixture
def nfs_client(tmp_path: Path) -> Path:
    folder = tmp_path / "clients" / "7"
    folder.mkdir(parents=True)
    (folder / "info").write_text(INFO)
    (folder / "states").write_text(STATES)
    (folder / "ctl").write_text("")
    return folder


def test_a_client_of_nfs_is_told_with_its_open_files(nfs_client):
    (nfs_client.parent / "8").mkdir()  # one that has just gone
    assert list(connections.nfs_connections(nfs_client.parent)) == [
        Connection("nfs", "7", "", "192.168.1.20 (Linux NFSv4.2 imac)", (), ("photos/holiday.raw",))
    ]
    assert list(connections.nfs_connections(nfs_client.parent / "none")) == []


@pytest.mark.parametrize(
    ("state", "connected"),
    [("confirmed", True), ("unconfirmed", True), ("courtesy", False), ("expirable", False)],
)
def test_client_of_nfs_that_left_long_ago_is_not_connected(nfs_client, state, connected):
    """Since Linux 5.19 the server keeps what a silent client had open for a day or longer, until another needs it."""
    left = INFO.replace("confirmed", state).replace("renew: 12", "renew: 80000")
    (nfs_client / "info").write_text(left)
    assert [one.id for one in connections.nfs_connections(nfs_client.parent)] == ["7"] * connected


def test_client_of_nfs_that_has_left_needs_no_disconnecting(monkeypatch, nfs_client):
    monkeypatch.setattr(connections, "NFS_CLIENTS", nfs_client.parent)
    clients = nfs_client.parent
    monkeypatch.setattr(connections, "read_connections", lambda _protocols: tuple(connections.nfs_connections(clients)))
    (one,) = connections.nfs_connections(clients)
    (nfs_client / "info").write_text(INFO.replace("confirmed", "courtesy"))
    operation = EndConnection(protocol="nfs", id="7", who="", machine=one.machine)
    assert run(operation).notes == ["It had ended already"]
    assert (nfs_client / "ctl").read_text() == ""


def test_a_client_of_netatalk_is_told_by_its_process(tmp_path, monkeypatch):
    process = tmp_path / "811"
    (process / "fd").mkdir(parents=True)
    (process / "comm").write_text("afpd\n")
    (process / "status").write_text("Name:\tafpd\nUid:\t1001\t1001\t1001\t1001\n")
    (process / "cwd").symlink_to("/tank/photos")
    (process / "fd" / "5").symlink_to("/tank/photos/a.raw")
    monkeypatch.setattr(afp.AfpServing, "configured", lambda _self: (Share("afp", "photos", "/tank/photos"),))
    said = 'ESTAB 0 0 192.168.1.10:548 192.168.1.20:51000 users:(("afpd",pid=811,fd=5),("afpd",pid=700,fd=5))\n'
    (one,) = connections.afp_connections(said, {1001: "anna"}, tmp_path)
    assert one == Connection("afp", "811", "anna", "192.168.1.20", ("photos",), ("/tank/photos/a.raw",))


ANNA = Connection("smb", "2003", "anna", "192.168.1.20")
END = EndConnection(protocol="smb", id="2003", who="anna", machine="192.168.1.20")


def run(operation: EndConnection) -> Working:
    work = Working()
    for step in checked_plan(operation, Facts()).steps:
        step.run(work)
    return work


def test_what_ends_a_connection_is_shown_as_it_is_done(monkeypatch, commands):
    def shown(operation: EndConnection) -> str:
        return checked_plan(operation, Facts()).steps[0].command_text

    monkeypatch.setattr(connections, "read_connections", lambda _protocols: (ANNA,) if not commands.ran else ())
    run(END)
    assert shown(END).split() == commands.ran[-1]
    assert (
        shown(EndConnection(protocol="nfs", id="7", who="", machine="x"))
        == "write “expire” into /proc/fs/nfsd/clients/7/ctl"
    )
    assert shown(EndConnection(protocol="afp", id="8", who="anna", machine="")).startswith(
        "send SIGTERM to the process 8"
    )


def test_ending_waits_until_the_client_is_gone(monkeypatch, commands):
    left = [(ANNA,), (ANNA,), ()]
    monkeypatch.setattr(connections, "read_connections", lambda _protocols: left.pop(0) if len(left) > 1 else left[0])
    assert run(END).notes == ["It is disconnected"]
    assert ["smbcontrol", "2003", "shutdown"] in commands.ran
    assert END.probe("end", Facts())


def test_a_number_that_is_somebody_elses_now_is_left_alone(monkeypatch, commands):
    monkeypatch.setattr(
        connections, "read_connections", lambda _protocols: (Connection("smb", "2003", "ben", "192.168.1.21"),)
    )
    assert run(END).notes == ["It had ended already"]
    assert commands.ran == []


def test_one_that_does_not_end_is_told(monkeypatch, commands):
    monkeypatch.setattr(connections, "read_connections", lambda _protocols: (ANNA,))
    monkeypatch.setattr(disconnect, "SECONDS_TO_END", 0)
    with pytest.raises(Failed, match="does not end"):
        run(END)
    assert not END.probe("end", Facts())


def test_a_client_of_nfs_is_expired_by_the_kernel(monkeypatch, nfs_client):
    monkeypatch.setattr(connections, "NFS_CLIENTS", nfs_client.parent)
    (one,) = connections.nfs_connections(nfs_client.parent)
    monkeypatch.setattr(
        connections, "read_connections", lambda _protocols: () if (nfs_client / "ctl").read_text() else (one,)
    )
    run(EndConnection(protocol="nfs", id="7", who="", machine=one.machine))
    assert (nfs_client / "ctl").read_text() == "expire\n"


def test_one_of_afp_is_ended_by_its_process(monkeypatch):
    ended: list[tuple[int, int]] = []
    one = Connection("afp", "811", "anna", "")
    monkeypatch.setattr("os.kill", lambda *given: ended.append(given))
    monkeypatch.setattr(connections, "read_connections", lambda _protocols: () if ended else (one,))
    run(EndConnection(protocol="afp", id="811", who="anna", machine=""))
    assert [pid for pid, _signal in ended] == [811]


@pytest.mark.parametrize("text", ["", "-1", "1; id", "../1", "1\n", "²", "9" * 21])
def test_only_a_number_names_a_connection(text):
    with pytest.raises(Refused):
        EndConnection(protocol="nfs", id=text, who="", machine="")


def test_everything_is_read_where_no_daemon_runs(monkeypatch, commands):
    commands.answers.update({"smbstatus": "not json", "ss": ""})
    monkeypatch.setattr("appliance.system.accounts.read_accounts", lambda: ())
    monkeypatch.setattr(connections, "nfs_connections", lambda: iter(()))
    monkeypatch.setattr(afp, "session_processes", lambda *_proc: iter(()))
    assert connections.read_connections() == ()
    commands.answers["smbstatus"] = json.dumps(recorded(OPEN))
    assert [one.user for one in connections.read_connections()] == ["nobody"]
