from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('inventory', '0014_importrow'),
    ]

    operations = [
        migrations.CreateModel(
            name='ReceiverRow',
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
