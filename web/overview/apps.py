from django.apps import AppConfig


class OverviewConfig(AppConfig):
    name = "web.overview"
    label = "larder_overview"
