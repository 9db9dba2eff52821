from django.apps import AppConfig


class PeopleConfig(AppConfig):
    name = "web.people"
    label = "larder_people"
