from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ("larder_backups", "0001_backups"),
    ]

    operations = [
        migrations.AddField(
            model_name="backuprecord",
            name="proof",
            field=models.JSONField(default=dict),
        ),
    ]
