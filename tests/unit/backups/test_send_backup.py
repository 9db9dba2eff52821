"""Runs to another computer with the real script, a ZFS that keeps notes, and no network: what
is asked, in which order."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from appliance.backups import copies, copy_dataset, run_snapshot, tasks, transfer
from appliance.backups.match import Point, Token
from appliance.backups.remote import connection, remote_place, send_backup, settings
from appliance.backups.remote.answers import Hello, RemoteCopy
from appliance.backups.remote.send_backup import COMPLETE, SendBackup, names_there, spell
from appliance.backups.remote.set_up import AddRemote, ConfirmHostKey, RemoveRemote, TestRemote
from appliance.backups.set_backup import SetBackup
from appliance.backups.stream import NotReceived
from appliance.backups.tasks import BackupTask
from appliance.command import CommandFailed, Result
from appliance.errors import Failed, Refused, explain_error
from appliance.facts.datasets import Bookmark, Snapshot
from appliance.facts.remote import Remote, fingerprint_of
from appliance.message import words_of
from appliance.operation import checked_plan
from appliance.system import paths
from appliance.zfs import libzfs, list_snapshots
from tests.reasons import expect_refusal
from tests.unit.backups.test_remote_answers import HELLO
from tests.unit.backups.test_remote_connection import KEY, OTHER
from tests.unit.made import box, dataset
from tests.unit.pools.test_create import Working

REMOTE = Remote("0badcafe", "attic.lan", 22, "backup", "tank/attic", host_key=KEY)
TASK = BackupTask(key="0123abcd", pool=0, remote="0badcafe", path="photos")
TOP = dataset("tank/photos", guid=5, backup=tasks.encode_tasks((TASK,)), backup_source="local")
TRIP = dataset("tank/photos/trip 2019", guid=6)
FACTS = box(datasets=(TOP, TRIP), remotes=(REMOTE,))
RUN = SendBackup(dataset="tank/photos", key="0123abcd", remote="0badcafe", moment="2026.11.24-02.00.00")
START = datetime(2026, 11, 20, 2, tzinfo=UTC)
OFF = {
    "type": "filesystem",
    "written": "0",
    "mountpoint": "none",
    "readonly": "on",
    "setuid": "off",
    "devices": "off",
    "exec": "off",
}


class There:
    """Stands in for the other computer and for ZFS here. ``copies``: properties by name;
    ``guids``: of its snapshots."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.copies: dict[str, dict[str, str]] = {}
        self.guids: dict[str, list[int]] = {}
        self.hello, self.marks_are_set = HELLO, True
        self.asked: list[str] = []
        self.sent: list[tuple[list[str], str]] = []
        self.here: dict[str, list[Snapshot]] = {}
        self.marks: list[Bookmark] = []
        self.error: Failed | None = None
        monkeypatch.setattr(connection, "ask", self.ask)
        monkeypatch.setattr(transfer, "send_stream", self.send)
        monkeypatch.setattr(transfer, "estimate", lambda _argv: 1000)
        monkeypatch.setattr(settings, "find_remote", lambda _key: REMOTE)
        monkeypatch.setattr(settings, "write_remote", lambda _remote: None)
        monkeypatch.setattr(run_snapshot, "refuse_without_bookmarks", lambda _pool: None)
        monkeypatch.setattr(libzfs, "take_most_snapshots", self.take)
        monkeypatch.setattr(libzfs, "create_bookmarks", self.bookmark)
        monkeypatch.setattr(libzfs, "destroy_bookmarks", lambda _names: None)
        monkeypatch.setattr(libzfs, "destroy_bookmark", lambda _name: None)
        monkeypatch.setattr(libzfs, "destroy_snapshots", self.destroy)
        monkeypatch.setattr(
            list_snapshots, "list_snapshots", lambda names: [one for name in names for one in self.here.get(name, [])]
        )
        for module in (copy_dataset, send_backup):
            monkeypatch.setattr(
                module, "read_bookmarks", lambda names: [one for one in self.marks if one.name.split("#")[0] in names]
            )
        monkeypatch.setattr(
            copies, "read_points", lambda name: [Point(one.name, one.guid) for one in self.here.get(name, [])]
        )

    # --- here
    def snapshot(self, name: str, guid: int, written: int = 1, short: str = "", task: str = "") -> Snapshot:
        at = len(self.here.get(name, [])) + 1
        made = Snapshot(
            f"{name}@{short or f'day-{guid}'}", guid, at, START + timedelta(days=at), written=written, task=task
        )
        self.here.setdefault(name, []).append(made)
        return made

    def take(self, wanted: list[str], properties: dict[str, str]) -> tuple[libzfs.Left, ...]:
        for full in wanted:
            name, _at, short = full.partition("@")
            if name not in self.thick:
                guid = 1000 + len(self.here.get(name, []))
                self.snapshot(name, guid, self.written.get(name, 1), short, properties["larder:task"])
        return tuple(libzfs.Left(full, "No space.") for full in wanted if full.partition("@")[0] in self.thick)

    thick: frozenset[str] = frozenset()  # volumes that reserve more than is free

    written: dict[str, int] = {}  # replaced, never changed

    def bookmark(self, wanted: dict[str, str]) -> None:
        for mark, full in wanted.items():
            found = next(one for one in self.here[full.partition("@")[0]] if one.name == full)
            self.marks.append(Bookmark(mark, found.guid, found.txg, found.created))

    def destroy(self, names: list[str]) -> tuple[libzfs.Left, ...]:
        self.here = {name: [one for one in found if one.name not in names] for name, found in self.here.items()}
        return ()

    # --- there
    def ask(self, _remote: Remote, words: tuple[str, ...], **_how: Any) -> str:
        self.asked.append(" ".join(words))
        if self.error:
            raise self.error
        match words:
            case ("hello",):
                return self.hello
            case ("list",):
                return self.listing(*self.copies)
            case ("list", name):
                if name not in self.copies:
                    result = Result(("ssh",), 1, "", f"cannot open 'tank/attic/{name}': dataset does not exist", 0.1)
                    raise CommandFailed(result)
                return self.listing(name)
            case ("mark", name, guid, mode):
                if not self.marks_are_set:
                    raise CommandFailed(Result(("ssh",), 1, "", "cannot set property: permission denied", 0.1))
                self.copies[name]["larder:copy-of"] = f'{{"guid":{guid},"raw":{"true" if mode == "raw" else "false"}}}'
                return ""
            case ("token", _name):
                return "1-e604ea4bf-e0\n"
            case ("abort", _name):
                raise CommandFailed(Result(("ssh",), 1, "", "permission denied", 0.1))
        raise AssertionError(words)

    def listing(self, *names: str) -> str:
        lines = ["larder-peer\t1"]
        for name in names:
            lines += [f"tank/attic/{name}\t{key}\t{value}\tlocal" for key, value in self.copies[name].items()]
        for name in names:
            for at, guid in enumerate(self.guids.get(name, []), 1):
                full = f"tank/attic/{name}@{self.called.get(guid, guid)}"
                lines += [f"{full}\tguid\t{guid}", f"{full}\tcreatetxg\t{at}"]
        return "\n".join([*lines, "end", ""])

    def send(self, sender: list[str], receiver: list[str], *_how: object, may_end: bool, foreign: bool) -> int:
        words = receiver[-1].split()
        assert words[0] == "receive" and may_end  # ssh, and no receiver of this box
        self.sent.append((sender, receiver[-1]))
        if self.error_of_stream is not None:
            raise NotReceived(self.status_of_stream, self.error_of_stream)
        name, guid, mode = words[1:]
        new = dict(OFF) | (
            {"larder:copy-of": f'{{"guid":{guid},"raw":{"true" if mode == "raw" else "false"}}}'}
            if self.marks_are_set
            else {}
        )
        self.copies.setdefault(name, {**new, "larder:sent": mode}).pop("receive_resume_token", None)
        source = sender[-1].partition("@")[0] if "--" in sender else self.resumed
        self.guids.setdefault(name, []).append(self.here[source][-1].guid)
        return 500

    error_of_stream: str | None = None
    status_of_stream, resumed = 1, ""
    called: dict[int, str] = {}  # replaced, never changed: snapshots there that are not called as their guid


