"""Pages about snapshots, and what this box's policies have made."""

from __future__ import annotations

from django.apps import AppConfig


class Snapshots(AppConfig):
    name = "web.snapshots"
    label = "larder_snapshots"
