"""An NFS export of another NAS, versions 3 and 4, read with the rights that the export gives to this box."""

from __future__ import annotations

from pathlib import Path

from appliance.backups.remote import settings
from appliance.command import Result
from appliance.errors import Failed, Reason, Refused
from appliance.facts.file_import import FileImport
from appliance.imports.settings import check_path
from appliance.imports.sources.base import unreachable
from appliance.imports.sources.mounted import FOLDER, SAFELY, MountedSource, run_mount
from appliance.message import Message
from appliance.system.addresses import bracketed

# nfs(5). softerr: a server that does not answer is an error of the connection after timeo * (retrans + 1) tenths of a
# second, with growing waits. nolock: no helper services are started here. retry: minutes.
OPTIONS = (*SAFELY, "softerr", "timeo=50", "retrans=2", "retry=0", "nolock", "sec=sys", "proto=tcp")


class NfsSource(MountedSource):
    port = 2049

    def check(self, host: str, user: str, path: str) -> None:
        settings.check_host(host)
        check_path(path)
        if user:
            raise Refused(Reason("import-user-unused", "Over NFS nobody signs in. Leave the user out.", field="user"))

    def operand(self, task: FileImport) -> str:
        return f"{FOLDER}/"

    def mount(self, task: FileImport, target: Path) -> None:
        self.check(task.host, task.user, task.path)
        options = [*OPTIONS, *([f"port={task.port}"] if task.port != self.port else [])]
        argv = [
            "mount",
            "-n",
            "-t",
            "nfs",
            "-o",
            ",".join(options),
            "--",
            f"{bracketed(task.host)}:{task.path}",
            str(target),
        ]
        result = run_mount(task, argv)
        if result.status:
            raise explain_mount(task, result)


def explain_mount(task: FileImport, result: Result) -> Failed:
    """Why ``mount.nfs`` failed, from its words."""
    said = result.stderr + result.stdout
    if "No such file or directory" in said:
        return Failed(
            Message("{host} has no export {path}", host=task.host, path=task.path),
            Message("Look at its whole path there, for example /volume1/photos."),
        )
    if "access denied" in said or "Operation not permitted" in said or "Permission denied" in said:
        return Failed(
            Message("{host} does not export {path} to this box", host=task.host, path=task.path),
            Message("Look at the path, and let the address of this box read it in the NFS settings there."),
        )
    if "not supported" in said or "not registered" in said:
        return Failed(
            Message("{host} offers no version of NFS that this box supports", host=task.host),
            Message("Switch on NFS version 3 or 4 there."),
        )
    if found := unreachable(task, said, Message("Switch on NFS there, and look at the port.")):
        return found
    return Failed(Message("The export {path} of {host} cannot be opened", path=task.path, host=task.host), said[-300:])
