from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.errors import Failed, Refused
from appliance.shares.owned_file import OwnedFile
from tests.reasons import expect_refusal


@pytest.fixture
def file(tmp_path):
    return OwnedFile(tmp_path / "larder.conf", lambda _path: None)


def beside(file: OwnedFile) -> set[str]:
    return {path.name for path in file.path.parent.iterdir()} - {"run", "agent"}


def test_what_it_writes_is_there_readable_and_not_drifted(file):
    file.write("[global]\n")
    assert file.path.read_text().partition("\n")[2] == "[global]\n"
    assert file.path.stat().st_mode & 0o777 == 0o644
    assert not file.drifted()
    assert beside(file) == {"larder.conf"}


def test_a_file_that_is_not_there_has_not_drifted(file):
    assert not file.drifted()


@pytest.mark.parametrize(
    "edit",
    [
        lambda raw: raw + b"guest ok = yes\n",
        lambda raw: raw.replace(b"global", b"Global"),
        lambda raw: raw.partition(b"\n")[2],
        lambda raw: raw.replace(b"\n", b"\r\n"),
        lambda raw: raw + b"# B\xfcro\n",
        lambda raw: b"\n" + raw,
        lambda raw: raw[:-1],
    ],
)
def test_any_hand_edit_is_seen_and_never_written_over(file, edit):
    file.write("[global]\n")
    edited = edit(file.path.read_bytes())
    file.path.write_bytes(edited)
    assert file.drifted()
    with expect_refusal("file-changed-by-hand"):
        file.write("[other]\n")
    assert file.path.read_bytes() == edited


@pytest.mark.parametrize("text", ["", "# Larder writes this file.\n", "\n  # a comment\n"])
def test_the_file_as_installed_is_taken_over(file, text):
    file.path.write_text(text)
    assert not file.drifted()
    file.write("[global]\n")
    assert not file.drifted()


def test_a_foreign_file_is_not_taken_over(file):
    file.path.write_text("[global]\n   workgroup = HOME\n")
    with pytest.raises(Refused):
        file.write("[global]\n")


def test_what_the_daemon_refuses_never_goes_live(tmp_path):
    seen: list[str] = []

    def refuse(path: Path) -> None:
        seen.append(path.read_text())
        raise Failed("no")

    file = OwnedFile(tmp_path / "larder.conf", refuse)
    file.path.write_text("# as installed\n")
    with pytest.raises(Failed):
        file.write("nonsense\n")
    assert "nonsense" in seen[0]
    assert file.path.read_text() == "# as installed\n"
    assert beside(file) == {"larder.conf"}


def test_the_check_sees_the_new_file_and_clients_still_the_old(tmp_path):
    live: list[str] = []
    path = tmp_path / "larder.conf"
    file = OwnedFile(path, lambda _new: live.append(path.read_text() if path.exists() else ""))
    file.write("one\n")
    file.write("two\n")
    assert live[0] == ""
    assert live[1].endswith("one\n")


def test_new_content_is_on_the_disk_before_it_goes_live(file, monkeypatch):
    live: list[bool] = []
    monkeypatch.setattr("os.fsync", lambda _handle: live.append(file.path.exists()))
    file.write("one\n")
    assert live == [False, True]


def test_the_previous_version_is_kept_and_comes_back(file):
    file.write("one\n")
    file.write("two\n")
    assert file.previous.read_text().endswith("one\n")
    file.roll_back()
    assert file.path.read_text().endswith("one\n")
    assert not file.drifted()


def test_without_a_previous_version_rolling_back_leaves_nothing_in_force(file):
    file.write("one\n")
    file.roll_back()
    assert file.path.read_text() == ""
    assert not file.drifted()


@given(body=st.text(alphabet=st.characters(codec="utf-8")))
def test_whatever_it_writes_it_knows_again(tmp_path, body):
    file = OwnedFile(tmp_path / "any.conf", lambda _path: None)
    file.write(body)
    assert not file.drifted()
    assert file.path.read_bytes().partition(b"\n")[2] == body.encode()
