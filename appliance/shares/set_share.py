"""Set, change or stop one protocol's share of a dataset, with the same steps for SMB, NFS and AFP.

The setting is kept with the dataset, the protocol's file is rendered from all datasets, its daemon takes it up and is
asked what it serves. A switch is on only when that answer names the share; otherwise all of it is put back.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from appliance import command, names
from appliance.errors import Failed, LarderError, Reason, Refused
from appliance.facts import user_properties
from appliance.facts.box import Facts
from appliance.facts.datasets import Dataset
from appliance.formatting import list_with_and, size_text
from appliance.message import Message, message_template
from appliance.operation import Operation, Plan, Step, Work
from appliance.shares import approved, publish
from appliance.shares.settings import (
    PROTOCOLS,
    SPOKEN,
    Afp,
    Nfs,
    Part,
    Protocol,
    ShareSetting,
    Smb,
    is_servable,
    lays_open,
    setting_of,
    wanted_shares,
)
from appliance.zfs import status

SERVES = message_template("{protocol} serves {dataset}")
SERVES_NO_LONGER = message_template("{protocol} no longer serves {dataset}")


class SetShare(Operation, tag="set-share"):
    """What one protocol shall do for a dataset: the part of that name says how; without it the protocol is off."""

    dataset: str
    protocol: Protocol
    smb: Smb | None = None
    nfs: Nfs | None = None
    afp: Afp | None = None

    def needs_proof(self, facts: Facts, plan: Plan) -> bool:
        return lays_open(self.part)

    def __post_init__(self) -> None:
        names.existing_dataset(self.dataset)
        if any(found and kind != self.protocol for kind, found in self.parts):
            raise Refused(Reason("protocols-several", "Set one protocol at a time."))

    @classmethod
    def of(cls, dataset: str, protocol: Protocol, part: Part | None) -> SetShare:
        return cls(dataset=dataset, protocol=protocol, **({protocol: part} if part else {}))  # type: ignore[arg-type]

    @property
    def parts(self) -> tuple[tuple[str, Part | None], ...]:
        return (("smb", self.smb), ("nfs", self.nfs), ("afp", self.afp))

    @property
    def part(self) -> Part | None:
        return dict(self.parts)[self.protocol]

    @property
    def spoken(self) -> str:
        return SPOKEN[self.protocol]

    @property
    def title(self) -> str:
        return (
            Message("Share {dataset} over {spoken}", dataset=self.dataset, spoken=self.spoken)
            if self.part
            else Message("Stop sharing {dataset} over {spoken}", dataset=self.dataset, spoken=self.spoken)
        )

    @property
    def subject(self) -> str:
        return self.dataset

    def locks(self) -> tuple[str, ...]:
        return (self.dataset.split("/", 1)[0], "shares")

    def setting(self, dataset: Dataset | None) -> ShareSetting:
        """What the dataset will ask for, given what it asks for now."""
        now = setting_of(dataset) if dataset else None
        return (now or ShareSetting()).with_part(self.protocol, self.part)

    def check(self, facts: Facts) -> Iterator[Reason]:
        dataset, part = facts.dataset(self.dataset), self.part
        if dataset is None:
            yield Reason("folder-missing", "The folder {folder} is no longer there.", folder=self.dataset)
            return
        if self.protocol not in publish.SERVING:
            yield Reason("protocol-not-installed", "This box cannot share over {protocol}.", protocol=self.spoken)
            return
        if part is None:
            return
        if not dataset.can_mount:
            yield Reason("dataset-not-shareable", "{dataset} is not a folder that can be shared.", dataset=self.dataset)
        elif not is_servable(dataset):
            yield Reason(
                "mountpoint-not-shareable",
                "{dataset} is mounted at a place that cannot be shared. Give it one such as /tank/photos.",
                dataset=self.dataset,
            )
        if dataset.locked or not dataset.mounted:
            yield (
                Reason("dataset-locked", "{dataset} is locked. Unlock it first.", dataset=self.dataset)
                if dataset.locked
                else Reason("dataset-not-mounted", "{dataset} is not mounted. Mount it first.", dataset=self.dataset)
            )
        for who in (*part.write, *part.read) if not isinstance(part, Nfs) else ():
            if not facts.lets_in(who):
                yield (
                    Reason("group-missing", "There is no group {group}.", field="people", group=who.removeprefix("@"))
                    if who.startswith("@")
                    else Reason("user-missing", "There is no user {user}.", field="people", user=who)
                )
        name = getattr(part, "name", None)
        for other, taken in wanted_shares(facts, self.protocol):
            if name and other.name != self.dataset and getattr(taken, "name", "").lower() == name.lower():
                yield Reason(
                    "share-name-taken",
                    "The share name {name} is used for {dataset}. Choose another.",
                    field="name",
                    name=name,
                    dataset=other.name,
                )
        limit = getattr(part, "time_machine", 0)
        if limit and dataset.referenced > limit:
            yield Reason(
                "time-machine-limit-below-used",
                "{dataset} already holds more than that. Choose a larger limit.",
                field="time_machine",
                dataset=self.dataset,
            )
        yield from publish.SERVING[self.protocol].against(dataset, part, facts)

    def plan(self, facts: Facts) -> Plan:
        dataset, one = facts.dataset(self.dataset), publish.SERVING[self.protocol]
        unused = self.unused_parts(facts)
        # This process may not be able to read the approvals; of an approved folder something is served.
        assumed = None if unused else dataset
        keep = self.set_argv(dataset, self.setting(assumed))
        name = getattr(self.part, "name", "")
        return Plan(
            summary=Message(
                "{dataset} can be reached over {spoken}{what}.",
                dataset=self.dataset,
                spoken=self.spoken,
                what=Message(" as {name}", name=name) if name else "",
            )
            if self.part
            else Message(
                "{dataset} is no longer reachable over {spoken}. Its files stay.",
                dataset=self.dataset,
                spoken=self.spoken,
            ),
            steps=(
                Step(
                    "property",
                    Message("Keep the setting with the folder"),
                    shlex.join(keep),
                    self.keep,
                    (self.dataset,),
                ),
                Step(
                    "serve",
                    Message("Apply the {spoken} setting and check that it works", spoken=self.spoken),
                    Message(
                        "write {path}, checked by its own daemon\nreload {names}",
                        path=one.owned.path,
                        names=" ".join(one.units),
                    ),
                    lambda work: self.serve(work, dataset),
                    (str(one.owned.path),),
                ),
            ),
            identity={"operation": msgspec.to_builtins(self), "dataset": dataset.guid if dataset else 0},
            warnings=(*self.warnings(assumed), *unused_warnings(unused)),
            undo=Message("Switch it back at any time."),
        )

    def unused_parts(self, facts: Facts) -> list[str]:
        """The other protocols that the folder has settings for, where no protocol serves it."""
        dataset = facts.dataset(self.dataset)
        setting = setting_of(dataset) if dataset else None
        if dataset is None or setting is None:
            return []
        source = facts.dataset(dataset.share_from) if dataset.share_source == "inherited" else dataset
        if source and any(share.path == source.mountpoint for share in facts.shares):
            return []
        return [SPOKEN[one] for one in PROTOCOLS if one != self.protocol and setting.part(one)]

    def warnings(self, dataset: Dataset | None) -> Iterator[str]:
        if self.part:
            yield from publish.SERVING[self.protocol].warnings(self.part)
        setting = self.setting(dataset)
        if dataset and setting.limit != time_machine_limit(dataset) and setting.limit and has_limit_of_owner(dataset):
            yield Message(
                "The folder keeps its own limit of {limit}, whatever Time Machine may use.",
                limit=size_text(own_limit(dataset)),
            )
        if self.protocol in {"smb", "afp"} and self.part and setting.smb and setting.afp:
            yield Message(
                "What Macs attach to files (tags, colours) is kept in another way while a folder is shared "
                "over both SMB and AFP. What was attached before over SMB alone is not seen meanwhile; the "
                "files themselves are."
            )

    def served_with(self, dataset: Dataset) -> list[Protocol]:
        """The protocols whose files this changes: Samba has to keep what Macs attach where netatalk looks for it."""
        setting = setting_of(dataset)
        also: list[Protocol] = ["smb"] if self.protocol == "afp" and setting and setting.smb else []
        return [*also, self.protocol]

    def find_in(self, datasets: Iterable[Dataset]) -> Dataset:
        """The dataset among those that are here at this moment. Raises Refused where it is gone."""
        for dataset in datasets:
            if dataset.name == self.dataset:
                return dataset
        raise Refused(Reason("folder-missing", "The folder {folder} is no longer there.", folder=self.dataset))

    def keep(self, _work: Work) -> None:
        one = publish.SERVING[self.protocol]
        one.owned.refuse_drift()
        datasets = status.read_datasets()
        command.run(self.set_argv(self.find_in(datasets), self.agreed_setting(datasets)), timeout=60)

    def set_argv(self, before: Dataset | None, setting: ShareSetting) -> list[str]:
        """The command that stores a setting with the folder, with the limit that belongs to it."""
        limit = limit_arguments(before, setting) if before else []
        return ["zfs", "set", *limit, f"{user_properties.SHARE}={setting.text()}", self.dataset]

    def agreed_setting(self, datasets: Iterable[Dataset]) -> ShareSetting:
        """What the dataset will ask for, given all that are here. The parts that came with the disks are left out
        unless somebody approved them here: the approval is for the whole setting."""
        agreed = publish.only_agreed(Facts(datasets=tuple(datasets)), approved.read_approved())
        return self.setting(agreed.dataset(self.dataset))

    def serve(self, work: Work, before: Dataset | None) -> None:
        dataset, was_agreed = self.find_in(status.read_datasets()), approved.read_approved()
        approved.set_approved(dataset.guid, share=bool((found := setting_of(dataset)) and found.anything))
        try:
            facts = publish.agreed_facts()
            publish.publish_shares(facts, self.served_with(dataset), changed=self.places(facts), note=work.note)
        except LarderError:
            approved.set_approved(dataset.guid, share=dataset.guid in was_agreed)
            self.put_back(before)
            raise
        said = SERVES if self.part else SERVES_NO_LONGER
        work.note(Message(said, protocol=self.spoken, dataset=self.dataset))

    def places(self, facts: Facts) -> set[str]:
        """Where this folder is mounted, and those below that take their setting from it."""
        return {one.mountpoint for one in facts.datasets if self.dataset in {one.name, one.share_from}}

    def put_back(self, before: Dataset | None) -> None:
        """The property as it was before, and the folder's own limit where Time Machine may have changed it."""
        if before and before.share_source == "local":
            argv = ["zfs", "set", f"{user_properties.SHARE}={before.share}", self.dataset]
        else:
            received = ["-S"] if before and before.share_source == "received" else []
            argv = ["zfs", "inherit", *received, user_properties.SHARE, self.dataset]
        command.run(argv, timeout=60, accept=range(256))
        if before and (time_machine_limit(before) or self.setting(before).limit):
            argv = ["zfs", "set", f"refquota={own_limit(before) or 'none'}", self.dataset]
            command.run(argv, timeout=60, accept=range(256))

    def probe(self, step: str, facts: Facts) -> bool:
        dataset = facts.dataset(self.dataset)
        found = setting_of(dataset) if dataset else None
        kept = dataset is not None and (found.part(self.protocol) if found else None) == self.part
        if step == "property" or not kept:
            return kept
        one = publish.SERVING[self.protocol]
        try:
            wanted = publish.agreed_facts()
            served = {share for share in one.shares(wanted) if dataset and share.path == dataset.mountpoint}
            answered = one.served() if served else frozenset()
        except Failed:
            return False
        return (
            bool(served) == bool(self.part)
            and all((share.name, share.path) in answered for share in served)
            and one.owned.says(one.render(wanted))
        )

    def recovery_hint(self, step: str, facts: Facts) -> str:
        return Message("The switch shows what is really served. Move it again if it is not as you want it.")


