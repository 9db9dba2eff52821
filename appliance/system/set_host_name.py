"""Giving the box another name: the system's own, the web certificate, and all services that answer to the name.

Every step can be done twice. Samba, netatalk and Avahi read the name when they start (smb.conf(5), ``netbios name``),
so they are started again; which of them have been is told by when they were started, after the name was stored.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

from appliance import command
from appliance.errors import Failed, Reason, Refused
from appliance.facts.box import Facts
from appliance.message import Message
from appliance.operation import Operation, Plan, Step, Work, never
from appliance.system import atomic_file, host_name, service_start

# One label of RFC 1123, no longer than Windows reads (NetBIOS), and no number that could be taken for an address.
NEW_NAME = re.compile(r"(?!\d+$)[a-z0-9]([a-z0-9-]{0,13}[a-z0-9])?")
FORMER_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")  # hostname(7), as lenient as the kernel's 64 bytes
RESERVED = {"localhost", "localdomain", "local", "workgroup", "ip6-localhost", "ip6-loopback"}
CERTIFICATE, KEY = Path("/etc/larder/tls.crt"), Path("/etc/larder/tls.key")
SERVICES = ("avahi-daemon.service", "smbd.service", "nmbd.service", "wsdd2.service", "netatalk.service")


class SetHostName(Operation, tag="set-host-name"):
    """Name the box. ``former``: its name as the administrator saw it, which other places still have."""

    needs_proof = never  # no data is touched, and it can be named back

    name: str
    former: str

    def __post_init__(self) -> None:
        if not NEW_NAME.fullmatch(self.name):
            raise Refused(
                Reason(
                    "host-name-invalid",
                    "A name has at most 15 characters: small letters without accents, digits and hyphens, no "
                    "hyphen at its beginning or end, and not digits alone. For example attic-nas.",
                    field="name",
                )
            )
        if not FORMER_NAME.fullmatch(self.former):
            raise Refused(Reason("host-name-former-malformed", "That is not the name of a box."))

    @property
    def title(self) -> str:
        return Message("Name the box {name}", name=self.name)

    @property
    def subject(self) -> str:
        return "the box"

    def locks(self) -> tuple[str, ...]:
        return ("shares",)  # which the services that are started again serve

    def check(self, facts: Facts) -> Iterator[Reason]:
        if self.name == self.former:
            yield Reason("host-name-same", "The box has this name already.", field="name")
        if self.name in RESERVED:
            yield Reason(
                "host-name-reserved",
                "{name} has a meaning of its own in networks. Choose another name.",
                field="name",
                name=self.name,
            )

    def plan(self, facts: Facts) -> Plan:
        name, old = self.name, self.former
        return Plan(
            summary=Message(
                "Other computers find the box as {name}: these pages at https://{name}.local/, shares at "
                "\\\\{name}.local on Windows, smb://{name}.local on Macs and {name}.local for NFS. Its "
                "addresses, files and users stay as they are.",
                name=name,
            ),
            steps=(
                Step(
                    "hosts",
                    Message("Write the name to the box's own list of names"),
                    f"write {host_name.HOSTS}",
                    self.write_hosts,
                    (str(host_name.HOSTS),),
                ),
                Step(
                    "name",
                    Message("Name the system {name}", name=name),
                    shlex.join(self.set_name_argv),
                    self.set_name,
                    (str(host_name.HOSTNAME),),
                ),
                Step(
                    "certificate",
                    Message("Renew the web certificate for the name, if Larder made it"),
                    f"openssl req -x509 -key {KEY} …\nsystemctl reload nginx.service",
                    self.renew_certificate,
                    (str(CERTIFICATE),),
                ),
                Step(
                    "services",
                    Message("Restart what answers to the name"),
                    f"systemctl try-restart {' '.join(SERVICES)}",
                    self.restart_services,
                ),
            ),
            identity={"kind": "set-host-name", "name": name, "former": old},
            warnings=self.warnings,
            undo=Message("You can change the name back to {old} at any time.", old=old),
        )

    @property
    def warnings(self) -> tuple[str, ...]:
        """What does not follow by itself."""
        return (
            Message(
                "What was set up with the name {old} on other computers no longer finds the box: network "
                "drives, bookmarks, Time Machine, NFS mounts, backups to it. Connect them again with the "
                "new name. Connections by the box's address keep working.",
                old=self.former,
            ),
            Message(
                "Everybody who has a share open over SMB or AFP loses the connection for some seconds. "
                "Windows asks for the password again, because it keeps passwords by the name of the box."
            ),
            Message(
                "At the new address you sign in again. If Larder made the web certificate, your browser "
                "asks once more whether to trust it. A certificate of your own is not changed: it has to "
                "contain the new name."
            ),
            Message(
                "Names that your router gives out, such as {name}.lan, follow when the box next asks it "
                "for an address, at the latest after a restart.",
                name=self.name,
            ),
        )

    def write_hosts(self, work: Work) -> None:
        """Refuse a box that has meanwhile got a third name; otherwise let the new name lead to the box itself."""
        service_start.refuse_container()
        if host_name.read_host_name() not in {self.former, self.name}:
            raise Refused(
                Reason(
                    "host-name-changed-since", "The box has got another name since you opened the page. Open it again."
                )
            )
        atomic_file.write_atomically(host_name.HOSTS, self.hosts().encode(errors="surrogateescape"), mode=0o644)

    @property
    def set_name_argv(self) -> tuple[str, ...]:
        return ("hostnamectl", "set-hostname", self.name)

    def set_name(self, work: Work) -> None:
        """Twice where the first did not answer in time: it starts the service that does it, which a busy box may need
        longer for than D-Bus waits (25 seconds)."""
        try:
            command.run(self.set_name_argv, timeout=60)
        except command.CommandFailed as failed:
            if "timed out" not in failed.said:
                raise
            command.run(self.set_name_argv, timeout=60)

    def hosts(self) -> str:
        """What /etc/hosts has to say."""
        text = (
            host_name.HOSTS.read_text(errors="surrogateescape")
            if host_name.HOSTS.exists()
            else "127.0.0.1\tlocalhost\n"
        )
        return host_name.render_hosts(text, self.former, self.name)

    def renew_certificate(self, work: Work) -> None:
        """The same key with a new certificate, so that a power cut leaves a pair that fits. nginx goes on with it."""
        if not self.is_certificate_stale():
            work.note(Message("The web certificate is not Larder's, or has the name already: it stays"))
            return
        names = f"subjectAltName=DNS:{self.name},DNS:{self.name}.local,DNS:localhost"
        made = command.run(
            [
                "openssl",
                "req",
                "-x509",
                "-key",
                str(KEY),
                "-days",
                "3650",
                "-subj",
                f"/CN={self.name}",
                "-addext",
                names,
            ],
            timeout=60,
        ).stdout
        atomic_file.write_atomically(CERTIFICATE, made.encode(), mode=0o644)
        command.run(["systemctl", "reload", "nginx.service"], timeout=60)

    def is_certificate_stale(self) -> bool:
        """Whether it is the one that Larder made for the former name (deploy/systemd/first-boot): signed by itself."""
        argv = ["openssl", "x509", "-in", str(CERTIFICATE), "-noout", "-subject", "-issuer", "-nameopt", "RFC2253"]
        try:
            said = command.run(argv, timeout=30).stdout
        except Failed:
            return False
        parts = [line.partition("=")[2].strip() for line in said.splitlines()]
        return self.former != self.name and parts == [f"CN={self.former}"] * 2

    def restart_services(self, work: Work) -> None:
        for service in self.services_before():
            work.note(Message("Restarting {service}", service=service))
            command.run(["systemctl", "try-restart", service], timeout=120)

    def services_before(self) -> tuple[str, ...]:
        """The services that run and were started before the name was stored."""
        return service_start.services_before(SERVICES, host_name.HOSTNAME)

    def probe(self, step: str, facts: Facts) -> bool:
        if step == "hosts":
            return host_name.HOSTS.exists() and host_name.HOSTS.read_text(errors="surrogateescape") == self.hosts()
        if step == "name":
            return host_name.read_host_name() == self.name
        return not (self.is_certificate_stale() if step == "certificate" else self.services_before())

    def recovery_hint(self, step: str, facts: Facts) -> str:
        return Message(
            "Name the box {name} again: what was done already is only looked at, and what is missing is done.",
            name=self.name,
        )
