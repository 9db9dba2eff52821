"""Diagnose why a user cannot see a share: each thing between them, in the order a connection meets it, with its fix.

``diagnose_share`` asks the system, as root and only when somebody wants to know; ``explain_diagnosis`` turns the
answers into sentences and is pure. Whether a person may pass a folder is asked of the kernel as that person
(``setpriv``), so access lists count.
"""

from __future__ import annotations

import ipaddress
import pwd
import socket
from collections.abc import Iterator
from pathlib import PurePosixPath

from appliance import command, names
from appliance.errors import Failed, Reason, Refused
from appliance.facts.datasets import Dataset
from appliance.formatting import continue_sentence, names_text
from appliance.message import Message
from appliance.request import Request
from appliance.shares import afp, discovery, nfs, nfs_access
from appliance.shares.publish import SERVING
from appliance.shares.settings import Protocol, ShareSetting, setting_of
from appliance.shares.troubleshoot.access_checks import client_checks, person_checks
from appliance.shares.troubleshoot.diagnosis import TITLES, Check, Diagnosis
from appliance.system import accounts
from appliance.zfs import status

PORTS = {"smb": 445, "nfs": 2049, "afp": 548}
KINDS = {"smb": "_smb._tcp", "nfs": "_nfs._tcp", "afp": "_afpovertcp._tcp"}


def diagnose_share(name: str, protocol: Protocol, person: str) -> Diagnosis:
    """Look at one share of the dataset for one person. Root only; raises Refused where the dataset is not there."""
    dataset = next((one for one in status.read_datasets() if one.name == name), None)
    if dataset is None:
        raise Refused(Reason("folder-missing", "The folder {folder} is no longer there.", folder=name))
    serving = SERVING[protocol]
    unit = command.run(["systemctl", "is-active", serving.units[0]], timeout=30, accept=range(256)).stdout.strip()
    setting, mounted = setting_of(dataset), dataset.mounted
    client, stopped_at, may_write = None, "", False
    if protocol != "nfs":
        stopped_at, may_write = way_of(person, dataset.mountpoint) if person and mounted else ("", False)
    elif mounted and setting and setting.nfs:
        asked = nfs_access.acting_numbers(setting.nfs, person, accounts.read_accounts(), accounts.people_number())
        client = nfs_access.try_access(asked, dataset.mountpoint)
    served: bool | None = None
    try:
        served = dataset.mountpoint in {path for _name, path in serving.served()}
    except Failed:
        served = None
    return Diagnosis(
        dataset=name,
        protocol=protocol,
        person=person,
        unit=unit,
        port=is_listening(PORTS[protocol]),
        drifted=serving.owned.drifted(),
        served=served,
        announced=is_announced(protocol, dataset),
        there=True,
        mounted=dataset.mounted,
        locked=dataset.encryption_root if dataset.locked else "",
        stopped_at=stopped_at,
        may_write=may_write,
        unknown=nfs.SERVING.unknown({dataset.mountpoint}) if protocol == "nfs" else (),
        client=client,
        account=account_of(person, protocol) if person else "",
    )


