"""Each kind of source: how it is reached, that no password is in a command, what its failures
mean, and where it went away."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from appliance import command
from appliance.backups.remote import settings
from appliance.command import CommandFailed, CommandTimedOut, Result
from appliance.errors import Failed
from appliance.facts.file_import import FileImport
from appliance.imports import rsync
from appliance.imports.rsync import RsyncListing
from appliance.imports.set_password import SetImportPassword
from appliance.imports.set_up import AddImport
from appliance.imports.settings import (
    check_password,
    check_source_user,
    password_file,
    read_password,
    remove_import,
    write_password,
)
from appliance.imports.sources import SOURCES, nfs, smb
from appliance.imports.sources.base import SourceAway
from appliance.system import paths
from tests.reasons import expect_refusal
from tests.unit.made import RECORDED

SMB = FileImport("0badcafe", "nas.lan", 445, "anna", "/my photos/2019", "tank/photos", 5, protocol="smb")
NFS = FileImport("0badcafe", "nas.lan", 2049, "", "/volume1/photos", "tank/photos", 5, protocol="nfs")
DAEMON = FileImport("0badcafe", "nas.lan", 873, "anna", "/photos/2019", "tank/photos", 5, protocol="rsync")
PASSWORD = "geheim, 100 %"


@pytest.fixture(autouse=True)
def folder(monkeypatch, tmp_path):
    monkeypatch.setattr(paths, "SSH", tmp_path / "ssh")
    monkeypatch.setattr(settings, "ssh_group", lambda: 0)


class Commands:
    """Answers in place of the commands of a mount, and what a credentials file said meanwhile."""

    def __init__(self, place):
        self.place, self.argv, self.seen, self.answer = place, [], "", (0, "")

    def run(self, argv, **_how):
        self.argv.append(list(argv))
        if (file := self.place / "credentials").exists():
            self.seen = file.read_text()
            assert file.stat().st_mode & 0o777 == 0o600
        status, said = self.answer
        return Result(tuple(argv), status, "", said, 0.1)


@pytest.fixture
def commands(monkeypatch, tmp_path):
    place = tmp_path / "place"
    place.mkdir()
    found = Commands(place)
    monkeypatch.setattr(command, "run", found.run)
    return found


def operation(**changes):
    given = {
        "task": "0badcafe",
        "host": "nas.lan",
        "user": "anna",
        "path": "/photos",
        "dataset": "tank/photos",
        "guid": 5,
        "protocol": "smb",
    }
    return AddImport(**{**given, **changes})


# --- what is asked of rsync -------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("task", "operand"),
    [
        (SMB, "/source/2019/"),
        (replace(SMB, path="/photos"), "/source/"),
        (NFS, "/source/"),
        (DAEMON, "rsync://anna@nas.lan:873/photos/2019/"),
        (replace(DAEMON, user="", host="fd00::5", port=8873, path="/photos"), "rsync://[fd00::5]:8873/photos/"),
    ],
)
def test_source_is_one_operand_for_each_kind(task, operand):
    for argv in (rsync.count_argv(task), rsync.copy_argv(task, "m"), rsync.compare_argv(task)):
        assert argv[-3:] == ["--", operand, "/folder/"]
        assert "--filter=- .zfs/" in argv and "--safe-links" in argv and not [one for one in argv if "--rsh" in one]
        # rsync 3.5 ends with "--secluded-args conflicts with --old-args" for two local folders.
        assert ("--secluded-args" in argv) != SOURCES[task.protocol].is_mounted


def test_password_is_a_file_in_the_sandbox_and_in_no_command(commands):
    write_password("0badcafe", PASSWORD)
    (commands.place / "run").mkdir()
    SOURCES["rsync"].furnish(DAEMON, commands.place)
    file = commands.place / "run/import-password"
    assert file.read_text() == f"{PASSWORD}\n" and file.stat().st_mode & 0o777 == 0o600
    argv = rsync.copy_argv(DAEMON, "m")
    assert "--password-file=/run/import-password" in argv and not [word for word in argv if "geheim" in word]
    assert not [word for word in rsync.copy_argv(replace(DAEMON, user=""), "m") if "password" in word]


def test_mounted_source_names_what_it_leaves_out_itself():
    assert "--debug=FILTER1" in rsync.count_argv(SMB) and "-M--debug=FILTER1" in rsync.count_argv(DAEMON)
    listing = RsyncListing()
    listing.take((RECORDED / "rsync-count-local-3.5.0.txt").read_bytes())
    assert (listing.found.files, listing.found.folders, listing.found.left_out) == (3, 2, 5)


# --- mounting ---------------------------------------------------------------------------------------------------------
def test_share_is_mounted_read_only_with_credentials_that_are_gone_afterwards(commands):
    write_password("0badcafe", PASSWORD)
    SOURCES["smb"].furnish(SMB, commands.place)
    (argv,) = commands.argv
    assert argv[-2:] == ["//nas.lan/my photos", str(commands.place / "source")]
    options = argv[argv.index("-o") + 1].split(",")
    assert {"ro", "nosuid", "nodev", "noexec", "soft", "nodfs", "sec=ntlmsspi", "port=445"} <= set(options)
    assert commands.seen == f"username=anna\npassword={PASSWORD}\n"
    assert not (commands.place / "credentials").exists()
    assert not [word for word in argv if "geheim" in word]


def test_credentials_are_gone_where_the_mount_failed(commands):
    write_password("0badcafe", PASSWORD)
    commands.answer = (32, "mount error(13): Permission denied\n")
    with pytest.raises(Failed, match="does not let anna in"):
        SOURCES["smb"].furnish(SMB, commands.place)
    assert commands.seen and not (commands.place / "credentials").exists()


def test_share_without_a_user_is_opened_as_a_guest(commands):
    SOURCES["smb"].furnish(replace(SMB, user=""), commands.place)
    options = commands.argv[0][commands.argv[0].index("-o") + 1].split(",")
    assert {"guest", "sec=none"} <= set(options) and not commands.seen


def test_export_is_mounted_read_only_and_never_waits_for_good(commands):
    SOURCES["nfs"].furnish(NFS, commands.place)
    (commands.place / "other").mkdir()
    SOURCES["nfs"].furnish(replace(NFS, host="fd00::5", port=2050), commands.place / "other")
    first, second = commands.argv
    assert first[-2] == "nas.lan:/volume1/photos" and second[-2] == "[fd00::5]:/volume1/photos"
    options = first[first.index("-o") + 1].split(",")
    assert {"ro", "nosuid", "nodev", "noexec", "softerr", "retry=0", "nolock"} <= set(options)
    assert "hard" not in options and "port=2050" in second[second.index("-o") + 1]


def test_mount_that_does_not_end_is_a_nas_that_does_not_answer(commands, monkeypatch):
    def late(argv, **_how):
        raise CommandTimedOut(argv, 90, None)

    monkeypatch.setattr(command, "run", late)
    with pytest.raises(SourceAway, match="does not answer any more"):
        SOURCES["nfs"].furnish(NFS, commands.place)


@pytest.mark.parametrize(
    ("said", "means"),
    [
        ("mount error(13): Permission denied", "does not let anna in"),
        ("mount error(2): No such file or directory", "has no share my photos"),
        ("mount error(95): Operation not supported", "SMB 1 is not safe"),
        (
            "mount error(111): could not connect to 127.0.0.1Unable to find suitable address.",
            "Nothing answers at nas.lan, port 445",
        ),
        ("mount error(113): could not connect to 10.0.0.9Unable to find suitable address.", "cannot be reached"),
        ("mount error: could not resolve address for nas.lan: Unknown error", "no computer with the name nas.lan"),
        ("mount error(5): Input/output error", "cannot be opened"),
    ],
)
def test_each_failure_of_a_share_has_a_sentence(said, means):
    assert means in str(smb.explain_mount(SMB, Result(("mount",), 32, "", said, 1.0)))


@pytest.mark.parametrize(
    ("said", "means"),
    [
        (
            "mount.nfs: access denied by server while mounting nas.lan:/volume1/photos",
            "does not export /volume1/photos to this box",
        ),
        ("mount.nfs: mounting nas.lan:/x failed, reason given by server: No such file or directory", "has no export"),
        ("mount.nfs: Connection refused", "Nothing answers at nas.lan, port 2049"),
        ("mount.nfs: Connection timed out", "cannot be reached"),
        ("mount.nfs: No route to host", "cannot be reached"),
        ("mount.nfs: Failed to resolve server nas.lan: Name or service not known", "no computer with the name nas.lan"),
        (
            "mount.nfs: requested NFS version or transport protocol is not supported",
            "offers no version of NFS that this box supports",
        ),
        ("mount.nfs: what nobody knows", "cannot be opened"),
    ],
)
def test_each_failure_of_an_export_has_a_sentence(said, means):
    assert means in str(nfs.explain_mount(NFS, Result(("mount",), 32, "", said, 1.0)))


@pytest.mark.parametrize(
    ("status", "said", "means"),
    [
        (5, "@ERROR: auth failed on module photos", "does not let anna in"),
        (5, "@ERROR: Unknown module 'photos'", "It lists these: photo album, music."),
        (5, "@ERROR: access denied to photos from box.lan (10.0.0.2)", "does not let this box read photos"),
        (5, "@ERROR: max connections (4) reached -- try again later", "takes no more connections"),
        (
            10,
            "rsync: [Receiver] failed to connect to nas.lan (10.0.0.9): Connection refused (111)",
            "Nothing answers at nas.lan, port 873",
        ),
        (10, "rsync: getaddrinfo: nas.lan 873: Name or service not known", "no computer with the name nas.lan"),
        (35, "rsync: timeout waiting for daemon connection", "cannot be reached"),
        (12, "rsync: connection unexpectedly closed (0 bytes received so far) [Receiver]", "broke off"),
    ],
)
def test_each_failure_of_a_service_has_a_sentence(monkeypatch, status, said, means):
    listed = Result(("rsync",), 0, "photo album    \tThe photos\nmusic          \t\n\x1b[2Jbad\t\n", "", 0.1)
    monkeypatch.setattr(command, "run_bounded", lambda _argv, **_how: listed)
    assert means in str(SOURCES["rsync"].explain(DAEMON, Result(("rsync",), status, "", said, 1.0)))


# --- a NAS that goes away ---------------------------------------------------------------------------------------------
def test_mount_that_no_longer_answers_ends_rsync(commands, monkeypatch):
    clock = [0.0]
    monkeypatch.setattr("appliance.imports.sources.mounted.time.monotonic", lambda: clock[0])
    look = SOURCES["smb"].watch(SMB, commands.place)
    look()
    assert not commands.argv  # not before it is time

    def silent(argv, **_how):
        commands.argv.append(argv)
        raise CommandTimedOut(argv, 20, None)

    monkeypatch.setattr(command, "run", silent)
    clock[0] += 60
    look()
    clock[0] += 60
    with pytest.raises(SourceAway):
        look()


def test_one_slow_answer_ends_nothing(commands, monkeypatch):
    clock, answers = [0.0], [False, True, False, True]
    monkeypatch.setattr("appliance.imports.sources.mounted.time.monotonic", lambda: clock[0])
    look = SOURCES["smb"].watch(SMB, commands.place)

    def slow(argv, **_how):
        if not answers.pop(0):
            raise CommandFailed(Result(tuple(argv), 1, "", "Host is down", 1.0))

    monkeypatch.setattr(command, "run", slow)
    for _ in range(4):
        clock[0] += 60
        look()
    assert not answers


@pytest.mark.parametrize(
    ("status", "said", "lost"),
    [
        (23, 'rsync: [sender] read errors mapping "/source/big": Host is down (112)', True),
        (23, 'rsync: [sender] opendir "/source/a" failed: Stale file handle (116)', True),
        (23, 'rsync: [sender] read errors mapping "/source/big": Connection timed out (110)', True),
        (23, 'rsync: [sender] read errors mapping "/source/big": Input/output error (5)', False),  # one bad file
        (23, 'rsync: [sender] opendir "/source/a" failed: Permission denied (13)', False),
        (30, "", True),
        (0, "", False),
    ],
)
def test_lost_connection_differs_from_a_file_that_cannot_be_read(status, said, lost):
    result = Result(("rsync",), status, "", f"{said}\n", 1.0)
    assert SOURCES["nfs"].is_lost(result) == lost
    assert bool(SOURCES["nfs"].explain(NFS, result)) == lost


# --- the password and the operation -----------------------------------------------------------------------------------
def test_password_is_readable_to_root_alone_and_removed_with_the_import():
    write_password("0badcafe", PASSWORD)
    assert read_password("0badcafe") == PASSWORD
    assert password_file("0badcafe").stat().st_mode & 0o777 == 0o600
    remove_import("0badcafe")
    with pytest.raises(Failed, match="password of this import is missing"):
        read_password("0badcafe")


@pytest.mark.parametrize("password", ["", "a\nusername=root", "a\0", "x" * 128])
def test_password_that_is_more_than_a_line_is_refused(password):
    with expect_refusal("import-password-invalid"):
        check_password(password)


def test_short_password_of_another_computer_reaches_the_import():
    """The agent's own rule is that of passphrases, which have 8 characters."""
    assert operation().check_secret("kurz") == SetImportPassword(task="0badcafe").check_secret("kurz") == "kurz"
    with expect_refusal("import-password-invalid"):
        operation().check_secret("a\nb")


