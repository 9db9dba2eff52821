from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('inventory', '0018_boxrow_disk_rates'),
    ]

    operations = [
        migrations.CreateModel(
            name='TargetEditRow',
            fields=[
                ('key', models.CharField(max_length=300, primary_key=True, serialize=False)),
                ('name', models.CharField(db_index=True, max_length=300)),
                ('facts', models.TextField()),
            ],
            options={
                'abstract': False,
            },
        ),
    ]