def is_listening(port: int) -> bool:
    """Whether something takes connections on that port of this box."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5):
            return True
    except OSError:
        return False


def is_announced(protocol: Protocol, dataset: Dataset) -> bool | None:
    """Whether Avahi says it to the network; an export by its own path."""
    try:
        found = discovery.browse_own_services(KINDS[protocol])
    except Failed:
        return None
    return any(protocol != "nfs" or f"path={dataset.mountpoint}" in one.texts for one in found)


def way_of(person: str, place: str) -> tuple[str, bool]:
    """The first folder on the way that the person may not pass or read, and whether they may write at its end."""
    try:
        user = pwd.getpwnam(person)
    except KeyError:
        return place, False
    as_person = ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--init-groups", "--", "test"]

    def may(what: str, folder: str) -> bool:
        return command.run([*as_person, what, folder], timeout=30, accept=range(256)).status == 0

    path = PurePosixPath(place)
    for folder in [*reversed(path.parents), path]:
        if not may("-x", str(folder)):
            return str(folder), False
    return ("" if may("-r", place) else place), may("-w", place)


def account_of(person: str, protocol: Protocol) -> str:
    """Whether the protocol would let the person in at all."""
    try:
        pwd.getpwnam(person)
    except KeyError:
        return "missing"
    if protocol == "smb":
        said = command.run(["pdbedit", "--list", "--smbpasswd-style", "--user", person], timeout=30, accept=range(256))
        line = next((one for one in said.stdout.splitlines() if one.startswith(f"{person}:")), "")
        if not line:
            return "strange"
        flags = line.split(":")[4]  # smbpasswd(5): D is a disabled account
        return "locked" if "D" in flags else "ready"
    return "ready" if protocol == "nfs" or accounts.has_password(person) else "strange"


def explain_diagnosis(dataset: Dataset, seen: Diagnosis, *, asked_from: str = "") -> tuple[Check, ...]:
    """What was seen in words, in the order in which a connection meets it.
    ``asked_from`` is the address of the browser: mostly the very computer that cannot see the share."""
    setting = setting_of(dataset)
    if setting is None or getattr(setting, seen.protocol) is None:
        off = Message("It is not shared like that, so nobody can see it. Switch it on first.")
        return (Check("setting", "failed", Message("The switch is off"), off, "edit"),)
    return (
        *folder_checks(seen),
        *service_checks(seen),
        announced_check(seen),
        *address_checks(setting, seen, asked_from),
        *(client_checks(setting.nfs, seen) if setting.nfs and seen.protocol == "nfs" else person_checks(setting, seen)),
    )


def folder_checks(seen: Diagnosis) -> Iterator[Check]:
    if seen.locked:
        text = Message("It is encrypted and its key has not been given since the box started.")
        yield Check("folder", "failed", Message("The folder is locked"), text, "unlock")
    elif not seen.mounted:
        text = Message("Its files are not in their place, so there is nothing to serve.")
        yield Check("folder", "failed", Message("The folder is not mounted"), text, "mount")
    else:
        yield Check("folder", "healthy", Message("The folder is open and in its place"))


def service_checks(seen: Diagnosis) -> Iterator[Check]:
    title = TITLES[seen.protocol]
    if seen.drifted:
        text = Message(
            "Larder does not write over it, so changes made here do not reach it. Look at the difference and decide."
        )
        yield Check(
            "file",
            "attention",
            Message("The settings of {service} were changed by hand", service=continue_sentence(title)),
            text,
            "drift",
        )
    if seen.unit != "active":
        failed = Message("{title} has failed", title=title)
        said = failed if seen.unit == "failed" else Message("{title} does not run", title=title)
        yield Check("service", "failed", said, Message("Without it, nobody can reach the share."), "serve")
        return
    yield Check("service", "healthy", Message("{title} runs", title=title))
    if not seen.port:
        text = Message("Nothing answers on port {ports} of this box.", ports=PORTS[seen.protocol])
        yield Check("port", "failed", Message("{title} does not answer", title=title), text, "serve")
        return
    yield Check("port", "healthy", Message("It answers on port {port}", port=PORTS[seen.protocol]))
    if seen.unknown:
        names = ", ".join(seen.unknown)
        text = Message(
            "That computer cannot mount it until its name is found. It may be switched off; its address in "
            "place of the name always works."
        )
        yield Check(
            "served", "failed", Message("The name {names} is not found in the network", names=names), text, "edit"
        )
    elif seen.served is False:
        text = Message("It runs, and this folder is not among what it serves.")
        yield Check("served", "failed", Message("{title} does not serve the folder", title=title), text, "serve")
    elif seen.served:
        yield Check("served", "healthy", Message("{title} serves the folder", title=title))


def announced_check(seen: Diagnosis) -> Check:
    if seen.announced is None:
        return Check(
            "announced",
            "empty",
            Message("Larder could not find out whether it is announced"),
            Message("Avahi does not answer on this box."),
        )
    if seen.announced:
        return Check("announced", "healthy", Message("It is announced to the network"))
    text = Message("Other computers do not find it automatically. Typing the address still works.")
    return Check("announced", "attention", Message("It is not announced"), text, "serve")


def address_checks(setting: ShareSetting, seen: Diagnosis, asked_from: str) -> Iterator[Check]:
    """Whether the computer of the person who asks may connect."""
    try:
        address = ipaddress.ip_address(asked_from.removeprefix("::ffff:"))
    except ValueError:
        return
    if seen.protocol == "afp":
        hosts: tuple[str, ...] = afp.HOME
        outside = Message("AFP is for the networks of a home only, over IPv4.")
    elif seen.protocol == "nfs" and setting.nfs:
        hosts = setting.nfs.hosts
        outside = Message("Only {hosts} may mount it.", hosts=names_text(hosts, 5))
    else:
        return
    if any(address in one for one in parse_networks(hosts)):
        yield Check("address", "healthy", Message("Your computer ({address}) is let in", address=address))
    elif all_networks(hosts):
        edit = "edit" if seen.protocol == "nfs" else ""
        yield Check(
            "address", "failed", Message("Your computer ({address}) is not let in", address=address), outside, edit
        )
    else:
        text = Message(
            "{outside} Whether {address} has one of those names cannot be seen from here.",
            outside=outside,
            address=address,
        )
        yield Check("address", "empty", Message("Is your computer among those that are let in?"), text)


def parse_networks(hosts: tuple[str, ...]) -> Iterator[ipaddress.IPv4Network | ipaddress.IPv6Network]:
    for host in hosts:
        try:
            yield ipaddress.ip_network(host)
        except ValueError:
            continue


def all_networks(hosts: tuple[str, ...]) -> bool:
    return len(list(parse_networks(hosts))) == len(hosts)


class LookAtShare(Request, tag="look-at-share"):
    """What lies between a user and a share: somebody asked why it cannot be seen."""

    dataset: str
    protocol: Protocol
    person: str = ""

    def __post_init__(self) -> None:
        names.existing_dataset(self.dataset)
        if self.person:
            names.check_user_name(self.person)

    def read(self) -> object:
        return diagnose_share(self.dataset, self.protocol, self.person)
