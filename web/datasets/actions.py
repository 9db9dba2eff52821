"""What can be done with one dataset, for its page: only what is possible now, each with the address of its page."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils import timezone

from appliance.datasets.encryption import key_store
from appliance.datasets.presets import PRESETS
from appliance.datasets.presets import PROPERTY as PRESET
from appliance.facts.datasets import Dataset, DatasetDetail
from appliance.operation import Operation
from web.datasets import space_bar
from web.inventory import store
from web.inventory.models import DatasetDetailRow, DatasetRow, Source
from web.jobs import confirm, queue

FRESH = timedelta(seconds=10)


@dataclass(frozen=True)
class ActionLink:
    """A link of the page's menu."""

    words: str
    url: str
    icon: str
    danger: bool = False


def find_row(key: str) -> DatasetRow:
    return get_object_or_404(DatasetRow, key=key)


def list_actions(key: str, dataset: Dataset) -> Iterator[ActionLink]:
    """What is possible with it now."""

    def to(name: str, words: str, icon: str, *, danger: bool = False, **more: str) -> ActionLink:
        return ActionLink(words, reverse(name, kwargs={"key": key, **more}), icon, danger)

    volume, top = dataset.kind == "volume", "/" not in dataset.name
    yield to("folder_settings", "Settings", "settings")
    if volume:
        yield to("grow_volume", "Make it larger", "plus")
    else:
        yield to("folder_people", "Who takes up space", "users")
    if not top:
        yield to("rename_folder", "Rename or move", "folder")
    if dataset.origin:
        yield to("folder_act", "Make it independent", "repair", act="promote")
    if dataset.mounted:
        yield to("folder_act", "Unmount", "x", act="unmount")
    elif not volume and not dataset.locked:
        yield to("folder_act", "Mount", "plus", act="mount")
    if dataset.encryption != "off" and not dataset.locked:
        yield to("folder_key", "Key and lock", "lock")
    if not top:
        yield to("destroy_folder", "Destroy", "trash", danger=True)


def folder_context(row: DatasetRow) -> dict[str, object]:
    """For the page of one dataset; no query."""
    dataset: Dataset = row.fact
    preset = dataset.properties.get(PRESET)
    known = PRESETS.get(preset.value) if preset and preset.source in {"local", "inherited"} else None
    return {
        "acts": list(list_actions(row.key, dataset)),
        "picture": space_bar.draw_space(dataset),
        "preset": known,
        "keeps_key": key_store.is_marked(dataset),
    }


def read_detail(row: DatasetRow) -> tuple[DatasetDetail | None, str]:
    """What was read of it when somebody looked closer, and what went wrong with that. Looking has it read again."""
    name = store.dataset_source(row.key)
    if store.claim_refresh(name, not_since=timezone.now() - FRESH):
        queue.send("workers.read_dataset", row.key)
    found = DatasetDetailRow.objects.filter(key=row.key).first()
    source = Source.objects.filter(name=name).first()
    return (found.fact if found else None), (source.error if source else "")


def start_and_return(request: HttpRequest, operation: Operation, back: str) -> HttpResponse:
    """Make the job of a small act and go back; raises Refused."""
    confirm.start_without_review(operation, user=request.user.get_username())
    return redirect(back)
