"""Ask another computer whether it can take copies, and note the answer for the pages."""

from __future__ import annotations

from datetime import UTC, datetime

from msgspec.structs import replace

from appliance.backups.remote import answers, connection, settings
from appliance.backups.remote.answers import Hello
from appliance.backups.remote.remote_place import say_hello
from appliance.errors import Failed, LarderError, Refused, explain_error
from appliance.facts.remote import Remote
from appliance.message import join_messages


def try_remote(key: str) -> tuple[Remote, Hello]:
    """Sign in there and see that everything is as copies need it.
    Raises Unreachable, Refused with all that is missing."""
    remote = settings.find_remote(key)
    now = datetime.now(UTC).replace(microsecond=0)
    try:
        hello = say_hello(remote)
        Refused.unless_empty(answers.problems(hello, remote))
    except LarderError as error:
        offered = remote.offered_key
        if isinstance(error, connection.Unreachable) and error.code == "remote-host-key":
            offered = fetch_other_key(remote)
        settings.write_remote(replace(remote, tested=now, problem=explain_error(error), offered_key=offered))
        raise
    restores = join_messages([reason.message for reason in answers.restore_problems(hello, remote)])
    remote = replace(
        remote,
        tested=now,
        problem="",
        restore_problem=restores,
        offered_key="",
        zfs=hello.version_text,
        free=hello.available,
    )
    settings.write_remote(remote)
    return remote, hello


def fetch_other_key(remote: Remote) -> str:
    """The host key that the computer shows instead of the one that was confirmed; what was known
    before where it cannot be had."""
    try:
        found = connection.fetch_host_key(remote.host, remote.port)
    except Failed:
        return remote.offered_key
    return "" if found == remote.host_key else found
