"""Addresses and icons, which a page draws a hundred times, are worked out once and stay what Django makes of them."""

from __future__ import annotations

import pytest
from django.template import Context, Template
from django.urls import NoReverseMatch, reverse

from web.addresses import address


def rendered(text: str, **values: object) -> str:
    return Template(text).render(Context(values))


def test_an_address_is_that_of_django():
    assert address("disk", "ata-a&b c") == reverse("disk", args=["ata-a&b c"])
    assert rendered("{% address 'folder' key %}", key="1234") == reverse("folder", args=["1234"])
    with pytest.raises(NoReverseMatch):
        address("no such page")


def test_one_and_true_are_two_addresses():
    assert [address("folder", argument) for argument in (1, True)] == [
        reverse("folder", args=[1]),
        reverse("folder", args=[True]),
    ]


def test_an_icon_is_drawn_from_the_file_of_all():
    assert rendered("{% icon 'lock' %}") == (
        '<svg class="icon" aria-hidden="true"><use href="/static/icons.svg#lock"></use></svg>\n'
    )
    assert 'class="icon icon-sun"' in rendered("{% icon 'sun' 'icon-sun' %}")


def test_a_hostile_name_of_an_icon_is_text():
    drawn = rendered("{% icon name extra %}", name='"><script>', extra='" onload="x')
    assert "<script" not in drawn and 'onload="' not in drawn
