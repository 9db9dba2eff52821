"""Remove a user or group from the settings of all shares, and serve the shares without it."""

from __future__ import annotations

from appliance import command
from appliance.errors import LarderError, explain_error
from appliance.facts import user_properties
from appliance.facts.box import Facts
from appliance.message import Message
from appliance.operation import Step, Work
from appliance.shares import approved, publish
from appliance.shares.settings import setting_of


def drop_user(who: str, heir: str, facts: Facts, work: Work) -> None:
    """Remove ``who`` from all shares, so that a later user of that name gets no access; ``heir`` may take the place.

    Shares that were never approved on this box are left alone.
    A setting that cannot be written adds a line to the job's log, since the user is removed anyway.
    """
    approved_guids, changed = approved.read_approved(), False
    for dataset in facts.datasets:
        setting = setting_of(dataset)
        if (
            setting is None
            or who not in setting.people
            or dataset.share_source == "inherited"
            or dataset.guid not in approved_guids
        ):
            continue
        try:
            text = setting.without(who, heir).text()
            command.run(["zfs", "set", f"{user_properties.SHARE}={text}", dataset.name], timeout=60)
            changed = True
        except LarderError as error:
            work.note(
                Message(
                    "{dataset} could not be changed and still names {who}: {explain_error}",
                    dataset=dataset.name,
                    who=who,
                    explain_error=explain_error(error),
                )
            )
    if changed:
        publish.republish_quietly(work)


def drop_step(who: str, heir: str, facts: Facts) -> Step:
    return Step(
        "unlist",
        Message("Remove it from the shares"),
        f"zfs set {user_properties.SHARE}=… of each",
        lambda work: drop_user(who, heir, facts, work),
    )


def folders_sharing_with(who: str, facts: Facts) -> list[str]:
    """The folders whose shares name a user or group."""
    return [dataset.name for dataset in facts.datasets if (setting := setting_of(dataset)) and who in setting.people]
