"""The language that was chosen for mails under Notifications becomes that of the box, once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.web.migrating import Migrate, former_database

BEFORE, AFTER = ("larder_alerts", "0005_said"), ("larder_alerts", "0006_language_of_the_box")


@pytest.fixture
def migrate(tmp_path: Path, django_db_blocker: Any) -> Iterator[Migrate]:
    with django_db_blocker.unblock(), former_database(tmp_path) as found:
        yield found


@pytest.mark.parametrize(("chosen", "kept"), [("nl", ["nl"]), ("", [])])
def test_language_of_mails_becomes_that_of_the_box(migrate, chosen, kept):
    former = migrate(BEFORE)
    former.get_model("larder_alerts", "MailSettings").objects.create(pk=1, language=chosen)
    now = migrate(AFTER)
    choices = now.get_model("larder_system", "BoxChoices").objects
    assert list(choices.values_list("pk", "language")) == [(1, one) for one in kept]
    fields = {field.name for field in now.get_model("larder_alerts", "MailSettings")._meta.get_fields()}
    assert "language" not in fields


def test_box_without_mail_settings_has_no_language_yet(migrate):
    migrate(BEFORE)
    now = migrate(AFTER)
    assert not now.get_model("larder_system", "BoxChoices").objects.exists()
