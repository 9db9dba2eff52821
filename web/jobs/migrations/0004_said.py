from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = (("jobs", "0003_operations_have_tags"),)

    operations = (
        migrations.AddField("job", "said", models.JSONField(default=dict, editable=False)),
    )
