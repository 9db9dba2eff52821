"""Pages, messages, mails, README and CHANGELOG use the words that people know: none of these phrases is in them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.messages.collect import messages

ROOT = Path(__file__).parents[2]
FORBIDDEN = (
    # words that nobody uses
    "mend",
    "mended",
    "grave",
    "shall",
    "whoever",
    "anew",
    "weakened",
    "had back",
    "come to be",
    "lies unused",
    "in force",
    "holds nothing",
    "misses a disk",
    "nobody in particular",
    "tell apart",
    "an address a line",
    "the day's news",
    # sentences without their subject
    "is so",
    "what is so",
    "by themselves",
    "not told",
    "it says it is",
    "remembers itself",
    "its number is",
    "made of what",
    # unclear buttons and headings
    "go on with it",
    "bring in",
    "bring it in",
    "the last look went wrong",
    "nobody has looked",
    "move or end",
    "in ways of their own",
    "what it says",
    "how it is",
    "where from",
    "it waits for you",
    "never counted",
    "what has to be on disk",
)
# Second words for a thing that has one: user, scrub, Continue, import, stored, solid-state disk.
SYNONYMS = (
    r"accounts?",
    r"persons?",
    r"people",
    r"check \(scrub\)",
    r"(?:being|never|was) checked",
    r"checking tank",
    r"checking {pool}",
    r"checked every",
    r"(?:next|last) check",
    r"check paused",
    r"check or rebuild",
    r"check of(?: {pool})?(?=$| {pool})",
    r"checks and rebuild\w*",
    r"^go on",
    r"bring(?:s|ing)? (?:{pool}|…|them|the pool|a pool) in",
    r"set aside",
    r"solid state",
)
# What looks like one of them and is right in its place: file, phrase, and why.
RIGHT: dict[tuple[str, str], str] = {
    ("README.md", "person"): "a human, whom Larder is made for",
    ("appliance/backups/set_aside.py", "set aside"): "the name of a copy that stays under another name: Set aside",
    ("appliance/benchmarks/afp_benchmark.py", "account"): "a key of netatalk's file",
    ("appliance/benchmarks/workloads.py", "people"): "people on the internet",
    ("templates/backups/list.html", "set aside"): "copies that stay under another name: Set aside",
    ("templates/backups/show.html", "set aside"): "the button for it",
    ("templates/guide/users.html", "person"): "a human, who gets a user",
    ("web/alerts/mail_providers.py", "accounts"): "those of a mail provider",
    ("web/search/entries.py", "account"): "a word that leads to Users",
    ("web/search/entries.py", "accounts"): "a word that leads to Users",
    ("web/search/entries.py", "people"): "a word that leads to Users",
    ("web/search/entries.py", "person"): "a word that leads to Users",
    ("workers/alerts/mail_problems.py", "account"): "one of a mail provider",
    ("workers/spool.py", "set aside"): "the log: an event that cannot be read is moved out of the way",
}
DOCUMENTS = [ROOT / "README.md", ROOT / "CHANGELOG.md"]
TEMPLATES = sorted((ROOT / "templates").rglob("*.html"))
CODE = sorted(path for top in ("appliance", "web", "workers") for path in (ROOT / top).rglob("*.py"))
PHRASES = re.compile(rf"\b({'|'.join(re.escape(words) for words in FORBIDDEN)})\b", re.IGNORECASE)

SECOND_WORDS = re.compile("|".join(rf"(?<![\w-])(?:{words})(?![\w/])" for words in SYNONYMS), re.IGNORECASE)
PLACEHOLDER = re.compile(r"%\(\w+\)s|{(?!pool})\w*[^{}]*}")


def text_of_template(text: str) -> str:
    """What a reader of the page can see: no comments, tags or expressions, but the words in attributes."""
    text = re.sub(r"{% translate (?:\"([^\"]*)\"|'([^']*)') %}", r"\1\2", text)
    text = re.sub(r"{[{%][^}]*_\(\"([^\"]*)\"\)[^}]*}}?", r" \1 ", text)
    text = re.sub(r"{{[^}]*default:\"([^\"]*)\"[^}]*}}", r" \1 ", text)
    text = re.sub(r"{#.*?#}|{%.*?%}|{{.*?}}", " ", text, flags=re.DOTALL)
    seen = re.findall(r'(?:title|aria-label|placeholder)="([^"]*)"', text)
    return re.sub(r"\s+", " ", " ".join([re.sub(r"<[^>]*>", " ", text, flags=re.DOTALL), *seen]))


def sentences_of_code(text: str) -> Iterator[str]:
    """String constants with a space in them, without docstrings."""
    tree = ast.parse(text)
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield from (text for text in [node.value.strip()] if " " in text)


def found_in(path: Path, text: str) -> set[str]:
    name = str(path.relative_to(ROOT))
    return {words for words in map(str.lower, PHRASES.findall(text)) if (name, words) not in RIGHT}


def test_templates_use_no_forbidden_phrase():
    assert [(path, found) for path in TEMPLATES if (found := found_in(path, text_of_template(path.read_text())))] == []


def test_messages_use_no_forbidden_phrase():
    texts = ((path, "\n".join(sentences_of_code(path.read_text()))) for path in CODE)
    assert [(path, found) for path, text in texts if (found := found_in(path, text))] == []


def paragraphs(text: str) -> list[str]:
    """The paragraphs and items of a text in Markdown, each on one line, without code."""
    text = re.sub(r"```.*?```|`[^`]*`|<!--.*?-->", "…", text, flags=re.DOTALL)
    return [" ".join(part.split()) for part in re.split(r"\n\s*\n|\n(?=\s*[-*#|] ?)", text)]


def said_by_documents() -> Iterator[tuple[str, str]]:
    yield from ((path.name, text) for path in DOCUMENTS for text in paragraphs(path.read_text()))


def test_readme_and_changelog_use_no_forbidden_phrase():
    found = [(name, words, text) for name, text in said_by_documents() for words in found_in(ROOT / name, text)]
    assert found == []


def said_by_code() -> Iterator[tuple[str, str]]:
    """Each message and each sentence that is none, with its file."""
    yield from ((one.file, f"{one.message}\n{one.plural}") for one in messages())
    for path in CODE:
        yield from ((str(path.relative_to(ROOT)), text) for text in sentences_of_code(path.read_text()))


def second_words(text: str) -> set[str]:
    return {words.lower() for words in SECOND_WORDS.findall(PLACEHOLDER.sub("…", text))}


def test_a_thing_has_one_word():
    said = (*said_by_code(), *said_by_documents())
    found = {(file, words, text) for file, text in said for words in second_words(text)}
    assert sorted(one for one in found if one[:2] not in RIGHT) == []
    assert sorted(set(RIGHT) - {one[:2] for one in found}) == []  # what is right there is still there


def test_the_search_itself_finds_what_it_is_for():
    page = '<p {% if mend %}hidden{% endif %} title="Mend it">{# grave #}Temperature {{ one|default:"not told" }}</p>'
    assert PHRASES.findall(text_of_template(page)) == ["not told", "Mend"]
    page = (
        '{% translate "Not told." %} {{ one|default:_("grave") }} {% blocktranslate %}It is so.{% endblocktranslate %}'
    )
    assert PHRASES.findall(text_of_template(page)) == ["Not told", "grave", "is so"]
    code = '"""What is so."""\ndef f(x):\n    """Shall."""\n    return f"It says it is {x}, whoever asks."'
    assert PHRASES.findall("\n".join(sentences_of_code(code))) == ["It says it is", "whoever"]
    assert second_words("Sign in with an account. {person} may. larder-people") == {"account"}
    assert second_words("Checking {pool} (scrub)") == {"checking {pool}"}
    assert second_words("Check the cable. Last checked then. It goes on. /account/") == set()
    assert second_words("Go on growing") == {"go on"}
    assert second_words("Bring {pool} in again, and brings {name} in") == {"bring {pool} in", "brings … in"}
    assert paragraphs("# One\n\n- two is\n  so, `mend`\n- three") == ["# One", "- two is so, …", "- three"]
