from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("larder_snapshots", "0001_snapshots")]

    operations = [
        migrations.AddField(model_name="madesnapshot", name="until", field=models.DateTimeField(null=True)),
    ]
