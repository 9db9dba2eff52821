from django.apps import AppConfig


class DatasetsConfig(AppConfig):
    name = "web.datasets"
    label = "larder_datasets"
