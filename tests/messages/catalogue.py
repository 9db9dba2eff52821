"""The catalogues in ``web/locale``: brought up to date with the messages, and checked."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import polib

from tests.messages.collect import ROOT, Found, messages

LOCALE = ROOT / "web/locale"
LANGUAGES = {"nl": "nplurals=2; plural=(n != 1);"}
PLACEHOLDER = re.compile(r"%\(\w+\)s|\{\w*(?:![rsa])?(?::[^{}]*)?\}|%%")
MARKUP = re.compile(r"</?\w[^>]*>|&#?\w+;")


def path_of(language: str) -> Path:
    return LOCALE / language / "LC_MESSAGES/django.po"


def entries() -> list[polib.POEntry]:
    """One entry for each message, in their order; with its files, without line numbers, so
    that few changes touch it."""
    found: dict[str, list[Found]] = {}
    for one in messages():
        found.setdefault(one.message, []).append(one)
    return [entry_of(message, found[message]) for message in sorted(found, key=lambda text: (text.casefold(), text))]


def entry_of(message: str, places: list[Found]) -> polib.POEntry:
    plural = next((one.plural for one in places if one.plural), "")
    notes = "\n".join(sorted({one.note for one in places if one.note}))
    entry = polib.POEntry(
        msgid=message, comment=notes, occurrences=[(file, "") for file in sorted({one.file for one in places})]
    )
    if plural:
        entry.msgid_plural, entry.msgstr_plural = plural, {0: "", 1: ""}
    if re.search(r"%\(\w+\)s|%%", message):
        entry.flags.append("python-format")
    elif re.search(r"\{\w*[^{} ]*\}", message):
        entry.flags.append("python-brace-format")
    return entry


def new_catalogue(language: str) -> polib.POFile:
    """All messages, with what the present catalogue has for them."""
    catalogue = polib.POFile(wrapwidth=120)
    catalogue.metadata = {
        "Project-Id-Version": "larder",
        "Language": language,
        "MIME-Version": "1.0",
        "Content-Type": "text/plain; charset=utf-8",
        "Content-Transfer-Encoding": "8bit",
        "Plural-Forms": LANGUAGES[language],
    }
    path = path_of(language)
    known = {entry.msgid: entry for entry in polib.pofile(str(path))} if path.exists() else {}
    for entry in entries():
        if (old := known.get(entry.msgid)) and old.msgid_plural == entry.msgid_plural:
            entry.msgstr, entry.msgstr_plural, entry.tcomment = old.msgstr, old.msgstr_plural, old.tcomment
        catalogue.append(entry)
    return catalogue


def write_catalogues() -> None:
    for language in LANGUAGES:
        path_of(language).parent.mkdir(parents=True, exist_ok=True)
        new_catalogue(language).save(str(path_of(language)))


def faults(entry: polib.POEntry) -> Iterator[str]:
    """What a translation has other than its message: arguments, markup, white space at its ends."""
    pairs = [(entry.msgid, entry.msgstr)]
    if entry.msgid_plural:
        pairs = [(entry.msgid, entry.msgstr_plural[0]), (entry.msgid_plural, entry.msgstr_plural[1])]
    for source, text in pairs:
        if not text:
            continue
        for what in (PLACEHOLDER, MARKUP):
            if sorted(what.findall(source)) != sorted(what.findall(text)):
                yield f"{source!r}: {sorted(what.findall(source))} became {sorted(what.findall(text))}"
        if source[:1].isspace() != text[:1].isspace() or source[-1:].isspace() != text[-1:].isspace():
            yield f"{source!r}: white space at an end differs"


def is_complete(entry: polib.POEntry) -> bool:
    return all(entry.msgstr_plural.values()) if entry.msgid_plural else bool(entry.msgstr)
