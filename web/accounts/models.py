"""What somebody who signs in has chosen for the pages."""

from __future__ import annotations

from django.conf import settings
from django.db import models


class Preferences(models.Model):
    """A row for each user who chose something; without one the defaults hold."""

    user = models.OneToOneField(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="preferences")
    show_commands = models.BooleanField(default=False)

    def __str__(self) -> str:
        return str(self.user)
