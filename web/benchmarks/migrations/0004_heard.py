from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('sweeps', '0003_setting_trial'),
    ]

    operations = [
        migrations.AddField(
            model_name='clientrunrow',
            name='heard',
            field=models.DateTimeField(null=True),
        ),
    ]
