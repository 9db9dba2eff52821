"""Grammars of every name that reaches a command. A name is checked by its kind before any command sees it.

Each function returns the name unchanged or raises Refused. They are stricter than the system below: Larder gives plain
names only. Names that are already there, such as those of an imported pool, are checked by the ``existing_`` functions,
which follow the system's own rules (zfs: ``module/zcommon/zfs_namecheck.c``).
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import quote, unquote_to_bytes

from appliance.errors import Reason, Refused
from appliance.system import paths

# zpoolconcepts(7) and zpool-create(8): reserved words and beginnings.
RESERVED_POOLS = ("mirror", "raidz", "draid", "spare")
# What has such a name, of a restore or of a test of one, may be removed without being asked.
RESTORE_FOLDER, DRILL_FOLDER = re.compile(r"restoring-([0-9a-f]{8})"), re.compile(r"drill-([0-9a-f]{8})")
RESERVED_SHARES = {"global", "homes", "printers", "print$", "ipc$", "admin$", "netlogon", "sysvol", "profiles"}
LONGEST_DATASET = 200  # of ZFS's 255 bytes, leaving room for a snapshot's name
LONGEST_PATH = 4096  # bytes, PATH_MAX
LONGEST_SNAPSHOT = 255  # bytes, ZFS_MAX_DATASET_NAME_LEN less the NUL
# Top folders that hold the system itself, with everything below them (hier(7)).
SYSTEM_FOLDERS = {
    "bin",
    "boot",
    "dev",
    "efi",
    "etc",
    "home",
    "lib",
    "lib32",
    "lib64",
    "libx32",
    "lost+found",
    "opt",
    "proc",
    "root",
    "run",
    "sbin",
    "sys",
    "tmp",
    "usr",
    "var",
}
# Top folders that every system has for mounts: nothing of the system lies in them, and pools may.
MOUNT_FOLDERS = {"media", "mnt", "srv"}
SYSTEM_USERS = {"root", "larder", "nobody", "admin", "daemon", "bin", "sys", "www-data", "redis", "backup", "mail"}
SYSTEM_GROUPS = {
    "nogroup",
    "shadow",
    "sudo",
    "adm",
    "disk",
    "tty",
    "users",
    "wheel",
    "staff",
    "kmem",
    "docker",
    "sambashare",
}
LONGEST_DISPLAY = 60


def refuse_invisible_characters(text: str, field: str) -> None:
    """Refuse control characters: nobody puts a line break into a name on purpose."""
    if any(ord(letter) < 32 or ord(letter) == 127 for letter in text):
        raise Refused(
            Reason(
                "invisible-characters",
                "This contains a line break or another invisible character. Type it again by hand.",
                field=field,
            )
        )


def check_pool_name(name: str, *, field: str = "name") -> str:
    """A name for a new pool."""
    refuse_invisible_characters(name, field)
    if not name:
        raise Refused(Reason("pool-name-empty", "Give the pool a name, for example tank.", field=field))
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_.-]*", name):
        raise Refused(
            Reason(
                "pool-name-invalid",
                "A pool's name begins with a letter and contains only letters, digits, hyphens, underscores and dots.",
                field=field,
            )
        )
    if len(name) > 40:
        raise Refused(
            Reason("pool-name-too-long", "That name is longer than 40 characters. Choose a shorter one.", field=field)
        )
    if name == "log" or name.lower().startswith(RESERVED_POOLS):
        raise Refused(
            Reason("pool-name-reserved", "ZFS reserves names like {name}. Choose another name.", field=field, name=name)
        )
    if re.match(r"c[0-9]", name):
        raise Refused(
            Reason(
                "pool-name-like-disk",
                "A name that begins with c and a digit looks like a disk to ZFS. Choose another name.",
                field=field,
            )
        )
    return name


def check_folder_name(name: str, *, field: str = "name") -> str:
    """The last part of a new dataset's name, which pages call a folder."""
    refuse_invisible_characters(name, field)
    if not name:
        raise Refused(Reason("folder-name-empty", "Give the folder a name, for example photos.", field=field))
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_. -]*", name) or name.endswith((" ", ".")):
        raise Refused(
            Reason(
                "folder-name-invalid",
                "A folder's name begins with a letter or digit and contains only letters, digits, spaces, "
                "hyphens, underscores and dots.",
                field=field,
            )
        )
    if RESTORE_FOLDER.fullmatch(name) or DRILL_FOLDER.fullmatch(name):
        raise Refused(
            Reason(
                "folder-name-reserved",
                "Names like {name} are those of restores and their tests. Choose another name.",
                field=field,
                name=name,
            )
        )
    if len(name) > 60:
        raise Refused(
            Reason(
                "folder-name-too-long", "A folder's name has at most 60 characters. Choose a shorter name.", field=field
            )
        )
    return name


