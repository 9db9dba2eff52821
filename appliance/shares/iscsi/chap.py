"""The secrets of CHAP: files of root's, named by the volume's guid. They stay on the box when the disks leave it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from appliance.errors import Reason, Refused
from appliance.shares.iscsi.part import check_chap_secret
from appliance.system import atomic_file, paths

FOLDER = paths.AGENT_STATE / "chap"


@dataclass(frozen=True)
class Secrets:
    """What the other computer has to know, and what the box answers with; empty where it does not sign in itself."""

    secret: str = field(repr=False)
    back: str = field(default="", repr=False)


def encode_secrets(secrets: Iterable[str]) -> str:
    """The secret of a job that ``parse_secrets`` reads: one line, because a job's secret is one. Raises Refused."""
    text = " ".join(secrets)
    parse_secrets(text)
    return text


def parse_secrets(text: str) -> Secrets:
    """The secrets of a job: one, or one for each way with a space between them; neither holds one. Raises Refused."""
    found = text.split(" ")
    if len(found) > 2:
        raise Refused(Reason("chap-secrets-malformed", "Those are not the secrets of CHAP. Type them again."))
    for one in found:
        check_chap_secret(one)
    if len(set(found)) < len(found):
        raise Refused(
            Reason("chap-secrets-equal", "Choose two different secrets. Windows and Linux refuse equal ones.")
        )
    return Secrets(*found)


def secrets_path(guid: int) -> Path:
    return FOLDER / str(guid)


def read_secrets(guid: int) -> Secrets | None:
    """The secrets for that volume; None where this box has none. Only root may read them."""
    try:
        return parse_secrets(secrets_path(guid).read_text())
    except (OSError, Refused, UnicodeDecodeError):
        return None


def store_secrets(guid: int, secrets: Secrets) -> None:
    """Write them durably to a file that only root can read."""
    FOLDER.mkdir(parents=True, exist_ok=True, mode=0o700)
    text = " ".join(filter(None, (secrets.secret, secrets.back)))
    atomic_file.write_atomically(secrets_path(guid), text.encode())


def delete_secrets(guid: int) -> None:
    if secrets_path(guid).exists():
        secrets_path(guid).unlink(missing_ok=True)
        atomic_file.sync_folder(FOLDER)
