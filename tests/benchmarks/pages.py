"""Queries, commands and time of the pages over databases in memory, with little and with much in them.
Needs no machine."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from functools import partial

from tests.benchmarks import promises
from tests.benchmarks.figures import Result, result, seconds

PAGES = ("/", "/pools/", "/disks/", "/folders/", "/jobs/")


def results() -> list[Result]:
    """Queries, commands and time of the pages over databases in memory, with little and with much in them."""
    os.environ["DJANGO_SETTINGS_MODULE"] = "web.settings_test"
    import django

    django.setup()
    from django.contrib.auth.models import User
    from django.core.management import call_command
    from django.db import connections
    from django.test import Client
    from django.test.utils import CaptureQueriesContext

    from tests.benchmarks.rows import fill

    # Without Django's test environment: it copies the whole context of each included template,
    # which no visitor pays for.
    for name in ("default", "inventory"):
        call_command("migrate", database=name, verbosity=0)
    call_command("createcachetable", database="inventory", verbosity=0)
    client = Client()
    client.force_login(User.objects.create_superuser("bench", password="only for the bench"))
    asked: list[str] = []

    def hear(event: str, details: tuple[object, ...]) -> None:
        if event == "subprocess.Popen" or (event == "socket.connect" and "agent.sock" in str(details)):
            asked.append(event)

    sys.addaudithook(hear)
    figures: dict[str, list[tuple[int, float]]] = {page: [] for page in PAGES}
    for pools, datasets in ((1, 10), (10, 1000)):
        fill(pools=pools, datasets=datasets)
        for page in PAGES:
            client.get(page)
            with (
                CaptureQueriesContext(connections["default"]) as first,
                CaptureQueriesContext(connections["inventory"]) as second,
            ):
                assert client.get(page).status_code == 200
            figures[page].append((len(first) + len(second), seconds(partial(client.get, page), 25, time.process_time)))
    found = [item for page, (little, much) in figures.items() for item in promises.with_much(page, little, much)]
    found.append(
        result("commands started and requests to the agent while rendering these pages", len(asked), "of them", 0)
    )
    return found + snapshot_pages(client.get)


def snapshot_pages(get: Callable[[str], object]) -> list[Result]:
    """Pages of snapshots with a hundred thousand on a thousand folders, against ten on one."""
    from tests.benchmarks.rows import fill, fill_snapshots
    from web.inventory.dataset_models import SnapshotRow

    fast: dict[str, float] = {}
    results = []
    for count, datasets in ((10, 1), (100_000, 1000)):
        fill(pools=1, datasets=datasets)
        fill_snapshots(count, datasets)
        key = SnapshotRow.objects.values_list("dataset_key", flat=True)[0]
        pages = {
            "of a folder": f"/snapshots/of/{key}/",
            "of all": "/snapshots/",
            "made by policies": "/snapshots/?kind=policy",
            "held": "/snapshots/?kind=held",
            "the largest": "/snapshots/?order=size",
            "by name": "/snapshots/?begins=larder-h",
        }
        for words, page in pages.items():
            taken = seconds(partial(get, page), 15, time.process_time)
            if words in fast:
                results.append(promises.with_snapshots(words, fast[words], taken))
            fast[words] = taken
    return results