@pytest.fixture
def there(monkeypatch) -> There:
    return There(monkeypatch)


def run(operation: SendBackup = RUN, facts: Any = FACTS) -> Working:
    work = Working()
    for step in checked_plan(operation, facts).steps:
        step.run(work)
    return work


def later(moment: str) -> SendBackup:
    """The same run at another moment."""
    return SendBackup(dataset=RUN.dataset, key=RUN.key, remote=RUN.remote, moment=moment)


def test_first_run_sends_parents_first_and_reads_back_what_arrived(there):
    work = run()
    assert [words for _sender, words in there.sent] == ["receive photos 5 large", "receive photos/trip_2019 6 large"]
    assert there.sent[0][0][:2] == ["zfs", "send"] and "-i" not in there.sent[0][0]
    assert there.asked[:2] == ["hello", "list"]
    assert there.asked.count("list photos") >= 2  # before it was sent, and after
    assert any(line.startswith(f'{COMPLETE}{{"run":"2026.11.24-02.00.00"') for line in work.notes)
    assert "All folders were copied: 2." in work.notes


def test_second_run_sends_an_increment_of_what_changed_alone(there):
    run()
    there.sent.clear()
    there.written = {"tank/photos/trip 2019": 0}
    work = run(later("2026.11.25-02.00.00"))
    ((sender, words),) = there.sent
    assert words == "receive photos 5 large" and "-i" in sender
    assert "Nothing new in 1 of 2 folders: their copies are complete." in work.notes


