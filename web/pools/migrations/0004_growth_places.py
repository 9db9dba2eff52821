from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = (("larder_pools", "0003_growth_said"),)

    operations = (
        migrations.AddField("growthplan", "seats", models.JSONField(default=dict)),
        migrations.AddField("growthplan", "replaced", models.JSONField(default=list)),
    )
