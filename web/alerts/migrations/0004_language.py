from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = (("larder_alerts", "0003_codes_of_the_field"),)

    operations = (
        migrations.AddField("mailsettings", "language", models.CharField(blank=True, default="", max_length=5)),
    )
