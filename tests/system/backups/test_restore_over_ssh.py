"""A whole folder comes back from another computer over real ssh: after the folder was destroyed here, after a kill, and
not with words that were forged. The other computer is this one by loopback, as in ``test_over_ssh.py``."""

from __future__ import annotations

import re

import pytest

from deploy.image.machine import Machine, wait_for
from tests.system.backups.test_over_ssh import (  # noqa: F401  # fixtures
    COPIES,
    COPY,
    PORT,
    ROOT,
    USER,
    ask_now,
    photos,
    remote,
    start_sshd,
    task,
    there,
)
from tests.system.backups.test_pool_to_pool import PHRASE, guids, newest, newest_moment, run_now
from tests.system.backups.test_restore_folder import files, tree, used
from tests.visitor import Answer, Visitor


def page_of(remote: str, copy: str = "photos") -> str:  # noqa: F811
    return f"{remote}copies/{copy}/restore/"


def review(appliance: Machine, visitor: Visitor, remote: str, **answers: object) -> Answer:  # noqa: F811
    """The review of restoring the newest moment of the copy."""
    answer = visitor.post(page_of(remote), snapshot=newest_moment(appliance, COPY), **answers)
    assert answer.status == 200, answer.words[:1500]
    return answer


def assert_equal(appliance: Machine, restored: str) -> None:
    """Every folder is there with the files and the guid of the copy's newest moment, and nothing of a copy about it."""
    for copy in COPIES.values():
        name = f"{restored}{copy.removeprefix(COPY)}"
        assert guids(appliance, name) == guids(appliance, copy)[-1:] != []
        said = appliance.run("zfs", "get", "-H", "-s", "local,received", "-o", "property", "all", name).split()
        assert set(said) - {"keylocation"} == {"canmount", "setuid", "devices", "acltype"}, said
        if "secret" in copy:
            assert appliance.run("zfs", "get", "-H", "-o", "value", "keystatus", name).strip() == "unavailable"
            appliance.shell(
                f"echo '{PHRASE}' | zfs load-key {name}; zfs mount {name}; echo '{PHRASE}' | zfs load-key {copy}"
            )
        try:
            assert files(appliance, newest(appliance, name)) == files(appliance, newest(appliance, copy))
        finally:
            if "secret" in copy:
                appliance.run("zfs", "unload-key", copy)
        assert "hello" in appliance.run("cat", f"/{name}/two")


@pytest.fixture(scope="module")
def large(appliance: Machine, visitor: Visitor, task: str) -> None:  # noqa: F811
    """The folder has so much in it that a restore takes some seconds."""
    appliance.shell("head -c 150000000 /dev/urandom > /tank/photos/large; sync; zpool sync tank")
    assert run_now(visitor, task)[1].startswith("Done.")


def ask_peer(appliance: Machine, words: str) -> str:
    """What larder-peer answers to somebody who has the key of the box; the stream is counted, not shown."""
    key = appliance.shell("ls /var/lib/larder-ssh/*.key").strip()
    appliance.shell(f"install -m 600 {key} /root/stolen")
    return appliance.shell(
        "ssh -F none -i /root/stolen -o BatchMode=yes -o StrictHostKeyChecking=no -o "
        f"UserKnownHostsFile=/dev/null -p {PORT}"
        f" {USER}@127.0.0.1 '{words}' </dev/null 2>/root/said | wc -c; cat /root/said"
    )


@pytest.mark.parametrize(
    ("words", "because"),
    [
        ("send photos GUID plain", ""),
        ("send photos GUID raw", "not sent encrypted"),
        ("send photos/secret SECRET large", "sent encrypted only"),
        ("send photos 5 large", "no such snapshot"),
        ("send ../../tank GUID large", "no name of a copy"),
        ("send photos GUID large 1-c740b4779-118-789c636064", "token is not of that snapshot"),
        ("send photos GUID large -t", "no token"),
        ("send photos GUID large;id", "no mode"),
        ("send photos/secret SECRET raw OTHER", "token is not of that snapshot"),
    ],
)
def test_only_a_snapshot_that_exists_is_sent_and_encrypted_ones_encrypted(appliance, task, words, because):  # noqa: F811
    before = there(appliance)
    if "OTHER" in words:
        appliance.shell(
            f"zfs send {newest(appliance, 'tank/photos')} | head -c 700000 | zfs receive -u -s safe/half || true"
        )
        words = words.replace(
            "OTHER", appliance.run("zfs", "get", "-H", "-o", "value", "receive_resume_token", "safe/half").strip()
        )
        appliance.run("zfs", "receive", "-A", "safe/half")
    given = words.replace("GUID", guids(appliance, COPY)[-1]).replace("SECRET", guids(appliance, f"{COPY}/secret")[-1])
    said = ask_peer(appliance, given)
    count, _line, rest = said.partition("\n")
    assert (int(count) > 1_000_000) if not because else (int(count) == 0 and because in rest), said
    assert there(appliance) == before


