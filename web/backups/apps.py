"""The Django app of backups, with what is remembered of copies that are not connected."""

from __future__ import annotations

from django.apps import AppConfig


class Backups(AppConfig):
    name = "web.backups"
    label = "larder_backups"
