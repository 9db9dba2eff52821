"""Import of files from another NAS by rsync over real ssh. The other NAS is this box by loopback: an sshd of its own,
and a tree with everything that other boxes have in theirs."""

from __future__ import annotations

import base64
import re

import pytest

from deploy.image.machine import Machine, wait_for
from tests.system.backups.test_over_ssh import PORT, ask_now, shown, start_sshd
from tests.system.sharing import key_of, make_person
from tests.visitor import Visitor

STATE = "pool"
USER = "oldnas"
SOURCE = f"/home/{USER}/photos"
BIG = 60_000_000
MAKE = f"""
set -e
useradd --create-home --shell /bin/sh {USER}
mkdir -p {SOURCE}/a/.zfs/snapshot/x {SOURCE}/.snapshot {SOURCE}/@eaDir {SOURCE}/a/b/#recycle
cd {SOURCE}
echo one > a/one; ln a/one a/hard; truncate -s 50M sparse; echo end >> sparse
ln -s /etc/passwd out; ln -s a/one in; ln -s ../../../x a/b/up; mkfifo fifo; mknod device c 1 3
cp /usr/bin/true suid; chmod 4755 suid
printf n > "$(printf 'new\\nline')"; printf n > "$(printf '\\377\\376')"; printf d > ./-dash
printf l > "$(head -c 255 /dev/zero | tr '\\0' l)"
touch a/.zfs/snapshot/x/f .snapshot/f @eaDir/f a/b/#recycle/f
setfattr -n user.keep -v 1 a/one; setfattr -n security.other -v 1 a/one
setfacl -m u:{USER}:r a/one
head -c {BIG} /dev/urandom > big
chown -hR {USER}: /home/{USER}; chmod 4755 suid
"""
ORDINARY = [
    "-dash",
    "a",
    "a/b",
    "a/hard",
    "a/one",
    "big",
    "in",
    "l" * 255,
    "new\nline",
    "sparse",
    "suid",
    "\udcff\udcfe",
]


def listed(appliance: Machine, folder: str) -> list[str]:
    said = appliance.shell(f"cd {folder}; find . -mindepth 1 -not -path './.zfs*' -printf '%P\\0' | base64 -w0")
    return sorted(name.decode(errors="surrogateescape") for name in base64.b64decode(said).split(b"\0") if name)


def sums(appliance: Machine, folder: str) -> str:
    names = "a/one a/hard big sparse suid ./-dash"
    return appliance.shell(f"cd {folder}; sha256sum {names}")


@pytest.fixture(scope="module")
def source(appliance: Machine, visitor: Visitor) -> str:
    """The guid of the folder that is imported into; the other NAS answers."""
    appliance.shell(MAKE)
    make_person(visitor, "anna")
    appliance.run("zfs", "create", "tank/old")
    start_sshd(appliance, "/root/nas_key")
    visitor.wait_until("/imports/new/ssh/", "tank/old", timeout=120)  # mounted, not only made
    return key_of(appliance, "tank/old")


@pytest.fixture(scope="module")
def page(appliance: Machine, visitor: Visitor, source: str) -> str:
    """The page of the import: set up, host key confirmed, signed in with the line that the page shows, and counted."""
    answer = visitor.send(
        "/imports/new/ssh/",
        {
            "csrfmiddlewaretoken": visitor.get("/imports/new/ssh/").hidden()["csrfmiddlewaretoken"],
            "host": "127.0.0.1",
            "port": PORT,
            "user": USER,
            "path": SOURCE,
            "folder": source,
            "existing": "none",
            "owners": f"{USER}=anna",
        },
    )
    found = re.search(r"/jobs/([0-9a-f-]{36})/", answer.url)
    assert found, answer.words
    assert visitor.ended(found[1]).startswith("Done.")
    address = re.search(r"/imports/[0-9a-f]{8}/", visitor.wait_until("/imports/", "not confirmed", timeout=90).text)
    assert address
    said = visitor.get(address[0])
    mine = appliance.run("ssh-keygen", "-lf", "/root/nas_key.pub").split()[1]
    assert mine in said.words and "restrict ssh-ed25519" in said.words
    assert visitor.ended(visitor.confirm(visitor.get(f"{address[0]}host-key/"))).startswith("Done.")
    text = visitor.wait_until(address[0], "not tested yet", timeout=90).text
    assert f"does not let this box in as {USER}" in ask_now(visitor, address[0])
    appliance.run("tee", f"/home/{USER}/line", given=shown(text, "key").encode() + b"\n")
    appliance.shell(
        f"cd /home/{USER}; mkdir -p .ssh; mv line .ssh/authorized_keys; chown -R {USER}: .ssh; chmod 700 .ssh"
    )
    assert ask_now(visitor, address[0]).startswith("Done.")
    visitor.wait_until(address[0], "ready", "Start the import", timeout=60)
    return address[0]


def start(visitor: Visitor, page: str) -> str:
    return visitor.confirm(visitor.get(f"{page}run/"))


