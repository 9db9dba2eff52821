"""Every sentence of a template is a message, and catalogues keep the arguments and the markup of messages."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from string import Formatter

import polib
import pytest

from tests.messages import catalogue
from tests.messages.collect import ROOT, code, in_code, in_template, templates

READ = re.compile(r'(?<![\w-])(?:title|aria-label|placeholder|alt|data-label)="([^"]*)"')
# Words that a tag of a template joins with a value. Commands are the same in every language.
JOINED = re.compile(r'(?<!command=)"([^"]*[^\W\d_] )"\|add:')
# What is the same in every language, or no word.
NAMES = {
    "C",
    "Larder",
    "larder",
    "Ctrl",
    "K",
    "Enter",
    "Esc",
    "ZFS",
    "SMB",
    "NFS",
    "AFP",
    "iSCSI",
    "TB",
    "TiB",
    "GB",
    "s",
    "x",
    "id",
    "IPv",
    "MB",
    "ms",
}
# Attributes that pages include inside of a tag.
ATTRIBUTES = {f"templates/inc/{name}.html" for name in ("act", "form", "in_place", "live")}


def unmarked(text: str) -> list[str]:
    """Words of a template that are in no message."""
    text = re.sub(r"{% blocktranslate.*?{% endblocktranslate %}|{#.*?#}", " ", text, flags=re.DOTALL)
    text = re.sub(r"<(pre|code|kbd|script|textarea)\b.*?</\1>", " ", text, flags=re.DOTALL)
    joined = JOINED.findall(text)
    text = re.sub(r"{%.*?%}|{{.*?}}", " ", text, flags=re.DOTALL)
    read = [*READ.findall(text), *joined]
    lines = [*re.sub(r"<[^>]*>", "\n", text, flags=re.DOTALL).splitlines(), *read]
    lines = [re.sub(r"&#?\w+;", " ", line).strip() for line in lines]
    return [line for line in lines if set(re.findall(r"[^\W\d_]+", line)) - NAMES]


def test_every_word_of_a_template_is_in_a_message():
    texts = {str(path.relative_to(ROOT)): path.read_text() for path in templates()}
    found = {name: words for name, text in texts.items() if name not in ATTRIBUTES and (words := unmarked(text))}
    assert found == {}


@pytest.mark.parametrize(
    ("template", "message", "plural"),
    [
        ('{% translate "All is well." %}', "All is well.", ""),
        ("<p title=\"{% translate 'Use 5 %' %}\">", "Use 5 %%", ""),
        ('{{ name|default:_("a disk") }}', "a disk", ""),
        ("{% blocktranslate %}Bay {{ name }}{% endblocktranslate %}", "Bay %(name)s", ""),
        ("{% blocktranslate trimmed %}\n  One\n  two.\n{% endblocktranslate %}", "One two.", ""),
        (
            "{% blocktranslate count n=n %}{{ n }} disk{% plural %}{{ n }} disks{% endblocktranslate %}",
            "%(n)s disk",
            "%(n)s disks",
        ),
    ],
)
def test_message_of_a_template_is_found(template, message, plural):
    assert [(one.message, one.plural) for one in in_template(template, "")] == [(message, plural)]


@pytest.mark.parametrize(
    ("code", "message", "plural"),
    [
        ('gettext("Bay {name}").format(name=1)', "Bay {name}", ""),
        ('TITLE = lazy_text("Pools")', "Pools", ""),
        ('ngettext("{n} disk", "{n} disks", n)', "{n} disk", "{n} disks"),
        ('Reason("pool-missing", "There is no {pool}.", pool=pool)', "There is no {pool}.", ""),
    ],
)
def test_message_of_code_is_found(code, message, plural):
    assert [(one.message, one.plural) for one in in_code(code, "")] == [(message, plural)]


def test_words_outside_of_messages_are_found():
    assert unmarked('<p title="A title">{% if a %}Text{% endif %}{{ name }}</p>') == ["Text", "A title"]
    assert unmarked('{% include "inc/state.html" with word="with "|add:above command="zpool add "|add:disk %}') == [
        "with"
    ]
    assert unmarked("<p>{% translate 'Text' %}: {{ name }} °C &middot;</p>") == []


@pytest.mark.parametrize("language", catalogue.LANGUAGES)
def test_translations_have_the_arguments_and_markup_of_their_messages(language):
    found = polib.pofile(str(catalogue.path_of(language)))
    assert len(found) > 3000
    assert [fault for entry in found for fault in catalogue.faults(entry)] == []


def test_a_lost_argument_is_a_fault():
    assert list(catalogue.faults(polib.POEntry(msgid="Bay {name}", msgstr="Plaats {naam}")))
    assert list(catalogue.faults(polib.POEntry(msgid="<b>%(a)s</b> is full", msgstr="%(a)s is vol")))
    assert not list(catalogue.faults(polib.POEntry(msgid="<b>%(a)s</b> is full", msgstr="<b>%(a)s</b> is vol")))


def unlike_arguments(text: str) -> Iterator[str]:
    """Templates of messages in code that name something else than their arguments: making one would raise KeyError."""
    for node in ast.walk(ast.parse(text)):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Message"):
            continue
        template = node.args[0] if node.args else None
        given = {keyword.arg for keyword in node.keywords}
        if isinstance(template, ast.Constant) and isinstance(template.value, str):
            wanted = {name for _text, name, _spec, _conversion in Formatter().parse(template.value) if name is not None}
            if None not in given and wanted != given:
                yield template.value


def test_messages_of_code_name_their_arguments():
    found = {str(path.relative_to(ROOT)): odd for path in code() if (odd := [*unlike_arguments(path.read_text())])}
    assert found == {}


def test_message_without_its_argument_is_found():
    assert [*unlike_arguments('Message("{pool} is full.", name=name)')] == ["{pool} is full."]
    assert [*unlike_arguments('Message("It is full."); Message("{pool} is full.", pool=1); Message(a, **b)')] == []


@pytest.mark.parametrize("language", catalogue.LANGUAGES)
def test_catalogue_is_complete(language):
    """A new message needs its translation: make messages, then web/locale."""
    assert [entry.msgid for entry in catalogue.new_catalogue(language) if not catalogue.is_complete(entry)] == []
