"""Approve the shares that came with a pool from another box, all at once."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Collection, Iterator

import msgspec
from msgspec.structs import replace

from appliance import names
from appliance.errors import Failed, LarderError, Reason
from appliance.facts.box import Facts
from appliance.facts.datasets import Dataset
from appliance.facts.pool_reasons import missing_pool
from appliance.message import Message, join_messages
from appliance.operation import Operation, Plan, Step, Work
from appliance.shares import approved, publish
from appliance.shares.iscsi import configfs, serve
from appliance.shares.iscsi.part import device_of, place_of
from appliance.shares.iscsi.targets import wanted_volumes
from appliance.shares.settings import (
    CALLED,
    ISCSI,
    PROTOCOLS,
    ShareSetting,
    Smb,
    describe_parts,
    is_servable,
    lays_open,
    setting_of,
    wanted_shares,
)
from appliance.zfs import status, volmode

Offer = tuple[Dataset, ShareSetting]


def summary_text(count: int, pool: str) -> str:
    if count == 1:
        return Message("1 folder of {pool} can be reached from other computers again.", pool=pool)
    return Message("{count} folders of {pool} can be reached from other computers again.", count=count, pool=pool)


def offered_shares(facts: Facts, pool: str) -> list[Offer]:
    """The folders of a pool that ask for a share which nobody serves and that could be served now.
    One that inherits its setting comes along with the one it has it from."""
    served = {(share.protocol, share.path) for share in facts.shares}
    asking = [(dataset, setting_of(dataset)) for dataset in facts.datasets if dataset.pool == pool]
    return [(dataset, setting) for dataset, setting in asking if setting and is_offered(dataset, setting, served)]


def is_offered(dataset: Dataset, setting: ShareSetting, served: Collection[tuple[str, str]]) -> bool:
    """Whether a folder or volume has a setting of its own that could be served now, and is not over each of its
    protocols. ``served`` are protocols and places of the shares that there are."""
    if dataset.share_source == "inherited":
        return False
    if dataset.kind == "volume":
        # The secrets of CHAP do not travel with the disks: such a volume is switched on again on its own page.
        ready = setting.iscsi is not None and not setting.iscsi.user and not dataset.locked
        return ready and (ISCSI, device_of(dataset.name)) not in served
    asked = [one for one in publish.SERVING if setting.part(one)]
    return dataset.mounted and is_servable(dataset) and any((one, dataset.mountpoint) not in served for one in asked)


def missing_users(setting: ShareSetting, facts: Facts) -> set[str]:
    """The users and groups of a setting that do not exist on this box."""
    return {who for who in setting.people if not facts.lets_in(who)}


def written_by(protocol: str) -> str:
    """What serving a protocol writes, for a step of a plan."""
    return f"write {configfs.ROOT if protocol == ISCSI else publish.SERVING[protocol].owned.path}"  # type: ignore[index]


class ApproveShares(Operation, tag="approve-shares"):
    """Agree to every share that a pool carries. ``guid`` is the pool's."""

    pool: str
    guid: int

    def needs_proof(self, facts: Facts, plan: Plan) -> bool:
        offers = offered_shares(facts, self.pool)
        return any(lays_open(part) for _dataset, setting in offers for part in (setting.nfs, setting.iscsi))

    def __post_init__(self) -> None:
        names.existing_pool(self.pool)

    @property
    def title(self) -> str:
        return Message("Switch on the shares that {pool} brought along", pool=self.pool)

    @property
    def subject(self) -> str:
        return self.pool

    def locks(self) -> tuple[str, ...]:
        return (self.pool, "shares")

    def check(self, facts: Facts) -> Iterator[Reason]:
        pool = facts.pool(self.pool)
        if pool is None or pool.guid != self.guid:
            yield missing_pool(self.pool)
            return
        offers = offered_shares(facts, self.pool)
        if not offers:
            yield Reason("shares-all-on", "Every share that {pool} brings is on already.", pool=self.pool)
        mine = {dataset.guid for dataset, _setting in offers}
        others = replace(facts, datasets=tuple(one for one in facts.datasets if one.guid not in mine))
        taken = {
            (str(protocol), getattr(part, "name", "").lower()): other.name
            for protocol in PROTOCOLS
            for other, part in wanted_shares(others, protocol)
        }
        taken |= {(ISCSI, part.name): other.name for other, part in wanted_volumes(others)}
        for dataset, setting in offers:
            for protocol in CALLED:
                name = getattr(getattr(setting, protocol), "name", "")
                if not name:
                    continue
                if other := taken.get((protocol, name.lower())):
                    yield Reason(
                        "share-names-collide",
                        "{dataset} asks for the share name {name}, which {other} already uses. Share it by "
                        "itself, under another name.",
                        dataset=dataset.name,
                        name=name,
                        other=other,
                    )
                taken[(protocol, name.lower())] = dataset.name

    def plan(self, facts: Facts) -> Plan:
        offers = offered_shares(facts, self.pool)
        said = {dataset.name: join_messages(list(describe_parts(setting)), "; ") for dataset, setting in offers}
        unknown = sorted({who for _dataset, setting in offers for who in missing_users(setting, facts)})
        guests = [d.name for d, setting in offers if isinstance(setting.smb, Smb) and setting.smb.guest != "no"]
        warnings = []
        if unknown:
            warnings.append(
                Message(
                    "This box has no {unknown}. They are let in as soon as a user or group of that name is created.",
                    unknown=", ".join(unknown),
                )
            )
        if guests:
            warnings.append(
                Message("Everybody in your network reaches {guests}, without a password.", guests=", ".join(guests))
            )
        open_disks = [d.name for d, setting in offers if d.kind == "volume" and lays_open(setting.iscsi)]
        if open_disks:
            warnings.append(
                Message(
                    "Every computer in your network can read, change and erase {open_disks}, without a secret.",
                    open_disks=", ".join(open_disks),
                )
            )
        volumes = [dataset.name for dataset, _setting in offers if dataset.kind == "volume"]
        if volumes:
            warnings.append(
                Message(
                    "This box no longer shows the partitions on {volumes} (volmode=dev), not even after you "
                    "stop sharing.",
                    volumes=", ".join(volumes),
                )
            )
        protocols = [one for one in CALLED if any(getattr(setting, one) for _dataset, setting in offers)]
        return Plan(
            summary=summary_text(len(offers), self.pool),
            steps=(
                Step(
                    "serve",
                    Message("Serve them and check that it works"),
                    "\n".join([*(shlex.join(volmode.mode_argv(one)) for one in volumes), *map(written_by, protocols)]),
                    lambda work: self.serve(work, offers, protocols),
                    tuple(said),
                ),
            ),
            identity={
                "operation": msgspec.to_builtins(self),
                "shares": sorted((dataset.guid, setting.text()) for dataset, setting in offers),
            },
            warnings=tuple(warnings),
            details=said,
            undo=Message("Each can be switched off at its folder."),
        )

    def serve(self, work: Work, offers: list[Offer], protocols: list[str]) -> None:
        before, now = approved.read_approved(), {one.guid: one for one in status.read_datasets()}
        for dataset, setting in offers:
            # What was read and agreed to is what is served: a setting that changed meanwhile is another.
            if dataset.guid not in now or setting_of(now[dataset.guid]) != setting:
                raise Failed(Message("{dataset} has changed meanwhile. Look at its share again", dataset=dataset.name))
        modes: dict[str, tuple[str, str]] = {}
        try:
            for dataset, _setting in offers:
                if dataset.kind == "volume" and dataset.guid not in before:
                    modes[dataset.name] = serve.read_mode(dataset.name)
                approved.set_approved(dataset.guid, share=True)
            publish.publish_shares(
                publish.agreed_facts(),
                protocols,
                changed={place_of(dataset) for dataset, _setting in offers},
                note=work.note,
            )
        except LarderError:
            for dataset, _setting in offers:
                approved.set_approved(dataset.guid, share=dataset.guid in before)
            if ISCSI in protocols:
                publish.put_volumes_back(work.note)
            for volume, mode in modes.items():
                with contextlib.suppress(LarderError):  # why it is not served is what has to be told
                    serve.put_mode_back(volume, mode)
            raise
        for dataset, _setting in offers:
            work.note(Message("{dataset} is served", dataset=dataset.name))

    def probe(self, step: str, facts: Facts) -> bool:
        return not offered_shares(facts, self.pool)

    def recovery_hint(self, step: str, facts: Facts) -> str:
        return Message("The switches of its folders show what is really served. Agree again if some are missing.")
