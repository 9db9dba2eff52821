from django.apps import AppConfig
from django.forms import Field

from appliance.message import set_reader
from web.translation import lazy_text, message_text


class SystemConfig(AppConfig):
    name = "web.system"
    label = "larder_system"

    def ready(self) -> None:
        set_reader(message_text)
        # Said wherever a form has no better sentence of its own; Django's says "this field".
        Field.default_error_messages["required"] = lazy_text("Fill this in.")
