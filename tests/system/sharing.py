"""People, switches and SMB clients from outside, for the system tests of shares."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

from deploy.image.machine import Machine, wait_for
from tests.system import moving
from tests.visitor import Answer, Visitor, create_pool, disk_paths

PASSWORD = "a long word for shares"
CONFIG = "/etc/samba/larder.conf"


def make_pool(appliance: Machine, name: str, *folders: str, bays: tuple[int, int] = (1, 2)) -> None:
    """A mirror with these folders, made by hand: what is tested here is sharing. What is there already stays."""
    if name not in moving.pools(appliance):
        create_pool(appliance, "-o", "ashift=12", "-m", f"/{name}", name, "mirror", *disk_paths(appliance, *bays))
    there = appliance.run("zfs", "list", "-H", "-o", "name", "-r", name).splitlines()
    for folder in folders:
        if f"{name}/{folder}" in there:
            continue
        appliance.run("zfs", "create", f"{name}/{folder}")
        appliance.run("chown", "root:larder-people", f"/{name}/{folder}")
        appliance.run("chmod", "2770", f"/{name}/{folder}")


def make_person(visitor: Visitor, name: str, password: str = PASSWORD) -> None:
    """A user with this password; one who is there already stays."""
    if visitor.appliance.run("getent", "passwd", name, check=False):
        return
    review = visitor.send("/users/new/", {**visitor.get("/users/new/").hidden(), "name": name})
    said = visitor.ended(visitor.confirm(review, secret=password, again=password))
    assert said.startswith("Done."), said


def key_of(appliance: Machine, dataset: str) -> str:
    """The guid by which pages name a dataset, or a snapshot."""
    return moving.prop(appliance, "guid", dataset)


def set_share(visitor: Visitor, appliance: Machine, dataset: str, *, write: str = "", **answers: object) -> str:
    """Answer the form behind the switch of SMB, ``write`` being who may change the files;
    what its job said at the end."""
    if write:
        answers[f"user-{write}"] = "change"
    path = f"/folders/{key_of(appliance, dataset)}/share/"
    page = visitor.wait_until(path, "Name of the share", timeout=90)
    answer = visitor.send(path, {**page.hidden(), **answers})
    return visitor.ended(job_in(answer))


def job_in(answer: Answer) -> str:
    found = re.search(r"/jobs/([0-9a-f-]{36})/", answer.url)
    assert found, answer.words
    return found[1]


def click(visitor: Visitor, appliance: Machine, dataset: str, to: str, protocol: str = "smb") -> Answer:
    """One click on a switch in the list of folders."""
    token = visitor.get("/folders/").hidden()["csrfmiddlewaretoken"]
    path = f"/folders/{key_of(appliance, dataset)}/switch/{protocol}/{to}/"
    return visitor.send(path, {"csrfmiddlewaretoken": token, "from": "folder"})


SMB_CARD = re.compile(
    r'<h2>Windows and Mac \(SMB\)</h2>.*?class="switch switch-[a-z]+"[^>]*>'
    r"(?:<span[^>]*visually-hidden[^>]*>[^<]*</span>)?\s*([^<]*?)\s*<",
    re.DOTALL,
)


def switch_of(visitor: Visitor, page: str) -> str:
    """What a folder's page says of its switch of SMB."""
    return "".join(SMB_CARD.findall(visitor.get(page).text))


def wait_for_switch(visitor: Visitor, appliance: Machine, dataset: str, word: str) -> None:
    """Until the folder's page says that its switch of SMB is so: ``on`` or ``off``."""
    page = f"/folders/{key_of(appliance, dataset)}/"
    wait_for(f"the switch of {dataset} to be {word}", lambda: switch_of(visitor, page) == word, timeout=90, every=0.2)


class Client:
    """smbclient outside the appliance, as a person or (without a name) as a guest."""

    def __init__(self, appliance: Machine, folder: Path, name: str = "", password: str = PASSWORD) -> None:
        self.appliance = appliance
        self.who = ["-N"]
        if name:
            credentials = folder / f"{name}.credentials"
            credentials.write_text(f"username = {name}\npassword = {password}\n")
            self.who = ["-A", str(credentials)]

    def argv(self, share: str, command: str) -> list[str]:
        port = str(self.appliance.ports["smb"])
        return ["smbclient", "-p", port, "-t", "120", *self.who, f"//127.0.0.1/{share}", "-c", command]

    def tried(self, share: str, command: str) -> tuple[int, str]:
        done = subprocess.run(self.argv(share, command), capture_output=True, text=True, timeout=600)
        return done.returncode, done.stdout + done.stderr

    def done(self, share: str, command: str) -> str:
        status, said = self.tried(share, command)
        assert status == 0, said
        return said

    def held(self, share: str, command: str = "") -> subprocess.Popen[str]:
        """A client that has a share open, does this one command and waits for more, until its input is closed: it looks
        for a second line only when more comes."""
        argv = self.argv(share, "")[:-2]
        client = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        assert client.stdin
        client.stdin.write(f"{command}\n")
        client.stdin.flush()
        return client

    def begun(self, share: str, command: str) -> subprocess.Popen[str]:
        """A client that is still at work."""
        return subprocess.Popen(self.argv(share, command), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def sessions(appliance: Machine) -> set[str]:
    """The shares that somebody has open, as Samba says."""
    found = json.loads(appliance.run("smbstatus", "--json"))
    return {one["service"] for one in found.get("tcons", {}).values()}