def test_increment_with_nothing_new_asks_as_little_for_200_folders_as_for_two(there, monkeypatch):
    listed: list[int] = []
    real = list_snapshots.list_snapshots
    monkeypatch.setattr(list_snapshots, "list_snapshots", lambda names: listed.append(1) or real(names))
    asked = []
    for count in (2, 200):
        facts = replace(
            FACTS, datasets=(TOP, *(dataset(f"tank/photos/{at:03}", guid=10 + at) for at in range(count - 1)))
        )
        there.written = {}
        run(later("2026.11.24-02.00.00"), facts)
        for noted in (there.sent, there.asked, listed):
            noted.clear()
        there.written = dict.fromkeys((one.name for one in facts.datasets), 0)
        work = run(later("2026.11.25-02.00.00"), facts)
        assert f"Nothing new in {count} of {count} folders: their copies are complete." in work.notes
        assert there.sent == []
        asked.append((there.asked[:], len(listed)))
        there.__dict__.update(copies={}, guids={}, here={}, marks=[])
    assert asked[0] == asked[1] == (["hello", "list"], 1)


def test_copy_whose_first_stream_was_plain_stays_plain(there):
    there.hello = HELLO.replace("feature@zstd_compress\tenabled", "feature@zstd_compress\tdisabled")
    run()
    assert there.sent[0][1] == "receive photos 5 plain" and "-L" not in there.sent[0][0]
    there.hello = HELLO
    there.sent.clear()
    run(later("2026.11.25-02.00.00"))
    assert there.sent[0][1] == "receive photos 5 plain" and "-L" not in there.sent[0][0]


def test_copy_of_a_folder_that_was_renamed_is_found_by_its_mark(there):
    run()
    there.sent.clear()
    renamed = replace(TRIP, name="tank/photos/journey")
    there.here["tank/photos/journey"] = there.here.pop("tank/photos/trip 2019")
    run(
        later("2026.11.25-02.00.00"),
        replace(FACTS, datasets=(TOP, renamed)),
    )
    assert there.sent[-1][1] == "receive photos/trip_2019 6 large"


