"""The language of the box for root's programs: read from a folder that is not root's own."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from appliance.agent import console, delayed_jobs
from appliance.message import Message, words_of
from appliance.system import language
from deploy.catalogues import compile_catalogues

TITLE = Message("Destroy {dataset}", dataset="tank/old")
CATALOGUE = """
msgid ""
msgstr "Content-Type: text/plain; charset=utf-8\\n"

msgid "Destroy {dataset}"
msgstr "{dataset} vernietigen"

msgid "To stop it: {command}"
msgstr "Zo stop je het: {command}"

msgid "No job is waiting."
msgstr "Er wacht geen taak."
"""


@pytest.fixture
def file(folders, monkeypatch) -> Path:
    """Where the pages write the language, with a catalogue of one of them."""
    source = folders / "locale/nl/LC_MESSAGES"
    source.mkdir(parents=True)
    (source / "django.po").write_text(CATALOGUE)
    compile_catalogues(folders / "locale")
    monkeypatch.setattr(language, "CATALOGUES", folders / "locale")
    found = language.language_file()
    found.parent.mkdir()
    return found


def test_console_speaks_the_language_of_the_box(file):
    file.write_text("nl\n")
    assert words_of(TITLE, language.box_catalogue()) == "tank/old vernietigen"


@pytest.mark.parametrize("written", ["", "en-gb", "de", "../nl", "nl/../nl", "NL", "x" * 100, "\x00nl"])
def test_console_speaks_english_where_no_other_language_is_set(file, written):
    file.write_text(written)
    assert words_of(TITLE, language.box_catalogue()) == "Destroy tank/old"


def test_language_is_not_read_through_a_link_or_from_a_pipe(file, folders):
    (folders / "elsewhere").write_text("nl")
    file.symlink_to(folders / "elsewhere")
    assert language.read_language() == ""
    file.unlink()
    os.mkfifo(file)
    assert language.read_language() == ""
    file.unlink()
    file.mkdir()
    assert language.read_language() == ""
    file.rmdir()
    assert language.read_language() == ""


def test_waiting_job_is_told_in_the_language_of_the_box(file):
    file.write_text("nl")
    told = delayed_jobs.waiting("1", {**delayed_jobs.as_told(TITLE, "tank/old", datetime.now(UTC))})
    issue = delayed_jobs.issue([told], language.box_catalogue())
    assert "tank/old vernietigen" in issue
    assert "Zo stop je het: sudo larder-jobs cancel" in issue
    assert console.run([], language.box_catalogue()) == "Er wacht geen taak.\n"


def test_title_cannot_command_a_terminal_in_any_language(file):
    file.write_text("nl")
    evil = Message("Destroy {dataset}", dataset="a\\4\x1b[2J")
    told = delayed_jobs.Waiting("1", evil, "a", datetime.now(UTC))
    assert "a?4?[2J vernietigen" in delayed_jobs.issue([told], language.box_catalogue())
