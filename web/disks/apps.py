from django.apps import AppConfig


class DisksConfig(AppConfig):
    """Bays of the box, and replacements of disks."""

    name = "web.disks"
    label = "bays"
