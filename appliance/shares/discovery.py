"""Announce the shares to other computers: files for Avahi (Bonjour), rendered from what is
shared, and wsdd2 for Windows.

One file announces the box: its web page, SMB, AFP and, for Time Machine, ``_adisk``. Every NFS export has a file of its
own, because a name and a kind of service can be announced once. Samba and netatalk announce nothing themselves
(``multicast dns register = no``, ``zeroconf = no``), so nothing is said twice or differently.

The records of Time Machine: ``sys=waMa=0,adVF=0x100`` for the box, ``dkN=adVN=<share>,adVF=<how>,adVU=<uuid>`` for a
share; 0x80 says Time Machine, 0x02 SMB, 0x21 AFP. As netatalk's ``afp_avahi.c`` (0xa1) and Samba's ``avahi_register.c``
(0x82). The uuid is the dataset's, so that a Mac knows its backup again on another box.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from html import escape
from pathlib import Path

import msgspec

from appliance import command
from appliance.errors import Failed, Reason, Refused
from appliance.facts.box import Facts
from appliance.facts.datasets import Dataset
from appliance.message import Message
from appliance.shares import afp
from appliance.shares.owned_file import OwnedFile
from appliance.shares.settings import Nfs, Part, Protocol, wanted_shares

FOLDER = Path("/etc/avahi/services")
BOX = "larder.service"
OF_EXPORT = "larder-nfs-"
WSDD = "wsdd2.service"
AVAHI = "avahi-daemon.service"
LOOKS_LIKE = "RackMac"  # the picture that Finder draws
OVER_SMB, OVER_AFP = 0x82, 0xA1
UUIDS = uuid.UUID("6f0d8a43-9a0c-4b57-8d4e-5a6f1f5f2f10")  # the space in which datasets have theirs
KINDS = {"_http._tcp", "_https._tcp", "_smb._tcp", "_afpovertcp._tcp", "_adisk._tcp", "_device-info._tcp", "_nfs._tcp"}


class AvahiService(msgspec.Struct, frozen=True):
    """One thing to announce: its kind, port and text records."""

    kind: str
    port: int
    texts: tuple[str, ...] = ()


class FoundService(msgspec.Struct, frozen=True):
    """A service as a browser of the network sees it (``avahi-browse --parsable``)."""

    name: str
    kind: str
    host: str
    port: int
    texts: tuple[str, ...]


def mounted_shares(datasets: Iterable[Dataset], protocol: Protocol) -> list[tuple[Dataset, Part]]:
    """What is to be served over a protocol and is there: a locked or missing folder is not announced."""
    return [(one, part) for one, part in wanted_shares(Facts(datasets=tuple(datasets)), protocol) if one.mounted]


def time_machine_records(datasets: tuple[Dataset, ...]) -> Iterator[str]:
    """The records of the folders that Time Machine may use, in the order of their names."""
    found: dict[str, tuple[int, str]] = {}
    ways: tuple[tuple[Protocol, int], ...] = (("smb", OVER_SMB), ("afp", OVER_AFP))
    for protocol, bits in ways:
        for dataset, part in mounted_shares(datasets, protocol):
            if isinstance(part, Nfs) or not part.time_machine:
                continue
            own = str(uuid.uuid5(UUIDS, str(dataset.guid))).upper()
            before, known = found.get(part.name, (0, own))
            if known == own:  # another folder of that name goes by SMB: one record cannot mean both
                found[part.name] = (before | bits, own)
    for number, name in enumerate(sorted(found)):
        how, own = found[name]
        yield f"dk{number}=adVN={name},adVF=0x{how:x},adVU={own}"


def box_services(datasets: tuple[Dataset, ...]) -> Iterator[AvahiService]:
    """What the box itself announces."""
    yield AvahiService("_http._tcp", 80)
    yield AvahiService("_https._tcp", 443)
    smb, over_afp = mounted_shares(datasets, "smb"), mounted_shares(datasets, "afp")
    if smb:
        yield AvahiService("_smb._tcp", 445)
    if over_afp:
        yield AvahiService("_afpovertcp._tcp", afp.PORT)
    if records := tuple(time_machine_records(datasets)):
        yield AvahiService("_adisk._tcp", 9, ("sys=waMa=0,adVF=0x100", *records))
    if smb or over_afp:
        yield AvahiService("_device-info._tcp", 0, (f"model={LOOKS_LIKE}",))


def render_service_file(name: str, announced: Iterable[AvahiService]) -> str:
    """A file for Avahi; ``%h`` in the name is the box's own."""
    lines = [
        '<!DOCTYPE service-group SYSTEM "avahi-service.dtd">',
        "<service-group>",
        f'  <name replace-wildcards="yes">{escape(name, quote=False)}</name>',
    ]
    for service in announced:
        lines += ["  <service>", f"    <type>{service.kind}</type>", f"    <port>{service.port}</port>"]
        lines += [f"    <txt-record>{escape(text, quote=False)}</txt-record>" for text in service.texts]
        lines.append("  </service>")
    return "\n".join([*lines, "</service-group>", ""])


