from django.apps import AppConfig


class AlertsConfig(AppConfig):
    """Alerts, notifications, and the daily readings of disks."""

    name = "web.alerts"
    label = "larder_alerts"
