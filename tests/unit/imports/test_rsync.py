"""What is asked of rsync, and that its words are understood (tests/unit/recorded/rsync-*-3.5.0.txt)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from appliance.backups.remote import settings
from appliance.errors import Failed
from appliance.facts.file_import import FileImport
from appliance.imports import import_steps, rsync, run_import
from appliance.imports.import_steps import ImportRun
from appliance.imports.rsync import RsyncListing, RsyncTransfer
from appliance.imports.run_import import RunImport
from appliance.imports.set_up import AddImport
from appliance.imports.settings import check_owners, check_path
from appliance.system import paths
from tests.reasons import expect_refusal
from tests.unit.made import RECORDED
from tests.unit.pools.test_create import Working

TASK = FileImport(
    "0badcafe", "nas.lan", 2222, "admin", "/volume1/my photos", "tank/photos", 5, host_key="ssh-ed25519 AAAA"
)


@pytest.fixture(autouse=True)
def folder(monkeypatch, tmp_path):
    monkeypatch.setattr(paths, "SSH", tmp_path / "ssh")
    monkeypatch.setattr(settings, "ssh_group", lambda: 0)


def recorded(name: str) -> bytes:
    return (RECORDED / name).read_bytes()


def in_parts(text: bytes, take, size: int) -> None:
    for at in range(0, len(text), size):
        take(text[at : at + size])


def filters(argv: list[str]) -> list[str]:
    return [word.removeprefix("--filter=") for word in argv if word.startswith("--filter=")]


EVERY_ARGV = [rsync.count_argv(TASK), rsync.copy_argv(TASK, "m"), rsync.compare_argv(TASK)]


@pytest.mark.parametrize("argv", EVERY_ARGV)
def test_source_is_one_operand_and_nothing_is_ever_deleted(argv):
    assert argv[-3:] == ["--", "admin@nas.lan:/volume1/my photos/", "/folder/"]
    assert not [
        word for word in argv if word.startswith(("--delete", "--inplace", "--append", "--archive", "--devices"))
    ]
    assert {
        "--safe-links",
        "--no-devices",
        "--no-specials",
        "--no-perms",
        "--one-file-system",
        "--secluded-args",
    } <= set(argv)


@pytest.mark.parametrize("argv", EVERY_ARGV)
def test_folders_of_the_other_nas_are_left_out_at_every_depth(argv):
    for name in (".zfs", ".snapshot", "@eaDir", "#recycle", "#snapshot", ".Trash-*", "lost+found"):
        assert f"- {name}/" in filters(argv)
    assert "-x! user.*" in filters(argv)


@pytest.mark.parametrize("argv", EVERY_ARGV)
def test_ssh_is_called_as_for_backups_and_its_words_have_no_spaces(argv):
    (shell,) = [word.removeprefix("--rsh=") for word in argv if word.startswith("--rsh=")]
    words = shell.split(" ")
    assert (
        "--reuid=larder-ssh" in words
        and "StrictHostKeyChecking=yes" in words
        and "HostKeyAlias=larder-0badcafe" in words
    )
    assert words[-2:] == ["-p", "2222"]


def test_address_of_version_6_is_put_into_brackets():
    task = FileImport("0badcafe", "fd00::5", 22, "admin", "/a", "tank/photos", 5)
    assert rsync.copy_argv(task, "m")[-2] == "admin@[fd00::5]:/a/"


@pytest.mark.parametrize(
    ("existing", "wanted", "unwanted"),
    [
        ("none", "--ignore-existing", "--backup"),
        ("keep", "--ignore-existing", "--backup"),
        ("newer", "--backup-dir=.larder-replaced-m", "--ignore-existing"),
    ],
)
def test_what_is_here_stays_unless_newer_ones_were_asked_for(existing, wanted, unwanted):
    task = FileImport("0badcafe", "nas.lan", 22, "admin", "/a", "tank/photos", 5, existing=existing)
    argv = rsync.copy_argv(task, "m")
    assert wanted in argv and unwanted not in argv


@pytest.mark.parametrize(
    "path",
    [
        "photos",
        "-rf",
        "::module",
        "/a/../b",
        "/a\nb",
        "/a*",
        "/a[b]",
        "/a\\",
        "",
        "/" + "a" * 1000,
        "/a/.",
        "/a;id",
        "/a'",
        "/a$b",
        "/a//b",
        "/",
    ],
)
def test_path_that_could_mean_something_else_is_refused(path):
    with expect_refusal("import-path-invalid"):
        check_path(path)


@pytest.mark.parametrize("size", [1, 7, 4096])
def test_dry_run_is_counted_whatever_parts_it_comes_in(size):
    listing = RsyncListing()
    in_parts(recorded("rsync-count-3.5.0.txt"), listing.take, size)
    found = listing.found
    assert (found.files, found.folders, found.links) == (8, 2, 1)
    assert (found.size, found.new, found.new_size) == (8286320, 7, 8286320)
    assert found.left_out == 7 == len(found.named)
    assert "a/.zfs: a folder of the other NAS's own" in found.named
    assert "dev: a device, pipe or socket" in found.named
    assert "b/up: a link that leads out of the folder" in found.named


def test_comparison_without_differences_finds_none():
    listing = RsyncListing()
    in_parts(recorded("rsync-compare-3.5.0.txt"), listing.take, 64)
    assert (listing.files, listing.differing, listing.different) == (8, 0, [])


def test_comparison_names_each_file_that_differs_or_is_missing():
    listing = RsyncListing()
    in_parts(recorded("rsync-compare-different-3.5.0.txt"), listing.take, 64)
    assert sorted(listing.different) == ["-dash", "big", "in"]
    assert listing.differing == 3


def test_bytes_are_read_from_what_rsync_writes_over_and_over():
    transfer = RsyncTransfer()
    in_parts(recorded("rsync-copy-3.5.0.txt"), transfer.take, 50)
    assert transfer.done == 8286320


def test_line_without_an_end_takes_no_memory():
    listing = RsyncListing()
    for _ in range(100):
        listing.take(b"x" * 10_000)
    assert len(listing.lines.rest) <= 8192


def test_complaints_are_those_about_files():
    said = """rsync: [sender] opendir "/a/b" failed: Permission denied (13)
