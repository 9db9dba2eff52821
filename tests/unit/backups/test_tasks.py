"""Backup tasks: what their text says, when they are due, what they copy; and which copies stay."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from appliance import snapshot_names
from appliance.backups import copies, tasks
from appliance.backups.retention import expired_copies
from appliance.backups.tasks import BackupTask
from appliance.facts.box import Facts
from appliance.facts.datasets import Snapshot
from appliance.facts.kept_copies import Keep
from appliance.snapshots import policy as snapshot_policy
from tests.reasons import expect_refusal
from tests.unit.made import dataset

KEY, ZONE = "0123abcd", ZoneInfo("Europe/Amsterdam")
TASK = BackupTask(key=KEY, pool=99, path="backups/photos")
NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)  # a Friday


def backed_up(*found: BackupTask, **changes):
    return dataset("tank/photos", backup=tasks.encode_tasks(found), backup_source="local", **changes)


def test_tasks_are_read_as_they_were_written():
    assert tasks.tasks_of(backed_up(TASK)) == (TASK,)


def test_text_from_elsewhere_is_no_task():
    for text in ("", "x", "{}", '{"tasks":[{"key":"../x"}]}', '{"tasks":[[]]}', "[" * 5000):
        assert tasks.parse_tasks(text) == ()
    assert tasks.tasks_of(replace(backed_up(TASK), backup_source="received")) == ()
    assert tasks.tasks_of(replace(backed_up(TASK), backup_source="inherited")) == ()
    assert tasks.tasks_of(replace(backed_up(TASK), copy_of='{"guid":1,"raw":false}')) == ()


def test_path_lies_in_the_folder_for_copies():
    wrong = {
        "backup-path-invalid": ["photos", "backups/a/b", "../backups/x"],
        "folder-name-empty": ["backups", "backups/"],
        "folder-name-invalid": ["backups/..", "backups/-x"],
    }
    for code, found in wrong.items():
        for path in found:
            with expect_refusal(code):
                BackupTask(key=KEY, pool=1, path=path)


def test_daily_backup_is_due_once_a_day_after_its_hour():
    assert TASK.is_due(None, NOW, ZONE)
    today = datetime(2026, 11, 20, 1, 30, tzinfo=UTC)  # 02:30 in Amsterdam
    assert not TASK.is_due(today, NOW, ZONE)
    assert not TASK.is_due(today, datetime(2026, 11, 21, 0, 59, tzinfo=UTC), ZONE)
    assert TASK.is_due(today, datetime(2026, 11, 21, 1, 1, tzinfo=UTC), ZONE)
    assert TASK.is_due(today - timedelta(days=9), NOW, ZONE)


def test_weekly_backup_is_due_on_sunday():
    task = BackupTask(key=KEY, pool=1, path="backups/a", every="weekly", hour=3)
    assert not task.is_due(datetime(2026, 11, 15, 2, 1, tzinfo=UTC), NOW, ZONE)  # Sunday at 03:01
    assert task.is_due(datetime(2026, 11, 15, 1, 59, tzinfo=UTC), NOW, ZONE)
    assert task.is_due(datetime(2026, 11, 19, tzinfo=UTC), datetime(2026, 11, 22, 2, 1, tzinfo=UTC), ZONE)


def test_copy_dated_in_the_future_does_not_stop_backups():
    assert TASK.is_due(NOW + timedelta(days=400), NOW, ZONE)


def test_copies_and_benchmark_folders_are_not_backed_up():
    tree = (
        dataset("tank", guid=1),
        dataset("tank/a", guid=2),
        dataset("tank/a/b", guid=3),
        dataset("tank/backups", guid=4),
        dataset("tank/backups/x", guid=5, copy_of='{"guid":8,"raw":false}'),
        dataset("tank/backups/x/y", guid=6),
        dataset("tank/test", guid=7, scratch=True),
    )
    found = [one.name for one in tasks.members(tree[0], TASK, Facts(datasets=tree))]
    assert found == ["tank", "tank/a", "tank/a/b", "tank/backups"]
    alone = BackupTask(key=KEY, pool=1, path="backups/a", below=False)
    assert [one.name for one in tasks.members(tree[1], alone, Facts(datasets=tree))] == ["tank/a"]


def test_no_snapshot_schedule_applies_to_a_copy():
    text = '{"daily":7}'
    plain = dataset("safe/backups/photos", policy=text, policy_source="local")
    assert snapshot_policy.policy_of(plain)
    assert snapshot_policy.policy_of(replace(plain, copy_of='{"guid":1,"raw":false}')) is None


def test_copy_follows_its_source_through_a_rename():
    source = dataset("tank/pictures", guid=2)
    there = dataset("safe/backups/photos/holiday", guid=9, copy_of=copies.mark_text(source))
    facts = Facts(datasets=(dataset("safe/backups/photos", guid=8), there))
    names = copies.names_of("safe/backups/photos", dataset("tank", guid=1), [dataset("tank", guid=1), source], facts)
    assert names[2] == "safe/backups/photos/holiday"


def test_new_folder_with_the_name_of_an_old_one_gets_a_place_of_its_own():
    old = dataset("safe/backups/tank/photos", guid=9, copy_of='{"guid":5,"raw":false}')
    facts = Facts(datasets=(dataset("safe/backups/tank", guid=8, copy_of='{"guid":1,"raw":false}'), old))
    top, new = dataset("tank", guid=1), dataset("tank/photos", guid=6)
    assert copies.names_of("safe/backups/tank", top, [top, new], facts)[6] == "safe/backups/tank/photos-2"


# --- retention --------------------------------------------------------------------------------------------------------
def copy_at(number: int, at: datetime, **changes) -> Snapshot:
    name = snapshot_names.name_for(snapshot_names.BACKUP, at)
    return replace(Snapshot(f"safe/backups/photos@{name}", number, number, at), **changes)


def test_newest_of_each_day_week_and_month_stays():
    year = [copy_at(day, NOW - timedelta(days=400 - day)) for day in range(400)]
    gone = {one.guid for one in expired_copies(year, Keep(hourly=0, daily=14, weekly=8, monthly=12), ZONE)}
    stay = [one for one in year if one.guid not in gone]
    assert len(stay) == 14 + 6 + 10  # two of the weeks and two of the months are among the days
    assert stay[-14:] == year[-14:]


@given(st.lists(st.integers(0, 10**8), max_size=40), st.integers(0, 3), st.integers(0, 3), st.integers(0, 3))
def test_newest_copy_always_stays_whatever_the_clock_says(seconds, daily, weekly, monthly):
    every = [copy_at(number, NOW - timedelta(seconds=before)) for number, before in enumerate(seconds)]
    gone = expired_copies(every, Keep(hourly=0, daily=daily, weekly=weekly, monthly=monthly), ZONE)
    assert not every or every[-1] not in gone
    assert len(every) - len(gone) <= max(1, daily + weekly + monthly) + 1


def test_held_cloned_and_unknown_snapshots_stay():
    keep = Keep(hourly=0, daily=0, weekly=0, monthly=0)
    every = [
        copy_at(1, NOW - timedelta(days=9), holds=1),
        copy_at(2, NOW - timedelta(days=8), clones=("safe/x",)),
        replace(copy_at(3, NOW - timedelta(days=7)), name="safe/backups/photos@mine"),
        copy_at(4, NOW - timedelta(days=6)),
        copy_at(5, NOW),
    ]
    assert [one.guid for one in expired_copies(every, keep, ZONE)] == [4]
