from django.apps import AppConfig


class BenchmarksConfig(AppConfig):
    """Sweeps of measurements: the box's own record of what was asked, and what came of it."""

    name = "web.benchmarks"
    label = "sweeps"
