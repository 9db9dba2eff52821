"""By which name and which numbers other computers reach the box: the same on every page."""

from __future__ import annotations

from django.conf import settings

from web.inventory.models import BoxRow


def box_host() -> str:
    """The name that the box announces in its network (mDNS)."""
    return f"{settings.BOX_NAME}.local"


def box_numbers() -> list[str]:
    """The IPv4 addresses of its ports as last read, without the length of the network; one query."""
    row = BoxRow.objects.first()
    found = [address.split("/")[0] for port in row.fact.ports for address in port.addresses] if row else []
    return [address for address in found if ":" not in address]
