"""The first steps with a new box: each is shown on the overview until it is done or dismissed."""

from __future__ import annotations

import msgspec
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_POST

from web.alerts.models import MailSettings, Message, SelfTestPlan
from web.backups import recovery
from web.inventory import store
from web.inventory.dataset_models import DatasetRow
from web.inventory.models import AccountRow
from web.overview.models import DismissedStep
from web.translation import lazy_text


class FirstStep(msgspec.Struct, frozen=True):
    """One step: what it is for in one sentence, and the page that does it."""

    key: str
    title: str
    sentence: str
    route: str
    link_text: str

    @property
    def link(self) -> str:
        return reverse(self.route)


STEPS = (
    FirstStep(
        "pool",
        lazy_text("Create a pool"),
        lazy_text("It joins disks into one place for your files."),
        "create_pool",
        lazy_text("Create a pool"),
    ),
    FirstStep(
        "folder",
        lazy_text("Share a folder"),
        lazy_text("Then other computers can keep files on this box."),
        "share_new_folder",
        lazy_text("Share a folder"),
    ),
    FirstStep(
        "user",
        lazy_text("Add a user"),
        lazy_text("A share opens with the name and password of a user."),
        "create_user",
        lazy_text("Create a user"),
    ),
    FirstStep(
        "snapshots",
        lazy_text("Turn on automatic snapshots"),
        lazy_text("They keep earlier versions of files, so that what was deleted can be restored."),
        "snapshot_policies",
        lazy_text("See the schedules"),
    ),
    FirstStep(
        "backup",
        lazy_text("Back up a folder"),
        lazy_text("A second copy on other disks survives the loss of the pool."),
        "new_backup",
        lazy_text("Choose a folder"),
    ),
    FirstStep(
        "recovery",
        lazy_text("Make a recovery phrase"),
        lazy_text("With it and a backup, a new box can take the place of this one."),
        "recovery",
        lazy_text("See the recovery phrase"),
    ),
    FirstStep(
        "notifications",
        lazy_text("Set up notifications"),
        lazy_text("A test mail shows that you will hear of a failing disk."),
        "mail_settings",
        lazy_text("Set up notifications"),
    ),
    FirstStep(
        "self-tests",
        lazy_text("Schedule self-tests of disks"),
        lazy_text("A disk then looks for its own faults before you need what is on it."),
        "self_test_plan",
        lazy_text("Choose a schedule"),
    ),
)


def is_heard() -> bool:
    """Whether somebody hears of a failure: a test reached a mail server or webhook as it is set up now. Two queries."""
    ways = MailSettings.load_row().ways
    return bool(ways) and Message.objects.filter(event="test", way__in=ways, state=Message.State.SENT).exists()


def open_steps(*, pools: bool, shared: bool, heard: bool) -> list[FirstStep]:
    """The steps that are neither done nor dismissed. The caller knows of pools, shares and notifications."""
    plan = SelfTestPlan.load_row()
    done = {
        "pool": pools,
        "folder": shared,
        "user": AccountRow.objects.exists(),
        "snapshots": DatasetRow.objects.filter(policy_source="local").exists(),
        "backup": DatasetRow.objects.filter(backup_source="local").exists(),
        "recovery": not recovery.is_missing(),
        "notifications": heard,
        "self-tests": (plan.short, plan.long) != ("never", "never"),
    }
    dismissed = set(DismissedStep.objects.values_list("key", flat=True))
    return [step for step in STEPS if not done[step.key] and step.key not in dismissed]


@require_POST
def dismiss_step(request: HttpRequest, key: str) -> HttpResponse:
    """Show a step no longer."""
    if key not in {step.key for step in STEPS}:
        raise Http404
    DismissedStep.objects.get_or_create(key=key, defaults={"by": request.user.get_username()})
    store.touch("overview")
    return redirect("overview")
