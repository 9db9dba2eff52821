"""The settings database as a file: ``manage.py prepare`` and the copies, over databases that are really damaged."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from appliance.system import atomic_file
from web.system import database

ROOT = Path(__file__).parents[2]
NOW = datetime(2026, 11, 22, 3, tzinfo=UTC)
DAY = timedelta(days=1)


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    """A database of 50 pages and more, as Larder keeps it: with a log beside."""
    path = tmp_path / "state/settings.sqlite3"
    path.parent.mkdir()
    write(path, "first")
    return path


def write(path: Path, word: str) -> None:
    with closing(sqlite3.connect(path)) as found:
        found.execute("PRAGMA journal_mode=WAL")
        found.execute("CREATE TABLE IF NOT EXISTS words (word TEXT, filler TEXT)")
        found.executemany("INSERT INTO words VALUES (?, ?)", [(word, "x" * 500)] * 400)
        found.execute("CREATE INDEX IF NOT EXISTS by_word ON words (word, filler)")
        found.commit()


def words(path: Path) -> set[str]:
    with closing(sqlite3.connect(path)) as found:
        return {row[0] for row in found.execute("SELECT DISTINCT word FROM words")}


def overwrite(path: Path) -> None:
    with path.open("r+b") as file:
        for page in range(2, path.stat().st_size // 4096, 3):
            file.seek(page * 4096)
            file.write(os.urandom(4096))


def zero_pages(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(3 * 4096)
        file.write(bytes(10 * 4096))


def truncate(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def empty(path: Path) -> None:
    os.truncate(path, 0)


def not_a_database(path: Path) -> None:
    path.write_bytes(b"#!/bin/sh\n" * 5000)


DAMAGES = [overwrite, zero_pages, truncate, empty, not_a_database, Path.unlink]


def test_sound_database_is_left_alone(settings):
    before = settings.read_bytes()
    assert database.check_file(settings) == ""
    assert database.ensure_sound(settings, NOW) is None
    assert settings.read_bytes() == before
    assert database.read_notice(settings) is None


def test_new_box_gets_no_notice(tmp_path):
    assert database.ensure_sound(tmp_path / "settings.sqlite3", NOW) is None


def test_locked_database_is_not_taken_for_a_damaged_one(settings, monkeypatch):
    def locked(*_args, **_kwargs):
        problem = sqlite3.OperationalError("database is locked")
        problem.sqlite_errorcode = sqlite3.SQLITE_BUSY
        raise problem

    monkeypatch.setattr(sqlite3, "connect", locked)
    with pytest.raises(sqlite3.OperationalError):
        database.ensure_sound(settings, NOW)
    assert settings.exists()


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_database_is_replaced_by_its_newest_copy(settings, damage):
    database.make_copy(settings, NOW - DAY)
    write(settings, "second")
    database.make_copy(settings, NOW)
    write(settings, "since")
    damage(settings)
    damaged = settings.read_bytes() if settings.exists() else None
    found = database.ensure_sound(settings, NOW + DAY)
    assert found is not None
    assert words(settings) == {"first", "second"}
    assert "restored from a copy of 22 November 2026" in found.headline
    assert database.read_notice(settings) == found
    if damaged is not None:
        assert (Path(found.kept) / "settings.sqlite3").read_bytes() == damaged
        assert found.kept in found.meaning
    assert database.ensure_sound(settings, NOW + DAY) is None


@pytest.mark.parametrize("damage", [one for one in DAMAGES if one is not Path.unlink])
def test_damaged_database_without_copy_gives_way_to_an_empty_one(settings, damage):
    damage(settings)
    found = database.ensure_sound(settings, NOW)
    assert found is not None
    assert not settings.exists()
    assert "settings were lost" in found.headline
    assert (Path(found.kept) / "settings.sqlite3").exists()


def test_log_of_a_database_that_is_gone_is_not_left_beside_the_copy(settings):
    database.make_copy(settings, NOW)
    settings.unlink()
    (settings.parent / "settings.sqlite3-wal").write_bytes(b"a log of the damaged one")
    found = database.ensure_sound(settings, NOW)
    assert found is not None
    assert (Path(found.kept) / "settings.sqlite3-wal").exists()
    assert not (settings.parent / "settings.sqlite3-wal").exists()
    assert words(settings) == {"first"}


def damage_again(settings: Path, word: str, when: datetime) -> None:
    """Another database that is damaged in its turn: Larder has started with an empty one, since there is no copy."""
    settings.write_bytes(word.encode() * 100)
    assert database.ensure_sound(settings, when) is not None


def kept_words(settings: Path) -> list[str]:
    files = [one / "settings.sqlite3" for one in settings.parent.glob("damaged-*")]
    return sorted(one.read_text()[:3] for one in files if one.exists())


def test_first_damaged_database_outlives_all_that_are_damaged_after_it(settings):
    """What came after it began empty, so it may be the only one with the settings."""
    for number in range(1, 9):
        damage_again(settings, f"n{number}.", NOW + timedelta(hours=number))
        assert "n1." in kept_words(settings)
        assert f"n{number}." in kept_words(settings)
    assert len(list(settings.parent.glob("damaged-*"))) == database.DAMAGED_KEPT


def test_first_of_a_later_row_of_damages_outlives_those_that_followed_at_once(settings):
    for hours, word in ((0, "old"), (9000, "new"), (9001, "n+1"), (9002, "n+2"), (9003, "n+3")):
        damage_again(settings, word, NOW + timedelta(hours=hours))
    assert kept_words(settings) == ["n+3", "new", "old"]


def test_first_damaged_database_is_known_whatever_the_clock_says(settings):
    """A box that lost its power may start in another year, until it has asked for the time."""
    for number, years in enumerate((0, 0, -26, -26, 10), 1):
        damage_again(settings, f"n{number}.", NOW + timedelta(days=365 * years))
    assert kept_words(settings)[0] == "n1."


def test_folder_that_a_power_cut_left_empty_does_not_pass_for_the_first_damaged_database(settings):
    (settings.parent / "damaged-20261121T030000Z").mkdir()
    for number in range(1, 6):
        damage_again(settings, f"n{number}.", NOW + timedelta(hours=number))
    assert kept_words(settings)[0] == "n1."
    assert len(list(settings.parent.glob("damaged-*"))) == database.DAMAGED_KEPT


def test_folders_of_earlier_versions_count_as_the_first_and_others_are_left_alone(settings):
    for name in ("damaged-20251122T030000Z", "damaged-20251122T030000Z-2", "damaged-by-hand"):
        (settings.parent / name).mkdir()
        (settings.parent / name / "settings.sqlite3").write_text(name[-3:])
    for number in range(1, 5):
        damage_again(settings, f"n{number}.", NOW + timedelta(hours=number))
    assert kept_words(settings) == sorted(["00Z", "and", "n1.", "n4."])


def test_damaged_copy_is_passed_over(settings):
    database.make_copy(settings, NOW - DAY)
    write(settings, "second")
    overwrite(database.make_copy(settings, NOW).path)
    not_a_database(settings)
    found = database.ensure_sound(settings, NOW)
    assert found is not None
    assert words(settings) == {"first"}
    assert found.copy == NOW - DAY


def test_full_disk_does_not_keep_the_copy_from_taking_its_place(settings, monkeypatch):
    database.make_copy(settings, NOW)
    not_a_database(settings)

    def full(_source, target):
        Path(target).write_bytes(b"part")
        raise OSError(28, "No space left on device")

    def not_a_byte(path, _content, **_options):
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(shutil, "copyfile", full)
    monkeypatch.setattr(atomic_file, "write_atomically", not_a_byte)
    assert database.ensure_sound(settings, NOW) is not None
    assert words(settings) == {"first"}


def test_power_cut_at_any_step_of_restoring_leaves_a_way_on(settings, monkeypatch):
    """Each renaming in turn is the last thing that happens."""
    database.make_copy(settings, NOW)
    with closing(sqlite3.connect(settings)) as holding:  # so that there is a log
        holding.execute("INSERT INTO words VALUES ('since', '')")
        holding.commit()
        shutil.copytree(settings.parent, settings.parent.with_name("live"))
    shutil.rmtree(settings.parent)
    settings.parent.with_name("live").rename(settings.parent)
    overwrite(settings)
    saved = settings.parent.with_name("saved")
    shutil.copytree(settings.parent, saved)
    real = Path.replace
    for last in range(1, 20):
        shutil.rmtree(settings.parent)
        shutil.copytree(saved, settings.parent)
        done = 0

        def replace(self, target, last=last):
            nonlocal done
            done += 1
            if done > last:
                raise KeyboardInterrupt
            return real(self, target)

        monkeypatch.setattr(Path, "replace", replace)
        try:
            database.ensure_sound(settings, NOW)
        except KeyboardInterrupt:
            monkeypatch.setattr(Path, "replace", real)
            database.ensure_sound(settings, NOW)
            assert database.ensure_sound(settings, NOW) is None, last
            assert words(settings) == {"first"}, last
            told = database.read_notice(settings)
            assert told and told.done and told.reason != "the file was gone", last
            assert Path(told.kept, "settings.sqlite3").exists(), last
        else:
            assert last > 2
            return
    raise AssertionError("it never came to its end")


def test_damaged_database_that_somebody_has_removed_does_not_keep_the_copy_from_taking_its_place(settings):
    database.make_copy(settings, NOW)
    begun = database.Notice(at=NOW, reason="odd", kept=str(settings.with_name("damaged-000001")), done=False)
    database.write_notice(settings, begun)
    settings.unlink()
    found = database.ensure_sound(settings, NOW)
    assert found is not None
    assert (found.reason, found.kept) == ("odd", "")
    assert words(settings) == {"first"}


def test_power_cut_while_the_disk_is_full_does_not_lose_the_only_copy(settings, monkeypatch):
    database.make_copy(settings, NOW)
    not_a_database(settings)
    real = Path.replace

    def full(_source, target):
        Path(target).write_bytes(b"part")
        raise OSError(28, "No space left on device")

    def cut(self, target):
        if Path(target) == settings:
            raise KeyboardInterrupt
        return real(self, target)

    monkeypatch.setattr(shutil, "copyfile", full)
    monkeypatch.setattr(Path, "replace", cut)
    with pytest.raises(KeyboardInterrupt):
        database.ensure_sound(settings, NOW)
    monkeypatch.setattr(Path, "replace", real)
    assert database.ensure_sound(settings, NOW) is not None
    assert words(settings) == {"first"}


def test_power_cut_cannot_bring_the_log_of_the_damaged_database_back_beside_the_copy(settings, monkeypatch):
    """SQLite would replay it into the copy. A renaming is on the disk for certain once both folders are synced."""
    database.make_copy(settings, NOW)
    not_a_database(settings)
    log = settings.with_name("settings.sqlite3-wal")
    log.write_bytes(b"a log of the damaged one")
    synced: list[tuple[Path, bool, bool]] = []
    monkeypatch.setattr(atomic_file, "sync_folder", lambda path: synced.append((path, log.exists(), settings.exists())))
    found = database.ensure_sound(settings, NOW)
    assert found is not None
    for folder in (Path(found.kept), settings.parent):
        assert (folder, False, False) in synced, "synced with the log moved away and no copy in its place yet"
    assert words(settings) == {"first"}


# --- copies -----------------------------------------------------------------------------------------------------
def test_copy_is_made_once_a_day_and_only_of_what_has_changed(settings):
    assert database.copy_due(settings, NOW)
    holding = sqlite3.connect(settings)  # as the pages do: the log is not folded in when a copy is made
    holding.execute("SELECT count(*) FROM words").fetchone()
    database.make_copy(settings, NOW)
    assert not database.copy_due(settings, NOW + 2 * DAY)
    write(settings, "second")
    assert not database.copy_due(settings, NOW + DAY / 2)
    assert database.copy_due(settings, NOW + DAY)
    holding.close()


def test_copy_is_due_after_a_clock_that_was_ahead(settings):
    database.make_copy(settings, NOW + 3650 * DAY)
    write(settings, "second")
    assert database.copy_due(settings, NOW)
    database.make_copy(settings, NOW)
    assert words(database.list_copies(settings)[0].path) == {"first", "second"}


def test_a_few_copies_are_kept_and_nobody_else_may_read_them(settings):
    for day in range(database.COPIES_KEPT + 3):
        write(settings, str(day))
        database.make_copy(settings, NOW + day * DAY)
    known = database.list_copies(settings)
    assert [one.made for one in known] == [NOW + day * DAY for day in range(7, 2, -1)]
    assert {one.path.stat().st_mode & 0o777 for one in known} == {0o600}
    assert database.folder_of(settings).stat().st_mode & 0o777 == 0o700
    assert len(list(database.folder_of(settings).iterdir())) == database.COPIES_KEPT


def test_damaged_database_is_not_copied_over_good_copies(settings):
    good = database.make_copy(settings, NOW)
    overwrite(settings)
    with pytest.raises(sqlite3.DatabaseError):
        database.make_copy(settings, NOW + DAY)
    assert database.list_copies(settings) == [good]


def test_copy_is_not_made_where_it_would_fill_the_system_disk(settings, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda _folder: shutil._ntuple_diskusage(100, 90, 10))
    with pytest.raises(OSError, match="no room"):
        database.make_copy(settings, NOW)


def test_copy_is_late_after_three_days_with_changes(settings):
    assert database.is_late(settings, NOW)
    database.make_copy(settings, NOW)
    write(settings, "second")
    assert not database.is_late(settings, NOW + 2 * DAY)
    assert database.is_late(settings, NOW + 4 * DAY)


# --- manage.py prepare ------------------------------------------------------------------------------------------
def manage(place: Path, *words: object, **more: str) -> subprocess.CompletedProcess[str]:
    """Run Larder's manage.py over the folders of a box; ``words`` are Python's, ``more`` is of the environment."""
    env = {
        **os.environ,
        "LARDER_STATE": str(place / "state"),
        "LARDER_RUN": str(place / "run"),
        "PYTHONPATH": str(ROOT),
    }
    env = {name: value for name, value in env.items() if name not in {"LARDER_SECRET_KEY", "DJANGO_SETTINGS_MODULE"}}
    return subprocess.run(
        [sys.executable, *map(str, words)], env=env | more, capture_output=True, text=True, timeout=300
    )


def prepare(place: Path, *options: str) -> str:
    """Run it as the box does at each start; what it said. ``options`` are Python's."""
    done = manage(place, *options, ROOT / "manage.py", "prepare")
    assert done.returncode == 0, done.stderr
    return done.stderr


