"""The switches of a folder: one for each protocol, with what it asks for, what is served and what is under way."""

from __future__ import annotations

import re

import msgspec
from django.utils.translation import gettext

from appliance import names
from appliance.datasets.access_note import valid_note
from appliance.errors import Reason, Refused
from appliance.facts.box import Facts
from appliance.facts.datasets import Dataset
from appliance.shares.addresses import AddressWay
from appliance.shares.publish import SERVING
from appliance.shares.settings import MOST_PEOPLE, Afp, Part, Protocol, ShareSetting, Smb, setting_of
from web.addresses import address
from web.inventory.fact_row import readable_facts
from web.inventory.models import AccountRow, ShareRow
from web.jobs.models import Job
from web.shares.box_address import BoxAddress
from web.translation import lazy_text, text_of

NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9_. -]")
SWITCHING = ("set-share", "share-folder")  # the kinds of jobs that turn a switch on or off
TURNING = (*SWITCHING, "republish-share")  # those whose bad end its switch tells
MOST_FAILED = 100
# The page behind each switch.
DETAILS: dict[Protocol, str] = {"smb": "share_folder", "nfs": "share_nfs", "afp": "share_afp"}
WORDS: dict[Protocol, str] = {
    "smb": lazy_text("Windows and Mac (SMB)"),
    "nfs": lazy_text("Linux (NFS)"),
    "afp": lazy_text("Older Macs (AFP)"),
}


class Switch(msgspec.Struct, frozen=True):
    """A protocol of a folder. ``part`` is what the folder asks for, ``served`` whether its daemon's file names it."""

    protocol: Protocol
    key: str
    dataset: Dataset
    part: Part | None
    job: Job | None
    served: bool
    users: bool = True  # whether this box has any
    box: BoxAddress | None = None  # where the page shows addresses
    failed: Job | None = None  # the last that was to turn it, unless it ended well or somebody has seen how it ended

    @property
    def words(self) -> str:
        return WORDS[self.protocol]

    @property
    def id(self) -> str:
        """The id, on a page, of what turns the switch or shows it turning."""
        return f"{self.protocol}-{self.key}"

    @property
    def details(self) -> str:
        return address(DETAILS[self.protocol], self.key)

    @property
    def details_words(self) -> str:
        """The label of the link to the page behind the switch."""
        if self.protocol == "nfs":
            change, choose = (
                gettext("Change which computers may mount it"),
                gettext("Choose which computers may mount it"),
            )
        else:
            change, choose = gettext("Change who may use this share"), gettext("Choose who may use this share")
        return change if self.part else choose

    @property
    def asks_first(self) -> bool:
        """Whether it cannot be turned on before something was answered:
        NFS has no people, so its clients are asked for."""
        return self.protocol == "nfs" and self.part is None

    @property
    def needs_user(self) -> bool:
        """Whether it cannot be turned on before there is a user, who can be added in the form that shares a folder."""
        return self.protocol != "nfs" and self.part is None and not self.users

    @property
    def first_link(self) -> str:
        """The page to answer first; empty where one click turns it on."""
        if self.needs_user:
            return new_share_link(self.key)
        return self.details if self.asks_first else ""

    @property
    def turning(self) -> str:
        """``on`` or ``off`` while a job is turning it, else empty."""
        if self.job is None:
            return ""
        return "on" if f'"{self.protocol}":{{' in self.job.operation else "off"

    @property
    def failure(self) -> str:
        """How the last change ended and why; empty unless it ended badly and nothing is under way."""
        if self.failed is None or self.job:
            return ""
        said = {
            Job.State.REFUSED: gettext("The last change was refused. {reason}"),
            Job.State.INTERRUPTED: gettext("The last change was interrupted. {reason}"),
        }.get(Job.State(self.failed.state), gettext("The last change failed. {reason}"))
        return said.format(reason=text_of(self.failed.text))

    @property
    def name(self) -> str:
        return str(getattr(self.part, "name", ""))

    @property
    def ways(self) -> tuple[AddressWay, ...]:
        """How other computers reach the folder over this protocol; none where it is not served."""
        setting = setting_of(self.dataset)
        if not (self.box and self.served and setting):
            return ()
        return self.box.ways(setting, self.protocol, self.dataset.mountpoint)


