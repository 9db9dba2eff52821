from django.apps import AppConfig
from django.forms import Field


class SystemConfig(AppConfig):
    name = "web.system"
    label = "larder_system"

    def ready(self) -> None:
        # Said wherever a form has no better sentence of its own; Django's says "this field".
        Field.default_error_messages["required"] = "Fill this in."
