"""What is set for the box as a whole."""

from __future__ import annotations

from django.db import models


class BoxChoices(models.Model):
    """One row."""

    language = models.CharField(max_length=5, default="", blank=True)  # empty: English

    def __str__(self) -> str:
        return self.language

    @classmethod
    def load_row(cls) -> BoxChoices:
        return cls.objects.filter(pk=1).first() or cls(pk=1)
