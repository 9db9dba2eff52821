from django.apps import AppConfig


class InventoryConfig(AppConfig):
    """Facts that collectors wrote, and the pages that show them."""

    name = "web.inventory"
    label = "inventory"
