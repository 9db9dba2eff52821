"""The proof that only the person has: the administrator's password, checked against a hash that only root can read.

Web and worker may set it once, while there is none; afterwards only with the old one. A right password is a proof for
one job, one operation and one digest, for a few minutes. It is kept nowhere: what stays is the hash and, until the job
begins, a note that this job was proved.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import time
from pathlib import Path

from appliance.errors import Reason, Refused
from appliance.message import Message
from appliance.names import job_id
from appliance.operation import Operation, as_json
from appliance.system import atomic_file, locks, paths

COST = {"n": 2**14, "r": 8, "p": 1}  # scrypt: 16 MiB and about a tenth of a second
LONGEST = 4096
FREE_TRIES = 5
FIRST_DELAY, LONGEST_DELAY = 5, 300  # seconds after a wrong password, doubled with each further one
SECONDS_VALID = 600


def hash_file() -> Path:
    return paths.AGENT_STATE / "administrator"


def tries_file() -> Path:
    return paths.AGENT_STATE / "administrator-tries"


def marker() -> Path:
    """Tells web and worker that there is a hash, so that they need not ask at each sign-in."""
    return paths.RUN / "administrator-known"


def is_set() -> bool:
    return hash_file().exists()


def store_hash(password: str, old: str = "") -> None:
    """Keep the hash of a password: the first one as it comes, another only with the old one. Raises Refused.

    One that is kept already is kept again whatever the old one is: the pages could not store
    a change that was kept here.
    """
    if not 1 <= len(password.encode()) <= LONGEST:
        raise Refused(Reason("password-not-chosen", "Choose a password.", field="password"))
    paths.AGENT_STATE.mkdir(parents=True, exist_ok=True, mode=0o700)
    if is_set():
        mark()
        if not old:
            raise Refused(
                Reason("password-exists", "There is a password already. Change it with the old one.", field="password")
            )
        check(*{old, password})
    with locks.hold_locks([str(hash_file())]):
        # Looked at once more where nobody else is: of two who come first, one is.
        if is_set() and not old:
            raise Refused(
                Reason("password-exists", "There is a password already. Change it with the old one.", field="password")
            )
        salt = os.urandom(16)
        kept = {"salt": salt.hex(), "hash": hashed(password, salt, **COST).hex(), **COST}
        atomic_file.write_atomically(hash_file(), json.dumps(kept).encode())
    mark()


def mark() -> None:
    try:
        marker().touch(mode=0o644)
    except OSError:
        pass


def remove_hash() -> None:
    """Remove the hash, so that the next sign-in sets it. For root alone, at the console."""
    for path in (hash_file(), tries_file(), marker()):
        path.unlink(missing_ok=True)


def hashed(password: str, salt: bytes, *, n: int, r: int, p: int) -> bytes:
    return hashlib.scrypt(password.encode(), salt=salt, n=n, r=r, p=p, maxmem=2**27)


def check(*passwords: str) -> None:
    """Return where one of the passwords is right; each counts as a try.
    Raises Refused where all are wrong, were wrong too often, or none is set."""
    with locks.hold_locks([str(hash_file())]):
        failed, until = tries()
        left = min(until - time.time(), LONGEST_DELAY)  # a clock that was put back keeps nobody out for longer
        if left > 0:
            raise Refused(
                Reason(
                    "password-wrong-too-often",
                    "The password was wrong too often. Try again in {wait}.",
                    field="password",
                    wait=wait_text(left),
                )
            )
        try:
            kept = json.loads(hash_file().read_text())
        except FileNotFoundError:
            raise Refused(
                Reason(
                    "password-not-known", "No password is known yet. Sign out, then sign in again.", field="password"
                )
            ) from None
        # Counted before it is looked at: ending the process in between is no free try.
        count(failed + len(passwords))
        salt, cost = bytes.fromhex(kept["salt"]), {name: kept[name] for name in COST}
        given = [hashed(password[:LONGEST], salt, **cost) for password in passwords]
        if not any(hmac.compare_digest(one, bytes.fromhex(kept["hash"])) for one in given):
            raise Refused(
                Reason(
                    "password-wrong", "That is not the administrator's password. Nothing was started.", field="password"
                )
            )
        tries_file().unlink(missing_ok=True)


def tries() -> tuple[int, float]:
    """How many wrong passwords came since the last right one, and until when none is looked at."""
    try:
        found = json.loads(tries_file().read_text())
        return int(found["failed"]), float(found["until"])
    except (OSError, ValueError, KeyError, TypeError):
        return 0, 0.0


def count(failed: int) -> None:
    delay = min(FIRST_DELAY * 2 ** min(failed - FREE_TRIES, 20), LONGEST_DELAY) if failed >= FREE_TRIES else 0
    atomic_file.write_atomically(tries_file(), json.dumps({"failed": failed, "until": time.time() + delay}).encode())


def wait_text(seconds: float) -> str:
    if seconds < 1:
        return Message("1 second")
    return (
        Message("{count} seconds", count=int(seconds) + 1)
        if seconds < 90
        else Message("{count} minutes", count=int(seconds // 60) + 1)
    )


# --- a proof for one job -------------------------------------------------------------------------------------------
def proof_file(job: str) -> Path:
    return paths.JOBS / f"{job_id(job)}.proof"


def covers(operation: Operation, digest: str) -> str:
    return hashlib.sha256(f"{as_json(operation)}\n{digest}".encode()).hexdigest()


def grant(job: str, operation: Operation, digest: str, password: str) -> None:
    """Note that this very job was proved. Raises Refused where the password is wrong."""
    path = proof_file(job)
    check(password)
    paths.JOBS.mkdir(parents=True, exist_ok=True, mode=0o700)
    said = {"covers": covers(operation, digest), "until": time.clock_gettime(time.CLOCK_BOOTTIME) + SECONDS_VALID}
    path.write_text(json.dumps(said))


def redeem(job: str, operation: Operation, digest: str) -> bool:
    """Whether this very job was proved; the note is gone afterwards."""
    path = proof_file(job)
    try:
        said = json.loads(path.read_text())
    except (OSError, ValueError):
        return False
    path.unlink(missing_ok=True)
    fresh = float(said["until"]) >= time.clock_gettime(time.CLOCK_BOOTTIME)
    return fresh and hmac.compare_digest(str(said["covers"]), covers(operation, digest))
