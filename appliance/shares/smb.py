"""SMB shares through Samba: what a dataset asks for in ``larder:share``, written to Samba's own include file.

The setting belongs to the dataset and travels with it; the file is rendered from all datasets each time. A share is
on when Samba has been asked and lists it.
"""

from __future__ import annotations

import configparser
import json
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import jinja2
import msgspec

from appliance import command, names
from appliance.errors import Failed, Reason, Refused
from appliance.facts import Dataset, Facts, Share
from appliance.operation import Operation, Plan, Step, Work, command_step
from appliance.shares import agreed
from appliance.shares.accounts import PEOPLE
from appliance.shares.owned_file import OwnedFile
from appliance.zfs import status

CONFIG = Path("/etc/samba/larder.conf")
PROPERTY = "larder:share"
SECONDS_TO_TAKE_UP = 30
# The module stack is loaded globally and repeated wherever a share names modules: a share's list replaces the global.
TEMPLATE = jinja2.Environment(
    undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True, autoescape=False
).from_string(  # not HTML; every value is of a strict grammar
    """\
[global]
   server min protocol = SMB2_10
   vfs objects = catia fruit streams_xattr
   fruit:metadata = stream
   fruit:model = RackMac
   unix password sync = no
{% for share in shares %}

[{{ share.name }}]
   path = {{ share.path }}
   read only = no
   browseable = yes
   guest ok = no
   valid users = {{ share.users | join(" ") }}
   force group = {{ people }}
   create mask = 0660
   directory mask = 2770
   # Without its file system there is only an empty folder of the system disk here: then refuse.
   preexec = /usr/bin/mountpoint -q "{{ share.path }}"
   preexec close = yes
{% endfor %}
"""
)


class ShareSetting(msgspec.Struct, frozen=True, kw_only=True):
    """What ``larder:share`` says. It comes with disks from anywhere, so decoding validates it."""

    smb: bool = False
    name: str = ""
    users: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.smb:
            names.share(self.name)
            for user in self.users:
                names.account(user, field="users")


def setting_of(dataset: Dataset) -> ShareSetting | None:
    """The dataset's own setting; None where it has none or where it is not one that Larder could have written."""
    if not dataset.share or dataset.share_source != "local":
        return None
    try:
        return msgspec.json.decode(dataset.share, type=ShareSetting)
    except (msgspec.MsgspecError, Refused):
        return None


def servable(dataset: Dataset) -> bool:
    """Whether it is mounted where Samba's file can name the place: a mountpoint comes with disks from anywhere."""
    try:
        names.served_path(dataset.mountpoint)
    except Refused:
        return False
    return dataset.can_mount


def shared(datasets: Iterable[Dataset]) -> Iterator[tuple[Dataset, ShareSetting]]:
    """The datasets that are to be served over SMB, with their settings; the first of a name wins."""
    taken: set[str] = set()
    for dataset in datasets:
        setting = setting_of(dataset)
        if setting and setting.smb and servable(dataset) and setting.name.lower() not in taken:
            taken.add(setting.name.lower())
            yield dataset, setting


def render(datasets: Iterable[Dataset], accounts: Iterable[str]) -> str:
    """The text of Samba's include file for these datasets and the accounts that exist."""
    known = set(accounts)
    shares = [
        {
            "name": setting.name,
            "path": dataset.mountpoint,
            "users": [user for user in setting.users if user in known] or ["larder-nobody"],
        }
        for dataset, setting in shared(datasets)
    ]
    return TEMPLATE.render(shares=shares, people=PEOPLE)


def check_with_samba(path: Path) -> None:
    """Ask Samba whether it would take this file. Raises Failed with Samba's own words."""
    result = command.run(["testparm", "-s", "--suppress-prompt", str(path)], timeout=60, accept=range(256))
    if result.status or "Unknown parameter" in result.stderr or "Ignoring" in result.stderr:
        raise Failed("Samba does not accept the new settings", result.stderr)


OWNED = OwnedFile(CONFIG, check_with_samba)


def served() -> set[str]:
    """The names of shares that the running Samba lists to a client on this box. Raises Failed."""
    result = command.run(["smbclient", "-g", "-N", "-L", "localhost"], timeout=60)
    return {line.split("|")[1] for line in result.stdout.splitlines() if line.startswith("Disk|")}


def listed_in_time(name: str) -> bool:
    """Whether Samba lists the share; it takes a moment to take up new settings."""
    until = time.monotonic() + SECONDS_TO_TAKE_UP
    while name not in served():
        if time.monotonic() > until:
            return False
        time.sleep(0.5)
    return True


def configured() -> tuple[Share, ...]:
    """The shares of Larder's own file as it stands, for the inventory; none where there is no file."""
    parser = configparser.ConfigParser(interpolation=None, delimiters=("=",), strict=False)
    try:
        parser.read_string(CONFIG.read_text())
    except (OSError, UnicodeDecodeError, configparser.Error):
        return ()
    return tuple(Share(name, parser.get(name, "path", fallback="")) for name in parser.sections() if name != "global")


