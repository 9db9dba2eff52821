"""What the owner does not want to see on the overview any more."""

from __future__ import annotations

from django.db import models


class DismissedStep(models.Model):
    """A first step that was dismissed, by its key (``first_steps.py``)."""

    key = models.CharField(max_length=20, primary_key=True)
    by = models.CharField(max_length=150, default="")
    at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.key
