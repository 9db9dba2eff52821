from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = (("inventory", "0021_seenrow_question"),)

    operations = (migrations.AddField("progress", "waits", models.BooleanField(default=False)),)