rsync: [Receiver] write error: Broken pipe (32)
rsync error: some files/attrs were not transferred (see previous errors) (code 23) at main.c(1956) [Receiver=3.5.0]
"""
    assert rsync.complaints(said) == ['rsync: [sender] opendir "/a/b" failed: Permission denied (13)']


def test_file_deleted_at_the_source_meanwhile_is_no_complaint():
    # As rsync 3.4 and 3.5 say it (flist.c, sender.c): a daemon names its module too.
    said = """file has vanished: "/home/old/a b"
file has vanished: "/zz-gone" (in photos)
rsync warning: some files vanished before they could be transferred (code 24) at main.c(1865) [generator=3.5.0]
"""
    assert rsync.complaints(said) == []
    assert rsync.vanished(said) == ['"/home/old/a b"', '"/zz-gone" (in photos)']


def test_run_in_which_files_were_deleted_at_the_source_is_done(monkeypatch):
    """Such a run was told as failed, with "could not be copied", though nothing was missed."""
    kept: list[FileImport] = []
    notes: list[str] = []
    reports: list[str] = []
    monkeypatch.setattr(run_import, "find_import", lambda _key: TASK)
    monkeypatch.setattr(run_import, "write_import", kept.append)
    monkeypatch.setattr(settings, "write_file", lambda _path, text, mode: reports.append(text))
    run = ImportRun(vanished=['"/zz-gone"'])
    RunImport(task=TASK.id, dataset=TASK.dataset, moment="2026.11.25-19.16.20").finish(
        run, SimpleNamespace(note=notes.append)
    )
    assert str(notes[0]) == "Deleted on nas.lan meanwhile: 1"
    assert kept[0].result
    assert kept[0].result.missed == 0
    assert 'Deleted at the source during the run: 1\n  "/zz-gone"' in reports[0]


def test_file_that_stays_is_not_counted_as_one_to_copy():
    kept, replaced = RsyncListing(), RsyncListing(keeps=False)
    for listing in (kept, replaced):
        listing.take(recorded("rsync-compare-different-3.5.0.txt"))
    assert (kept.new, kept.new_size) == (1, 1)
    assert (replaced.new, replaced.new_size) == (2, 3000001)


def test_owners_are_those_that_were_named_and_root_otherwise():
    argv = rsync.copy_argv(TASK, "m", [("1026", 3001), ("ben", 3002)])
    assert "--owner" in argv and "--usermap=1026:3001,ben:3002,*:0" in argv
    assert "--no-owner" in rsync.copy_argv(TASK, "m") and "--no-owner" in rsync.compare_argv(TASK)


@pytest.mark.parametrize("old", ["*", "10-20", "a b", "-x", "", "a:b", "x" * 40])
def test_old_user_that_rsync_would_read_otherwise_is_refused(old):
    with expect_refusal("import-owner-invalid"):
        check_owners({old: "anna"})


def test_owners_are_set_in_an_empty_folder_only():
    with expect_refusal("import-owners-beside"):
        AddImport(
            task="0badcafe",
            host="nas.lan",
            user="admin",
            path="/a",
            dataset="tank/photos",
            guid=5,
            existing="keep",
            owners={"ben": "anna"},
        )


def test_import_leaves_a_folder_that_a_user_gave_its_scratch_name(monkeypatch, tmp_path):
    theirs = tmp_path / rsync.SCRATCH
    theirs.mkdir(mode=0o755)
    (theirs / "thesis.txt").write_text("years of work")

    @contextmanager
    def open_folder(_task: FileImport) -> Iterator[int]:
        handle = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
        yield handle
        os.close(handle)

    monkeypatch.setattr(run_import, "open_folder", open_folder)
    monkeypatch.setattr(import_steps, "open_folder", open_folder)
    monkeypatch.setattr(run_import, "find_import", lambda _task: TASK)
    monkeypatch.setattr(import_steps, "count_files", lambda task, _work: task)
    with pytest.raises(Failed, match=rf"{rsync.SCRATCH} exists already, and it is not certain that Larder made it"):
        import_steps.count_again(TASK, ImportRun(), Working())
    with pytest.raises(Failed, match=rf"{rsync.SCRATCH} exists already, and it is not certain that Larder made it"):
        import_steps.copy_once(TASK, ImportRun(), 0, "m", Working())
    RunImport(task=TASK.id, dataset="tank/photos", moment="2026.11.25-19.16.20").clean_up(Working())
    assert (theirs / "thesis.txt").read_text() == "years of work"
