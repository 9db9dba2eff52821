from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('inventory', '0017_progress_said'),
    ]

    operations = [
        migrations.AddField(
            model_name='boxrow',
            name='disk_rates',
            field=models.JSONField(default=list),
        ),
    ]
