from django.apps import AppConfig


class SweepsConfig(AppConfig):
    """Sweeps of measurements: the box's own record of what was asked, and what came of it."""

    name = "web.sweeps"
    label = "sweeps"
