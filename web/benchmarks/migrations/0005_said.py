from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = (("sweeps", "0004_heard"),)

    operations = (
        migrations.AddField("sweeprow", "said", models.JSONField(default=dict, editable=False)),
        migrations.AddField("clientrunrow", "said", models.JSONField(default=dict, editable=False)),
        migrations.AddField("caserow", "said", models.JSONField(default=dict, editable=False)),
    )
