"""Home folders: a dataset of one user, below a folder that the administrator chose."""

from __future__ import annotations

from collections.abc import Iterator

from appliance import names
from appliance.datasets import access_note, permissions
from appliance.datasets.create import CreateDataset
from appliance.errors import Reason, Refused
from appliance.facts.box import Facts
from appliance.facts.sharing import Account
from appliance.operation import Step
from appliance.shares import inheritance, teardown

FIELD = "home"


def parent_guid(home: str, facts: Facts) -> int:
    found = facts.dataset(home)
    return found.guid if found else 0


def home_operation(home: str, name: str) -> CreateDataset:
    """The operation that creates a home folder like any other folder."""
    return CreateDataset(parent=home, name=name)


def reasons_against(home: str, name: str, facts: Facts) -> Iterator[Reason]:
    """Reasons against a home folder, for the form's field ``home``."""
    try:
        reasons = list(home_operation(home, name).check(facts))
    except Refused as refusal:
        reasons = list(refusal.reasons)
    yield from (reason.with_field(FIELD) for reason in reasons)
    parent = facts.dataset(home)
    if parent and not reasons:
        try:
            names.served_path(f"{parent.mountpoint.rstrip('/')}/{name}")
        except Refused as refusal:
            yield from (reason.with_field(FIELD) for reason in refusal.reasons)


def home_steps(home: str, name: str, facts: Facts) -> tuple[Step, ...]:
    """Create the folder, let only its user in, and serve it where it inherits a share."""
    folder = f"{home}/{name}"
    return (
        *permissions.private_steps(folder, name),
        *inheritance.serve_new_step(facts.dataset(home), folder),
    )


def probe_home(home: str, account: Account, step: str, facts: Facts) -> bool:
    dataset = facts.dataset(f"{home}/{account.name}")
    if dataset is None or step == "home":
        return dataset is not None and dataset.mounted
    if step == "serve":
        return teardown.all_served(facts, [dataset])
    note = access_note.valid_note(dataset, facts)
    return note is not None and note.done and note.people == {account.name: "change"}
