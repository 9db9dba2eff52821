"""Serve a volume over iSCSI, change how, or stop.

The setting is kept with the volume and the secrets of CHAP on this box.
The kernel then serves it and is asked whether it does; where it does not, all of it is put back.
"""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Iterator

from appliance import command
from appliance.datasets.base import DatasetOperation
from appliance.datasets.reasons import dataset_locked
from appliance.errors import Failed, LarderError, Reason
from appliance.facts import user_properties
from appliance.facts.box import Facts
from appliance.facts.datasets import Dataset
from appliance.facts.sharing import Share
from appliance.message import Message
from appliance.operation import Plan, Step, Work
from appliance.shares import approved, publish, teardown
from appliance.shares.iscsi import chap, configfs, divergence, serve, targets
from appliance.shares.iscsi.part import PORT, Iscsi, device_of
from appliance.shares.settings import ISCSI, ShareSetting, lays_open, setting_of
from appliance.zfs import status, volmode


class SetTarget(DatasetOperation, tag="set-target"):
    """How a volume shall be served over iSCSI; without ``iscsi`` it no longer is.
    ``new_secret``: secrets come along."""

    iscsi: Iscsi | None = None
    new_secret: bool = False

    def needs_proof(self, facts: Facts, plan: Plan) -> bool:
        return lays_open(self.iscsi)

    @property
    def title(self) -> str:
        return (
            Message("Share {dataset} over iSCSI", dataset=self.dataset)
            if self.iscsi
            else Message("Stop sharing {dataset} over iSCSI", dataset=self.dataset)
        )

    def wants_secret(self) -> bool:
        return self.new_secret and bool(self.iscsi and self.iscsi.user)

    def locks(self) -> tuple[str, ...]:
        return (self.dataset.split("/", 1)[0], "shares")

    def check(self, facts: Facts) -> Iterator[Reason]:
        yield from super().check(facts)
        volume = self.find_dataset(facts)
        if volume is None:
            return
        if volume.kind != "volume":
            yield Reason(
                "iscsi-needs-volume",
                "{dataset} is a folder. Only volumes can be served over iSCSI. Share it over SMB or NFS instead.",
                dataset=self.dataset,
            )
        elif self.iscsi:
            yield from self.reasons_against(volume, self.iscsi, facts)

    def reasons_against(self, volume: Dataset, part: Iscsi, facts: Facts) -> Iterator[Reason]:
        if volume.locked:
            yield dataset_locked(self.dataset)
        if " " in self.dataset:
            yield Reason(
                "volume-name-with-space",
                "A volume's name has no spaces, since it is part of a device's path.",
                field="name",
            )
        if volume.volsize % part.block:
            yield Reason(
                "volume-size-not-whole-sectors",
                "Its size is not a multiple of 4096 bytes. Choose sectors of 512 bytes.",
                field="block",
            )
        for other in facts.datasets:
            theirs = targets.volume_part(other)
            if theirs is None or other.guid == self.guid:
                continue
            if theirs.name == part.name:
                yield Reason(
                    "target-name-taken",
                    "The name {name} is used for {dataset}. Choose another.",
                    field="name",
                    name=part.name,
                    dataset=other.name,
                )
            if bool(theirs.addresses) != bool(part.addresses):
                yield Reason(
                    "portals-mixed",
                    "{dataset} is served on {which}. The kernel serves either every volume on all addresses, "
                    "or each on chosen ones.",
                    field="addresses",
                    dataset=other.name,
                    which=Message("chosen addresses") if theirs.addresses else Message("all addresses"),
                )

    def setting(self, volume: Dataset | None) -> ShareSetting:
        """What the volume will ask for; nothing else than a volume can do."""
        return ShareSetting(iscsi=self.iscsi)

    def connected(self, facts: Facts) -> list[str]:
        volume = self.find_dataset(facts)
        return teardown.open_targets(teardown.shares_at(facts, [volume])) if volume else []

    def plan(self, facts: Facts) -> Plan:
        volume = self.find_dataset(facts)
        shares = teardown.shares_at(facts, [volume]) if volume else []
        former = chap.read_secrets(self.guid)
        secret = [self.secret_step()] if self.wants_secret() else []
        argv = self.set_argv()
        return Plan(
            summary=Message(
                "{dataset} can be used as a disk by another computer, as {iqn}.",
                dataset=self.dataset,
                iqn=self.iscsi.iqn,
            )
            if self.iscsi
            else Message("{dataset} is no longer reachable over iSCSI. What is on it stays.", dataset=self.dataset),
            steps=(
                *secret,
                Step(
                    "property",
                    Message("Keep the setting with the volume"),
                    shlex.join(argv),
                    lambda _work: self.keep(argv),
                    (self.dataset,),
                ),
                Step(
                    "serve",
                    Message("Serve it and check that it works") if self.iscsi else Message("Stop serving it"),
                    "\n".join(
                        [
                            *([shlex.join(volmode.mode_argv(self.dataset))] if self.iscsi else []),
                            f"write {configfs.ROOT}",
                        ]
                    ),
                    lambda work: self.serve(work, volume, former),
                    (device_of(self.dataset),),
                ),
            ),
            identity={**self.plan_identity(), **teardown.connected_computers(shares)},
            warnings=(
                *teardown.disk_warnings(shares),
                *self.list_warnings(targets.volume_part(volume) if volume else None),
            ),
            undo=Message("It can be switched on again. What is on the volume stays.")
            if not self.iscsi
            else Message("It can be switched off at any time."),
            details=self.describe(shares),
        )

    def describe(self, shares: list[Share]) -> dict[str, str]:
        part = self.iscsi
        rows: dict[str, str] = {teardown.CONNECTED: ", ".join(teardown.open_targets(shares))}
        if part:
            rows |= {
                Message("Name"): part.iqn,
                Message("Addresses"): ", ".join(part.addresses) or Message("all of this box, port {port}", port=PORT),
                Message("Which computers"): ", ".join(part.initiators)
                or Message("every computer that reaches this box"),
                Message("CHAP"): chap_text(part),
                Message("Sector size"): Message("{count} bytes", count=part.block),
            }
        return {key: value for key, value in rows.items() if value}

    def list_warnings(self, former: Iscsi | None) -> Iterator[str]:
        if self.iscsi is None:
            if former:
                yield Message(
                    "Larder leaves volmode=dev on the volume: another computer wrote the partitions on it, "
                    "so this box does not read them. To use them on this box, run as root: {command}",
                    command=shlex.join(["zfs", "inherit", "volmode", self.dataset]),
                )
            return
        if former and former.block != self.iscsi.block:
            yield Message(
                "The sector size changes. What is on the volume cannot be read until you set {former} bytes "
                "again. Do not let the other computer initialise or format it.",
                former=former.block,
            )
        if former is None:
            yield Message(
                "This box no longer shows the partitions on the volume (volmode=dev), not even after you "
                "stop sharing it."
            )
        if self.iscsi.open_to_all:
            who = (
                Message("calls itself by one of these names") if self.iscsi.initiators else Message("reaches this box")
            )
            yield Message(
                "Every computer that {who} can read, change and erase the whole volume, without a secret.", who=who
            )
        yield Message("Nothing is encrypted on the way. Use it only in a network that you trust.")
        yield Message("One computer at a time: two that use the volume at once destroy its file system.")

    def set_argv(self) -> list[str]:
        if self.iscsi is None:
            return ["zfs", "inherit", "--", user_properties.SHARE, self.dataset]
        return ["zfs", "set", "--", f"{user_properties.SHARE}={self.setting(None).text()}", self.dataset]

    def secret_step(self) -> Step:
        def store(work: Work) -> None:
            self.refuse_manual_change()
            secrets = chap.parse_secrets(work.secret())
            if bool(secrets.back) != bool(self.iscsi and self.iscsi.back_user):
                raise Failed(Message("A secret is missing for one of the two ways. Type them again"))
            chap.store_secrets(self.guid, secrets)

        return Step("secret", Message("Store the secret"), f"write {chap.secrets_path(self.guid)}", store)

    def refuse_manual_change(self) -> None:
        """Raises Refused where the volume's target was changed by hand, or one of its new name was made so."""
        now = targets.volume_part(self.now())
        names = {part.iqn for part in (now, self.iscsi) if part}
        divergence.refuse_edits(names, divergence.read_edits(publish.agreed_facts()))

    def keep(self, argv: list[str]) -> None:
        self.refuse_manual_change()
        command.run(argv, timeout=60)

    def now(self) -> Dataset:
        """The volume as it is at this moment. Raises Failed where it is another or gone."""
        for dataset in status.read_datasets():
            if dataset.guid == self.guid and dataset.name == self.dataset:
                return dataset
        raise Failed(Message("{dataset} has changed meanwhile. Look at its page again", dataset=self.dataset))

    def serve(self, work: Work, before: Dataset | None, former: chap.Secrets | None) -> None:
        was_agreed = self.guid in approved.read_approved()
        mode = None
        approved.set_approved(self.guid, share=self.iscsi is not None)
        try:
            mode = serve.read_mode(self.dataset) if self.iscsi else None
            publish.publish_shares(publish.agreed_facts(), [ISCSI], changed={device_of(self.dataset)}, note=work.note)
            if self.iscsi and not serve.is_served(self.iscsi.iqn, device_of(self.dataset)):
                raise Failed(Message("{iqn} is in the settings and is not served", iqn=self.iscsi.iqn))
        except LarderError:
            approved.set_approved(self.guid, share=was_agreed)
            if former:
                chap.store_secrets(self.guid, former)
            self.put_back(work, before)
            if mode and not (before and targets.volume_part(before)):
                with contextlib.suppress(LarderError):  # why it is not served is what has to be told
                    serve.put_mode_back(self.dataset, mode)
            raise
        if self.iscsi is None:
            chap.delete_secrets(self.guid)
        work.note(
            Message(
                "{dataset} is {what} over iSCSI",
                dataset=self.dataset,
                what=Message("served") if self.iscsi else Message("no longer served"),
            )
        )

    def put_back(self, work: Work, before: Dataset | None) -> None:
        """The property as it was before, and what was served with it."""
        if before and before.share_source == "local":
            argv = ["zfs", "set", "--", f"{user_properties.SHARE}={before.share}", self.dataset]
        else:
            received = ["-S"] if before and before.share_source == "received" else []
            argv = ["zfs", "inherit", *received, "--", user_properties.SHARE, self.dataset]
        command.run(argv, timeout=60, accept=range(256))
        publish.put_volumes_back(work.note)

    def probe(self, step: str, facts: Facts) -> bool:
        volume = self.find_dataset(facts)
        setting = setting_of(volume) if volume else None
        kept = volume is not None and (setting.iscsi if setting else None) == self.iscsi
        if step == "secret":
            return False  # nothing shows whether this very secret was stored
        if step == "property" or not kept:
            return kept
        here = {(share.protocol, share.path) for share in facts.shares}
        return ((ISCSI, device_of(self.dataset)) in here) == (self.iscsi is not None)

    def recovery_hint(self, step: str, facts: Facts) -> str:
        return Message("The volume's page shows whether it is served. Set it again if that is wrong.")


def chap_text(part: Iscsi) -> Message:
    """Who signs in to whom, for the review page."""
    if part.back_user:
        return Message(
            "{user} signs in, and this box signs in as {back_user}", user=part.user, back_user=part.back_user
        )
    return Message("{user} signs in", user=part.user) if part.user else Message("off")
