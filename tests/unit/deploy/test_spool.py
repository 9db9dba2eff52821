from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[3] / "deploy/events/spool"
SPOOL = "/var/spool/larder"
SYSLOG = "/usr/lib/zfs-linux/zed.d/all-syslog.sh"
ZED = {"ZEVENT_CLASS": "sysevent.fs.zfs.vdev_remove", "ZEVENT_POOL": "tank"}
SMARTD = {"SMARTD_DEVICE": "/dev/sda", "SMARTD_FAILTYPE": "Health"}


class Spool:
    """The script on a folder of this test's own: a copy with the path changed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "events"
        self.new = folder / "new"
        self.folder.mkdir()
        self.new.mkdir()
        text = SCRIPT.read_text()
        assert text.count(SPOOL) == 1
        self.script = folder / "spool"
        self.script.write_text(text.replace(SPOOL, str(folder)))
        self.surroundings = {"PATH": os.environ["PATH"]}

    def run(self, event: dict[str, str] | dict[bytes, bytes], **more: str) -> None:
        surroundings = {
            os.fsencode(key): os.fsencode(value)
            for key, value in [*self.surroundings.items(), *more.items(), *event.items()]
        }
        ended = subprocess.run(
            ["/bin/sh", str(self.script)], env=surroundings, stdin=subprocess.DEVNULL, capture_output=True, check=False
        )
        assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"", b"")

    def read(self) -> list[dict[str, object]]:
        return [json.loads(path.read_text()) for path in sorted(self.folder.glob("*.json"))]

    def fields(self, event: dict[str, str] | dict[bytes, bytes], **more: str) -> dict[str, str]:
        """The fields of the one event that the script writes; nothing else is left in the folder."""
        self.run(event, **more)
        (path,) = self.folder.iterdir()
        assert path.suffix == ".json"
        assert not list(self.new.iterdir())
        # As the worker reads it: a byte that is no UTF-8 spoils one letter.
        fields = json.loads(path.read_text(errors="replace"))["fields"]
        assert isinstance(fields, dict)
        return fields


@pytest.fixture
def spool(tmp_path):
    return Spool(tmp_path)


@pytest.mark.parametrize(("event", "source"), [(ZED, "zed"), (SMARTD, "smartd")])
def test_an_event_becomes_a_file_that_says_where_it_came_from(spool, event, source):
    spool.run(event)
    (written,) = spool.read()
    assert (written["source"], written["fields"]) == (source, event)
    assert str(written["received"]).endswith("Z")


def test_the_file_is_not_for_everyone(spool):
    spool.run(ZED)
    (path,) = spool.folder.iterdir()
    assert path.stat().st_mode & 0o777 == 0o640


def test_only_fields_of_the_event_are_kept(spool):
    assert spool.fields(ZED | {"CANARY": "1", "HOME": "/root", "SMARTD_DEVICE": "/dev/sdb", "XZEVENT_A": "1"}) == ZED


@pytest.mark.parametrize(
    "value",
    [
        'a "quoted" word',
        "back\\slash",
        "\\",
        '\\"',
        '"',
        '","x":"',
        "}",
        "\\u0041",
        "%s %n",
        "$(id)",
        "`id`",
        "a=b=c",
        "'",
        "",
        " ",
        "&|;<>",
        "*",
        "é",
        "[]{}",
    ],
)
def test_a_hostile_value_comes_out_as_it_went_in(spool, value):
    assert spool.fields(ZED | {"ZEVENT_VDEV_PATH": value})["ZEVENT_VDEV_PATH"] == value


@pytest.mark.parametrize("value", ["a\nb", "\n", 'a\n"b', "a\n\n", "\nZEVENT_X", "a\nb=c"])
def test_a_value_of_several_lines_keeps_its_first_line(spool, value):
    fields = spool.fields(ZED | {"ZEVENT_VDEV_PATH": value})
    assert fields["ZEVENT_VDEV_PATH"] == value.split("\n")[0]
    assert set(fields) == {*ZED, "ZEVENT_VDEV_PATH"}


def test_invisible_characters_are_left_out(spool):
    every = "".join(map(chr, [*range(1, 10), *range(11, 32), 127]))
    assert spool.fields(ZED | {"ZEVENT_VDEV_PATH": f"a{every}b"})["ZEVENT_VDEV_PATH"] == "ab"


def test_a_value_of_5000_bytes_is_cut_and_the_rest_is_kept(spool):
    fields = spool.fields(ZED | {"ZEVENT_VDEV_PATH": "x" * 5000})
    assert 3900 < len(fields["ZEVENT_VDEV_PATH"]) < 4000
    assert fields["ZEVENT_POOL"] == "tank"


def test_a_long_value_of_quotes_is_cut_between_characters(spool):
    assert set(spool.fields(ZED | {"ZEVENT_VDEV_PATH": '"' * 5000})["ZEVENT_VDEV_PATH"]) == {'"'}


@pytest.mark.parametrize("locale", ["C", "C.UTF-8", ""])
def test_the_callers_locale_changes_nothing(spool, locale):
    assert spool.fields(ZED | {"ZEVENT_VDEV_PATH": "Büro"}, LC_ALL=locale)["ZEVENT_VDEV_PATH"] == "Büro"


def test_no_event_is_an_event_without_fields(spool):
    assert spool.fields({}) == {}


def test_a_thousand_waiting_are_enough(spool):
    for number in range(998):
        (spool.folder / f"{number}.json").write_text("{}")
    for _ in range(4):
        spool.run(ZED)
    assert 999 <= len(list(spool.folder.iterdir())) <= 1000


def test_every_event_has_a_file_of_its_own(spool):
    for _ in range(5):
        spool.run(ZED)
    assert len(spool.read()) == 5


def test_without_a_spool_nothing_happens(spool):
    spool.folder.rmdir()
    spool.run(ZED)
    assert not spool.folder.exists()


NOT_UTF8 = {"bytes": b"\xff\xfe", "cut in a letter": b"x" * 3982 + b"\xc3\xa9" * 100}


@pytest.mark.parametrize("value", NOT_UTF8.values(), ids=NOT_UTF8)
def test_a_value_that_is_not_utf8_does_not_spoil_the_file(spool, value):
    fields = spool.fields({b"ZEVENT_CLASS": b"x", b"ZEVENT_POOL": b"tank", b"ZEVENT_VDEV_PATH": value})
    assert fields["ZEVENT_POOL"] == "tank"


@pytest.mark.parametrize("tool", ["awk", "mv", "date"])
def test_a_spool_that_cannot_be_written_is_not_complained_of(spool, tmp_path, tool):
    tools = tmp_path / "tools"
    tools.mkdir()
    full = tools / tool
    full.write_text(f"#!/bin/sh\necho '{tool}: No space left on device' >&2\nexit 1\n")
    full.chmod(0o755)
    spool.surroundings["PATH"] = f"{tools}:{spool.surroundings['PATH']}"
    spool.run(ZED)
    assert all(event["source"] == "zed" for event in spool.read())
    assert not list(spool.new.iterdir())


def test_of_many_changes_to_datasets_one_event_waits(spool):
    history = {"ZEVENT_CLASS": "sysevent.fs.zfs.history_event", "ZEVENT_SUBCLASS": "history_event"}
    for _ in range(3):
        spool.run(history)
    (path,) = spool.folder.iterdir()
    path.unlink()
    spool.run(history)
    assert len(spool.read()) == 1
    spool.run(ZED | {"ZEVENT_SUBCLASS": "vdev_remove"})
    assert len(spool.read()) == 2


def test_writes_of_the_configuration_are_not_told(spool):
    spool.run(ZED | {"ZEVENT_SUBCLASS": "config_sync"})
    assert not list(spool.folder.iterdir())


@pytest.mark.parametrize(
    ("event", "in_folder", "logged"),
    [
        (ZED | {"ZEVENT_SUBCLASS": "vdev_remove"}, False, 1),
        (ZED | {"ZEVENT_SUBCLASS": "config_sync"}, False, 1),
        (ZED | {"ZEVENT_SUBCLASS": "vdev_remove"}, True, 0),
        (ZED | {"ZEVENT_SUBCLASS": "history_event"}, False, 0),
        (SMARTD, False, 0),
    ],
)
def test_debians_log_has_each_event_once_but_for_history(spool, tmp_path, event, in_folder, logged):
    """ZED starts a script of its folder by itself; one that the installer took out is started from here."""
    script = tmp_path / "all-syslog.sh"
    script.write_text(f"#!/bin/sh\necho noise; echo $ZEVENT_CLASS >> {tmp_path}/logged\n")
    script.chmod(0o755)
    text = spool.script.read_text()
    assert text.count(SYSLOG) == 1
    spool.script.write_text(text.replace(SYSLOG, str(script)))
    folder = tmp_path / "zed.d"
    folder.mkdir()
    if in_folder:
        (folder / "all-syslog.sh").symlink_to(script)
    spool.run(event, **({"ZED_ZEDLET_DIR": str(folder)} if "ZEVENT_CLASS" in event else {}))
    found = (tmp_path / "logged").read_text().splitlines() if (tmp_path / "logged").exists() else []
    assert found == [ZED["ZEVENT_CLASS"]] * logged


@pytest.mark.parametrize("precious", ["file", "folder"])
def test_a_link_in_the_way_leads_root_nowhere(spool, tmp_path, precious):
    """The unprivileged worker may write the events' folder, and could guess the next name."""
    target = tmp_path / "precious"
    target.mkdir() if precious == "folder" else target.write_text("precious")
    clock = tmp_path / "tools"
    clock.mkdir()
    (clock / "date").write_text("#!/bin/sh\necho 17 2026-01-01T00:00:00Z\n")
    (clock / "date").chmod(0o755)
    # exec keeps the process id, which is part of the name.
    trap = f"ln -s '{target}' '{spool.folder}'/17-$$.json && exec /bin/sh '{spool.script}'"
    surroundings = ZED | {"PATH": f"{clock}:{os.environ['PATH']}"}
    subprocess.run(["/bin/sh", "-c", trap], env=surroundings, check=True)
    assert list(target.iterdir()) == [] if precious == "folder" else target.read_text() == "precious"
    (path,) = spool.folder.iterdir()
    assert not path.is_symlink()
