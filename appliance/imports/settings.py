"""The settings of imports: a file each beside those of other computers, with a key of its own."""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from appliance import names
from appliance.backups.remote import settings
from appliance.errors import Reason, Refused
from appliance.facts.file_import import FileImport
from appliance.facts.remote import Remote
from appliance.system import paths

ENDING = ".import"  # not .json, which are computers that backups go to
LONGEST_PATH = 1000
MOST_IMPORTS = 32
MOST_OWNERS = 50
# Nothing that rsync reads as a pattern or as a range of numbers.
OLD_USER = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,31}|[0-9]{1,10}")
# Without what rsync there reads as a pattern (* ? [ and a backslash), and what means something to a shell. Synology's
# snapshots are in #snapshot.
PART = re.compile(r"#?[\w .+,@()=~:-]+")


def check_path(path: str, *, field: str = "path") -> str:
    """The path of a folder on another computer: absolute, so that it is never read as an option or a daemon's module. Raises Refused."""
    parts = path.removesuffix("/").split("/")[1:]
    if (
        not parts
        or not path.startswith("/")
        or len(path.encode()) > LONGEST_PATH
        or not all(PART.fullmatch(part) and part.isprintable() for part in parts)
        or {".", ".."} & set(parts)
    ):
        raise Refused(
            Reason(
                "import-path-invalid",
                "Enter the folder's whole path there, for example /volume1/photos, without signs such as * ? ; and quotes.",
                field=field,
            )
        )
    return path


def check_owners(owners: Mapping[str, str], *, field: str = "owners") -> None:
    """Who gets the files of which user there. Raises Refused."""
    for old, new in owners.items():
        if not OLD_USER.fullmatch(old):
            raise Refused(
                Reason(
                    "import-owner-invalid",
                    "A user there is a name or a number, for example ben or 1026.",
                    field=field,
                )
            )
        names.check_user_name(new, field=field)
    if len(owners) > MOST_OWNERS:
        raise Refused(
            Reason("import-owners-too-many", "At most {most} users can be named.", field=field, most=MOST_OWNERS)
        )


def read_imports() -> tuple[FileImport, ...]:
    """Every import, by where it comes from. A file that cannot be read is left out."""
    try:
        files = sorted(paths.SSH.glob(f"*{ENDING}"))
    except OSError:
        return ()
    found = (read_import(file.name.removesuffix(ENDING)) for file in files)
    return tuple(sorted((one for one in found if one), key=lambda one: (one.source, one.id)))


def read_import(key: str) -> FileImport | None:
    try:
        found = msgspec.json.decode((paths.SSH / f"{key}{ENDING}").read_bytes(), type=FileImport)
    except (OSError, msgspec.MsgspecError):
        return None
    return found if found.id == key else None


def find_import(key: str) -> FileImport:
    """Raises Refused where it was removed."""
    found = read_import(settings.check_key(key, field="task"))
    if found is None:
        raise Refused(import_missing())
    return found


def import_missing() -> Reason:
    return Reason("import-missing", "That import was removed. Set it up again.")


def write_import(task: FileImport) -> None:
    """Raises Failed."""
    file = paths.SSH / f"{settings.check_key(task.id)}{ENDING}"
    settings.write_file(file, msgspec.json.encode(task).decode() + "\n", mode=0o644)


def remove_import(key: str) -> None:
    """Delete its key, then its settings and its report. What was copied stays."""
    settings.remove_remote(key)
    for ending in (".report", ENDING):
        (paths.SSH / f"{key}{ending}").unlink(missing_ok=True)


def as_remote(task: FileImport) -> Remote:
    """The other NAS as what is reached over ssh."""
    return Remote(task.id, task.host, task.port, task.user, "", host_key=task.host_key)
