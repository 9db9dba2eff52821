from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("larder_accounts", "0001_initial")]

    operations = [
        migrations.AddField(
            model_name="preferences",
            name="units",
            field=models.CharField(
                choices=[("TB", "TB and GB, as on the labels of disks"), ("TiB", "TiB and GiB, as Windows and ZFS count")],
                default="TB",
                max_length=3,
            ),
        ),
    ]