def test_right_that_is_missing_is_named_and_nothing_is_restored(appliance, visitor, remote, task):  # noqa: F811
    appliance.run("zfs", "unallow", "-u", USER, "send", ROOT)
    try:
        assert f"zfs allow -u {USER} send {ROOT}" in visitor.get(page_of(remote)).words
        assert ask_now(visitor, remote).startswith("Done.")  # backups go there all the same
        visitor.wait_until(remote, "nothing can be restored from there yet", timeout=60)
    finally:
        appliance.run("zfs", "allow", "-u", USER, "send", ROOT)
    assert ask_now(visitor, remote).startswith("Done.")


def test_restore_that_was_killed_goes_on_where_it_was(appliance, visitor, remote, large):  # noqa: F811
    answer = review(appliance, visitor, remote, parent="tank", name="killed", rate=10)
    assert "tank/photos is still there and stays as it is" in answer.words and "the limit" in answer.words
    job = visitor.confirm(answer)
    (stage,) = wait_for(
        "the folder to receive into",
        lambda: re.findall(r"tank/restoring-\w+$", "\n".join(tree(appliance)), re.M),
        timeout=90,
        every=0.2,
    )
    wait_for("some of it to have arrived", lambda: used(appliance, stage) > 20_000_000, timeout=120, every=0.2)
    assert "larder-ssh" in appliance.shell("ps -o user:20= -C ssh")
    appliance.run("systemctl", "kill", "--signal=KILL", "larder-agent", check=False)
    said = visitor.ended(job)
    assert "Done." not in said and stage in said, said
    assert "tank/killed" not in tree(appliance)
    token = appliance.run("zfs", "get", "-H", "-o", "value", "receive_resume_token", f"{stage}/killed").strip()
    assert token.startswith("1-")
    again = visitor.confirm(visitor.wait_until(f"/jobs/{job}/again/", "What will happen"))
    said = visitor.ended(again)
    assert said.startswith("Done."), said
    assert re.search(rf"send photos \d+ large {token}", visitor.get(f"/jobs/{again}/").words)
    assert_equal(appliance, "tank/killed")
    assert stage not in tree(appliance)


def test_other_host_key_stops_the_restore(appliance, visitor, remote, task):  # noqa: F811
    before = tree(appliance)
    answer = review(appliance, visitor, remote, parent="tank", name="other")
    start_sshd(appliance, "/root/second_key")
    try:
        assert "showed another host key" in visitor.ended(visitor.confirm(answer))
        assert "showed another host key" in visitor.get(page_of(remote)).words
        assert tree(appliance) == before
    finally:
        start_sshd(appliance, "/root/first_key")


def test_folder_comes_back_to_its_place_after_it_was_destroyed(appliance, visitor, remote, task):  # noqa: F811
    copies = {copy: guids(appliance, copy) for copy in COPIES.values()}
    appliance.run("zfs", "destroy", "-r", "tank/photos")
    visitor.wait_until(f"{remote}copies/", "photos/trip_2019", "photos/secret", timeout=90)
    visitor.wait_until(page_of(remote), "The original is no longer on this box", timeout=120)
    answer = review(appliance, visitor, remote, parent="tank", name="photos")
    assert "nothing on this box is overwritten" in answer.words
    said = visitor.ended(visitor.confirm(answer))
    assert said.startswith("Done."), said
    assert_equal(appliance, "tank/photos")
    assert {copy: guids(appliance, copy) for copy in copies} == copies
    assert visitor.post(page_of(remote), snapshot=copies[COPY][-1], parent="tank", name="photos").status == 400
