"""What a password must be: Django's checks, with rules that address the user as Larder's other pages do."""

from __future__ import annotations

import gzip
from collections.abc import Iterator

from django.contrib.auth import password_validation
from django.utils.translation import gettext


class LengthValidator(password_validation.MinimumLengthValidator):
    def get_error_message(self) -> str:
        said = gettext("This password is too short. It must contain at least {count} characters.")
        return said.format(count=self.min_length)

    def get_help_text(self) -> str:
        return gettext("Your password must contain at least {count} characters.").format(count=self.min_length)


class SimilarityValidator(password_validation.UserAttributeSimilarityValidator):
    def get_help_text(self) -> str:
        return gettext("Your password can’t be too similar to your other personal information.")


class CommonPasswordValidator(password_validation.CommonPasswordValidator):
    """Django's, which keeps its 20,000 passwords in memory from the first use on (2.5 MiB); this
    one reads them each time."""

    def __init__(self) -> None:
        pass  # Django's reads the list here

    def get_help_text(self) -> str:
        return gettext("Your password can’t be a commonly used password.")

    @property
    def passwords(self) -> Iterator[str]:  # type: ignore[override]  # only looked in
        with gzip.open(self.DEFAULT_PASSWORD_LIST_PATH, "rt", encoding="utf-8") as lines:
            for line in lines:
                yield line.strip()
