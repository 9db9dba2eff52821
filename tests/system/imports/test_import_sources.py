"""Import of files from an SMB share, an NFS export and an rsync service. The other NAS is this box by loopback, with
servers of its own that the test starts, stops in the middle, and lets hang."""

from __future__ import annotations

import base64
import re

import pytest

from deploy.image.machine import Machine, wait_for
from tests.system.sharing import job_in, key_of, make_person
from tests.visitor import Visitor

STATE = "pool"
USER, SECRET = "oldnas", "gute Nacht, 100 %"
HOME = f"/home/{USER}"
SMB_PORT, RSYNC_PORT = 4450, 8730
BIG = 100_000_000
MAKE = f"""
set -e
useradd --create-home --shell /bin/sh {USER}
mkdir -p {HOME}/photos/a/b/#recycle {HOME}/photos/a/.zfs/snapshot/x {HOME}/photos/@eaDir {HOME}/photos/.hidden
cd {HOME}/photos
echo one > a/one; ln a/one a/hard; truncate -s 20M sparse; echo end >> sparse
ln -s /etc/passwd out; ln -s a/one in
cp /usr/bin/true suid; chmod 4755 suid
printf d > ./-dash; printf u > 'Übung & (100 %)'; printf h > .hidden/file; printf z > zz-gone; printf s > a/b/secret; chmod 600 a/b/secret
touch a/.zfs/snapshot/x/f @eaDir/f a/b/#recycle/f
head -c {BIG} /dev/urandom > big
cp -a {HOME}/photos {HOME}/odd; cd {HOME}/odd
printf n > "$(printf 'new\\nline')"; printf n > "$(printf '\\377\\376')"; printf l > "$(head -c 255 /dev/zero | tr '\\0' l)"; mkfifo fifo
chown -hR {USER}: {HOME}; chmod 4755 {HOME}/*/suid; chmod 755 {HOME}
"""
PLAIN = [
    "-dash",
    ".hidden",
    ".hidden/file",
    "a",
    "a/b",
    "a/b/secret",
    "a/hard",
    "a/one",
    "big",
    "sparse",
    "suid",
    "Übung & (100 %)",
]
ODD = ["l" * 255, "new\nline", "\udcff\udcfe"]
SMB_CONF = f"""[global]
   server role = standalone
   server min protocol = SMB2_10
   smb ports = {SMB_PORT}
   interfaces = 127.0.0.1
   bind interfaces only = yes
   private dir = /root/nas
   lock directory = /root/nas
   state directory = /root/nas
   cache directory = /root/nas
   pid directory = /root/nas
   ncalrpc dir = /root/nas/rpc
   log file = /root/nas/log
   load printers = no
   disable spoolss = yes
   passdb backend = tdbsam
[photos]
   path = {HOME}/photos
   read only = yes
   valid users = {USER}
"""
RSYNC_CONF = f"""port = {RSYNC_PORT}
address = 127.0.0.1
pid file = /root/nas/rsyncd.pid
log file = /root/nas/rsyncd.log
uid = root
[photos]
   path = {HOME}/odd
   auth users = {USER}
   secrets file = /root/nas/rsyncd.secrets
[open]
   path = {HOME}/odd
   fake super = no
"""
# In a file: whatever is exported by command alone goes with the next `exportfs -r`, which the box
# does for shares of its own.
EXPORT = f'"{HOME}/odd" 127.0.0.1(ro,no_root_squash,no_subtree_check)\n'
MOUNTS = "cat /proc/[0-9]*/mountinfo 2>/dev/null | grep -E ' - (cifs|smb3|nfs|nfs4) ' || true"
START_SMB = "smbd -D --configfile=/root/nas/smb.conf"


@pytest.fixture(scope="module")
def files(appliance: Machine) -> None:
    """The files of the other NAS, and a folder for its servers."""
    appliance.shell(MAKE)
    appliance.shell("mkdir -m 700 /root/nas")


@pytest.fixture(scope="module")
def anna(visitor: Visitor) -> None:
    """Somebody here who gets files."""
    make_person(visitor, "anna")


@pytest.fixture(scope="module")
def smb_server(appliance: Machine, files: None) -> None:
    appliance.put("/root/nas/smb.conf", SMB_CONF)
    appliance.run("smbpasswd", "-c", "/root/nas/smb.conf", "-s", "-a", USER, given=f"{SECRET}\n{SECRET}\n")
    appliance.shell(START_SMB)
    wait_for("Samba of the other NAS", lambda: listens(appliance, SMB_PORT), timeout=60)


