"""What the tests with a machine read on a page."""

from __future__ import annotations

from django.template import Context, Template

from tests.visitor import Answer


def test_help_that_is_not_open_is_not_read():
    text = Template('<h1>Folders</h1>{% include "inc/help.html" with term="folder" %}<p>attic &amp; more</p>').render(
        Context({"html_nonce": ""})
    )
    assert "tank/photos" in text  # an example that tests would take for a folder
    assert Answer(200, "", text, {}).words.strip() == "Folders ? attic & more"
