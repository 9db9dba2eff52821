from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = (("larder_accounts", "0002_preferences_units"),)

    operations = (
        migrations.AddField("preferences", "language", models.CharField(blank=True, default="", max_length=5)),
    )
