"""All kinds of alerts by their code: what each means and what to do."""

from __future__ import annotations

from appliance.alerts import backup_kinds, box_kinds, disk_kinds, pool_kinds
from appliance.alerts.alert_kind import AlertKind

KINDS: dict[str, AlertKind] = {
    kind.code: kind for kind in (*disk_kinds.KINDS, *backup_kinds.KINDS, *pool_kinds.KINDS, *box_kinds.KINDS)
}
