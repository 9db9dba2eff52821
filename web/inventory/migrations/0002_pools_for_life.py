from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('inventory', '0001_initial'),
    ]

    operations = [
        migrations.CreateModel(
            name='CachingRow',
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
            name='DetailRow',
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
            name='ImportableRow',
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
            name='PropertiesRow',
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
            name='SessionRow',
            fields=[
                ('key', models.CharField(max_length=300, primary_key=True, serialize=False)),
                ('name', models.CharField(db_index=True, max_length=300)),
                ('facts', models.TextField()),
            ],
            options={
                'abstract': False,
            },
        ),
        migrations.RenameField(
            model_name='activity',
            old_name='issued',
            new_name='done',
        ),
        migrations.AddField(
            model_name='activity',
            name='ended',
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name='activity',
            name='phrase',
            field=models.CharField(default='', max_length=120),
        ),
        migrations.AddField(
            model_name='activity',
            name='pool_key',
            field=models.CharField(db_index=True, default='', max_length=40),
        ),
        migrations.AddField(
            model_name='activity',
            name='samples',
            field=models.TextField(default='[]'),
        ),
        migrations.AddField(
            model_name='activity',
            name='settled',
            field=models.BooleanField(default=False),
        ),
        migrations.AddField(
            model_name='activity',
            name='subject',
            field=models.CharField(default='', max_length=255),
        ),
        migrations.AddField(
            model_name='activity',
            name='total',
            field=models.PositiveBigIntegerField(default=0),
        ),
        migrations.AddField(
            model_name='diskrow',
            name='smart_passed',
            field=models.BooleanField(null=True),
        ),
        migrations.AddField(
            model_name='diskrow',
            name='smart_text',
            field=models.CharField(default='', max_length=500),
        ),
        migrations.AlterField(
            model_name='activity',
            name='started',
            field=models.DateTimeField(null=True),
        ),
        migrations.CreateModel(
            name='HistoryLine',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('pool_key', models.CharField(max_length=40)),
                ('number', models.PositiveIntegerField()),
                ('at', models.DateTimeField()),
                ('kind', models.CharField(max_length=20)),
                ('text', models.TextField()),
                ('by', models.CharField(default='', max_length=120)),
            ],
            options={
                'ordering': ('-number',),
                'indexes': [models.Index(fields=['pool_key', 'number'], name='history_of_pool')],
            },
        ),
    ]
