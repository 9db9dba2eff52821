"""Users: one password for Samba and AFP, no sign-in to the box, disable and enable, remove with or without an heir."""

from __future__ import annotations

import re

import pytest

from deploy.image.machine import wait_for
from tests.system import canary, sharing
from tests.system.persons import done, make, pressed, smb, system_takes
from tests.visitor import create_pool, disk_paths

FIRST, SECOND = "first words 1", 'second: "words" ä'
CANARY = "canary-password-8q2z"


@pytest.fixture(scope="module")
def people(appliance, visitor):
    """A pool with a folder for homes, and anna."""
    create_pool(appliance, "-O", "acltype=posix", "-O", "xattr=sa", "tank", "mirror", *disk_paths(appliance, 1, 2))
    appliance.shell("zfs create tank/homes; zfs create tank/common")
    visitor.wait_until("/folders/", "tank/homes")
    make(visitor, "anna", FIRST, display="Anna Ö")
    # Samba runs only where something is shared.
    assert sharing.set_share(visitor, appliance, "tank/common", name="common", write="anna").startswith("Done.")
    return appliance


def uid(appliance, name: str) -> int:
    return int(appliance.run("id", "-u", name))


def test_both_keepers_have_the_password_and_a_new_one_replaces_it_in_both(people, visitor):
    assert system_takes(people, "anna", FIRST)
    assert not system_takes(people, "anna", SECOND)
    done(visitor, visitor.confirm(visitor.get("/users/anna/password/"), secret=SECOND, again=SECOND))
    assert system_takes(people, "anna", SECOND)
    assert not system_takes(people, "anna", FIRST)
    hashes = people.run("pdbedit", "-L", "-w", "anna").split(":")
    assert re.fullmatch(r"[0-9A-F]{32}", hashes[3])
    # The helper of Samba that knows the list is started anew for it: on a busy computer the first list may be empty.
    asked, login = (
        ("smbclient", "-t", "120", "-L", "localhost", "-A", "/dev/stdin"),
        f"username = anna\npassword = {SECOND}\n",
    )
    wait_for("the list of shares", lambda: "IPC$" in people.run(*asked, given=login), timeout=120)


def test_the_account_opens_no_way_into_the_box(people):
    assert people.run("getent", "passwd", "anna").strip().endswith(":/nonexistent:/usr/sbin/nologin")
    assert "not available" in people.run("su", "anna", "-c", "id", check=False).lower() or "uid=" not in people.run(
        "su", "anna", "-c", "id", check=False
    )
    assert "denygroups larder-people" in people.run("sshd", "-T")


def test_sshd_refuses_the_account_even_with_a_key_that_it_would_take(people):
    """A second sshd on the loopback, with the box's own settings and a key for everybody:
    root gets in, anna does not."""
    people.shell(
        "ssh-keygen -q -t ed25519 -N '' -f /root/people-key; mkdir -p -m 755 /etc/ssh/people-keys; "
        "for who in root anna; do cp /root/people-key.pub /etc/ssh/people-keys/$who; chmod 644 "
        "/etc/ssh/people-keys/$who; done; "
        "/usr/sbin/sshd -p 2299 -o ListenAddress=127.0.0.1 -o PidFile=/run/people-sshd.pid -o "
        "AuthorizedKeysFile=/etc/ssh/people-keys/%u"
    )
    try:
        options = (
            "-p 2299 -i /root/people-key -o BatchMode=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null"
        )
        assert people.shell(f"ssh {options} root@127.0.0.1 echo came-in").strip().endswith("came-in")
        refused = people.shell(
            f"timeout 60 ssh {options} -N -L 127.0.0.1:2300:127.0.0.1:22 anna@127.0.0.1 2>&1 || echo status $?"
        )
        assert "Permission denied" in refused
        assert "status 255" in refused
    finally:
        people.shell("kill $(cat /run/people-sshd.pid); rm -rf /etc/ssh/people-keys /root/people-key*")


def test_disabled_is_closed_in_both_and_enabled_opens_both_with_the_old_password(people, visitor):
    page = "/users/anna/account/"
    pressed(visitor, page, "/users/anna/switch/", to="off")
    visitor.wait_until(page, "disabled")
    assert not system_takes(people, "anna", SECOND)
    assert re.search(r"\[D?U?D? *\]", people.run("pdbedit", "-L", "-w", "anna"))
    assert "D" in people.run("pdbedit", "-L", "-w", "anna").split(":")[4]
    assert "is disabled" in visitor.get("/users/anna/password/").words
    pressed(visitor, page, "/users/anna/switch/", to="on")
    visitor.wait_until(page, "enabled")
    assert system_takes(people, "anna", SECOND)
    assert "D" not in people.run("pdbedit", "-L", "-w", "anna").split(":")[4]
    assert "Anna Ö" in visitor.get(page).words


