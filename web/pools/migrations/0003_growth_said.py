from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = (("larder_pools", "0002_growth"),)

    operations = (migrations.AddField("growthplan", "said", models.JSONField(default=dict, editable=False)),)
