"""The passwords of several new users as the one secret of a job: a line of JSON, for as long as the job needs it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from appliance import passphrases
from appliance.errors import Reason, Refused
from appliance.operation import Work

MOST = 4  # users; the secret of a job is one line of at most ``passphrases.LONGEST_PASSPHRASE`` bytes


def encode_passwords(passwords: Mapping[str, str]) -> str:
    """The secret of a job. Raises Refused where a password is none, or all together are too long."""
    for name, password in passwords.items():
        passphrases.check_password(password, field=f"secret-{name}")
    text = msgspec.json.encode(dict(passwords)).decode()
    if len(text.encode()) > passphrases.LONGEST_PASSPHRASE:
        raise Refused(
            Reason(
                "passwords-too-long",
                "These passwords are too long together. Shorten one, or create some users on the Users page first.",
                field=f"secret-{next(iter(passwords))}",
            )
        )
    return text


class NewPasswords:
    """The passwords of one run. The secret can be had once, so they stay in memory until the last step of a user."""

    def __init__(self) -> None:
        self._known: dict[str, str] | None = None

    def reader(self, name: str) -> Callable[[Work], str]:
        """What a password step asks for the password of that user."""

        def read(work: Work) -> str:
            if self._known is None:
                self._known = decode_passwords(work.secret())
            if name not in self._known:
                raise missing_passwords()
            return self._known.pop(name)

        return read


def decode_passwords(secret: str) -> dict[str, str]:
    try:
        return msgspec.json.decode(secret, type=dict[str, str])
    except (msgspec.MsgspecError, RecursionError):
        # The error would quote what was typed.
        raise missing_passwords() from None


def missing_passwords() -> Refused:
    return Refused(
        Reason("secret-gone", "The passphrase or password is no longer at hand. Start again and type it once more.")
    )
