"""Which volumes are to be served over iSCSI, and as what: from the volumes' settings to
targets as the kernel has them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from appliance.facts.box import Facts
from appliance.facts.datasets import Dataset
from appliance.message import Message
from appliance.shares.iscsi.chap import Secrets
from appliance.shares.iscsi.part import PORT, Iscsi, device_of
from appliance.shares.settings import setting_of
from appliance.system.addresses import bracketed

EVERY_ADDRESS = "[::0]"  # also takes connections over IPv4
EVERY_ADDRESS_IPV4 = "0.0.0.0"  # noqa: S104  # where the box has no IPv6
HAS_IPV6 = Path("/proc/net/if_inet6")


@dataclass(frozen=True)
class Target:
    """A target with its one disk. ``serial`` follows the volume to another box; ``portals`` are ``address:port``."""

    iqn: str
    store: str  # the kernel's name of the disk behind it
    device: str
    serial: str
    block: int = 512
    read_only: bool = False
    portals: tuple[str, ...] = ()
    initiators: tuple[str, ...] = ()
    user: str = ""
    secret: str = field(default="", repr=False)
    back_user: str = ""
    back_secret: str = field(default="", repr=False)


def volume_part(dataset: Dataset) -> Iscsi | None:
    """What a volume asks for over iSCSI; None where it is no volume or asks for nothing."""
    setting = setting_of(dataset) if dataset.kind == "volume" else None
    return setting.iscsi if setting else None


def wanted_volumes(facts: Facts) -> Iterator[tuple[Dataset, Iscsi]]:
    """The volumes that ask to be served. Of two with the same name the first is served."""
    taken = set()
    for dataset in facts.datasets:
        part = volume_part(dataset)
        if part and part.name not in taken:
            taken.add(part.name)
            yield dataset, part


def reason_unserved(dataset: Dataset, part: Iscsi, secrets: Secrets | None) -> str:
    """Why a volume cannot be served now, as a sentence without its full stop; empty where it can."""
    if dataset.locked:
        return Message("{dataset} is locked, so it is not served over iSCSI until it is unlocked", dataset=dataset.name)
    if " " in dataset.name:
        return Message(
            "{dataset} has a space in its name, so it is not served over iSCSI. Rename it", dataset=dataset.name
        )
    if part.user and (secrets is None or bool(secrets.back) != bool(part.back_user)):
        return Message(
            "This box does not have the secret for {dataset}, so it is not served over iSCSI. Set a new secret",
            dataset=dataset.name,
        )
    return ""


def portal_of(address: str) -> str:
    return f"{bracketed(address)}:{PORT}"


def every_portal() -> str:
    return f"{EVERY_ADDRESS if HAS_IPV6.exists() else EVERY_ADDRESS_IPV4}:{PORT}"


def target_of(dataset: Dataset, part: Iscsi, secrets: Secrets | None) -> Target:
    """The target of a volume. Its serial number is made of the volume's guid, which no other dataset has."""
    return Target(
        iqn=part.iqn,
        store=f"larder-{dataset.guid:016x}",
        device=device_of(dataset.name),
        serial=f"{dataset.guid:016x}",
        block=part.block,
        read_only=dataset.readonly,
        portals=tuple(map(portal_of, part.addresses)) or (every_portal(),),
        initiators=part.initiators,
        user=part.user,
        secret=secrets.secret if secrets and part.user else "",
        back_user=part.back_user,
        back_secret=secrets.back if secrets and part.back_user else "",
    )


def wanted_targets(facts: Facts, read_secrets: Callable[[int], Secrets | None]) -> tuple[list[Target], dict[str, str]]:
    """The targets to serve, and why the other volumes that ask for it are not served, by their devices."""
    found, left = [], {}
    for dataset, part in wanted_volumes(facts):
        secrets = read_secrets(dataset.guid) if part.user else None
        if why := reason_unserved(dataset, part, secrets):
            left[device_of(dataset.name)] = why
        else:
            found.append(target_of(dataset, part, secrets))
    return found, left