def ask(path: Path, query: str) -> list:
    with closing(sqlite3.connect(path)) as found:
        return found.execute(query).fetchall()


@pytest.fixture(scope="module")
def prepared(tmp_path_factory) -> Path:
    """State and run folders of a box that has started once, with mail set up and a copy of that."""
    place = tmp_path_factory.mktemp("box")
    for name in ("state", "run/inventory"):
        (place / name).mkdir(parents=True)
    prepare(place)
    path = place / "state/settings.sqlite3"
    with closing(sqlite3.connect(path)) as found:
        found.execute("INSERT INTO larder_alerts_kindseverity VALUES ('disk.watch', 'critical')")
        found.commit()
    database.make_copy(path, NOW)
    return place


def test_start_waits_for_no_page_to_be_loaded(prepared, tmp_path):
    """Every page waits for it, and with all addresses and templates it takes nearly twice as long."""
    shutil.copytree(prepared, tmp_path / "box")
    loaded = prepare(tmp_path / "box", "-X", "importtime")
    assert "django.db.migrations" in loaded
    assert "web.urls" not in loaded


@pytest.mark.parametrize("damage", [overwrite, empty])
def test_box_with_damaged_settings_starts_with_the_copy(prepared, tmp_path, damage):
    shutil.copytree(prepared, tmp_path / "box")
    path = tmp_path / "box/state/settings.sqlite3"
    damage(path)
    prepare(tmp_path / "box")
    assert ask(path, "SELECT * FROM larder_alerts_kindseverity") == [("disk.watch", "critical")]
    found = database.read_notice(path)
    assert found is not None
    assert found.copy == NOW


