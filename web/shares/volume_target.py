"""What the page of a volume says of iSCSI."""

from __future__ import annotations

from django.http import HttpRequest

from appliance.facts.datasets import Dataset
from appliance.facts.sharing import Share
from appliance.shares.iscsi.differences import explain_difference
from appliance.shares.iscsi.divergence import TargetEdit, key_of
from appliance.shares.iscsi.part import PORT, device_of
from appliance.shares.iscsi.targets import volume_part
from appliance.shares.settings import ISCSI
from web.inventory.fact_row import first_fact
from web.inventory.models import ShareRow, TargetEditRow
from web.jobs.models import Job
from web.shares.box_address import read_box_address


def volume_context(volume: Dataset, request: HttpRequest) -> dict[str, object]:
    """Whether it is served, to whom and how it is reached: five queries."""
    part = volume_part(volume)
    served = ShareRow.objects.filter(name=part.iqn, key__startswith=f"{ISCSI}:")[:1] if part else ()
    share: Share | None = first_fact(served)
    edit: TargetEdit | None = first_fact(TargetEditRow.objects.filter(key=key_of(part.iqn)) if part else ())
    box = read_box_address(request)
    job = Job.objects.filter(state__in=Job.OPEN, kind="set-target", subject=volume.name).defer("plan", "log").first()
    return {
        "target": part,
        "target_served": bool(share and share.path == device_of(volume.name)),
        "target_open_by": share.open_by if share else (),
        "target_job": job,
        "target_edit": edit,
        "target_differences": list(map(explain_difference, edit.differences)) if edit else [],
        "target_port": PORT,
        "target_addresses": part.addresses or (box.host,) if part else (),
        "target_numbers": box.numbers if part and not part.addresses else (),
    }
