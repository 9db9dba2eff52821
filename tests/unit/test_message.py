"""Messages and reasons keep their templates and arguments, and travel whole."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from appliance.errors import Reason
from appliance.message import Message
from tests import reasons


def test_message_is_its_text_and_keeps_template_and_arguments():
    message = Message("{pool} holds {count} disks.", pool="tank", count=4)
    assert message == "tank holds 4 disks."
    assert (message.template, message.arguments) == ("{pool} holds {count} disks.", {"pool": "tank", "count": "4"})


@given(st.text())
def test_message_takes_hostile_names_as_they_are(name):
    assert Message("There is no {name}.", name=name) == f"There is no {name}."


@given(st.text(), st.text())
def test_reason_travels_whole(name, field):
    reason = Reason("folder-missing", "There is no folder {name}.", field=field, name=name)
    assert Reason.from_json(json.loads(json.dumps(reason.as_json()))) == reason


def test_reason_for_another_field_is_the_same_otherwise():
    reason = Reason("folder-missing", "There is no folder {name}.", name="a")
    assert reason.with_field("parent") == Reason(
        "folder-missing", "There is no folder {name}.", field="parent", name="a"
    )


def test_list_of_reasons_is_up_to_date():
    """``python -m tests.reasons`` writes it anew."""
    assert reasons.GOLDEN.read_text() == reasons.written_out()


def test_a_code_means_one_thing():
    lines = reasons.GOLDEN.read_text().splitlines()
    found = [line.partition(": ")[0] for line in lines]
    assert sorted(found) == sorted(set(found))
