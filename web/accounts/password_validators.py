"""Refuse passwords that thousands of people use."""

from __future__ import annotations

import gzip
from collections.abc import Iterator

from django.contrib.auth import password_validation


class CommonPasswordValidator(password_validation.CommonPasswordValidator):
    """Django's, which keeps its 20,000 passwords in memory from the first use on (2.5 MiB); this one reads them each time."""

    def __init__(self) -> None:
        pass  # Django's reads the list here

    @property
    def passwords(self) -> Iterator[str]:  # type: ignore[override]  # only looked in
        with gzip.open(self.DEFAULT_PASSWORD_LIST_PATH, "rt", encoding="utf-8") as lines:
            for line in lines:
                yield line.strip()
