"""What a search finds: pages, acts and things of the box under the words that people type.
Seven queries, whatever it finds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec
from django.db.models import Q, QuerySet
from django.urls import reverse
from django.utils.translation import gettext

from appliance.facts.copy_mark import is_continued
from appliance.facts.datasets import Dataset
from appliance.shares.iscsi.part import device_of, place_of
from appliance.shares.settings import CALLED
from web.guide.chapters import CHAPTERS
from web.inventory.bays import list_bays, read_known_bays
from web.inventory.dataset_models import DatasetRow
from web.inventory.fact_row import Row, look_up_or_none, readable_facts, readable_rows
from web.inventory.models import AccountRow, DiskRow, GroupRow, PoolRow, ShareRow
from web.system.glossary import GLOSSARY
from web.translation import lazy_text

MOST = 20  # that are shown
LONGEST = 100  # of what is typed
KINDS = ("folder", "share", "user", "group")


KIND_WORDS = {
    "pool": lazy_text("pool"),
    "action": lazy_text("action"),
    "page": lazy_text("page"),
    "help": lazy_text("help"),
    "disk": lazy_text("disk"),
    "folder": lazy_text("folder"),
    "share": lazy_text("share"),
    "user": lazy_text("user"),
    "group": lazy_text("group"),
}


class Entry(msgspec.Struct, frozen=True):
    """A place to go to. ``kind`` says what it is; ``more`` holds further words that lead to it."""

    words: str
    kind: str
    url: str
    icon: str
    more: str = ""

    @property
    def kind_word(self) -> str:
        return KIND_WORDS[self.kind]

    def rank(self, text: str, tokens: list[str]) -> int | None:
        """How well it fits, 0 the best; None where a token is in none of its words."""
        name, all_words = self.words.casefold(), f"{self.words} {self.kind_word} {self.more}".casefold()
        if not all(token in all_words for token in tokens):
            return None
        if name == text:
            return 0
        if name.startswith(text):
            return 1
        return 2 if all(token in name for token in tokens) else 3


# Words, address, icon, further words.
PAGES = (
    (lazy_text("Overview"), "overview", "overview", lazy_text("home start")),
    (lazy_text("Pools"), "pools", "pool", lazy_text("zpool raid storage")),
    (lazy_text("Folders"), "folders", "folder", lazy_text("datasets shares")),
    (
        lazy_text("Import files"),
        "imports",
        "download",
        lazy_text("nas rsync smb nfs windows copy migrate synology qnap"),
    ),
    (lazy_text("Volumes"), "volumes", "pool", lazy_text("zvol iscsi")),
    (lazy_text("Snapshots"), "snapshots", "snapshot", ""),
    (lazy_text("Automatic snapshots"), "snapshot_policies", "snapshot", lazy_text("schedule retention")),
    (lazy_text("Space used by snapshots"), "snapshots_space", "snapshot", ""),
    (lazy_text("Protected snapshots"), "snapshot_holds", "snapshot", lazy_text("hold")),
    (lazy_text("Backups"), "backups", "copy", lazy_text("copy replication second")),
    (lazy_text("Other computers for backups"), "remotes", "copy", lazy_text("ssh remote replication")),
    (lazy_text("Received copies"), "receivers", "copy", lazy_text("backups of another larder retention")),
    (lazy_text("Recovery"), "recovery", "repair", lazy_text("phrase keys lost box disaster settings")),
    (lazy_text("Connected clients"), "connected", "users", lazy_text("computers open files smb nfs afp")),
    (lazy_text("SMB security"), "protection", "lock", lazy_text("signing encryption guest windows")),
    (
        lazy_text("Manual changes"),
        "edits",
        "list",
        lazy_text("drift by hand configuration files smb.conf exports iscsi targets"),
    ),
    (lazy_text("Disks"), "disks", "disk", lazy_text("drives smart")),
    (lazy_text("Bays"), "bays", "disk", lazy_text("arrange chassis")),
    (lazy_text("Self-test schedule"), "self_test_plan", "disk", "smart"),
    (lazy_text("Alerts"), "alerts", "health", lazy_text("health problems")),
    (lazy_text("Alert levels"), "alert_kinds", "bell", lazy_text("severity")),
    (lazy_text("Notifications"), "mail_settings", "mail", lazy_text("mail smtp webhook test")),
    (lazy_text("Benchmarks"), "benchmarks", "gauge", lazy_text("speed measure fio")),
    (lazy_text("Users"), "users", "users", lazy_text("people accounts groups")),
    (lazy_text("Jobs"), "jobs", "list", lazy_text("work log")),
    (lazy_text("Replacements"), "replacements", "refresh", lazy_text("disk replace")),
    (lazy_text("System"), "box", "device", lazy_text("memory processor network temperature")),
    (lazy_text("System log"), "log", "list", lazy_text("journal messages errors warnings syslog")),
    (lazy_text("Support bundle"), "support", "download", lazy_text("help report diagnostics debug")),
    (lazy_text("Host name"), "host_name", "settings", lazy_text("rename box server computer name")),
    (
        lazy_text("Language of this box"),
        "box_language",
        "settings",
        lazy_text("mails console translation dutch english"),
    ),
    (lazy_text("Time servers"), "time_servers", "settings", lazy_text("clock ntp synchronise timesyncd")),
    (lazy_text("Time zone"), "time_zone", "settings", lazy_text("clock hour timezone utc")),
    (lazy_text("Guide"), "guide", "circle-help", lazy_text("manual how to first steps learn")),
    (lazy_text("Help"), "help", "circle-help", lazy_text("glossary terms words explain")),
    (lazy_text("Active sessions"), "sessions", "device", lazy_text("sign in")),
    (lazy_text("Preferences"), "preferences", "settings", lazy_text("units tb tib gb gib sizes commands language")),
    (lazy_text("Password"), "password", "key", lazy_text("change administrator")),
)
ACTS = (
    (lazy_text("Create a pool"), "create_pool", "plus", lazy_text("add new zpool")),
    (lazy_text("Import a pool"), "import_pools", "download", lazy_text("bring")),
    (lazy_text("Share a folder"), "share_new_folder", "share", lazy_text("add new smb nfs afp windows mac linux")),
    (lazy_text("Unlock a folder"), "folders", "lock-open", lazy_text("encryption key passphrase")),
    (lazy_text("Create a folder"), "create_folder", "plus", lazy_text("add new dataset")),
    (lazy_text("Create a volume"), "create_volume", "plus", lazy_text("add new zvol")),
    (lazy_text("Add a user"), "create_user", "plus", lazy_text("create new person account")),
    (lazy_text("Back up a folder"), "new_backup", "plus", lazy_text("copy replication")),
    (lazy_text("Pair with another Larder"), "pair_box", "plus", lazy_text("add computer code backups")),
    (lazy_text("Add a computer for backups"), "add_remote", "plus", lazy_text("create new remote ssh")),
    (lazy_text("Receive copies from another Larder"), "receive_copies", "plus", lazy_text("backups pair code")),
    (lazy_text("Add a group"), "create_group", "plus", lazy_text("create new")),
    (lazy_text("Restore files"), "restore", "history", lazy_text("deleted lost find snapshot undelete")),
    (
        lazy_text("Benchmark from another computer"),
        "new_client_run",
        "gauge",
        lazy_text("speed client network protocol"),
    ),
    (lazy_text("Replace a disk"), "disks", "refresh", lazy_text("swap failing drive")),
)
# Each leads to its review, which says first who is connected and what runs.
POWER_ACTS = (
    (lazy_text("Shut down"), "shut-down", lazy_text("power off switch off box")),
    (lazy_text("Restart"), "restart", lazy_text("reboot box")),
)
POOL_ACTS = (
    (lazy_text("Scrub"), "pool", "scrub", lazy_text("check verify")),
    (lazy_text("Replace a disk in"), "replace_disk", "refresh", lazy_text("swap drive")),
    (lazy_text("Settings of"), "pool_settings", "settings", lazy_text("properties")),
    (lazy_text("History of"), "pool_history", "history", lazy_text("log")),
)
# With ``?folder=``, the form of sharing leads to the folder itself where it is shared.
FOLDER_ACTS = (
    (lazy_text("Share {name}"), "share_new_folder", "share", lazy_text("smb nfs afp windows mac linux")),
    (lazy_text("Take a snapshot of {name}"), "take_snapshot", "plus", lazy_text("now create")),
    (lazy_text("Back up {name}"), "add_backup", "copy", lazy_text("backup copy replication")),
    (lazy_text("Snapshots of {name}"), "snapshots_of", "snapshot", lazy_text("previous versions history")),
    (lazy_text("Restore files from {name}"), "restore_files", "history", lazy_text("deleted lost find undelete")),
    (lazy_text("Settings of {name}"), "folder_settings", "settings", lazy_text("properties compression")),
    (
        lazy_text("Access to the files of {name}"),
        "folder_access",
        "users",
        lazy_text("users groups permissions rights"),
    ),
)
VOLUME_ACTS = (
    (lazy_text("Share {name}"), "share_iscsi", "share", "iscsi"),
    *(act for act in FOLDER_ACTS if act[1] in {"take_snapshot", "add_backup", "snapshots_of", "folder_settings"}),
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
    yield from (
        Entry(words, "action", reverse("review_power", args=[act]), "power", more) for words, act, more in POWER_ACTS
    )
    for row in pools:
        for words, name, icon, more in POOL_ACTS:
            yield Entry(f"{words} {row.name}", "action", reverse(name, args=[row.key]), icon, more)
    yield from (Entry(words, "page", reverse(name), icon, more) for words, name, icon, more in PAGES)
    if not tokens:
        return
    for chapter in CHAPTERS:
        url = reverse("guide_chapter", args=[chapter.slug])
        yield Entry(
            gettext("Guide: {title}").format(title=chapter.title),
            "help",
            url,
            "circle-help",
            f"{chapter.summary} {chapter.words}",
        )
    for key, term in GLOSSARY.items():
        yield Entry(
            gettext("What is this: {name}?").format(name=term.name),
            "help",
            f"{reverse('help')}#{key}",
            "circle-help",
            f"{key} {term.more}",
        )
    for bay in list_bays(DiskRow.objects.all(), readable_facts(pools), read_known_bays(), look_up_or_none):
        disk = bay.disk
        words = f"{bay.label.capitalize()}: {disk.model}" if disk.model else bay.label.capitalize()
        yield Entry(words, "disk", reverse("disk", args=[bay.key]), "disk", f"{disk.serial} {disk.name} {bay.pool}")
    folders = list(named(DatasetRow.objects.all(), [one for one in tokens if not is_of_an_act(one)] or tokens))
    for folder in folders:
        yield Entry(folder.name, "folder", reverse("folder", args=[folder.key]), "folder")
    yield from share_entries(tokens)
    for user, account in readable_rows(named(AccountRow.objects.all(), tokens)):
        yield Entry(account.called, "user", reverse("user", args=[user.name]), "user", user.name)
    for group in named(GroupRow.objects.all(), tokens):
        yield Entry(group.name, "group", reverse("group", args=[group.name]), "users")
    for folder, dataset in readable_rows(folders):
        if any(token in folder.name.casefold() for token in tokens):
            yield from folder_acts(folder, dataset)


def folder_acts(folder: Row, dataset: Dataset) -> Iterator[Entry]:
    """What can be done with a folder or volume. Last in the list: the folders themselves come first."""
    refused = {"add_backup", "share_iscsi"} if dataset.copy_of else set()
    if is_continued(dataset.copy_of):
        refused.add("take_snapshot")
    if not dataset.mounted or dataset.copy_of:
        refused |= {"share_new_folder", "folder_access"}
    elif dataset.readonly:
        refused.add("folder_access")
    for words, name, icon, more in VOLUME_ACTS if dataset.kind == "volume" else FOLDER_ACTS:
        if name in refused:
            continue
        url = f"{reverse(name)}?folder={folder.key}" if name == "share_new_folder" else reverse(name, args=[folder.key])
        yield Entry(words.format(name=folder.name), "action", url, icon, more)


def is_of_an_act(token: str) -> bool:
    """Whether what was typed belongs to an act on a folder, rather than to the name of one."""
    return any(token in f"{words} {more}".casefold() for words, _name, _icon, more in (*FOLDER_ACTS, *VOLUME_ACTS))


def named(rows: QuerySet[Row], tokens: list[str]) -> Iterable[Row]:
    """The first rows, by name, that hold every token."""
    fits = Q()
    kinds = {*KINDS, *(str(KIND_WORDS[kind]).casefold() for kind in KINDS)}
    for token in [token for token in tokens if token not in kinds] or tokens:
        fits &= Q(name__icontains=token) | Q(facts__icontains=token)
    return rows.filter(fits).order_by("name")[: 2 * MOST]


def share_entries(tokens: list[str]) -> Iterator[Entry]:
    """The shares; each leads to the page of its folder."""
    shares = readable_facts(named(ShareRow.objects.all(), tokens))
    paths = {share.path for share in shares}
    served = Q(mountpoint__in=paths) | Q(name__in={path.removeprefix(device_of("")) for path in paths})
    folders = {place_of(fact): row.key for row, fact in readable_rows(DatasetRow.objects.filter(served))}
    for share in shares:
        if key := folders.get(share.path):
            words = gettext("{name} over {called}").format(name=share.name, called=CALLED[share.protocol])
            yield Entry(words, "share", reverse("folder", args=[key]), "share", share.path)
