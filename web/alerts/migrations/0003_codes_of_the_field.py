"""Two codes of alerts get the field's own words. Alerts and chosen severities go on under the new ones."""

from django.apps.registry import Apps
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

FORMER = {"pool.weakened": "pool.degraded", "pool.bare": "pool.no-redundancy"}


def rename(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    for model in ("Alert", "KindSeverity"):
        rows = apps.get_model("larder_alerts", model).objects
        for former, code in FORMER.items():
            rows.filter(kind=former).update(kind=code)


class Migration(migrations.Migration):
    dependencies = (("larder_alerts", "0002_authority"),)
    operations = (migrations.RunPython(rename, migrations.RunPython.noop),)