@pytest.fixture(scope="module")
def rsync_server(appliance: Machine, files: None) -> None:
    appliance.put("/root/nas/rsyncd.conf", RSYNC_CONF)
    appliance.put("/root/nas/rsyncd.secrets", f"{USER}:{SECRET}\n", mode="0600")
    appliance.shell("rsync --daemon --config=/root/nas/rsyncd.conf")
    wait_for("the rsync service of the other NAS", lambda: listens(appliance, RSYNC_PORT), timeout=60)


@pytest.fixture(scope="module")
def nfs_server(appliance: Machine, files: None) -> None:
    appliance.put("/etc/exports.d/oldnas.exports", EXPORT)
    appliance.shell("systemctl start nfs-server; exportfs -r")
    wait_for("the NFS server", lambda: listens(appliance, 2049), timeout=60)


def signal_smbd(appliance: Machine, name: str) -> None:
    """Send a signal to the Samba of the other NAS and to its processes for connections."""
    appliance.shell(
        f"for file in /root/nas/smbd*.pid; do main=$(cat $file); kill -{name} $main $(pgrep -P $main); done"
    )


def mounts_tried(appliance: Machine) -> int:
    """How often the kernel was asked to mount a share so far."""
    return int(appliance.shell("dmesg | grep -c 'Attempting to mount' || true"))


def listens(appliance: Machine, port: int) -> bool:
    return bool(appliance.shell(f"ss -Hltn 'sport = :{port}'").strip())


def set_up(
    appliance: Machine, visitor: Visitor, kind: str, folder: str, *, password: str = SECRET, **fields: object
) -> str:
    """The page of an import into a new folder, set up by its form and its review."""
    appliance.run("zfs", "create", f"tank/{folder}")
    form = f"/imports/new/{kind}/"
    visitor.wait_until(form, f"tank/{folder}", timeout=120)  # mounted, not only made
    given = {
        "host": "127.0.0.1",
        "folder": key_of(appliance, f"tank/{folder}"),
        "existing": "none",
        "owners": "",
        **fields,
    }
    review = visitor.send(form, {**visitor.get(form).hidden(), **given})
    assert "Nothing proves that it is the right computer" in review.words, review.words
    typed = {"secret": password} if fields.get("user") else {}
    assert visitor.ended(visitor.confirm(review, **typed)).startswith("Done.")
    page = visitor.wait_until("/imports/", f"tank/{folder}", timeout=90).text
    row = next(row for row in page.split("<tr>") if f"tank/{folder}" in row)
    found = re.search(r"/imports/[0-9a-f]{8}/", row)
    assert found
    return found[0]


def ask_now(visitor: Visitor, page: str) -> str:
    """How counting ended."""
    return visitor.ended(
        job_in(visitor.send(f"{page}test/", {"csrfmiddlewaretoken": visitor.get(page).hidden()["csrfmiddlewaretoken"]}))
    )


def start(visitor: Visitor, page: str) -> str:
    visitor.wait_until(page, "Start the import", timeout=60)
    return visitor.confirm(visitor.get(f"{page}run/"))


def arrives(appliance: Machine, folder: str) -> None:
    wait_for(
        "some of it to have arrived",
        lambda: appliance.shell(f"ls -A /tank/{folder}/.larder-importing 2>/dev/null || true").strip(),
        timeout=300,
        every=0.1,
    )


def listed(appliance: Machine, folder: str) -> list[str]:
    said = appliance.shell(f"cd {folder}; find . -mindepth 1 -not -path './.zfs*' -printf '%P\\0' | base64 -w0")
    return sorted(name.decode(errors="surrogateescape") for name in base64.b64decode(said).split(b"\0") if name)


def check_copy(appliance: Machine, folder: str, source: str, names: list[str]) -> None:
    found = listed(appliance, f"/tank/{folder}")
    assert [name for name in found if name not in {"in", "zz-gone"}] == sorted(names)
    files = "a/one a/hard big sparse suid ./-dash .hidden/file a/b/secret"
    assert appliance.shell(f"cd /tank/{folder}; sha256sum {files}") == appliance.shell(
        f"cd {source}; sha256sum {files}"
    )
    assert int(appliance.run("stat", "-c", "%b", f"/tank/{folder}/sparse")) < 1000
    assert appliance.run("stat", "-c", "%Y", f"/tank/{folder}/big") == appliance.run(
        "stat", "-c", "%Y", f"{source}/big"
    )
    assert appliance.shell(f"find /tank/{folder} -perm /7000 -type f") == ""


