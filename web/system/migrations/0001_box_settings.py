from typing import Any

from django.db import migrations, models


def keep_language(apps: Any, _editor: Any) -> None:
    """The language of mails, chosen under Notifications until now, is that of the box."""
    if chosen := apps.get_model("larder_alerts", "MailSettings").objects.filter(pk=1).values_list("language", flat=True).first():
        apps.get_model("larder_system", "BoxChoices").objects.create(pk=1, language=chosen)


class Migration(migrations.Migration):
    dependencies = (("larder_alerts", "0005_said"),)

    operations = (
        migrations.CreateModel(
            name="BoxChoices",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("language", models.CharField(blank=True, default="", max_length=5)),
            ],
        ),
        migrations.RunPython(keep_language, migrations.RunPython.noop),
    )
