"""The script of the other computer, run as it is with a ZFS that notes what it is asked: it does what its
head lists and nothing else."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from appliance.backups.remote.instructions import SCRIPT
from appliance.facts import user_properties

ROOT = "tank/attic"
GUID = "6683942667665662560"
ZFS = """#!/bin/sh
printf '%s\\n' "$*" >> "$ASKED"
case "$*" in
    *"get -H -o value -s local larder:copy-of tank/attic/marked"*) echo '{"guid":5,"raw":false}' ;;
    *"-o value receive_resume_token"*) echo 1-e604ea4bf-e0 ;;
    *"get -H -o value -s local larder:copy-of tank/attic/kept"*) echo '{"guid":5,"raw":false}' ;;
    *"get -H -o value -s local larder:copy-of tank/attic/sealed"*) echo '{"guid":5,"raw":true}' ;;
    *"get -H -o value -s local larder:copy-of tank/attic/own"*) echo '{"guid":5,"raw":false}' ;;
    "get -H -o value encryptionroot tank/attic/own") echo tank/attic/own ;;
    "get -H -o value encryptionroot"*) echo tank ;;
    "list -H -p -d 1 -t snapshot -o guid,name "*)
        for copy in "$@"; do :; done
        printf '17\\t%s\\n%s\\t%s\\n' "$copy@other" 6683942667665662560 "$copy@larder-backup-x" ;;
    "send -n -v -t 1-aa-bb"*) printf 'resume token contents:\\n\\ttoguid = 0x5cc222717549e260\\n\\ttoname = tank/attic/kept@larder-backup-x\\n' ;;
    "send -n -v -t 1-aa-cc"*) printf '\\ttoguid = 0x5cc222717549e260\\n\\ttoname = tank/attic/kept@larder-backup-x\\n\\ttoname = tank/b@x\\n' ;;
    "send -n -v -t 1-aa-dd"*) printf '\\tfromguid = 0x7\\n\\ttoguid = 0x5cc222717549e260\\n\\ttoname = tank/attic/kept@larder-backup-x\\n' ;;
    "send -n -v -t 1-aa-ee"*) printf '\\ttoguid = 0x11\\n\\ttoname = tank/attic/kept@larder-backup-x\\n' ;;
    receive*) cat > "$ASKED.stream" ;;
