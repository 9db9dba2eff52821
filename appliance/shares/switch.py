"""Switching NFS or AFP on, changing it, and off again for one folder; what the other protocols say is kept as it is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import msgspec

from appliance import command, names
from appliance.errors import Failed, LarderError, Reason, Refused
from appliance.facts import Dataset, Facts
from appliance.operation import Operation, Plan, Step, Work, command_step
from appliance.shares import afp, agreed, clients, discovery, nfs
from appliance.shares.again import ServeAgain
from appliance.shares.serving import SERVING
from appliance.shares.setting import PROPERTY, Afp, Nfs, ShareSetting, setting_of
from appliance.zfs import status

SAID = {"nfs": "NFS", "afp": "AFP"}


class SwitchShare(Operation, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one protocol is to say of a folder: ``nfs`` or ``afp`` for on, neither for off."""

    dataset: str
    protocol: Literal["nfs", "afp"]
    nfs: Nfs | None = None
    afp: Afp | None = None

    def __post_init__(self) -> None:
        names.existing_dataset(self.dataset)
        if (self.nfs and self.protocol != "nfs") or (self.afp and self.protocol != "afp"):
            raise names.refuse("A change is about one protocol.", "protocol")

    @property
    def on(self) -> bool:
        return bool(self.nfs or self.afp)

    @property
    def title(self) -> str:
        way = SAID[self.protocol]
        return f"Share {self.dataset} over {way}" if self.on else f"Stop sharing {self.dataset} over {way}"

    @property
    def subject(self) -> str:
        return self.dataset

    def locks(self) -> tuple[str, ...]:
        return (self.dataset.split("/", 1)[0], "shares")

    def changed(self, dataset: Dataset) -> ShareSetting:
        """The folder's whole setting as it will be."""
        now = setting_of(dataset) or ShareSetting()
        return msgspec.structs.replace(now, **{self.protocol: self.nfs or self.afp})

    def text(self, dataset: Dataset) -> str:
        return msgspec.json.encode(self.changed(dataset)).decode()

    def check(self, facts: Facts) -> Iterator[Reason]:
        dataset = facts.dataset(self.dataset)
        if dataset is None:
            yield Reason(f"The folder {self.dataset} is no longer there.")
            return
        if dataset.share and dataset.share_source == "local" and setting_of(dataset) is None:
            yield Reason(
                "The folder carries a share setting that Larder cannot read. Switch its other shares off first."
            )
        if not self.on:
            return
        if dataset.locked or not dataset.mounted:
            word = "locked" if dataset.locked else "not mounted"
            yield Reason(f"{self.dataset} is {word}. Make it available first, then share it.")
        elif not nfs.servable(dataset):
            yield Reason(
                f"The place where {self.dataset} is mounted cannot be served. Give it one such as /tank/photos."
            )
        if self.afp:
            yield from self.check_people(self.afp, facts)

    def check_people(self, wanted: Afp, facts: Facts) -> Iterator[Reason]:
        if not wanted.write and not wanted.read:
            yield Reason("Choose at least one account that may use the folder.", "write")
        for who in (*wanted.write, *wanted.read):
            if not who.startswith("@") and not facts.account(who):
                yield Reason(f"There is no account {who}.", "write" if who in wanted.write else "read")
        for other, setting in afp.volumes(facts.datasets):
            if other.name != self.dataset and setting.name.lower() == wanted.name.lower():
                yield Reason(f"The name {wanted.name} is used for {other.name}. Choose another.", "name")

    def plan(self, facts: Facts) -> Plan:
        dataset = facts.dataset(self.dataset)
        serving, text = SERVING[self.protocol], self.text(dataset) if dataset else "{}"
        before = dataset.share if dataset and dataset.share_source == "local" else ""
        return Plan(
            self.summary(dataset),
            (
                command_step("property", "Keep the setting with the folder", ["zfs", "set", f"{PROPERTY}={text}", self.dataset]),
                Step("config", "Write it into the service's settings", f"write {serving.owned.path}", self.write_config, (str(serving.owned.path),)),
                Step("serve", "Take it up, and see that it is so", "\n".join(f"systemctl: {unit}" for unit in serving.units), lambda work: self.serve(work, before)),
                Step("announce", "Tell the network", f"write {discovery.FOLDER}/{discovery.BOX}", self.announce),
            ),
            {"operation": msgspec.to_builtins(self), "dataset": dataset.guid if dataset else 0},
            warnings=tuple(self.warnings()),
            undo="Switch it back at any time.",
        )  # fmt: skip

    def summary(self, dataset: Dataset | None) -> str:
        if self.nfs:
            how = "read and change" if self.nfs.write else "read"
            return (
                f"{', '.join(self.nfs.hosts)} may mount {dataset.mountpoint if dataset else self.dataset} and {how} it."
            )
        if self.afp:
            return f"{', '.join((*self.afp.write, *self.afp.read))} can use {self.dataset} as {self.afp.name} from older Macs."
        return f"{self.dataset} is no longer reachable over {SAID[self.protocol]}. Its files stay."

    def warnings(self) -> Iterator[str]:
        if self.nfs and self.nfs.root:
            yield "Root on those computers is root in this folder: it can read and change every file."
        if self.nfs and not self.nfs.sync:
            yield "Writes are told to be done before they are on disk: a power cut can lose the last seconds."
        if self.nfs:
            yield from (f"{host} reaches beyond your home." for host in self.nfs.hosts if clients.public(host))

    def write_config(self, work: Work) -> None:
        dataset = next(one for one in status.read_datasets() if one.name == self.dataset)
        agreed.say(dataset.guid, share=self.changed(dataset) != ShareSetting())
        serving = SERVING[self.protocol]
        serving.owned.write(serving.render(ServeAgain.agreed_facts()))

    def serve(self, work: Work, before: str = "") -> None:
        """Take the file up and ask the daemon; where it says otherwise, the file of before comes back."""
        serving = SERVING[self.protocol]
        place = next(one.mountpoint for one in status.read_datasets() if one.name == self.dataset)
        try:
            serving.take_up()
            serves = place in {path for _name, path in serving.served()}
        except Failed:
            self.take_back(before)
            raise
        if serves != self.on:
            unknown = serving.unresolved() if isinstance(serving, nfs.NfsServing) and self.on else set()
            self.take_back(before)
            if unknown:
                raise Refused(
                    Reason(
                        f"Nobody in the network knows {', '.join(sorted(unknown))}. Use its address instead.", "hosts"
                    )
                )
            raise Failed(
                f"The service took the settings but {'does not serve' if self.on else 'still serves'} {self.dataset}"
            )
        if not self.on:
            serving.close({(place, place)})
        work.note(f"The service {'lists' if self.on else 'no longer lists'} the folder")

    def take_back(self, before: str) -> None:
        """The setting and the file of before; what is told is why the new ones were not taken."""
        argv = ["zfs", "set", f"{PROPERTY}={before}"] if before else ["zfs", "inherit", PROPERTY]
        command.run([*argv, self.dataset], timeout=60)
        serving = SERVING[self.protocol]
        serving.owned.roll_back()
        try:
            serving.take_up()
        except LarderError:
            return

    def announce(self, work: Work) -> None:
        discovery.announce(ServeAgain.agreed_facts().datasets)

    def happened(self, step: str, facts: Facts) -> bool:
        dataset = facts.dataset(self.dataset)
        if dataset is None or (setting_of(dataset) or ShareSetting()) != self.changed(dataset):
            return False
        if step == "property":
            return True
        if step == "announce":
            wanted = discovery.files(ServeAgain.agreed_facts().datasets)
            return all(discovery.current(name, body) for name, body in wanted.items())
        serving = SERVING[self.protocol]
        return not serving.owned.drifted() and self.on == (
            dataset.mountpoint in {path for _n, path in serving.served()}
        )

    def way_on(self, step: str, facts: Facts) -> str:
        return "The switch shows what is so. Move it again if it is not as you want it."
