from django.apps import AppConfig


class PoolsConfig(AppConfig):
    name = "web.pools"
    label = "larder_pools"
