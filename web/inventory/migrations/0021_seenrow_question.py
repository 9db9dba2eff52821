from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = (("inventory", "0020_said_of_facts"),)

    operations = (
        *(
            migrations.AddField("seenrow", name, models.DateTimeField(null=True))
            for name in ("requested", "ended", "checked")
        ),
        migrations.AddField("seenrow", "error", models.TextField(default="")),
        migrations.AddField("seenrow", "said", models.JSONField(default=dict, editable=False)),
    )
