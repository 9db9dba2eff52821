"""Words of ``appliance/`` are put into another language where they are shown, with their arguments as they are."""

from __future__ import annotations

from appliance.errors import Reason
from appliance.message import Message
from web import translation
from web.jobs.refusals import validation_error

DUTCH = {"The pool {pool} has {count} disks.": "{count} schijven in {pool}."}


def test_message_is_translated_by_its_template(monkeypatch):
    message = Message("The pool {pool} has {count} disks.", pool="tank{0}%", count=4)
    assert translation.message_text(message) == message
    monkeypatch.setattr(translation, "gettext", lambda text: DUTCH.get(text, text))
    assert translation.message_text(message) == "4 schijven in tank{0}%."


def test_refusal_is_translated_in_a_form(monkeypatch):
    monkeypatch.setattr(translation, "gettext", lambda text: DUTCH.get(text, text))
    reason = Reason("pool-size", "The pool {pool} has {count} disks.", pool="tank", count=4)
    assert validation_error([reason]).messages == ["4 schijven in tank."]


def test_only_english_is_offered_and_costs_nothing(settings):
    assert not settings.USE_I18N
    assert type(translation.lazy_text("Pools")) is str
    settings.OFFER_LANGUAGES = True
    assert type(translation.lazy_text("Pools")) is not str
    assert translation.lazy_text("Pools") == "Pools"


def test_message_with_arguments_is_formatted_when_it_is_read(settings):
    assert translation.lazy_format("At most {rate}", rate=5) == "At most 5"
    settings.OFFER_LANGUAGES = True
    found = translation.lazy_format("At most {rate}", rate=5)
    assert type(found) is not str
    assert str(found) == "At most 5"