def check_links_and_owner(appliance: Machine, folder: str) -> None:
    """Hard links are one file here too, and all files are anna's."""
    first, second = appliance.shell(f"stat -c '%i %h' /tank/{folder}/a/one /tank/{folder}/a/hard").splitlines()
    assert first == second and first.endswith(" 2")
    assert appliance.shell(f"find /tank/{folder} -mindepth 1 -not -user anna -not -path '*/.zfs*'") == ""


def check_nothing_left(appliance: Machine) -> None:
    assert appliance.shell(MOUNTS) == ""
    found = appliance.shell(
        f"grep -rlF '{SECRET}' /run/larder /var/lib/larder /var/lib/redis /var/log /etc 2>/dev/null || true;"
        f" journalctl --no-pager | grep -F '{SECRET}' || true"
    )
    assert found == ""


def log_of(visitor: Visitor, job: str) -> str:
    return visitor.get(f"/jobs/{job}/").words


# --- SMB --------------------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def share(appliance: Machine, visitor: Visitor, smb_server: None) -> str:
    return set_up(appliance, visitor, "smb", "share", port=SMB_PORT, user=USER, path="photos")


def test_smb_wrong_password_or_share_says_so_and_leaves_nothing(appliance, visitor, smb_server):
    page = set_up(appliance, visitor, "smb", "wrong", port=SMB_PORT, user=USER, path="photos", password="falsch")
    assert f"does not let {USER} in" in ask_now(visitor, page)
    other = set_up(appliance, visitor, "smb", "none", port=SMB_PORT, user=USER, path="nothing")
    assert "has no share nothing" in ask_now(visitor, other)
    closed = set_up(appliance, visitor, "smb", "closed", port=4451, user=USER, path="photos")
    assert "Nothing answers at 127.0.0.1, port 4451" in ask_now(visitor, closed)
    review = visitor.get(f"{page}password/")
    assert visitor.ended(visitor.confirm(review, secret=SECRET)).startswith("Done.")
    assert ask_now(visitor, page).startswith("Done.")
    for one in (page, other, closed):
        key = one.split("/")[2]
        assert appliance.shell(f"stat -c '%a %U' /var/lib/larder-ssh/{key}.password").split() == ["600", "root"]
        assert visitor.ended(visitor.confirm(visitor.get(f"{one}remove/"))).startswith("Done.")
        assert appliance.shell(f"ls /var/lib/larder-ssh/{key}* 2>/dev/null || true") == ""
    check_nothing_left(appliance)


def test_smb_agent_killed_with_the_mount_up_leaves_none_and_the_import_goes_on(appliance, visitor, share):
    said = ask_now(visitor, share)
    assert said.startswith("Done."), said
    assert "@eaDir: a folder of the other NAS's own" in visitor.wait_until(share, "ready", timeout=60).words
    job = start(visitor, share)
    arrives(appliance, "share")
    mounted = appliance.shell(MOUNTS)
    assert "ro,nosuid,nodev,noexec" in mounted and "/run/larder/importing/source" in mounted
    assert appliance.shell("grep -c importing/source /proc/1/mountinfo || true").strip() == "0"
    appliance.run("systemctl", "kill", "--signal=KILL", "larder-agent", check=False)
    wait_for("the mount to be gone", lambda: appliance.shell(MOUNTS) == "", timeout=60)
    assert "Done." not in visitor.ended(job)
    visitor.wait_until(share, "Import again", "files compared", timeout=900)
    check_copy(appliance, "share", f"{HOME}/photos", PLAIN)
    assert "zz-gone" in listed(appliance, "/tank/share")
    check_nothing_left(appliance)


def test_smb_import_whose_power_was_cut_goes_on_by_itself(appliance, visitor, smb_server):
    page = set_up(appliance, visitor, "smb", "cut", port=SMB_PORT, user=USER, path="photos")
    assert ask_now(visitor, page).startswith("Done.")
    appliance.run("sync")
    job = start(visitor, page)
    arrives(appliance, "cut")
    appliance.cut_power()
    appliance.power_on()
    appliance.set_clock()
    assert appliance.shell(MOUNTS) == ""
    appliance.shell(START_SMB)
    wait_for("Samba of the other NAS", lambda: listens(appliance, SMB_PORT), timeout=60)
    visitor.sign_in()
    assert visitor.ended(job).startswith("Interrupted.")
    visitor.wait_until(page, "Import again", "files compared", timeout=900)
    check_copy(appliance, "cut", f"{HOME}/photos", PLAIN)
    assert "zz-gone" in listed(appliance, "/tank/cut")
    check_nothing_left(appliance)


