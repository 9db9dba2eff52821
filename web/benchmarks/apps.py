from django.apps import AppConfig


class BenchmarksConfig(AppConfig):
    """The app that stores benchmarks and their results. Its label names the tables, so it stays."""

    name = "web.benchmarks"
    label = "sweeps"