def existing_pool(name: str, *, field: str = "pool") -> str:
    """The name of an existing pool, by ZFS's own rule."""
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_.: -]{0,254}", name):
        raise Refused(Reason("pool-name-malformed", "That is not the name of a pool.", field=field))
    return name


def existing_dataset(name: str, *, field: str = "dataset") -> str:
    """The full name of an existing dataset, by ZFS's own rule."""
    parts = name.split("/")
    if (
        len(name) > 255
        or not all(re.fullmatch(r"[A-Za-z0-9_.: -]+", part) and part not in {".", ".."} for part in parts)
        or name[0] in "-. "
    ):
        raise Refused(Reason("dataset-name-malformed", "That is not the name of a folder.", field=field))
    return name


def existing_snapshot(name: str, *, field: str = "snapshot") -> str:
    """The full name of an existing snapshot, by ZFS's own rule."""
    dataset, _mark, short = name.partition("@")
    if not is_short_name(name, short):
        raise Refused(Reason("snapshot-name-malformed", "That is not the name of a snapshot.", field=field))
    existing_dataset(dataset, field=field)
    return name


def existing_bookmark(name: str, *, field: str = "bookmark") -> str:
    """The full name of an existing bookmark, by ZFS's own rule."""
    dataset, _mark, short = name.partition("#")
    if not is_short_name(name, short):
        raise Refused(Reason("bookmark-name-malformed", "That is not the name of a bookmark.", field=field))
    existing_dataset(dataset, field=field)
    return name


def is_short_name(name: str, short: str) -> bool:
    """Whether ``short`` may follow the ``@`` or ``#`` in the full name of a snapshot or bookmark."""
    return len(name) <= 255 and re.fullmatch(r"[A-Za-z0-9_.: -]+", short) is not None


def check_snapshot_name(name: str, *, field: str = "name") -> str:
    """The part of a new snapshot's name after the ``@``."""
    refuse_invisible_characters(name, field)
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*", name) or len(name) > 50:
        raise Refused(
            Reason(
                "snapshot-name-invalid",
                "A snapshot's name begins with a letter or digit and contains only letters, digits, hyphens, "
                "underscores and dots, at most 50.",
                field=field,
            )
        )
    if name.startswith("larder-"):
        raise Refused(
            Reason(
                "snapshot-name-reserved",
                "Names that begin with larder- are those of snapshot schedules. Choose another name.",
                field=field,
            )
        )
    return name


def check_note(text: str, *, field: str = "note") -> str:
    """A free-text note: one line of at most 200 bytes."""
    refuse_invisible_characters(text, field)
    if len(text.encode()) > 200:
        raise Refused(Reason("note-too-long", "A note has at most 200 bytes. Make it shorter.", field=field))
    return text


def parse_relative_path(path: str, *, field: str = "path") -> tuple[bytes, ...]:
    """The parts of a path below a folder; none for the folder itself.

    It is percent-encoded like an address (``2024/my%20trip``), since a file's name is bytes and need not be text.
    """
    parts = tuple(unquote_to_bytes(part) for part in path.split("/")) if path else ()
    if (
        path != encode_relative_path(parts)
        or any(part in {b"", b".", b".."} or b"/" in part or b"\0" in part or len(part) > 255 for part in parts)
        or sum(len(part) + 1 for part in parts) > LONGEST_PATH
    ):
        raise Refused(Reason("path-malformed", "That is not the path of a file or folder.", field=field))
    return parts


def encode_relative_path(parts: Iterable[bytes]) -> str:
    """The inverse of ``parse_relative_path``."""
    return "/".join(quote(part, safe="") for part in parts)


def is_system_folder(path: str) -> bool:
    """Whether a path is ``/`` or lies among the system's own folders.
    The folder where new pools are mounted does not."""
    below = Path(path)
    if Path("/") != paths.POOLS and below.is_relative_to(paths.POOLS) and ".." not in below.parts:
        return False
    return path == "/" or path.lstrip("/").split("/", 1)[0] in SYSTEM_FOLDERS | {"", ".", ".."}


def is_top_folder(name: str) -> bool:
    """Whether every system has a folder of that name directly below ``/``."""
    return name in SYSTEM_FOLDERS | MOUNT_FOLDERS


