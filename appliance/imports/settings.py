"""The settings of imports: a file each beside those of other computers, with a key of its own."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

import msgspec
from msgspec.structs import replace

from appliance import names
from appliance.backups.remote import settings
from appliance.errors import Failed, Reason, Refused
from appliance.facts.file_import import FileImport
from appliance.facts.remote import Remote
from appliance.message import Message, messages_by_text
from appliance.system import paths

PASSWORD_ENDING = ".password"  # noqa: S105
LONGEST_PATH = 1000
MOST_IMPORTS = 32
MOST_OWNERS = 50
LONGEST_PASSWORD = 127
# Nothing that ends a mount option or a line of a credentials file.
SOURCE_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_ .@-]{0,63}")
# Nothing that rsync reads as a pattern or as a range of numbers.
OLD_USER = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,31}|[0-9]{1,10}")
# Without what rsync there reads as a pattern (* ? [ and a backslash), and what means something to a shell. Synology's
# snapshots are in #snapshot.
PART = re.compile(r"#?[\w .+,@()=~:-]+")


def check_path(path: str, *, field: str = "path") -> str:
    """The path of a folder on another computer: absolute, so that it is never read as an option or a daemon's module.
    Raises Refused."""
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
                "Enter the folder's whole path there, for example /volume1/photos, without signs such as * ? "
                "; and quotes.",
                field=field,
            )
        )
    return path


def check_share_path(path: str, *, field: str = "path") -> str:
    """``/photos/2019``: the name of a share or module, and a folder in it. Raises Refused."""
    try:
        return check_path(path, field=field)
    except Refused:
        raise Refused(
            Reason(
                "import-share-invalid",
                "Enter the name of the share or module, or a folder in it, for example photos or "
                "photos/2019, without signs such as * ? ; and quotes.",
                field=field,
            )
        ) from None


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


def check_source_user(user: str, *, field: str = "user") -> str:
    """Who signs in at a share or an rsync service. Raises Refused."""
    if not SOURCE_USER.fullmatch(user):
        raise Refused(
            Reason(
                "import-user-invalid",
                "A user's name there has letters, digits, spaces and . _ - @, for example anna or anna@example.com.",
                field=field,
            )
        )
    return user


def check_password(password: str, *, field: str = "secret") -> str:
    """The password of a user over there: one line. Raises Refused."""
    if not password or len(password.encode()) > LONGEST_PASSWORD or not password.isprintable():
        raise Refused(
            Reason(
                "import-password-invalid",
                "Enter the password of the user over there: one line of at most {most} characters.",
                field=field,
                most=LONGEST_PASSWORD,
            )
        )
    return password


def password_file(key: str) -> Path:
    return paths.SSH / f"{settings.check_key(key)}{PASSWORD_ENDING}"


def write_password(key: str, password: str) -> None:
    """Store the password for root alone, as the keys of ssh are: an import that was interrupted has to go on
    without anybody. Raises Failed."""
    settings.write_file(password_file(key), password, mode=0o600)
    settings.remove_leftovers(key)


def read_password(key: str) -> str:
    """Raises Failed where it is gone."""
    try:
        handle = os.open(password_file(key), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        with os.fdopen(handle) as file:
            return file.read(LONGEST_PASSWORD * 4)
    except OSError as error:
        raise Failed(
            Message("The password of this import is missing"), Message("Enter it on the page of the import.")
        ) from error


def read_imports() -> tuple[FileImport, ...]:
    """Every import, by where it comes from. A file that cannot be read is left out."""
    try:
        files = sorted(paths.SSH.glob(f"*{settings.IMPORT_ENDING}"))
    except OSError:
        return ()
    found = (read_import(file.name.removesuffix(settings.IMPORT_ENDING)) for file in files)
    return tuple(sorted((one for one in found if one), key=lambda one: (one.source, one.id)))


def read_import(key: str) -> FileImport | None:
    try:
        found = msgspec.json.decode((paths.SSH / f"{key}{settings.IMPORT_ENDING}").read_bytes(), type=FileImport)
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


def settings_file(key: str) -> Path:
    return paths.SSH / f"{settings.check_key(key)}{settings.IMPORT_ENDING}"


def write_import(task: FileImport) -> None:
    """Its problem may be a message. Raises Failed."""
    task = replace(task, problem=str(task.problem_text), said=messages_by_text(task.problem_text))
    settings.write_file(settings_file(task.id), msgspec.json.encode(task).decode() + "\n", mode=0o644)


def remove_import(key: str) -> None:
    """Delete its key and password, then its settings and its report. What was copied stays."""
    settings.remove_remote(key)
    for ending in (PASSWORD_ENDING, ".report", settings.IMPORT_ENDING):
        (paths.SSH / f"{key}{ending}").unlink(missing_ok=True)


def as_remote(task: FileImport) -> Remote:
    """The other NAS as what is reached over ssh."""
    return Remote(task.id, task.host, task.port, task.user, "", host_key=task.host_key)
