"""The actions on a dataset's page, and what its views share."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import msgspec
from django.db.models import F, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext

from appliance.backups.copies import is_copy
from appliance.datasets.encryption import key_store
from appliance.datasets.presets import PRESETS
from appliance.facts import user_properties
from appliance.facts.copy_mark import is_continued
from appliance.facts.datasets import Dataset, DatasetDetail
from appliance.operation import Operation
from web.datasets import space_bar
from web.inventory import store
from web.inventory.dataset_models import DatasetDetailRow, DatasetRow
from web.inventory.models import Source
from web.jobs import confirm, queue

FRESH = timedelta(seconds=10)


class ActionLink(msgspec.Struct, frozen=True):
    """A link on a dataset's page. ``seldom``: behind "More"."""

    words: str
    url: str
    icon: str
    seldom: bool = False
    danger: bool = False


def find_row(key: str) -> DatasetRow:
    return get_object_or_404(DatasetRow, key=key)


def locked_roots() -> QuerySet[DatasetRow]:
    """What "Unlock everything" unlocks: the locked datasets with a key of their own, by name.

    Not the copies of backups that are sent encrypted: those are always locked, and nobody works with them.
    """
    return DatasetRow.objects.filter(locked=True, is_copy=False, encryption_root=F("name")).order_by("name")


def list_actions(key: str, dataset: Dataset) -> Iterator[ActionLink]:
    """The actions that are possible now."""

    def link_to(
        name: str, words: str, icon: str, *, seldom: bool = False, danger: bool = False, **more: str
    ) -> ActionLink:
        return ActionLink(words, reverse(name, kwargs={"key": key, **more}), icon, seldom or danger, danger)

    volume, top = dataset.kind == "volume", "/" not in dataset.name
    if not volume:
        yield link_to("restore_files", gettext("Restore files"), "history")
    if not is_continued(dataset.copy_of):
        yield link_to("take_snapshot", gettext("Take a snapshot"), "snapshot")
    if is_copy(dataset):
        words = gettext("Restore this volume") if volume else gettext("Restore this folder")
        yield link_to("restore_folder", words, "copy")
    yield link_to("folder_settings", gettext("Settings"), "settings")
    if volume:
        yield link_to("grow_volume", gettext("Make it larger"), "plus")
    else:
        yield link_to("folder_people", gettext("Space by user"), "users")
    if not top and not dataset.copy_of:
        yield link_to("rename_folder", gettext("Rename or move"), "folder", seldom=True)
    if dataset.origin:
        yield link_to("folder_act", gettext("Make it independent"), "repair", seldom=True, act="promote")
    if dataset.mounted:
        yield link_to("folder_act", gettext("Unmount"), "x", seldom=True, act="unmount")
    elif not (volume or dataset.locked) and dataset.canmount != "off" and dataset.mountpoint.startswith("/"):
        yield link_to("folder_act", gettext("Mount"), "plus", act="mount")
    if dataset.encryption != "off" and not dataset.locked:
        yield link_to("folder_key", gettext("Key and lock"), "lock")
    if not top:
        yield link_to("destroy_folder", gettext("Destroy"), "trash", danger=True)


def folder_context(row: DatasetRow) -> dict[str, object]:
    """Context for the page of one dataset; makes no query."""
    dataset: Dataset = row.fact
    preset = dataset.properties.get(user_properties.PRESET)
    known = PRESETS.get(preset.value) if preset and preset.source in {"local", "inherited"} else None
    acts = list(list_actions(row.key, dataset))
    return {
        "acts": acts,
        "seldom": any(act.seldom for act in acts),
        "picture": space_bar.draw_space(dataset),
        "preset": known,
        "keeps_key": key_store.is_marked(dataset),
    }


def read_detail(row: DatasetRow) -> tuple[DatasetDetail | None, str]:
    """The details of a dataset as last read, and the error of reading them.
    Also requests a new reading if they are old."""
    name = store.dataset_source(row.key)
    if store.claim_refresh(name, not_since=timezone.now() - FRESH):
        queue.send("workers.read_dataset", row.key)
    detail = DatasetDetailRow.objects.filter(key=row.key).first()
    source = Source.objects.filter(name=name).first()
    return (detail.fact if detail else None), (source.error if source else "")


def start_and_return(request: HttpRequest, operation: Operation, back: str) -> HttpResponse:
    """Start a job without a review page and redirect to ``back``. Raises Refused."""
    confirm.start_without_review(operation, user=request.user.get_username())
    return redirect(back)
