"""The form of a backup: where to, when, and how long copies are kept."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any

from django import forms
from django.utils.translation import gettext

from appliance import names
from appliance.backups.tasks import HOME, MOST_RATE, BackupTask
from appliance.errors import Refused
from appliance.facts.box import Facts, Pool
from appliance.facts.datasets import Dataset
from appliance.facts.kept_copies import GRAINS, MOST_KEPT, Keep
from appliance.formatting import size_text
from web.forms_common import HOURS, with_free_space
from web.jobs.refusals import validation_error
from web.translation import lazy_format, lazy_text, text_of

MORE = frozenset((*GRAINS, "days", "drill", "rate", "slow_from", "slow_until"))
REMOTE = "computer-"  # how the choice of another computer begins, before its id
DAYS, DAYS_REMOVABLE = 2, 30  # after which an owner wants to know; a disk in a drawer is fetched seldom
EVERY = (("daily", lazy_text("Every day")), ("weekly", lazy_text("Every Sunday")), ("hourly", lazy_text("Every hour")))


KEPT_WORDS = {
    "hourly": lazy_text("Keep copies of the last hours"),
    "daily": lazy_text("Keep copies of the last days"),
    "weekly": lazy_text("Keep copies of the last weeks"),
    "monthly": lazy_text("Keep copies of the last months"),
}


def kept_field(grain: str, initial: int | None = None) -> forms.IntegerField:
    """How many copies of a grain are kept."""
    return forms.IntegerField(label=KEPT_WORDS[grain], min_value=0, max_value=MOST_KEPT, initial=initial)


def keep_of(given: Mapping[str, Any]) -> Keep:
    """What the fields of ``kept_field`` were answered with. Raises Refused."""
    return Keep(**{grain: given[grain] for grain in GRAINS})


def kept_initial(keep: Keep) -> dict[str, int]:
    """The fields of ``kept_field`` as they are set now."""
    return {grain: keep.count(grain) for grain in GRAINS}


def rate_field(help_text: str) -> forms.IntegerField:
    """How fast may be copied at most; empty: as fast as it can be."""
    return forms.IntegerField(
        label=lazy_text("Copy at most, in MB a second"),
        required=False,
        min_value=1,
        max_value=MOST_RATE,
        help_text=help_text,
    )


class BackupForm(forms.Form):
    """One backup task of a folder."""

    pool = forms.ChoiceField(label=lazy_text("Copy to"), widget=forms.RadioSelect)
    name = forms.CharField(
        label=lazy_text("Name of the copy"),
        max_length=60,
        help_text=lazy_format(
            "The copy is stored in the folder {home} of that pool, or in the folder that was created on that "
            "computer. It is not shared, and nobody can change it.",
            home=HOME,
        ),
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false", "autocapitalize": "none"}),
    )
    removable = forms.BooleanField(
        label=lazy_text("The disk of this pool comes and goes"),
        required=False,
        help_text=lazy_text("For a USB disk: connect it, and Larder copies and then tells you that you can unplug it."),
    )
    below = forms.BooleanField(label=lazy_text("With all folders below it"), required=False)
    every = forms.ChoiceField(label=lazy_text("How often"), choices=EVERY)
    hour = forms.TypedChoiceField(
        label=lazy_text("At"),
        choices=HOURS,
        coerce=int,
        help_text=lazy_text("If the box is off then, it is done later."),
    )
    hourly = kept_field("hourly")
    daily = kept_field("daily")
    weekly = kept_field("weekly")
    monthly = kept_field("monthly")
    days = forms.IntegerField(
        label=lazy_text("Alert me when the newest copy is older than, in days"),
        required=False,
        min_value=1,
        max_value=366,
        help_text=lazy_format(
            "Empty: {days} days, or {removable} for a disk that comes and goes.", days=DAYS, removable=DAYS_REMOVABLE
        ),
    )

    drill = forms.BooleanField(
        label=lazy_text("Test a restore every month"),
        required=False,
        help_text=lazy_text(
            "The whole folder is restored to a place of its own, compared file by file, and removed. It needs as much "
            "room as the folder for some hours."
        ),
    )
    rate = rate_field(
        lazy_text("So that others are not kept waiting. Leave it empty to copy as fast as the disks can.")
    )
    slow_from = forms.TypedChoiceField(label=lazy_text("Slow down from"), choices=HOURS, coerce=int, required=False)
    slow_until = forms.TypedChoiceField(
        label=lazy_text("Slow down until"),
        choices=HOURS,
        coerce=int,
        required=False,
        help_text=lazy_text(
            "The same hour in both: always. Outside of these hours it copies as fast as the disks can."
        ),
    )

    def __init__(self, data: object, *, dataset: Dataset, facts: Facts, task: BackupTask | None = None) -> None:
        now = task or BackupTask(
            key="0" * 8, pool=0, path=f"{HOME}/{dataset.name.rpartition('/')[2].replace(':', '-')}"
        )
        initial: dict[str, Any] = {
            "pool": place_of(now),
            "name": now.path.rpartition("/")[2],
            "below": now.below,
            "removable": now.removable,
            "every": now.every,
            "hour": now.hour,
            "days": task.days if task else None,
            "drill": now.drill,
            "rate": now.rate or None,
            "slow_from": now.slow_from,
            "slow_until": now.slow_until,
            **kept_initial(now.keep),
        }
        pools = [*pool_choices(dataset, facts), *remote_choices(facts)]
        if task is None and len(pools) == 1:
            initial["pool"] = pools[0][0]
            initial["removable"] = any(pool.on_usb for pool in facts.pools if str(pool.guid) == pools[0][0])
        super().__init__(data, initial=initial)  # type: ignore[arg-type]  # Django takes a QueryDict here
        self.key = task.key if task else ""
        choices = pools
        if task:  # changing these would be another backup
            for name in ("pool", "name"):
                self.fields[name].disabled = True
            if place_of(task) not in dict(pools):
                gone = (
                    gettext("The computer that was removed")
                    if task.remote
                    else gettext("The pool that is not connected")
                )
                choices = [(place_of(task), gone), *pools]
        self.fields["pool"].choices = choices  # type: ignore[attr-defined]  # a field with choices, declared above

    @property
    def first_fields(self) -> list[forms.BoundField]:
        return [field for field in self if field.name not in MORE]

    @property
    def more_fields(self) -> list[forms.BoundField]:
        """What has values that suit most people."""
        return [field for field in self if field.name in MORE]

    @property
    def more_open(self) -> bool:
        return bool(self.key) or any(field.errors for field in self.more_fields)

    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"]
        try:
            return names.check_folder_name(name)
        except Refused as refusal:
            raise validation_error(refusal.reasons) from refusal

    @property
    def task(self) -> BackupTask:
        """The task that was asked for. Raises Refused."""
        given = self.cleaned_data
        remote = given["pool"].removeprefix(REMOTE) if given["pool"].startswith(REMOTE) else ""
        return BackupTask(
            key=self.key or secrets.token_hex(4),
            pool=0 if remote else int(given["pool"]),
            remote=remote,
            path=given["name"] if remote else f"{HOME}/{given['name']}",
            every=given["every"],
            hour=given["hour"],
            below=given["below"],
            removable=given["removable"] and not remote,
            keep=keep_of(given),
            days=given["days"] or (DAYS_REMOVABLE if given["removable"] and not remote else DAYS),
            drill=given["drill"],
            rate=given["rate"] or 0,
            slow_from=given["slow_from"] or 0,
            slow_until=given["slow_until"] or 0,
        )


def place_of(task: BackupTask) -> str:
    """The choice that stands for where a task's copies go."""
    return f"{REMOTE}{task.remote}" if task.remote else str(task.pool)


def remote_choices(facts: Facts) -> list[tuple[str, str]]:
    """The other computers that a folder can be copied to: those whose host key is confirmed."""
    return [
        (
            f"{REMOTE}{one.id}",
            with_free_space(one.host, one.free) if one.free else one.host,
        )
        for one in facts.remotes
        if one.host_key
    ]


def pool_choices(dataset: Dataset, facts: Facts) -> list[tuple[str, str]]:
    """The pools that a folder can be copied to: all others that are here."""
    tops = {one.name: one for one in facts.datasets}

    def label(pool: Pool) -> str:
        if pool.name not in tops:
            return pool.name
        free = tops[pool.name].available
        if pool.on_usb:
            return gettext("{name} (USB disk, {available} free)").format(
                name=pool.name, available=text_of(size_text(free))
            )
        return with_free_space(pool.name, free)

    return [(str(pool.guid), label(pool)) for pool in facts.pools if pool.name != dataset.pool]