def test_box_with_damaged_settings_and_no_copy_starts_empty(prepared, tmp_path):
    shutil.copytree(prepared, tmp_path / "box")
    path = tmp_path / "box/state/settings.sqlite3"
    shutil.rmtree(database.folder_of(path))
    not_a_database(path)
    prepare(tmp_path / "box")
    assert ask(path, "SELECT * FROM larder_alerts_kindseverity") == []
    found = database.read_notice(path)
    assert found is not None
    assert found.copy is None
    assert (tmp_path / "box/run/inventory/setup-code").exists()


def test_damage_that_only_the_migration_meets_is_restored_too(prepared, tmp_path):
    """The quick check does not read what an index says; here it is made to see nothing at all."""
    shutil.copytree(prepared, tmp_path / "box")
    path = tmp_path / "box/state/settings.sqlite3"
    with closing(sqlite3.connect(path)) as found:
        found.execute("PRAGMA writable_schema=ON")
        found.execute("UPDATE sqlite_master SET rootpage=99999 WHERE name='django_migrations'")
        found.commit()
    prepare(tmp_path / "box")
    assert ask(path, "SELECT * FROM larder_alerts_kindseverity") == [("disk.watch", "critical")]


def test_empty_secret_key_is_made_anew(prepared, tmp_path):
    shutil.copytree(prepared, tmp_path / "box")
    key = tmp_path / "box/state/secret-key"
    key.write_text("")
    prepare(tmp_path / "box")
    assert len(key.read_text()) > 40
    assert key.stat().st_mode & 0o777 == 0o600