esac
exit 0
"""
SHELLS = [shell for shell in ("dash", "bash", "busybox") if shutil.which(shell)]


class Peer:
    """The script in a shell, as sshd runs it: what it was asked comes by the environment."""

    def __init__(self, folder: Path, shell: str) -> None:
        self.asked, self.folder = folder / "asked", folder
        for name in ("zfs", "zpool"):
            (folder / name).write_text(ZFS)
            (folder / name).chmod(0o755)
        self.shell = {"bash": ["bash", "--posix"], "busybox": ["busybox", "sh"]}.get(shell, [shell])

    def ask(self, words: str | None, *roots: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        environment = {"PATH": f"{self.folder}:/usr/bin:/bin", "ASKED": str(self.asked)}
        if words is not None:
            environment["SSH_ORIGINAL_COMMAND"] = words
        argv = [*self.shell, str(SCRIPT), *(roots or (ROOT,))]
        return subprocess.run(
            argv, env=environment, input=given, capture_output=True, timeout=60, check=False, cwd=self.folder
        )

    @property
    def commands(self) -> list[str]:
        return self.asked.read_text().splitlines() if self.asked.exists() else []


@pytest.fixture(params=SHELLS)
def peer(tmp_path, request) -> Peer:
    return Peer(tmp_path, request.param)


def test_it_is_plain_sh_that_root_can_read():
    assert SCRIPT.read_text().startswith("#!/bin/sh\n")
    assert os.access(SCRIPT, os.X_OK)
    code = "\n".join(line for line in SCRIPT.read_text().splitlines() if not line.lstrip().startswith("#"))
    for word in ("eval", "receive -F", "-F", "destroy", "rollback", "`", "sudo"):
        assert word not in code, word


def test_receive_takes_the_stream_and_gives_it_its_mark(peer):
    assert peer.ask(f"receive photos/trip {GUID} raw", given=b"stream").returncode == 0
    (asked,) = peer.commands
    assert re.sub(r" -x \S+", "", asked) == (
        f'receive -u -s -h -o larder:copy-of={{"guid":{GUID},"raw":true}} -o larder:sent=raw {ROOT}/photos/trip'
    )
    assert peer.asked.with_suffix(".stream").read_bytes() == b"stream"


def test_receive_takes_none_of_larders_own_settings_from_a_stream(peer):
    """A Larder there acts on them, and a sender may have put anything into them.
    None but the mark is there for a copy."""
    peer.ask(f"receive photos/trip {GUID} raw", given=b"stream")
    of_datasets = {value for key, value in vars(user_properties).items() if key.isupper()} - {
        user_properties.PREFIX,
        user_properties.COPY_OF,
        user_properties.SENT,
        user_properties.RUN,
        user_properties.TASK,
        user_properties.NOTE,
    }
    assert set(re.findall(r" -x (\S+)", peer.commands[0])) == of_datasets


def test_list_reads_all_or_one(peer):
    assert peer.ask("list").stdout.splitlines() == [b"larder-peer\t1", b"end"]
    assert all(command.endswith(f" {ROOT}") and " -r " in command for command in peer.commands)
    before = len(peer.commands)
    assert peer.ask("list photos").returncode == 0
    assert all(command.endswith(f" {ROOT}/photos") and " -d " in command for command in peer.commands[before:])


def test_hello_says_who_it_is_and_ends(peer):
    lines = peer.ask("hello").stdout.decode().splitlines()
    assert lines[0] == "larder-peer\t1" and lines[-1] == "end"
    assert any(line.startswith("user\t") for line in lines)
    assert f"allow {ROOT}" in peer.commands


def test_other_words(peer):
    assert peer.ask("token photos").stdout == b"1-e604ea4bf-e0\n"
    assert peer.ask("abort photos").returncode == 0
    assert peer.commands[-1] == f"receive -A {ROOT}/photos"
    assert peer.ask(f"mark photos {GUID} plain").returncode == 0
    assert peer.commands[-1] == f'set larder:copy-of={{"guid":{GUID},"raw":false}} larder:sent=plain {ROOT}/photos'


def test_mark_that_is_there_stays(peer):
    said = peer.ask(f"mark marked {GUID} plain")
    assert said.returncode == 64 and b"has a mark already" in said.stderr
    assert not any(command.startswith("set") for command in peer.commands)


@pytest.mark.parametrize(
    ("words", "sent"),
    [
        (f"send kept {GUID} large", "send -L -c tank/attic/kept@larder-backup-x"),
        (f"send kept {GUID} plain", "send tank/attic/kept@larder-backup-x"),
        (f"send sealed {GUID} raw", "send -w tank/attic/sealed@larder-backup-x"),
        (f"send kept {GUID} large 1-aa-bb", "send -t 1-aa-bb"),
    ],
)
def test_copy_is_sent_back_by_the_guid_of_its_snapshot(peer, words, sent):
    assert peer.ask(words).returncode == 0
    assert peer.commands[-1] == sent


@pytest.mark.parametrize(
    "words",
    [
        f"send kept {GUID} raw",  # it was not sent encrypted
        f"send sealed {GUID} large",  # it leaves only as it came
        f"send sealed {GUID} plain",
        f"send own {GUID} large",  # a mark that lies does not decrypt it
        f"send photos {GUID} large",  # no copy of a Larder box
        "send kept 18 large",  # no snapshot of it
        f"send kept {GUID} large 1-aa-cc",  # two names in it
        f"send kept {GUID} large 1-aa-dd",  # begins elsewhere
        f"send kept {GUID} large 1-aa-ee",  # of another snapshot
        f"send kept {GUID} large 1-aa-ff",  # cannot be read
    ],
)
def test_nothing_is_sent_but_what_the_box_brought_as_it_came(peer, words):
    said = peer.ask(words)
    assert said.returncode == 64 and said.stdout == b""
    assert all(command.startswith(("get ", "list ", "send -n -v -t ")) for command in peer.commands)


def test_tree_has_dates_and_sizes(peer):
    assert peer.ask("tree photos").stdout.splitlines() == [b"larder-peer\t1", b"end"]
    assert "guid,createtxg,creation,referenced" in peer.commands[-1]


def test_hello_says_the_version_of_the_script(peer):
    assert b"script\t2" in peer.ask("hello").stdout.splitlines()


HOSTILE = [
    "tree",
    "tree ..",
    "tree photos x",
    "tree -r",
    "send",
    "send photos",
    f"send photos {GUID}",
    f"send photos {GUID} raw -t",
    f"send ../x {GUID} raw",
    f"send photos {GUID} raw 1-ab;id",
    f"send photos {GUID} raw 1-AB",
    f"send photos {GUID} raw {'a' * 2001}",
    f"send photos {GUID} -R",
    f"send photos@x {GUID} raw",
    f"send photos {GUID} raw 1-ab 1-cd",
    "send photos 05 raw",
    f"send photos {GUID} raw -",
    f"send -p {GUID} raw",
    f"send photos {GUID} raw 1-ab\n-p",
    "",
    " ",
    "help",
    "receive",
    "destroy photos",
    "list;id",
    "list $(id)",
    "list `id`",
    "list photos other",
    "hello now",
    "list ../other",
    "list ..",
    "list .",
    "list photos/..",
    "list photos/../../other",
    "list /etc",
    "list photos/",
    "list photos//trip",
    "list -r",
    "list -rF",
    "list photos/-r",
    "list --help",
    "list tank/attic@x",
    "list photos@snap",
    "list photos#mark",
    "list pho'tos",
    'list "photos"',
    "list photos\nid",
    "list\nphotos",
    "list\tphotos",
    "list *",
    "list photos?",
    "list [a-z]",
    "list ~",
    "list $HOME",
    "list photos\\",
    "list photos;zfs destroy -r tank",
    "list phótos",
    "list photos%20x",
    "list .zfs",
    "list photos/.zfs",
    f"list {'a' * 201}",
    "LIST",
    "list photos&",
    "list|id",
    f"receive photos {GUID}",
    f"receive photos {GUID} RAW",
    f"receive photos {GUID} larger",
    f"receive photos {GUID} raw -F",
    f"receive -F {GUID} raw",
    f"receive photos/../x {GUID} raw",
    "receive photos 1e3 raw",
    "receive photos -1 raw",
    "receive photos 05 raw",
    "receive photos 5,x raw",
    'receive photos 5"} raw',
    f"receive photos {'9' * 21} raw",
    f"receive photos {GUID} raw;id",
    f"receive photos {GUID} $(id)",
    f"receive photos {GUID} raw\n-F",
    "abort",
    "abort ..",
    "abort photos x",
    "token",
    "mark photos",
    "zfs list",
    "/bin/sh",
    "sh -c id",
    "receive-3",
    "hello-0",
    "*",
    "list -",
    "list =x",
    "list photos,trip",
    "send photos 1 2 raw",
    "-r",
    "list \x01",
    "list photos\r",
    "scp -t /",
    "internal-sftp",
]


@pytest.mark.parametrize("words", HOSTILE)
def test_nothing_else_is_understood(tmp_path, words):
    for shell in SHELLS:
        peer = Peer(tmp_path, shell)
        said = peer.ask(words)
        assert said.returncode == 64, (shell, said)
        assert said.stderr.startswith(b"larder-peer: ")
        assert peer.commands == []
        assert sorted(path.name for path in tmp_path.iterdir()) == ["zfs", "zpool"]


def test_nothing_asked_for_is_no_shell(peer):
    assert peer.ask(None).returncode == 64


@pytest.mark.parametrize(
    "roots", [("../tank",), ("-r",), ("tank", "other"), ("",), ("tank/attic; id",), ("tank/attic\n",), ("/tank",)]
)
def test_line_that_names_no_folder_receives_nothing(peer, roots):
    assert peer.ask("list", *roots).returncode == 64
    assert peer.commands == []


def test_files_there_never_become_words(peer):
    (peer.folder / "photos").touch()
    assert peer.ask("list pho*").returncode == 64
    assert peer.commands == []
