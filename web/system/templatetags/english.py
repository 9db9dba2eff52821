"""``translate`` and ``blocktranslate`` of Django, which cost nothing while only English is offered.

Then they leave behind what the template would have without them: text, and variables. With thousands of messages, Django's
own nodes take twice as long and two megabytes more.
"""

from __future__ import annotations

import re
from typing import Any

from django import template
from django.conf import settings
from django.template.base import FilterExpression, Node, NodeList, Parser, TextNode, Token, VariableNode
from django.template.context import Context
from django.templatetags.i18n import BlockTranslateNode, TranslateNode, do_block_translate, do_translate
from django.utils.safestring import SafeString

register = template.Library()
PLACEHOLDER = re.compile(r"%\((\w+)\)s")


class English(Node):
    """A message as its text and variables. ``plural`` is for any ``counter`` but one."""

    def __init__(self, singular: NodeList, plural: NodeList, counter: FilterExpression) -> None:
        self.singular, self.plural, self.counter = singular, plural, counter

    def render(self, context: Context) -> SafeString:
        return (self.singular if self.counter.resolve(context) == 1 else self.plural).render(context)


class Sentence(Node):
    """The nodes of a message that is the same for any number."""

    def __init__(self, nodes: NodeList) -> None:
        self.nodes = nodes

    def render(self, context: Context) -> SafeString:
        return self.nodes.render(context)


def nodes_of(node: BlockTranslateNode, tokens: list[Token], parser: Parser) -> NodeList:
    """Text and variables of one form of a message."""
    message, _names = node.render_token_list(tokens)
    bound: dict[str, FilterExpression] = dict(node.extra_context)
    if node.countervar and node.counter:
        bound[node.countervar] = node.counter
    found = NodeList()
    for number, part in enumerate(PLACEHOLDER.split(message)):
        if number % 2:
            found.append(VariableNode(bound.get(part) or parser.compile_filter(part)))
        elif part:
            found.append(TextNode(part.replace("%%", "%")))
    return found


@register.tag
def translate(parser: Parser, token: Token) -> Node:
    node: TranslateNode = do_translate(parser, token)
    expression = node.filter_expression
    literal: Any = getattr(expression.var, "literal", None)
    if settings.OFFER_LANGUAGES or node.asvar or node.message_context or expression.filters or literal is None:
        return node
    return TextNode(literal)


@register.tag
def blocktranslate(parser: Parser, token: Token) -> Node:
    node: BlockTranslateNode = do_block_translate(parser, token)
    if settings.OFFER_LANGUAGES or node.asvar or node.message_context:
        return node
    singular = nodes_of(node, node.singular, parser)
    if node.plural and node.counter:
        return English(singular, nodes_of(node, node.plural, parser), node.counter)
    return Sentence(singular)
