from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('bays', '0002_burn_in'),
    ]

    operations = [
        migrations.AddField(
            model_name='burnin',
            name='said',
            field=models.JSONField(default=dict, editable=False),
        ),
    ]
