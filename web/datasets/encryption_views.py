"""Keys of encrypted datasets: lock, change, store on the box, and unlock everything after a start."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_GET

from appliance.datasets.encryption import key_store
from appliance.datasets.encryption.keys import ChangeKey, DeleteStoredKey, LockDataset, StoreKey
from appliance.datasets.encryption.unlock import UnlockAll
from appliance.facts.datasets import Dataset
from appliance.operation import Operation
from web.datasets import actions
from web.inventory.dataset_models import DatasetRow
from web.jobs.refusals import review_act, review_or_refusal

ACTS: dict[str, Callable[..., Operation]] = {
    "lock": LockDataset,
    "passphrase": partial(ChangeKey, to="passphrase"),
    "file": partial(ChangeKey, to="key file"),
    "keep": StoreKey,
    "forget": DeleteStoredKey,
}


@require_GET
def show_key(request: HttpRequest, key: str) -> HttpResponse:
    """The page of a folder's key, with its actions."""
    dataset: Dataset = actions.find_row(key).fact
    if dataset.encryption == "off":
        raise Http404
    root = DatasetRow.objects.filter(name=dataset.encryption_root).first()
    context = {
        "dataset": dataset,
        "key": key,
        "root": root,
        "own": dataset.encryption_root == dataset.name,
        "keeps": key_store.is_marked(dataset),
    }
    return render(request, "datasets/key.html", context)


@require_GET
def review_key_action(request: HttpRequest, key: str, act: str) -> HttpResponse:
    """The review page of an action on the key; it asks for the passphrase or key file if one is needed."""
    row = actions.find_row(key)
    back = reverse("folder", args=[key])
    return review_act(request, ACTS, act, back=back, dataset=row.name, guid=row.fact.guid)


@require_GET
def unlock_all(request: HttpRequest) -> HttpResponse:
    """The review page that asks for one passphrase for everything that is locked."""
    locked = tuple(row.name for row in actions.locked_roots())
    return review_or_refusal(request, UnlockAll(datasets=locked), reverse("folders"))
