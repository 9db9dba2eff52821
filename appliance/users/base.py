"""What operations on users have in common."""

from __future__ import annotations

from collections.abc import Iterator

from appliance import names
from appliance.datasets.reasons import user_missing
from appliance.errors import Reason
from appliance.facts.box import Facts
from appliance.message import Message
from appliance.operation import Operation, Step
from appliance.shares import disconnect
from appliance.shares.settings import SPOKEN


class AccountOperation(Operation):
    """Base of operations on one user."""

    name: str

    def __post_init__(self) -> None:
        names.check_user_name(self.name, field="name")

    @property
    def subject(self) -> str:
        return self.name

    def locks(self) -> tuple[str, ...]:
        return ("accounts",)

    def check(self, facts: Facts) -> Iterator[Reason]:
        if not facts.account(self.name):
            yield user_missing(self.name).with_field("name")


def user_number(facts: Facts, name: str) -> int:
    """The uid of a user, which differs for a new user of the same name; 0 if there is none."""
    account = facts.account(name)
    return account.uid if account else 0


def disconnect_step(name: str) -> Step:
    """Disconnect the clients of a user: sessions continue after a password change."""
    return Step(
        "sessions",
        Message("Disconnect {name}", name=name),
        "\n".join(
            f"{disconnect.describe_end(one, 'PID')}, for each connection over {SPOKEN[one]}"
            for one in disconnect.WITH_USERS
        ),
        lambda work: disconnect.disconnect_user(name, work),
    )