# --- manage.py try_migration ------------------------------------------------------------------------------------
NEWEST = "FROM django_migrations WHERE app='larder_overview'"


def try_migration(place: Path) -> subprocess.CompletedProcess[str]:
    """Try it as deploy/install does, which has no secret key before the first start."""
    return manage(place, ROOT / "manage.py", "try_migration", LARDER_SECRET_KEY="none")


def box_of_an_older_version(prepared: Path, place: Path, *, fits: bool) -> Path:
    """The settings from before the migrations of one part; ``fits``: whether these can be made."""
    shutil.copytree(prepared, place)
    path = place / "state/settings.sqlite3"
    with closing(sqlite3.connect(path)) as found:
        found.execute(f"DELETE {NEWEST}")
        if fits:
            found.execute("DROP TABLE larder_overview_dismissedstep")
        found.commit()
    return path


def state_of(place: Path) -> dict[str, tuple[bytes, int]]:
    """Every file of a box: what is in it, and when it was written. Not what readers of SQLite tell each other."""
    return {
        str(path.relative_to(place)): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in place.rglob("*")
        if path.is_file() and path.suffix not in {".sqlite3-shm", ".sqlite3-wal"}
    }


@pytest.mark.parametrize("in_use", [False, True])
@pytest.mark.parametrize("fits", [True, False])
def test_trial_of_an_update_says_whether_the_settings_can_be_migrated_and_changes_none(
    prepared, tmp_path, fits, in_use
):
    box = tmp_path / "box"
    path = box_of_an_older_version(prepared, box, fits=fits)
    (box / "state/update-trial").mkdir()  # as a power cut left it
    (box / "state/update-trial/settings.sqlite3").write_text("half a copy")
    with closing(sqlite3.connect(path)) as user:
        if in_use:  # what it has written is in the log beside the database
            user.execute("INSERT INTO larder_alerts_kindseverity VALUES ('disk.failed', 'warning')")
            user.commit()
        before = state_of(box)
        done = try_migration(box)
        assert (done.returncode == 0) == fits, done.stderr
        assert ("already exists" in done.stderr) == (not fits)
        before.pop("state/update-trial/settings.sqlite3")
        assert state_of(box) == before
        assert not (box / "state/update-trial").exists()
        assert user.execute(f"SELECT count(*) {NEWEST}").fetchone() == (0,)
        assert user.execute("SELECT count(*) FROM larder_alerts_kindseverity").fetchone() == (1 + in_use,)


def test_trial_on_a_new_box_has_nothing_to_try(tmp_path):
    (tmp_path / "state").mkdir()
    done = try_migration(tmp_path)
    assert done.returncode == 0, done.stderr
    assert list(tmp_path.rglob("*")) == [tmp_path / "state"]


def test_damaged_settings_do_not_keep_an_update_away(prepared, tmp_path):
    """The next start restores them, and the update may be what repairs the box."""
    shutil.copytree(prepared, tmp_path / "box")
    not_a_database(tmp_path / "box/state/settings.sqlite3")
    done = try_migration(tmp_path / "box")
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "box/state/update-trial").exists()
