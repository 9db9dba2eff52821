"""With a catalogue that puts every message in brackets, recorded boxes show what is not translated."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.messages.collect import ROOT
from tests.messages.pseudo import unmarked
from tests.messages.submissions import submissions

# Of the last box, what the others do not show: the layouts of four empty disks.
BOXES = ("healthy", "degraded", "empty:create_pool")


@pytest.mark.parametrize("box", BOXES)
def test_pages_answers_to_forms_and_mails_show_nothing_outside_of_messages(box):
    command = [sys.executable, "-m", "tests.messages.pseudo", box]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout[done.stdout.index("{\n") :])
    assert found == {"failed": [], "templates": [], "values": []}


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


def test_forms_are_sent_as_they_are_and_emptied_and_with_nonsense():
    page = (
        '<form method="post" action="/logout/"><button>Sign out</button></form>'
        '<form method="post"><input name="name" value="tank"><input type="checkbox" name="old" checked>'
        '<input type="hidden" name="token" value="1"><select name="kind"><option value="a"><option value="b" selected>'
        '</select><textarea name="note"></textarea><button name="act" value="go">Go</button></form>'
    )
    sent = {one.key.rpartition("') ")[2]: one for one in submissions("/pools/12/", page)}
    assert {(one.method, one.path) for one in sent.values()} == {("post", "/pools/12/")}
    kept = {"token": ["1"], "act": ["go"]}
    assert sent["as it is"].data == {**kept, "name": ["tank"], "old": ["on"], "kind": ["b"], "note": [""]}
    assert sent["emptied"].data == {**kept, "name": [""], "note": [""]}
    nonsense = ["no such / thing"]
    assert sent["nonsense"].data == {**kept, "name": nonsense, "old": ["on"], "kind": nonsense, "note": nonsense}
