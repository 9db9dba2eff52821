from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from appliance import command
from appliance.errors import Failed
from appliance.facts.importable import ImportablePart
from appliance.pools import discover
from appliance.system import locks
from tests.unit.made import RECORDED
from tests.unit.pools import import_samples as texts
from tests.unit.pools.import_samples import GUID, found

pytestmark = pytest.mark.usefixtures("folders")
LABEL = (RECORDED / "zdb-label-2.3.9.txt").read_text()
CORRUPT = (RECORDED / "zpool-import-corrupt-2.3.9.txt").read_text()
UBERBLOCKS = (RECORDED / "zdb-uberblocks-2.3.9.txt").read_text()
NO_POOLS = "no pools available to import\n"


def test_every_pool_of_a_listing_is_found_with_its_health():
    pools = {pool.name: pool for pool in discover.parse_pools(texts.ALL)}
    assert [(pool.name, pool.guid, pool.state) for pool in pools.values()] == [
        ("attic", GUID, "ONLINE"),
        ("old", 42, "DEGRADED"),
        ("broken", 43, "FAULTED"),
        ("half", 44, "UNAVAIL"),
        ("nolog", 45, "UNAVAIL"),
        ("newer", 47, "UNAVAIL"),
        ("shared", 48, "UNAVAIL"),
    ]
    assert [pool.name for pool in pools.values() if pool.usable] == ["attic", "old"]
    assert [pool.name for pool in pools.values() if pool.other_host] == ["old"]
    assert [pool.name for pool in pools.values() if pool.active_elsewhere] == ["shared"]
    assert [pool.name for pool in pools.values() if pool.read_only_only] == ["newer"]
    assert [pool.name for pool in pools.values() if pool.log_missing] == ["nolog"]
    assert [pool.name for pool in pools.values() if discover.is_damaged(pool)] == ["broken"]
    assert pools["old"].comment == "of the cellar"


def test_what_a_pool_is_made_of_keeps_its_order_depth_role_and_what_is_wrong():
    (pool,) = discover.parse_pools(texts.FOREIGN_AND_WEAK)
    assert [(part.name, part.state, part.note, part.depth, part.role) for part in pool.parts] == [
        ("old", "DEGRADED", "", 0, "normal"),
        ("raidz1-0", "DEGRADED", "", 1, "normal"),
        ("sdb", "ONLINE", "", 2, "normal"),
        ("1234567890123456789", "UNAVAIL", "cannot open", 2, "normal"),
        ("sdc", "ONLINE", "", 2, "normal"),
        ("sdf", "ONLINE", "", 1, "log"),
    ]


def test_a_recorded_pool_with_a_disk_taken_offline_is_weak_and_usable():
    (pool,) = discover.parse_pools(texts.DEGRADED)
    assert (pool.name, pool.guid, pool.state, pool.usable, pool.other_host) == ("weak", 49, "DEGRADED", True, False)
    assert pool.status == "One or more devices are offlined."
    assert pool.action.endswith("fault tolerance of the pool may be compromised if imported.")
    assert [(part.state, part.depth) for part in pool.parts] == [
        ("DEGRADED", 0),
        ("DEGRADED", 1),
        ("ONLINE", 2),
        ("OFFLINE", 2),
    ]


def test_a_destroyed_pool_is_told_apart():
    (pool,) = discover.parse_pools(texts.DESTROYED)
    assert (pool.destroyed, pool.state, pool.usable) == (True, "ONLINE", True)


@pytest.mark.parametrize(
    "name",
    [
        "<script>",
        "a b",
        "x\n  state: FAULTED",
        "x\n   pool: y\n     id: 7\n  state: ONLINE",
        "x\n config:\n\tONLINE",
        "ONLINE ONLINE",
        "\x1b[31m",
        "-rf",
        "",
    ],
)
def test_a_hostile_name_breaks_nothing_and_the_true_number_is_still_there(name):
    pools = discover.parse_pools(texts.HEALTHY.replace("attic", name))
    # A name with line breaks may invent a pool of its own; it cannot hide the number of another below it.
    again = discover.parse_pools(texts.HEALTHY.replace("attic", name) + "\n" + texts.FOREIGN_AND_WEAK)
    assert 42 in [pool.guid for pool in again]
    assert all(isinstance(pool.guid, int) for pool in pools)


