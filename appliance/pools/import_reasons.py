"""What speaks against importing a pool."""

from __future__ import annotations

from appliance.errors import Reason, Refused

LARGEST_GUID = 2**64 - 1


def used_by_other_system() -> Reason:
    """What forcing the import means, which the person has to agree to."""
    return Reason(
        "pool-used-by-other-system",
        "The last system that used this pool did not release it. If that system still runs and can reach "
        "these disks, both would write to the pool and destroy it beyond repair. Import it only when the "
        "other system is off or has lost these disks for good.",
        field="force",
    )


def pool_guid(guid: int) -> int:
    """A pool's guid. Raises Refused for a number that cannot be one."""
    if not 0 < guid <= LARGEST_GUID:
        raise Refused(Reason("pool-guid-malformed", "That is not a pool's number.", field="pool"))
    return guid