def test_a_home_is_for_its_owner_alone(people, visitor, tmp_path):
    make(visitor, "ben", FIRST, home="tank/homes")
    as_ben = ["setpriv", f"--reuid={uid(people, 'ben')}", "--regid=larder-people", "--clear-groups"]
    as_anna = ["setpriv", f"--reuid={uid(people, 'anna')}", "--regid=larder-people", "--clear-groups"]
    people.run(*as_ben, "touch", "/tank/homes/ben/mine")
    assert "mine" in people.run(*as_ben, "ls", "/tank/homes/ben")
    assert "Permission denied" in people.run(
        "sh", "-c", 'exec "$@" 2>&1', "-", *as_anna, "ls", "/tank/homes/ben", check=False
    )
    worked, said = smb(people, tmp_path, "ben", SECOND, "IPC$", "exit")
    assert not worked, said
    assert "NT_STATUS_LOGON_FAILURE" in said


def test_files_of_somebody_removed_stay_and_fall_to_nobody_new(people, visitor):
    former = uid(people, "ben")
    done(visitor, visitor.confirm(visitor.get("/users/ben/remove/")))
    assert people.run("stat", "-c", "%u", "/tank/homes/ben/mine").strip() == str(former)
    assert "ben" not in people.run("pdbedit", "-L")
    make(visitor, "ben", FIRST)
    assert uid(people, "ben") > former
    assert '"ben"' not in people.run("zfs", "get", "-H", "-o", "value", "larder:access", "tank/homes/ben")


def test_files_of_somebody_removed_can_be_given_to_another(people, visitor):
    make(visitor, "cleo", FIRST, home="tank/homes")
    people.run(
        "setpriv",
        f"--reuid={uid(people, 'cleo')}",
        "--regid=larder-people",
        "--clear-groups",
        "mkdir",
        "/tank/homes/cleo/letters",
    )
    people.run("ln", "-s", "/etc/hostname", "/tank/homes/cleo/letters/link")
    people.run("chown", "-h", "cleo", "/tank/homes/cleo/letters/link")
    before = people.run("stat", "-c", "%u", "/etc/hostname")
    done(visitor, visitor.confirm(visitor.get("/users/cleo/remove/?heir=anna")))
    assert people.run("stat", "-c", "%U", "/tank/homes/cleo/letters").strip() == "anna"
    (kept,) = people.shell("zfs list -H -o name -t snapshot | grep larder-before-").split()
    dataset, _, name = kept.partition("@")
    assert dataset == "tank/homes/cleo"
    there = people.run("stat", "-c", "%u", f"/{dataset}/.zfs/snapshot/{name}/letters").strip()
    assert int(there) > uid(people, "anna")
    assert people.run("stat", "-c", "%u", "/etc/hostname") == before
    people.run(
        "setpriv",
        f"--reuid={uid(people, 'anna')}",
        "--regid=larder-people",
        "--clear-groups",
        "touch",
        "/tank/homes/cleo/letters/new",
    )


def test_an_account_removed_behind_its_back_disappears_from_the_pages(people, visitor):
    make(visitor, "dora", FIRST)
    visitor.wait_until("/users/", "dora")
    people.run("userdel", "dora")
    visitor.wait_until("/users/", "anna", without=("dora",))
    assert visitor.get("/users/dora/account/").status == 404


def test_a_user_of_the_system_is_never_taken_over(people, visitor):
    people.run("useradd", "--no-create-home", "sysop")
    review = visitor.post("/users/new/", name="sysop")
    said = visitor.ended(visitor.confirm(review, secret=FIRST, again=FIRST))
    assert "The system itself uses the name sysop" in said
    assert "sysop" not in people.run("pdbedit", "-L")


def test_a_password_is_found_nowhere(people, visitor):
    """While a user is created and the password changed, and afterwards."""
    with canary.nowhere(people, CANARY, argv="smbpasswd"):
        make(visitor, "emil", CANARY)
        done(visitor, visitor.confirm(visitor.get("/users/emil/password/"), secret=f"{CANARY}-2", again=f"{CANARY}-2"))
    assert system_takes(people, "emil", f"{CANARY}-2")
