"""Messages of templates render as Django's own tags render them."""

from __future__ import annotations

import pytest
from django.template import Context, Template
from django.utils.translation import override

from web.system.templatetags.translate import Sentence, Words

VALUES = {"name": "<b>", "disks": [1, 2], "one": [1], "size": 5, "none": None}
TEMPLATES = [
    '{% translate "Don\'t use 5 % of <b>it</b>" %}',
    "{% translate 'Say \"no\"' %}",
    "{% blocktranslate %}Bay {{ name }} is 5 % full{% endblocktranslate %}",
    "{% blocktranslate with other=name|upper %}{{ other }} and {{ size }} and {{ nowhere }}{% endblocktranslate %}",
    "{% blocktranslate trimmed %}\n  One\n  <b>two</b>.\n{% endblocktranslate %}",
    "{% blocktranslate count n=one|length %}{{ n }} disk{% plural %}{{ n }} disks{% endblocktranslate %}",
    (
        "{% blocktranslate with a=name count n=disks|length %}{{ n }} disk {{ a }}{% plural %}{{ n }} disks {{ a "
        "}}{% endblocktranslate %}"
    ),
    "{% blocktranslate %}{{ none }}{% endblocktranslate %}",
    '{% translate "All" as all %}{{ all }}',
    "{% translate name %}",
    '{% translate "All" noop %}',
    '{% translate "All" context "of disks" %}',
    "{% blocktranslate asvar said %}Bay {{ name }}{% endblocktranslate %}{{ said }}",
    "{% blocktranslate count n=disks|length %}{{ n }} disk{% plural %}{{ n }} disks{% endblocktranslate %}",
    "{% blocktranslate with name=size %}{{ name }} days{% endblocktranslate %}",
    '{% translate "All"|upper %}',
]


@pytest.mark.parametrize("language", ["en-gb", "nl"])
@pytest.mark.parametrize("text", TEMPLATES)
def test_message_is_the_same_as_by_the_tags_of_django(dutch, text, language):
    with override(language):
        ours, theirs = Template(text), Template(f"{{% load i18n %}}{text}")
        assert ours.render(Context(VALUES)) == theirs.render(Context(VALUES))


def test_messages_are_looked_up_in_the_language_of_the_reader(dutch):
    (words,) = Template('{% translate "Folders" %}').nodelist
    (sentence,) = Template("{% blocktranslate %}Set up {{ box_name }}{% endblocktranslate %}").nodelist
    assert (type(words), type(sentence)) == (Words, Sentence)
    with override("nl"):
        assert words.render(Context()) == "Mappen"
        assert sentence.render(Context({"box_name": "<attic>"})) == "&lt;attic&gt; instellen"
    assert words.render(Context()) == "Folders"
