"""Words of ``appliance/`` are put into another language where they are shown, with their arguments as they are."""

from __future__ import annotations

from django.utils.translation import override

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


def test_text_that_is_chosen_at_import_is_translated_when_it_is_read(dutch):
    label, limit = (
        translation.lazy_text("Folders"),
        translation.lazy_format("{names} and {count} more", names="tank", count=5),
    )
    with override("nl"):
        assert (str(label), str(limit)) == ("Mappen", "tank en nog 5")
    assert (str(label), str(limit)) == ("Folders", "tank and 5 more")
