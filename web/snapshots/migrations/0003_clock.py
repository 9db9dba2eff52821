from datetime import timedelta

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("larder_snapshots", "0002_served_until")]

    operations = [
        migrations.AddField(model_name="madesnapshot", name="at", field=models.DateTimeField(null=True)),
        migrations.CreateModel(
            name="ClockRow",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("boot", models.CharField(max_length=40)),
                ("running", models.FloatField()),
                ("wall", models.DateTimeField()),
                ("shift", models.DurationField(default=timedelta())),
                ("since", models.FloatField(default=0.0)),
            ],
        ),
    ]
