"""Messages and reasons keep their templates and arguments, and travel whole."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.errors import Failed, Reason, Refused, explain_error
from appliance.formatting import capitalize_opening, continue_sentence
from appliance.message import Message, join_messages, messages_by_text
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


def test_message_travels_whole_with_messages_in_it():
    inner = Message("{n} folders", n=2)
    message = Message("{pool} and {what} are gone.", pool="tank", what=inner)
    assert message == "tank and 2 folders are gone."
    again = Message.from_json(json.loads(json.dumps(message.as_json())))
    assert (again, again.template, again.arguments) == (message, message.template, message.arguments)
    found = again.arguments["what"]
    assert isinstance(found, Message)
    assert found.template == "{n} folders"


def test_message_is_escaped_on_a_page():
    assert Message("There is no {name}.", name="<b>'").__html__() == "There is no &lt;b&gt;&#x27;."


@pytest.mark.parametrize(
    ("parts", "text", "is_message"),
    [
        ([], "", False),
        (["", "One."], "One.", False),
        (["One.", "Two."], "One. Two.", False),
        ([Message("One."), ""], "One.", True),
        ([Message("One {n}.", n="{0}"), "said {x} %s"], "One {0}. said {x} %s", True),
    ],
)
def test_joined_messages_read_as_their_texts(parts, text, is_message):
    joined = join_messages(parts)
    assert joined == text
    assert isinstance(joined, Message) is is_message


def test_messages_are_found_wherever_they_are():
    one, two = Message("One."), Message("Two {n}.", n=2)
    assert messages_by_text({"a": [one, "plain", {"b": (two, 3)}]}) == {"One.": one.as_json(), "Two 2.": two.as_json()}


def test_explained_error_keeps_its_messages():
    refusal = Refused(Reason("a", "No {pool}.", pool="tank"), Reason("b", "No disk."))
    assert explain_error(refusal) == str(refusal) == "No tank. No disk."
    explained = explain_error(refusal)
    assert isinstance(explained, Message)
    assert len(explained.arguments) == 2
    failure = Failed(Message("{pool} could not be made", pool="tank"), "no space")
    assert explain_error(failure) == str(failure) == "tank could not be made: no space"
    assert isinstance(explain_error(failure), Message)


def test_advice_of_a_failure_stays_a_message():
    failure = Failed(Message("{host} has no rsync", host="nas"), Message("Install it there."))
    explained = explain_error(failure)
    assert explained == "nas has no rsync: Install it there."
    assert isinstance(explained, Message)
    assert [str(part.template) for part in explained.arguments.values() if isinstance(part, Message)] == [
        "{host} has no rsync",
        "Install it there.",
    ]


def test_message_opens_a_sentence_and_goes_on_after_a_colon():
    reason = Message("It is {now} °C warm.", now=62)
    assert capitalize_opening(Message("bay {name}", name=3)) == "Bay 3"
    said = Message("{disk} is failing: {reason}", disk="A disk", reason=continue_sentence(reason))
    assert said == "A disk is failing: it is 62 °C warm."
    again = Message.from_json(said.as_json())
    assert (again, again.as_json()) == (said, said.as_json())
