from django.apps import AppConfig


class PeopleConfig(AppConfig):
    name = "web.users"
    label = "larder_people"
