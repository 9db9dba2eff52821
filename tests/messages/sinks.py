"""Where code hands over a sentence that somebody reads, and where it would be translated only
once: read in the source."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

# Name of a function or class: the arguments that are sentences, by place or name.
SENTENCES: dict[str, tuple[int | str, ...]] = {
    **dict.fromkeys(("Failed", "Blocked", "CommandMissing", "SourceAway", "NotSent", "ReceiverUnreachable"), (0, 1)),
    "Unreachable": (1, 2),
    "Step": (1, "undo"),
    "command_step": (1, "undo"),
    "Loss": (0,),
    "Plan": ("summary", "undo", "title", "details"),
    "checked": ("error",),
    "Fault": (2, 3, "summary", "detail"),
    "note": (0,),
    "progress": (1,),
    "add_note": (1,),
    "Check": (2, 3, "title", "meaning"),
    "HealthReason": (1,),
    **dict.fromkeys(("success", "warning", "info", "error"), (1,)),  # of django.contrib.messages
}
LOGS = {"log", "logger", "logging"}
RETURNED = {"title", "recovery_hint", "meaning", "headline"}  # methods that answer with a sentence
WORDS = re.compile(r"[^\W\d_]{2,}")
NOW = {"gettext", "ngettext", "text_of", "message_text", "reason_text"}  # they answer in the language of this moment
ONCE = {"cache", "lru_cache"}
MESSAGES = {"gettext", "ngettext", "lazy_text", "lazy_format", "Message", "message_template", "join_messages"}
# Beside messages, and the same in every language: names, values of ZFS, and commands.
NAMES = {"STARTTLS", "TLS", "always", "standard", "off", "smart", "Android", "Windows", "CHAP", "Samba", "netatalk"}


def is_plain_sentence(node: ast.expr | None) -> bool:
    """Whether it is a literal with words between spaces; an f-string that only joins what it is given is none."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str) and " " in node.value.strip() and len(WORDS.findall(node.value)) > 1
    if isinstance(node, ast.JoinedStr):
        text = "".join(str(one.value) for one in node.values if isinstance(one, ast.Constant))
        return bool(WORDS.search(text)) and " " in text
    if isinstance(node, ast.IfExp):
        return is_plain_sentence(node.body) or is_plain_sentence(node.orelse)
    if isinstance(node, ast.BoolOp):
        return any(map(is_plain_sentence, node.values))
    if isinstance(node, ast.Dict):
        return any(map(is_plain_sentence, node.keys))
    return False


def name_of(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def plain_sentences(text: str) -> Iterator[int]:
    """The lines on which a sentence is handed over that is no message."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call):
            of = name_of(node.func.value) if isinstance(node.func, ast.Attribute) else ""
            given: dict[int | str | None, ast.expr] = {one.arg: one.value for one in node.keywords}
            given |= dict(enumerate(node.args))
            if of not in LOGS and any(is_plain_sentence(given.get(at)) for at in SENTENCES.get(name_of(node.func), ())):
                yield node.lineno
        elif isinstance(node, ast.FunctionDef) and node.name in RETURNED:
            yield from (
                one.lineno for one in ast.walk(node) if isinstance(one, ast.Return) and is_plain_sentence(one.value)
            )


def is_message(node: ast.expr) -> bool:
    """Whether a value is a message, or one of several that it may be."""
    if isinstance(node, ast.IfExp):
        return is_message(node.body) or is_message(node.orelse)
    if isinstance(node, ast.BoolOp):
        return any(map(is_message, node.values))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "format":
        return is_message(node.func.value)
    return isinstance(node, ast.Call) and name_of(node.func) in MESSAGES


def words_in(node: ast.expr) -> Iterator[ast.Constant]:
    """The literals with words that a value may be."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and WORDS.search(node.value):
        yield node
    elif isinstance(node, ast.IfExp):
        yield from (*words_in(node.body), *words_in(node.orelse))
    elif isinstance(node, ast.BoolOp):
        yield from (found for one in node.values for found in words_in(one))


def alternatives(node: ast.AST) -> Iterator[list[ast.expr]]:
    """Values that stand for one another: the branches of a choice, a column of a table, what a function returns."""
    match node:
        case ast.IfExp():
            yield [node.body, node.orelse]
        case ast.BoolOp():
            yield node.values
        case ast.Dict():
            yield node.values
            yield [key for key in node.keys if key]
        case ast.Tuple() | ast.List():
            rows = [
                one.elts if isinstance(one, ast.Tuple) else one.args
                for one in node.elts
                if isinstance(one, ast.Tuple | ast.Call)
            ]
            yield from map(list, zip(*rows, strict=False))
        case ast.FunctionDef():
            yield [one.value for one in ast.walk(node) if isinstance(one, ast.Return) and one.value]


def words_among_messages(text: str) -> Iterator[int]:
    """The lines of plain words that stand where others are messages."""
    for node in ast.walk(ast.parse(text)):
        for values in alternatives(node):
            if any(map(is_message, values)):
                yield from (found.lineno for one in values for found in words_in(one) if found.value not in NAMES)


def calls_now(node: ast.AST) -> Iterator[int]:
    """The lines that translate, also in functions within."""
    for one in ast.walk(node):
        if isinstance(one, ast.Call) and isinstance(one.func, ast.Name) and one.func.id in NOW:
            yield one.lineno


def translated_once(text: str) -> Iterator[int]:
    """The lines that translate when the module is imported, or in a function whose answer is remembered."""

    def at_import(node: ast.AST) -> Iterator[int]:
        if isinstance(node, ast.Lambda):
            return
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            remembered = any(
                name_of(one.func if isinstance(one, ast.Call) else one) in ONCE for one in node.decorator_list
            )
            for part in [*node.decorator_list, node.args, *(node.body if remembered else [])]:
                yield from calls_now(part)
            return
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in NOW:
            yield node.lineno
        for child in ast.iter_child_nodes(node):
            yield from at_import(child)

    return at_import(ast.parse(text))


def silent_cuts(code: str) -> Iterator[int]:
    """The lines on which the first few of a list become one text: nobody can see there that some are missing."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Call) and node.args and is_joined(node):
            part = node.args[0]
            listed = part.generators[0].iter if isinstance(part, ast.ListComp | ast.GeneratorExp) else part
            if isinstance(listed, ast.Subscript) and isinstance(listed.slice, ast.Slice) and is_few(listed.slice):
                yield node.lineno


def is_joined(call: ast.Call) -> bool:
    """Whether a call makes a text of a list: ``", ".join``, ``join_messages``."""
    if isinstance(call.func, ast.Attribute) and call.func.attr == "join":
        return isinstance(call.func.value, ast.Constant) and call.func.value.value in {", ", "; "}
    return isinstance(call.func, ast.Name) and call.func.id == "join_messages"


def is_few(part: ast.Slice) -> bool:
    """Whether a slice takes as many as a number or a constant says, from the first on."""
    few = isinstance(part.upper, ast.Constant) or (isinstance(part.upper, ast.Name) and part.upper.id.isupper())
    return part.lower is None and few