def render_files(datasets: Iterable[Dataset]) -> dict[str, str]:
    """Every file that Avahi is to have, by its name. A locked or missing folder is not announced."""
    known = tuple(datasets)
    found = {BOX: render_service_file("%h", box_services(known))}
    for dataset, _part in mounted_shares(known, "nfs"):
        shown = dataset.name.replace("%", "")[-40:]  # a name may have 63 bytes, with the box's own
        export = AvahiService("_nfs._tcp", 2049, (f"path={dataset.mountpoint}",))
        found[f"{OF_EXPORT}{dataset.guid}.service"] = render_service_file(f"%h {shown}", [export])
    return found


def check_announcement(path: Path) -> None:
    """Whether Avahi would take this file: it only says so in its log. Raises Failed."""
    from xml.etree import ElementTree  # the web and the worker load this module, and only the agent reads such a file

    try:
        root = ElementTree.fromstring(path.read_text(encoding="utf-8"))  # noqa: S314 - rendered by Larder itself
    except ElementTree.ParseError as error:
        raise Failed(Message("Avahi did not accept the announcement"), str(error)) from error
    kinds = [kind.text for kind in root.iter("type")]
    if root.tag != "service-group" or not kinds or not set(kinds) <= KINDS:
        raise Failed(Message("That is not an announcement that Larder makes"), ", ".join(map(str, kinds)))


def announcement_file(name: str) -> OwnedFile:
    """The file of that name in Avahi's folder."""
    return OwnedFile(FOLDER / name, check_announcement, xml=True)


def announce_shares(datasets: Iterable[Dataset]) -> None:
    """Make Avahi's files say what is served, drop those of exports that are gone, and let Windows find SMB.

    Avahi watches its folder. Raises Refused on a hand edit, Failed where a file would not be taken.
    """
    known = tuple(datasets)
    wanted = render_files(known)
    if not FOLDER.is_dir():
        return  # no Avahi here
    for name, body in wanted.items():
        if not is_current(name, body):
            announcement_file(name).write(body)
    for old in FOLDER.glob(f"{OF_EXPORT}*.service"):
        if old.name not in wanted and not announcement_file(old.name).drifted():
            announcement_file(old.name).previous.unlink(missing_ok=True)
            old.unlink()
    switch_wsdd(wanted=bool(mounted_shares(known, "smb")))


def is_current(name: str, body: str) -> bool:
    """Whether the file says just this."""
    try:
        return (FOLDER / name).read_text(encoding="utf-8").partition("\n")[2] == body
    except OSError:
        return False


def switch_wsdd(*, wanted: bool) -> None:
    """Start or stop what Windows finds the box by; it belongs to smbd and cannot run without it."""
    state = command.run(["systemctl", "is-enabled", WSDD], timeout=30, accept=range(256)).stdout.strip()
    if wanted and state != "enabled":
        command.run(["systemctl", "enable", "--now", WSDD], timeout=60)
    elif not wanted and state == "enabled":
        command.run(["systemctl", "disable", "--now", WSDD], timeout=60)


def unescape_name(text: str) -> str:
    """avahi-browse writes bytes that are no plain letters as ``\\ddd``, in decimal."""
    raw, at = bytearray(), 0
    while at < len(text):
        if text[at] == "\\" and text[at + 1 : at + 4].isdigit():
            raw.append(int(text[at + 1 : at + 4]) % 256)
            at += 4
        elif text[at] == "\\" and at + 1 < len(text):
            raw += text[at + 1].encode()
            at += 2
        else:
            raw += text[at].encode()
            at += 1
    return raw.decode(errors="replace")


def parse_browsed(text: str) -> list[FoundService]:
    """The resolved services in the output of ``avahi-browse --parsable --resolve --no-db-lookup``, each once."""
    found: dict[FoundService, None] = {}
    for line in text.splitlines():
        parts = line.split(";")
        if len(parts) < 9 or parts[0] != "=" or not parts[8].isdigit():
            continue
        records = ";".join(parts[9:])
        texts = tuple(unescape_name(one) for one in records.removeprefix('"').removesuffix('"').split('" "') if one)
        found[FoundService(unescape_name(parts[3]), parts[4], parts[6], int(parts[8]), texts)] = None
    return list(found)


def browse_own_services(kind: str) -> list[FoundService]:
    """What is announced of that kind in the network, as Avahi itself hears it; only what this box says."""
    if kind not in KINDS:
        raise Refused(
            Reason("announcement-unknown", "That is not a kind of service that Larder announces.", field="kind")
        )
    argv = ["avahi-browse", "--parsable", "--resolve", "--terminate", "--no-db-lookup", kind]
    own = command.run(["hostname", "--short"], timeout=10).stdout.strip().lower()
    said = command.run(argv, timeout=20, accept=range(256)).stdout
    return [
        found
        for found in parse_browsed(said)
        if found.host.lower().startswith(f"{own}.") or found.host.lower().startswith(f"{own}-")
    ]
