"""The Django app of imports of files from another NAS."""

from __future__ import annotations

from django.apps import AppConfig


class Imports(AppConfig):
    name = "web.imports"
    label = "larder_imports"