@pytest.fixture(scope="module")
def imported(appliance: Machine, visitor: Visitor, page: str) -> str:
    """The page of the import once its first run was killed in the middle and the worker has gone on."""
    assert "Left out: 8" in visitor.get(page).words
    job = start(visitor, page)
    wait_for("some of it to have arrived", lambda: arrived(appliance), timeout=300, every=0.1)
    assert "larder-ssh" in appliance.shell("ps -o user:20= -C ssh")
    appliance.run("systemctl", "kill", "--signal=KILL", "larder-agent", check=False)
    assert "Done." not in visitor.ended(job)
    wait_for("both sides of rsync to end", lambda: appliance.shell("pgrep -x rsync || true") == "", timeout=90)
    # The worker goes on by itself.
    visitor.wait_until(page, "Import again", "files compared", timeout=600)
    return page


def arrived(appliance: Machine) -> bool:
    return appliance.shell("ls -A /tank/old/.larder-importing 2>/dev/null || true").strip() != ""


def test_everything_ordinary_is_taken_over_and_nothing_else(appliance, imported):
    assert listed(appliance, "/tank/old") == sorted(ORDINARY)
    assert sums(appliance, "/tank/old") == sums(appliance, SOURCE)
    first, second = appliance.shell("stat -c '%i %h' /tank/old/a/one /tank/old/a/hard").splitlines()
    assert first == second and first.endswith(" 2")
    assert int(appliance.run("stat", "-c", "%b", "/tank/old/sparse")) < 1000
    assert appliance.run("readlink", "/tank/old/in").strip() == "a/one"
    assert appliance.run("stat", "-c", "%Y", "/tank/old/big") == appliance.run("stat", "-c", "%Y", f"{SOURCE}/big")


def test_no_rights_of_the_other_nas_come_along(appliance, imported):
    assert appliance.shell("find /tank/old -perm /7000 -type f") == ""
    assert appliance.shell("find /tank/old -mindepth 1 -not -user anna -not -path '*/.zfs*'") == ""
    attributes = appliance.shell("getfattr -d -m - /tank/old/a/one 2>/dev/null")
    assert 'user.keep="1"' in attributes and "security.other" not in attributes
    # The access list that let somebody of the other NAS read it is gone, and the folder's own is what decides.
    number = appliance.run("id", "-u", USER).strip()
    assert f"user:{number}:" in appliance.run("getfacl", "-n", "-p", f"{SOURCE}/a/one")
    assert f"user:{number}:" not in appliance.run("getfacl", "-n", "-p", "/tank/old/a/one")


def test_folder_itself_stays_with_its_owner(appliance, imported):
    assert appliance.run("stat", "-c", "%U", "/tank/old").strip() == "root"


def test_snapshots_were_taken_before_and_after(appliance, imported):
    names = appliance.run("zfs", "list", "-H", "-t", "snapshot", "-o", "name", "tank/old")
    assert "@larder-before-" in names and "@larder-import-" in names


def test_report_says_what_was_left_out_and_is_readable_to_root_alone(appliance, visitor, imported):
    text = visitor.get(f"{imported}report/").text
    assert "0 are not as at the source" in text
    assert "Groups and access lists of the other NAS were not copied" in text
    for line in ("a/.zfs: a folder", "fifo: a device", "out: a link that leads out"):
        assert line in text
    assert appliance.shell("stat -c '%a %U' /var/lib/larder-ssh/*.report").split() == ["600", "root"]


def test_comparison_finds_a_file_that_differs_and_keeps_it(appliance, visitor, imported):
    appliance.shell(
        "touch -r /tank/old/big /root/when; printf Z | dd of=/tank/old/big bs=1 seek=9 conv=notrunc 2>/dev/null;"
        " touch -r /root/when /tank/old/big; echo mine > /tank/old/mine"
    )
    before = appliance.run("sha256sum", "/tank/old/big")
    said = visitor.ended(start(visitor, imported))
    assert "1 not as on 127.0.0.1" in said, said
    assert "  big\n" in visitor.get(f"{imported}report/").text
    assert appliance.run("sha256sum", "/tank/old/big") == before
    assert appliance.run("cat", "/tank/old/mine") == "mine\n"


INSIDE = """
import sys
from appliance import command
from appliance.imports import base
from appliance.imports.settings import read_imports

(task,) = read_imports()
tries = (
    "cat /etc/shadow; ls /tank; ls /root; ls /var/lib/larder; touch /usr/x; touch /x; mknod /folder/d c 1 3; ls -A /folder;"
    " kill -9 -1"
)
with base.open_folder(task) as handle, base.open_session(task, handle, writable=True) as session:
    found = command.run([*session.words, "sh", "-c", tries], accept=range(-64, 256))
sys.stdout.write(ascii(found.stdout + found.stderr))
"""


def test_rsync_reaches_nothing_but_the_folder(appliance, imported):
    """What a hostile server could run in place of rsync, run where rsync would."""
    appliance.put("/root/inside.py", INSIDE)
    said = appliance.run("/opt/larder/venv/bin/python", "-I", "/root/inside.py")
    assert "root:" not in said and "sparse" in said
    assert said.count("No such file or directory") == 4
    assert said.count("Read-only file system") == 2 and "Operation not permitted" in said
    assert appliance.run("systemctl", "is-active", "larder-worker").strip() == "active"


def test_other_host_key_stops_the_import(appliance, visitor, imported):
    start_sshd(appliance, "/root/other_nas_key")
    try:
        assert "another host key" in ask_now(visitor, imported)
        visitor.wait_until(imported, "key changed", timeout=90)
    finally:
        start_sshd(appliance, "/root/nas_key")
