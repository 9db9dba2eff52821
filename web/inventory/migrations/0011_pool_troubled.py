from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('inventory', '0010_speeds'),
    ]

    operations = [
        migrations.AddField(
            model_name='poolrow',
            name='troubled',
            field=models.DateTimeField(null=True),
        ),
    ]
