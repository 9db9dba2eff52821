"""Grammars of every name that reaches a command. A name is checked by its kind before anything sees it.

Each function returns the name unchanged or raises Refused with a sentence. They are stricter than the system
below: what Larder makes is plain; what it finds (an imported pool) is checked by the ``existing_`` forms, which
follow the system's own rules (zfs: ``module/zcommon/zfs_namecheck.c``).
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
RESERVED_SHARES = {"global", "homes", "printers", "print$", "ipc$", "admin$", "netlogon", "sysvol", "profiles"}
SHORTEST_PASSPHRASE, LONGEST_PASSPHRASE = 8, 512  # bytes; zfs-load-key(8)
LONGEST_DATASET = 200  # of ZFS's 255 bytes, leaving room for a snapshot's name
LONGEST_WAY = 4096  # bytes, PATH_MAX
LONGEST_SNAPSHOT = 255  # bytes, ZFS_MAX_DATASET_NAME_LEN less the NUL
# Top folders that hold the system itself, with everything below them (hier(7)).
SYSTEM_FOLDERS = {"bin", "boot", "dev", "efi", "etc", "home", "lib", "lib32", "lib64", "libx32", "lost+found", "opt", "proc", "root", "run", "sbin", "sys", "tmp", "usr", "var"}  # fmt: skip
# Top folders that every system has for what is mounted: nothing of the system lies in them, and pools may.
MOUNT_FOLDERS = {"media", "mnt", "srv"}
SYSTEM_ACCOUNTS = {"root", "larder", "nobody", "admin", "daemon", "bin", "sys", "www-data", "redis", "backup", "mail"}
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


def refuse(text: str, field: str) -> Refused:
    return Refused(Reason("", text, field=field))


def printable(text: str, field: str) -> None:
    """Refuse control characters: a newline in a name is never an accident worth keeping."""
    if any(ord(letter) < 32 or ord(letter) == 127 for letter in text):
        raise refuse("This holds a line break or another invisible character. Type it again by hand.", field)


def pool(name: str, *, field: str = "name") -> str:
    """A name for a new pool."""
    printable(name, field)
    if not name:
        raise refuse("Give the pool a name, for example tank.", field)
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_.-]*", name):
        raise refuse(
            "A pool's name begins with a letter and holds only letters, digits, hyphen, underscore and dot.", field
        )
    if len(name) > 40:
        raise refuse("That name is longer than 40 characters. Choose a shorter one.", field)
    if name == "log" or name.lower().startswith(RESERVED_POOLS):
        raise refuse(f"ZFS keeps names like {name} for itself. Choose another.", field)
    if re.match(r"c[0-9]", name):
        raise refuse("A name that begins with c and a digit looks like a disk to ZFS. Choose another.", field)
    return name


def folder(name: str, *, field: str = "name") -> str:
    """The last part of a new dataset's name, which people see as a folder."""
    printable(name, field)
    if not name:
        raise refuse("Give the folder a name, for example photos.", field)
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_. -]*", name) or name.endswith((" ", ".")):
        raise refuse(
            "A folder's name begins with a letter or digit and holds only letters, digits, space, hyphen, underscore and dot.",
            field,
        )
    if len(name) > 60:
        raise refuse("That name is longer than 60 characters. Choose a shorter one.", field)
    return name


def existing_pool(name: str, *, field: str = "pool") -> str:
    """The name of a pool that is there, by ZFS's own rule."""
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_.: -]{0,254}", name):
        raise refuse("That is not the name of a pool.", field)
    return name


def existing_dataset(name: str, *, field: str = "dataset") -> str:
    """The full name of a dataset that is there, by ZFS's own rule."""
    parts = name.split("/")
    if (
        len(name) > 255
        or not all(re.fullmatch(r"[A-Za-z0-9_.: -]+", part) and part not in {".", ".."} for part in parts)
        or name[0] in "-. "
    ):
        raise refuse("That is not the name of a folder.", field)
    return name


def existing_snapshot(name: str, *, field: str = "snapshot") -> str:
    """The full name of a snapshot that is there, by ZFS's own rule."""
    return existing_moment(name, "@", "snapshot", field)


