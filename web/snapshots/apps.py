"""The Django app of snapshots, with the record of what this box's schedules took."""

from __future__ import annotations

from django.apps import AppConfig


class Snapshots(AppConfig):
    name = "web.snapshots"
    label = "larder_snapshots"
