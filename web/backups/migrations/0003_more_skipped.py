from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ("larder_backups", "0002_proof"),
    ]

    operations = [
        migrations.AddField(
            model_name="backuprecord",
            name="more_skipped",
            field=models.PositiveIntegerField(default=0),
        ),
    ]