def test_encrypted_folder_is_sent_raw(there):
    locked = replace(TRIP, encryption="aes-256-gcm")
    run(facts=replace(FACTS, datasets=(TOP, locked)))
    sender, words = there.sent[-1]
    assert "-w" in sender and words == "receive photos/trip_2019 6 raw"


def test_mark_that_zfs_left_out_with_status_0_makes_the_step_fail(there):
    there.marks_are_set = False
    with pytest.raises(Failed, match="zfs allow -u backup userprop tank/attic"):
        run()
    assert not any(line.startswith("2 of 2") for line in there.asked)


def test_copy_that_could_be_mounted_does_not_count(there, monkeypatch):
    monkeypatch.setitem(OFF, "mountpoint", "/etc")
    with pytest.raises(Failed, match=r"was not kept out of use: As root on attic.lan: zfs set mountpoint=none"):
        run()


def test_missing_right_stops_it_before_a_snapshot_is_taken(there):
    there.hello = HELLO.replace("receive:append", "hold")
    with expect_refusal("remote-right-missing"):
        run()
    assert there.here == {} and there.sent == []


def test_changed_host_key_stops_it_before_a_snapshot_is_taken(there, monkeypatch):
    written: list[Remote] = []
    there.error = connection.unreachable(REMOTE, "Host key verification failed.")
    monkeypatch.setattr(connection, "fetch_host_key", lambda _host, _port: OTHER)
    monkeypatch.setattr(settings, "write_remote", written.append)
    with pytest.raises(connection.Unreachable, match="Nothing was sent"):
        run()
    assert there.here == {} and there.sent == []
    assert written[0].offered_key == OTHER and written[0].host_key == KEY and written[0].has_other_key


def test_what_is_no_copy_of_this_folder_is_left_alone(there):
    there.copies["photos"] = {**OFF}
    there.guids["photos"] = [77]
    with pytest.raises(Failed, match="is not a copy that Larder made"):
        run()
    assert not any(words.startswith("receive photos ") for _sender, words in there.sent)
    assert there.here["tank/photos"] == []  # and no snapshot was left for it


def test_name_that_another_snapshot_has_there_is_refused_and_a_run_of_now_goes_on(there):
    run()
    there.sent.clear()
    again = later("2026.11.25-02.00.00")
    there.called = {there.guids["photos"][0]: again.short}
    with pytest.raises(Failed, match=rf"The copy photos already has another snapshot called {again.short}"):
        run(again)
    assert there.sent == []
    assert not any(one.short == again.short for one in there.here["tank/photos"])  # it took its own back
    new = again.again(FACTS)
    assert new.moment != again.moment and replace(new, moment=again.moment) == again
    run(new)
    assert [words for _sender, words in there.sent] == ["receive photos 5 large", "receive photos/trip_2019 6 large"]


def test_one_folder_that_fails_does_not_keep_the_other_from_being_copied(there):
    there.copies["photos/trip_2019"] = {**OFF, "larder:copy-of": '{"guid":6,"raw":false}', "written": "512"}
    there.guids["photos/trip_2019"] = [77]
    with pytest.raises(Failed, match="1 of 2 folders was not copied"):
        run()
    assert there.sent[0][1] == "receive photos 5 large"


def test_every_failure_of_a_run_can_be_translated(there):
    """Joined as plain text they stay English on a Dutch page."""
    there.error_of_stream = "cannot receive: out of space"
    with pytest.raises(Failed) as caught:
        run()
    words = {"{root} on {host} is full": "{root} op {host} is vol"}
    dutch = words_of(explain_error(caught.value), lambda text: words.get(text, text))
    assert dutch.count("tank/attic op attic.lan is vol") == 2


