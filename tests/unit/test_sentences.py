"""Every sentence that code hands over is a message, and none is translated before it is known who reads it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.messages.collect import ROOT, code
from tests.messages.sinks import plain_sentences, silent_cuts, translated_once, words_among_messages


def lines_with(find: Callable[[str], Iterator[int]]) -> list[str]:
    return [f"{path.relative_to(ROOT)}:{line}" for path in code() for line in find(path.read_text())]


def test_sentences_that_code_hands_over_are_messages():
    assert lines_with(plain_sentences) == []


def test_words_beside_messages_are_messages_too():
    assert sorted(set(lines_with(words_among_messages))) == []


def test_nothing_is_translated_at_import_or_remembered_in_one_language():
    assert lines_with(translated_once) == []


@pytest.mark.parametrize(
    "code",
    [
        'raise Failed("The pool is full")',
        'raise Failed(Message("It failed"), f"look at {name}")',
        'work.note(f"{name} is gone")',
        'Step("mount", "Mount the folder", shown, act)',
        'Step("mount", Message("Mount it"), shown, act, undo="Unmount it")',
        'Plan(summary=said, details={"Connected now": names} if names else {})',
        'yield Fault("pool.full", key, "It is full." if full else text)',
        'messages.success(request, "It was saved.")',
        'class A:\n    @property\n    def title(self):\n        return f"Destroy {self.name} now"',
    ],
)
def test_plain_sentence_is_found(code):
    assert [*plain_sentences(code)]


@pytest.mark.parametrize(
    "code",
    [
        'raise Failed(Message("The pool is full"), f"{name}: {said}")',
        'log.error("it is full: %s", name)',
        'work.note(" ".join(argv))',
        'Step("mount", Message("Mount the folder"), "zfs mount tank", act)',
        'def title(self):\n    return Message("Destroy {name}", name=self.name)',
    ],
)
def test_message_is_no_plain_sentence(code):
    assert [*plain_sentences(code)] == []


@pytest.mark.parametrize(
    "code",
    [
        'WORDS = {"a": gettext("one disk")}',
        'class A:\n    label = gettext("Name")',
        'def read(label=gettext("Name")):\n    return label',
        '@cache\ndef word():\n    return gettext("Name")',
        "@lru_cache(maxsize=2)\ndef word(text):\n    return text_of(text)",
    ],
)
def test_early_translation_is_found(code):
    assert [*translated_once(code)]


def test_translation_for_a_reader_is_not_early():
    late = 'WORD = lazy_text("Name")\nread = lambda: gettext("Name")\ndef word():\n    return gettext("Name")'
    assert [*translated_once(late)] == []


@pytest.mark.parametrize(
    "code",
    [
        'word = gettext("too old") if late else "good"',
        'WORDS = {"a": lazy_text("one"), "b": "two"}',
        'EVERY = (("week", lazy_text("every week")), ("never", "never"))',
        'def word():\n    if late:\n        return gettext("too {old}").format(old=1)\n    return "good"',
        'text = said or Message("nothing") or "none"',
    ],
)
def test_word_among_messages_is_found(code):
    assert [*words_among_messages(code)]


def test_name_among_messages_is_no_word():
    assert [*words_among_messages('KINDS = (("tls", "TLS"), ("none", lazy_text("None")))')] == []


def test_list_that_is_cut_says_how_many_more_there_are():
    assert lines_with(silent_cuts) == []


@pytest.mark.parametrize(
    "code",
    [
        'Message("Still open: {names}.", names=", ".join(names[:5]))',
        '"; ".join(label(one) for one in broken[:NAMED])',
        "join_messages([say(one) for one in broken[:3]])",
    ],
)
def test_cut_list_is_found(code):
    assert [*silent_cuts(code)]


@pytest.mark.parametrize(
    "code",
    ["names_text(names, 5)", '", ".join(names)', '", ".join(name[:80] for name in names)', '"/".join(parts[:2])'],
)
def test_whole_list_is_no_cut_list(code):
    assert [*silent_cuts(code)] == []
