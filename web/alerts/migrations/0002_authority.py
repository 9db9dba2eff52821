from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = (("larder_alerts", "0001_initial"),)

    operations = (
        migrations.AddField("mailsettings", "authority", models.TextField(blank=True, default="")),
    )
