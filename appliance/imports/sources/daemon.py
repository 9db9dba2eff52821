"""The rsync service of another NAS (rsync://, port 873): folders called modules, with or without a user and password.

The password goes into a file of the sandbox that is never anywhere but in memory; rsync sends only a hash of it, made
with what the service asks. Nothing is encrypted, and nothing proves that it is the right computer.

A module that is in a chroot, which is usual, sends the numbers of owners without names (rsyncd.conf(5), numeric ids).
The numbers are there for every module, so owners are mapped by them alone.
"""

from __future__ import annotations

from pathlib import Path

from appliance import command
from appliance.backups.remote import settings
from appliance.command import Result
from appliance.errors import Failed, LarderError
from appliance.facts.file_import import FileImport
from appliance.imports.settings import check_share_path, check_source_user, read_password
from appliance.imports.sources.base import ImportSource, password_refused, split_path, unreachable
from appliance.message import Message
from appliance.system.addresses import bracketed

PASSWORD = "/run/import-password"  # noqa: S105  # in the sandbox
SECONDS_TO_LIST = 30
MOST_LISTED = 64 * 1024
MOST_NAMED = 12


class DaemonSource(ImportSource):
    port = 873
    has_passwords = True

    def check(self, host: str, user: str, path: str) -> None:
        settings.check_host(host)
        if user:
            check_source_user(user)
        check_share_path(path)

    def address(self, task: FileImport) -> str:
        return f"{bracketed(settings.check_host(task.host))}:{task.port}"

    def operand(self, task: FileImport) -> str:
        user = f"{check_source_user(task.user)}@" if task.user else ""
        return f"rsync://{user}{self.address(task)}{check_share_path(task.path).rstrip('/')}/"

    def options(self, task: FileImport) -> list[str]:
        return ["--contimeout=20", *([f"--password-file={PASSWORD}"] if task.user else [])]

    def furnish(self, task: FileImport, place: Path) -> None:
        if task.user:
            file = place / PASSWORD[1:]
            file.touch(mode=0o600)
            file.write_text(f"{read_password(task.id)}\n")

    def explain(self, task: FileImport, result: Result) -> Failed | None:
        said = result.stderr
        module = split_path(task.path)[0]
        if "@ERROR: auth failed" in said:
            return password_refused(task)
        if "@ERROR: Unknown module" in said:
            return Failed(
                Message("{host} has no module {module}", host=task.host, module=module), self.say_modules(task)
            )
        if "@ERROR: access denied" in said:
            return Failed(
                Message("{host} does not let this box read {module}", host=task.host, module=module),
                Message("Add the address of this box to the allowed hosts of the module there."),
            )
        if "@ERROR: max connections" in said:
            return Failed(
                Message("{host} takes no more connections", host=task.host), Message("Try again in some minutes.")
            )
        if found := unreachable(task, said, Message("Switch on the rsync service there, and look at the port.")):
            return found
        if result.status in {5, 10, 12, 35}:
            return Failed(Message("The connection to {host} broke off", host=task.host), said[-300:])
        return None

    def say_modules(self, task: FileImport) -> str:
        """The modules that the service lists, in a sentence."""
        argv = [
            *("setpriv", f"--reuid={settings.SSH_USER}", f"--regid={settings.SSH_USER}", "--clear-groups"),
            *("--inh-caps=-all", "--bounding-set=-all", "--no-new-privs", "--"),
            *("rsync", "--contimeout=10", "--timeout=20", "--", f"rsync://{self.address(task)}/"),
        ]
        try:
            said = command.run_bounded(argv, most=MOST_LISTED, timeout=SECONDS_TO_LIST).stdout
        except LarderError:
            said = ""
        names = [line.split("\t")[0].strip() for line in said.splitlines() if "\t" in line]
        names = [name for name in names if name and name.isprintable()][:MOST_NAMED]
        if not names:
            return Message("Look at the name of the module there.")
        return Message("It lists these: {names}.", names=", ".join(name[:80] for name in names))
