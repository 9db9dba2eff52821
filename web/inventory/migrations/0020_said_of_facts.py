from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = (("inventory", "0019_targeteditrow"),)

    operations = (
        migrations.RenameField("diskrow", "said_of_uses", "said_of_facts"),
        *(
            migrations.AddField(name, "said_of_facts", models.JSONField(default=dict))
            for name in ("connectionrow", "editrow")
        ),
        migrations.AddField("source", "said", models.JSONField(default=dict, editable=False)),
    )
