"""Help where a term stands, and the page of all terms."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from appliance.shares.settings import PROTOCOLS
from tests.web import rows
from web.pools.topology_views import KINDS
from web.search.entries import find_entries
from web.system.glossary import GLOSSARY

TEMPLATES = Path(__file__).resolve().parents[3] / "templates"
USED = re.compile(r'"inc/help\.html" with term="([^"]*)"')
FORBIDDEN = (
    "mend",
    "grave",
    "holds nothing",
    "had back",
    "come to be",
    "is so",
    "what is so",
    "by themselves",
    "shall",
    "whoever",
    "weakened",
    "misses a disk",
    "in force",
    "lies unused",
    "nobody in particular",
    "tell apart",
)


def used_terms() -> set[str]:
    found = {term for path in TEMPLATES.rglob("*.html") for term in USED.findall(path.read_text())}
    return found | {kind.term for kind in KINDS.values() if kind.term} | set(PROTOCOLS)


def test_every_term_beside_a_heading_is_in_the_glossary_and_none_is_unused():
    assert used_terms() == set(GLOSSARY)


@pytest.mark.parametrize("key", GLOSSARY)
def test_each_term_has_two_sentences_in_plain_words(key):
    text = str(GLOSSARY[key].text)
    assert len(re.findall(r"[.!?](?= [A-Z]|$)", text)) == 2, text
    assert not [words for words in FORBIDDEN if re.search(rf"\b{words}\b", text, re.IGNORECASE)]


def test_help_lists_every_term_under_its_own_address(web, calm):
    page = web.get("/help/").content.decode()
    for key, term in GLOSSARY.items():
        assert f'id="{key}"' in page
        assert str(term.name) in page


def test_help_is_linked_from_the_footer_and_found_by_search(web, calm):
    assert 'href="/help/"' in web.get("/").content.decode()
    assert any(entry.url == "/help/#rebuild" for entry in find_entries("resilver"))
    assert find_entries("glossary")[0].url == "/help/"


def test_button_beside_a_term_opens_its_sentences_without_script(web, calm):
    rows.recorded_box()
    page = web.get("/pools/").content.decode()
    assert 'popovertarget="help-pool"' in page
    assert re.search(r'<span class="help-text" popover id="help-pool"', page)
    assert GLOSSARY["pool"].text.split(".")[0] in page


@pytest.mark.parametrize("address", ["/pools/", "/disks/", "/folders/", "/snapshots/"])
def test_each_term_is_explained_once_on_a_page(web, calm, address):
    rows.recorded_box()
    found = re.findall(r'id="(help-\w+)"', web.get(address).content.decode())
    assert len(found) == len(set(found))
