"""Backups to another computer over real ssh, to an unprivileged user with the rights that the page asks for.
The other computer is this one by loopback: an sshd of its own, on a second pool."""

from __future__ import annotations

import html
import re

import pytest

from deploy.image.machine import Machine, wait_for
from tests.system.backups.test_pool_to_pool import FORM, PHRASE, guids, make_photos, newest, run_now, start_now, sums
from tests.visitor import PASSWORD, Visitor

ROOT, USER, PORT = "safe/attic", "peer", 2222
COPY = f"{ROOT}/photos"
TREE = ("photos", "photos/trip 2019", "photos/secret")
COPIES = {"photos": COPY, "photos/trip 2019": f"{COPY}/trip_2019", "photos/secret": f"{COPY}/secret"}
OFF = "mountpoint,readonly,setuid,devices,exec,sharenfs,larder:share,larder:backup"
PEER = "/usr/local/lib/larder-peer"
SSHD = f"/usr/sbin/sshd -p {PORT} -o PidFile=/run/peer.pid -o PerSourcePenalties=no -o ListenAddress=127.0.0.1"


def start_sshd(appliance: Machine, host_key: str) -> None:
    """The ssh server of the other computer, with this host key; one that runs is ended first."""
    appliance.shell("[ ! -e /run/peer.pid ] || kill $(cat /run/peer.pid)")
    wait_for("the port to be free", lambda: not answers(appliance), timeout=60)
    appliance.shell(
        f"mkdir -p /run/sshd; [ -e {host_key} ] || ssh-keygen -q -t ed25519 -N '' -f {host_key}; {SSHD} -h {host_key}"
    )
    wait_for("the other ssh server", lambda: answers(appliance), timeout=60)


def answers(appliance: Machine) -> bool:
    return "ssh-ed25519" in appliance.shell(f"ssh-keyscan -t ed25519 -p {PORT} 127.0.0.1 2>/dev/null || true")


def shown(page: str, name: str) -> str:
    """A command that the page shows to be copied."""
    found = re.search(rf'<pre id="{name}">(.*?)</pre>', page, re.DOTALL)
    assert found, name
    return html.unescape(found[1]) if name == "script" else html.unescape(found[1]).strip()


def ask_now(visitor: Visitor, remote: str) -> str:
    """How the test of a computer ended."""
    answer = visitor.send(
        f"{remote}test/", {"csrfmiddlewaretoken": visitor.get(remote).hidden()["csrfmiddlewaretoken"]}
    )
    found = re.search(r"/jobs/([0-9a-f-]{36})/", answer.url)
    assert found, answer.words
    return visitor.ended(found[1])


@pytest.fixture(scope="module")
def photos(appliance: Machine, visitor: Visitor) -> str:
    """The key of the folder that is backed up; the other computer answers."""
    start_sshd(appliance, "/root/first_key")
    return make_photos(appliance, visitor, 1_000_000)


@pytest.fixture(scope="module")
def remote(appliance: Machine, visitor: Visitor, photos: str) -> str:
    """The page of the computer, set up."""
    return add_computer(visitor, appliance, "127.0.0.1", PORT, "/root/first_key.pub")


def add_computer(visitor: Visitor, there: Machine, host: str, port: int, host_key: str) -> str:
    """The page of a computer: added, its host key confirmed with the password, and set up by
    the commands that it shows."""
    page_of_each = r"/backups/computers/[0-9a-f]{8}/"
    others = set(re.findall(page_of_each, visitor.get("/backups/computers/").text))
    answer = visitor.post("/backups/computers/new/", host=host, port=port, user=USER, root=ROOT)
    found = re.search(r"/jobs/([0-9a-f-]{36})/", answer.url)
    assert found, answer.words
    assert visitor.ended(found[1]).startswith("Done.")
    page = visitor.wait_until("/backups/computers/", host, "not confirmed", timeout=90)
    address = sorted(set(re.findall(page_of_each, page.text)) - others)
    assert len(address) == 1, address
    said = visitor.get(address[0])
    its_own = there.run("ssh-keygen", "-lf", host_key).split()[1]
    assert its_own in said.words
    assert "SHA256" in said.words and "restrict,command=" in said.words
    review = visitor.get(f"{address[0]}host-key/")
    assert its_own in review.words
    assert visitor.ended(visitor.confirm(review, password=PASSWORD)).startswith("Done.")
    text = visitor.wait_until(address[0], "not tested yet", timeout=90).text
    for name in ("user", "create"):
        there.shell(shown(text, name))
    let_in(there, shown(text, "key"))
    put_peer(there, visitor)
    there.shell(shown(text, "allow"))
    assert ask_now(visitor, address[0]).startswith("Done.")
    visitor.wait_until(address[0], "ready", "ZFS there", timeout=60)
    return address[0]