def test_volume_that_zfs_takes_no_snapshot_of_keeps_no_folder_from_being_copied(there):
    there.thick = frozenset({"tank/photos/trip 2019"})
    with pytest.raises(Failed, match=r"1 of 2 folders.*tank/photos/trip 2019: .*No space\."):
        run()
    assert [words for _sender, words in there.sent] == ["receive photos 5 large"]


def test_usable_token_goes_on_and_another_asks_for_help(there, monkeypatch):
    first = there.snapshot("tank/photos", 900)
    there.copies["photos"] = {**OFF, "larder:copy-of": '{"guid":5,"raw":false}', "receive_resume_token": "1-x"}
    there.resumed = "tank/photos"
    tokens = {
        "good": Token("1-e604ea4bf-e0", first.guid, first.name),
        "forged": Token("1-e604ea4bf-e0", 4, "tank/secret@x"),
    }
    monkeypatch.setattr(copies, "read_token", lambda _text: tokens["good"])
    run()
    assert there.sent[0][0] == ["zfs", "send", "-t", "1-e604ea4bf-e0"]
    there.copies["photos"]["receive_resume_token"] = "1-x"
    monkeypatch.setattr(copies, "read_token", lambda _text: tokens["forged"])
    there.sent.clear()
    with pytest.raises(Failed, match="zfs receive -A tank/attic/photos"):
        run(later("2026.11.25-02.00.00"))
    assert not any("-t" in sender for sender, _words in there.sent)


# What 2.3.9 says while another ``zfs receive -s`` has the dataset (libzfs_sendrecv.c, EBUSY of a dataset with a token).
BUSY = (
    'cannot receive resume stream: destination tank/attic/photos contains partially-complete state from "zfs '
    'receive -s".'
)


@pytest.mark.parametrize(
    ("status", "said", "words"),
    [
        (1, "cannot receive new filesystem stream: out of space", "is full"),
        (1, "cannot receive: destination 'x' space quota exceeded", "is full"),
        (1, "cannot receive incremental stream: dataset is busy", "still receiving an earlier copy"),
        (1, BUSY, "still receiving an earlier copy"),
        (1, "cannot receive new filesystem stream: permission denied", "A right is missing"),
        (255, "ssh: connect to host attic.lan port 22: Connection refused", "Nothing answers at attic.lan"),
        (255, "backup@attic.lan: Permission denied (publickey).", "does not let this box in"),
        (255, "Host key verification failed.", "showed another host key"),
        (255, "", "The connection to attic.lan broke off"),  # it was silent for a minute
        (255, "warning: cannot send 'tank/photos@x': Broken pipe", "The connection to attic.lan broke off"),
        (1, "something that nobody knows", "something that nobody knows"),
    ],
)
def test_what_the_receiver_says_becomes_a_sentence(there, status, said, words):
    there.error_of_stream, there.status_of_stream = said, status
    with pytest.raises(Failed, match=words):
        run()


def test_folder_without_room_is_refused_before_anything_is_sent(there, monkeypatch):
    monkeypatch.setattr(transfer, "estimate", lambda _argv: 10**12)
    with pytest.raises(Failed, match=r"tank/attic on attic.lan has 5 GB free"):
        run()
    assert there.sent == []


def test_token_that_is_none_is_not_used(there, monkeypatch):
    monkeypatch.setattr(connection, "ask", lambda *_words, **_how: "-F; id\n")
    place = remote_place.RemotePlace(REMOTE, Hello())
    with pytest.raises(Failed):
        place.read_token("photos")


# --- names, checks --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("name", "wanted"), [("trip 2019", "trip_2019"), (".zfs", "_zfs"), ("-F", "_F"), ("a:b.c-d_e", "a:b.c-d_e")]
)
def test_names_are_spelled_as_the_script_takes_them(name, wanted):
    assert spell(name) == wanted


def test_two_folders_never_share_a_copy():
    other = dataset("tank/photos/trip_2019", guid=7)
    found = names_there("photos", TOP, [TOP, TRIP, other], {})
    assert found == {5: "photos", 6: "photos/trip_2019", 7: "photos/trip_2019-2"}


