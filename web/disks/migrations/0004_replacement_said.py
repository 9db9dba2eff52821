from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = (("bays", "0003_burn_in_said"),)

    operations = (migrations.AddField("replacement", "said", models.JSONField(default=dict, editable=False)),)
