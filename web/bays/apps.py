from django.apps import AppConfig


class BaysConfig(AppConfig):
    """The bays of the box as its owner knows them, and the replacing of disks in them."""

    name = "web.bays"
    label = "bays"
