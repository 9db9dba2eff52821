import json

from django.apps.registry import Apps
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor


def fill(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    for row in apps.get_model("sweeps", "CaseRow").objects.only("spec").iterator(500):
        case = json.loads(row.spec)
        row.workload, row.pool = case.get("workload", ""), case.get("pool", "")
        row.save(update_fields=["workload", "pool"])


class Migration(migrations.Migration):
    dependencies = (("sweeps", "0005_said"),)

    operations = (
        migrations.AddField("caserow", "workload", models.CharField(default="", max_length=20)),
        migrations.AddField("caserow", "pool", models.CharField(default="", max_length=255)),
        migrations.RunPython(fill, migrations.RunPython.noop),
    )
