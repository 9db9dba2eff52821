"""Restoring a folder from another computer: what is refused, what is asked there, and what
may not get its name here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from appliance.backups import transfer
from appliance.backups.match import Decision
from appliance.backups.moments import list_moments
from appliance.backups.remote import answers, connection, remote_source, requests, settings
from appliance.backups.remote.restore_remote import RemotePart, RestoreRemote, kept_in, parts_of
from appliance.backups.stream import NotReceived
from appliance.errors import Failed, Refused
from appliance.facts.remote import Remote
from appliance.operation import checked_plan
from tests.reasons import expect_refusal
from tests.unit.backups.test_remote_answers import HELLO
from tests.unit.backups.test_remote_connection import KEY, OTHER
from tests.unit.backups.test_restore_folder import Zfs, facts_of, run, zfs  # noqa: F401  # a fixture
from tests.unit.made import dataset
from tests.unit.pools.test_create import Working

REMOTE = Remote("0badcafe", "attic.lan", 22, "backup", "safe/attic", host_key=KEY, pace=10**6)
NEW_HELLO = HELLO.replace("aes\tyes", "script\t2")
SHORT = "larder-backup-x"
STAGE = "tank/restoring-0123abcd"
TREE = {"photos": (55, 101, False), "photos/secret": (57, 103, True)}


def listing(tree: dict[str, tuple[int, int, bool]] = TREE) -> str:
    lines = ["larder-peer\t1"]
    for name, (guid, _snapshot, raw) in tree.items():
        mark = f'{{"guid":{guid - 50},"raw":{"true" if raw else "false"}}}'
        lines += [
            f"safe/attic/{name}\t{key}\t{value}\tlocal"
            for key, value in (("guid", guid), ("type", "filesystem"), ("larder:copy-of", mark))
        ]
    for name, (_guid, snapshot, _raw) in tree.items():
        numbers = {"guid": snapshot, "createtxg": 5, "creation": 1764000000, "referenced": 10**9}
        lines += [f"safe/attic/{name}@{SHORT}\t{key}\t{value}" for key, value in numbers.items()]
    return "\n".join([*lines, "end", ""])


def restore(**changes: Any) -> RestoreRemote:
    parts = tuple(parts_of("photos", answers.parse_list(listing(), REMOTE), SHORT))
    given = {
        "remote": REMOTE.id,
        "copy": "photos",
        "guid": 55,
        "parts": parts,
        "created": 1764000000,
        "parent": "tank",
        "name": "photos",
        "token": "0123abcd",
    }
    return RestoreRemote(**{**given, **changes})


def test_folder_in_which_nothing_had_changed_since_comes_back_as_of_its_newest_copy_up_to_that_moment():
    at = "safe/attic/photos@larder-backup-y"
    more = {"guid": 111, "createtxg": 9, "creation": 1764000900, "referenced": 10**9}
    later = [f"{at}\t{key}\t{value}" for key, value in more.items()]
    found = answers.parse_list(listing().replace("\nend\n", "\n" + "\n".join(later) + "\nend\n"), REMOTE)
    newest, oldest = (parts_of("photos", found, short) for short in ("larder-backup-y", SHORT))
    assert [(part.name, part.snapshot) for part in newest] == [("photos", 111), ("photos/secret", 103)]
    assert [(part.name, part.snapshot) for part in oldest] == [("photos", 101), ("photos/secret", 103)]
    said = checked_plan(restore(parts=tuple(newest), moment="larder-backup-y"), facts()).details
    assert said["As of an earlier copy"].startswith("photos/secret (24 November 2025")


def test_what_was_copied_after_the_top_comes_back_with_the_newest_moment():
    at = "safe/attic/photos/secret@larder-backup-y"
    more = {"guid": 111, "createtxg": 9, "creation": 1764000900, "referenced": 10**9}
    later = [f"{at}\t{key}\t{value}" for key, value in more.items()]
    found = answers.parse_list(listing().replace("\nend\n", "\n" + "\n".join(later) + "\nend\n"), REMOTE)
    moments = list_moments(kept_in(found), "photos")
    assert [(one.short, one.created) for one in moments] == [("larder-backup-y", 1764000900), (SHORT, 1764000000)]
    assert [part.snapshot for part in parts_of("photos", found, "larder-backup-y")] == [101, 111]
    assert [part.snapshot for part in parts_of("photos", found, SHORT)] == [101, 103]


def test_list_has_the_newest_moment_of_each_copy_with_those_below_it(monkeypatch):
    at = "safe/attic/photos/secret@larder-backup-y"
    later = [f"{at}\tguid\t111", f"{at}\tcreatetxg\t9"]  # a list has no dates
    partial = 'safe/attic/letters\tlarder:copy-of\t{"guid":9,"raw":false}\tlocal'
    said = listing().replace("\nend\n", "\n" + "\n".join([*later, partial]) + "\nend\n").replace("creation", "other")
    monkeypatch.setattr(requests, "list_all", lambda remote: answers.parse_list(said, remote))
    monkeypatch.setattr(settings, "find_remote", lambda _key: REMOTE)
    listed = requests.ListRemoteCopies(remote=REMOTE.id).read()
    assert [(one.name, one.short, one.snapshots) for one in listed] == [
        ("letters", "", 0),
        ("photos", "larder-backup-y", 1),
        ("photos/secret", "larder-backup-y", 2),
    ]


def facts(remote: Remote = REMOTE, *more: Any) -> Any:
    return facts_of(*more, remotes=(remote,))


class Peer:
    """What the other computer answers, and what it was asked."""

    def __init__(self) -> None:
        self.hello, self.tree = NEW_HELLO, listing()
        self.asked: list[tuple[str, ...]] = []

    def ask(self, _remote: Remote, words: tuple[str, ...], **_how: Any) -> str:
        self.asked.append(words)
        return self.hello if words == ("hello",) else self.tree


@pytest.fixture
def peer(monkeypatch, zfs: Zfs) -> Peer:  # noqa: F811
    found = Peer()
    monkeypatch.setattr(connection, "ask", found.ask)
    monkeypatch.setattr(settings, "find_remote", lambda _key: REMOTE)
    monkeypatch.setattr(settings, "write_remote", lambda _remote: None)
    return found


def streams(zfs: Zfs, monkeypatch: pytest.MonkeyPatch, *, brings: Sequence[int] = ()) -> list[str]:  # noqa: F811
    """Stands in for the stream: what was asked there. ``brings``: other snapshots than the one that was asked for."""
    asked: list[str] = []

    def send(sender: Sequence[str], receiver: Sequence[str], *_more: object, may_end: bool, foreign: bool) -> int:
        assert foreign  # it is looked at before it is received
        asked.append(sender[-1])
        if receiver[-1] not in zfs.own:
            zfs.make(list(receiver))
        zfs.partly.pop(receiver[-1], None)
        zfs.snapshots[receiver[-1]] += [*brings, int(sender[-1].split()[2])]
        return 10

    monkeypatch.setattr(transfer, "send_stream", send)
    return asked


def test_everything_is_asked_for_by_guid_and_gets_its_name_at_the_end(peer, zfs, monkeypatch):  # noqa: F811
    asked = streams(zfs, monkeypatch)
    run(checked_plan(restore(), facts()))
    assert peer.asked == [("hello",), ("tree", "photos")]
    assert asked == ["send photos 101 large", "send photos/secret 103 raw"]
    assert zfs.own["tank/photos"] == {"canmount": "on", "setuid": "off", "devices": "off", "acltype": "posix"}
    assert STAGE not in zfs.own and "larder:copy-of" not in zfs.own["tank/photos/secret"]


def test_more_than_was_asked_for_gets_no_name(peer, zfs, monkeypatch):  # noqa: F811
    streams(zfs, monkeypatch, brings=[7])
    with pytest.raises(Failed):
        run(checked_plan(restore(), facts()))
    assert "tank/photos" not in zfs.own
    assert list(zfs.below(STAGE)) == [STAGE]  # and it is not kept


def test_dataset_that_somebody_moved_there_is_not_destroyed_with_it(peer, zfs, monkeypatch):  # noqa: F811
    streams(zfs, monkeypatch)
    connect, prepare, copy, *_rest = checked_plan(restore(), facts()).steps
    work = Working()
    connect.run(work)
    prepare.run(work)
    zfs.own[f"{STAGE}/photos/diary"] = {}
    with pytest.raises(Failed, match="sent more of"):
        copy.run(work)
    assert f"{STAGE}/photos/diary" in zfs.own and f"{STAGE}/photos" in zfs.own
    assert "stays for now" in work.notes[-1]


def test_folder_is_received_without_what_a_stream_says_of_its_mountpoint(peer, zfs, monkeypatch):  # noqa: F811
    (photos, *_more) = restore().staging(facts()).parts
    words = photos.receiver(Decision("full"))
    assert words[-7:] == ["-x", "mountpoint", "-x", "sharenfs", "-x", "sharesmb", f"{STAGE}/photos"]
    volume = replace(photos, source=replace(photos.source, kind="volume"))
    assert "-x" not in volume.receiver(Decision("full"))  # ZFS refuses it of a volume
    assert "-x" not in photos.receiver(Decision("resume", token="1-abc"))


def test_properties_that_came_along_are_refused(peer, zfs, monkeypatch):  # noqa: F811
    streams(zfs, monkeypatch)
    answer = zfs.answer
    monkeypatch.setattr(zfs, "answer", lambda argv: "mountpoint\t/etc\n" if "received" in argv else answer(argv))
    with pytest.raises(Failed, match="sent settings"):
        run(checked_plan(restore(), facts()))
    assert "tank/photos" not in zfs.own


@pytest.mark.parametrize(
    ("hello", "tree", "code"),
    [
        (HELLO, TREE, "remote-script-old"),
        (NEW_HELLO.replace(",send", ""), TREE, "remote-send-missing"),
        (NEW_HELLO, {"photos": (55, 101, False)}, "remote-copy-changed"),
        (NEW_HELLO, {**TREE, "photos": (55, 999, False)}, "remote-copy-changed"),
        (NEW_HELLO, {**TREE, "photos": (99, 101, False)}, "remote-copy-changed"),
        (NEW_HELLO, {**TREE, "photos/secret": (57, 103, False)}, "remote-copy-other"),
    ],
)
def test_what_is_no_longer_as_it_was_listed_is_refused_before_anything_is_made(peer, zfs, hello, tree, code):  # noqa: F811
    peer.hello, peer.tree = hello, listing(tree)
    before = dict(zfs.own)
    with expect_refusal(code):
        run(checked_plan(restore(), facts()))
    assert zfs.own == before


@pytest.mark.parametrize(
    ("found", "code"),
    [
        (facts_of(), "remote-missing"),
        (facts(replace(REMOTE, host_key="")), "remote-not-confirmed"),
        (facts(replace(REMOTE, offered_key=OTHER)), "remote-key-changed"),
        (facts(REMOTE, dataset("tank/Photos", guid=5)), "dataset-exists"),
    ],
)
def test_unknown_computer_and_taken_name_are_refused(found, code):
    with expect_refusal(code):
        checked_plan(restore(), found)


def test_restore_without_room_is_refused():
    part = restore().parts[0]
    with expect_refusal("restore-no-room"):
        checked_plan(
            restore(
                parts=(RemotePart(**{**{key: getattr(part, key) for key in part.__struct_fields__}, "size": 2**50}),)
            ),
            facts(),
        )


def test_plan_says_how_much_and_how_long():
    plan = checked_plan(restore(), facts())
    assert "2.00 GB" in plan.summary or "2 GB" in plan.summary
    assert "nothing on this box is overwritten" in plan.summary
    assert "the pace of the last transfer" in restore().time_text(REMOTE)
    assert "Not known" in restore().time_text(replace(REMOTE, pace=0))
    assert "the limit" in restore(rate=1).time_text(replace(REMOTE, pace=10**8))


@pytest.mark.parametrize(
    "changes", [{"parts": ()}, {"guid": 9}, {"copy": "../x"}, {"rate": -1}, {"created": -1}, {"remote": "x"}]
)
def test_what_is_no_restore_is_refused(changes):
    with pytest.raises(Refused):
        restore(**changes)


@pytest.mark.parametrize(
    ("status", "said", "word"),
    [
        (255, "Connection refused", "Nothing answers"),
        (255, "Host key verification failed.", "another host key"),
        (1, "cannot send 'x': permission denied", "zfs allow -u backup send safe/attic"),
        (64, "larder-peer: there is no such snapshot", "no such snapshot"),
    ],
)
def test_failure_of_the_other_side_is_said_in_its_place(status, said, word):
    error = NotReceived(1, "cannot receive: incomplete stream", status, said)
    assert word in str(remote_source.explain_failure(REMOTE, error))
