"""What the buttons of "Why can't I see it?" do: serve a folder again, and let people into it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from appliance import names
from appliance.errors import Failed, Reason
from appliance.facts.box import Facts
from appliance.facts.datasets import Dataset
from appliance.message import Message
from appliance.operation import Operation, Plan, Step, Work, never
from appliance.shares import discovery, publish
from appliance.shares.settings import SPOKEN, Protocol, ShareSetting, setting_of
from appliance.system.accounts import PEOPLE
from appliance.zfs import mount, mountpoints


class RepublishShare(Operation, tag="republish-share"):
    """Mount a shared folder where it is not, write its daemon's file again, start the daemon and announce it."""

    needs_proof = never

    dataset: str
    protocol: Protocol

    def __post_init__(self) -> None:
        names.existing_dataset(self.dataset)

    @property
    def title(self) -> str:
        return Message("Serve {dataset} again over {spoken}", dataset=self.dataset, spoken=SPOKEN[self.protocol])

    @property
    def subject(self) -> str:
        return self.dataset

    def locks(self) -> tuple[str, ...]:
        return (self.dataset.split("/", 1)[0], "shares")

    def check(self, facts: Facts) -> Iterator[Reason]:
        dataset = facts.dataset(self.dataset)
        if dataset is None:
            yield Reason("folder-missing", "The folder {folder} is no longer there.", folder=self.dataset)
            return
        if not (setting_of(dataset) or ShareSetting()).part(self.protocol):
            yield Reason(
                "share-off",
                "{dataset} is not shared over {protocol}. Switch it on first.",
                dataset=self.dataset,
                protocol=SPOKEN[self.protocol],
            )
        if dataset.locked:
            yield Reason("dataset-locked", "{dataset} is locked. Unlock it first.", dataset=self.dataset)
        elif not dataset.can_mount:
            yield Reason("dataset-without-mountpoint", "{dataset} has no mountpoint on this box.", dataset=self.dataset)
        elif not dataset.mounted and (
            against := mount.reason_against(self.dataset, dataset.mountpoint, facts.datasets)
        ):
            yield against

    def plan(self, facts: Facts) -> Plan:
        dataset = facts.dataset(self.dataset)
        one = publish.SERVING[self.protocol]
        shown = f"write {one.owned.path}\nreload {' '.join(one.units)}"
        steps = [
            Step(
                "serve",
                Message("Apply the setting and check that it works"),
                shown,
                self.serve,
                (str(one.owned.path),),
            ),
            Step("announce", Message("Tell the network"), f"write {discovery.FOLDER}/{discovery.BOX}", self.announce),
        ]
        if dataset and not dataset.mounted:
            steps.insert(0, mount.mount_step(self.dataset, dataset.mountpoint))
        return Plan(
            Message(
                "{dataset} is served over {spoken} as its switch says. Nobody who is connected is dropped.",
                dataset=self.dataset,
                spoken=SPOKEN[self.protocol],
            ),
            tuple(steps),
            {"operation": msgspec.to_builtins(self), "dataset": dataset.guid if dataset else 0},
            undo=Message("Yes: switch the share off."),
        )

    def serve(self, work: Work) -> None:
        facts = publish.agreed_facts()
        dataset = facts.dataset(self.dataset)
        if dataset is None:
            raise Failed(
                Message("Nobody on this box has agreed to share {dataset}. Switch its share on", dataset=self.dataset)
            )
        publish.publish_shares(facts, [self.protocol], changed={dataset.mountpoint}, note=work.note)
        if dataset.mountpoint not in {path for _name, path in publish.SERVING[self.protocol].served()}:
            raise Failed(Message("The service runs and does not serve {dataset}", dataset=self.dataset))
        work.note(Message("The service lists the folder"))

    def announce(self, work: Work) -> None:
        discovery.announce_shares(publish.agreed_facts().datasets)

    def probe(self, step: str, facts: Facts) -> bool:
        dataset = facts.dataset(self.dataset)
        if dataset is None or not dataset.mounted:
            return False
        if step == "mount":
            return True
        if step == "announce":
            wanted = discovery.render_files(publish.agreed_facts().datasets)
            return all(discovery.is_current(name, body) for name, body in wanted.items())
        one = publish.SERVING[self.protocol]
        return not one.owned.drifted() and dataset.mountpoint in {place for _name, place in one.served()}

    def recovery_hint(self, step: str, facts: Facts) -> str:
        return Message("Check again: the page says what is still in the way.")


class OpenTopFolder(Operation, tag="open-top-folder"):
    """Give the people of this box the top of a folder, as it is when Larder makes one.
    What is inside stays as it is."""

    needs_proof = never

    dataset: str

    def __post_init__(self) -> None:
        names.existing_dataset(self.dataset)

    @property
    def title(self) -> str:
        return Message("Let users into {dataset}", dataset=self.dataset)

    @property
    def subject(self) -> str:
        return self.dataset

    def check(self, facts: Facts) -> Iterator[Reason]:
        dataset = facts.dataset(self.dataset)
        if dataset is None:
            yield Reason("folder-missing", "The folder {folder} is no longer there.", folder=self.dataset)
        elif not dataset.mounted:
            yield Reason("dataset-not-mounted", "{dataset} is not mounted. Mount it first.", dataset=self.dataset)
        elif dataset.readonly:
            yield Reason(
                "dataset-read-only", "{dataset} is read-only. Change that in its settings first.", dataset=self.dataset
            )
        else:
            names.served_path(dataset.mountpoint)

    @staticmethod
    def above(dataset: Dataset, facts: Facts) -> list[Dataset]:
        """The folders of the same pool that lie above it: people pass through them."""
        return [
            one
            for one in facts.datasets
            if one.pool == dataset.pool
            and one.mounted
            and dataset.mountpoint.startswith(f"{one.mountpoint.rstrip('/')}/")
        ]

    def plan(self, facts: Facts) -> Plan:
        dataset = facts.dataset(self.dataset)
        place = dataset.mountpoint if dataset else ""
        above = self.above(dataset, facts) if dataset else []
        passing = [
            mountpoints.top_step(
                f"pass-{number}",
                Message("Let users pass through {mountpoint}", mountpoint=one.mountpoint),
                ["chmod", "o+x"],
                one.name,
                one.mountpoint,
            )
            for number, one in enumerate(above)
        ]
        return Plan(
            Message(
                "All users may read and change the top of {dataset}. Folders inside keep their permissions.",
                dataset=self.dataset,
            ),
            (
                *passing,
                mountpoints.top_step(
                    "group", Message("Give it to the group of all users"), ["chgrp", PEOPLE], self.dataset, place
                ),
                mountpoints.top_step(
                    "mode", Message("Let them read and change it"), ["chmod", "g+rwxs"], self.dataset, place
                ),
            ),
            {"operation": msgspec.to_builtins(self), "dataset": dataset.guid if dataset else 0},
            undo=Message(
                "Change access to the files of {dataset} to keep users out again. The folders above stay "
                "open for passing through.",
                dataset=self.dataset,
            ),
        )

    def probe(self, step: str, facts: Facts) -> bool:
        dataset = facts.dataset(self.dataset)
        if dataset is None or not dataset.mounted:
            return False
        if step.startswith("pass-"):
            return all(Path(one.mountpoint).stat().st_mode & 0o001 for one in self.above(dataset, facts))
        place = Path(dataset.mountpoint)
        return place.group() == PEOPLE if step == "group" else place.stat().st_mode & 0o2070 == 0o2070

    def recovery_hint(self, step: str, facts: Facts) -> str:
        return Message("Let users in once more: doing it twice does no harm.")