def test_a_second_pool_of_the_same_number_is_passed_over():
    pools = discover.parse_pools(texts.HEALTHY + "\n" + texts.HEALTHY.replace("attic", "copy"))
    assert [pool.name for pool in pools] == ["attic"]


@given(st.text(max_size=400))
def test_whatever_is_printed_gives_a_tuple(text):
    assert isinstance(discover.parse_pools(text), tuple)
    assert isinstance(discover.label_from(text), dict)


@pytest.mark.parametrize(
    ("text", "as_of", "lost"),
    [
        (
            (
                "Would be able to return tank to its state as of Sat Nov 21 08:00:00 2026.\nWould discard "
                "approximately 12 seconds of transactions.\n"
            ),
            "Sat Nov 21 08:00:00 2026",
            "12 seconds",
        ),
        (
            (
                "Would be able to return a of b to its state as of Sat Nov 21 08:00:00 2026.\nWould discard "
                "approximately 3 minutes of transactions.\n"
            ),
            "Sat Nov 21 08:00:00 2026",
            "3 minutes",
        ),
        ("Would be able to return tank to its state as of Sat Nov 21 08:00:00 2026.\n", "Sat Nov 21 08:00:00 2026", ""),
    ],
)
def test_a_dry_run_says_to_when_and_what_is_lost(text, as_of, lost):
    rewind = discover.rewind_from(text)
    assert rewind is not None
    assert (rewind.as_of, rewind.lost) == (as_of, lost)


def test_a_dry_run_that_promises_nothing_is_no_way_back():
    assert discover.rewind_from("") is None
    assert discover.rewind_from("cannot import 'tank': I/O error\n") is None


def test_the_recorded_states_of_a_pool_are_told_oldest_first():
    moments = discover.moments_from(UBERBLOCKS)
    assert moments == sorted(moments)
    assert len(moments) == UBERBLOCKS.count("Uberblock[") > 3
    assert discover.moments_from("") == []


def test_where_a_dry_run_promises_nothing_the_bounds_of_a_search_are_told(monkeypatch):
    """Recorded of a pool whose newest state was overwritten: the one before it is too old for plain ``-F``."""
    (pool,) = discover.parse_pools(CORRUPT)
    guid = str(pool.guid)
    listing = LSBLK.replace("7180307423654184295", guid)
    System(
        monkeypatch,
        {
            "import -d": (0, CORRUPT, ""),
            "import -D": (1, "", NO_POOLS),
            " -F ": (1, "", ""),
            "lsblk": (0, listing, ""),
            "hostid": (0, "00c9f8f9\n", ""),
            "zdb": (0, UBERBLOCKS, ""),
        },
    )
    (seen,) = discover.discover_pools()
    moments = discover.moments_from(UBERBLOCKS)
    assert seen.rewind
    assert seen.rewind.last_resort
    assert seen.rewind.as_of == time.ctime(moments[-2])
    assert seen.rewind.at_worst == time.ctime(moments[0])


def test_no_search_is_offered_without_its_disks_or_by_the_label_of_another_pool(monkeypatch):
    (pool,) = discover.parse_pools(CORRUPT)
    System(monkeypatch, {"zdb": (0, UBERBLOCKS, "")})
    assert discover.last_resort(pool, "/dev/sdb1")
    assert discover.last_resort(pool, "") is None
    assert discover.last_resort(replace(pool, guid=7), "/dev/sdb1") is None
    gone = replace(pool, parts=(*pool.parts, ImportablePart("sdc", "UNAVAIL", depth=1)))
    assert discover.last_resort(gone, "/dev/sdb1") is None


def test_the_recorded_label_tells_who_used_the_pool_last():
    label = discover.label_from(LABEL)
    assert (label["name"], label["state"], label["hostname"], label["hostid"]) == (
        "unclean_export",
        "0",
        "dlpx",
        "13240505",
    )
    assert label["pool_guid"] == "7180307423654184295"


