from django.apps import AppConfig


class DisksConfig(AppConfig):
    """The bays of the box as its owner knows them, and the replacing of disks in them."""

    name = "web.disks"
    label = "bays"
