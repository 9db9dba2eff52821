"""``translate`` and ``blocktranslate`` of Django, in half the time.

Django's nodes put a message together again each time that they are rendered; a list's rows have hundreds. These keep
its text and the expressions of its arguments. What they do not know (``asvar``, contexts, filters) is left to Django's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import template
from django.template.base import FilterExpression, Node, Parser, Token, render_value_in_context
from django.template.context import Context
from django.templatetags.i18n import BlockTranslateNode, TranslateNode, do_block_translate, do_translate
from django.utils.safestring import SafeString
from django.utils.translation import gettext, ngettext

register = template.Library()


class Words(Node):
    """A message without arguments."""

    def __init__(self, message: str) -> None:
        self.message = message

    def render(self, context: Context) -> SafeString:
        return SafeString(gettext(self.message).replace("%%", "%"))


class Sentence(Node):
    """A message with arguments. ``plural`` is for any ``counter`` but one; empty where there is none."""

    def __init__(
        self, singular: str, plural: str, counter: FilterExpression | None, arguments: Mapping[str, FilterExpression]
    ) -> None:
        self.singular, self.plural, self.counter, self.arguments = singular, plural, counter, arguments

    def render(self, context: Context) -> SafeString:
        if self.counter:
            said = ngettext(self.singular, self.plural, self.counter.resolve(context))
        else:
            said = gettext(self.singular)
        values = {name: render_value_in_context(one.resolve(context), context) for name, one in self.arguments.items()}
        return SafeString(said % values)


def sentence_of(node: BlockTranslateNode, parser: Parser) -> Sentence:
    """The node that says the same."""
    bound: dict[str, FilterExpression] = dict(node.extra_context)
    if node.countervar and node.counter:
        bound[node.countervar] = node.counter
    singular, names = node.render_token_list(node.singular)
    plural = ""
    if node.plural and node.counter:
        plural, more = node.render_token_list(node.plural)
        names = [*names, *more]
    arguments = {name: bound.get(name) or parser.compile_filter(name) for name in names}
    return Sentence(singular, plural, node.counter if plural else None, arguments)


@register.tag
def translate(parser: Parser, token: Token) -> Node:
    node: TranslateNode = do_translate(parser, token)
    expression = node.filter_expression
    literal: Any = getattr(expression.var, "literal", None)
    if node.asvar or node.noop or node.message_context or expression.filters or literal is None:
        return node
    return Words(str(literal).replace("%", "%%"))


@register.tag
def blocktranslate(parser: Parser, token: Token) -> Node:
    node: BlockTranslateNode = do_block_translate(parser, token)
    if node.asvar or node.message_context:
        return node
    return sentence_of(node, parser)
