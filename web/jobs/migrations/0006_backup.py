import json

from django.apps.registry import Apps
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

KINDS = ("run-backup", "send-backup", "verify-backup", "check-backup-keys", "drill-backup", "drill-remote")


def fill(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    for job in apps.get_model("jobs", "Job").objects.filter(kind__in=KINDS).only("operation").iterator(500):
        job.backup = json.loads(job.operation).get("key", "")
        job.save(update_fields=["backup"])


class Migration(migrations.Migration):
    dependencies = (("jobs", "0005_plan_seen"),)

    operations = (
        migrations.AddField("job", "backup", models.CharField(default="", max_length=20)),
        migrations.RunPython(fill, migrations.RunPython.noop),
    )
