from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = (("jobs", "0004_said"),)

    operations = (migrations.AddField("job", "plan_seen", models.BooleanField(default=True)),)
