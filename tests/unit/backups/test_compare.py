"""Two trees of files: equal ones have no difference, and each kind of difference is found and named by its path."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from appliance.backups.compare import Sample, TreeComparison, compare_trees

DAY = 86400


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    """A tree with an odd name, a link, an attribute, a hard link and a sparse file; and its exact copy."""
    ours = tmp_path / "ours"
    (ours / "trip/deep").mkdir(parents=True)
    (ours / "trip/one").write_bytes(b"x" * 100_000)
    (ours / "trip/deep/two").write_text("two")
    (ours / os.fsdecode(b"bad\xff\nname")).write_text("odd")
    (ours / "link").symlink_to("trip/one")
    os.link(ours / "trip/one", ours / "same")
    os.setxattr(ours / "trip/deep/two", "user.note", b"kept")
    shutil.copytree(ours, tmp_path / "copy", symlinks=True)
    theirs = tmp_path / "copy"
    (theirs / "same").unlink()
    os.link(theirs / "trip/one", theirs / "same")
    for one in [*ours.rglob("*"), ours]:
        found = one.lstat()
        at = theirs / one.relative_to(ours)
        os.utime(at, ns=(found.st_atime_ns, found.st_mtime_ns), follow_symlinks=False)
    return ours, theirs


def compare(pair: tuple[Path, Path], sample: Sample | None = None) -> TreeComparison:
    result, handles = TreeComparison(), [os.open(one, os.O_RDONLY | os.O_DIRECTORY) for one in pair]
    try:
        compare_trees(handles[0], handles[1], sample or Sample(), result, lambda _now: None)
    finally:
        for handle in handles:
            os.close(handle)
    return result


def test_equal_trees_have_no_difference(pair):
    found = compare(pair)
    assert (found.different, found.differences) == (0, [])
    assert (found.entries, found.files, found.size) == (8, 4, 200_006)  # the folder itself is an entry


def keep_time(path: Path, change) -> None:
    found = path.lstat()
    change()
    if os.path.lexists(path):
        os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns), follow_symlinks=False)


def changed(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    keep_time(path, lambda: path.write_bytes(bytes(data)))


@pytest.mark.parametrize(
    ("act", "said"),
    [
        (lambda copy: changed(copy / "trip/deep/two"), "trip/deep/two: has different contents"),
        (lambda copy: (copy / "trip/deep/two").chmod(0o600), "trip/deep/two: has different access rights"),
        (
            lambda copy: os.setxattr(copy / "trip/deep/two", "user.note", b"lost"),
            "trip/deep/two: has different attributes or access rights",
        ),
        (
            lambda copy: os.removexattr(copy / "trip/deep/two", "user.note"),
            "trip/deep/two: has different attributes or access rights",
        ),
        (
            lambda copy: keep_time(copy / "trip/deep", (copy / "trip/deep/two").unlink),
            "trip/deep/two: missing in the copy",
        ),
        (
            lambda copy: keep_time(copy / "trip", lambda: (copy / "trip/more").write_text("")),
            "trip/more: only in the copy",
        ),
        (lambda copy: os.utime(copy / "trip/deep", (1, 1)), "trip/deep: has a different time"),
        (
            lambda copy: keep_time(copy / "trip/deep/two", lambda: (copy / "trip/deep/two").write_text("longer")),
            "trip/deep/two: has a different size",
        ),
    ],
    ids=["contents", "mode", "attribute", "attribute gone", "missing", "more", "time", "size"],
)
def test_each_difference_is_found_and_nothing_else_is(pair, act, said):
    act(pair[1])
    found = compare(pair)
    assert found.differences == [said]


def test_link_that_leads_elsewhere_is_found(pair):
    link = pair[1] / "link"
    found = link.lstat()
    link.unlink()
    link.symlink_to("trip/two")
    os.utime(link, ns=(found.st_atime_ns, found.st_mtime_ns), follow_symlinks=False)
    assert "link: points elsewhere" in compare(pair).differences


def test_folder_that_became_a_link_is_named_and_not_followed(pair):
    shutil.rmtree(pair[1] / "trip")
    (pair[1] / "trip").symlink_to("/etc")
    assert "trip: is of a different kind" in compare(pair).differences


def test_everything_is_read_once_in_a_cycle(pair):
    for number in range(60):
        for one in pair:
            path = one / f"f{number}"
            path.write_text(str(number))
            os.utime(path, (1, 1))
    for one in pair:
        os.utime(one, (1, 1))
    parts = [compare(pair, Sample(turn, 5)) for turn in range(5)]
    assert sum(part.files for part in parts) == compare(pair).files
    assert all(part.different == 0 and part.entries == parts[0].entries for part in parts)


def test_what_changed_lately_is_always_read(pair):
    newest = max(one.lstat().st_ctime for one in pair[0].rglob("*"))
    assert compare(pair, Sample(0, 50, since=newest - DAY)).files == 4


def test_only_the_first_of_many_differences_are_named_and_all_are_counted(pair):
    for number in range(100):
        (pair[1] / f"more{number}").write_text("")
    found = compare(pair)
    assert found.different >= 100 and len(found.differences) == 20


def test_folder_itself_is_compared(pair):
    pair[1].chmod(0o700)
    (pair[0]).chmod(0o755)
    assert compare(pair).differences == ["the folder itself: has different access rights"]


def test_path_that_is_no_text_is_told_so_that_it_can_be_written_anywhere(pair):
    (pair[1] / os.fsdecode(b"bad\xff\nname")).write_text("new")
    (line, *_more) = compare(pair).differences
    assert line.startswith("bad\ufffd\ufffdname: ")
    line.encode()
