"""SMB through Samba: its own include file, rendered from all datasets that are to be served, each time."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

import msgspec

from appliance import command, snapshot_names
from appliance.errors import Failed, Reason
from appliance.facts.box import Facts
from appliance.facts.datasets import Dataset
from appliance.facts.sharing import Share, SmbPolicy
from appliance.message import Message
from appliance.shares import samba_defaults
from appliance.shares.owned_file import OwnedFile
from appliance.shares.samba_defaults import settings_of
from appliance.shares.settings import NOBODY, Part, Protocol, Smb, setting_of, wanted_shares
from appliance.shares.template import Template
from appliance.system.accounts import PEOPLE

CONFIG = Path("/etc/samba/larder.conf")
NMBD = "nmbd.service"  # answers for the box's name where nothing else does
# What Debian's smb.conf has and nobody has asked for; anything else in it is somebody's own share.
DEBIANS_OWN = {"global", *samba_defaults.SECTIONS}
# The module stack is loaded globally and repeated wherever a share names modules: a share's list replaces the global.
STACK = ("catia", "fruit", "streams_xattr")
# vfs_shadow_copy2(8): Samba splits a name where the delimiter begins, matches the first part against ``snapprefix`` and
# reads the rest, delimiter included, with ``format``. The century keeps hyphens in a prefix from being taken for it.
PREVIOUS_VERSIONS = {
    "shadow:format": f"-{snapshot_names.FORMAT}",
    "shadow:snapprefix": f"^{snapshot_names.PREFIX}[a-z]*$",
    "shadow:delimiter": "-20",
}
IS_THERE = (" successful,", "NT_STATUS_ACCESS_DENIED")  # opened to a guest, or refused to one who gives no name
CUTS_A_COMMAND = frozenset('";\n')  # no name that Larder gives has them
TEMPLATE = Template(
    """\
[global]
   server min protocol = SMB2_10
{% if policy.signing == "required" %}
   server signing = mandatory
{% endif %}
{% if policy.encryption != "asked" %}
   server smb encrypt = {{ policy.encryption }}
{% endif %}
{% if guests %}
   map to guest = Bad User
{% endif %}
   vfs objects = {{ stack | join(" ") }}
{% if mac %}
   fruit:metadata = stream
   fruit:model = RackMac
{% endif %}
   unix password sync = no
   # Larder announces what is shared (discovery.py); twice would be two boxes.
   multicast dns register = no
{% for name in unasked %}

[{{ name }}]
   # Debian's smb.conf offers it although nobody has asked for it. Change its section there, and Larder leaves it alone.
   available = no
{% endfor %}
{% for share in shares %}

