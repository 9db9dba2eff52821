from django.apps import AppConfig


class SharesConfig(AppConfig):
    name = "web.shares"
    label = "larder_shares"
