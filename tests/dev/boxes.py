"""The recorded boxes: each a function of the time that it is to be about."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

from msgspec.structs import replace

from appliance.backups.copies import mark_text
from appliance.backups.tasks import BackupTask, encode_tasks
from appliance.facts.box import Pool, Use, Vdev
from appliance.facts.box_record import BoxMark, BoxMarks
from appliance.facts.datasets import Dataset, Property, SpaceUse
from appliance.facts.file_import import Count, FileImport, ImportResult
from appliance.facts.importable import Importable, ImportablePart
from appliance.facts.kept_copies import Keep
from appliance.facts.receiver import Receiver
from appliance.facts.remote import Remote
from appliance.facts.sharing import Account, Group
from appliance.facts.user_properties import BOX, RECEIVES
from appliance.message import Message, join_messages, messages_by_text
from appliance.shares.connections import Connection
from appliance.snapshots.policy import Policy
from tests.dev.builders import (
    GB,
    POLICY,
    SYSTEM_DISK,
    TB,
    Box,
    device,
    encrypted,
    filled,
    folder,
    folders,
    in_use,
    locked,
    made_disk,
    pool_of,
    recorded_disks,
    resilvering,
    scrubbed,
    shared,
    smart,
)
from tests.unit.made import dataset, recorded_pool

FAMILY = (
    Account("anna", 1001, "Anna"),
    Account("ben", 1002, "Ben"),
    Account("clara", 1003),
    Account("otto", 1004, "Grandfather Otto", disabled=True),
)
EVERYBODY = {"write": ["anna", "ben"], "read": ["clara"]}


def tank(percent: int = 46) -> Pool:
    """The recorded raidz2 of four disks, with something in it."""
    return filled(recorded_pool(), percent)


def attic() -> Pool:
    """Made up: a mirror of the other two recorded disks."""
    _a, _b, _c, _d, first, second, _system = recorded_disks()
    return pool_of("attic", 5121254786772367006, ("mirror", (device(first, 71), device(second, 72))), size=2 * TB)


def volume(name: str, **changes: Any) -> Dataset:
    """A disk for another computer, a third of it in use."""
    made = dataset(
        name,
        kind="volume",
        mounted=False,
        mountpoint="",
        volsize=32 * GB,
        used=9 * GB,
        referenced=9 * GB,
        used_by_data=9 * GB,
        properties=folder("x").properties,
    )
    return replace(made, **changes)


def of_tank(total: int, *more: Dataset, full: bool = False) -> tuple[Dataset, ...]:
    """The folders of a family."""
    scale = 2 if full else 1
    return folders(
        total,
        folder("tank", 2 * GB, **POLICY),
        folder(
            "tank/backups",
            410 * GB * scale,
            snapshots=12 * GB,
            preset="backups",
            quota=1 * TB,
            **shared(
                {"name": "Time Machine", "write": ["anna", "ben"], "time_machine": 900 * GB},
                afp={"name": "Old Mac", "write": ["ben"], "time_machine": 200 * GB},
            ),
        ),
        folder(
            "tank/documents",
            38 * GB,
            snapshots=9 * GB,
            preset="documents",
            **shared({"name": "documents", **EVERYBODY, "recycle": True}),
        ),
        folder(
            "tank/machines",
            12 * GB,
            preset="machines",
            **shared(nfs={"hosts": ["192.168.1.0/24"], "everybody_as": "anna"}),
        ),
        volume("tank/machines/router"),
        *more,
        folder(
            "tank/media",
            4 * GB,
            preset="media",
            **shared(
                {"name": "media", "read": ["@family"]},
                nfs={"hosts": ["192.168.1.20"], "write": False},
                afp={"name": "media", "read": ["@family"]},
            ),
        ),
        folder("tank/media/films", 620 * GB * scale, preset="media"),
        folder("tank/media/music", 96 * GB, preset="media"),
        folder("tank/papers", 3 * GB, snapshots=GB, preset="documents", **encrypted("tank/papers")),
        folder(
            "tank/photos",
            540 * GB * scale,
            snapshots=31 * GB,
            preset="photos",
            **shared(
                {"name": "photos", **EVERYBODY},
                nfs={"hosts": ["192.168.1.0/24"]},
                afp={"name": "photos", "write": ["anna"]},
            ),
        ),
        folder("tank/homes", 8 * GB, quota=100 * GB),
    )


def cellar(now: datetime, **changes: Any) -> Remote:
    """Another computer that takes backups, as it answered last night."""
    key = f"ssh-ed25519 {'AAAAC3NzaC1lZDI1NTE5AAAAI' + 'x' * 43}"
    made = Remote(
        "0badcafe",
        "cellar.lan",
        22,
        "larder-backup",
        "vault/larder",
        key,
        key,
        tested=now - timedelta(hours=9),
        zfs="2.2.2",
        free=3 * TB,
    )
    return replace(made, **changes)


def received_of(now: datetime) -> tuple[Receiver, ...]:
    """Another Larder that brings its backups, one that a code was shown for, and one whose folder is not here."""
    key = f"ssh-ed25519 {'AAAAC3NzaC1lZDI1NTE5AAAAI' + 'z' * 43}"
    parents = Receiver(
        "0badcafe",
        "attic/backups/parents",
        7_001,
        now - timedelta(days=90),
        key,
        "larder-of-the-parents",
        now - timedelta(days=90),
        keep=Keep(),
        seen=now - timedelta(hours=7),
    )
    waits = Receiver(
        "1badcafe", "attic/backups/sister", 7_002, now - timedelta(minutes=3), code_until=now + timedelta(days=900)
    )
    gone = replace(
        parents,
        id="2badcafe",
        root="tank/backups/a-box-with-a-long-name.of-a-friend.example.org",
        guid=7_003,
        sender="a-box-with-a-long-name.of-a-friend.example.org",
    )
    return parents, waits, gone


def received_root(name: str) -> Dataset:
    """The folder that the copies of another Larder lie in."""
    made = folder(name, 0, copy_of='{"guid":0,"raw":false}', readonly=True)
    return replace(made, properties={**made.properties, RECEIVES: Property("yes", "local")})


# A box that has left its record on the pool attic.
OLD_BOX = BoxMark(id="0123456789abcdef", host="larder-2019", at=1_772_000_000)


def with_record(root: Dataset) -> Dataset:
    return replace(root, properties={**root.properties, BOX: Property(BoxMarks(boxes=(OLD_BOX,)).text, "local")})


def healthy(now: datetime) -> Box:
    """Two pools, folders, shares of all protocols, snapshots by policy, people; nothing to do."""
    pools = (scrubbed(tank(), now - timedelta(days=6)), scrubbed(filled(attic(), 31), now - timedelta(days=6), hours=2))
    copies = (
        with_record(folder("attic", GB, **POLICY)),
        folder("attic/copy of photos", 480 * GB, snapshots=22 * GB, readonly=True),
        folder("attic/old laptop", 96 * GB),
    )
    photos = BackupTask(key="0f3a91c2", pool=pools[1].guid, path="backups/photos")
    papers = BackupTask(key="5b7710de", pool=4823947239847, path="backups/papers", every="weekly", days=30)
    disk = {
        "name": "desk",
        "initiators": ["iqn.1993-08.org.debian:01:desk"],
        "addresses": ["192.168.1.5", "10.9.8.7"],
        "user": "anna",
    }
    tank_folders = of_tank(int(3.6 * TB), volume("tank/machines/desk", **shared(iscsi=disk)))
    own = [
        replace(
            one,
            backup=encode_tasks(tuple(task for task in (photos, papers) if task.path == f"backups/{one.name[5:]}")),
            backup_source="local",
        )
        if one.name in {"tank/photos", "tank/papers"}
        else one
        for one in tank_folders
    ]
    source = next(one for one in own if one.name == "tank/photos")
    copied = (
        *copies,
        folder("attic/backups", copy_of='{"guid":0,"raw":false}'),
        folder("attic/backups/photos", 300 * GB, copy_of=mark_text(source)),
        received_root("attic/backups/parents"),
        folder(
            "attic/backups/parents/documents", 41 * GB, snapshots=3 * GB, copy_of='{"guid":5,"raw":true}', readonly=True
        ),
        received_root("attic/backups/sister"),
    )
    return Box(
        pools,
        (*own, *folders(int(1.9 * TB), *copied)),
        in_use(recorded_disks(), pools),
        accounts=FAMILY,
        groups=(Group("family", 20000, ("anna", "ben", "clara")),),
        connections=(
            Connection(
                "smb",
                "4711",
                "anna",
                "192.168.1.23",
                ("photos", "documents"),
                ("2026/summer/P1000234.RAF",),
                3,
                Message("signed"),
            ),
            Connection("nfs", "12", "", "192.168.1.20", ("/tank/media",)),
        ),
        remotes=(
            cellar(now),
            cellar(
                now,
                id="2badcafe",
                host="larder-of-the-parents.example.org",
                user="larder-receive",
                root="safe/backups/larder",
                paired=True,
            ),
        ),
        receivers=received_of(now),
        imports=imports_of(now, own),
        uses={"tank/homes": (SpaceUse("user", "anna", 5 * GB, 50 * GB), SpaceUse("user", "ben", 3 * GB, 50 * GB))},
    )


AWAY = join_messages(
    [
        Message("{place} cannot be reached", place="nas.lan, port 22"),
        Message("Is it switched on and connected to the network?"),
    ],
    ": ",
)
NO_MODULE = join_messages(
    [
        Message("{host} has no module {module}", host="nas.lan", module="backup"),
        Message("It lists these: {names}.", names="photos, music"),
    ],
    ": ",
)


def failing(problem: str) -> dict[str, Any]:
    """What an import notes of a problem."""
    return {"problem": str(problem), "said": messages_by_text(problem)}


def imports_of(now: datetime, own: Sequence[Dataset]) -> tuple[FileImport, ...]:
    """Imports at each stage: not confirmed yet, counted, ended with differences."""
    photos = next(one for one in own if one.name == "tank/photos")
    key = cellar(now).host_key
    first = FileImport(
        "0badcafe",
        "nas.lan",
        22,
        "admin",
        "/volume1/photos",
        "tank/photos",
        photos.guid,
        public_key=key,
        offered_key=key,
    )
    found = Count(
        48_211,
        3_120,
        14,
        int(1.2 * TB),
        48_100,
        int(1.2 * TB),
        3,
        (
            "@eaDir: a folder of the other NAS's own",
            "2019/.zfs: a folder of the other NAS's own",
            "2019/mixer: a device, pipe or socket",
        ),
    )
    ready = replace(
        first, id="1badcafe", host_key=key, offered_key="", tested=now - timedelta(hours=2), found=found, free=4 * TB
    )
    ended = replace(
        ready,
        id="2badcafe",
        path="/volume1/a folder with a long name/papers of the whole family since 1974",
        began=True,
        result=ImportResult(now - timedelta(hours=1), 48_211, 2, 1),
    )
    broken = replace(ready, id="3badcafe", began=True, **failing(AWAY))
    share = replace(
        ready, id="4badcafe", protocol="smb", port=445, user="anna", path="/photos/2019", host_key="", public_key=""
    )
    export = replace(
        share, id="5badcafe", protocol="nfs", port=2049, user="", path="/volume1/music", found=None, tested=None
    )
    service = replace(share, id="6badcafe", protocol="rsync", port=8873, user="", path="/backup", **failing(NO_MODULE))
    return first, ready, ended, broken, share, export, service


def degraded(now: datetime) -> Box:
    """A disk that fails, one that ZFS gave up and that is being replaced, a mirror with one half left."""
    disks = recorded_disks()
    failing, new, half, pulled = (
        disks[2],
        disks[4],
        disks[5],
        replace(
            disks[4], path="/dev/disk/by-id/ata-WDC_WD30EZRS-11J99B1_WD-WCAWZ0000007", slot="pci-0000:00:0c.0-ata-1.0"
        ),
    )
    whole = tank(58)
    group = whole.vdevs[0]
    first, second, third, fourth = group.children
    replacing = Vdev(
        "replacing-1",
        "replacing",
        90,
        "DEGRADED",
        children=(
            replace(second, state="FAULTED", read_errors=84, write_errors=212),
            device(new, 91, processed=260 * GB),
        ),
    )
    weak = replace(third, read_errors=12, checksum_errors=41, slow_ios=23)
    status = (
        "One or more devices is currently being resilvered.  The pool will\n\tcontinue to function, possibly in "
        "a degraded state.\n"
    )
    sick = replace(
        whole,
        state="DEGRADED",
        status=status,
        vdevs=(replace(group, state="DEGRADED", children=(first, replacing, weak, fourth)),),
    )
    mirror = pool_of(
        "attic",
        5121254786772367006,
        ("mirror", (device(half, 71), device(pulled, 72, state="REMOVED"))),
        size=3 * TB,
        state="DEGRADED",
        status="One or more devices have been removed.\n\tSufficient replicas exist for the pool to continue "
        "functioning in a\n\tdegraded state.\n",
    )
    mirror = replace(mirror, vdevs=(replace(mirror.vdevs[0], state="DEGRADED"),))
    pools = (resilvering(sick, now - timedelta(hours=3), 41), scrubbed(filled(mirror, 81), now - timedelta(days=40)))
    of_attic = folders(
        int(2.9 * TB),
        folder("attic", GB),
        folder("attic/copies", int(2.35 * TB)),
        folder("attic/letters", 2 * GB, **locked("attic/letters")),
    )
    return Box(
        pools,
        (*of_tank(int(3.6 * TB)), *of_attic),
        in_use(disks, pools),
        smart={
            failing.path: smart((5, 1975), (197, 312), (198, 44), celsius=47, hours=52_118, failed_test=True),
            disks[0].path: smart((199, 17), (5, 8), celsius=41, hours=49_800),
            half.path: smart(celsius=62, hours=8_100),
        },
        accounts=FAMILY,
        groups=(Group("family", 20000, ("anna", "ben", "clara")),),
        remotes=(
            cellar(now, offered_key=f"ssh-ed25519 {'AAAAC3NzaC1lZDI1NTE5AAAAI' + 'y' * 43}"),
            cellar(
                now,
                id="1badcafe",
                host="a-box-with-a-long-name.of-a-friend.example.org",
                host_key="",
                offered_key=cellar(now).host_key,
                tested=None,
            ),
        ),
        failed_services=("zfs-zed.service",),
    )


def full(now: datetime) -> Box:
    """One pool at 82 per cent, one at 96, and a folder that has reached its limit."""
    pools = (
        scrubbed(tank(84), now - timedelta(days=12)),
        scrubbed(filled(attic(), 97), now - timedelta(hours=20), repaired=3 * 2**20),
    )
    own = of_tank(int(3.6 * TB), full=True)
    used = own[0].used
    limited = folder("tank/games", 500 * GB, preset="general", quota=500 * GB, **shared({"name": "games", **EVERYBODY}))
    total = (used + limited.used) * 100 // 82
    bulk = (
        folder("attic", GB, **POLICY),
        folder("attic/archive", int(1.6 * TB), snapshots=230 * GB),
        folder("attic/scans", 94 * GB),
    )
    of_attic = folders(sum(one.used for one in bulk) * 1000 // 963, *bulk)
    return Box(
        pools,
        (*folders(total, *(replace(one, used=one.used - one.used_by_children) for one in own), limited), *of_attic),
        in_use(recorded_disks(), pools),
        accounts=FAMILY,
        groups=(Group("family", 20000, ("anna", "ben", "clara")),),
        uses={
            "tank/homes": (
                SpaceUse("user", "anna", 50 * GB, 50 * GB),
                SpaceUse("user", "ben", 49 * GB, 50 * GB),
                SpaceUse("group", "family", 99 * GB),
            ),
        },
        growth=0.8,
    )


def empty(now: datetime) -> Box:
    """No pool yet, four empty disks, one that holds old data, and a pool that could be imported."""
    old = replace(
        recorded_disks()[4],
        uses=(
            Use(
                "old",
                Message("holds {kind} data called {label}", kind="ext4", label="photos"),
                "796f9e2a-d931-42ae-a860-4a7cf67bfe06",
            ),
        ),
    )
    parts = (
        ImportablePart("attic", "ONLINE"),
        ImportablePart("ata-WDC_WD30EZRS-11J99B1_WD-WCAWZ0000006", "ONLINE", depth=1),
    )
    importable = Importable("attic", 42, "ONLINE", parts=parts, other_host=True, host="oldbox")
    return Box(disks=(*recorded_disks()[:4], old, SYSTEM_DISK), importable=(importable,), in_use=False)


def new(now: datetime) -> Box:
    """The same before anybody has set it up."""
    return replace(empty(now), set_up=False)


LONG = (
    "Photographs and films of all journeys that the family has made together since the year nineteen hundred and eighty"
)


def many(now: datetime) -> Box:
    """Ten pools, one of them empty, 1,000 datasets, 20,000 snapshots, 30 people, 12 disks; some
    names as long as they may be."""
    models = ("ST16000NM001G-2KK103", "WDC WUH721818ALE6L4 Ultrastar DC HC550", "TOSHIBA MG08ACA16TE")
    disks = [made_disk(number, models[number % 3], (16, 18)[number % 3 == 1] * TB) for number in range(1, 13)]
    names = (
        "archive",
        "a-pool-with-a-name-that-somebody-thought-about-for-a-long-time",
        *(f"pool{at}" for at in range(3, 11)),
    )
    pools, rest = [], list(disks)
    for at, name in enumerate(names):
        members = tuple(device(rest.pop(0), 10_000 + at * 10 + side) for side in range(2 if at < 2 else 1))
        made = pool_of(name, 6000 + at, ("mirror" if at < 2 else "disk", members), size=16 * TB)
        pools.append(scrubbed(filled(made, 9 * at), now - timedelta(days=at + 1), hours=11))
    datasets: list[Dataset] = []
    for at, pool in enumerate(pools):
        if not at:
            datasets += folders(int(16 * TB * 0.93), folder(pool.name, 98_304, **POLICY))
            continue
        below = [
            folder(f"{pool.name}/{'/'.join(way)}", (number + 1) * GB, snapshots=number * 2**24, **sharing(at, number))
            for number, way in enumerate(ways(110))
        ]
        datasets += folders(int((6 + at) * TB), folder(pool.name, GB, **POLICY), *below)
    people = tuple(
        Account(
            f"person{at:02d}",
            1001 + at,
            ("Maximiliane Alexandra von und zu Hohenstein-Wittelsbach" if at == 7 else f"Person {at}"),
        )
        for at in range(30)
    )
    groups = tuple(Group(f"group{at}", 20000 + at, tuple(one.name for one in people[at::5])) for at in range(5))
    return Box(
        tuple(pools),
        tuple(datasets),
        (*in_use(disks, pools), SYSTEM_DISK),
        accounts=people,
        groups=groups,
        kept=Policy(hourly=8, daily=6, weekly=4, monthly=2),
    )


def ways(count: int) -> list[tuple[str, ...]]:
    """So many ways down from a pool's top, parents before children, a few of them long or deep."""
    made: list[tuple[str, ...]] = [(LONG,), (LONG, "2026"), ("deep",), ("deep", "er"), ("deep", "er", "still")]
    return [*made, *((f"folder-{at:03d}",) for at in range(count - len(made)))]


def sharing(pool: int, number: int) -> dict[str, Any]:
    """Every tenth folder is shared."""
    return (
        shared({"name": f"share-{pool}-{number}", "write": ["person01", "person02"], "read": ["@group1"]})
        if number % 10 == 5
        else {}
    )


BOXES: dict[str, tuple[str, Callable[[datetime], Box]]] = {
    build.__name__: (build.__doc__ or "", build) for build in (healthy, degraded, full, empty, many, new)
}