class System:
    """Answers each command by its words; remembers what was run."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, answers: dict[str, tuple[int, str, str]]) -> None:
        self.ran: list[list[str]] = []
        self.answers = answers
        monkeypatch.setattr(command, "run", self.run)

    def run(self, argv: list[str], **more: Any) -> command.Result:
        self.ran.append(list(argv))
        line = " ".join(argv)
        status, out, err = next((answer for words, answer in self.answers.items() if words in line), (0, "", ""))
        result = command.Result(tuple(argv), status, out, err, 0.0)
        if status not in more.get("accept", (0,)):
            raise command.CommandFailed(result)
        return result


LSBLK = json.dumps(
    {
        "blockdevices": [
            {
                "name": "sdb",
                "path": "/dev/sdb",
                "fstype": None,
                "uuid": None,
                "children": [
                    {"name": "sdb1", "path": "/dev/sdb1", "fstype": "zfs_member", "uuid": "7180307423654184295"}
                ],
            }
        ]
    }
)


def test_looking_searches_by_id_paths_only_and_changes_nothing(monkeypatch):
    system = System(
        monkeypatch,
        {
            "import -d": (0, texts.ALL, ""),
            "import -D": (0, texts.DESTROYED, ""),
            "lsblk": (0, LSBLK, ""),
            "hostid": (0, "00c9f8f9\n", ""),
        },
    )
    names = [pool.name for pool in discover.discover_pools()]
    assert names == ["attic", "old", "broken", "half", "nolog", "newer", "shared", "gone"]
    imports = [argv for argv in system.ran if argv[:2] == ["zpool", "import"]]
    assert all(argv[argv.index("-d") + 1] == "/dev/disk/by-id" for argv in imports)
    rewinds = [argv for argv in imports if "43" in argv]
    assert len(rewinds) == 1
    assert {"-F", "-n", "-N", "readonly=on", "cachefile=none"} <= set(rewinds[0])
    assert [argv for argv in imports if argv not in rewinds] == [
        ["zpool", "import", "-d", "/dev/disk/by-id"],
        ["zpool", "import", "-D", "-d", "/dev/disk/by-id"],
    ]


def test_a_job_tries_only_its_own_pools_recovery_and_a_look_leaves_a_busy_one_alone(monkeypatch):
    answers = {"import -d": (0, texts.DAMAGED + "\n" + texts.DAMAGED.replace("43", "99"), "")}
    system = System(monkeypatch, answers)

    def tried() -> list[str]:
        return [argv[-2] for argv in system.ran if "-F" in argv]

    discover.discover_pools(99)
    assert tried() == ["99"]
    system.ran.clear()
    with locks.hold_locks(["43"], lambda _name: None):
        discover.discover_pools()
    assert tried() == ["99"]


def test_a_dry_run_that_imported_after_all_is_let_go_at_once(monkeypatch):
    system = System(monkeypatch, {})
    assert discover.try_rewind(found(state="FAULTED")) is None
    assert system.ran[-1] == ["zpool", "export", f"larder-look-{GUID}"]


def test_a_pool_that_another_system_held_is_told_by_its_label(monkeypatch):
    listing = texts.HEALTHY.replace(str(GUID), "7180307423654184295")
    answers = {
        "import -d": (0, listing, ""),
        "lsblk": (0, LSBLK, ""),
        "hostid": (0, "00000001\n", ""),
        "zdb": (0, LABEL, ""),
    }
    System(monkeypatch, answers)
    monkeypatch.setattr(discover, "SPL_HOSTID", RECORDED / "none")
    (pool,) = discover.discover_pools()
    assert (pool.other_host, pool.host) == (True, "dlpx")
    answers["hostid"] = (0, "00ca08b9\n", "")
    assert int("00ca08b9", 16) == 13240505
    (pool,) = discover.discover_pools()
    assert (pool.other_host, pool.host) == (False, "dlpx")


def test_a_reader_of_labels_that_crashes_hides_no_pool(monkeypatch):
    listing = texts.HEALTHY.replace(str(GUID), "7180307423654184295")
    System(
        monkeypatch,
        {"import -d": (0, listing, ""), "lsblk": (0, LSBLK, ""), "hostid": (0, "1\n", ""), "zdb": (-6, "", "ASSERT")},
    )
    (pool,) = discover.discover_pools()
    assert pool.guid == 7180307423654184295


@pytest.mark.parametrize("status", [0, 1])
def test_no_pool_is_no_failure(monkeypatch, status):
    System(monkeypatch, {"zpool": (status, "", "no pools available to import\n")})
    assert discover.discover_pools() == ()


def test_that_the_disks_cannot_be_searched_is_said(monkeypatch):
    System(monkeypatch, {"zpool": (1, "", "cannot discover pools: permission denied\n")})
    with pytest.raises(Failed, match="permission denied"):
        discover.discover_pools()
