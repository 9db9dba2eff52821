"""The password of the mail server: read for the sealed secrets, and left for the pages when
a box takes another's place.

It lies in a folder of the unprivileged ``larder`` user, so no link is followed and only its own plain files are read.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from appliance.facts import box_record
from appliance.system import atomic_file, paths

NAME = "mail-password"  # as web/alerts/smtp_password.py
LONGEST = 500  # characters, as the form


def is_password(text: str) -> bool:
    return len(text) <= LONGEST and "\n" not in text and "\0" not in text


def read_mail_password() -> str:
    """The stored password; empty where there is none, or a file that Larder's pages did not write."""
    try:
        handle = os.open(paths.STATE / NAME, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return ""
    with os.fdopen(handle, "rb") as file:
        found = os.fstat(file.fileno())
        # A hard link to a file of somebody else would be sealed, and handed to the pages by who opens it.
        own = found.st_uid == paths.STATE.stat().st_uid and found.st_nlink == 1
        if not own or not stat.S_ISREG(found.st_mode) or found.st_size > 4 * LONGEST:
            return ""
        text = file.read(4 * LONGEST).decode(errors="replace")
    return text if is_password(text) else ""


def left_file(box: str) -> Path:
    """Where the password of another box waits until its mail settings are brought back."""
    return paths.STATE / f"{NAME}-{box}"


def leave_password(box: str, password: str) -> None:
    """Leave the password for the pages, in a file of the owner of their folder. Raises OSError."""
    if not box_record.BOX_ID.fullmatch(box) or not is_password(password):
        return
    place = left_file(box)
    beside = place.with_name(f".{place.name}.new")
    beside.unlink(missing_ok=True)
    handle = os.open(beside, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(handle, "wb") as file:
        owner = paths.STATE.stat()
        os.fchown(file.fileno(), owner.st_uid, owner.st_gid)
        file.write(password.encode())
        file.flush()
        os.fsync(file.fileno())
    beside.replace(place)
    atomic_file.sync_folder(place.parent)
