from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('inventory', '0016_said'),
    ]

    operations = [
        migrations.AddField(
            model_name='progress',
            name='said',
            field=models.JSONField(default=dict, editable=False),
        ),
    ]
