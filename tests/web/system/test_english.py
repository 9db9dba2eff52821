"""While only English is offered, messages of templates render as Django's own tags render them, without their cost."""

from __future__ import annotations

import pytest
from django.template import Context, Template
from django.template.base import TextNode

VALUES = {"name": "<b>", "disks": [1, 2], "one": [1], "size": 5, "none": None}
TEMPLATES = [
    '{% translate "Don\'t use 5 % of <b>it</b>" %}',
    "{% translate 'Say \"no\"' %}",
    "{% blocktranslate %}Bay {{ name }} is 5 % full{% endblocktranslate %}",
    "{% blocktranslate with other=name|upper %}{{ other }} and {{ size }} and {{ nowhere }}{% endblocktranslate %}",
    "{% blocktranslate trimmed %}\n  One\n  <b>two</b>.\n{% endblocktranslate %}",
    "{% blocktranslate count n=one|length %}{{ n }} disk{% plural %}{{ n }} disks{% endblocktranslate %}",
    "{% blocktranslate with a=name count n=disks|length %}{{ n }} disk {{ a }}{% plural %}{{ n }} disks {{ a }}{% endblocktranslate %}",
    "{% blocktranslate %}{{ none }}{% endblocktranslate %}",
    '{% translate "All" as all %}{{ all }}',
    "{% translate name %}",
    '{% translate "All"|upper %}',
]


@pytest.mark.parametrize("text", TEMPLATES)
def test_message_is_the_same_as_by_the_tags_of_django(text, settings):
    plain = Template(text).render(Context(VALUES))
    settings.OFFER_LANGUAGES = True
    assert Template(text).render(Context(VALUES)) == plain


def test_plain_message_is_plain_text():
    (node,) = Template('{% translate "All is well." %}').nodelist
    assert type(node) is TextNode
