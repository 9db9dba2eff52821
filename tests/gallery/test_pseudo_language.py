"""With a catalogue that puts every message in brackets, the pages of recorded boxes show what is not translated."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.messages.collect import ROOT
from tests.messages.pseudo import unmarked

# Names in the recorded boxes, cities of time zones, and sentences that come from code and are no messages yet. They only go
# down. Of the last box, what the others do not show: the layouts of four empty disks.
MOST_VALUES = {"healthy": 128, "degraded": 138, "empty:create_pool": 4}


@pytest.mark.parametrize("box", MOST_VALUES)
def test_templates_show_nothing_outside_of_messages_and_every_page_opens(box):
    command = [sys.executable, "-m", "tests.messages.pseudo", box]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout[done.stdout.index("{\n") :])
    assert found["failed"] == []
    assert found["templates"] == []
    assert 0 < len(found["values"]) <= MOST_VALUES[box]


def test_what_is_not_in_brackets_is_found():
    page = (
        '<p title="A title">⟦Text with <b>\ue000a name\ue001</b>⟧ Literal</p><pre>some code</pre>'
        '<p title="⟦In a message⟧">\ue000From 3 other variables\ue001 \ue000tank\ue001</p>'
    )
    assert list(unmarked(page)) == [
        ("templates", "A title"),
        ("templates", "Literal"),
        ("values", "From 0 other variables"),
    ]
