"""What a search finds: pages, acts and things of the box under the words that people type. Seven queries, whatever it finds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import msgspec
from django.db.models import Q, QuerySet
from django.urls import reverse

from appliance.shares.iscsi.part import device_of, place_of
from appliance.shares.settings import CALLED
from web.guide.chapters import CHAPTERS
from web.inventory.bays import list_bays, read_known_bays
from web.inventory.models import AccountRow, DatasetRow, DiskRow, GroupRow, PoolRow, Row, ShareRow
from web.system.glossary import GLOSSARY

MOST = 20  # that are shown
LONGEST = 100  # of what is typed
KINDS = ("folder", "share", "user", "group")


@dataclass(frozen=True)
class Entry:
    """A place to go to. ``kind`` says what it is; ``more`` holds further words that lead to it."""

    words: str
    kind: str
    url: str
    icon: str
    more: str = ""

    def rank(self, text: str, tokens: list[str]) -> int | None:
        """How well it fits, 0 the best; None where a token is in none of its words."""
        name, all_words = self.words.casefold(), f"{self.words} {self.kind} {self.more}".casefold()
        if not all(token in all_words for token in tokens):
            return None
        if name == text:
            return 0
        if name.startswith(text):
            return 1
        return 2 if all(token in name for token in tokens) else 3


# Words, address, icon, further words.
PAGES = (
    ("Overview", "overview", "overview", "home start"),
    ("Pools", "pools", "pool", "zpool raid storage"),
    ("Folders", "folders", "folder", "datasets shares"),
    ("Import files", "imports", "download", "nas rsync copy migrate synology qnap"),
    ("Volumes", "volumes", "pool", "zvol iscsi"),
    ("Snapshots", "snapshots", "snapshot", ""),
    ("Automatic snapshots", "snapshot_policies", "snapshot", "schedule retention"),
    ("Space used by snapshots", "snapshots_space", "snapshot", ""),
    ("Protected snapshots", "snapshot_holds", "snapshot", "hold"),
    ("Backups", "backups", "copy", "copy replication second"),
    ("Other computers for backups", "remotes", "copy", "ssh remote replication"),
    ("Disks", "disks", "disk", "drives smart"),
    ("Bays", "bays", "disk", "arrange chassis"),
    ("Self-test schedule", "self_test_plan", "disk", "smart"),
    ("Alerts", "alerts", "health", "health problems"),
    ("Alert levels", "alert_kinds", "bell", "severity"),
    ("Notifications", "mail_settings", "mail", "mail smtp webhook test"),
    ("Benchmarks", "benchmarks", "gauge", "speed measure fio"),
    ("Users", "users", "users", "people accounts groups"),
    ("Jobs", "jobs", "list", "work log"),
    ("Replacements", "replacements", "refresh", "disk replace"),
    ("System", "box", "device", "memory processor network temperature"),
    ("System log", "log", "list", "journal messages errors warnings syslog"),
    ("Support bundle", "support", "download", "help report diagnostics debug"),
    ("Host name", "host_name", "settings", "rename box server computer name"),
    ("Time servers", "time_servers", "settings", "clock ntp synchronise timesyncd"),
    ("Time zone", "time_zone", "settings", "clock hour timezone utc"),
    ("Guide", "guide", "circle-help", "manual how to first steps learn"),
    ("Help", "help", "circle-help", "glossary terms words explain"),
    ("Active sessions", "sessions", "device", "sign in"),
    ("Preferences", "preferences", "settings", "units tb tib gb gib sizes commands"),
    ("Password", "password", "key", "change administrator"),
)
ACTS = (
    ("Create a pool", "create_pool", "plus", "add new zpool"),
    ("Import a pool", "import_pools", "download", "bring"),
    ("Unlock a folder", "folders", "lock-open", "encryption key passphrase"),
    ("Create a folder", "create_folder", "plus", "add new dataset"),
    ("Create a volume", "create_volume", "plus", "add new zvol"),
    ("Add a user", "create_user", "plus", "create new person account"),
    ("Back up a folder", "new_backup", "plus", "copy replication"),
    ("Add a group", "create_group", "plus", "create new"),
    ("Restore files", "restore", "history", "deleted lost find snapshot undelete"),
    ("Shut down or restart", "box", "power", "reboot off"),
    ("Replace a disk", "disks", "refresh", "swap failing drive"),
)
POOL_ACTS = (
    ("Scrub", "pool", "scrub", "check verify"),
    ("Replace a disk in", "replace_disk", "refresh", "swap drive"),
    ("Settings of", "pool_settings", "settings", "properties"),
    ("History of", "pool_history", "history", "log"),
)


def find_entries(text: str) -> list[Entry]:
    """The best entries for what was typed, at most ``MOST``; pages and acts where nothing was."""
    text = " ".join(text.casefold().split())[:LONGEST]
    tokens = text.split()
    ranked = [
        (rank, at, entry)
        for at, entry in enumerate(list_entries(tokens))
        if (rank := entry.rank(text, tokens)) is not None
    ]
    return [entry for _rank, _at, entry in sorted(ranked, key=lambda one: one[:2])[:MOST]]


def list_entries(tokens: list[str]) -> Iterator[Entry]:
    """All entries in the order of their kinds; folders, users and shares as far as their names fit."""
    pools = list(PoolRow.objects.order_by("name"))
    for row in pools:
        yield Entry(row.name, "pool", reverse("pool", args=[row.key]), "pool")
    yield from (Entry(words, "action", reverse(name), icon, more) for words, name, icon, more in ACTS)
    for row in pools:
        for words, name, icon, more in POOL_ACTS:
            yield Entry(f"{words} {row.name}", "action", reverse(name, args=[row.key]), icon, more)
    yield from (Entry(words, "page", reverse(name), icon, more) for words, name, icon, more in PAGES)
    if not tokens:
        return
    for chapter in CHAPTERS:
        url = reverse("guide_chapter", args=[chapter.slug])
        yield Entry(f"Guide: {chapter.title}", "help", url, "circle-help", f"{chapter.summary} {chapter.words}")
    for key, term in GLOSSARY.items():
        yield Entry(
            f"What is this: {term.name}?", "help", f"{reverse('help')}#{key}", "circle-help", f"{key} {term.more}"
        )
    for bay in list_bays(DiskRow.objects.all(), [row.fact for row in pools], read_known_bays()):
        disk = bay.disk
        words = f"{bay.label.capitalize()}: {disk.model}" if disk.model else bay.label.capitalize()
        yield Entry(words, "disk", reverse("disk", args=[bay.key]), "disk", f"{disk.serial} {disk.name} {bay.pool}")
    for folder in named(DatasetRow.objects.all(), tokens):
        yield Entry(folder.name, "folder", reverse("folder", args=[folder.key]), "folder")
    yield from share_entries(tokens)
    for user in named(AccountRow.objects.all(), tokens):
        yield Entry(user.fact.called, "user", reverse("user", args=[user.name]), "user", user.name)
    for group in named(GroupRow.objects.all(), tokens):
        yield Entry(group.name, "group", reverse("group", args=[group.name]), "users")


def named(rows: QuerySet[Row], tokens: list[str]) -> Iterable[Row]:
    """The first rows, by name, that hold every token."""
    fits = Q()
    for token in [token for token in tokens if token not in KINDS] or tokens:
        fits &= Q(name__icontains=token) | Q(facts__icontains=token)
    return rows.filter(fits).order_by("name")[: 2 * MOST]


def share_entries(tokens: list[str]) -> Iterator[Entry]:
    """The shares; each leads to the page of its folder."""
    shares = [row.fact for row in named(ShareRow.objects.all(), tokens)]
    served = Q(pk__in=())
    for path in {share.path for share in shares}:
        served |= Q(facts__contains=f'"mountpoint":{msgspec.json.encode(path).decode()}')
        served |= Q(name=path.removeprefix(device_of("")))
    folders = {place_of(row.fact): row.key for row in DatasetRow.objects.filter(served)}
    for share in shares:
        if key := folders.get(share.path):
            words = f"{share.name} over {CALLED[share.protocol]}"
            yield Entry(words, "share", reverse("folder", args=[key]), "share", share.path)
