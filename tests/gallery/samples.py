"""Which addresses of the recorded box the gallery shows: for each name of the URL configuration, by its parameters."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import quote

from django.urls import URLPattern, URLResolver, get_resolver

from appliance.backups.tasks import tasks_of
from appliance.benchmarks.presets import PRESETS
from appliance.datasets.property_words import KNOWN
from appliance.imports.sources import SOURCES
from appliance.shares.settings import PROTOCOLS
from tests.gallery.pages import SHOWN
from web.alerts.models import Alert
from web.backups import recovery, status
from web.benchmarks.models import ClientRunRow, SweepRow
from web.datasets import action_views, encryption_views
from web.disks.models import BurnIn, Replacement
from web.guide.chapters import CHAPTERS
from web.inventory.dataset_models import BookmarkRow, DatasetRow, SnapshotRow
from web.inventory.models import (
    AccountRow,
    BoxRow,
    DiskRow,
    EditRow,
    GroupRow,
    ImportableRow,
    ImportRow,
    PoolRow,
    ReceiverRow,
    RemoteRow,
    TargetEditRow,
)
from web.jobs.models import Job
from web.pools import lifecycle_views, topology_views
from web.snapshots import detail_views

Values = dict[str, str]

# What of a page is asked for by the end of its address, besides the page without it. {…} stands for a value of the box.
SUFFIXES = {
    "search": ["?q=tank", "?q=nothing-of-this-name"],
    "host_name": ["?name=bad+name%21", "?name=cellar"],
    "set_mtu": ["?mtu=5", "?mtu=9000"],
    "time_servers": ["?servers=bad+name%21"],
    "time_zone": ["?zone=Nowhere", "?zone=Asia%2FKathmandu"],
    "create_pool": [
        "?step=disks&name=tank2&answered=name",
        "?step=layout&name=tank2&answered=name",
        "?step=compare&name=tank2&answered=name",
        "?step=extras&name=tank2&answered=name&layout={layout}",
        "?step=options&name=tank2&answered=name&layout={layout}",
        (
            "?step=review&name=tank2&answered=name&answered=layout"
            "&layout={layout}&answered=options&compression=lz4&atime=off"
        ),
        "?step=disks&name=not+a+name%21&answered=name",
    ],
    "share_new_folder": [
        "?answered=1",
        "?answered=1&pool=tank&name=new-folder&smb=on&new_users=eva",
        "?folder={dataset}",
    ],
    "rename_folder": ["?answered=1&name=&parent=", "?answered=1&name=renamed&parent=tank"],
    "pool_history": ["?show=all"],
    "rehearse_rebuild": ["?answered=1&share=25&vdev={member}", "?answered=1"],
    "snapshots": ["?q=nothing-of-this-name"],
    "restore_files": ["?q=garden"],
    "snapshot_file": ["?path=garden.txt"],
    "restore_from_snapshot": ["?path=garden.txt"],
    "file_versions": ["?path=garden.txt"],
    "wipe_disk": ["?how=full"],
    "why": ["?person=anna"],
}


def walk(resolver: URLResolver, before: str = "/") -> Iterator[tuple[str, str]]:
    """Name and route of every page."""
    for one in resolver.url_patterns:
        route = before + str(one.pattern)
        if isinstance(one, URLPattern):
            yield one.name or "", route
        else:
            yield from walk(one, route)


def find_samples() -> dict[str, list[str]]:
    """The addresses to show, by name of the page; none where the box has nothing of its kind."""
    found: dict[str, list[str]] = {}
    fillers = suffix_values()
    for name, route in walk(get_resolver()):
        if name not in SHOWN:
            continue
        words = re.findall(r"<(?:\w+:)?(\w+)>", route)
        paths = [fill(route, values) for values in values_of(name, route) if values.keys() >= set(words)]
        for suffix in SUFFIXES.get(name, []):
            if all(fillers.get(word) for word in re.findall(r"{(\w+)}", suffix)):
                paths += [path + suffix.format(**fillers) for path in paths[:1]]
        found[name] = list(dict.fromkeys(paths))
    return found


def fill(route: str, values: Values) -> str:
    return re.sub(r"<(?:\w+:)?(\w+)>", lambda found: quote(values[found[1]], safe=""), route)


def suffix_values() -> Values:
    empty = PoolRow.objects.filter(key=empty_pools()[0]["key"]).first() if empty_pools() else None
    free = sum(row.fact.free for row in DiskRow.objects.all())
    return {
        "layout": {2: "mirror-1"}.get(free, "raidz1-1" if free > 2 else ""),
        "dataset": keys_of_datasets()[0] if DatasetRow.objects.exists() else "",
        "member": str(next(empty.fact.devices()).guid) if empty else "",
    }


def values_of(name: str, route: str) -> Iterable[Values]:
    """What stands for the parameters of a route; nothing for one that is not known here, which a test reports."""
    if "<" not in route:
        return [{}]
    family = OWN.get(name) or next((found for start, found in FAMILIES.items() if route.startswith(start)), None)
    return family() if family else []


def keys_of_datasets() -> list[str]:
    """One folder with snapshots that is shared if there is one, and a locked or encrypted
    one; the longest names first."""
    rows = sorted(DatasetRow.objects.exclude(facts__contains='"kind":"volume"'), key=lambda row: -len(row.name))
    with_snapshots = set(SnapshotRow.objects.filter(holds__gt=0).values_list("dataset_key", flat=True))
    shared = next((row.key for row in rows if row.fact.share and row.key in with_snapshots), None)
    shared = shared or next((row.key for row in rows if row.fact.share), None)
    secret = next((row.key for row in rows if row.fact.encryption_root == row.name), None)
    return list(dict.fromkeys(key for key in (shared, secret, rows[0].key if rows else None) if key))


def keys(rows: Any, name: str = "key", count: int = 2) -> list[Values]:
    found = list(rows.values_list("pk", flat=True))
    chosen = found[:1] + found[-1:] if count == 2 else found[:count]
    return [{name: str(one)} for one in dict.fromkeys(chosen)]


def pools() -> list[Values]:
    rows = sorted(PoolRow.objects.all(), key=lambda row: -len(row.name))
    return [{"key": row.key} for row in rows[:2]]


def empty_pools() -> list[Values]:
    """The pools in which only their top folder is."""
    names = {name.split("/", 1)[0] for name in DatasetRow.objects.values_list("name", flat=True) if "/" in name}
    return [{"key": row.key} for row in PoolRow.objects.order_by("name") if row.name not in names][:1]


def disks() -> list[Values]:
    """The first disk, one that is failing, and one that no pool uses."""
    rows = list(DiskRow.objects.order_by("key"))
    ill = [row for row in rows if row.verdict == "failing"]
    free = [row for row in rows if row.fact.free]
    return [{"key": row.key} for row in dict.fromkeys([*rows[:1], *ill[:1], *free[:1]])]


def datasets() -> list[Values]:
    return [{"key": key} for key in keys_of_datasets()]


def snapshots() -> list[Values]:
    found = []
    for key in keys_of_datasets():
        rows = SnapshotRow.objects.filter(dataset_key=key).order_by("-holds", "created")[:1]
        found += [{"key": key, "guid": row.guid} for row in rows]
    return found[:1]


def with_each(start: Iterable[Values], word: str, words: Iterable[str]) -> list[Values]:
    return [{**values, word: one} for values in start for one in words]


def devices() -> list[Values]:
    return [
        {"key": row.key, "guid": str(next(iter(row.fact.devices())).guid)}
        for row in PoolRow.objects.order_by("name")[:1]
    ]


def volumes() -> list[Values]:
    return [{"key": row.key} for row in DatasetRow.objects.filter(facts__contains='"kind":"volume"')[:1]]


def shared_volumes() -> list[Values]:
    return [one for one in volumes() if DatasetRow.objects.get(key=one["key"]).fact.share]


def backups() -> list[Values]:
    return [
        {"key": row.key, "task": task.key}
        for row in DatasetRow.objects.filter(facts__contains='"backup":"')
        for task in tasks_of(row.fact)
    ]


def copies() -> list[Values]:
    return [{"key": row.key} for row in DatasetRow.objects.all() if row.fact.copy_of and row.fact.used_by_data][:1]


def benchmarks() -> list[Values]:
    return keys(SweepRow.objects.order_by("created"), "pk", 9)


def client_runs() -> list[Values]:
    return keys(ClientRunRow.objects.order_by("created"), "pk", 4)


def encrypted() -> list[Values]:
    return [{"key": row.key} for row in DatasetRow.objects.all() if row.fact.encryption_root == row.name][:1]


FAMILIES = {
    "/pools/import/<str:guid>/": lambda: keys(ImportableRow.objects.order_by("key"), "guid"),
    "/pools/replacements/<int:pk>/": lambda: keys(Replacement.objects.order_by("pk"), "pk", 9),
    "/pools/<str:key>/": pools,
    "/disks/burn-ins/<uuid:pk>/": lambda: keys(BurnIn.objects.order_by("created"), "pk", 9),
    "/disks/<str:key>/": disks,
    "/alerts/<int:pk>/": lambda: keys(Alert.objects.order_by("pk"), "pk", 9),
    "/backups/of/<str:key>/<str:task>/": backups,
    "/backups/of/<str:key>/": datasets,
    "/backups/copies/": copies,
    "/backups/recovery/": lambda: [
        {"key": other.key, "box": other.mark.id} for other in recovery.other_boxes(status.read_facts())
    ],
    "/backups/computers/<str:key>/copies/<path:copy>/": lambda: [
        {**found, "copy": "photos"} for found in keys(RemoteRow.objects.order_by("key"))
    ],
    "/backups/computers/": lambda: keys(RemoteRow.objects.order_by("key")),
    "/backups/receiving/": lambda: keys(ReceiverRow.objects.order_by("key"), count=9),
    "/imports/new/": lambda: [{"protocol": one} for one in SOURCES],
    "/imports/": lambda: keys(ImportRow.objects.order_by("key"), count=9),
    "/snapshots/of/<str:key>/<str:guid>/": snapshots,
    "/snapshots/of/<str:key>/": datasets,
    "/folders/<str:key>/": datasets,
    "/shares/by-hand/": lambda: keys(EditRow.objects.order_by("key")),
    "/shares/<str:key>/<str:protocol>/": lambda: with_each(datasets()[:1], "protocol", PROTOCOLS),
    "/shares/<str:key>/": lambda: datasets()[:1],
    "/users/<str:name>/": lambda: keys(AccountRow.objects.order_by("key"), "name"),
    "/groups/<str:name>/": lambda: keys(GroupRow.objects.order_by("key"), "name"),
    "/jobs/<uuid:pk>/": lambda: keys(Job.objects.order_by("created"), "pk", 12),
    "/benchmarks/client/settings/<slug:tag>/forget/<str:port>/": lambda: [{"tag": "mtu", "port": "enp3s0"}],
    "/benchmarks/client/<uuid:pk>/": client_runs,
    "/benchmarks/<uuid:pk>/": benchmarks,
}
# Pages whose other parameters have values of their own.
OWN = {
    "set_import_password": lambda: [
        {"key": row.key} for row in ImportRow.objects.order_by("key") if row.fact.user and not row.fact.has_host_key
    ][:1],
    "set_mtu": lambda: [{"name": port.name} for row in BoxRow.objects.all() for port in row.fact.ports],
    "review_power": lambda: with_each([{}], "act", ("restart", "shut-down")),
    "end_pool": lambda: with_each(pools()[:1], "act", lifecycle_views.ACTS),
    "vdev_act": lambda: with_each(devices(), "what", topology_views.ACTS),
    "rehearse_rebuild": lambda: empty_pools() or pools()[:1],
    "add_disks": lambda: with_each(pools()[:1], "kind", topology_views.KINDS),
    "schedule": lambda: with_each(pools()[:1], "kind", ("scrub", "trim")),
    "folder_setting": lambda: with_each(datasets()[:1], "name", KNOWN),
    "folder_act": lambda: with_each(datasets()[:1], "act", action_views.ACTS),
    "folder_key": encrypted,
    "folder_key_act": lambda: with_each(encrypted(), "act", encryption_views.ACTS),
    "folder": lambda: datasets() + shared_volumes(),
    "grow_volume": volumes,
    "share_iscsi": volumes,
    "stop_iscsi": shared_volumes,
    "why_iscsi": volumes,
    "destroy_bookmark": lambda: [
        {"key": row.dataset_key, "short": row.short} for row in BookmarkRow.objects.order_by("pk")[:1]
    ],
    "snapshot_act": lambda: with_each(snapshots(), "act", detail_views.ACTS),
    "set_copy_aside": lambda: [{**one, "copy": two["key"]} for one in backups()[:1] for two in copies()],
    "discard_received": lambda: [{**one, "copy": two["key"]} for one in backups()[:1] for two in copies()],
    "decide_edit": lambda: with_each(keys(EditRow.objects.order_by("key"), count=1), "what", ("adopt", "overwrite")),
    "put_target_back": lambda: [{"key": row.key} for row in TargetEditRow.objects.all() if row.fact.writable][:1],
    "mend_share": lambda: with_each(with_each(datasets()[:1], "protocol", ("nfs",)), "way", ("serve", "let-in")),
    "guide_chapter": lambda: [{"slug": chapter.slug} for chapter in CHAPTERS],
    "new_benchmark": lambda: with_each([{}], "name", (preset.name for preset in PRESETS)),
    "compare_benchmarks": lambda: [
        {**one, "other": two["pk"]} for one in benchmarks() for two in benchmarks() if one != two
    ],
}
