"""Random acts on a box by its pages, each as a person would do it: folders, snapshots, shares, people, pools, disks."""

from __future__ import annotations

import html
import json
import random
import re
from collections import Counter
from collections.abc import Callable
from urllib.parse import quote

from deploy.image.machine import Machine
from tests.system import moving, protocols, shapes, sharing
from tests.visitor import Answer, Visitor, disk_paths

KEPT = "safe/canary"
FOLDERS = tuple(f"f{number}" for number in range(1, 9))
PEOPLE = ("anna", "ben", "cleo", "dora")
POOLS = ("safe", "second")
PASSWORD = "a long word for shares"


class NotNow(Exception):
    """The act does not apply to the box as it is, or its pages do not know yet what it is about."""

    @classmethod
    def of(cls, answer: Answer) -> NotNow:
        """As a page said it."""
        return cls(f"{answer.status} {answer.words[:300]}")


class Acts:
    """What may be done to a box next, chosen by ``random``. Each act returns the id of the job that it began."""

    def __init__(self, visitor: Visitor, appliance: Machine) -> None:
        self.visitor = visitor
        self.appliance = appliance
        self.random = random.Random()
        self.applied: Counter[str] = Counter()  # how often each has ended well
        self.put_off: dict[str, str] = {}  # why each did not apply when it was tried last
        self.deck: list[Callable[[], str]] = []
        self.acts: list[Callable[[], str]] = [
            self.make_folder,
            self.make_folder,
            self.destroy_folder,
            self.rename_folder,
            self.take_snapshot,
            self.take_snapshot,
            self.destroy_snapshots,
            self.roll_back,
            self.share,
            self.share,
            self.make_person,
            self.set_password,
            self.remove_person,
            self.make_pool,
            self.destroy_pool,
            self.add_to_mirror,
            self.take_from_mirror,
            self.replace_disk,
        ]

    def names(self) -> set[str]:
        return {act.__name__ for act in self.acts}

    def shuffle(self, seed: str) -> None:
        """From here on all acts come in an order of this seed's, each once, those first that were never done before."""
        self.random = random.Random(seed)
        mixed = self.random.sample(self.acts, len(self.acts))
        self.deck = sorted(mixed, key=lambda act: self.applied[act.__name__] > 0)

    def any(self) -> tuple[str, str]:
        """Begin the next act that applies; its name and its job. What does not apply now keeps its place."""
        while True:
            for act in [*self.deck]:
                try:
                    job = act()
                except NotNow as reason:
                    self.put_off[act.__name__] = str(reason)
                    continue
                self.deck.remove(act)
                return act.__name__, job
            self.deck += self.random.sample(self.acts, len(self.acts))

    # --- what is there, as ZFS and the system tell it --------------------------------------------------------
    def one(self, of: list[str] | tuple[str, ...]) -> str:
        if not of:
            raise NotNow("there is none")
        return self.random.choice(of)

    def datasets(self) -> list[str]:
        """Those that may be changed."""
        said = self.appliance.run("zfs", "list", "-H", "-o", "name", "-t", "filesystem").split()
        return [name for name in said if "/" in name and name != KEPT]

    def pools(self) -> list[str]:
        return moving.pools(self.appliance)

    def people(self) -> list[str]:
        said = self.appliance.run("getent", "passwd").splitlines()
        return [name for name in PEOPLE if any(line.startswith(f"{name}:") for line in said)]

    def key(self, name: str) -> str:
        return sharing.key_of(self.appliance, name)

    def mirror(self) -> tuple[str, list[str]]:
        """The guid of the safe pool's mirror and the names of its disks."""
        found = shapes.nodes(shapes.status(self.appliance, "safe"))
        mirror = next((node for node in found if node["vdev_type"] == "mirror"), None)
        if mirror is None:
            raise NotNow("there is no mirror")
        return str(mirror["guid"]), [str(node["guid"]) for node in shapes.nodes(mirror) if node["vdev_type"] == "disk"]

    def free_disks(self) -> list[str]:
        used = self.appliance.run("zpool", "status", "-P")
        paths = disk_paths(self.appliance, *range(1, len(self.appliance.disks) + 1))
        return [path for path in paths if path.rsplit("/", 1)[-1] not in used]

    # --- how a person begins it ------------------------------------------------------------------------------
    def begun(self, answer: Answer, **more: object) -> str:
        """The job that a form began, or that its review begins when it is confirmed."""
        found = re.search(r"/jobs/([0-9a-f-]{36})/", answer.url)
        if found:
            return found[1]
        assert answer.status < 500, answer.words
        review = answer.hidden()
        if answer.status != 200 or "digest" not in review:
            raise NotNow.of(answer)
        asked = re.search(r'data-confirm-name="([^"]*)"', answer.text)
        typed = {"typed": html.unescape(asked[1])} if asked else {}
        answer = self.visitor.send("/jobs/confirm/", {**review, **typed, **more})
        assert answer.status < 500, answer.words
        if answer.status != 200 or "/jobs/confirm/" in answer.url:
            raise NotNow.of(answer)
        return review["job"]  # a replacement goes back to its own page, which need not name the job

    def make_folder(self) -> str:
        parent, name = self.one(self.pools()), self.one(FOLDERS)
        fields = {"parent": parent, "name": name, "preset": "general", "limit": "", "key": ""}
        return self.begun(self.visitor.post("/folders/new/", **fields))

    def destroy_folder(self) -> str:
        path = f"/folders/{self.key(self.one(self.datasets()))}/destroy/"
        if self.visitor.get(path).status != 200:
            raise NotNow("the pages do not know the folder yet")
        self.visitor.wait_until(path, "This is what would be destroyed")  # read when it is asked for
        return self.begun(self.visitor.get(f"{path}?review=1"))

    def rename_folder(self) -> str:
        dataset = self.one(self.datasets())
        parent, name = dataset.split("/", 1)[0], self.one(FOLDERS)
        return self.begun(
            self.visitor.get(f"/folders/{self.key(dataset)}/rename/?answered=1&parent={parent}&name={name}")
        )

    def take_snapshot(self) -> str:
        path = f"/snapshots/of/{self.key(self.one([*self.datasets(), KEPT]))}/take/"
        return self.begun(self.visitor.post(path, name=f"by-hand-{self.random.randrange(10**6)}", note="", below=""))

    def snapshots(self) -> list[str]:
        """Those of datasets that may be changed."""
        said = self.appliance.run("zfs", "list", "-H", "-o", "name", "-t", "snapshot").split()
        return [name for name in said if "/" in name and not name.startswith(KEPT)]

    def destroy_snapshots(self) -> str:
        key = self.key(self.one(self.snapshots()).partition("@")[0])
        token = self.visitor.get(f"/snapshots/of/{key}/").hidden()["csrfmiddlewaretoken"]
        return self.begun(
            self.visitor.send("/snapshots/destroy/", {"csrfmiddlewaretoken": token, "of": key, "every": ""})
        )

    def roll_back(self) -> str:
        snapshot = self.one(self.snapshots())
        dataset = snapshot.partition("@")[0]
        return self.begun(
            self.visitor.get(f"/snapshots/of/{self.key(dataset)}/{self.key(snapshot)}/roll-back/?answered=yes")
        )

    def share(self) -> str:
        """Turn a protocol on that a folder is not shared over, or off: NFS asks first who may mount it."""
        dataset, protocol = self.one(self.datasets()), self.one(("smb", "nfs"))
        key, setting = self.key(dataset), moving.prop(self.appliance, "larder:share", dataset)
        on = setting.startswith("{") and protocol in json.loads(setting)
        if protocol == "nfs" and not on:
            hosts = "\n".join(protocols.NETWORKS)
            return self.begun(
                self.visitor.post(f"/shares/{key}/nfs/", hosts=hosts, write="on", sync="on", everybody_as="")
            )
        before = self.newest_job()
        answer = sharing.click(self.visitor, self.appliance, dataset, "off" if on else "on", protocol)
        assert answer.status < 500, answer.words
        # It goes back to its page at once: the job is the newest one, unless the switch was refused.
        job = self.newest_job()
        if not job or job == before:
            raise NotNow.of(answer)
        return job

    def newest_job(self) -> str:
        found = re.search(r"/jobs/([0-9a-f-]{36})/", self.visitor.get("/jobs/").text)
        return found[1] if found else ""

    def make_person(self) -> str:
        page = self.visitor.get("/users/new/")
        name = self.one(sorted({*PEOPLE} - {*self.people()}))
        review = self.visitor.send("/users/new/", {**page.hidden(), "name": name})
        return self.begun(review, secret=PASSWORD, again=PASSWORD)

    def set_password(self) -> str:
        review = self.visitor.get(f"/users/{self.one(self.people())}/password/")
        return self.begun(review, secret=PASSWORD, again=PASSWORD)

    def remove_person(self) -> str:
        return self.begun(self.visitor.get(f"/users/{self.one(self.people())}/remove/"))

    def make_pool(self) -> str:
        free = self.free_disks()
        if "second" in self.pools() or len(free) < 2:
            raise NotNow("it is there, or there is no disk for it")
        layout = self.one(("mirror-1", "stripe-1"))
        return self.begun(self.visitor.review_pool("second", free[: 2 if layout == "mirror-1" else 1], layout))

    def destroy_pool(self) -> str:
        if "second" not in self.pools():
            raise NotNow("it is not there")
        return self.begun(self.visitor.get(f"/pools/{moving.guid_of(self.appliance, 'second')}/end/destroy/"))

    def add_to_mirror(self) -> str:
        mirror, disks = self.mirror()
        if len(disks) > 2:
            raise NotNow("it has three disks")
        path = f"/pools/{moving.guid_of(self.appliance, 'safe')}/add/copy/"
        return self.begun(self.visitor.get(shapes.chosen(path, self.one(self.free_disks()), vdev=mirror)))

    def take_from_mirror(self) -> str:
        _mirror, disks = self.mirror()
        if len(disks) < 3:
            raise NotNow("it has two disks")
        pool = moving.guid_of(self.appliance, "safe")
        return self.begun(self.visitor.get(f"/pools/{pool}/vdev/{self.one(disks)}/detach/"))

    def replace_disk(self) -> str:
        _mirror, disks = self.mirror()
        new = self.one(self.free_disks())
        path = f"/pools/{moving.guid_of(self.appliance, 'safe')}/replace/"
        case = self.visitor.post(path, vdev=self.one(disks))
        if "/pools/replacements/" not in case.url:
            raise NotNow.of(case)
        return self.begun(self.visitor.get(f"{case.url}accept/?disk={quote(new)}"))
