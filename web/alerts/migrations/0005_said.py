from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = (("larder_alerts", "0004_language"),)

    operations = (
        migrations.AddField("alert", "said", models.JSONField(default=dict, editable=False)),
        migrations.AddField("alertnote", "said", models.JSONField(default=dict, editable=False)),
    )