def test_smb_server_that_hangs_is_noticed_and_the_import_goes_on_once_it_answers(appliance, visitor, smb_server):
    page = set_up(appliance, visitor, "smb", "hang", port=SMB_PORT, user=USER, path="photos")
    assert ask_now(visitor, page).startswith("Done.")
    job = start(visitor, page)
    arrives(appliance, "hang")
    tried = mounts_tried(appliance)
    signal_smbd(appliance, "STOP")
    try:
        wait_for("it to ask again", lambda: mounts_tried(appliance) > tried, timeout=300)
    finally:
        signal_smbd(appliance, "CONT")
    assert visitor.ended(job, timeout=900).startswith("Done.")
    assert "broke off" in log_of(visitor, job)
    check_copy(appliance, "hang", f"{HOME}/photos", PLAIN)
    check_nothing_left(appliance)


def test_smb_server_that_stopped_is_a_sentence(appliance, visitor, share):
    signal_smbd(appliance, "TERM")
    try:
        wait_for("the port to close", lambda: not listens(appliance, SMB_PORT), timeout=60)
        assert "Nothing answers at 127.0.0.1" in ask_now(visitor, share)
    finally:
        appliance.shell(START_SMB)
    check_nothing_left(appliance)


# --- NFS --------------------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def export(appliance: Machine, visitor: Visitor, nfs_server: None, anna: None) -> str:
    uid = appliance.run("id", "-u", USER).strip()
    return set_up(appliance, visitor, "nfs", "export", port=2049, path=f"{HOME}/odd", owners=f"{uid}=anna")


def test_nfs_wrong_path_says_so(appliance, visitor, nfs_server):
    page = set_up(appliance, visitor, "nfs", "nowhere", port=2049, path="/nowhere")
    said = ask_now(visitor, page)
    assert "has no export /nowhere" in said or "does not export /nowhere" in said, said
    check_nothing_left(appliance)


def test_nfs_import_goes_on_after_the_server_stopped_in_the_middle(appliance, visitor, export):
    said = ask_now(visitor, export)
    assert said.startswith("Done."), said
    job = start(visitor, export)
    arrives(appliance, "export")
    appliance.shell("systemctl stop nfs-server")
    try:
        wait_for("the mount to be gone", lambda: appliance.shell(MOUNTS) == "", timeout=400)
    finally:
        appliance.run("systemctl", "start", "nfs-server")
    assert visitor.ended(job, timeout=1200).startswith("Done."), log_of(visitor, job)
    check_copy(appliance, "export", f"{HOME}/odd", [*PLAIN, *ODD])
    check_links_and_owner(appliance, "export")
    check_nothing_left(appliance)


# --- the rsync service ------------------------------------------------------------------------------------------------
def test_rsync_wrong_module_names_those_that_there_are(appliance, visitor, rsync_server):
    page = set_up(appliance, visitor, "rsync", "module", port=RSYNC_PORT, path="pictures")
    said = ask_now(visitor, page)
    assert "has no module pictures" in said and "It lists these: photos, open." in said


def test_rsync_wrong_or_no_password_says_so(appliance, visitor, rsync_server):
    page = set_up(appliance, visitor, "rsync", "pass", port=RSYNC_PORT, user=USER, path="photos", password="falsch")
    assert f"does not let {USER} in" in ask_now(visitor, page)
    page = set_up(appliance, visitor, "rsync", "without", port=RSYNC_PORT, path="photos")
    assert "lets nobody in without a password" in ask_now(visitor, page)


def test_rsync_service_is_imported_while_a_file_vanishes(appliance, visitor, rsync_server, anna):
    uid = appliance.run("id", "-u", USER).strip()
    page = set_up(
        appliance, visitor, "rsync", "service", port=RSYNC_PORT, user=USER, path="photos", owners=f"{uid}=anna"
    )
    said = ask_now(visitor, page)
    assert said.startswith("Done."), said
    job = start(visitor, page)
    arrives(appliance, "service")
    appliance.run("rm", f"{HOME}/odd/zz-gone")
    assert SECRET not in appliance.shell("ps -eo args")
    assert visitor.ended(job, timeout=900).startswith("Done."), log_of(visitor, job)
    check_copy(appliance, "service", f"{HOME}/odd", [*PLAIN, *ODD])
    check_links_and_owner(appliance, "service")
    check_nothing_left(appliance)
