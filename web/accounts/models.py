"""What somebody who signs in has chosen for the pages."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from web.translation import lazy_text


class Preferences(models.Model):
    """A row for each user who chose something; without one the defaults hold."""

    class Units(models.TextChoices):
        """How space for files is counted. Disks are always shown as their labels say."""

        DECIMAL = "TB", lazy_text("TB and GB, as on the labels of disks")
        BINARY = "TiB", lazy_text("TiB and GiB, as Windows and ZFS count")

    user = models.OneToOneField(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="preferences")
    show_commands = models.BooleanField(default=False)
    units = models.CharField(max_length=3, choices=Units, default=Units.DECIMAL)

    language = models.CharField(max_length=5, default="", blank=True)  # empty: as the browser asks

    def __str__(self) -> str:
        return str(self.user)
