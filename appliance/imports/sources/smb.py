"""A share of Windows or of another NAS over SMB 2.1 or later. The first part of the path is the name of the share.

Everything that a signed-in connection carries is signed. SMB 1 is never spoken.
"""

from __future__ import annotations

from pathlib import Path

from appliance.backups.remote import settings
from appliance.command import Result
from appliance.errors import Failed, Reason, Refused
from appliance.facts.file_import import FileImport
from appliance.imports.settings import check_share_path, check_source_user, read_password
from appliance.imports.sources.base import SourceAway, connect, password_refused, split_path, unreachable
from appliance.imports.sources.mounted import FOLDER, SAFELY, MountedSource, run_mount
from appliance.message import Message

# mount.cifs(8). nodfs: the other NAS cannot send this box on to further servers. echo_interval: seconds, of which three
# without an answer end the connection. nosharesock: an import never shares the connection of another one.
OPTIONS = (
    *SAFELY,
    "soft",
    "echo_interval=10",
    "nodfs",
    "nosharesock",
    "noperm",
    "uid=0",
    "gid=0",
    "forceuid",
    "forcegid",
    "file_mode=0600",
    "dir_mode=0700",
    "iocharset=utf8",
)


class SmbSource(MountedSource):
    port = 445
    has_passwords = True
    has_owners = False

    def check(self, host: str, user: str, path: str) -> None:
        if ":" in settings.check_host(host):
            raise Refused(
                Reason(
                    "import-smb-version-6",
                    "Enter the name of the other NAS, or an address such as 192.168.1.20.",
                    field="host",
                )
            )
        if user:
            check_source_user(user)
        if "," in check_share_path(path):  # it would become an option of the mount
            raise Refused(
                Reason(
                    "import-share-comma",
                    "The name of the share or folder has a comma. Choose the folder above it.",
                    field="path",
                )
            )

    def operand(self, task: FileImport) -> str:
        rest = split_path(check_share_path(task.path))[1]
        return f"{FOLDER}/{rest}/" if rest else f"{FOLDER}/"

    def mount(self, task: FileImport, target: Path) -> None:
        self.check(task.host, task.user, task.path)
        credentials = target.with_name("credentials")
        options = [*OPTIONS, f"port={task.port}"]
        options += [f"credentials={credentials}", "sec=ntlmsspi"] if task.user else ["guest", "sec=none"]
        argv = [
            "mount",
            "-n",
            "-t",
            "cifs",
            "-o",
            ",".join(options),
            "--",
            f"//{task.host}/{split_path(task.path)[0]}",
            str(target),
        ]
        try:
            if task.user:  # for root alone, in memory, in this request's mounts, and gone before rsync begins
                credentials.touch(mode=0o600)
                credentials.write_text(f"username={task.user}\npassword={read_password(task.id)}\n")
            result = run_mount(task, argv)
        finally:
            credentials.unlink(missing_ok=True)
        if result.status:
            raise explain_mount(task, result)


def explain_mount(task: FileImport, result: Result) -> Failed:
    """Why ``mount.cifs`` failed, from its words."""
    said = result.stderr + result.stdout
    share = split_path(task.path)[0]
    if "error(13)" in said or "error(1)" in said or "error(126)" in said or "error(127)" in said:
        return password_refused(task)
    if "error(2)" in said or "error(6)" in said:
        return Failed(
            Message("{host} has no share {share}", host=task.host, share=share),
            Message("Look at the name of the share there."),
        )
    if "error(95)" in said or ("error(112)" in said and answers(task)):
        # Also what a server is that takes connections and hangs, so a run waits for it.
        return SourceAway(
            Message("{host} offers no version of SMB that this box accepts", host=task.host),
            Message("Switch on SMB 2 or 3 there. SMB 1 is not safe, so Larder does not use it."),
        )
    if found := unreachable(
        task, said, Message("Switch on file sharing for Windows (SMB) there, and look at the port.")
    ):
        return found
    return Failed(Message("The share {share} of {host} cannot be opened", share=share, host=task.host), said[-300:])


def answers(task: FileImport) -> bool:
    try:
        connect(task)
    except Failed:
        return False
    return True