class SetShare(Operation, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Switch SMB on or off for one dataset, and say who may use it."""

    dataset: str
    smb: bool
    name: str = ""
    users: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        names.existing_dataset(self.dataset)
        if self.smb or self.name:
            names.share(self.name, field="name")
        for user in self.users:
            names.account(user, field="users")

    @property
    def title(self) -> str:
        return f"Share {self.dataset} over SMB" if self.smb else f"Stop sharing {self.dataset} over SMB"

    @property
    def subject(self) -> str:
        return self.dataset

    def locks(self) -> tuple[str, ...]:
        return (self.dataset.split("/", 1)[0], "samba")

    @property
    def setting(self) -> str:
        return json.dumps({"smb": True, "name": self.name, "users": list(self.users)} if self.smb else {"smb": False})

    def check(self, facts: Facts) -> Iterator[Reason]:
        dataset = facts.dataset(self.dataset)
        if dataset is None:
            yield Reason(f"The folder {self.dataset} is no longer there.")
            return
        if not self.smb:
            return
        if not dataset.can_mount:
            yield Reason(f"{self.dataset} is not a folder that can be shared.")
        elif not servable(dataset):
            yield Reason(
                f"Samba cannot serve the place where {self.dataset} is mounted. Give it one such as /tank/photos."
            )
        if dataset.locked or not dataset.mounted:
            yield Reason(
                f"{self.dataset} is {'locked' if dataset.locked else 'not mounted'}. Make it available first, then share it."
            )
        if not self.users:
            yield Reason("Choose at least one account that may use the folder.", "users")
        for user in self.users:
            if not facts.account(user):
                yield Reason(f"There is no account {user}.", "users")
        for other, setting in shared(facts.datasets):
            if other.name != self.dataset and setting.name.lower() == self.name.lower():
                yield Reason(f"The share name {self.name} is used for {other.name}. Choose another.", "name")

    def plan(self, facts: Facts) -> Plan:
        dataset = facts.dataset(self.dataset)
        return Plan(
            summary=f"{', '.join(self.users)} can read and change {self.dataset} as \\\\larder\\{self.name}."
            if self.smb
            else f"{self.dataset} is no longer reachable over SMB. Its files stay.",
            steps=(
                command_step(
                    "property",
                    "Keep the setting with the folder",
                    ["zfs", "set", f"{PROPERTY}={self.setting}", self.dataset],
                ),
                Step(
                    "config", "Tell Samba", f"write {CONFIG}, checked with testparm", self.write_config, (str(CONFIG),)
                ),
                Step(
                    "serve",
                    "See that Samba serves it",
                    "smbcontrol all reload-config; smbclient -L localhost",
                    self.serve,
                ),
            ),
            identity={"operation": msgspec.to_builtins(self), "dataset": dataset.guid if dataset else 0},
            undo="Switch it back at any time.",
        )

    @staticmethod
    def current() -> str:
        from appliance.shares import accounts

        wanted = agreed.read()
        datasets = [dataset for dataset in status.read_datasets() if dataset.guid in wanted]
        return render(datasets, [account.name for account in accounts.read()])

    def write_config(self, work: Work) -> None:
        dataset = next(dataset for dataset in status.read_datasets() if dataset.name == self.dataset)
        agreed.say(dataset.guid, share=self.smb)
        OWNED.write(self.current())

    def serve(self, work: Work) -> None:
        if command.run(["systemctl", "is-active", "smbd.service"], accept=range(256)).stdout.strip() != "active":
            command.run(["systemctl", "enable", "--now", "smbd.service"], timeout=120)
        command.run(["smbcontrol", "all", "reload-config"], timeout=60)
        if self.smb and not listed_in_time(self.name):
            OWNED.roll_back()
            command.run(["zfs", "inherit", PROPERTY, self.dataset], timeout=60)
            command.run(["smbcontrol", "all", "reload-config"], timeout=60)
            raise Failed(f"Samba took the settings but does not list {self.name}; they were taken back")
        for gone in self.closed():
            command.run(["smbcontrol", "smbd", "close-share", gone], timeout=60)
        work.note(f"Samba {'lists' if self.smb else 'no longer lists'} the share")

    def closed(self) -> list[str]:
        """Names of shares that clients may still hold open though the file no longer has them."""
        result = command.run(["smbstatus", "--shares", "--json"], timeout=60, accept=range(256))
        try:
            connections = json.loads(result.stdout).get("tcons", {})
        except ValueError:
            return []
        return sorted({entry["service"] for entry in connections.values()} - served() - {"IPC$"})

    def happened(self, step: str, facts: Facts) -> bool:
        dataset = facts.dataset(self.dataset)
        kept = dataset is not None and dataset.share == self.setting
        if step == "property":
            return kept
        return (
            kept
            and not OWNED.drifted()
            and OWNED.path.exists()
            and OWNED.path.read_text().partition("\n")[2] == self.current()
        )

    def way_on(self, step: str, facts: Facts) -> str:
        return "The switch shows what is really served. Move it again if it is not as you want it."
