"""The recorded boxes in a language in which every message is in ⟦brackets⟧: whatever has none is not translated.

``python -m tests.messages.pseudo healthy empty:create_pool`` prints, as JSON, what the pages of one box and one page of
another, the answers to their forms and the mails about their alerts say without brackets: ``templates``, what templates
write themselves, and ``values``, sentences that come from code. The process starts in English, as on a box.
"""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from http import HTTPStatus
from pathlib import Path
from typing import Any

import time_machine
from django.utils import translation

from deploy.catalogues import compile_catalogues
from tests.dev import place
from tests.gallery.serve import NOW
from tests.messages import catalogue
from tests.messages.submissions import submissions

LANGUAGE = "nl"  # one that Django knows: it takes the place of the pseudo language
OPEN, CLOSE, VALUE, VALUE_END = "⟦", "⟧", "\ue000", "\ue001"
READ = {"title", "aria-label", "placeholder", "alt", "data-label"}
NOT_READ = {"script", "style", "pre", "code", "kbd", "textarea"}
# Names of things that are the same in every language.
NAMES = re.compile(
    r"\b(larder|Larder|recorded|ZFS|SMB|NFS|AFP|iSCSI|MTU"
    r"|Ctrl|Enter|Esc|TB|TiB|GB|GiB|MB|KiB|MiB|C|K|IPv4|IPv6|RAID|UTC|s|x|ms)\b"
)
SENTENCE = re.compile(r"[^\W\d_]{2,}[,:;]? [^\W\d_]{2,}")


def pseudo(message: str) -> str:
    """The message in brackets; each of several words with commas and no spaces between
    them, as ``yesno`` takes them."""
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


class Crawl:
    """What was found on the pages of boxes, in the answers to their forms, and in mails."""

    def __init__(self) -> None:
        from django.test import Client

        headers = {"host": "localhost", "accept-language": LANGUAGE}
        self.client = Client(raise_request_exception=False, headers=headers)
        self.found: dict[str, set[str]] = {"templates": set(), "values": set(), "failed": set()}
        self.sent: set[str] = set()

    def read(self, where: str, answer: Any) -> str:
        """Note what an answer says; the page, where it is one."""
        if answer.status_code == HTTPStatus.INTERNAL_SERVER_ERROR:
            self.found["failed"].add(where)
        if answer.streaming or "text/html" not in answer.headers.get("Content-Type", ""):
            return ""
        page: str = answer.content.decode()
        self.note(page)
        return page

    def note(self, page: str) -> None:
        for kind, said in unmarked(page):
            self.found[kind].add(said)

    def open_box(self, box: str, only: str) -> None:
        """Every page of a box, or only that one, and what its forms answer.
        The gallery takes back whatever they change."""
        from tests.gallery.pages import SIGNED_OUT

        samples = self.client.get(f"/gallery/{box}/").json()
        for name, paths in samples.items():
            if name in SIGNED_OUT | {"components"} or only not in ("", name):
                continue
            for path in paths:
                # In English first: what is translated at import or remembered would stay so.
                self.client.get(path, headers={"accept-language": "en"})
                page = self.read(f"{box}: {path}", self.client.get(path))
                for review_of, review in self.send_forms(path, page):
                    for _answer in self.send_forms(review_of, review, ("as it is",)):
                        pass
        with translation.override(LANGUAGE):
            self.write_mails()

    def send_forms(self, path: str, page: str, *hows: tuple[str, ...]) -> Iterator[tuple[str, str]]:
        """Address and page of what the forms of a page answer; of forms of the same shape only one is sent."""
        marks = str.maketrans("", "", f"{VALUE}{VALUE_END}")
        for one in submissions(path, page.translate(marks), *hows):
            if one.key in self.sent:
                continue
            self.sent.add(one.key)
            send = self.client.post if one.method == "post" else self.client.get
            answer = self.read(one.key, send(one.path, one.data))
            yield one.path.partition("?")[0], answer

    def write_mails(self) -> None:
        """Every alert of the box as a mail, when it began and when it was over, and the weekly report."""
        from web.alerts.models import Alert
        from workers.alerts import mail_text, weekly_report

        for alert in Alert.objects.all():
            for event in ("raised", "cleared"):
                paragraphs = [
                    mail_text.subject_of(alert, event, ""),
                    *sum(mail_text.alert_paragraphs(alert, event), ()),
                ]
                self.note("".join(f"<p>{VALUE}{html.escape(text)}{VALUE_END}</p>" for text in paragraphs))
        title, parts = weekly_report.build_report(NOW)
        self.note("".join(f"<p>{VALUE}{html.escape(text)}{VALUE_END}</p>" for text in (title, *sum(parts, ()))))


def note_toasts(crawl: Crawl) -> None:
    """From now on, what a page says after a redirect is noted when it is thought of."""
    from django.contrib.messages import api

    add = api.add_message

    def noted(request: Any, level: int, message: Any, **more: Any) -> None:
        crawl.note(f"<p>{VALUE}{html.escape(str(message))}{VALUE_END}</p>")
        add(request, level, message, **more)

    api.add_message = noted  # type: ignore[assignment]  # its other arguments are handed on


def place_names() -> set[str]:
    """The places of time zones, as their form names them; they are the same in every language here."""
    from web.box import time_zone_choices

    listed = [
        name
        for choice in time_zone_choices.list_choices(None)
        if isinstance(choice[1], list)
        for _zone, name in choice[1]
    ]
    return {re.sub(r"\d+", "0", name) for name in listed}


def known_names() -> set[str]:
    """Names in the recorded boxes, and words of others: of drives, ZFS, Samba and servers."""
    return set((Path(__file__).parent / "names.txt").read_text().splitlines())


def main() -> None:
    if refusal := place.refusal():
        sys.exit(refusal)
    folder = Path(tempfile.mkdtemp(prefix=place.PREFIX))
    os.environ.update(
        {
            place.NAME: str(folder),
            "DJANGO_SETTINGS_MODULE": "tests.gallery.settings",
        }
    )
    try:
        place.prepare(folder)
        write_pseudo_catalogue(folder / "locale")
        import django
        from django.conf import settings
        from django.core.management import call_command

        settings.LOCALE_PATHS = [folder / "locale"]
        settings.DEBUG = False
        django.setup()
        call_command("prepare")
        mark_values()
        crawl = Crawl()
        note_toasts(crawl)
        with time_machine.travel(NOW, tick=False):
            for word in sys.argv[1:] or ["healthy", "degraded"]:
                box, _colon, page = word.partition(":")
                crawl.open_box(box, page)
            crawl.found["values"] -= place_names() | known_names()
        print(json.dumps({kind: sorted(texts) for kind, texts in crawl.found.items()}, ensure_ascii=False, indent=1))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