def existing_bookmark(name: str, *, field: str = "bookmark") -> str:
    """The full name of a bookmark that is there, by ZFS's own rule."""
    return existing_moment(name, "#", "bookmark", field)


def existing_moment(name: str, mark: str, what: str, field: str) -> str:
    dataset, _mark, short = name.partition(mark)
    if len(name) > 255 or not re.fullmatch(r"[A-Za-z0-9_.: -]+", short):
        raise refuse(f"That is not the name of a {what}.", field)
    existing_dataset(dataset, field=field)
    return name


def snapshot(name: str, *, field: str = "name") -> str:
    """The part of a new snapshot's name after the ``@``."""
    printable(name, field)
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*", name) or len(name) > 50:
        raise refuse(
            "A snapshot's name begins with a letter or digit and holds only letters, digits, hyphen, underscore and dot, at most 50.",
            field,
        )
    if name.startswith("larder-"):
        raise refuse("Names that begin with larder- are those of policies. Choose another.", field)
    return name


def note(text: str, *, field: str = "note") -> str:
    """A line of a person's own words."""
    printable(text, field)
    if len(text.encode()) > 200:
        raise refuse("A note has at most 200 bytes. Make it shorter.", field)
    return text


def inside(way: str, *, field: str = "path") -> tuple[bytes, ...]:
    """The way down to something in a folder, as its parts; none for the folder itself.

    It is percent-encoded like an address (``2024/my%20trip``), since a file's name is bytes and need not be text.
    """
    parts = tuple(unquote_to_bytes(part) for part in way.split("/")) if way else ()
    if (
        way != encoded(parts)
        or any(part in {b"", b".", b".."} or b"/" in part or b"\0" in part or len(part) > 255 for part in parts)
        or sum(len(part) + 1 for part in parts) > LONGEST_WAY
    ):
        raise refuse("That is not the way to a file or folder.", field)
    return parts


def encoded(parts: Iterable[bytes]) -> str:
    """The inverse of ``inside``."""
    return "/".join(quote(part, safe="") for part in parts)


def is_system_folder(path: str) -> bool:
    """Whether a path is ``/`` or lies among the system's own folders. What lies where new pools are mounted does not."""
    below = Path(path)
    if Path("/") != paths.POOLS and below.is_relative_to(paths.POOLS) and ".." not in below.parts:
        return False
    return path == "/" or path.lstrip("/").split("/", 1)[0] in SYSTEM_FOLDERS | {"", ".", ".."}


def is_top_folder(name: str) -> bool:
    """Whether every system has a folder of that name right below ``/``."""
    return name in SYSTEM_FOLDERS | MOUNT_FOLDERS


def served_path(path: str, *, field: str = "dataset") -> str:
    """Where a dataset that is served to clients is mounted: what smb.conf, its macros and a shell take as it is."""
    parts = path.split("/")[1:]
    plain = all(re.fullmatch(r"[\w.:+@, -]+", part) and part == part.strip() for part in parts)
    if not path.startswith("/") or not plain or is_system_folder(path) or {".", ".."} & set(parts) or len(path) > 1000:
        raise refuse(
            "Its place among the folders cannot be served to clients. Give it one such as /tank/photos.", field
        )
    return path


def share(name: str, *, field: str = "share") -> str:
    """A name under which clients see a share."""
    printable(name, field)
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_. -]*", name) or name.endswith((" ", ".")):
        raise refuse(
            "A share's name begins with a letter or digit and holds only letters, digits, space, hyphen, underscore and dot.",
            field,
        )
    if len(name) > 60:
        raise refuse("That name is longer than 60 characters. Choose a shorter one.", field)
    if name.lower() in RESERVED_SHARES:
        raise refuse(f"Samba keeps the name {name} for itself. Choose another.", field)
    return name


def account(name: str, *, field: str = "account") -> str:
    """A name for a person who uses shares."""
    printable(name, field)
    if not re.fullmatch(r"[a-z][a-z0-9_-]{0,30}", name):
        raise refuse(
            "An account's name begins with a small letter and holds only small letters, digits, hyphen and underscore, at most 31.",
            field,
        )
    if name in SYSTEM_ACCOUNTS or name.startswith("larder-"):
        raise refuse(f"The system itself uses the name {name}. Choose another.", field)
    return name