@pytest.mark.parametrize("user", ["", "a,rw", "a\nb", "DOM\\a", "a:b", "a%b", "-a", "x" * 70])
def test_user_that_could_mean_something_else_is_refused(user):
    with expect_refusal("import-user-invalid"):
        check_source_user(user)


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"host": "fd00::5"}, "import-smb-version-6"),
        ({"path": "/photos,rw"}, "import-share-comma"),
        ({"owners": {"1026": "anna"}}, "import-owners-unknown"),
        ({"protocol": "nfs"}, "import-user-unused"),
        ({"protocol": "nfs", "user": "", "owners": {"ben": "anna"}}, "import-owners-numbers"),
        ({"protocol": "rsync", "owners": {"ben": "anna"}}, "import-owners-numbers"),
        ({"protocol": "rsync", "user": "a:b"}, "import-user-invalid"),
    ],
)
def test_operation_refuses_what_a_kind_cannot_do(changes, code):
    with expect_refusal(code):
        operation(**changes)


@pytest.mark.parametrize(
    ("changes", "secret"),
    [
        ({}, True),
        ({"user": ""}, False),
        ({"protocol": "nfs", "user": ""}, False),
        ({"protocol": "rsync"}, True),
        ({"protocol": "ssh"}, False),
    ],
)
def test_password_is_asked_for_where_somebody_signs_in(changes, secret):
    assert operation(**changes).wants_secret() == secret


def test_import_without_a_host_key_needs_the_password_of_the_administrator():
    assert operation().needs_proof(None, None) and not operation(protocol="ssh").needs_proof(None, None)