[{{ share.name }}]
   path = {{ share.path }}
   read only = {{ "no" if share.part.guest == "write" else "yes" }}
   browseable = {{ "no" if share.part.hidden else "yes" }}
   guest ok = {{ "no" if share.part.guest == "no" else "yes" }}
{% if share.part.guest == "no" %}
   valid users = {{ share.let_in | join(" ") }}
{% endif %}
{% if share.write %}
   write list = {{ share.write | join(" ") }}
{% endif %}
{% if share.read %}
   read list = {{ share.read | join(" ") }}
{% endif %}
   force group = {{ people }}
   # The creator of a file has all rights to it, as Windows programs expect: without its "x" a wish for all rights is refused.
   create mask = 0760
   directory mask = 2770
   # Who may use a folder is an ACL that new files take from their folder; without this the masks above would cut it.
   inherit acls = yes
{% if share.part.exact_case %}
   case sensitive = yes
{% endif %}
{% if share.part.encrypt %}
   smb encrypt = required
{% endif %}
   vfs objects = {{ share.modules | join(" ") }}
{% if share.part.previous %}
   shadow:snapdir = .zfs/snapshot
   shadow:sort = desc
   shadow:snapdirseverywhere = yes
   shadow:crossmountpoints = yes
{% for key, value in previous_versions.items() %}
   {{ key }} = {{ value }}
{% endfor %}
{% endif %}
{% if share.part.recycle %}
   recycle:repository = .recycle
   recycle:keeptree = yes
   recycle:versions = yes
   recycle:touch = yes
   recycle:directory_mode = 0770
{% endif %}
{% if share.part.time_machine %}
   fruit:time machine = yes
   fruit:time machine max size = {{ share.part.time_machine // 1048576 }}M
{% endif %}
{% if share.over_afp %}
   # netatalk serves this folder too: what Macs attach to files has to lie where it looks for it (vfs_fruit(8), afp.conf(5)).
   fruit:metadata = netatalk
   fruit:resource = file
   fruit:locking = netatalk
   fruit:encoding = native
   streams_xattr:prefix = user.
   streams_xattr:store_stream_type = no
{% endif %}
   # Without its file system there is only an empty folder of the system disk here: then refuse.
   preexec = /usr/bin/mountpoint -q "{{ share.path }}"
   preexec close = yes
{% endfor %}
"""
)


def over_afp(dataset: Dataset) -> bool:
    """Whether the same folder is asked for over AFP too."""
    setting = setting_of(dataset)
    return bool(setting and setting.afp)


def for_macs(dataset: Dataset, part: Smb) -> bool:
    return part.mac or bool(part.time_machine) or over_afp(dataset)


def vfs_modules(part: Smb, *, mac: bool) -> tuple[str, ...]:
    """The stack of one share, from the outside in: a bin sees names as clients do, and
    Macs' modules are above the disk.

    ``mac``: whether any share is for Macs. vfs_fruit(8): all shares have to have it then, or a Mac that mounts two of
    them misunderstands one; testparm warns of that.
    """
    outer = (*(("shadow_copy2",) if part.previous else ()), *(("recycle",) if part.recycle else ()))
    return (*outer, *(STACK if mac else tuple(one for one in STACK if one != "fruit")))


def one_space_each(text: str) -> bool:
    """Whether Samba reads it as it is: of several spaces in a row it takes one (4.22), and
    would serve another folder."""
    return "  " not in text


def samba_shares(facts: Facts) -> Iterator[tuple[Dataset, Smb]]:
    for dataset, part in wanted_shares(facts, "smb"):
        if isinstance(part, Smb) and one_space_each(dataset.mountpoint):
            yield dataset, part


def render_config(facts: Facts) -> str:
    """The text of Samba's include file for these datasets and the people who exist."""
    shares = []
    every = [part for _dataset, part in samba_shares(facts)]
    mac = any(for_macs(dataset, part) for dataset, part in samba_shares(facts))
    for dataset, part in samba_shares(facts):
        write = [one for one in part.write if facts.lets_in(one)]
        read = [one for one in part.read if facts.lets_in(one)]
        shares.append(
            {
                "name": part.name,
                "path": dataset.mountpoint,
                "part": part,
                "write": write,
                "read": read,
                "let_in": [*write, *read] or [NOBODY],
                "modules": vfs_modules(part, mac=mac),
                "over_afp": over_afp(dataset),
            }
        )
    stack = STACK if mac or not every else tuple(one for one in STACK if one != "fruit")
    return TEMPLATE.render(
        shares=shares,
        people=PEOPLE,
        stack=stack,
        mac="fruit" in stack,
        guests=any(one.guest != "no" for one in every),
        policy=facts.smb_policy,
        unasked=samba_defaults.unasked_sections(),
        previous_versions=PREVIOUS_VERSIONS,
    )


def check_with_samba(path: Path) -> None:
    """Ask Samba whether it would take this file. Raises Failed with Samba's own words."""
    result = command.run(["testparm", "-s", "--suppress-prompt", str(path)], timeout=60, accept=range(256))
    if result.status or "Unknown parameter" in result.stderr or "Ignoring" in result.stderr:
        raise Failed(Message("Samba does not accept the new settings"), result.stderr)


def switched_off(name: str, values: Mapping[str, str]) -> bool:
    """Whether a section of Larder's file is no share: the settings for all, and Debian's own that it switches off."""
    return name.lower() == "global" or (name.lower() in DEBIANS_OWN and values.get("available") == "no")


def parse_sections(text: str) -> dict[str, str]:
    """The paths of the shares in a text of Samba's form, by name; ``global`` is none.
    Empty where it is no such text."""
    parser = settings_of(text)
    if parser is None:
        return {}
    return {
        name: parser.get(name, "path", fallback="")
        for name in parser.sections()
        if not switched_off(name, parser[name])
    }


def policy_in(path: Path) -> SmbPolicy | None:
    """How Larder's own file protects SMB; None where it says nothing that Larder could have written."""
    parser = settings_of(path.read_text(encoding="utf-8", errors="replace")) if path.exists() else None
    if parser is None or not parser.has_section("global"):
        return None
    signing = "required" if parser.get("global", "server signing", fallback="") == "mandatory" else "asked"
    encryption = parser.get("global", "server smb encrypt", fallback="asked")
    try:
        return msgspec.convert({"signing": signing, "encryption": encryption}, SmbPolicy)
    except msgspec.ValidationError:
        return None


class SmbServing(msgspec.Struct, frozen=True):
    """Samba, as ``publish.Serving`` describes a protocol."""

    owned: OwnedFile
    name: Protocol = "smb"
    units: tuple[str, ...] = ("smbd.service", NMBD)

    def shares(self, facts: Facts) -> tuple[Share, ...]:
        return tuple(Share("smb", part.name, dataset.mountpoint) for dataset, part in samba_shares(facts))

    def render(self, facts: Facts) -> str:
        return render_config(facts)

    def against(self, dataset: Dataset, part: Part, facts: Facts) -> Iterator[Reason]:
        if isinstance(part, Smb) and part.guest == "no" and not (*part.write, *part.read):
            yield Reason("share-without-users", "Choose at least one user who may use the folder.", field="people")
        if not one_space_each(dataset.mountpoint):
            yield Reason(
                "mountpoint-with-two-spaces",
                "Samba cannot serve {path}, because it has two spaces in a row. Rename the folder, or share "
                "it over NFS.",
                path=dataset.mountpoint,
            )
        if isinstance(part, Smb) and part.guest != "no" and facts.smb_policy.encryption == "required":
            yield Reason(
                "guest-not-encrypted",
                "On this box every connection must be encrypted, and one without a password cannot be.",
                field="guest",
            )

    def warnings(self, part: Part) -> Iterator[str]:
        if isinstance(part, Smb) and part.guest != "no":
            yield Message(
                "Everybody in your network may {what} it, without a password.",
                what=Message("read") if part.guest == "read" else Message("change and delete"),
            )

    def why_not(self, paths: Collection[str] | None = None) -> str:
        return ""

    def take_up(self, shares: tuple[Share, ...]) -> None:
        # Where somebody has made shares in smb.conf itself, Samba is not Larder's to stop.
        if not shares and not set(effective_shares()) - DEBIANS_OWN:
            command.run(["systemctl", "disable", "--now", *self.units], timeout=120)
        elif shares and (stopped := [unit for unit in self.units if not is_running(unit)]):
            command.run(["systemctl", "enable", *stopped], timeout=120)
            command.run(["systemctl", "start", self.units[0]], timeout=120)
            # Without a network nmbd waits for one, and smbd for nmbd where both are begun: no share needs it.
            command.run(["systemctl", "start", "--no-block", NMBD], timeout=60, accept=range(256))
        command.run(["smbcontrol", "all", "reload-config"], timeout=60, accept=range(256))

    def served(self) -> frozenset[tuple[str, str]]:
        """What the running daemon knows when asked for it, hidden shares too; the paths are those of all of
        Samba's settings together."""
        if not is_running(self.units[0]):
            return frozenset()
        effective = effective_shares()
        return frozenset((name, effective[name]) for name in known_shares(effective))

    def close(self, gone: Iterable[Share]) -> None:
        for share in gone:
            command.run(["smbcontrol", "smbd", "close-share", share.name], timeout=60, accept=range(256))

    def configured(self) -> tuple[Share, ...]:
        try:
            text = self.owned.path.read_text()
        except (OSError, UnicodeDecodeError):
            return ()
        return tuple(Share("smb", name, path) for name, path in parse_sections(text).items())


SERVING = SmbServing(OwnedFile(CONFIG, check_with_samba))


def is_running(unit: str) -> bool:
    return command.run(["systemctl", "is-active", unit], accept=range(256)).stdout.strip() == "active"


def effective_shares() -> dict[str, str]:
    """The paths of all of Samba's shares, also those that are not Larder's, as Samba itself reads its settings."""
    return parse_sections(command.run(["testparm", "-s", "--suppress-prompt"], timeout=60).stdout)


def known_shares(names: Iterable[str]) -> frozenset[str]:
    """Which of these shares the running Samba knows: to one who gives no name it refuses a share, or opens it to
    guests, and says of no other that there is such a name.

    One process and one connection ask for all. A list of the shares (``smbclient -L``) would need Samba's helpers for
    remote procedure calls, which take 15 times as long at their first call after a start, and 40 MiB (4.22).
    """
    asked = [name for name in names if not set(name) & CUTS_A_COMMAND]
    if not asked:
        return frozenset()
    commands = "; ".join(f'tcon "{name}"' for name in asked)
    result = command.run(["smbclient", "//localhost/IPC$", "-N", "-c", commands], timeout=60, accept=range(256))
    answers = [line for line in result.stdout.splitlines() if line.startswith("tcon ")]
    if len(answers) != len(asked):  # it has stopped, or lets nobody ask
        return frozenset()
    return frozenset(name for name, said in zip(asked, answers, strict=True) if any(sign in said for sign in IS_THERE))
