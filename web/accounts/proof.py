"""The administrator's password at the agent, which keeps a hash of its own: set it, change it, prove a job with it.

The password goes there on the agent's socket. No row, file or log holds it.
"""

from __future__ import annotations

import json
import logging

from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.models import AnonymousUser

from appliance import agent_client
from appliance.agent import proof
from appliance.errors import Failed, LarderError, Reason, Refused, explain_error
from appliance.operation import Operation, as_json

log = logging.getLogger(__name__)
SECONDS = 60


def keep_first(password: str) -> None:
    """Have the agent know the password that somebody has just signed in with, where it knows none yet."""
    if proof.marker().exists():
        return
    try:
        store_password(password)
    except Refused:
        pass  # it knows one, of this or another time
    except LarderError as error:
        log.warning(
            "the agent could not be told the password, so acts that destroy will wait: %s", explain_error(error)
        )


def store_password(password: str, old: str = "") -> None:
    """Raises Refused where the old one is wrong, Failed where the agent does not answer."""
    agent_client.send_request({"verb": "keep-password", "password": password, "old": old}, silence=SECONDS)


def prove_job(
    operation: Operation, *, digest: str, job: str, password: str, user: AbstractBaseUser | AnonymousUser
) -> tuple[Reason, ...]:
    """Have the agent note that this job carries the password, and return what speaks against it."""
    asked = {"job": job, "digest": digest, "operation": json.loads(as_json(operation))}
    line = {"verb": "prove", **asked, "password": password}
    try:
        if agent_client.send_request(line, silence=SECONDS)["facts"]["known"]:
            return ()
        if not user.check_password(password):
            return (Reason("password-not-yours", "That is not your password. Nothing was started.", field="password"),)
        store_password(password)
        agent_client.send_request(line, silence=SECONDS)
    except Refused as refusal:
        return tuple(reason.with_field("password") for reason in refusal.reasons)
    except Failed as failure:
        return (
            Reason(
                "password-not-checked",
                "Your password could not be checked: {error}. Nothing was started.",
                field="password",
                error=explain_error(failure),
            ),
        )
    return ()
