"""Another NAS over ssh: rsync runs there too, as the user who signs in with the key of the import."""

from __future__ import annotations

import os
import re
import shutil
from contextlib import suppress
from pathlib import Path

from appliance.backups.remote import connection, settings
from appliance.command import Result
from appliance.errors import Bug, Failed
from appliance.facts.file_import import FileImport
from appliance.imports import sandbox
from appliance.imports.settings import as_remote, check_path
from appliance.imports.sources.base import ImportSource
from appliance.system.addresses import bracketed


class SshSource(ImportSource):
    port = 22
    has_owner_names = True

    def check(self, host: str, user: str, path: str) -> None:
        settings.check_host(host)
        settings.check_user(user)
        check_path(path)

    def operand(self, task: FileImport) -> str:
        host = bracketed(settings.check_host(task.host))
        return f"{settings.check_user(task.user)}@{host}:{check_path(task.path).rstrip('/')}/"

    def options(self, task: FileImport) -> list[str]:
        words = connection.ssh_words(as_remote(task), aes=connection.has_aes())
        if any(re.search(r"[\s'\"]", word) for word in words):
            raise Bug("rsync would split ssh's options")
        return [f"--rsh={' '.join(words)}"]

    def furnish(self, task: FileImport, place: Path) -> None:
        for file in (settings.key_file(task.id), settings.known_hosts_file(task.id)):
            copied = place / str(file)[1:]
            sandbox.make_folder(copied.parent)
            with suppress(FileNotFoundError):
                shutil.copyfile(file, copied)
                found = file.stat()
                os.chown(copied, found.st_uid, found.st_gid)
                copied.chmod(found.st_mode & 0o777)

    def ask(self, task: FileImport) -> None:
        connection.fetch_host_key(task.host, task.port)

    def explain(self, task: FileImport, result: Result) -> Failed | None:
        if result.status in {255, 12} or "ssh:" in result.stderr:
            return connection.unreachable(as_remote(task), result.stderr)
        return None