def let_in(there: Machine, line: str) -> None:
    """Put the line that the page shows into the user's authorized_keys."""
    there.run("tee", f"/home/{USER}/line", given=line.encode() + b"\n")
    there.shell(f"cd /home/{USER}; mkdir -p .ssh; mv line .ssh/authorized_keys; chown -R {USER}: .ssh; chmod 700 .ssh")


def put_peer(there: Machine, visitor: Visitor) -> None:
    """Put the program that the page offers in its place."""
    program = visitor.get("/backups/computers/larder-peer/").text.encode()
    there.run("tee", PEER, given=program)
    there.run("chmod", "755", PEER)


@pytest.fixture(scope="module")
def task(visitor: Visitor, photos: str, remote: str) -> str:
    """The address of the backup, set up by its form; its first copy has been made."""
    return add_task(visitor, photos, remote, "127.0.0.1")


def add_task(visitor: Visitor, key: str, remote: str, host: str, name: str = "photos") -> str:
    """The address of a backup of tank/NAME to a computer, of which the page is given, once its
    first copy has been made."""
    place = f"computer-{remote.split('/')[-2]}"
    visitor.wait_until(f"/backups/of/{key}/new/", f"{host} (", timeout=90)
    review = visitor.post(f"/backups/of/{key}/new/", pool=place, name=name, **FORM)
    assert "Copies are never destroyed from here" in review.words
    assert visitor.ended(visitor.confirm(review)).startswith("Done.")
    page = visitor.wait_until("/backups/", f"tank/{name}", host, "good", timeout=300)
    found = re.search(rf"/backups/of/{key}/([0-9a-f]{{8}})/", page.text)
    assert found
    return found[0]


def there(appliance: Machine) -> str:
    """Everything on the pool of the copies, by guid."""
    return appliance.run("zfs", "list", "-H", "-p", "-t", "all", "-o", "name,guid", "-r", "safe")


def test_every_folder_arrives_with_equal_guids_and_files(appliance, task):
    for name, copy in COPIES.items():
        assert guids(appliance, f"tank/{name}")[-1:] == guids(appliance, copy)[-1:] != []
        if name != "photos/secret":
            assert sums(appliance, newest(appliance, f"tank/{name}")) == sums(appliance, newest(appliance, copy))
    copy = COPIES["photos/secret"]
    assert appliance.run("zfs", "get", "-H", "-o", "value", "keystatus", copy).strip() == "unavailable"
    appliance.shell(f"echo '{PHRASE}' | zfs load-key {copy}")
    try:
        assert sums(appliance, newest(appliance, "tank/photos/secret")) == sums(appliance, newest(appliance, copy))
    finally:
        appliance.run("zfs", "unload-key", copy)


def test_copies_are_out_of_use_and_ssh_was_never_root(appliance, task):
    for copy in COPIES.values():
        said = appliance.run("zfs", "get", "-H", "-p", "-o", "property,value", OFF, copy)
        assert dict(line.split("\t") for line in said.splitlines()) == {
            "mountpoint": "none",
            "readonly": "on",
            "setuid": "off",
            "devices": "off",
            "exec": "off",
            "sharenfs": "off",
            "larder:share": "-",
            "larder:backup": "-",
        }
        mark = appliance.run("zfs", "get", "-H", "-o", "value,source", "larder:copy-of", copy)
        assert "local" in mark and '"guid":' in mark
    assert "attic" not in appliance.run("zfs", "mount")
    assert appliance.shell("stat -c '%a %U %G' /var/lib/larder-ssh/*.key").split() == ["640", "root", "larder-ssh"]
    assert "Permission denied" in appliance.shell("runuser -u larder -- cat /var/lib/larder-ssh/*.key 2>&1 || true")


