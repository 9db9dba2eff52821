"""Why a volume cannot be seen over iSCSI: each thing between it and another computer, in the
order a connection meets it."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import msgspec

from appliance import command, names
from appliance.errors import Failed, Reason, Refused
from appliance.facts.datasets import Dataset
from appliance.formatting import names_text
from appliance.message import Message, join_messages
from appliance.request import Request
from appliance.shares import approved, publish
from appliance.shares.iscsi import chap, divergence, sessions
from appliance.shares.iscsi.differences import TargetDifference, explain_difference
from appliance.shares.iscsi.part import PORT, Iscsi, device_of
from appliance.shares.iscsi.targets import volume_part
from appliance.shares.troubleshoot.diagnosis import Check
from appliance.zfs import status

MOST_NAMED = 5
SECONDS_TO_WAIT = 60.0  # for a job that serves volumes meanwhile


class TargetDiagnosis(msgspec.Struct, frozen=True, kw_only=True):
    """What was found of one volume."""

    on: bool
    agreed: bool = False
    locked: str = ""  # the encryption root whose key is missing
    secret: bool = True  # False: CHAP is on and this box has no secret
    device: bool = False
    served: bool = False
    silent: tuple[str, ...] = ()  # addresses on which nothing answers
    foreign: tuple[str, ...] = ()  # chosen addresses that are none of this box
    connected: tuple[str, ...] = ()
    by_hand: tuple[TargetDifference, ...] = ()  # how the target differs from its setting, where somebody changed it


def own_addresses() -> frozenset[str]:
    """The addresses of this box, now. Raises Failed."""
    said = command.run(["ip", "-j", "address"], timeout=10).stdout
    try:
        links = json.loads(said)
        return frozenset(info["local"] for link in links for info in link.get("addr_info", ()) if "local" in info)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Failed(Message("ip printed something else than addresses"), said[:200]) from error


def answers(address: str) -> bool:
    """Whether something takes connections on the port of iSCSI at that address."""
    try:
        with socket.create_connection((address, PORT), timeout=5):
            return True
    except OSError:
        return False


def diagnose_volume(name: str) -> TargetDiagnosis:
    """Look at one volume. Root only; raises Refused where it is not there, Failed."""
    datasets = status.read_datasets()
    volume = next((one for one in datasets if one.name == name), None)
    if volume is None:
        raise Refused(Reason("folder-missing", "The folder {folder} is no longer there.", folder=name))
    part = volume_part(volume)
    if part is None:
        return TargetDiagnosis(on=False)
    device = device_of(name)
    share = next((one for one in sessions.read_served() if one.path == device), None)
    foreign = tuple(sorted(set(part.addresses) - own_addresses())) if part.addresses else ()
    edit = divergence.read_edits(publish.agreed_facts(datasets), patience=SECONDS_TO_WAIT).get(part.iqn)
    asked = [one for one in part.addresses if one not in foreign] or ["127.0.0.1"]
    return TargetDiagnosis(
        on=True,
        agreed=volume.guid in approved.read_approved(),
        locked=volume.encryption_root if volume.locked else "",
        secret=not part.user or chap.read_secrets(volume.guid) is not None,
        device=Path(device).is_block_device(),
        served=share is not None,
        silent=tuple(one for one in asked if share and not answers(one)),
        foreign=foreign,
        connected=share.open_by if share else (),
        by_hand=edit.differences if edit else (),
    )


class LookAtTarget(Request, tag="look-at-target"):
    """What keeps a volume from being seen over iSCSI."""

    dataset: str

    def __post_init__(self) -> None:
        names.existing_dataset(self.dataset)

    def read(self) -> object:
        return diagnose_volume(self.dataset)


def explain_diagnosis(volume: Dataset, seen: TargetDiagnosis) -> tuple[Check, ...]:
    """What was seen in words. ``mend`` names the button of a fix: unlock, edit, serve, drift;
    empty where there is none."""
    part = volume_part(volume)
    if part is None or not seen.on:
        text = Message("The volume is not shared over iSCSI, so nobody can see it. Switch it on first.")
        return (Check("setting", "failed", Message("The switch is off"), text, "edit"),)
    return (*volume_checks(seen), *kernel_checks(seen), *address_checks(part, seen), *computer_checks(part, seen))


def volume_checks(seen: TargetDiagnosis) -> Iterator[Check]:
    if seen.locked:
        text = Message(
            "It is encrypted and its key has not been given since the box started. Nothing is served until then."
        )
        yield Check("volume", "failed", Message("The volume is locked"), text, "unlock")
    elif not seen.device:
        text = Message("This box has no device for it. Serve it again; if that does not help, restart the box.")
        yield Check("volume", "failed", Message("The volume is not in its place"), text, "serve")
    else:
        yield Check("volume", "healthy", Message("The volume is in its place"))
    if not seen.agreed:
        text = Message(
            "The setting came with the disks and nobody has agreed to it on this box. Look at it and save it once."
        )
        yield Check("agreed", "failed", Message("It was not switched on here"), text, "edit")
    if not seen.secret:
        text = Message(
            "CHAP is on, and its secret does not travel with the disks. Set a new secret here and on the "
            "other computer."
        )
        yield Check("secret", "failed", Message("This box does not have the secret"), text, "edit")


def kernel_checks(seen: TargetDiagnosis) -> Iterator[Check]:
    if seen.by_hand:
        text = join_messages(
            [
                *map(explain_difference, seen.by_hand),
                Message(
                    "Larder does not write over it, so changes made here do not reach it. Look at the "
                    "difference and decide."
                ),
            ]
        )
        yield Check("by-hand", "attention", Message("The target was changed by hand"), text, "drift")
    if seen.served:
        yield Check("served", "healthy", Message("The kernel serves it"))
    else:
        text = Message("Nothing of this volume is offered to the network.")
        yield Check("served", "failed", Message("The kernel does not serve it"), text, "serve")


def address_checks(part: Iscsi, seen: TargetDiagnosis) -> Iterator[Check]:
    if seen.foreign:
        text = Message(
            "The box may have another address since. Choose one that it has, or leave the field empty for "
            "all addresses."
        )
        yield Check(
            "address",
            "failed",
            Message("{foreign} is no address of this box", foreign=", ".join(seen.foreign)),
            text,
            "edit",
        )
    if seen.silent:
        yield Check(
            "port", "failed", Message("Nothing answers on port {port}", port=PORT), Message("Serve it again."), "serve"
        )
    elif seen.served and len(seen.foreign) < max(len(part.addresses), 1):
        text = Message("If the other computer finds nothing, a firewall or another network may be in between.")
        yield Check("port", "healthy", Message("It answers on port {port}", port=PORT), text)


def computer_checks(part: Iscsi, seen: TargetDiagnosis) -> Iterator[Check]:
    if part.initiators:
        text = Message(
            "Let in: {named}. Windows shows its own name under iSCSI Initiator, Configuration; Linux in "
            "/etc/iscsi/initiatorname.iscsi.",
            named=names_text(part.initiators, MOST_NAMED),
        )
        yield Check("initiator", "empty", Message("Is the other computer among those named?"), text, "edit")
    if part.user:
        back = (
            Message(" It expects this box to sign in as {back_user}.", back_user=part.back_user)
            if part.back_user
            else ""
        )
        text = Message(
            "The other computer signs in by CHAP as {user}, with the secret that was set here.{back} A wrong "
            "one looks there like “authentication failure”.",
            user=part.user,
            back=back,
        )
        yield Check("chap", "empty", Message("Does it know the secret?"), text, "edit")
    if seen.connected:
        text = Message(
            "{connected}. A second computer must not use it at the same time.",
            connected=names_text(seen.connected, MOST_NAMED),
        )
        yield Check("connected", "attention", Message("It is in use now"), text)
