import json

from django.apps.registry import Apps
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

from appliance.facts import user_properties

SOURCES = ("share_source", "policy_source", "backup_source", "access_source")


def fill(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """A row is stored again only when its fact has changed, and the inventory lasts until the box restarts."""
    table = apps.get_model("inventory", "DatasetRow").objects.using(schema_editor.connection.alias)
    for row in table.only("facts").iterator(500):
        try:
            fact = json.loads(row.facts)
        except ValueError:
            continue  # an odd row is read again within a minute
        row.type = fact.get("kind", "filesystem")
        row.mountpoint = fact.get("mountpoint", "")
        row.locked = fact.get("key_status") == "unavailable"
        row.encryption_root = fact.get("encryption_root", "")
        row.is_copy = bool(fact.get("copy_of"))
        row.is_test = user_properties.DRILL in fact.get("properties", {})
        for name in SOURCES:
            setattr(row, name, fact.get(name) or "none")
        row.save()


class Migration(migrations.Migration):
    dependencies = (("inventory", "0022_progress_waits"),)

    operations = (
        migrations.AddField("datasetrow", "type", models.CharField(default="filesystem", max_length=10)),
        migrations.AddField("datasetrow", "mountpoint", models.TextField(default="")),
        migrations.AddField("datasetrow", "locked", models.BooleanField(default=False)),
        migrations.AddField("datasetrow", "encryption_root", models.CharField(default="", max_length=300)),
        migrations.AddField("datasetrow", "is_copy", models.BooleanField(default=False)),
        migrations.AddField("datasetrow", "is_test", models.BooleanField(default=False)),
        *(
            migrations.AddField("datasetrow", name, models.CharField(default="none", max_length=10))
            for name in SOURCES
        ),
        migrations.RunPython(fill, migrations.RunPython.noop),
    )