def test_only_what_changed_is_sent(appliance, visitor, task):
    before = guids(appliance, COPY)
    appliance.shell("echo more > /tank/photos/three; sync")
    job, said = run_now(visitor, task)
    assert said.startswith("Done."), said
    words = visitor.get(f"/jobs/{job}/").words
    assert "-i tank/photos@larder-backup-" in words and "Nothing new in 1 of 3 folders" in words
    assert guids(appliance, COPY)[:-1] == before
    assert sums(appliance, newest(appliance, COPY)) == sums(appliance, newest(appliance, "tank/photos"))


def test_interrupted_copy_goes_on_where_it_was(appliance, visitor, task):
    appliance.shell("head -c 60000000 /dev/urandom > /tank/photos/large; sync; zpool sync tank")
    job = start_now(visitor, task)
    wait_for("some of it to have arrived", lambda: growing(appliance), timeout=180, every=0.2)
    assert "larder-ssh" in appliance.shell("ps -o user:20= -C ssh")
    appliance.run("systemctl", "kill", "--signal=KILL", "larder-agent", check=False)
    assert "Done." not in visitor.ended(job)
    wait_for("the other side to keep what it has", lambda: token(appliance) != "-", timeout=60)
    job, said = run_now(visitor, task)
    assert said.startswith("Done."), said
    assert re.search(r"zfs send -t 1-[0-9a-f-]+", visitor.get(f"/jobs/{job}/").words)
    assert sums(appliance, newest(appliance, COPY)) == sums(appliance, newest(appliance, "tank/photos"))


def test_computer_that_falls_silent_ends_the_run_and_a_later_one_goes_on(appliance, visitor, task):
    """All that the other computer's user runs stands still, as where the whole computer hangs:
    only ssh can notice that."""
    # More than passes on a busy computer between the look and the signal.
    appliance.shell("head -c 150000000 /dev/urandom > /tank/photos/silent; sync; zpool sync tank")
    job = start_now(visitor, task)
    wait_for("some of it to have arrived", lambda: growing(appliance), timeout=180, every=0.2)
    appliance.run("pkill", "-STOP", "-u", USER)
    try:
        said = visitor.ended(job)
        assert "The connection to 127.0.0.1 broke off" in said, said
        # What it received is still open there, as after a link that was cut: the next run says so. But where
        # the signal met the receiver while it waited for more, the kernel has ended it and kept what arrived:
        # then the next run goes on.
        job, said = run_now(visitor, task)
        went_on = said.startswith("Done.")
        assert went_on or "is still receiving an earlier copy" in said, said
    finally:
        appliance.run("pkill", "-CONT", "-u", USER)
    if not went_on:
        wait_for("the other side to keep what it has", lambda: not receiving(appliance), timeout=60)
        assert token(appliance) != "-"
        job, said = run_now(visitor, task)
        assert said.startswith("Done."), said
    assert re.search(r"zfs send -t 1-[0-9a-f-]+", visitor.get(f"/jobs/{job}/").words)
    assert sums(appliance, newest(appliance, COPY)) == sums(appliance, newest(appliance, "tank/photos"))


def receiving(appliance: Machine) -> bool:
    return bool(appliance.run("pgrep", "-u", USER, "-x", "zfs", check=False))


def token(appliance: Machine) -> str:
    return appliance.run("zfs", "get", "-H", "-o", "value", "receive_resume_token", COPY).strip()


def growing(appliance: Machine) -> bool:
    return int(appliance.run("zfs", "get", "-H", "-p", "-o", "value", "usedbychildren", COPY)) > 12_000_000


def test_right_that_is_missing_is_named_and_nothing_counts(appliance, visitor, remote, task):
    appliance.run("zfs", "unallow", "-u", USER, "userprop", ROOT)
    try:
        before = guids(appliance, COPY)
        appliance.shell("date > /tank/photos/four; sync")
        _job, said = run_now(visitor, task)
        assert "userprop is missing" in said and f"zfs allow -u {USER} userprop {ROOT}" in said
        assert guids(appliance, COPY) == before
    finally:
        appliance.run("zfs", "allow", "-u", USER, "userprop", ROOT)
    assert run_now(visitor, task)[1].startswith("Done.")


