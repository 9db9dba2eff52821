from django.db import migrations, models


class Migration(migrations.Migration):
    """The language of mails is that of the box now."""

    dependencies = (("larder_alerts", "0005_said"), ("larder_system", "0001_box_settings"))

    operations = (
        migrations.RemoveField("mailsettings", "language"),
        migrations.AddField("message", "said", models.JSONField(default=dict, editable=False)),
        migrations.AddField("diskcare", "said", models.JSONField(default=dict, editable=False)),
    )