def served_path(path: str, *, field: str = "dataset") -> str:
    """The mountpoint of a dataset that is served to clients, plain enough for smb.conf, its macros and a shell."""
    parts = path.split("/")[1:]
    plain = all(re.fullmatch(r"[\w.:+@, -]+", part) and part == part.strip() for part in parts)
    if not path.startswith("/") or not plain or is_system_folder(path) or {".", ".."} & set(parts) or len(path) > 1000:
        raise Refused(
            Reason(
                "mountpoint-not-servable",
                "Its mountpoint cannot be served to clients. Give it one such as /tank/photos.",
                field=field,
            )
        )
    return path


def check_share_name(name: str, *, field: str = "share") -> str:
    """A name under which clients see a share."""
    refuse_invisible_characters(name, field)
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_. -]*", name) or name.endswith((" ", ".")):
        raise Refused(
            Reason(
                "share-name-invalid",
                "A share's name begins with a letter or digit and contains only letters, digits, spaces, "
                "hyphens, underscores and dots.",
                field=field,
            )
        )
    if len(name) > 60:
        raise Refused(
            Reason(
                "share-name-too-long", "A share's name has at most 60 characters. Choose a shorter name.", field=field
            )
        )
    if name.lower() in RESERVED_SHARES:
        raise Refused(
            Reason(
                "share-name-reserved", "Samba reserves the name {name}. Choose another name.", field=field, name=name
            )
        )
    return name


def check_user_name(name: str, *, field: str = "account") -> str:
    """A name for a user of shares."""
    refuse_invisible_characters(name, field)
    if not re.fullmatch(r"[a-z][a-z0-9_-]{0,30}", name):
        raise Refused(
            Reason(
                "user-name-invalid",
                "A user's name begins with a lowercase letter and contains only lowercase letters, digits, "
                "hyphens and underscores, at most 31.",
                field=field,
            )
        )
    if name in SYSTEM_USERS or name.startswith("larder-"):
        raise Refused(used_by_system(name).with_field(field))
    return name


def check_group_name(name: str, *, field: str = "group") -> str:
    """A name for a group of users. Samba wants it to differ from every user's name."""
    refuse_invisible_characters(name, field)
    if not re.fullmatch(r"[a-z][a-z0-9_-]{0,30}", name):
        raise Refused(
            Reason(
                "group-name-invalid",
                "A group's name begins with a lowercase letter and contains only lowercase letters, digits, "
                "hyphens and underscores, at most 31.",
                field=field,
            )
        )
    if name in SYSTEM_USERS | SYSTEM_GROUPS or name.startswith("larder-"):
        raise Refused(used_by_system(name).with_field(field))
    return name


def used_by_system(name: str) -> Reason:
    """Why a user or group cannot have a name of the system's own."""
    return Reason("name-used-by-system", "The system itself uses the name {name}. Choose another name.", name=name)


def user_or_group(name: str, *, field: str = "write") -> str:
    """A user's name, or a group's as ``@family``."""
    if name.startswith("@"):
        check_group_name(name[1:], field=field)
    else:
        check_user_name(name, field=field)
    return name


def check_display_name(text: str, *, field: str = "display") -> str:
    """A user's name as pages show it: one line of the comment field, which uses ``:`` and ``,`` itself (passwd(5))."""
    refuse_invisible_characters(text, field)
    if any(letter in ':,=\\"' or not letter.isprintable() for letter in text) or text != text.strip():
        raise Refused(
            Reason(
                "display-name-invalid",
                "This name contains a colon, comma, equals sign, backslash, quote or invisible character. "
                "Leave that out.",
                field=field,
            )
        )
    if len(text) > LONGEST_DISPLAY or len(text.encode()) > 2 * LONGEST_DISPLAY:
        raise Refused(
            Reason(
                "display-name-too-long",
                "That name is longer than {most} characters. Choose a shorter name.",
                field=field,
                most=LONGEST_DISPLAY,
            )
        )
    return text


def by_id(path: str, *, field: str = "disks") -> str:
    """A disk's stable path; pools are made of these only."""
    if not re.fullmatch(r"/dev/disk/by-id/[A-Za-z0-9][A-Za-z0-9_.:+=@-]{0,200}", path):
        raise Refused(Reason("disk-path-malformed", "That is not a disk's stable path.", field=field))
    return path


def job_id(text: str) -> str:
    """A job's id: a UUID in its usual spelling, so that it can be a file's name."""
    try:
        valid = str(uuid.UUID(text)) == text
    except (ValueError, AttributeError, TypeError):
        valid = False
    if not valid:
        raise Refused(Reason("job-id-malformed", "That is not a job's id.", field="job"))
    return text
