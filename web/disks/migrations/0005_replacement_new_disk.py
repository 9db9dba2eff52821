from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = (("bays", "0004_replacement_said"),)

    operations = (
        migrations.AddField("replacement", "new_guid", models.CharField(blank=True, default="", max_length=20)),
    )