def test_copy_that_was_written_to_is_left_as_it_is(appliance, visitor, task):
    trip = COPIES["photos/trip 2019"]
    appliance.shell(
        f"zfs set -u readonly=off canmount=noauto mountpoint=/mnt/copy {trip}; zfs mount {trip};"
        f" echo mine > /mnt/copy/mine; sync; zfs unmount {trip}; zfs inherit readonly {trip}; zfs inherit "
        f"mountpoint {trip}"
    )
    before = guids(appliance, trip)
    appliance.shell("date > /tank/elsewhere/five; sync")
    _job, said = run_now(visitor, task)
    assert "trip_2019 were changed" in said and guids(appliance, trip) == before
    appliance.run("zfs", "rollback", newest(appliance, trip))
    assert run_now(visitor, task)[1].startswith("Done.")


@pytest.mark.parametrize(
    "words", ["zfs destroy -r safe", "receive ../x 5 raw", "list\nid", "hello;id", "abort", "sh", ""]
)
def test_forged_commands_are_refused(appliance, task, words):
    before = there(appliance)
    key = appliance.shell("ls /var/lib/larder-ssh/*.key").strip()
    appliance.shell(f"install -m 600 {key} /root/stolen")
    said = appliance.shell(
        "ssh -F none -i /root/stolen -o BatchMode=yes -o StrictHostKeyChecking=no -o "
        f"UserKnownHostsFile=/dev/null -p {PORT}"
        f" {USER}@127.0.0.1 '{words}' </dev/null 2>&1 && echo status=0 || echo status=$?"
    )
    assert "larder-peer: " in said and "status=64" in said, said
    assert there(appliance) == before


def test_rights_destroy_nothing(appliance, task):
    before = there(appliance)
    for argv in (
        ["zfs", "destroy", newest(appliance, COPY)],
        ["zfs", "destroy", "-r", COPY],
        ["zfs", "rollback", "-r", newest(appliance, COPY)],
        ["zfs", "rename", COPY, f"{ROOT}/x"],
        ["zfs", "set", "readonly=off", COPY],
    ):
        said = appliance.shell(f"runuser -u {USER} -- {' '.join(argv)} 2>&1 && echo status=0 || echo status=$?")
        assert "permission denied" in said and "status=0" not in said, said
    assert there(appliance) == before


def test_other_host_key_stops_the_backup_and_is_an_alert(appliance, visitor, remote, task):
    before = guids(appliance, COPY)
    appliance.shell("date > /tank/photos/six; sync")
    start_sshd(appliance, "/root/second_key")
    try:
        _job, said = run_now(visitor, task)
        assert "showed another host key" in said and "Nothing was sent" in said
        assert guids(appliance, COPY) == before
        second = appliance.run("ssh-keygen", "-lf", "/root/second_key.pub").split()[1]
        visitor.wait_until(remote, "shows another host key", second, timeout=90)
        visitor.wait_until("/alerts/", "127.0.0.1 shows another host key", timeout=120)
        assert "Back up now" not in visitor.get(task).words
    finally:
        start_sshd(appliance, "/root/first_key")
    assert ask_now(visitor, remote).startswith("Done.")
    visitor.wait_until(task, "Back up now", timeout=120)
    assert run_now(visitor, task)[1].startswith("Done.")


def test_each_step_that_is_missing_there_is_named(appliance, visitor, remote, task):
    """The steps that the page asks for, undone one by one, each named by the test of the computer."""
    appliance.run("zfs", "unallow", "-u", USER, ROOT)
    ask_now(visitor, remote)
    text = visitor.wait_until(remote, "create,mount,receive:append,userprop is missing", timeout=60).text
    line, allow = shown(text, "key"), shown(text, "allow")
    appliance.run("rm", PEER)
    ask_now(visitor, remote)
    visitor.wait_until(remote, "has no larder-peer", timeout=60)
    appliance.run("rm", f"/home/{USER}/.ssh/authorized_keys")
    assert f"does not let this box in as {USER}" in ask_now(visitor, remote)
    let_in(appliance, line)
    put_peer(appliance, visitor)
    appliance.shell(allow)
    assert ask_now(visitor, remote).startswith("Done.")
    visitor.wait_until(remote, "ready", timeout=60)


def test_computer_in_use_is_not_removed(visitor, remote, task):
    assert "is backed up there" in visitor.get(f"{remote}remove/").words
