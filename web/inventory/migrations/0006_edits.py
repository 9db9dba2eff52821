from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('inventory', '0005_seen_shares'),
    ]

    operations = [
        migrations.CreateModel(
            name='PolicyRow',
            fields=[
                ('key', models.CharField(max_length=300, primary_key=True, serialize=False)),
                ('name', models.CharField(db_index=True, max_length=300)),
                ('facts', models.TextField()),
            ],
            options={
                'abstract': False,
            },
        ),
        migrations.CreateModel(
            name='ConnectionRow',
            fields=[
                ('key', models.CharField(max_length=300, primary_key=True, serialize=False)),
                ('name', models.CharField(db_index=True, max_length=300)),
                ('facts', models.TextField()),
            ],
            options={
                'abstract': False,
            },
        ),
        migrations.CreateModel(
            name='EditRow',
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