def test_interrupted_first_copy_is_gone_on_with_under_its_name():
    half = RemoteCopy({"type": "filesystem", "receive_resume_token": "1-x"})
    other = RemoteCopy({"type": "filesystem"})
    assert names_there("photos", TOP, [TOP, TRIP], {"photos/trip_2019": half})[6] == "photos/trip_2019"
    assert names_there("photos", TOP, [TOP, TRIP], {"photos/trip_2019": other})[6] == "photos/trip_2019-2"


def test_run_needs_a_computer_whose_key_was_confirmed():
    with expect_refusal("remote-missing"):
        checked_plan(RUN, replace(FACTS, remotes=()))
    with expect_refusal("remote-not-confirmed"):
        checked_plan(RUN, replace(FACTS, remotes=(replace(REMOTE, host_key=""),)))
    with expect_refusal("backup-missing"):
        checked_plan(replace_field(RUN, remote="1badcafe"), replace(FACTS, remotes=(replace(REMOTE, id="1badcafe"),)))


def replace_field(operation: SendBackup, **fields: str) -> SendBackup:
    values = {name: getattr(operation, name) for name in ("dataset", "key", "remote", "moment")}
    return SendBackup(**{**values, **fields})


def test_plan_changes_with_the_computer_it_was_made_for():
    others = (REMOTE, replace(REMOTE, host="evil.lan"), replace(REMOTE, host_key=OTHER), replace(REMOTE, root="x/y"))
    plans = [checked_plan(RUN, replace(FACTS, remotes=(one,))) for one in others]
    assert len({plan.digest() for plan in plans}) == len(plans)


@pytest.mark.parametrize(
    "fields",
    [
        {"path": "a b"},
        {"path": "../a"},
        {"path": "a/b"},
        {"path": "-F"},
        {"path": ""},
        {"pool": 5},
        {"remote": "../x"},
        {"removable": True},
    ],
)
def test_task_for_another_computer_has_a_plain_name_and_no_pool(fields: dict[str, Any]):
    given: dict[str, Any] = {"key": "0123abcd", "pool": 0, "remote": "0badcafe", "path": "photos"}
    with pytest.raises(Refused):
        BackupTask(**{**given, **fields})


def test_backup_to_another_computer_says_who_decides_what_stays():
    wanted = SetBackup(dataset="tank/photos", tasks=(TASK,))
    bare = replace(FACTS, datasets=(dataset("tank/photos", guid=5),))
    assert "how long they stay is decided on that computer" in checked_plan(wanted, bare).summary
    with expect_refusal("remote-not-confirmed"):
        checked_plan(wanted, replace(bare, remotes=(replace(REMOTE, host_key=""),)))
    with expect_refusal("remote-missing"):
        checked_plan(wanted, replace(bare, remotes=()))


def test_removing_a_backup_says_that_its_last_snapshot_stays():
    gone = checked_plan(SetBackup(dataset="tank/photos"), FACTS)
    assert "last snapshot that a removed backup took stays" in " ".join(gone.warnings)
    same = checked_plan(SetBackup(dataset="tank/photos", tasks=(replace(TASK, hour=5),)), FACTS)
    assert "stays" not in " ".join(same.warnings)


# --- adding, confirming, removing -----------------------------------------------------------------------------------
ADD = AddRemote(remote="1badcafe", host="attic.lan", user="backup", root="tank/other")


@pytest.fixture
def folder(monkeypatch, tmp_path):
    monkeypatch.setattr(paths, "SSH", tmp_path)
    monkeypatch.setattr(settings, "ssh_group", lambda: tmp_path.stat().st_gid)
    return tmp_path


def do(operation: Any, facts: Any = FACTS) -> Working:
    return run(operation, facts)


