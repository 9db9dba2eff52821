from django.apps import AppConfig


class AlertsConfig(AppConfig):
    """What is wrong, who is told, and what disks said over time."""

    name = "web.alerts"
    label = "larder_alerts"
