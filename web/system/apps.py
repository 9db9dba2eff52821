from django.apps import AppConfig


class SystemConfig(AppConfig):
    name = "web.system"
    label = "larder_system"
