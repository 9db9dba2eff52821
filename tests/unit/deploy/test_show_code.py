"""The console's set-up code: read from a folder that Larder's own user may write to."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[3] / "deploy/systemd/show-code"
CODE = "ABCD-EFGH-2345"


@pytest.fixture
def shown(tmp_path):
    folder, issue = tmp_path / "larder", tmp_path / "issue.d"
    (folder / "inventory").mkdir(parents=True)
    issue.mkdir()

    def show() -> str:
        env = os.environ | {"LARDER_RUN": str(folder), "LARDER_ISSUE": str(issue)}
        subprocess.run(["/bin/sh", str(SCRIPT)], check=True, env=env, timeout=20)
        found = issue / "larder.issue"
        return found.read_text() if found.exists() else ""

    return folder, show


def test_console_shows_the_setup_code(shown):
    folder, show = shown
    (folder / "inventory/setup-code").write_text(CODE)
    assert CODE in show()
    assert (folder / "setup-code").read_text() == CODE
    assert (folder / "setup-code").stat().st_mode & 0o777 == 0o600


def test_console_shows_the_code_of_a_folder_of_another_user(shown):
    """As on a box: the folder around is root's, what is in it belongs to Larder's own user."""
    if os.geteuid():
        pytest.skip("only root can give files away")
    folder, show = shown
    (folder / "inventory/setup-code").write_text(CODE)
    for path, user, mode in ((folder, 0, 0o750), (folder / "inventory", 65534, 0o700)):
        os.chown(path, user, 65534)
        path.chmod(mode)
    os.chown(folder / "inventory/setup-code", 65534, 65534)
    for above in folder.parents:
        if above.stat().st_uid == 0 and not above.stat().st_mode & 0o001:
            above.chmod(0o755)
    (folder / "inventory/setup-code").chmod(0o600)
    assert CODE in show()


def test_console_shows_nothing_without_a_code(shown):
    folder, show = shown
    (folder / "setup-code").write_text(CODE)
    assert show() == ""
    assert not (folder / "setup-code").exists()


def test_console_does_not_follow_a_planted_link(shown, tmp_path):
    folder, show = shown
    (tmp_path / "secret").write_text("SECRET-OF-ROOT")
    (folder / "inventory/setup-code").symlink_to(tmp_path / "secret")
    assert show() == ""
    assert not (folder / "setup-code").exists()


def test_console_does_not_follow_a_link_in_place_of_the_folder(shown, tmp_path):
    folder, show = shown
    (folder / "inventory").rmdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/setup-code").write_text("SECRET-OF-ROOT")
    (folder / "inventory").symlink_to(tmp_path / "elsewhere")
    assert show() == ""


def test_console_shows_no_text_that_is_not_a_code(shown):
    folder, show = shown
    (folder / "inventory/setup-code").write_text("root:$6$hash:1:\nand more")
    assert show() == ""


def test_console_does_not_write_through_a_link_in_place_of_the_copy(shown, tmp_path):
    folder, show = shown
    (tmp_path / "passwd").write_text("as it was")
    (folder / "setup-code").symlink_to(tmp_path / "passwd")
    (folder / "inventory/setup-code").write_text(CODE)
    assert CODE in show()
    assert (tmp_path / "passwd").read_text() == "as it was"
