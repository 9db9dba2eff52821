import json

from django.apps.registry import Apps
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

from appliance.agent.former_tags import FORMER, with_tag_of_today


def rename(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    for job in apps.get_model("jobs", "Job").objects.filter(kind__in=FORMER).only("kind", "operation").iterator(500):
        job.kind = FORMER[job.kind]
        job.operation = json.dumps(with_tag_of_today(json.loads(job.operation)))
        job.save(update_fields=["kind", "operation"])


class Migration(migrations.Migration):
    dependencies = [("jobs", "0002_job_waits_for_its_start")]
    operations = [migrations.RunPython(rename, migrations.RunPython.noop)]