def group(name: str, *, field: str = "group") -> str:
    """A name for people who are let into folders together; Samba wants it to be nobody's own name."""
    printable(name, field)
    if not re.fullmatch(r"[a-z][a-z0-9_-]{0,30}", name):
        raise refuse(
            "A group's name begins with a small letter and holds only small letters, digits, hyphen and underscore, at most 31.",
            field,
        )
    if name in SYSTEM_ACCOUNTS | SYSTEM_GROUPS or name.startswith("larder-"):
        raise refuse(f"The system itself uses the name {name}. Choose another.", field)
    return name


def person_or_group(name: str, *, field: str = "write") -> str:
    """Whom a share lets in: an account, or a group as ``@family``."""
    if name.startswith("@"):
        group(name[1:], field=field)
    else:
        account(name, field=field)
    return name


def display(text: str, *, field: str = "display") -> str:
    """What people call somebody: one line of the user's comment field, whose own marks are ``:`` and ``,`` (passwd(5))."""
    printable(text, field)
    if any(letter in ':,=\\"' or not letter.isprintable() for letter in text) or text != text.strip():
        raise refuse(
            "This name holds a colon, comma, equals sign, backslash, quotes or an invisible character. Leave that out.",
            field,
        )
    if len(text) > LONGEST_DISPLAY or len(text.encode()) > 2 * LONGEST_DISPLAY:
        raise refuse(f"That name is longer than {LONGEST_DISPLAY} characters. Choose a shorter one.", field)
    return text


def by_id(path: str, *, field: str = "disks") -> str:
    """A disk's stable path; the only kind of path that a pool is made of."""
    if not re.fullmatch(r"/dev/disk/by-id/[A-Za-z0-9][A-Za-z0-9_.:+=@-]{0,200}", path):
        raise refuse("That is not a disk's stable path.", field)
    return path


def passphrase(text: str, *, field: str = "passphrase") -> str:
    """What unlocks an encrypted dataset: one line of 8 to 512 bytes."""
    printable(text, field)
    size = len(text.encode())
    if size < SHORTEST_PASSPHRASE:
        raise refuse(
            f"A passphrase has at least {SHORTEST_PASSPHRASE} characters. Three or four words are easy to remember.",
            field,
        )
    if size > LONGEST_PASSPHRASE:
        raise refuse(f"A passphrase has at most {LONGEST_PASSPHRASE} bytes.", field)
    return text


def key_digits(text: str, *, field: str = "key") -> str:
    """A key of 32 bytes as 64 hexadecimal digits; zfs(8), keyformat=hex."""
    if not re.fullmatch(r"[0-9a-fA-F]{64}", text):
        raise refuse("That is not a key: one is 64 digits of 0 to 9 and a to f.", field)
    return text


def key_file(content: bytes, *, field: str = "key") -> str:
    """The key in a file, as 64 hexadecimal digits: those digits themselves, or 32 bytes as they are."""
    if len(content) == 32:
        return content.hex()
    try:
        return key_digits(content.decode("ascii").strip(), field=field)
    except (UnicodeDecodeError, Refused):
        raise refuse(
            "That file holds no key. It should be the one that was saved when the pool was made.", field
        ) from None


def password(text: str, *, field: str = "password") -> str:
    """A share password: one line of 8 to 127 bytes (Samba reads it from one line)."""
    printable(text, field)
    if len(text) < 8:
        raise refuse("A password has at least 8 characters.", field)
    if len(text.encode()) > 127:
        raise refuse("A password has at most 127 bytes.", field)
    return text


def job_id(text: str) -> str:
    """A job's id: a UUID in its usual spelling, so that it can be a file's name."""
    try:
        known = str(uuid.UUID(text)) == text
    except (ValueError, AttributeError, TypeError):
        known = False
    if not known:
        raise refuse("That is not a job's id.", "job")
    return text
