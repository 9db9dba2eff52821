"""Messages and reasons keep their templates and arguments, and travel whole."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.agent_client import raise_for_refusal
from appliance.errors import Failed, Reason, Refused, explain_error
from appliance.formatting import capitalize_opening, continue_sentence
from appliance.message import (
    Message,
    as_said,
    join_messages,
    message_of,
    messages_by_text,
    reason_after_name,
    words_of,
)
from appliance.request import as_facts, as_failure
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


DUTCH = {"{pool} holds {disks}.": "In {pool} zitten {disks}.", "{n} disks": "{n} schijven", "is full": "is vol"}


def look_up(template: str) -> str:
    return DUTCH.get(template, template)


def test_words_of_a_message_are_those_of_the_catalogue_with_its_arguments():
    message = Message("{pool} holds {disks}.", pool="tank{x}%", disks=Message("{n} disks", n=4))
    assert words_of(message, look_up) == "In tank{x}% zitten 4 schijven."
    assert words_of("{n} disks", look_up) == "{n} disks"  # a text is no message


def test_facts_keep_their_messages_as_they_travel():
    class Thing(msgspec.Struct):
        text: str
        names: dict[str, str]
        others: tuple[str, ...] = ()

    count = Message("{n} disks", n=4)
    sent = as_facts(Thing(count, {count: "tank"}, (Message("is full"), "as it is")))
    back = raise_for_refusal(json.loads(json.dumps(sent)))["facts"]
    thing = msgspec.convert(back, Thing)
    assert thing == Thing("4 disks", {"4 disks": "tank"}, ("is full", "as it is"))
    assert [words_of(one, look_up) for one in (thing.text, *thing.others)] == ["4 schijven", "is vol", "as it is"]


def test_failure_keeps_its_message_as_it_travels():
    why = Message("{n} disks", n=4)
    with pytest.raises(Failed) as failed:
        raise_for_refusal(json.loads(json.dumps(as_failure(why))))
    assert words_of(explain_error(failed.value), look_up) == "4 schijven"
    with pytest.raises(Failed, match="as it is"):
        raise_for_refusal({"failed": "as it is"})  # of an agent of an earlier version


def test_stored_line_of_a_name_and_a_reason_is_a_message_again():
    said = reason_after_name("a: strange {name}: is full")
    assert said == "a: strange {name}: is full"
    assert words_of(said, look_up) == "a: strange {name}: is vol"
    assert type(reason_after_name("neither")) is str


@pytest.mark.parametrize(
    ("said", "text"),
    [({}, "A"), ({"A": None}, "A"), ({"A": {"template": "B", "arguments": {}}}, "A")],
)
def test_text_stays_as_it_is_where_nothing_says_it(said, text):
    assert type(message_of(text, said)) is str
    assert as_said([text, {text: 5}], said) == [text, {text: 5}]