class SwitchesState(msgspec.Struct, frozen=True):
    """What all switches of a page are drawn from; three queries, however many folders. ``box``: for their
    addresses. ``failed``: the jobs whose bad end nobody has seen, where the page asks for them: one query
    more, two if there are any."""

    jobs: dict[tuple[str, str], Job]
    served: frozenset[tuple[str, str, str]]
    users: bool
    failed: dict[tuple[str, str], Job]
    box: BoxAddress | None = None

    @classmethod
    def read(cls, box: BoxAddress | None = None, *, failures: bool = False) -> SwitchesState:
        found = Job.objects.filter(state__in=Job.OPEN, kind__in=SWITCHING).defer("plan", "log")
        jobs: dict[tuple[str, str], Job] = {
            (job.subject, protocol): job for job in found for protocol in SERVING if is_about(job, protocol)
        }
        rows = readable_facts(ShareRow.objects.all())
        served = frozenset((share.protocol, share.name.lower(), share.path) for share in rows)
        return cls(jobs, served, AccountRow.objects.exists(), read_failed() if failures else {}, box)

    def switches(self, key: str, dataset: Dataset) -> tuple[Switch, ...]:
        setting = setting_of(dataset) or ShareSetting()
        made = []
        for protocol in SERVING:
            part = setting.part(protocol)
            name = getattr(part, "name", dataset.mountpoint).lower()
            served = bool(part and dataset.mounted and (protocol, name, dataset.mountpoint) in self.served)
            job = self.jobs.get((dataset.name, protocol))
            failed = self.failed.get((dataset.name, protocol))
            made.append(Switch(protocol, key, dataset, part, job, served, self.users, self.box, failed))
        return tuple(made)


def new_share_link(key: str) -> str:
    """The form that shares this folder and can add users in place."""
    return f"{address('share_new_folder')}?folder={key}"


def is_about(job: Job, protocol: Protocol) -> bool:
    """Whether a job turns that switch: of one protocol, or of the form that shares a folder over several."""
    if job.kind == "share-folder":
        return job.fields.get(protocol) is not None
    return bool(job.fields.get("protocol") == protocol)


def read_failed() -> dict[tuple[str, str], Job]:
    """By dataset and protocol, the last job that was to turn a switch and ended badly; none that somebody has seen, or
    after which another did it."""
    found = Job.objects.filter(kind__in=TURNING).defer("plan", "log")
    failed = list(found.filter(acknowledged=None, state__in=Job.BAD_ENDS)[:MOST_FAILED])
    if not failed:
        return {}
    done = list(
        found.filter(state=Job.State.DONE, created__gt=failed[-1].created, subject__in={one.subject for one in failed})
    )
    last: dict[tuple[str, str], Job] = {}
    for job in sorted((*failed, *done), key=lambda one: one.created):
        last |= {(job.subject, protocol): job for protocol in SERVING if is_about(job, protocol)}
    return {switch: job for switch, job in last.items() if job.needs_attention}


def share_name(dataset: str) -> str:
    """A name for a share out of that of its folder."""
    name = " ".join(NOT_IN_A_NAME.sub("-", dataset.rsplit("/", 1)[-1]).split()).strip(" .-_")[:60]
    try:
        names.check_share_name(name)
    except Refused:
        name = "folder"
    return name


def all_users(facts: Facts) -> tuple[str, ...]:
    return tuple(account.name for account in facts.accounts)[:MOST_PEOPLE]


def proposed_smb(dataset: Dataset, facts: Facts) -> Smb:
    """SMB as a folder is usually shared: under its own name, for everybody who has an account."""
    return Smb(name=share_name(dataset.name), write=all_users(facts))


def proposed_afp(dataset: Dataset, facts: Facts) -> Afp:
    """AFP likewise; where SMB has said who, the same people."""
    smb = (setting_of(dataset) or ShareSetting()).smb
    return (
        Afp(name=smb.name, write=smb.write, read=smb.read)
        if smb
        else Afp(name=share_name(dataset.name), write=all_users(facts))
    )


def usual_client(dataset: Dataset, facts: Facts) -> str:
    """As whom everybody counts who mounts a new export: the first who may use the folder by name or as everybody."""
    said = valid_note(dataset, facts)
    able = [one for one in facts.accounts if not said or said.people.get(one.name, said.everybody) != "none"]
    return next((one.name for one in able), "")


def usual_part(protocol: Protocol, dataset: Dataset, facts: Facts) -> Part:
    """What a switch turns on at one click where the folder does not say otherwise.
    Raises Refused where there is no such."""
    if protocol == "nfs":
        raise Refused(Reason("nfs-clients-not-chosen", "Choose first which networks and computers may mount it."))
    return proposed_smb(dataset, facts) if protocol == "smb" else proposed_afp(dataset, facts)
