from __future__ import annotations

import subprocess
import sys

import pytest

from appliance.system import locks, paths

pytestmark = pytest.mark.usefixtures("folders")


class StillWaiting(Exception):
    pass


def give_up(name: str) -> None:
    raise StillWaiting(name)


def test_a_lock_of_another_is_waited_for_by_name():
    with (
        locks.hold_locks(["tank"], give_up),
        pytest.raises(StillWaiting, match="tank"),
        locks.hold_locks(["tank"], give_up),
    ):
        pytest.fail("both held it")


def test_a_lock_is_free_again_afterwards():
    for _ in range(2):
        with locks.hold_locks(["tank"], give_up):
            assert locks.any_held()
    assert not locks.any_held()


def test_a_lock_is_free_again_after_an_error():
    with pytest.raises(ValueError, match="inside"), locks.hold_locks(["tank", "samba"], give_up):
        raise ValueError("inside")
    assert not locks.any_held()


def test_giving_up_on_the_second_lets_go_of_the_first():
    with locks.hold_locks(["b"], give_up):
        with pytest.raises(StillWaiting), locks.hold_locks(["a", "b"], give_up):
            pytest.fail("both held it")
        with locks.hold_locks(["a"], give_up):
            pass


def test_locks_are_taken_in_one_order_whatever_the_order_asked_for():
    for held in ("a", "z"):
        waited: list[str] = []

        def waiting(name: str, waited: list[str] = waited) -> None:
            waited.append(name)
            raise StillWaiting

        with locks.hold_locks([held], give_up), pytest.raises(StillWaiting), locks.hold_locks(["z", "a"], waiting):
            pytest.fail("both held it")
        assert waited == [held]
    with (
        locks.hold_locks(["a"], give_up),
        pytest.raises(StillWaiting, match="a"),
        locks.hold_locks(["z", "a"], give_up),
    ):
        pytest.fail("both held it")


def test_a_name_asked_for_twice_does_not_wait_for_itself():
    with locks.hold_locks(["tank", "tank"], give_up):
        assert locks.any_held()


def test_other_names_do_not_wait():
    with locks.hold_locks(["tank"], give_up), locks.hold_locks(["pond"], give_up):
        assert locks.any_held()


def test_it_waits_until_the_other_lets_go(monkeypatch):
    monkeypatch.setattr(locks, "SECONDS_BETWEEN_TRIES", 0)
    first = locks.hold_locks(["tank"], give_up)
    first.__enter__()
    waited: list[str] = []

    def waiting(name: str) -> None:
        waited.append(name)
        first.__exit__(None, None, None)

    with locks.hold_locks(["tank"], waiting):
        assert waited == ["tank"]


@pytest.mark.parametrize("name", ["../../etc/passwd", "/dev/disk/by-id/ata-x", "", "a" * 5000, "tank/photos", "a\0b"])
def test_no_name_reaches_beyond_the_folder_of_locks(name):
    with locks.hold_locks([name], give_up):
        assert all(path.parent == paths.LOCKS for path in paths.LOCKS.iterdir())
        assert len(list(paths.LOCKS.iterdir())) == 1


def test_death_frees_a_lock():
    paths.LOCKS.mkdir(parents=True)
    script = (
        "import sys, signal; from pathlib import Path; from appliance.system import locks, paths as places\n"
        "places.LOCKS = Path(sys.argv[1])\n"
        "with locks.hold_locks(['tank'], print):\n    print('held', flush=True); signal.pause()"
    )
    child = subprocess.Popen([sys.executable, "-c", script, str(paths.LOCKS)], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    try:
        assert child.stdout.readline() == "held\n"
        with pytest.raises(StillWaiting), locks.hold_locks(["tank"], give_up):
            pytest.fail("both held it")
    finally:
        child.kill()
        child.wait()
        child.stdout.close()
    with locks.hold_locks(["tank"], give_up):
        assert locks.any_held()
