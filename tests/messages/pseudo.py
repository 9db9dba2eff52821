"""The recorded boxes in a language in which every message is in ⟦brackets⟧: whatever has none is not translated.

``python -m tests.messages.pseudo healthy empty:create_pool`` prints, as JSON, what the pages of one box and one page of another
say without brackets: ``templates``, what templates write themselves, and ``values``, sentences that come from code.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import time_machine

from deploy.catalogues import compile_catalogues
from tests.dev import place
from tests.gallery.serve import NOW
from tests.messages import catalogue

LANGUAGE = "nl"  # one that Django knows: it takes the place of the pseudo language
OPEN, CLOSE, VALUE, VALUE_END = "⟦", "⟧", "\ue000", "\ue001"
READ = {"title", "aria-label", "placeholder", "alt", "data-label"}
NOT_READ = {"script", "style", "pre", "code", "kbd", "textarea"}
# Names of things that are the same in every language.
NAMES = re.compile(
    r"\b(larder|Larder|recorded|ZFS|SMB|NFS|AFP|iSCSI|MTU|Ctrl|Enter|Esc|TB|TiB|GB|GiB|MB|KiB|MiB|C|K|IPv4|IPv6|RAID|UTC|s|x|ms)\b"
)
SENTENCE = re.compile(r"[^\W\d_]{2,}[,:;]? [^\W\d_]{2,}")


def pseudo(message: str) -> str:
    """The message in brackets; each of several words with commas and no spaces between them, as ``yesno`` takes them."""
    several = re.fullmatch(r"[^,{%]+(,[^,{% ][^,{%]*)+", message)
    parts = message.split(",") if several else [message]
    return ",".join(f"{OPEN}{part}{CLOSE}" for part in parts)


class Reader(HTMLParser):
    """What people read on a page, and of which kind it is."""

    def __init__(self) -> None:
        super().__init__()
        self.inside = 0  # of elements that nobody translates
        self.brackets = self.values = 0
        self.found: list[tuple[str, str]] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.inside += tag in NOT_READ
        for name, value in attributes:
            if name in READ and value and not self.brackets:
                kept, self.values = self.values, 0
                self.take(value)
                self.brackets, self.values = 0, kept

    def handle_endtag(self, tag: str) -> None:
        self.inside -= tag in NOT_READ

    def handle_data(self, text: str) -> None:
        if self.inside:
            self.take("".join(re.findall(f"[{OPEN}{CLOSE}{VALUE}{VALUE_END}]", text)))
        else:
            self.take(text)

    def take(self, text: str) -> None:
        for piece in re.split(f"([{OPEN}{CLOSE}{VALUE}{VALUE_END}])", text):
            if piece in (OPEN, CLOSE):
                self.brackets += 1 if piece == OPEN else -1
            elif piece in (VALUE, VALUE_END):
                self.values += 1 if piece == VALUE else -1
            elif not self.brackets and (said := " ".join(piece.split())):
                self.found.append(("values" if self.values else "templates", said))


def unmarked(page: str) -> Iterator[tuple[str, str]]:
    """Kind and text of everything on a page that is not in brackets and looks like words."""
    reader = Reader()
    reader.feed(page)
    for kind, said in reader.found:
        words = NAMES.sub("", said)
        if kind == "templates" and re.search(r"[^\W\d_]{2,}", words):
            yield kind, said
        elif kind == "values" and SENTENCE.search(words):
            yield kind, re.sub(r"\d+", "0", said)


LONG_WORD = 10  # letters
FILLER = "lengthened as another language may be and then again "


def longer(message: str) -> str:
    """The message with 40 % more letters: a short word becomes a longer word, everything else gets words."""
    text = message.rstrip()
    more = -(-len(text) * 2 // 5)
    if " " not in text and len(text) < LONG_WORD:
        return f"{text}{FILLER[:more].replace(' ', '')}{message[len(text) :]}"
    return f"{text} {(FILLER * (more // len(FILLER) + 1))[: more - 1].strip()}{message[len(text) :]}"


def write_pseudo_catalogue(folder: Path, translate: Callable[[str], str] = pseudo) -> None:
    """All messages in brackets, or made of them otherwise, compiled as at installation."""
    found = catalogue.new_catalogue(LANGUAGE)
    for entry in found:
        if entry.msgid_plural:
            entry.msgstr_plural = {0: translate(entry.msgid), 1: translate(entry.msgid_plural)}
        else:
            entry.msgstr = translate(entry.msgid)
    place_of = folder / LANGUAGE / "LC_MESSAGES"
    place_of.mkdir(parents=True)
    found.save(str(place_of / "django.po"))
    compile_catalogues(folder)


def mark_values() -> None:
    """From now on, what a template takes from a variable is marked."""
    from django.template.base import VariableNode
    from django.utils.safestring import SafeString, mark_safe

    render = VariableNode.render

    def marked(self: VariableNode, context: Any) -> SafeString:
        return mark_safe(f"{VALUE}{render(self, context)}{VALUE_END}")

    VariableNode.render = marked  # type: ignore[method-assign, assignment]


def crawl(boxes: list[str]) -> dict[str, list[str]]:
    """Every page of these boxes, read; of ``empty:create_pool`` only that one."""
    from django.test import Client

    from tests.gallery.pages import SIGNED_OUT

    found: dict[str, set[str]] = {"templates": set(), "values": set(), "failed": set()}
    for word in boxes:
        box, _colon, page = word.partition(":")
        client = Client(raise_request_exception=False, headers={"host": "localhost"})
        samples = client.get(f"/gallery/{box}/").json()
        for name, paths in samples.items():
            if name in SIGNED_OUT | {"components"} or page not in ("", name):
                continue
            for path in paths:
                answer = client.get(path)
                if answer.status_code >= 500:
                    found["failed"].add(f"{box}: {path}")
                elif "text/html" in answer.headers.get("Content-Type", "") and not answer.streaming:
                    for kind, said in unmarked(answer.content.decode()):
                        found[kind].add(said)
    return {kind: sorted(texts) for kind, texts in found.items()}


def main() -> None:
    if refusal := place.refusal():
        sys.exit(refusal)
    folder = Path(tempfile.mkdtemp(prefix=place.PREFIX))
    os.environ.update(
        {
            place.NAME: str(folder),
            "DJANGO_SETTINGS_MODULE": "tests.gallery.settings",
            "LARDER_OFFER_LANGUAGES": "1",
        }
    )
    try:
        place.prepare(folder)
        write_pseudo_catalogue(folder / "locale")
        import django
        from django.conf import settings
        from django.core.management import call_command

        settings.LOCALE_PATHS, settings.LANGUAGE_CODE = [folder / "locale"], LANGUAGE
        settings.DEBUG = False
        django.setup()
        call_command("prepare")
        mark_values()
        with time_machine.travel(NOW, tick=False):
            print(json.dumps(crawl(sys.argv[1:] or ["healthy", "degraded"]), ensure_ascii=False, indent=1))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