def test_added_computer_is_not_trusted_until_its_key_is_confirmed(folder, monkeypatch):
    monkeypatch.setattr(connection, "fetch_host_key", lambda _host, _port: KEY)
    do(ADD)
    (found,) = settings.read_remotes()
    assert (found.host_key, found.offered_key) == ("", KEY) and found.public_key.startswith("ssh-ed25519 ")
    assert not (folder / "1badcafe.hosts").exists()
    facts = replace(FACTS, remotes=(found,))
    with expect_refusal("host-key-other"):
        checked_plan(ConfirmHostKey(remote="1badcafe", fingerprint=fingerprint_of(OTHER)), facts)
    do(ConfirmHostKey(remote="1badcafe", fingerprint=fingerprint_of(KEY)), facts)
    assert settings.read_remotes()[0].host_key == KEY
    assert (folder / "1badcafe.hosts").read_text() == f"larder-1badcafe {KEY}\n"


def test_key_that_changed_between_the_page_and_the_job_is_not_pinned(folder, monkeypatch):
    settings.write_remote(replace(REMOTE, host_key="", offered_key=KEY))
    plan = checked_plan(
        ConfirmHostKey(remote="0badcafe", fingerprint=fingerprint_of(KEY)),
        replace(FACTS, remotes=settings.read_remotes()),
    )
    settings.write_remote(replace(REMOTE, host_key="", offered_key=OTHER))
    with expect_refusal("host-key-other"):
        plan.steps[0].run(Working())
    assert settings.read_remotes()[0].host_key == ""


def test_changed_key_is_confirmed_with_a_warning():
    changed = replace(REMOTE, offered_key=OTHER)
    plan = checked_plan(
        ConfirmHostKey(remote="0badcafe", fingerprint=fingerprint_of(OTHER)), replace(FACTS, remotes=(changed,))
    )
    assert fingerprint_of(KEY) in plan.warnings[0]


def test_computer_that_does_not_answer_is_added_and_says_so(folder, monkeypatch):
    def refuse(_host: str, _port: int) -> str:
        raise connection.unreachable(REMOTE, "Connection refused")

    monkeypatch.setattr(connection, "fetch_host_key", refuse)
    do(ADD)
    assert "Nothing answers at" in settings.read_remotes()[0].problem


def test_same_folder_is_not_added_twice():
    with expect_refusal("remote-twice"):
        checked_plan(AddRemote(remote="1badcafe", host="attic.lan", user="backup", root="tank/attic"), FACTS)
    with expect_refusal("port-out-of-range"):
        AddRemote(remote="1badcafe", host="attic.lan", user="backup", root="tank/attic", port=0)


def test_computer_with_backups_is_not_removed(folder):
    with expect_refusal("remote-in-use"):
        checked_plan(RemoveRemote(remote="0badcafe"), FACTS)
    settings.write_remote(REMOTE)
    do(RemoveRemote(remote="0badcafe"), replace(FACTS, datasets=()))
    assert list(folder.iterdir()) == []


def test_test_says_what_there_is(there):
    work = do(TestRemote(remote="0badcafe"))
    assert "attic.lan has ZFS 2.3.9, and 5 GB are free in tank/attic." in work.notes
    assert there.asked == ["hello"]


def test_user_who_may_destroy_is_pointed_out(there):
    there.hello = HELLO.replace("userprop", "userprop,destroy")
    assert any("may destroy copies there" in note for note in do(TestRemote(remote="0badcafe")).notes)


def test_probes_tell_what_is_there(there):
    assert not RUN.probe("copy-5", FACTS)
    assert not RUN.probe("snapshot", FACTS)
    taken = tuple(there.snapshot(one.name, one.guid, short=RUN.short) for one in (TOP, TRIP))
    assert RUN.probe("snapshot", replace(FACTS, snapshots=taken))
    assert ConfirmHostKey(remote="0badcafe", fingerprint=fingerprint_of(KEY)).probe("pin", FACTS)
    assert not RemoveRemote(remote="0badcafe").probe("remove", FACTS)