def own_limit(dataset: Dataset) -> int:
    """What the folder's files may take up, in bytes (refquota); 0: there is no limit."""
    found = dataset.properties.get("refquota")
    return int(found.value) if found and found.value.isdecimal() else 0


def time_machine_limit(dataset: Dataset) -> int:
    """What Time Machine may fill of the folder as it is set now, in bytes; 0: it is not for Time Machine."""
    setting = setting_of(dataset)
    return setting.limit if setting else 0


def has_limit_of_owner(dataset: Dataset) -> bool:
    """Whether somebody has set the folder's limit himself: it is not the one that was set with Time Machine."""
    return own_limit(dataset) not in {0, time_machine_limit(dataset)}


def limit_arguments(dataset: Dataset, setting: ShareSetting) -> list[str]:
    """What ``zfs set`` is given so that Time Machine's limit is the file system's too: a Mac that miscounts must not
    fill the pool. It changes with Time Machine alone and goes with it; one that the owner has set stays, as it
    guards the pool just as well."""
    before = time_machine_limit(dataset)
    # A limit does not come along with a folder that was received.
    changes = setting.limit != before or (setting.limit and dataset.share_source == "received")
    if not changes or has_limit_of_owner(dataset) or setting.limit == own_limit(dataset):
        return []
    return [f"refquota={setting.limit or 'none'}"]


def unused_warnings(protocols: Sequence[str]) -> Iterator[str]:
    if protocols:
        yield Message(
            "The folder also has settings for {protocols} that are not in use. If they were never approved "
            "on this box, they are removed.",
            protocols=list_with_and(protocols),
        )
